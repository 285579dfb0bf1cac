//! Stations with several servers.

/// The probability that all of `servers` are busy in M/M/m with `load` servers busy on average (Erlang's C formula).
fn erlang_c(servers: f64, load: f64) -> f64 {
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

/// The probability that all servers are busy, where `load` of them are on average and at most `population` customers can be
/// there: that of the machine repairman (M/M/m//n) with the same load, found by bisection of its traffic.
pub(super) fn all_busy(servers: f64, population: f64, load: f64) -> f64 {
    if population < servers || load <= 0.0 {
        return 0.0;
    }
    if load >= servers * (1.0 - 1e-12) {
        return 1.0;
    }
    if population > 400.0 {
        return erlang_c(servers, load);
    }
    let (mut low, mut high) = (-30.0_f64, 30.0_f64);
    let mut busy = 0.0;
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        let (mean, all) = repairman(servers, population, middle.exp());
        busy = all;
        if mean < load {
            low = middle;
        } else {
            high = middle;
        }
        if high - low < 1e-9 {
            break;
        }
    }
    busy
}

/// Mean busy servers and probability that all are, with `ratio` of service time to think time.
fn repairman(servers: f64, population: f64, ratio: f64) -> (f64, f64) {
    let (mut term, mut total, mut busy, mut all) = (1.0_f64, 1.0_f64, 0.0_f64, 0.0_f64);
    let mut count = 0.0;
    if servers <= 0.0 {
        return (0.0, 0.0);
    }
    while count < population {
        // A fractional population ends in a last state of fractional weight.
        let idle = (population - count).min(population);
        count += 1.0;
        term *= idle * ratio / count.min(servers);
        total += term;
        busy += term * count.min(servers);
        if count >= servers {
            all += term;
        }
        if term > 1e200 {
            term *= 1e-200;
            total *= 1e-200;
            busy *= 1e-200;
            all *= 1e-200;
        }
    }
    (busy / total, all / total)
}
