//! The process of a fork: each branch is at one of its places, until all have ended.

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

/// The part of its speed without other branches at which a branch goes on where it is.
pub(super) fn speed(branches: &[Places], at: &[usize], number: usize) -> f64 {
    let (branch, place) = (&branches[number], at[number]);
    let Some(station) = branch.station[place] else { return 1.0 };
    let there = branches.iter().zip(at).filter(|(branch, place)| branch.station[**place] == Some(station)).count();
    branch.speeds[place].get(there - 1).copied().unwrap_or(1.0)
}

/// All combinations of places, and the ways between them.
pub(super) struct Process {
    sizes: Vec<usize>,
    chain: AbsorbingChain,
}

impl Process {
    /// Of branches that go on at that part of their speed without others, by where all of them are.
    pub fn new(branches: &[Places], speed: impl Fn(&[Places], &[usize], usize) -> f64) -> Self {
        let sizes: Vec<usize> = branches.iter().map(|branch| branch.rate.len()).collect();
        let states: usize = sizes.iter().product();
        let mut begin = vec![0.0; states];
        let mut moves = Vec::new();
        let mut at = vec![0; branches.len()];
        for (state, begin) in begin.iter_mut().enumerate() {
            places(&sizes, state, &mut at);
            let mut stride = 1;
            *begin = 1.0;
            for (number, branch) in branches.iter().enumerate() {
                let place = at[number];
                *begin *= branch.start.iter().filter(|way| way.0 == place).map(|way| way.1).sum::<f64>();
                let rate = branch.rate[place] * speed(branches, &at, number);
                for &(next, probability) in &branch.next[place] {
                    if next != place && probability > 0.0 {
                        let to = state - place * stride + next * stride;
                        moves.push((state as u32, to as u32, rate * probability));
                    }
                }
                stride *= sizes[number];
            }
        }
        Self { sizes, chain: AbsorbingChain::new(begin, &moves) }
    }

    /// The variance of the time until all have ended.
    pub fn variance(self) -> f64 {
        self.chain.variance()
    }

    /// Where each branch is.
    pub fn places(&self, state: usize, at: &mut [usize]) {
        places(&self.sizes, state, at);
    }

    /// Mean time in each state, from what is known of it. Everything leads to state 0, in which all have ended.
    pub fn times(&self, known: &mut Vec<f64>) {
        self.chain.times(known);
    }
}

fn places(sizes: &[usize], state: usize, at: &mut [usize]) {
    let mut rest = state;
    for (place, size) in at.iter_mut().zip(sizes) {
        *place = rest % size;
        rest /= size;
    }
}

#[cfg(test)]
mod tests {
    use super::{Loop, Place, Places, Process, speed};

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
        let places: Vec<Places> = branches.iter().map(|parts| Places::new(parts, &[servers], branches.len())).collect();
        let mut times = Vec::new();
        Process::new(&places, speed).times(&mut times);
        times.iter().sum()
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
