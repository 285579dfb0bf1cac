//! The process of a fork: each branch is at one of its places, until all have ended.

use rustc_hash::FxHashMap;

use crate::layered::chains::NONE;
use crate::numeric::erlang::beside_others;
use crate::numeric::sparse_ctmc::AbsorbingChain;

/// A part with numbers: rounds of a delay and a visit of the own place.
pub(super) struct Loop {
    pub visits: f64,
    /// Mean rounds; the last one is left before any place but the own one is visited.
    pub rounds: f64,
    /// Mean delay in a round.
    pub delay: f64,
    /// Time alone at the place that is visited in each round, if there is one.
    pub own: Option<Place>,
    /// Places that are visited at the end of a round, so often in all.
    pub others: Vec<(Place, f64)>,
}

impl Loop {
    /// The means of the parts of branches that are alike: times are weighted by how often they are taken.
    pub fn mean(branches: &[Vec<Self>]) -> Vec<Self> {
        let count = branches.len() as f64;
        let part = |number: usize| {
            let of = || branches.iter().filter_map(move |parts| parts.get(number));
            let sum = |of_part: &dyn Fn(&Self) -> f64| of().map(of_part).sum::<f64>();
            let (visits, rounds) = (sum(&|own| own.visits), sum(&|own| own.visits * own.rounds));
            let mean = |sum: f64, times: f64| if times > 0.0 { sum / times } else { 0.0 };
            let of_rounds = |time: &dyn Fn(&Self) -> f64| sum(&|own| own.visits * own.rounds * time(own));
            let time_of = |own: &Self| own.own.map_or(0.0, |own| own.time);
            let own = of().find_map(|own| own.own).map(|own| Place { time: mean(of_rounds(&time_of), rounds), ..own });
            let mut others: Vec<(Place, f64)> = Vec::new();
            for (place, _) in of().flat_map(|own| &own.others) {
                if others.iter().all(|(known, _)| known.slot != place.slot) {
                    let here = |own: &Self, of_place: &dyn Fn(&Place) -> f64| {
                        let all = own.others.iter().filter(|(other, _)| other.slot == place.slot);
                        own.visits * all.map(|(other, times)| of_place(other) * times).sum::<f64>()
                    };
                    let times = sum(&|own| here(own, &|_| 1.0));
                    let time = mean(sum(&|own| here(own, &|place| place.time)), times);
                    others.push((Place { time, ..*place }, mean(times, visits)));
                }
            }
            let rounds_each = if visits > 0.0 { rounds / visits } else { 1.0 };
            let delay = mean(of_rounds(&|own| own.delay), rounds);
            Self { visits: visits / count, rounds: rounds_each, delay, own, others }
        };
        (0..branches.first().map_or(0, Vec::len)).map(part).collect()
    }
}

/// A shared station, or all that is not shared.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub slot: u32,
    pub station: Option<usize>,
    /// Mean time of a visit without other branches.
    pub time: f64,
    /// Where all customers there have equal parts of the servers: by how much others' customers lengthen a visit, relative to
    /// the time alone, and how many they are on the mean, where that is known.
    pub others: (f64, Option<f64>),
}

impl Place {
    /// What is not shared.
    pub fn apart(time: f64) -> Self {
        Self { slot: NONE, station: None, time, others: (0.0, None) }
    }
}

/// Places of a branch, and the ways between them. Place 0 is the end.
#[derive(Clone)]
pub(super) struct Places {
    /// By place: rate alone; the shared station, if it is one; and its slot.
    pub rate: Vec<f64>,
    station: Vec<Option<usize>>,
    pub slot: Vec<u32>,
    /// By place that is shared: the part of its speed without other branches, where one, two and more of them are there.
    speeds: Vec<Vec<f64>>,
    /// By place: where to go on, with probabilities.
    next: Vec<Vec<(usize, f64)>>,
    start: Vec<(usize, f64)>,
}

impl Places {
    /// The places of one of so many branches, which share stations with so many servers each.
    pub fn new(parts: &[Loop], servers: &[f64], branches: usize) -> Self {
        let mut places = Self {
            rate: vec![0.0],
            station: vec![None],
            slot: vec![NONE],
            speeds: vec![Vec::new()],
            next: vec![Vec::new()],
            start: vec![(0, 1.0)],
        };
        // Backwards, so that what comes after a part is known.
        for part in parts.iter().rev() {
            places.add(part, servers, branches);
        }
        places
    }

    fn push(&mut self, place: &Place, servers: &[f64], branches: usize) -> usize {
        self.rate.push(1.0 / place.time);
        self.station.push(place.station);
        self.slot.push(place.slot);
        let speeds = place.station.map(|station| {
            let longer = beside_others(servers[station], place.others, branches);
            longer.iter().map(|own| longer[0] / own).collect()
        });
        self.speeds.push(speeds.unwrap_or_default());
        self.next.push(Vec::new());
        self.rate.len() - 1
    }

    fn add(&mut self, part: &Loop, servers: &[f64], branches: usize) {
        let after = self.start.clone();
        let delay = (part.delay > 0.0).then(|| self.push(&Place::apart(part.delay), servers, branches));
        let mut at = |place: &Place| (place.time > 0.0).then(|| self.push(place, servers, branches));
        let own = part.own.as_ref().and_then(&mut at);
        let others: Vec<(usize, f64)> =
            part.others.iter().filter_map(|(place, visits)| Some((at(place)?, visits / part.rounds))).collect();
        // The whole part again, or what comes after.
        let repeats = if part.visits > 1.0 { 1.0 - 1.0 / part.visits } else { 0.0 };
        let leaves = 1.0 / part.rounds;
        let begin = if let Some(first) = delay.or(own) {
            let mut choice = others.clone();
            choice.extend(scaled(&after, leaves * (1.0 - repeats)));
            let rest = 1.0 - choice.iter().map(|way| way.1).sum::<f64>();
            choice.push((first, rest.max(0.0)));
            if let Some(own) = own {
                self.next[own].clone_from(&choice);
            }
            if let Some(delay) = delay {
                self.next[delay] = own.map_or(choice, |own| vec![(own, 1.0)]);
            }
            vec![(first, 1.0)]
        } else {
            // Nothing happens between visits.
            let mut choice = others.clone();
            choice.extend(scaled(&after, leaves * (1.0 - repeats)));
            let total: f64 = choice.iter().map(|way| way.1).sum();
            scaled(&choice, 1.0 / total)
        };
        for (other, _) in others {
            self.next[other].clone_from(&begin);
        }
        let enters = part.visits.min(1.0);
        self.start = scaled(&begin, enters);
        self.start.extend(scaled(&after, 1.0 - enters));
    }
}

fn scaled(ways: &[(usize, f64)], by: f64) -> Vec<(usize, f64)> {
    ways.iter().map(|way| (way.0, way.1 * by)).collect()
}

/// Branches that are alike.
pub(super) struct Kind {
    pub places: Places,
    /// How many there are.
    pub count: usize,
}

/// The part of its speed without other branches at which a branch of that kind goes on at that place, by how many of each kind are where.
pub(super) fn speed(kinds: &[Kind], at: &[Vec<u32>], number: usize, place: usize) -> f64 {
    let Some(station) = kinds[number].places.station[place] else { return 1.0 };
    let mut there = 0;
    for (kind, at) in kinds.iter().zip(at) {
        let stations = kind.places.station.iter().zip(at);
        there += stations.filter(|(own, _)| **own == Some(station)).map(|(_, count)| *count).sum::<u32>();
    }
    kinds[number].places.speeds[place].get(there as usize - 1).copied().unwrap_or(1.0)
}

/// In how many ways so many branches that are alike can be at so many places, the end included; as many as can be counted at most.
pub(super) fn ways_to_be(count: usize, places: usize) -> usize {
    (1..places).fold(1_usize, |ways, place| ways.saturating_mul(count + place) / place)
}

/// How many of so many branches that are alike are at each place. All are at the end first; one alone is at the places in their order.
fn distributions(count: usize, places: usize) -> Vec<Vec<u32>> {
    let mut all = vec![vec![0; places]];
    all[0][0] = count as u32;
    // The next one in the order: one goes on from the last place before the last that has any, with all that are at the last.
    while let Some(from) = all.last().and_then(|last| last[..places - 1].iter().rposition(|count| *count > 0)) {
        let mut next = all[all.len() - 1].clone();
        let rest = std::mem::take(&mut next[places - 1]);
        next[from] -= 1;
        next[from + 1] += rest + 1;
        all.push(next);
    }
    all
}

/// All combinations of places, and the ways between them. Branches that are alike are not told apart (lumping: Kemeny and Snell 1960).
pub(super) struct Process {
    /// By kind: how many are at each place.
    at: Vec<Vec<Vec<u32>>>,
    chain: AbsorbingChain,
}

impl Process {
    /// Of kinds of branches that go on at that part of their speed without others, by where all of them are.
    pub fn new(kinds: &[Kind], speed: impl Fn(&[Kind], &[Vec<u32>], usize, usize) -> f64) -> Self {
        let all: Vec<Vec<Vec<u32>>> =
            kinds.iter().map(|kind| distributions(kind.count, kind.places.rate.len())).collect();
        let states: usize = all.iter().map(Vec::len).product();
        let of: Vec<FxHashMap<&[u32], usize>> =
            all.iter().map(|own| own.iter().enumerate().map(|(number, at)| (&at[..], number)).collect()).collect();
        let mut begin = vec![0.0; states];
        let mut moves = Vec::new();
        let mut at: Vec<Vec<u32>> = all.iter().map(|own| own[0].clone()).collect();
        for (state, begin) in begin.iter_mut().enumerate() {
            fill(&all, state, &mut at);
            let mut stride = 1;
            *begin = 1.0;
            for (number, kind) in kinds.iter().enumerate() {
                let places = &kind.places;
                let own = state / stride % all[number].len();
                *begin *= likely(&at[number], |place| {
                    places.start.iter().filter(|way| way.0 == place).map(|way| way.1).sum()
                });
                for (place, ways) in places.next.iter().enumerate().filter(|(place, _)| at[number][*place] > 0) {
                    let rate = f64::from(at[number][place]) * places.rate[place] * speed(kinds, &at, number, place);
                    for &(next, probability) in ways {
                        if next != place && probability > 0.0 {
                            let mut to = at[number].clone();
                            to[place] -= 1;
                            to[next] += 1;
                            let to = state - own * stride + of[number][&to[..]] * stride;
                            moves.push((state as u32, to as u32, rate * probability));
                        }
                    }
                }
                stride *= all[number].len();
            }
        }
        let chain = AbsorbingChain::new(begin, &moves);
        drop(of);
        Self { at: all, chain }
    }

    /// The variance of the time until all have ended.
    pub fn variance(self) -> f64 {
        self.chain.variance()
    }

    /// How many of each kind are where.
    pub fn at(&self, state: usize, at: &mut [Vec<u32>]) {
        fill(&self.at, state, at);
    }

    /// The state in which all have ended, to be filled.
    pub fn end(&self) -> Vec<Vec<u32>> {
        self.at.iter().map(|own| own[0].clone()).collect()
    }

    /// Mean time in each state, from what is known of it. Everything leads to state 0, in which all have ended.
    pub fn times(&self, known: &mut Vec<f64>) {
        self.chain.times(known);
    }
}

fn fill(all: &[Vec<Vec<u32>>], state: usize, at: &mut [Vec<u32>]) {
    let mut rest = state;
    for (at, own) in at.iter_mut().zip(all) {
        at.clone_from(&own[rest % own.len()]);
        rest /= own.len();
    }
}

/// How likely so many are at each place, each of them by itself (multinomial).
fn likely(at: &[u32], probability: impl Fn(usize) -> f64) -> f64 {
    let (mut likely, mut so_far) = (1.0, 0.0);
    for (place, &count) in at.iter().enumerate().filter(|(_, count)| **count > 0) {
        let own = probability(place);
        for number in 1..=count {
            so_far += 1.0;
            likely *= own * so_far / f64::from(number);
        }
    }
    likely
}

#[cfg(test)]
mod tests {
    use super::{Kind, Loop, Place, Places, Process, distributions, speed, ways_to_be};

    fn alone(slot: u32, visits: f64, time: f64) -> Loop {
        Loop {
            visits: 1.0,
            rounds: visits,
            delay: 0.0,
            own: Some(Place { slot, station: Some(0), time, others: (0.0, None) }),
            others: Vec::new(),
        }
    }

    fn until(branches: &[Vec<Loop>], servers: f64) -> f64 {
        let kind = |parts: &Vec<Loop>| Kind { places: Places::new(parts, &[servers], branches.len()), count: 1 };
        time_of(&branches.iter().map(kind).collect::<Vec<_>>())
    }

    fn time_of(kinds: &[Kind]) -> f64 {
        let mut times = Vec::new();
        Process::new(kinds, speed).times(&mut times);
        times.iter().sum()
    }

    /// Alike or told apart, branches take as long.
    #[test]
    fn branches_that_are_alike_are_as_those_told_apart() {
        let place = |slot: u32| Place { slot, station: Some(0), time: 0.5, others: (0.0, None) };
        let parts = || {
            let first =
                Loop { visits: 0.7, rounds: 2.0, delay: 0.3, own: Some(place(0)), others: vec![(place(1), 0.5)] };
            vec![first, alone(0, 1.0, 0.2)]
        };
        let apart: Vec<Vec<Loop>> = (0..4).map(|_| parts()).collect();
        for servers in [1.0, 2.0, 3.0] {
            let alike = Kind { places: Places::new(&parts(), &[servers], 4), count: 4 };
            let (alike, apart) = (time_of(&[alike]), until(&apart, servers));
            assert!((alike / apart - 1.0).abs() < 1e-7, "{servers} servers: {alike} {apart}");
        }
        let (three, one) = (
            Kind { places: Places::new(&parts(), &[2.0], 4), count: 3 },
            Kind { places: Places::new(&parts(), &[2.0], 4), count: 1 },
        );
        assert!((time_of(&[three, one]) / until(&apart, 2.0) - 1.0).abs() < 1e-7);
    }

    /// Work of n exponentials on k servers: n/k − 1 of a mean while all are busy, and then the longest of k.
    #[test]
    fn a_hundred_branches_are_followed() {
        let kind = Kind { places: Places::new(&[alone(0, 1.0, 1.0)], &[16.0], 100), count: 100 };
        let longest: f64 = (1..=16).map(|number| 1.0 / f64::from(number)).sum();
        assert!((time_of(&[kind]) - (84.0 / 16.0 + longest)).abs() < 1e-6);
    }

    #[test]
    fn all_distributions_are_there_once() {
        for (count, places) in [(1, 3), (4, 1), (3, 2), (5, 4)] {
            let mut all = distributions(count, places);
            assert_eq!(all.len(), ways_to_be(count, places));
            assert!(all.iter().all(|own| own.iter().sum::<u32>() == count as u32) && all[0][0] == count as u32);
            all.sort();
            all.dedup();
            assert_eq!(all.len(), ways_to_be(count, places));
        }
        assert_eq!(distributions(1, 3), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]);
    }

    #[test]
    fn one_server_does_all_the_work() {
        let branches = [vec![alone(0, 1.0, 0.4)], vec![alone(0, 1.0, 0.6)], vec![alone(0, 3.0, 0.1)]];
        assert!((until(&branches, 1.0) - 1.3).abs() < 1e-8);
    }

    #[test]
    fn branches_have_equal_parts_with_others_customers() {
        // Beside three others: the server does 1/4 of the work at full speed when alone, 2/5 of it for two.
        let branch = |time: f64| {
            let own = Place { slot: 0, station: Some(0), time: 4.0 * time, others: (3.0, None) };
            vec![Loop { own: Some(own), ..alone(0, 1.0, time) }]
        };
        assert!((until(&[branch(1.0), branch(1.0)], 1.0) - (2.5 + 4.0)).abs() < 1e-8);
    }

    #[test]
    fn servers_enough_leave_the_longest_of_exponentials() {
        let branches = [vec![alone(0, 1.0, 1.0)], vec![alone(0, 1.0, 0.5)]];
        // 1 + 1/2 − 1/(1 + 2).
        assert!((until(&branches, 2.0) - (1.5 - 1.0 / 3.0)).abs() < 1e-8);
    }

    #[test]
    fn parts_that_may_be_left_out_or_repeated_take_their_mean() {
        let part = |visits: f64| Loop { visits, ..alone(0, 2.0, 1.0) };
        assert!((until(&[vec![part(0.5), part(3.0)]], 1.0) - 7.0).abs() < 1e-7);
        let place = |slot: u32| Place { slot, station: Some(0), time: 0.5, others: (0.0, None) };
        let mixed = Loop { visits: 2.0, rounds: 3.0, delay: 0.25, own: Some(place(0)), others: vec![(place(1), 1.5)] };
        assert!((until(&[vec![mixed]], 1.0) - 2.0 * (3.0 * 0.75 + 1.5 * 0.5)).abs() < 1e-7);
        let calls = Loop { visits: 1.5, rounds: 3.0, delay: 0.0, own: None, others: vec![(place(1), 2.0)] };
        assert!((until(&[vec![calls]], 1.0) - 1.5).abs() < 1e-7);
    }
}
