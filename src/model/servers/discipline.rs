//! In which order a host serves those that are there, and how much of a server each of them had by that.
//!
//! Begins and ends of stays are seen; the order of service is not. Each order gives another processor time to short and to long work:
//! - *processor sharing*: of k servers each of n has min(1, k/n) (Kleinrock, Queueing Systems II, 1976, §4.4);
//! - *first come, first served*: the first k have a server each, the others none;
//! - *multilevel processor sharing* with two levels (Kleinrock 1976, §4.7; Coffman and Kleinrock, JACM 15(4), 1968): those that had less than a quantum go before all
//!   others, and each level is shared. Schedulers of operating systems that round-robin with a quantum do so, since a thread that wakes is put ahead of those
//!   that ran: Linux gives it a slice of some milliseconds.

use std::collections::VecDeque;

use crate::lqn::Scheduling;
use crate::model::servers::sampled::Share;

/// The order of service of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discipline {
    /// All have equal parts.
    Sharing,
    /// Those of less than so many nanoseconds of processor time have equal parts first, then the others.
    Multilevel(u64),
    /// Who came first has a server of its own.
    FirstCome,
}

/// Quanta that are tried, nanoseconds. Linux has slices of 0.75 to 24 ms, by the number of its processors.
const QUANTA: [u64; 5] = [1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000];

/// Levels are taken where they fit so much better than sharing: the logarithm of 1/0.3.
const SELDOM: f64 = 1.204;

/// The order of arrival, too: the logarithm of 20, since machines that run more than one thread share.
const RARE: f64 = 2.996;

impl Discipline {
    /// The disciplines under which numbers of servers are compared. Two levels are left out: new work that goes first looks like one server more.
    pub const TELLING: [Self; 2] = [Self::Sharing, Self::FirstCome];

    /// Those with levels that can be told from sharing where stays have that mean length, nanoseconds.
    pub fn levels(mean: f64) -> impl Iterator<Item = Self> {
        // Of work that is much shorter all is new, of work that is much longer nearly nothing is.
        let tells = move |quantum: &u64| mean > 0.5 * *quantum as f64 && mean < 200.0 * *quantum as f64;
        QUANTA.into_iter().filter(tells).map(Self::Multilevel)
    }

    /// What a processor that is configured to serve so does; `None` where traces are to tell.
    pub fn given(scheduling: Option<Scheduling>) -> Option<Self> {
        match scheduling? {
            Scheduling::Fcfs => Some(Self::FirstCome),
            _ => Some(Self::Sharing),
        }
    }

    /// How a model serves so. Those that share by levels differ from equal sharing in how long short work takes, for which models have no word.
    pub fn scheduling(self) -> Scheduling {
        match self {
            Self::FirstCome => Scheduling::Fcfs,
            Self::Sharing | Self::Multilevel(_) => Scheduling::ProcessorSharing,
        }
    }

    /// How unlikely it is, as minus the logarithm of a weight.
    pub fn unlikelihood(self) -> f64 {
        match self {
            Self::Sharing => 0.0,
            Self::Multilevel(_) => SELDOM,
            Self::FirstCome => RARE,
        }
    }

    /// What it is called.
    pub fn name(self) -> String {
        match self {
            Self::Sharing => "processor sharing".to_owned(),
            Self::Multilevel(quantum) => format!("the first {} ms of each before all others", quantum as f64 * 1e-6),
            Self::FirstCome => "first come, first served".to_owned(),
        }
    }
}

/// A station at a time: those that are there, and what they had.
pub enum Station<'s> {
    /// All have equal parts.
    Sharing {
        /// By how many others are seen.
        share: &'s Share,
        /// How many are there.
        there: usize,
        /// What one had that was there from the begin on.
        sum: f64,
    },
    /// New ones first.
    Multilevel(Levels),
    /// In order of arrival.
    FirstCome(Line),
}

impl<'s> Station<'s> {
    /// With nobody there.
    pub fn empty(discipline: Discipline, share: &'s Share, servers: u32) -> Self {
        match discipline {
            Discipline::Sharing => Self::Sharing { share, there: 0, sum: 0.0 },
            Discipline::Multilevel(quantum) => Self::Multilevel(Levels::empty(quantum as f64, f64::from(servers))),
            Discipline::FirstCome => Self::FirstCome(Line { servers: servers as usize, ..Line::default() }),
        }
    }

    /// So many nanoseconds pass.
    pub fn pass(&mut self, time: f64, had: &mut [f64]) {
        match self {
            Self::Sharing { share, there, sum } if *there > 0 => *sum += time * share.of(*there - 1),
            Self::Sharing { .. } => {}
            Self::Multilevel(levels) => levels.pass(time, had),
            Self::FirstCome(line) => line.clock += time,
        }
    }

    /// One comes, who finds so many.
    pub fn comes(&mut self, who: usize, had: &mut [f64]) -> usize {
        match self {
            Self::Sharing { there, sum, .. } => {
                had[who] = -*sum;
                *there += 1;
                *there - 1
            }
            Self::Multilevel(levels) => levels.comes(who, had),
            Self::FirstCome(line) => line.comes(who, had),
        }
    }

    /// One leaves: the part of a server that it had in the end; `None` where that is out of order, before it had its turn.
    pub fn leaves(&mut self, who: usize, had: &mut [f64]) -> Option<f64> {
        match self {
            Self::Sharing { share, there, sum } => {
                had[who] += *sum;
                *there -= 1;
                Some(share.of(*there))
            }
            Self::Multilevel(levels) => Some(levels.leaves(who, had)),
            Self::FirstCome(line) => line.leaves(who, had).then_some(1.0),
        }
    }
}

/// Two levels, each of which is shared. What one had is the sum of its level when it leaves less the sum when it came.
pub struct Levels {
    quantum: f64,
    servers: f64,
    /// How many are at either level.
    there: [usize; 2],
    /// What one had that was at that level from the begin on.
    sums: [f64; 2],
    /// Those of the first level in the order in which they came, which is that of their numbers.
    new: VecDeque<New>,
}

/// One of the first level.
struct New {
    who: usize,
    /// The sum at which it comes to the second level.
    until: f64,
    has_left: bool,
}

impl Levels {
    fn empty(quantum: f64, servers: f64) -> Self {
        Self { quantum, servers, there: [0; 2], sums: [0.0; 2], new: VecDeque::new() }
    }

    fn pass(&mut self, mut time: f64, had: &mut [f64]) {
        while time > 0.0 && self.there != [0; 2] {
            while self.new.front().is_some_and(|front| front.has_left) {
                self.new.pop_front();
            }
            let [first, second] = self.parts();
            let crossing = self.new.front().map(|front| (front.until - self.sums[0]).max(0.0) / first);
            let step = crossing.map_or(time, |crossing| crossing.min(time));
            self.sums[0] += first * step;
            self.sums[1] += second * step;
            if crossing.is_some_and(|crossing| crossing <= time)
                && let Some(front) = self.new.pop_front()
            {
                // Rounding may not keep it here.
                self.sums[0] = self.sums[0].max(front.until);
                had[front.who] = self.quantum - self.sums[1];
                self.there = [self.there[0] - 1, self.there[1] + 1];
            }
            time -= step;
        }
    }

    fn comes(&mut self, who: usize, had: &mut [f64]) -> usize {
        had[who] = -self.sums[0];
        self.new.push_back(New { who, until: self.sums[0] + self.quantum, has_left: false });
        self.there[0] += 1;
        self.there[0] + self.there[1] - 1
    }

    /// The part of a server that one has at each level.
    fn parts(&self) -> [f64; 2] {
        let [new, old] = self.there.map(|count| count as f64);
        let first = if new > 0.0 { (self.servers / new).min(1.0) } else { 0.0 };
        let second = if old > 0.0 { ((self.servers - new).max(0.0) / old).min(1.0) } else { 0.0 };
        [first, second]
    }

    /// The part of a server that it had in the end.
    fn leaves(&mut self, who: usize, had: &mut [f64]) -> f64 {
        let level = match self.new.binary_search_by_key(&who, |own| own.who) {
            Ok(place) => {
                self.new[place].has_left = true;
                0
            }
            Err(_) => 1,
        };
        let part = self.parts()[level];
        had[who] += self.sums[level];
        self.there[level] -= 1;
        if self.there[level] == 0 {
            // Sums start anew, so that they stay exact.
            self.sums[level] = 0.0;
            if level == 0 {
                self.new.clear();
            }
        }
        part
    }
}

/// A waiting line before servers. What one had is the clock when it leaves less the clock when it got its server.
#[derive(Default)]
pub struct Line {
    servers: usize,
    clock: f64,
    /// How many have a server.
    served: usize,
    /// Those that wait, in the order in which they came: numbers are in that order.
    waiting: VecDeque<usize>,
}

impl Line {
    fn comes(&mut self, who: usize, had: &mut [f64]) -> usize {
        let found = self.served + self.waiting.len();
        if found == 0 {
            self.clock = 0.0;
        }
        if self.served < self.servers {
            self.served += 1;
            had[who] = -self.clock;
        } else {
            self.waiting.push_back(who);
            had[who] = 0.0;
        }
        found
    }

    /// Whether it had its turn.
    fn leaves(&mut self, who: usize, had: &mut [f64]) -> bool {
        if let Ok(place) = self.waiting.binary_search(&who) {
            self.waiting.remove(place);
            return false;
        }
        had[who] += self.clock;
        match self.waiting.pop_front() {
            Some(next) => had[next] = -self.clock,
            None => self.served -= 1,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Discipline, Station};
    use crate::model::servers::sampled::Share;

    /// What each had: stays by begin and end, in the order in which they came.
    fn had(discipline: Discipline, servers: u32, stays: &[(f64, f64)]) -> (Vec<f64>, usize) {
        let share = Share::new(servers, 1.0, 1.0, 1);
        let mut station = Station::empty(discipline, &share, servers);
        let mut edges: Vec<(f64, bool, usize)> = Vec::new();
        for (who, (start, end)) in stays.iter().enumerate() {
            edges.extend([(*start, true, who), (*end, false, who)]);
        }
        edges.sort_by(|left, right| left.partial_cmp(right).expect("times"));
        let (mut had, mut last, mut early) = (vec![0.0; stays.len()], 0.0, 0);
        for (time, begins, who) in edges {
            station.pass(time - last, &mut had);
            last = time;
            if begins {
                station.comes(who, &mut had);
            } else {
                early += usize::from(station.leaves(who, &mut had).is_none());
            }
        }
        (had, early)
    }

    #[test]
    fn each_order_shares_the_same_work_in_its_way() {
        let stays = [(0.0, 10.0), (2.0, 8.0), (6.0, 14.0)];
        let (sharing, _) = had(Discipline::Sharing, 1, &stays);
        let part = 2.0 / 3.0;
        for (own, known) in sharing.iter().zip([5.0 + part, 2.0 + part, 5.0 + part]) {
            assert!((own - known).abs() < 1e-9, "{own} for {known}");
        }
        let (line, early) = had(Discipline::FirstCome, 1, &stays);
        assert_eq!((line, early), (vec![10.0, 0.0, 4.0], 1));
        // The first 3 of each go first: until 4 those of the first and the second, then of the second, from 6 to 9 of the third.
        let (levels, _) = had(Discipline::Multilevel(3), 1, &stays);
        assert_eq!(levels, [3.5, 3.0, 7.5]);
        let (two, early) = had(Discipline::FirstCome, 2, &stays);
        assert_eq!((two, early), (vec![10.0, 6.0, 6.0], 0));
    }

    #[test]
    fn quanta_without_end_share_and_work_is_never_lost() {
        let stays: Vec<(f64, f64)> =
            (0..200).map(|at| (f64::from(at) * 3.0, f64::from(at * 3 + 2 + (at * 7) % 11))).collect();
        let (sharing, _) = had(Discipline::Sharing, 2, &stays);
        for quantum in [1, 2, 5, 1_000_000] {
            let (levels, _) = had(Discipline::Multilevel(quantum), 2, &stays);
            assert!((levels.iter().sum::<f64>() - sharing.iter().sum::<f64>()).abs() < 1e-6, "{quantum}");
            let is_same = levels.iter().zip(&sharing).all(|(left, right)| (left - right).abs() < 1e-6);
            assert_eq!(is_same, quantum == 1_000_000, "{quantum}");
        }
    }
}
