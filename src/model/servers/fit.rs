//! How many servers fit the stays of a host best, in which order they serve, and what stays wait for beside them.

use crate::lqn::{Dispatching, Multiplicity};
use crate::model::servers::discipline::Discipline;
use crate::model::servers::evidence::{Asked, Evidence, FITS, Left, WAITING, is_beyond};
use crate::model::servers::occupancy::{INDEPENDENT, Imputed, Occupancy};
use crate::model::servers::sampled::offered;
use crate::model::servers::waits::{self, Kind};
use crate::model::utilisation::Busy;

/// Counts that machines seldom have are taken where they fit so much better: the logarithm of 1/0.3.
const SELDOM: f64 = 1.204;

/// The most servers that are tried.
pub(super) const MOST_SERVERS: usize = 4096;

/// Orders of service in which so many servers may have worked, without those of levels. What was not traced nobody saw come and go: then only
/// shares are known.
pub(super) fn disciplines(
    occupancy: &Occupancy,
    probability: f64,
    given: Option<Discipline>,
    servers: u32,
) -> Vec<Discipline> {
    if !occupancy.is_whole(probability) || servers as usize >= occupancy.most {
        return vec![Discipline::Sharing];
    }
    given.map_or_else(|| Discipline::TELLING.to_vec(), |given| vec![given])
}

/// Orders of service with levels in which so many servers may have worked.
pub(super) fn levels(
    occupancy: &Occupancy,
    probability: f64,
    given: Option<Discipline>,
    servers: u32,
) -> Vec<Discipline> {
    if !occupancy.is_whole(probability) || servers as usize >= occupancy.most || given.is_some() {
        return Vec::new();
    }
    Discipline::levels(occupancy.mean_stay()).collect()
}

/// Parts of their time in which stays may want one of a given number of servers, and wait for something that was not traced in the rest of it.
const WORKING: [f64; 17] =
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85];

/// Where they would want one for less of their time, hardly anything is known of that: they are a delay.
const LEAST_WORK: f64 = 0.2;

/// Such waits are so much less likely than none, as minus the logarithm of a weight (ours).
const WAITS: f64 = 7.0;

/// So much likelier are fewer servers than there are cores, as the logarithm of a ratio, where they are taken (ours): four standard errors.
const FEWER: f64 = 8.0;

/// Servers that are busier than this are as good as always busy (ours).
const FULL: f64 = 0.95;

/// What is less likely by no more is nearly as likely (ours).
const NEARLY: f64 = 1.0;

/// What is so much likelier is clearly so, as the logarithm of a ratio (ours).
pub(super) const CLEARLY: f64 = 2.0;

/// Numbers of servers fit no more that make lengths of stays so much less likely, as the logarithm of a ratio (ours): four standard errors.
const UNLIKE: f64 = 8.0;

/// Two levels make servers look like so many times as many at most (ours).
const TIMES: u32 = 4;

/// So many stays tell two levels from more servers (ours): to fewer, one of several quanta fits by chance.
const MANY_STAYS: usize = 1000;

/// A number of servers, and what follows from it.
pub(super) struct Fit {
    pub servers: u32,
    /// Whether nothing queues, however many there are.
    pub is_delay: bool,
    pub discipline: Discipline,
    pub range: (u32, Option<u32>),
    pub imputed: Imputed,
    /// Numbers of servers that fit, and the part of the time that is work with each.
    pub fitting: Vec<(u32, f64)>,
    /// How busy they are where stays wait for something that was not traced, and nothing but stays tells how long.
    pub busy: Option<f64>,
    /// So many servers of which so many are busy would fit as well, if stays wait for something that was not traced.
    pub or_waits: Option<(u32, f64)>,
    /// Where stays wait, so many servers would fit nearly as well if they waited for nothing else.
    pub or_works: Option<u32>,
    /// Minus the logarithm of how likely it is.
    pub unlikelihood: f64,
    /// What speaks against it, beside lengths of stays being unlikely.
    pub against: f64,
}

/// What is known of servers beside what stays tell.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub servers: Option<Multiplicity>,
    pub discipline: Option<Discipline>,
    pub busy: Option<Busy>,
    /// What else is known of the host.
    pub kind: Kind,
    /// The part of stays that may end before they had their turn.
    pub early: f64,
    /// How requests come to copies, where arrivals are open.
    pub arrivals: Option<Dispatching>,
}

impl Fit {
    /// Servers without waits beside them.
    fn plain(
        servers: u32,
        discipline: Discipline,
        range: (u32, Option<u32>),
        imputed: Imputed,
        (unlikelihood, against): (f64, f64),
    ) -> Self {
        let (fitting, busy, or_waits, or_works) = (Vec::new(), None, None, None);
        Self {
            servers,
            is_delay: false,
            discipline,
            range,
            imputed,
            fitting,
            busy,
            or_waits,
            or_works,
            unlikelihood,
            against,
        }
    }
}

impl Fit {
    /// So many servers of a copy, and no other number.
    pub fn alone(servers: u32, discipline: Discipline, imputed: Imputed, unlikelihood: f64) -> Self {
        Self::plain(servers, discipline, (servers, Some(servers)), imputed, (unlikelihood, 0.0))
    }

    /// The logarithm of how likely lengths of stays are.
    pub fn likelihood(&self) -> f64 {
        self.against - self.unlikelihood
    }

    /// The same with what speaks against it.
    pub fn likelihood_in_all(&self) -> f64 {
        -self.unlikelihood
    }
}

impl Known {
    /// Whether nothing but stays tells what the host is.
    fn is_nothing(&self) -> bool {
        self.servers.is_none() && self.discipline.is_none() && self.busy.is_none()
    }
}

/// The number of servers and the order of service that fit best, or what follows from given ones. Where they would have been busier than was measured, stays waited for something else.
pub(super) fn fitted(occupancy: &Occupancy, probability: f64, seen: f64, known: Known) -> Fit {
    let fit = fitted_where(occupancy, probability, seen, known, false);
    let servers = f64::from(fit.servers) * occupancy.stations as f64;
    let is_busier = |busy: Busy| is_beyond(seen / probability * fit.imputed.all, busy.cores(servers));
    if occupancy.is_whole(probability) && known.busy.is_some_and(is_busier) {
        let waiting = fitted_where(occupancy, probability, seen, known, true);
        // Where waits explain no more, something else is wrong with what was measured.
        if waiting.unlikelihood < fit.unlikelihood {
            return waiting;
        }
    }
    beside_waits(occupancy, probability, seen, known, fit)
}

/// The same where stays wait for nothing else.
pub(super) fn without_waits(occupancy: &Occupancy, probability: f64, seen: f64, known: Known) -> Fit {
    fitted_where(occupancy, probability, seen, known, false)
}

/// The servers of a host without regard to how many cores are told, of which `all` are.
pub(super) fn without_told(
    all: &Fit,
    occupancy: &Occupancy,
    (probability, seen): (f64, f64),
    known: Known,
) -> Option<Fit> {
    if !occupancy.is_whole(probability) {
        return None;
    }
    // A measured share is relative to all cores that metrics or resources tell.
    let cores = f64::from(all.servers) * occupancy.stations as f64;
    let busy = known.busy.map(|busy| Busy::Cores(busy.cores(cores)));
    Some(fitted(occupancy, probability, seen, Known { servers: None, busy, ..known }))
}

/// Whether fewer servers than there are cores explain stays much better: one thread or a lock uses no more.
pub(super) fn is_fewer(free: &Fit, all: &Fit) -> bool {
    !free.is_delay && free.servers < all.servers && free.unlikelihood + FEWER < all.unlikelihood
}

/// How unlikely a host is beside others of which some time of each stay was taken off.
pub(super) fn unlikelihood_by_difference(fit: &Fit, occupancy: &Occupancy, seen: f64, known: Known) -> f64 {
    let busy = fit.busy.map(Busy::Cores).or(known.busy);
    let may_wait = fit.busy.is_some();
    let asked = Asked { occupancy, probability: 1.0, seen, busy, early: known.early, arrivals: None, may_wait };
    let served = occupancy.served(fit.discipline, &asked.share(fit.servers), fit.servers);
    fit.against - asked.likelihood(fit.servers, occupancy.likelihood_by_difference(&served))
}

/// The same or, where they explain stays clearly better, as many servers as are given, or fewer than were found, and waits for something that was not traced.
fn beside_waits(occupancy: &Occupancy, probability: f64, seen: f64, known: Known, mut fit: Fit) -> Fit {
    if known.busy.is_some() || fit.is_delay || !occupancy.is_whole(probability) {
        return fit;
    }
    let is_given = known.servers.is_some();
    let prior = |servers: u32| WAITS + if is_given { 0.0 } else { unlikelihood(servers) };
    let counts = if is_given { vec![fit.servers] } else { candidates(fit.servers as usize) };
    let stays = occupancy.stays() as f64;
    let all_stays = stays.min(INDEPENDENT) / stays.min(WAITING);
    let mut best: Option<(f64, Fit)> = None;
    let mut possible: Option<(f64, Fit)> = None;
    for servers in counts.into_iter().filter(|servers| (*servers as usize) < occupancy.most) {
        let all = servers.saturating_mul(occupancy.stations as u32);
        let known = Known { servers: Some(Multiplicity::Finite(all)), ..known };
        let own = waiting_at(occupancy, probability, seen, (servers, known));
        let is_full = |own: &Fit| own.busy.is_some_and(|busy| busy > FULL * f64::from(all));
        // What is always busy is overloaded, and waits explain nothing of that.
        let Some(own) = own.filter(|own| is_given || !is_full(own)) else { continue };
        // Nothing is likelier than what nothing speaks against, by the few stays that count.
        let score = prior(servers) + own.unlikelihood;
        let least = best.as_ref().map_or(fit.unlikelihood + NEARLY, |(least, _)| *least);
        // By as many as count elsewhere it may be so.
        let by_all = prior(servers) + own.against - all_stays * own.likelihood();
        if prior(servers) < fit.against + NEARLY && score < least {
            best = Some((score, own));
        } else if by_all < possible.as_ref().map_or(fit.unlikelihood, |(least, _)| *least) {
            possible = Some((by_all, own));
        }
    }
    let is_taken = |score: f64| is_given && score < fit.unlikelihood || score + CLEARLY < fit.unlikelihood;
    let or_works = |own: &Fit| Some(fit.servers).filter(|servers| !is_given && *servers > own.servers);
    match best {
        Some((score, own)) if is_taken(score) => Fit { unlikelihood: score, or_works: or_works(&own), ..own },
        best => match best.filter(|_| !is_given).or(possible) {
            // Other numbers of servers than the given one are out of question.
            Some((score, own)) if is_given => Fit { unlikelihood: score, ..own },
            Some((_, own)) => {
                fit.or_waits = own.busy.map(|busy| (own.servers, busy));
                fit
            }
            None => fit,
        },
    }
}

/// What follows from a number of servers where stays wait for something that was not traced in some part of their time: the part that explains best how long they were.
fn waiting_at(occupancy: &Occupancy, probability: f64, seen: f64, (servers, known): (u32, Known)) -> Option<Fit> {
    let (stations, there) = (occupancy.stations as f64, seen / probability);
    let at = |working: f64| stations * offered(f64::from(servers), working * seen / stations);
    let of = |busy: f64| {
        let known = Known { busy: Some(Busy::Cores(busy)), ..known };
        fitted_where(occupancy, probability, seen, known, true)
    };
    let tried = |working: &f64| {
        let busy = at(*working);
        let asked = Asked {
            occupancy,
            probability,
            seen,
            busy: Some(Busy::Cores(busy)),
            early: known.early,
            arrivals: None,
            may_wait: true,
        };
        let order = known.discipline.unwrap_or(Discipline::Sharing);
        match asked.waiting(servers) {
            Some(_) => (busy, Tried::Step(asked, Box::new(Evidence::of(asked, servers, order)))),
            None => (busy, Tried::Whole(of(busy).unlikelihood)),
        }
    };
    let mut tried: Vec<(f64, Tried<'_>)> = WORKING.iter().map(tried).collect();
    // Only those that may be the best are looked at in full, and those that may be as good.
    let best = loop {
        let scores = tried.iter().map(|(_, own)| own.unlikelihood()).enumerate();
        let (best, _) = scores.min_by(|one, other| one.1.total_cmp(&other.1))?;
        if !tried[best].1.look() {
            break best;
        }
    };
    if WORKING[best] < LEAST_WORK {
        return None;
    }
    let mut likely = |place: usize| {
        while tried[place].1.look() {}
        tried[place].1.unlikelihood()
    };
    let (before, after) = (likely(best.saturating_sub(1)), likely((best + 1).min(WORKING.len() - 1)));
    let least = likely(best);
    let limit = least + 0.5 * FITS.powi(2);
    let fits = |own: &mut Tried<'_>| {
        while own.unlikelihood() <= limit && own.look() {}
        own.unlikelihood() <= limit
    };
    let fitting: Vec<(u32, f64)> =
        tried.iter_mut().filter_map(|(busy, own)| fits(own).then_some((servers, *busy / there))).collect();
    // The least of a parabola through the best and those beside it.
    let (slope, bend) = ((after - before) / 2.0, before + after - 2.0 * least);
    let step = WORKING[1] - WORKING[0];
    let beside = if bend > 0.0 { (-slope / bend).clamp(-0.5, 0.5) * step } else { 0.0 };
    let busy = at(WORKING[best] + beside);
    Some(Fit { busy: Some(busy), fitting, ..of(busy) })
}

/// A part of their time in which stays work, as far as it was looked at.
enum Tried<'o> {
    Step(Asked<'o>, Box<Evidence>),
    /// How unlikely it is.
    Whole(f64),
}

impl Tried<'_> {
    /// The next step; whether there was one.
    fn look(&mut self) -> bool {
        match self {
            Self::Step(asked, evidence) => evidence.look(*asked),
            Self::Whole(_) => false,
        }
    }

    /// Minus the logarithm of how likely it is; of what was not looked at in full, no more than that.
    fn unlikelihood(&self) -> f64 {
        match self {
            Self::Step(_, evidence) => evidence.unlikelihood(),
            Self::Whole(unlikelihood) => *unlikelihood,
        }
    }
}

fn fitted_where(occupancy: &Occupancy, probability: f64, seen: f64, known: Known, may_wait: bool) -> Fit {
    let arrivals = known.arrivals.filter(|_| known.busy.is_none() && occupancy.is_whole(probability));
    let asked = Asked { occupancy, probability, seen, busy: known.busy, early: known.early, arrivals, may_wait };
    let telling = |servers: u32| -> Vec<Evidence> {
        let orders = match asked.waiting(servers) {
            Some(_) => vec![known.discipline.unwrap_or(Discipline::Sharing)],
            None => disciplines(occupancy, probability, known.discipline, servers),
        };
        orders.into_iter().map(|order| Evidence::of(asked, servers, order)).collect()
    };
    let levels_of = |servers: u32| match asked.waiting(servers) {
        // A pool lets calls come when others end, as no such order expects.
        None if known.kind != Kind::Limited => levels(occupancy, probability, known.discipline, servers),
        _ => Vec::new(),
    };
    let best_of = |servers: u32, evidence: Vec<Evidence>| best_order(asked, evidence, levels_of(servers));
    if let Some(Multiplicity::Finite(servers)) = known.servers {
        let servers = (servers / occupancy.stations as u32).max(1);
        let best = best_of(servers, telling(servers));
        let range = (servers, Some(servers));
        let unlikelihood = (best.unlikelihood(), best.against());
        return Fit::plain(servers, best.discipline, range, best.imputed, unlikelihood);
    }
    let seen_each = seen / occupancy.stations as f64;
    let most = if probability < 1.0 { (seen_each / probability * 4.0).ceil() as usize + 4 } else { occupancy.most };
    let tried = candidates(most.max(occupancy.most));
    let mut candidates: Vec<Candidate> = Vec::with_capacity(tried.len());
    let mut fit: Vec<(u32, f64, f64)> = Vec::new();
    for &servers in &tried {
        let mut evidence = telling(servers);
        for own in &mut evidence {
            while own.fits() && own.look(asked) {}
            fit.extend(own.fits().then_some((servers, own.imputed.all, own.likelihood)));
            own.forget();
        }
        let due = if probability >= 1.0 { waits::due_to_wait(occupancy, servers, seen, known.kind) } else { 0.0 };
        // A pool of so many makes as many servers as good as any more: what is rare does not decide between these and fewer.
        let prior = if known.kind == Kind::Limited { 0.0 } else { unlikelihood(servers) };
        candidates.push(Candidate { servers, evidence, prior, due });
    }
    let best = likeliest(asked, &mut candidates);
    let mut chosen = candidates.swap_remove(best);
    // What is new goes first at some hosts, and looks like more servers.
    if occupancy.stays() >= MANY_STAYS && asked.waiting(chosen.servers).is_none() {
        let is_fewer = |servers: u32| servers < chosen.servers && servers.saturating_mul(TIMES) >= chosen.servers;
        let with_levels = |own: &Candidate| {
            let of = |order| Evidence::of(asked, own.servers, order);
            let evidence = levels_of(own.servers).into_iter().map(of).collect();
            Candidate { servers: own.servers, evidence, prior: own.prior, due: own.due }
        };
        let is_clearer = |own: &Candidate| own.score() + CLEARLY < chosen.score();
        let fewer = candidates.iter().filter(|own| is_fewer(own.servers)).map(with_levels);
        let mut fewer: Vec<Candidate> = fewer.filter(is_clearer).collect();
        if !fewer.is_empty() {
            let best = likeliest(asked, &mut fewer);
            let best = fewer.swap_remove(best);
            chosen = if is_clearer(&best) { best } else { chosen };
        }
    }
    let score = chosen.score();
    let likelihood = chosen.likeliest().map_or(0.0, |own| own.likelihood);
    let Candidate { servers, evidence, .. } = chosen;
    fit.retain(|(_, _, own)| *own + UNLIKE >= likelihood);
    let fit: Vec<(u32, f64)> = fit.into_iter().map(|(servers, all, _)| (servers, all)).collect();
    let least = fit.first().map(|(servers, _)| *servers);
    // What was sampled shows too little of who was there together.
    if probability >= 1.0
        && known.is_nothing()
        && let Some(unlikely) = waits::unlikelihood_of_delay(occupancy.most, known.kind)
    {
        let servers = occupancy.most.min(MOST_SERVERS) as u32;
        let mut whole = Evidence::of(asked, servers, Discipline::Sharing);
        let is_likelier = |whole: &Evidence| whole.fits_within(waits::FITS) && whole.unlikelihood() + unlikely < score;
        while is_likelier(&whole) && whole.look(asked) {}
        let unlikelihood = (whole.unlikelihood() + unlikely, whole.against() + unlikely);
        if is_likelier(&whole) {
            let range = (least.map_or(servers, |least| servers.min(least)), None);
            let (discipline, imputed) = (Discipline::Sharing, whole.imputed);
            return Fit { is_delay: true, ..Fit::plain(servers, discipline, range, imputed, unlikelihood) };
        }
    }
    let best = best_of(servers, evidence);
    let least = least.map_or(servers, |least| servers.min(least));
    let last = tried.last().copied().unwrap_or(1);
    let most = fit.last().map_or(servers, |(most, _)| servers.max(*most));
    let range = (least, (most < last).then_some(most));
    let (discipline, imputed) = (best.discipline, best.imputed);
    Fit { fitting: fit, ..Fit::plain(servers, discipline, range, imputed, (score, score + likelihood)) }
}

/// A number of servers that is tried.
struct Candidate {
    servers: u32,
    /// By order of service.
    evidence: Vec<Evidence>,
    /// How unlikely such a number is.
    prior: f64,
    /// How many arrivals were due to wait, where none did.
    due: f64,
}

impl Candidate {
    /// Minus the logarithm of how likely it is; of what was not looked at yet, no more than that.
    fn score(&self) -> f64 {
        self.likeliest().map_or(f64::INFINITY, Evidence::unlikelihood) + self.prior + self.due
    }

    /// The order of service that is likeliest.
    fn likeliest(&self) -> Option<&Evidence> {
        self.evidence.iter().min_by(|left, right| left.unlikelihood().total_cmp(&right.unlikelihood()))
    }
}

/// The place of the likeliest number of servers, of equally likely ones the first. Only those that may be it are looked at.
fn likeliest(asked: Asked<'_>, candidates: &mut [Candidate]) -> usize {
    loop {
        let scores = candidates.iter().map(Candidate::score).enumerate();
        let best = scores.min_by(|left, right| left.1.total_cmp(&right.1)).map_or(0, |(place, _)| place);
        if !candidates[best].evidence.iter_mut().any(|own| own.look(asked)) {
            return best;
        }
    }
}

/// The order of service that fits best: of some, or of these levels.
fn best_order(asked: Asked<'_>, evidence: Vec<Evidence>, levels: Vec<Discipline>) -> Evidence {
    let evidence: Vec<Evidence> = evidence.into_iter().map(|own| own.looked(asked)).collect();
    // By all orders that share, stays leave in one order.
    let shared = evidence.iter().find(|own| own.discipline == Discipline::Sharing).map(|own| own.in_order);
    let least =
        |left: &Evidence, right: &Evidence| left.unlikelihood_of_order().total_cmp(&right.unlikelihood_of_order());
    let servers = evidence.first().map_or(1, |own| own.servers);
    let mut best = evidence.into_iter().min_by(least).expect("one order is always tried");
    for level in levels {
        let mut own = Evidence::of(asked, servers, level);
        while least(&own, &best).is_lt() {
            match (&own.left, shared) {
                (Left::Order, Some(shared)) => (own.in_order, own.left) = (shared, Left::Nothing),
                (Left::Nothing, _) => {
                    best = own;
                    break;
                }
                _ => {
                    own.look(asked);
                }
            }
        }
    }
    best
}

/// How unlikely it is that a host has so many servers, as minus the logarithm of a weight: few are likelier than many, and powers of two
/// likelier than other counts.
pub(super) fn unlikelihood(servers: u32) -> f64 {
    2.0 * f64::from(servers).ln() + if servers.is_power_of_two() { 0.0 } else { SELDOM }
}

/// Numbers of servers that are tried: all up to 8, then eight to each doubling.
pub(super) fn candidates(most: usize) -> Vec<u32> {
    let mut tried = Vec::new();
    let (mut servers, mut step) = (1_usize, 1_usize);
    while servers <= most.min(MOST_SERVERS) {
        tried.push(servers as u32);
        servers += step;
        if servers >= 16 * step {
            step *= 2;
        }
    }
    if tried.is_empty() {
        tried.push(1);
    }
    tried
}
