//! Shared processors: everyone there is served at once.
//!
//! For each share, the work done for one request is kept as if it had been alone ever since the share was last idle, and one timer for what happens first on the processor. A share with a cap
//! stands still once it has used its quota, until the next period.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dyelog_lqn::model::CAP_PERIOD;

use super::engine::Engine;
use super::probe::Probe;
use super::program::{ENTRY_SUMS, PROCESSOR_TIME, Station};

/// A shared processor at work.
pub(super) struct Sharing {
    servers: f64,
    since: f64,
    /// The first is of those without a cap.
    shares: Vec<Share>,
    is_capped: bool,
    /// What its timer is set for.
    due: Due,
    order: u64,
}

/// Those on a shared processor that stand still together.
#[derive(Default)]
struct Share {
    /// Work done for each, as of some time.
    work: f64,
    /// Work done at which each ends, as the bits of a number that is not negative.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Processor time in a period, and how much of it is left; infinite without a cap.
    quota: f64,
    left: f64,
    is_halted: bool,
}

/// What happens next on a shared processor.
#[derive(Clone, Copy, Default)]
enum Due {
    #[default]
    Nothing,
    /// The first request of a share ends.
    End(usize),
    /// A share has used its quota.
    Used(usize),
    /// A period begins.
    Period,
}

impl Sharing {
    pub fn new(station: &Station) -> Self {
        let caps = std::iter::once(f64::INFINITY).chain(station.caps.iter().copied());
        let shares = caps.map(|cap| {
            let quota = cap * CAP_PERIOD;
            Share { quota, left: quota, ..Share::default() }
        });
        let is_capped = !station.caps.is_empty();
        Self {
            servers: f64::from(station.servers),
            since: 0.0,
            shares: shares.collect(),
            is_capped,
            due: Due::Nothing,
            order: 0,
        }
    }

    /// Work done in a second for each that does not stand still.
    fn rate(&self) -> f64 {
        let running = self.shares.iter().filter(|share| !share.is_halted);
        let jobs = running.map(|share| share.ends.len()).sum::<usize>() as f64;
        if jobs > self.servers { self.servers / jobs } else { 1.0 }
    }

    /// Brings the work done up to date.
    fn catch_up(&mut self, now: f64) {
        let done = (now - self.since) * self.rate();
        for share in &mut self.shares {
            if share.ends.is_empty() {
                share.work = 0.0;
            } else if !share.is_halted {
                share.work += done;
                share.left -= done * share.ends.len() as f64;
            }
        }
        // While nobody with a cap is there, no timer tells of periods.
        if self.is_capped && period(now) > period(self.since) {
            self.begin_period();
        }
        self.since = now;
    }

    fn begin_period(&mut self) {
        for share in &mut self.shares {
            share.left = share.quota;
            share.is_halted = false;
        }
    }

    /// What happens next, and in how many seconds.
    fn next(&self) -> Option<(f64, Due)> {
        let rate = self.rate();
        let mut next: Option<(f64, Due)> = None;
        let mut take = |after: f64, due: Due| {
            if next.is_none_or(|(first, _)| after < first) {
                next = Some((after.max(0.0), due));
            }
        };
        for (number, share) in self.shares.iter().enumerate() {
            let Some(Reverse((end, _, _))) = share.ends.peek() else { continue };
            if !share.is_halted {
                take((f64::from_bits(*end) - share.work) / rate, Due::End(number));
            }
            if share.quota < f64::INFINITY {
                if !share.is_halted {
                    take(share.left / (rate * share.ends.len() as f64), Due::Used(number));
                }
                take((period(self.since) + 1.0) * CAP_PERIOD - self.since, Due::Period);
            }
        }
        next
    }
}

/// The number of the period at that time.
fn period(time: f64) -> f64 {
    // A timer that goes off a rounding error early is that of the period.
    (time / CAP_PERIOD + 1e-9).floor()
}

impl<P: Probe> Engine<'_, P> {
    pub(super) fn share(&mut self, number: usize, share: u32, strand: u32, demand: f64) {
        let sharing = &mut self.stations[number].sharing;
        sharing.catch_up(self.now);
        sharing.order += 1;
        let order = sharing.order;
        let share = &mut sharing.shares[share as usize];
        share.ends.push(Reverse(((share.work + demand).to_bits(), order, strand)));
        self.watch(number);
    }

    /// Sums up what shared processors have done until now for requests that are not done: where more and more come, most of their
    /// work is for these.
    pub(super) fn sum_up_shared(&mut self, now: f64) {
        let Self { stations, strands, visits, series, .. } = self;
        for sharing in stations.iter_mut().map(|station| &mut station.sharing) {
            if sharing.shares.iter().all(|share| share.ends.is_empty()) {
                continue;
            }
            sharing.catch_up(now);
            for share in &sharing.shares {
                for Reverse((end, _, strand)) in &share.ends {
                    let found = &mut strands[*strand];
                    let done = (found.demand - (f64::from_bits(*end) - share.work)).max(found.summed);
                    let entry = visits[found.visit].entry as usize;
                    series.sums[entry * ENTRY_SUMS + PROCESSOR_TIME] += done - found.summed;
                    found.summed = done;
                }
            }
        }
    }

    /// Sets the timer of a shared processor.
    fn watch(&mut self, number: usize) {
        let sharing = &mut self.stations[number].sharing;
        match sharing.next() {
            None => {
                sharing.due = Due::Nothing;
                self.timers.cancel(number);
            }
            Some((after, due)) => {
                sharing.due = due;
                self.timers.set(number, self.now + after);
            }
        }
    }

    /// The strand that ends on a shared processor now, if that is why its timer went off.
    pub(super) fn shared_done(&mut self, number: usize) -> Option<u32> {
        let sharing = &mut self.stations[number].sharing;
        let due = sharing.due;
        sharing.catch_up(self.now);
        let done = match due {
            Due::End(share) => {
                let share = &mut sharing.shares[share];
                let Reverse((end, _, strand)) = share.ends.pop()?;
                // No drift: the work done is what it says.
                share.work = f64::from_bits(end);
                Some(strand)
            }
            Due::Used(share) => {
                // A quota that is used as its period ends is that of the next one by now.
                let share = &mut sharing.shares[share];
                share.is_halted = share.left < 0.5 * share.quota;
                None
            }
            Due::Period | Due::Nothing => None,
        };
        self.watch(number);
        done
    }
}
