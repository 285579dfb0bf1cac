//! Quotas of processor time.
//!
//! A control group of Linux may use so much processor time in each period of 100 ms, and stands still until the next one once it has (bandwidth control of CFS: Turner, Rao and
//! Rao, Linux Symposium 2010). Limits of containers are such quotas. Where work stands still tells when periods begin, and about which quota there is. The quota, and how many servers work
//! uses at once, are those with which lengths of stays are likeliest.

use super::likelihood::INDEPENDENT;
use super::standstill::Track;
use super::{Imputed, Occupancy};
use crate::model::servers::discipline::Discipline;

/// The period of quotas, nanoseconds: the default of the kernel, which container runtimes keep.
pub(super) const PERIOD: i64 = 100_000_000;

/// A quota that nobody told explains where nothing ends so much better than chance, as the logarithm of a ratio (ours), and so much better for each copy more: the begin of its periods is one of many.
const TELLS: f64 = 16.0;
const EACH: f64 = 4.0;

/// The same of one that was told.
const TOLD: f64 = 6.0;

/// It explains so many times as much as one of periods that no quotas have (ours): servers in another order let nothing end where much is there, whatever the period.
const TIMES: f64 = 1.5;

/// The same where clocks blur how likely lengths of stays are, so that nothing else tells; and clocks that count longer steps tell nothing, nanoseconds (ours).
const TIMES_ALONE: f64 = 3.0;
const COARSEST: f64 = 2e6;

/// A quota makes lengths of stays so much likelier, as the logarithm of a ratio (ours).
const CLEARLY: f64 = 2.0;

/// Parts of the period in which fewer stays end are explained by a quota but for so many standard errors, or such a part of how far they were unexplained (ours): timers and pauses keep work
/// from ending whatever was used.
const UNEXPLAINED: f64 = 6.0;
const PART: f64 = 0.7;

/// A quota of which more is used is none (ours): work that waits for the next tick of a timer ends at its begin whatever is used, and looks so.
const FULL: f64 = 0.95;

/// Servers that are tried.
const SERVERS: [u32; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64];

/// The least quota that is tried, cores.
const LEAST: f64 = 0.05;

/// How quotas that are tried follow each other first, and how often the step is halved then.
const STEP: f64 = 1.1;
const HALVINGS: u32 = 5;

/// Limits are multiples of such numbers of cores as a rule: one of them that is this near is taken where lengths of stays are less likely by no more than that, as the logarithm of a ratio (ours).
/// The kernel hands quotas out in slices, of which cores keep what is left: more than the quota is used in a period now and then.
const ROUND: [f64; 3] = [1.0, 0.5, 0.1];
const NEAR: f64 = 0.1;
const LESS: f64 = 12.0;
const MORE: f64 = 2.0;

/// A quota of a host.
pub struct Quota {
    /// How many cores each copy has on the mean.
    pub cores: f64,
    /// How many work of a copy uses at once.
    pub servers: u32,
    /// What stays come to.
    pub imputed: Imputed,
    /// The logarithm of how likely lengths of stays are, relative to a host where nobody waits.
    pub likelihood: f64,
}

/// What is known of a quota.
#[derive(Clone, Copy, Debug)]
pub struct AskedQuota {
    /// How likely the best host without one is, as a logarithm.
    pub likelihood: f64,
    /// How many stays are at a copy on average.
    pub seen: f64,
    /// How many cores a copy may use, where that is told.
    pub told: Option<f64>,
    /// How many servers a copy has, where that is given.
    pub servers: Option<u32>,
}

/// Numbers of servers that are tried, where so many stays were there together: one that lets all work at once, and fewer.
fn servers_tried(given: Option<u32>, most: usize) -> Vec<u32> {
    let enough = SERVERS.iter().position(|servers| *servers as usize >= most).unwrap_or(SERVERS.len() - 1);
    given.map_or_else(|| SERVERS[..=enough].to_vec(), |servers| vec![servers])
}

/// A quota that is tried.
struct Tried {
    likelihood: f64,
    /// How much better it explains where nothing ends than chance.
    score: f64,
    servers: u32,
    cores: f64,
    begins: Vec<i64>,
}

impl Occupancy {
    /// The quota of the host, if its stays tell of one.
    pub fn quota(&self, asked: AskedQuota) -> Option<Quota> {
        let is_told = asked.told.is_some();
        let tells = self.telling.iter().zip(&self.is_blurred).any(|(tells, is_blurred)| *tells && !is_blurred);
        if !tells && self.grain() > COARSEST {
            return None;
        }
        let times = if tells { TIMES } else { TIMES_ALONE };
        let least = if is_told { TOLD } else { TELLS } + EACH * (self.stations as f64 - 1.0);
        let (tracks, most) = (self.tracks(), self.most.max(1));
        // With as many servers as are wanted at once, most is beyond a quota.
        if self.standstill(&tracks, most as f64, asked.told)?.beyond.score < least {
            return None;
        }
        let servers = servers_tried(asked.servers, most);
        let tried = servers.into_iter().filter_map(|servers| self.tried(&tracks, asked, (least, times), servers));
        let by = |own: &Tried| if tells { own.likelihood } else { own.score };
        let best = tried.max_by(|one, other| by(one).total_cmp(&by(other)))?;
        let Tried { servers, cores, begins, .. } = best;
        let (had, rates) = self.throttled(servers, cores, &begins);
        let likelihood = self.likelihood(&self.by_ratio, &had, &rates) * (self.dated as f64).min(INDEPENDENT);
        let is_likelier = !tells || likelihood > asked.likelihood + if is_told { 0.0 } else { CLEARLY };
        let imputed = self.imputed(Discipline::Sharing, &had);
        let is_explained = || {
            let without = self.uneven_ends(servers, f64::from(servers), &begins);
            self.uneven_ends(servers, cores, &begins) <= UNEXPLAINED.max(PART * without)
        };
        let is_quota = || asked.seen * imputed.all <= FULL * cores && is_explained();
        (is_likelier && (is_told || is_quota())).then_some(Quota { cores, servers, imputed, likelihood })
    }

    /// The likeliest quota with so many servers, if it explains where nothing ends.
    fn tried(&self, tracks: &[Track], asked: AskedQuota, (least, times): (f64, f64), servers: u32) -> Option<Tried> {
        if asked.told.is_some_and(|cores| cores >= f64::from(servers)) {
            return None;
        }
        let found = self.standstill(tracks, f64::from(servers), asked.told)?;
        let chance = Self::by_chance(tracks, f64::from(servers), asked.told);
        if found.beyond.score < least.max(times * chance) || !found.beyond.is_still() {
            return None;
        }
        let begins = found.begins;
        let of = |cores: f64| {
            let (had, rates) = self.throttled(servers, cores, &begins);
            self.likelihood_with_error(&self.by_ratio, &had, &rates).0
        };
        let (mut cores, mut step) = (found.cores, STEP);
        let mut most = of(cores);
        for _ in 0..if asked.told.is_some() { 0 } else { HALVINGS } {
            for beside in [cores / step, cores * step] {
                let own = if beside < LEAST || beside >= f64::from(servers) { f64::NEG_INFINITY } else { of(beside) };
                if own > most {
                    (most, cores) = (own, beside);
                }
            }
            step = step.sqrt();
        }
        let counts = (self.dated as f64).min(INDEPENDENT);
        let mut round = ROUND.into_iter().filter(|_| asked.told.is_none()).map(|unit| (cores / unit).round() * unit);
        let is_near = |round: &f64| {
            let limit = if *round < cores { LESS } else { MORE };
            let is_possible = *round < f64::from(servers) && (round / cores - 1.0).abs() <= NEAR;
            is_possible && (most - of(*round)) * counts <= limit
        };
        if let Some(round) = round.find(is_near) {
            (most, cores) = (of(round), round);
        }
        Some(Tried { likelihood: most, score: found.beyond.score, servers, cores, begins })
    }

    /// What stays had where so many servers are shared and all of them use no more than so many cores on the mean of a period, and the part of a server that each had in the end.
    fn throttled(&self, servers: u32, cores: f64, begins: &[i64]) -> (Vec<f64>, Vec<f64>) {
        let first = self.edges.first().map_or(0, |(time, ..)| *time);
        let mut stations: Vec<Throttled> = begins
            .iter()
            .map(|begin| Throttled::new(f64::from(servers), cores * PERIOD as f64, *begin, first))
            .collect();
        let (mut had, mut rates) = (vec![0.0; self.seen.len()], vec![1.0; self.seen.len()]);
        for &(time, begin, number) in &self.edges {
            let station = &mut stations[self.seen[number].station];
            station.pass(time);
            if begin {
                had[number] = -station.sum;
                station.there += 1.0;
            } else {
                had[number] += station.sum;
                rates[number] = if station.left > 0.0 { (station.servers / station.there).min(1.0) } else { 0.0 };
                station.there -= 1.0;
            }
        }
        (had, rates)
    }
}

/// A station with a quota at a time.
pub(super) struct Throttled {
    servers: f64,
    /// Processor time in a period, nanoseconds.
    quota: f64,
    /// How many are there.
    pub there: f64,
    /// What one had that was there from the begin on, nanoseconds.
    pub sum: f64,
    /// What is left of the quota, nanoseconds.
    left: f64,
    now: i64,
    /// When the next period begins.
    until: i64,
}

impl Throttled {
    pub fn new(servers: f64, quota: f64, begin: i64, now: i64) -> Self {
        let until = now.saturating_add(PERIOD - now.saturating_sub(begin).rem_euclid(PERIOD));
        Self { servers, quota, there: 0.0, sum: 0.0, left: quota, now, until }
    }

    /// Time passes.
    pub fn pass(&mut self, time: i64) {
        let rate = self.there.min(self.servers);
        let work = |own: &mut Self, length: f64| {
            if rate > 0.0 {
                let work = (length * rate).min(own.left);
                own.sum += work / own.there;
                own.left -= work;
            }
        };
        if time >= self.until {
            let length = self.until.abs_diff(self.now) as f64;
            work(self, length);
            // Whole periods are alike.
            let whole = time.saturating_sub(self.until) / PERIOD;
            if rate > 0.0 {
                self.sum += whole as f64 * self.quota.min(rate * PERIOD as f64) / self.there;
            }
            self.now = self.until + whole * PERIOD;
            self.until = self.now.saturating_add(PERIOD);
            self.left = self.quota;
        }
        let length = time.abs_diff(self.now) as f64;
        work(self, length);
        self.now = time;
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Throttled, servers_tried};

    #[test]
    fn the_last_number_of_servers_lets_all_work_at_once() {
        assert_eq!(servers_tried(None, 5), [1, 2, 3, 4, 6]);
        assert_eq!(servers_tried(None, 1), [1]);
        assert_eq!(servers_tried(None, 1000).last(), Some(&64));
        assert_eq!(servers_tried(Some(5), 1000), [5]);
    }

    #[test]
    fn work_stands_still_once_the_quota_is_used() {
        let ms = |time: i64| time * 1_000_000;
        let mut station = Throttled::new(4.0, 50e6, ms(20), ms(0));
        assert_eq!(station.until, ms(20));
        // Two use 50 ms in 25 ms, and go on in the next period, from 120 ms on.
        station.pass(ms(20));
        station.there = 2.0;
        station.pass(ms(30));
        assert_eq!((station.sum, station.left), (10e6, 30e6));
        station.pass(ms(100));
        assert_eq!((station.sum, station.left), (25e6, 0.0));
        station.pass(ms(130));
        assert_eq!((station.sum, station.left), (35e6, 30e6));
        // Nine whole periods, and ten milliseconds of the next.
        station.pass(ms(130) + 10 * PERIOD);
        assert_eq!(station.sum, 25e6 + 10.0 * 25e6 + 10e6);
        assert_eq!(station.left, 30e6);
    }
}
