//! What a number of servers and an order of service make of stays, and what speaks against them.

use crate::lqn::Dispatching;
use crate::model::servers::discipline::Discipline;
use crate::model::servers::occupancy::{INDEPENDENT, Imputed, Occupancy, Served};
use crate::model::servers::sampled::{Share, waiting};
use crate::model::utilisation::Busy;

/// Real processors share their time not quite equally: a correlation of this size is none, however many stays there are.
const NO_CORRELATION: f64 = 0.03;

/// A number of servers fits whose processor times depend on those found by no more than so many standard errors.
pub(super) const FITS: f64 = 2.0;

/// Busy time by the times of spans and that which was measured differ by so much, as a part: clocks, scheduling, background work.
const AGREES: f64 = 0.1;

/// Of so many standard errors more make no difference.
const MOST_ERRORS: f64 = 20.0;

/// Arrivals that are more regular than by chance, or balanced among copies, queue for less by this part (a standard deviation; ours).
const QUEUES_AS: f64 = 0.25;

/// By how much chance moves the logarithm of a mean queue at most.
const MOST_CHANCE: f64 = 0.7;

/// Servers that are busier than this are as good as always busy.
const FULL: f64 = 0.995;

/// Real processors that are shared may let work end in order more often than equal sharing would, by this part of how often it would not.
const IN_ORDER: f64 = 0.1;

/// The same where stays wait for something else in a part of their time, of which only the mean is known.
pub(super) const WAITING: f64 = 100.0;

/// What evidence is asked of.
#[derive(Clone, Copy)]
pub(super) struct Asked<'o> {
    pub occupancy: &'o Occupancy,
    /// The probability with which operations were traced.
    pub probability: f64,
    /// How many of those that were traced were at work on average.
    pub seen: f64,
    pub busy: Option<Busy>,
    /// The part of stays that may end before they had their turn.
    pub early: f64,
    /// How requests come to copies, where open arrivals are to tell.
    pub arrivals: Option<Dispatching>,
    /// Whether stays may wait for what was not traced, for as long as they neither used what was measured nor queued for it.
    pub may_wait: bool,
}

/// What a number of servers makes of work beside other work, and of measured utilisation.
///
/// It is looked at step by step, since most numbers are out of question after the first step. What was not looked at yet counts as if nothing spoke against it.
pub(super) struct Evidence {
    pub servers: u32,
    pub discipline: Discipline,
    pub imputed: Imputed,
    /// The logarithm of how likely lengths of stays are, relative to a host where nobody waits.
    pub likelihood: f64,
    /// How far processor time depends on others that were there, in standard errors.
    pub dependence: f64,
    /// The same where what real processors do is tolerated.
    pub tolerated: f64,
    /// How far what was imputed is from what was measured, in standard errors.
    pub off: f64,
    /// How many ended before they had their turn, relative to how many may.
    pub early: f64,
    /// How far too many left in the order in which they came for a server that is shared, in standard errors.
    pub in_order: f64,
    /// How far stays were not longer for others, which would have slowed them, in standard errors.
    pub unslowed: f64,
    /// How far open arrivals would be there longer than they were, in standard errors.
    pub too_long: f64,
    /// What was not looked at yet.
    pub left: Left,
}

/// Steps in which evidence is looked at.
pub(super) enum Left {
    /// What comes of what stays had, which is kept or found again; then their order.
    Imputed(Option<Vec<f64>>),
    /// In which order stays left.
    Order,
    Nothing,
}

impl Evidence {
    /// The first step.
    pub fn of(asked: Asked<'_>, servers: u32, discipline: Discipline) -> Self {
        let Asked { occupancy, .. } = asked;
        let Served { had, dependence, uneven, early, likelihood, .. } =
            occupancy.served(discipline, &asked.share(servers), servers);
        let tolerance = (1.0 + occupancy.stays() as f64 * NO_CORRELATION * NO_CORRELATION).sqrt();
        let uneven = uneven / tolerance;
        Self {
            servers,
            discipline,
            imputed: Imputed::default(),
            likelihood: asked.likelihood(servers, likelihood),
            dependence: dependence.abs().max(uneven),
            tolerated: (dependence / tolerance).abs().max(uneven),
            off: 0.0,
            early: (early / asked.early).min(MOST_ERRORS),
            in_order: 0.0,
            unslowed: 0.0,
            too_long: 0.0,
            left: Left::Imputed(Some(had)),
        }
    }

    /// The next step; whether there was one.
    pub fn look(&mut self, asked: Asked<'_>) -> bool {
        let is_whole = asked.occupancy.is_whole(asked.probability);
        match std::mem::replace(&mut self.left, Left::Nothing) {
            Left::Imputed(had) => {
                let again = || asked.occupancy.served(self.discipline, &asked.share(self.servers), self.servers).had;
                let had = had.unwrap_or_else(again);
                self.impute(asked, &had);
                // New work that goes first leaves early even more often than equal sharing lets it.
                // Who waits for something else leaves in no order.
                let is_work = asked.waiting(self.servers).is_none();
                if is_whole && is_work && self.discipline != Discipline::FirstCome {
                    self.left = Left::Order;
                }
                true
            }
            Left::Order => {
                let order = asked.occupancy.order(&asked.share(self.servers), self.servers);
                self.in_order = order.lacks(IN_ORDER).min(MOST_ERRORS);
                true
            }
            Left::Nothing => false,
        }
    }

    /// Keeps no more what stays had: of many numbers of servers it takes much memory.
    pub fn forget(&mut self) {
        if let Left::Imputed(had) = &mut self.left {
            *had = None;
        }
    }

    /// The same, all of it looked at.
    pub fn looked(mut self, asked: Asked<'_>) -> Self {
        while self.look(asked) {}
        self
    }

    fn impute(&mut self, asked: Asked<'_>, had: &[f64]) {
        let Asked { occupancy, probability, seen, busy, arrivals, .. } = asked;
        self.imputed = occupancy.imputed(self.discipline, had);
        let servers = f64::from(self.servers) * occupancy.stations as f64;
        // What was measured is all of it where stays wait for something else.
        let measured = busy.filter(|_| asked.waiting(self.servers).is_none());
        self.off = measured.map_or(0.0, |busy| unlike(seen / probability * self.imputed.all, busy.cores(servers)));
        // What was sampled shows too little of whom a stay met.
        if occupancy.is_whole(probability) {
            self.unslowed = self.imputed.unslowed.min(MOST_ERRORS);
        }
        if let Some(arrivals) = arrivals {
            self.too_long = self.too_long(occupancy, seen, arrivals);
        }
    }

    /// By how much open arrivals would be there longer than they were: so many servers, as busy as was imputed, make them queue. What was seen may be longer, for bursts and delays, but not shorter.
    fn too_long(&self, occupancy: &Occupancy, seen: f64, dispatching: Dispatching) -> f64 {
        let (stations, stays) = (occupancy.stations as f64, occupancy.stays() as f64);
        let servers = f64::from(self.servers);
        let seen = seen / stations;
        let busy = seen * self.imputed.all;
        let used = (busy / servers).min(FULL);
        let poisson = match dispatching {
            Dispatching::FanOut => waiting(servers, used * servers),
            // Each has every so-manieth.
            Dispatching::RoundRobin => waiting(servers, used * servers) * f64::midpoint(1.0 / stations.max(1.0), 1.0),
            // No shorter than if all copies had one queue.
            Dispatching::ShortestQueue | Dispatching::ShortestOfTwo => {
                waiting(servers * stations, used * servers * stations) / stations
            }
        };
        let queue = poisson * self.imputed.regular(self.discipline);
        // A queue that grows without end has come so far on the mean (Brownian motion with reflection, mean over time).
        let queue = queue.min(0.75 * (stays / stations).sqrt());
        // The mean number there over time, of M/M/1 (Daley, Journal of Applied Probability 5, 1968).
        let chance = (2.0 * (1.0 + used) / stays).sqrt() / (1.0 - used);
        let error = QUEUES_AS.hypot(chance.min(MOST_CHANCE));
        let longer = ((busy + queue) / seen.max(f64::MIN_POSITIVE)).ln();
        let confined = if busy >= FULL * servers { self.confined(occupancy) } else { 0.0 };
        (longer / error).max(confined).clamp(0.0, MOST_ERRORS)
    }

    /// How unlikely it is that so few were there at most, in standard errors: where servers are always busy the number that is there goes up and down by chance alone.
    ///
    /// Brownian motion of variance v stays within a band of width w with a probability of about exp(-π²v / 2w²) (Feller, volume II, 1971, section X.5).
    fn confined(&self, occupancy: &Occupancy) -> f64 {
        let width = occupancy.most.saturating_sub(self.servers as usize).max(1) as f64;
        let stays = occupancy.stays() as f64 / occupancy.stations as f64;
        std::f64::consts::PI * ((1.0 + self.imputed.cv2) * stays).sqrt() / width
    }

    pub fn fits(&self) -> bool {
        self.fits_within(FITS)
    }

    /// Whether it is off by no more than so many standard errors.
    pub fn fits_within(&self, errors: f64) -> bool {
        let off = [self.tolerated, self.off.abs(), self.early, self.in_order, self.unslowed, self.too_long];
        off.into_iter().all(|off| off <= errors)
    }

    /// The squared standard errors of what is seen of the order.
    pub fn of_order(&self) -> f64 {
        self.early.powi(2) + self.in_order.powi(2) + self.unslowed.powi(2) + self.too_long.powi(2)
    }

    /// Minus the logarithm of its likelihood.
    pub fn unlikelihood(&self) -> f64 {
        self.against() - self.likelihood
    }

    /// What speaks against it, beside lengths of stays being unlikely.
    pub fn against(&self) -> f64 {
        0.5 * (self.tolerated.powi(2) + self.off.powi(2) + self.of_order()) + self.discipline.unlikelihood()
    }

    /// The same among orders of service of as many servers: by which of them real processors serve.
    pub fn unlikelihood_of_order(&self) -> f64 {
        0.5 * (self.dependence.powi(2) + self.off.powi(2) + self.of_order()) + self.discipline.unlikelihood()
            - self.likelihood
    }
}

impl Asked<'_> {
    /// How many of so many servers of a copy are busy, and how many stays wait there for something that was not traced: where less was measured to be used than stays were
    /// there for.
    pub fn waiting(&self, servers: u32) -> Option<(f64, f64)> {
        if !self.may_wait {
            return None;
        }
        let (stations, count) = (self.occupancy.stations as f64, f64::from(servers));
        let busy = self.busy?.cores(count * stations) / stations;
        let seen = self.seen / stations;
        let away = seen - busy - waiting(count, busy);
        (self.occupancy.is_whole(self.probability) && away > AGREES * seen).then_some((busy, away))
    }

    /// How likely all stays are with so many servers, by how likely one is. Of what was sampled nobody knows whom stays met.
    pub fn likelihood(&self, servers: u32, of_one: f64) -> f64 {
        let Self { occupancy, probability, .. } = self;
        // When those that wait for something else do so nobody saw either.
        let most = if self.waiting(servers).is_some() { WAITING } else { INDEPENDENT };
        if occupancy.is_whole(*probability) { of_one * (occupancy.stays() as f64).min(most) } else { 0.0 }
    }

    /// The part of one of so many servers that a stay has.
    pub fn share(&self, servers: u32) -> Share {
        if let Some((busy, away)) = self.waiting(servers) {
            return Share::waiting(servers, busy, away, self.occupancy.most);
        }
        Share::new(servers, self.probability, self.seen / self.occupancy.stations as f64, self.occupancy.most)
    }
}

/// Whether more was imputed than was measured, by more than errors of both come to.
pub fn is_beyond(imputed: f64, measured: f64) -> bool {
    unlike(imputed, measured) > FITS
}

/// How far what was imputed is from what was measured, in standard errors of both.
fn unlike(imputed: f64, measured: f64) -> f64 {
    let ratio = (imputed / measured.max(f64::MIN_POSITIVE)).max(f64::MIN_POSITIVE);
    (ratio.ln() / AGREES).clamp(-MOST_ERRORS, MOST_ERRORS)
}
