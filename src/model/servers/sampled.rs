//! What part of a server an invocation has, by how many others are seen there.
//!
//! Of traces that hold all operations those that are seen are those that are there: of k servers each of n has min(1, k/n). Where invocations wait for something that was not
//! traced for a part of their time, how many of them work follows from how many are there (a station with k servers and a delay, in product form). Where operations
//! were sampled, others were there that nobody saw. How many, given those that were seen, follows from the distribution of a station with
//! k servers under Poisson arrivals (M/M/k), of which each is seen with the probability of the sampling.

use crate::solve::erlang_c;

/// The part of a server that an invocation has, by how many others are seen.
#[derive(Clone, Debug)]
pub enum Share {
    /// All are seen.
    Exact {
        /// Servers.
        servers: f64,
    },
    /// Some are seen, or work.
    Partial {
        /// By number of others that are seen.
        parts: Vec<f64>,
    },
}

/// Beyond so many others that are seen, the part of a server is that of so many.
const MOST: usize = 256;

/// Numbers of others that are looked at, at most.
const FAR: usize = 20_000;

impl Share {
    /// With so many servers, where each invocation is seen with that probability, and so many are seen on average, up to `most` together.
    pub fn new(servers: u32, probability: f64, mean_seen: f64, most: usize) -> Self {
        let servers = f64::from(servers);
        if probability >= 1.0 {
            return Self::Exact { servers };
        }
        let busy = offered(servers, mean_seen / probability);
        let parts = (0..most.clamp(1, MOST)).map(|seen| expected(servers, busy, probability, seen)).collect();
        Self::Partial { parts }
    }

    /// With so many servers, all seen, up to `most` together, where so many servers are busy and so many invocations wait for something else on average.
    pub fn waiting(servers: u32, busy: f64, away: f64, most: usize) -> Self {
        let servers = f64::from(servers);
        Self::Partial {
            parts: (0..most.clamp(1, MOST)).map(|others| slowed(servers, busy, away, others + 1)).collect(),
        }
    }

    /// With so many others seen.
    pub fn of(&self, others: usize) -> f64 {
        match self {
            Self::Exact { servers } => (servers / (others + 1) as f64).min(1.0),
            Self::Partial { parts } => parts[others.min(parts.len() - 1)],
        }
    }
}

/// The mean part of its time in which one of so many that are there gets on: it waits for something else, or has its part of a server.
///
/// The product form of a station with servers and a delay (Baskett, Chandy, Muntz and Palacios, 1975), given how many are in both.
fn slowed(servers: f64, busy: f64, away: f64, there: usize) -> f64 {
    let all = there as f64;
    let (mut weight, mut weights, mut parts) = (1.0_f64, 0.0_f64, 0.0_f64);
    for work in 0..=there {
        let work = work as f64;
        weights += weight;
        parts += weight * (work.min(servers) + all - work) / all;
        weight *= busy / (work + 1.0).min(servers) * (all - work) / away.max(f64::MIN_POSITIVE);
        if weights > SCALE || weight > SCALE {
            (weight, weights, parts) = (weight / SCALE, weights / SCALE, parts / SCALE);
        }
    }
    (parts / weights).min(1.0)
}

/// Sums of weights are scaled where they are greater.
const SCALE: f64 = 1e100;

/// How many are there on average in M/M/k with so many busy servers.
fn there(servers: f64, busy: f64) -> f64 {
    busy + waiting(servers, busy)
}

/// How many wait on average in M/M/k with so many busy servers, however the servers are shared.
pub fn waiting(servers: f64, busy: f64) -> f64 {
    if busy >= servers { f64::INFINITY } else { erlang_c(servers, busy) * busy / (servers - busy) }
}

/// How many servers are busy in M/M/k where so many are there on average.
pub fn offered(servers: f64, mean: f64) -> f64 {
    let (mut low, mut high) = (0.0, servers.min(mean));
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if there(servers, middle) > mean { high = middle } else { low = middle }
    }
    low
}

/// The mean part of a server of one that is there, with so many others seen.
///
/// One that is there finds n others as often as n + 1 are there, times n + 1; of these n, so many are seen with a binomial probability.
fn expected(servers: f64, busy: f64, probability: f64, seen: usize) -> f64 {
    let unseen = 1.0 - probability;
    let (mut weight, mut weights, mut parts) = (1.0_f64, 0.0_f64, 0.0_f64);
    for others in seen..seen + FAR {
        let number = (others + 1) as f64;
        weights += weight;
        parts += weight * (servers / number).min(1.0);
        let factor =
            (number + 1.0) / number * busy / (number + 1.0).min(servers) * unseen * number / (number - seen as f64);
        weight *= factor;
        if factor < 1.0 && weight < 1e-12 * weights {
            break;
        }
        if weights > 1e200 {
            (weight, weights, parts) = (weight * 1e-200, weights * 1e-200, parts * 1e-200);
        }
    }
    if weights > 0.0 { parts / weights } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::{Share, expected, offered, there};

    #[test]
    fn without_sampling_all_that_are_there_are_seen() {
        let share = Share::new(2, 1.0, 1.3, 10);
        assert_eq!([0, 1, 2, 3].map(|others| share.of(others)), [1.0, 1.0, 2.0 / 3.0, 0.5]);
    }

    #[test]
    fn who_waits_for_something_else_slows_nobody() {
        // Of two, none, one or both work with weights 1/2 · 2², 1 · 2, 1: the second waits for the first in the last case alone.
        let share = Share::waiting(1, 1.0, 2.0, 10);
        assert!((share.of(1) - (2.0 + 2.0 + 0.5) / 5.0).abs() < 1e-12);
        assert!((0..10).all(|others| share.of(others) >= share.of(others + 1)));
        // Nobody is elsewhere, or all are.
        let (all, none) = (Share::waiting(2, 1.0, 1e-9, 300), Share::waiting(2, 1e-9, 1.0, 300));
        for others in [0, 1, 2, 3, 200] {
            assert!((all.of(others) - Share::new(2, 1.0, 1.0, 9).of(others)).abs() < 1e-5, "{others}");
            assert!((none.of(others) - 1.0).abs() < 1e-5, "{others}");
        }
    }

    #[test]
    fn parts_of_a_server_add_up_to_those_that_are_busy() {
        // Of one server at 1/2, one is there on average; seen or not, each has half of it on average.
        for (servers, busy) in [(1.0, 0.5), (2.0, 1.6), (8.0, 3.0)] {
            assert!((offered(servers, there(servers, busy)) - busy).abs() < 1e-9);
            let alone = expected(servers, busy, 1e-9, 0);
            assert!((alone - busy / there(servers, busy)).abs() < 1e-6, "{servers} {busy}: {alone}");
        }
    }
}
