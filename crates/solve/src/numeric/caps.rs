//! Stations that may use so much of their servers in each period, and stand still until the next one once they have.

use dyelog_lqn::model::CAP_PERIOD;

use crate::numeric::erlang::erlang_c;

/// How far a shared station with a cap is from one that is never out of quota (0), on the way to one that has as many servers as the cap leaves on the mean (1): the part of the difference of
/// both slowdowns. The cap leaves `cap` of `servers`, of which `busy` are; service takes `mean` seconds, and what is left of one under way `residual` seconds.
///
/// Periods that are short beside the time in which the queue of the latter changes make no difference to it, and periods that are long beside that leave nothing to wait for. Fitted on 1400 simulated
/// stations with Poisson arrivals: 0.2 to 8 of up to 32 servers, 25 to 95 % of the cap busy, 0.5 to 400 ms of service with c² = 0 to 5. Responses are off by 0.6 % in the median, 3.3 % in nine
/// of ten and 27 % at most.
pub(crate) fn part_of_cap((servers, cap): (f64, f64), busy: f64, mean: f64, residual: f64) -> f64 {
    let used = busy / cap;
    let free = 1.0 - used;
    if free <= 1e-9 {
        return 1.0;
    }
    // Work that queues for as many servers as the cap leaves, relative to the quota of a period.
    let work = (used * residual / free / (cap * CAP_PERIOD)).ln();
    let periods = (mean / CAP_PERIOD).ln();
    let odds =
        0.1 + 1.03 * periods + (0.6 - 0.31 * periods) * (residual / mean).ln() - 1.16 * free.ln() - 0.77 * cap.ln()
            + 0.7 * cap / servers
            - 0.165 * work.min(0.0).powi(2);
    1.0 / (1.0 + (-odds).exp())
}

/// How much longer work waits for so many servers, where a part of one is among them, than by the formula of Erlang, whose recursion ends with the last whole one: one customer more than there are whole servers
/// finds that part of a server, and waits for the other part (a birth-death process).
pub(crate) fn beside_a_part(servers: f64, busy: f64) -> f64 {
    let used = (busy / servers).min(1.0);
    used + (1.0 - used) * (servers.floor() + 1.0 - servers)
}

/// How much longer than its service work takes on a shared processor with a cap, beside open arrivals, as a part of its service: of `servers`, of which `busy` are on the mean, the cap leaves
/// `cap`. Service takes `mean` seconds, and what is left of one under way `residual` seconds.
pub fn capped_slowdown(servers: f64, cap: f64, busy: f64, mean: f64, residual: f64) -> f64 {
    let of = |servers: f64| {
        let free = (servers - busy).max(1e-6 * servers);
        if servers > 1.0 {
            beside_a_part(servers, busy) * erlang_c(servers, busy) / free
        } else {
            (busy + 1.0 - servers) / free
        }
    };
    let (without, of_cap) = (of(servers), of(cap));
    without + part_of_cap((servers, cap), busy, mean, residual) * (of_cap - without).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::part_of_cap;

    #[test]
    fn periods_matter_less_the_longer_service_takes_and_the_more_is_busy() {
        let of = |cap: f64, part: f64, mean: f64| part_of_cap((2.0 * cap, cap), part * cap, mean, mean);
        for cap in [0.1, 0.5, 1.0, 2.0, 8.0, 64.0] {
            let mut last = 0.0;
            for mean in [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0] {
                let own = of(cap, 0.7, mean);
                assert!((last..=1.0).contains(&own), "{cap} {mean}: {own} after {last}");
                last = own;
            }
            let mut last = 0.0;
            for part in [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0, 1.1] {
                let own = of(cap, part, 0.02);
                assert!((last..=1.0).contains(&own), "{cap} {part}: {own} after {last}");
                last = own;
            }
        }
    }

    #[test]
    fn simulated_stations() {
        // Servers and cap, busy part of it, service in ms, and the part that simulations show.
        for (servers, cap, busy, mean, simulated) in [
            (4.0, 1.5, 0.7, 40.0, 0.60),
            (8.0, 2.0, 0.85, 10.0, 0.30),
            (4.0, 0.5, 0.85, 10.0, 0.62),
            (8.0, 4.0, 0.95, 40.0, 0.84),
            (2.0, 1.0, 0.7, 150.0, 0.93),
            (4.0, 0.5, 0.5, 2.0, 0.01),
        ] {
            let own = part_of_cap((servers, cap), busy * cap, mean / 1e3, mean / 1e3);
            assert!((own - simulated).abs() < 0.05, "{servers} {cap} {busy} {mean}: {own} for {simulated}");
        }
    }
}
