//! Quotas of processor time.
//!
//! A control group of Linux may use so much processor time in each period of 100 ms, and stands still until the next one once it has (bandwidth control of CFS: Turner, Rao and
//! Rao, Linux Symposium 2010). Limits of containers are such quotas. Work that stands still ends nowhere. So where arrivals come at any time, more work ends right after a period begins
//! than right before: that tells when periods begin. The quota is the one with which lengths of stays are likeliest.

use super::likelihood::INDEPENDENT;
use super::{Imputed, Occupancy};
use crate::model::servers::discipline::Discipline;

/// The period of quotas, nanoseconds: the default of the kernel, which container runtimes keep.
const PERIOD: i64 = 100_000_000;

/// Parts of a period that are told apart.
const PARTS: usize = 50;

/// So many parts before and after the begin of a period are compared.
const BESIDE: usize = 8;

/// The fewest stays at a copy that tell.
const ENOUGH: u32 = 500;

/// More ends after the begin of a period than before it tell of a quota from so many standard errors on, unless begins rise as much at any time: then work comes in steps of the period
/// by itself (ours). Of 12 simulated hosts without quota the largest difference was 2.5.
const TELLS: f64 = 3.5;

/// A quota makes lengths of stays so much likelier, as the logarithm of a ratio (ours).
const CLEARLY: f64 = 6.0;

/// A quota of which more is used is none (ours): work that waits for the next tick of a timer ends at its begin whatever is used, and looks so.
const FULL: f64 = 0.95;

/// Servers that are tried.
const SERVERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// The least quota that is tried, cores.
const LEAST: f64 = 0.05;

/// How quotas that are tried first follow each other, and how often the step is halved then.
const STEP: f64 = 1.25;
const HALVINGS: u32 = 6;

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

impl Occupancy {
    /// The quota of the host, if its stays tell of one. `likelihood` is that of the best host without; so many stays are at a copy on average.
    pub fn quota(&self, likelihood: f64, seen: f64) -> Option<Quota> {
        let begins = self.begins_of_periods()?;
        let counts = (self.dated as f64).min(INDEPENDENT);
        let of = |servers: u32, cores: f64| {
            let (had, rates) = self.throttled(servers, cores, &begins);
            self.likelihood_with_error(&self.by_ratio, &had, &rates).0
        };
        let mut best: Option<(f64, u32, f64)> = None;
        for servers in SERVERS.into_iter().filter(|servers| (*servers as usize) <= self.most.max(1)) {
            let mut cores = LEAST;
            while cores < f64::from(servers) {
                let own = of(servers, cores);
                if best.is_none_or(|(most, ..)| own > most) {
                    best = Some((own, servers, cores));
                }
                cores *= STEP;
            }
        }
        let (mut most, servers, mut cores) = best?;
        let mut step: f64 = STEP;
        for _ in 0..HALVINGS {
            step = step.sqrt();
            for beside in [cores / step, cores * step] {
                let own = of(servers, beside);
                if own > most {
                    (most, cores) = (own, beside);
                }
            }
        }
        let (had, rates) = self.throttled(servers, cores, &begins);
        let own = self.likelihood(&self.by_ratio, &had, &rates) * counts;
        if own <= likelihood + CLEARLY {
            return None;
        }
        let imputed = self.imputed(Discipline::Sharing, &had);
        (seen * imputed.all <= FULL * cores).then_some(Quota { cores, servers, imputed, likelihood: own })
    }

    /// When periods begin at each station, as nanoseconds within the period; `None` where nothing tells of periods.
    fn begins_of_periods(&self) -> Option<Vec<i64>> {
        let mut ends = vec![[0_u32; PARTS]; self.stations];
        let mut starts = ends.clone();
        let part = |time: i64| (time.rem_euclid(PERIOD) * PARTS as i64 / PERIOD) as usize;
        for (stay, ()) in self.recorded(std::iter::repeat(())) {
            ends[stay.station][part(stay.end)] += 1;
            starts[stay.station][part(stay.start)] += 1;
        }
        let after =
            |of: &[u32; PARTS], at: usize| (0..BESIDE).map(|beside| f64::from(of[(at + beside) % PARTS])).sum::<f64>();
        let difference = |of: &[u32; PARTS], at: usize| {
            let (after, before) = (after(of, at), after(of, at + PARTS - BESIDE));
            (after - before, after + before)
        };
        let (mut of_ends, mut of_starts, mut begins) = ((0.0, 0.0), (0.0, 0.0), Vec::new());
        for (ends, starts) in ends.iter().zip(&starts) {
            let steepest = (0..PARTS).max_by(|one, other| {
                difference(ends, *one).0.total_cmp(&difference(ends, *other).0).then(other.cmp(one))
            })?;
            begins.push(steepest as i64 * PERIOD / PARTS as i64);
            if ends.iter().sum::<u32>() >= ENOUGH {
                let rises = (0..PARTS).map(|at| difference(starts, at));
                let other = rises.max_by(|one, other| one.0.total_cmp(&other.0))?;
                let own = difference(ends, steepest);
                of_ends = (of_ends.0 + own.0, of_ends.1 + own.1);
                of_starts = (of_starts.0 + other.0, of_starts.1 + other.1);
            }
        }
        let errors = |(difference, variance): (f64, f64)| difference / variance.sqrt().max(1.0);
        let least = TELLS * (self.stations as f64).sqrt();
        (errors(of_ends) >= least && errors(of_starts) < least).then_some(begins)
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
struct Throttled {
    servers: f64,
    /// Processor time in a period, nanoseconds.
    quota: f64,
    /// How many are there.
    there: f64,
    /// What one had that was there from the begin on, nanoseconds.
    sum: f64,
    /// What is left of the quota, nanoseconds.
    left: f64,
    now: i64,
    /// When the next period begins.
    until: i64,
}

impl Throttled {
    fn new(servers: f64, quota: f64, begin: i64, now: i64) -> Self {
        let until = now.saturating_add(PERIOD - now.saturating_sub(begin).rem_euclid(PERIOD));
        Self { servers, quota, there: 0.0, sum: 0.0, left: quota, now, until }
    }

    /// Time passes.
    fn pass(&mut self, time: i64) {
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
    use super::{PERIOD, Throttled};

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
