//! Queues of copies to which a dispatcher sends requests.

use dyelog_lqn::model::Dispatching;

use crate::numeric::erlang::erlang_c;

/// How requests come to a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Arrivals {
    /// By chance, whatever is there.
    #[default]
    Poisson,
    /// One of so many copies that take requests in turn.
    InTurn { copies: u32 },
    /// One of so many copies, of which the one with the fewest requests has the next.
    Shortest { copies: u32 },
    /// One of so many copies, of which two are drawn, and the one with fewer requests has the next.
    ShortestOfTwo { copies: u32 },
}

impl Arrivals {
    /// To one of the copies of a task.
    pub fn of(dispatching: Dispatching, copies: u32) -> Self {
        match dispatching {
            Dispatching::FanOut => Self::Poisson,
            Dispatching::RoundRobin => Self::InTurn { copies },
            Dispatching::ShortestQueue => Self::Shortest { copies },
            Dispatching::ShortestOfTwo => Self::ShortestOfTwo { copies },
        }
    }

    /// Where requests of both kinds come to the same queue: what both are, else by chance.
    pub fn beside(self, other: Self) -> Self {
        match (self, other) {
            (Self::InTurn { copies }, Self::InTurn { copies: others }) => Self::InTurn { copies: copies.min(others) },
            _ if self == other => self,
            _ => Self::Poisson,
        }
    }

    /// The queue with so many servers, as a part of the queue with Poisson arrivals. Times of service have that squared coefficient of variation; each server is busy for that part of the time.
    pub fn shorter(self, servers: f64, service: f64, load: f64) -> f64 {
        match self {
            Self::Poisson => 1.0,
            Self::InTurn { copies } => regular(1.0 / f64::from(copies.max(1)), service, load),
            Self::Shortest { copies } => shortest(f64::from(copies.max(1)), servers, load),
            Self::ShortestOfTwo { copies } => shortest_of_two(f64::from(copies.max(1)), servers, load),
        }
    }
}

/// The queue of each of so many copies of which a request joins the shortest, as a part of M/M/m ([`ShortestQueues`](crate::Heuristic::ShortestQueues)).
fn shortest(copies: f64, servers: f64, load: f64) -> f64 {
    let own = erlang_c(servers, servers * load);
    // Hardly any request waits at one copy: there is no wait to make shorter.
    if copies <= 1.0 || own <= f64::MIN_POSITIVE {
        return 1.0;
    }
    let free = (1.0 - load).max(0.0);
    let together = erlang_c(copies * servers, copies * servers * load) / (copies * own);
    let longer = 1.0 + (copies - 1.0) * free * (0.47 + 0.39 * free * free) * servers.powf(-0.17);
    (together * longer).min(1.0)
}

/// The same where two copies are drawn, and a request joins the shorter queue of these.
fn shortest_of_two(copies: f64, servers: f64, load: f64) -> f64 {
    let all = shortest(copies, servers, load);
    if copies <= 2.0 {
        return all;
    }
    let free = (1.0 - load).max(0.0);
    let part = (0.75 + 0.4 / copies) * free.powf(0.3 + 0.9 / copies) * servers.powf(-(0.05 + 0.9 * free));
    all + (shortest(2.0, servers, load) - all).max(0.0) * part.min(1.0)
}

/// Steps of the iteration for what an arrival finds; it gains more than a digit every few.
const STEPS: u32 = 64;

/// How much shorter a queue is than with Poisson arrivals, where times between arrivals have that squared coefficient of variation, at most 1, and times of service that
/// one; each server is busy for that part of the time.
///
/// For exponential service it is exact with Gamma times between arrivals: GI/M/1, of which an arrival finds the server busy with the probability σ = A*(μ(1 − σ)) (Kleinrock,
/// Queueing Systems I, 1975, §6.4). Other service changes it as waits in heavy traffic, (c²(A) + c²(S)) / 2 (Kingman 1961).
fn regular(arrivals: f64, service: f64, load: f64) -> f64 {
    if arrivals >= 1.0 || load <= 0.0 {
        return 1.0;
    }
    let heavy = (arrivals + service) / (1.0 + service);
    if load >= 1.0 {
        return heavy;
    }
    let (busy, exponential) = (found_busy(arrivals, load), f64::midpoint(arrivals, 1.0));
    busy * (1.0 - load) / (load * (1.0 - busy)) * heavy / exponential
}

/// The probability with which an arrival finds the server busy.
fn found_busy(arrivals: f64, load: f64) -> f64 {
    // Newton's method from below the smaller root of a convex function: it does not step over it.
    let mut busy = 0.0;
    for _ in 0..STEPS {
        let base = 1.0 + arrivals * (1.0 - busy) / load;
        let transform = if arrivals < 1e-9 { (-(1.0 - busy) / load).exp() } else { base.powf(-1.0 / arrivals) };
        let slope = transform / base / load;
        let step = (transform - busy) / (1.0 - slope);
        busy += step;
        if step.abs() <= 1e-12 {
            break;
        }
    }
    busy.clamp(0.0, load)
}

#[cfg(test)]
mod tests {
    use super::{regular, shortest, shortest_of_two};

    #[test]
    fn queues_are_those_of_closed_forms() {
        // D/M/1 and E2/M/1 at half load: σ = exp(−2(1 − σ)) = 0.2032, σ = 1 / (2 − σ)² = 0.3820 (Kleinrock 1975, §6.4).
        for (arrivals, busy) in [(0.0, 0.203_188), (0.5, 0.381_966)] {
            let found = regular(arrivals, 1.0, 0.5);
            assert!((found - busy / (1.0 - busy)).abs() < 1e-5, "{found}");
        }
        assert_eq!(regular(1.0, 1.0, 0.5), 1.0);
        // Near saturation waits are those of heavy traffic.
        assert!((regular(1.0 / 3.0, 1.0, 0.999) - 2.0 / 3.0).abs() < 1e-3);
        assert!((regular(0.5, 0.0, 0.999) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn queues_grow_with_how_arrivals_vary() {
        for load in [0.01, 0.3, 0.7, 0.95, 0.9999] {
            let all: Vec<f64> = (0..=20).map(|number| regular(f64::from(number) / 20.0, 1.0, load)).collect();
            assert!(all.windows(2).all(|two| two[0] <= two[1] + 1e-9), "{load}: {all:?}");
            assert!(all.iter().all(|ratio| (0.0..=1.0).contains(ratio)), "{load}: {all:?}");
        }
    }

    #[test]
    fn shortest_queues_are_those_of_markov_chains() {
        // Copies, servers of each, load, and the wait as a part of that of M/M/m: numbers of requests at all copies as a Markov chain, solved directly outside of this program.
        let joined = [
            (2.0, 1.0, 0.5, 0.4263),
            (2.0, 1.0, 0.9, 0.4972),
            (3.0, 1.0, 0.7, 0.3038),
            (4.0, 1.0, 0.6, 0.1923),
            (2.0, 4.0, 0.7, 0.3491),
            (3.0, 2.0, 0.8, 0.2801),
        ];
        let drawn = [
            (3.0, 1.0, 0.5, 0.3520),
            (4.0, 1.0, 0.75, 0.3391),
            (5.0, 1.0, 0.7, 0.3229),
            (4.0, 2.0, 0.6, 0.2308),
            (3.0, 3.0, 0.75, 0.2772),
        ];
        for (copies, servers, load, exact) in joined {
            let found = shortest(copies, servers, load);
            assert!((found / exact - 1.0).abs() < 0.03, "{copies} of {servers} at {load}: {found} for {exact}");
        }
        for (copies, servers, load, exact) in drawn {
            let found = shortest_of_two(copies, servers, load);
            assert!((found / exact - 1.0).abs() < 0.05, "{copies} of {servers} at {load}: {found} for {exact}");
        }
    }

    #[test]
    fn the_shortest_queue_is_no_longer_than_that_of_two_and_those_of_chance() {
        for copies in [1.0, 2.0, 3.0, 10.0, 1_000.0] {
            for servers in [1.0, 2.5, 16.0, 500.0] {
                for load in [0.0, 1e-9, 0.2, 0.7, 0.99, 1.0, 1.5] {
                    let (all, two) = (shortest(copies, servers, load), shortest_of_two(copies, servers, load));
                    assert!(0.0 <= all && all <= two && two <= 1.0, "{copies} {servers} {load}: {all} {two}");
                }
            }
        }
    }
}
