//! What part of a server an invocation has, by how many others are seen there.
//!
//! Of traces that hold all operations those that are seen are those that are there: of k servers each of n has min(1, k/n). Where invocations wait for something that was not
//! traced for a part of their time, as many others as work are there by chance (a binomial distribution), and an invocation is slowed in the rest of its time alone. Where operations
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

    /// With so many servers, all seen, up to `most` together, where invocations want a server for that part of their time, and wait for something else in the rest of it.
    pub fn waiting(servers: u32, working: f64, most: usize) -> Self {
        let servers = f64::from(servers);
        let slowed = |others: usize| {
            // The binomial distribution, one probability from the one before.
            let (mut parts, mut chance) = (0.0, (1.0 - working).powi(others as i32));
            for work in 0..=others {
                parts += chance * (servers / (work + 1) as f64).min(1.0);
                chance *= (others - work) as f64 / (work + 1) as f64 * working / (1.0 - working);
            }
            1.0 - working * (1.0 - parts)
        };
        Self::Partial { parts: (0..most.clamp(1, MOST)).map(slowed).collect() }
    }

    /// With so many others seen.
    pub fn of(&self, others: usize) -> f64 {
        match self {
            Self::Exact { servers } => (servers / (others + 1) as f64).min(1.0),
            Self::Partial { parts } => parts[others.min(parts.len() - 1)],
        }
    }
}

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
        let share = Share::waiting(1, 0.5, 10);
        // One other works half of the time, and halves the server then, which is wanted half of the time.
        assert!((share.of(1) - (1.0 - 0.5 * 0.25)).abs() < 1e-12);
        let all = Share::waiting(2, 1.0 - 1e-9, 10);
        assert!(
            [0, 1, 2, 3].iter().all(|others| (all.of(*others) - Share::new(2, 1.0, 1.0, 9).of(*others)).abs() < 1e-6)
        );
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
