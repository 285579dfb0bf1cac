//! Stations with several servers.

use crate::numeric::two_moment::Distribution;

/// The probability that all of `servers` are busy in M/M/m with `load` servers busy on average (Erlang's C formula).
pub fn erlang_c(servers: f64, load: f64) -> f64 {
    if load <= 0.0 {
        return 0.0;
    }
    if load >= servers {
        return 1.0;
    }
    // Erlang B by its stable recursion, then C. Beyond a million servers the queue is as good as never there.
    if servers > 1e6 {
        return 0.0;
    }
    let mut blocking = 1.0;
    let mut count = 1.0;
    while count <= servers {
        blocking = load * blocking / (count + load * blocking);
        count += 1.0;
    }
    blocking / (1.0 - load / servers * (1.0 - blocking))
}

/// Stations with more servers than this have no M/M/m distribution of other customers here (ours): those customers hardly slow anybody down.
const MOST_SERVERS: f64 = 64.0;

/// By how much longer than alone work takes on shared servers, where one, two and up to `most` of its own kind are there. Others lengthen the work of one by
/// `others.0`, and are `others.1` on the mean, where that is known. Otherwise they are as many as in M/M/m where these lengthen it by so much; between one own and as many as there are servers, the shape is that of M/M/m
/// (ours).
pub(crate) fn beside_others(servers: f64, others: (f64, Option<f64>), most: usize) -> Vec<f64> {
    let (slowdown, there) = (others.0.max(0.0), others.1);
    if servers <= 1.0 || slowdown <= 0.0 || servers > MOST_SERVERS || !slowdown.is_finite() {
        return (1..=most).map(|own| (own as f64 / servers).max(1.0) + slowdown).collect();
    }
    let (mut low, mut high) = (0.0, servers);
    for _ in 0..HALVINGS {
        let load = f64::midpoint(low, high);
        if erlang_c(servers, load) > slowdown * (servers - load) { high = load } else { low = load }
    }
    let all = erlang_c(servers, low);
    let of = |own: f64| {
        let (mut likely, mut sum) = (all * (1.0 - low / servers), all * (own - 1.0) + slowdown * servers);
        // Fewer others, with whom the own ones have less than a server each.
        let mut others = servers.floor();
        while others >= 1.0 && others - 1.0 + own > servers {
            likely *= others / low.max(f64::MIN_POSITIVE);
            others -= 1.0;
            sum += likely * (others + own - servers);
        }
        1.0 + sum / servers
    };
    // As many own ones as there are servers leave none idle: what they take depends on nothing but how many others there are.
    let full = servers.ceil();
    let (alone, whole) = (of(1.0), of(full));
    let others = servers * whole - full;
    let more = there.map_or(0.0, |there| there.min((slowdown + 1.0) * servers - 1.0).max(slowdown * servers) - others);
    let part = |own: f64| ((of(own.min(full)) - alone) / (whole - alone)).min(1.0);
    (1..=most).map(|own| own as f64).map(|own| of(own) + part(own) * more / servers).collect()
}

/// Halvings that look for a load.
const HALVINGS: u32 = 50;

/// The probability that all servers are busy, where `load` of them are on average and at most `population` customers can be
/// there: that of the machine repairman (M/M/m//n) with the same load, whose traffic is searched for.
pub(crate) fn all_busy(servers: f64, population: f64, load: f64) -> f64 {
    if population < servers || load <= 0.0 {
        return 0.0;
    }
    if load >= servers * (1.0 - 1e-12) {
        return 1.0;
    }
    if population > 400.0 {
        return erlang_c(servers, load);
    }
    // Newton's method for the logarithm of busy to idle servers over that of the traffic, which is next to a straight line
    // where few are busy and where few are idle. It bends between, the more so the more customers there are.
    let most = 64.0 / population.max(16.0);
    let wanted = (load / (servers - load)).ln();
    let mut traffic = (load / (population - load)).ln();
    let mut all = 0.0;
    for _ in 0..60 {
        let found = repairman(servers, population, traffic.exp());
        all = found.all;
        let error = (found.busy / found.idle).ln() - wanted;
        let step = error / (found.slope * servers / (found.busy * found.idle));
        if !step.is_finite() {
            break;
        }
        traffic -= step.clamp(-most, most);
        // What the next step would change is of the order of this one's square.
        if step.abs() <= 1e-6 {
            all -= found.all_slope * step;
            break;
        }
    }
    all
}

/// How much longer requests wait at a station than if service times were exponential, from both squared coefficients of
/// variation, the number of customers that can be there, and the rate at which one that is elsewhere comes back, relative
/// to the rate of service.
///
/// It is the ratio of mean waits of two machine-repairman systems with one server (M/G/1//n, Takács 1962), one for each
/// kind of service. Without a bound of customers that is Pollaczek and Khinchine's (1 + c²)/2.
pub(crate) fn variance_ratio(cv2: f64, base: f64, population: f64, rate: f64) -> f64 {
    let open = (1.0 + cv2) / (1.0 + base);
    if (cv2 - base).abs() < 1e-6 {
        return 1.0;
    }
    if population > 1e6 {
        return open;
    }
    if population < 1.5 {
        return 1.0;
    }
    // A large population is scaled down with its offered load unchanged.
    let fewer = population.round().min(60.0);
    let rate = (rate * population / fewer).clamp(1e-6, 1e6);
    let wait = |cv2: f64| fewer / interference(cv2, fewer, rate) - 1.0 / rate - 1.0;
    let (own, exponential) = (wait(cv2), wait(base));
    if own > 0.0 && exponential > 1e-9 { (own / exponential).clamp(open.min(1.0), open.max(1.0)) } else { open }
}

/// The part of time in which the server of M/G/1//n is busy, with unit mean service and think times of the given rate.
fn interference(cv2: f64, population: f64, rate: f64) -> f64 {
    let service = Distribution::new(1.0, cv2);
    let (mut term, mut sum, mut count, mut scale) = (1.0_f64, 1.0_f64, 1.0_f64, 1.0_f64);
    while count < population {
        let odds = service.odds(count * rate);
        term *= (population - count) / count * odds;
        sum += term;
        if sum > 1e200 {
            term *= 1e-200;
            sum *= 1e-200;
            scale *= 1e-200;
        }
        count += 1.0;
    }
    let load = population * rate * sum;
    load / (scale + load)
}

/// The steady state of the machine repairman.
struct Repairman {
    /// Mean busy servers, and mean idle ones.
    busy: f64,
    idle: f64,
    /// The probability that all are busy.
    all: f64,
    /// By how much the mean of busy servers and that probability grow with the logarithm of the traffic.
    slope: f64,
    all_slope: f64,
}

/// The state with `ratio` of service time to think time.
fn repairman(servers: f64, population: f64, ratio: f64) -> Repairman {
    let (mut term, mut total, mut busy, mut idle, mut all) = (1.0_f64, 1.0_f64, 0.0_f64, servers, 0.0_f64);
    // Of the number of customers there, alone, with busy servers, with idle ones, and where none is idle.
    let (mut there, mut there_busy, mut there_idle, mut there_all) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    let mut count = 0.0;
    while count < population {
        // A fractional population ends in a last state of fractional weight.
        let away = (population - count).min(population);
        count += 1.0;
        let at_work = count.min(servers);
        term *= away * ratio / at_work;
        total += term;
        busy += term * at_work;
        idle += term * (servers - at_work);
        there += term * count;
        there_busy += term * count * at_work;
        there_idle += term * count * (servers - at_work);
        if count >= servers {
            all += term;
            there_all += term * count;
        }
        if term > 1e200 {
            let sums = [&mut term, &mut total, &mut busy, &mut idle, &mut all];
            let products = [&mut there, &mut there_busy, &mut there_idle, &mut there_all];
            sums.into_iter().chain(products).for_each(|sum| *sum *= 1e-200);
        }
    }
    // A state's weight is a power of the traffic, so that derivatives are covariances with the number of customers.
    let mean = there / total;
    // Of the two that are the same, the one in which less cancels.
    let slope = if busy < idle { there_busy - mean * busy } else { mean * idle - there_idle };
    Repairman {
        busy: busy / total,
        idle: idle / total,
        all: all / total,
        slope: slope / total,
        all_slope: there_all / total - mean * all / total,
    }
}

#[cfg(test)]
mod tests {
    use super::{all_busy, beside_others, erlang_c, repairman};

    /// The same by halving, as slow and sure as can be.
    fn halved(servers: f64, population: f64, load: f64) -> f64 {
        let (mut low, mut high) = (-80.0_f64, 80.0_f64);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if repairman(servers, population, middle.exp()).busy < load {
                low = middle;
            } else {
                high = middle;
            }
        }
        repairman(servers, population, low.exp()).all
    }

    #[test]
    fn the_traffic_of_a_load_is_found() {
        for servers in [1.0, 2.0, 3.0, 16.0] {
            for population in [servers, servers + 0.5, servers + 1.0, 2.0 * servers + 3.0, 40.0, 400.0] {
                for part in [1e-9, 1e-3, 0.3, 0.9, 0.999, 1.0 - 1e-7] {
                    let found = all_busy(servers, population, part * servers);
                    let sure = halved(servers, population, part * servers);
                    let near = (found - sure).abs() <= 1e-7 * sure + 1e-12;
                    assert!(near, "{servers} servers, {population} customers, busy {part}: {found} and {sure}");
                }
            }
        }
    }

    #[test]
    fn as_many_servers_as_customers_are_independent() {
        for (servers, part) in [(1.0, 0.3), (2.0, 0.5), (7.0, 0.9)] {
            let found = all_busy(servers, servers, part * servers);
            assert!((found - part.powf(servers)).abs() < 1e-9, "{servers}: {found}");
        }
    }

    /// The mean of max(1, (own + others) / m) over the states of M/M/m.
    #[test]
    fn work_beside_others_on_shared_servers() {
        for (servers, load) in [(2.0_f64, 0.4_f64), (2.0, 1.8), (4.0, 3.0), (7.0, 6.5)] {
            let likely =
                |others: f64| (1..=others as u32).fold(1.0, |all, one| all * load / f64::from(one).min(servers));
            let all: f64 = (0..4000).map(|others| likely(f64::from(others))).sum();
            let sure = |own: f64| {
                (0..4000)
                    .map(f64::from)
                    .map(|others| likely(others) / all * ((own + others) / servers).max(1.0))
                    .sum::<f64>()
            };
            let found = beside_others(servers, (erlang_c(servers, load) / (servers - load), None), 9);
            for (own, found) in (1..).zip(found) {
                let sure = sure(f64::from(own));
                assert!((found / sure - 1.0).abs() < 1e-6, "{servers} servers, {load} busy, {own}: {found} and {sure}");
            }
        }
        assert_eq!(beside_others(1.0, (3.0, None), 2), [4.0, 5.0]);
        assert_eq!(beside_others(2.0, (0.0, None), 3), [1.0, 1.0, 1.5]);
    }
}
