//! Where work stands still once its quota is used.
//!
//! Work that stands still ends nowhere. Of the processor time that stays would have used in each period if nothing held them, a part lies beyond the quota: no stay ends while it would have
//! been used. Without a quota ends come there as often as anywhere: work ends once in the mean time of service, whenever that is. (The compensator of a counting process: Brémaud, Point Processes
//! and Queues, 1981. It is so of any phase of the period where arrivals come at any time, and of exponential service whenever they come.) That holds for periods of all lengths alike, so
//! periods in which no quota is renewed tell what chance and other orders of service come to.

use super::Occupancy;
use super::quota::{PERIOD, Throttled};

/// Processor time in a period has so many bins in each octave: 16, the exponent and four bits of the mantissa.
const MANTISSA: u32 = 48;

/// Bins of processor time: from 1/32 of a core to 128.
const LEAST_EXPONENT: i32 = -5;
const OCTAVES: u32 = 12;
const BINS: usize = 16 * OCTAVES as usize;

/// Parts of a period that may be its begin.
const PARTS: u64 = 50;

/// How often the step between begins is halved.
const HALVINGS: u32 = 4;

/// Of ends that come beyond a quota without one, so many come with one (ours): the kernel hands quotas out in slices of 5 ms, and clocks err.
const NEVERTHELESS: f64 = 0.05;

/// No more of them come beyond a quota (ours).
pub(super) const BEYOND: f64 = 0.1;

/// Periods in which no quota is renewed, nanoseconds: no two of them and of that of quotas have a short common multiple.
const OTHERS: [u64; 4] = [78_615_137, 91_327_411, 114_312_307, 127_196_533];

/// So many begins and ends are looked at.
const MOST_EDGES: usize = 40_000;

/// What stays of one station come to, by how much processor time of a period would have been used without a quota.
struct Usage {
    /// How often stays ended, by bin of the processor time that was used before.
    ends: [u32; BINS],
    /// By bin of the processor time of whole periods, how many there were, and their processor time in units of periods.
    periods: [(f64, f64); BINS],
}

/// By bin, how much likelier a quota is that begins with it, and how many ends there were and were expected beyond.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beyond {
    /// The logarithm of a ratio of likelihoods.
    pub score: f64,
    pub ends: f64,
    pub expected: f64,
}

impl Beyond {
    fn and(self, other: Self) -> Self {
        Self { score: self.score + other.score, ends: self.ends + other.ends, expected: self.expected + other.expected }
    }

    /// Whether hardly anything ends beyond it.
    pub fn is_still(&self) -> bool {
        self.ends <= BEYOND * self.expected
    }
}

/// A quota that explains where nothing ends.
pub(super) struct Standstill {
    /// The number of cores, at least.
    pub cores: f64,
    pub beyond: Beyond,
    /// When periods begin at each station, as nanoseconds within the period.
    pub begins: Vec<i64>,
}

/// Begins and ends of the stays of one station, by the time since the first of all, nanoseconds.
pub(super) struct Track(Vec<(u64, bool)>);

/// The bin of so much processor time in a period, in units of periods.
fn bin(cores: f64) -> usize {
    let least = f64::from(LEAST_EXPONENT).exp2();
    let first = (least.to_bits() >> MANTISSA) as usize;
    ((cores.max(least).to_bits() >> MANTISSA) as usize - first).min(BINS - 1)
}

/// The least number of cores in a bin.
fn edge(bin: usize) -> f64 {
    let least = f64::from(LEAST_EXPONENT).exp2();
    f64::from_bits(((least.to_bits() >> MANTISSA) + bin as u64) << MANTISSA)
}

impl Track {
    /// What is used with so many servers in periods of that length.
    fn usage(&self, period: u64, begin: u64, servers: f64) -> Usage {
        let mut usage = Usage { ends: [0; BINS], periods: [(0.0, 0.0); BINS] };
        let unit = 1.0 / period as f64;
        let mut add = |work: f64, count: f64| {
            let own = &mut usage.periods[bin(work)];
            *own = (own.0 + count, own.1 + count * work);
        };
        let (mut there, mut work, mut now, mut until) = (0.0_f64, 0.0, 0_u64, begin);
        for &(time, begins) in &self.0 {
            let rate = there.min(servers) * unit;
            if time >= until {
                add(work + rate * (until - now) as f64, 1.0);
                let whole = (time - until) / period;
                if rate > 0.0 && whole > 0 {
                    add(rate * period as f64, whole as f64);
                }
                (work, now) = (0.0, until + whole * period);
                until = now.saturating_add(period);
            }
            work += rate * (time - now) as f64;
            now = time;
            if begins {
                there += 1.0;
            } else {
                there -= 1.0;
                usage.ends[bin(work)] += 1;
            }
        }
        add(work, 1.0);
        usage
    }

    /// What each bin comes to where periods begin then.
    fn beyond(&self, period: u64, begin: u64, servers: f64) -> Vec<Beyond> {
        let usage = self.usage(period, begin, servers);
        let ends: u32 = usage.ends.iter().sum();
        let work: f64 = usage.periods.iter().map(|own| own.1).sum();
        let rate = f64::from(ends) / work.max(f64::MIN_POSITIVE);
        let mut all = vec![Beyond::default(); BINS];
        let (mut count, mut work, mut ends) = (0.0, 0.0, 0.0);
        for (bin, own) in all.iter_mut().enumerate().rev() {
            count += usage.periods[bin].0;
            work += usage.periods[bin].1;
            ends += f64::from(usage.ends[bin]);
            let expected = rate * (work - count * edge(bin));
            // Of numbers of ends that follow Poisson's distribution.
            let score = (1.0 - NEVERTHELESS) * expected + NEVERTHELESS.ln() * ends;
            *own = Beyond { score, ends, expected };
        }
        all
    }

    /// The best begin of periods for a quota of that bin.
    fn refined(&self, servers: f64, bin: usize, mut begin: u64) -> u64 {
        let of = |begin: u64| self.beyond(PERIOD as u64, begin, servers)[bin].score;
        let (mut most, mut step) = (of(begin), PERIOD as u64 / PARTS / 2);
        for _ in 0..HALVINGS {
            for other in [begin + PERIOD as u64 - step, begin + step].map(|other| other % PERIOD as u64) {
                let own = of(other);
                if own > most {
                    (most, begin) = (own, other);
                }
            }
            step /= 2;
        }
        begin
    }
}

impl Occupancy {
    /// The first of begins and ends at each station.
    pub(super) fn tracks(&self) -> Vec<Track> {
        let mut tracks: Vec<Vec<(u64, bool)>> = vec![Vec::new(); self.stations];
        let first = self.edges.first().map_or(0, |(time, ..)| *time);
        for &(time, begins, number) in self.edges.iter().take(MOST_EDGES) {
            tracks[self.seen[number].station].push((time.abs_diff(first), begins));
        }
        tracks.into_iter().map(Track).collect()
    }

    /// The quota that explains best where nothing ends, with so many servers: one that was told, or any below these.
    pub(super) fn standstill(&self, tracks: &[Track], servers: f64, told: Option<f64>) -> Option<Standstill> {
        let (best, begins, bin) = best(tracks, PERIOD as u64, servers, told)?;
        let first = self.edges.first().map_or(0, |(time, ..)| *time).rem_euclid(PERIOD) as u64;
        let begins = tracks.iter().zip(begins).map(|(track, begin)| {
            let begin = track.refined(servers, bin, begin);
            ((first + begin) % PERIOD as u64) as i64
        });
        Some(Standstill { cores: told.unwrap_or(edge(bin)), beyond: best, begins: begins.collect() })
    }

    /// How well a quota explains the same where periods have lengths that no quotas have.
    pub(super) fn by_chance(tracks: &[Track], servers: f64, told: Option<f64>) -> f64 {
        let of = |period: &u64| best(tracks, *period, servers, told).map_or(0.0, |(own, ..)| own.score);
        OTHERS.iter().map(of).fold(0.0, f64::max)
    }

    /// How far fewer stays end in some part of the period than is expected with so many servers of so many cores on the mean, in standard errors.
    pub(super) fn uneven_ends(&self, servers: u32, cores: f64, begins: &[i64]) -> f64 {
        const PARTS: usize = 50;
        let part = PERIOD / PARTS as i64;
        let first = self.edges.first().map_or(0, |(time, ..)| *time);
        let of = |begin: &i64| (Throttled::new(f64::from(servers), cores * PERIOD as f64, *begin, first), first);
        let mut stations: Vec<(Throttled, i64)> = begins.iter().map(of).collect();
        let (mut ends, mut expected) = ([0.0_f64; PARTS], [0.0_f64; PARTS]);
        for &(time, is_begin, number) in self.edges.iter().take(MOST_EDGES) {
            let station = self.seen[number].station;
            let begin = begins[station];
            let place = |time: i64| (time.saturating_sub(begin).rem_euclid(PERIOD) / part) as usize;
            let (own, now) = &mut stations[station];
            if own.there > 0.0 {
                // Whole periods are alike: after some of them only what is left of the last one counts.
                while *now < time {
                    let after = now.saturating_add(part - now.saturating_sub(begin).rem_euclid(part)).min(time);
                    let before = own.sum;
                    own.pass(after);
                    expected[place(*now)] += (own.sum - before) * own.there;
                    *now = after;
                    if time.abs_diff(after) > 2 * PERIOD as u64 {
                        own.pass(time);
                        *now = time;
                    }
                }
            }
            own.pass(time);
            *now = time;
            if is_begin {
                own.there += 1.0;
            } else {
                own.there -= 1.0;
                ends[place(time)] += 1.0;
            }
        }
        let scale = ends.iter().sum::<f64>() / expected.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let mut worst = 0.0_f64;
        for at in 0..PARTS {
            let (mut missing, mut all) = (0.0, 0.0);
            for long in 1..=PARTS / 2 {
                let place = (at + long - 1) % PARTS;
                missing += expected[place] * scale - ends[place];
                all += expected[place] * scale;
                let variance = all.max(1.0) * (1.0 - long as f64 / PARTS as f64);
                worst = worst.max(missing / variance.sqrt());
            }
        }
        worst
    }
}

/// What the best quota comes to, its bin, and when periods begin at each station.
fn best(tracks: &[Track], period: u64, servers: f64, told: Option<f64>) -> Option<(Beyond, Vec<u64>, usize)> {
    let mut all = vec![Beyond::default(); BINS];
    let mut begins = vec![vec![0_u64; BINS]; tracks.len()];
    for (track, begins) in tracks.iter().zip(&mut begins) {
        let mut own = vec![Beyond { score: f64::NEG_INFINITY, ..Beyond::default() }; BINS];
        for part in 0..PARTS {
            let begin = period * part / PARTS;
            for (bin, at) in track.beyond(period, begin, servers).into_iter().enumerate() {
                if at.score > own[bin].score {
                    (own[bin], begins[bin]) = (at, begin);
                }
            }
        }
        for (all, own) in all.iter_mut().zip(own) {
            *all = all.and(own);
        }
    }
    let bins = match told {
        // The first of which all is beyond the quota.
        Some(cores) => (bin(cores)..BINS).find(|bin| edge(*bin) >= cores).into_iter().collect::<Vec<_>>(),
        None => (0..BINS).filter(|bin| edge(*bin) < servers).collect(),
    };
    let bin = bins.into_iter().max_by(|one, other| all[*one].score.total_cmp(&all[*other].score))?;
    Some((all[bin], begins.iter().map(|begins| begins[bin]).collect(), bin))
}

#[cfg(test)]
mod tests {
    use super::{BINS, PERIOD, Track, bin, edge};

    #[test]
    fn bins_begin_at_their_edges() {
        assert_eq!((bin(0.0), edge(0), bin(1e30)), (0, 0.03125, BINS - 1));
        for cores in [0.05, 0.5, 1.0, 1.99, 2.0, 31.9, 100.0] {
            let bin = bin(cores);
            assert!(edge(bin) <= cores && cores < edge(bin + 1), "{cores}");
        }
        assert_eq!(edge(bin(1.5)), 1.5);
    }

    #[test]
    fn what_is_used_beyond_a_quota_ends_nowhere() {
        let ms = |time: u64| time * 1_000_000;
        // Two at work from 10 ms on; one ends after 20 ms, the other at 240 ms.
        let track = Track(vec![(ms(10), true), (ms(10), true), (ms(30), false), (ms(240), false)]);
        let usage = track.usage(PERIOD as u64, ms(50), 4.0);
        assert_eq!((usage.ends[bin(0.4)], usage.ends[bin(0.9)]), (1, 1));
        assert_eq!(usage.periods[bin(0.6)].0, 1.0);
        assert_eq!(usage.periods[bin(1.0)], (1.0, 1.0));
        let work: f64 = usage.periods.iter().map(|own| own.1).sum();
        assert!((work - 2.5).abs() < 1e-9);
        // Work ends once in 1.25, and once beyond 0.5: in 0.1, 0.5 and 0.4.
        let beyond = track.beyond(PERIOD as u64, ms(50), 4.0)[bin(0.5)];
        assert_eq!(beyond.ends, 1.0);
        assert!((beyond.expected - 1.0 / 1.25).abs() < 1e-9, "{}", beyond.expected);
    }
}
