//! Birth–death processes of a queue with a finite or an infinite source, and a root finder.

/// A source of more customers than this is taken as a stream.
pub(crate) const MOST_SOURCES: f64 = 20_000.0;

/// Mean numbers of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    /// Busy servers.
    pub busy: f64,
    /// Customers that wait.
    pub queue: f64,
}

/// The birth-death process of a pool that ends `rates(n)` requests per second while n are there, of which at most `threads` are
/// busy, and gets so many per second from a source of so many customers; where it cannot be as many, as many as there can be. None
/// for a stream that grows without end.
pub(crate) fn steady(rates: impl Fn(f64) -> f64, threads: f64, source: f64, rate: f64) -> Option<Steady> {
    if source.is_infinite() {
        return balance(&rates, threads, source, rate).map(|found| found.0);
    }
    // More traffic from each customer brings more requests: traffic and rate are logarithms of their ratios to `rate`.
    let mut best = None;
    let mut error = |traffic: f64| {
        let (found, comes) = balance(&rates, threads, source, rate * traffic.exp())?;
        best = Some(found);
        Some((comes / rate).ln())
    };
    let mut low = (0.0, error(0.0)?);
    let mut high = (0.1, error(0.1)?);
    let mut step = 0.2;
    while high.1 < 0.0 {
        let next = high.0 + step;
        if next > 40.0 {
            return Some(Steady { busy: threads.min(source), queue: (source - threads).max(0.0) });
        }
        low = std::mem::replace(&mut high, (next, error(next)?));
        step *= 2.0;
    }
    root(low, high, 1e-12, &mut error)?;
    best
}

/// Where an error that is negative at `low` and positive at `high` is next to nothing, by false position with the Illinois rule
/// (Dowell and Jarratt 1971).
pub(crate) fn root(
    low: (f64, f64),
    high: (f64, f64),
    enough: f64,
    mut error: impl FnMut(f64) -> Option<f64>,
) -> Option<f64> {
    let ((mut low, mut at_low), (mut high, mut at_high)) = (low, high);
    let (mut middle, mut side) = (high, 0.0);
    for _ in 0..60 {
        if at_high - at_low <= 0.0 || high - low < 1e-14 * high {
            break;
        }
        middle = (low * at_high - high * at_low) / (at_high - at_low);
        let at = error(middle)?;
        if at.abs() < enough {
            break;
        }
        let again = at.signum() == side;
        side = at.signum();
        if at < 0.0 {
            (low, at_low) = (middle, at);
            at_high *= if again { 0.5 } else { 1.0 };
        } else {
            (high, at_high) = (middle, at);
            at_low *= if again { 0.5 } else { 1.0 };
        }
    }
    Some(middle)
}

/// Mean numbers, and requests per second, where `traffic` would come if nobody were there. None where a stream grows without end.
pub(crate) fn balance(rates: &impl Fn(f64) -> f64, threads: f64, source: f64, traffic: f64) -> Option<(Steady, f64)> {
    let (mut term, mut total, mut come) = (1.0_f64, 1.0_f64, 1.0_f64);
    let (mut busy, mut queue, mut count) = (0.0_f64, 0.0_f64, 0.0_f64);
    loop {
        let free = 1.0 - count / source;
        if free <= 0.0 {
            break;
        }
        count += 1.0;
        let ratio = traffic * free / rates(count);
        term *= ratio;
        total += term;
        come += term * (1.0 - count / source).max(0.0);
        busy += term * count.min(threads);
        queue += term * (count - threads).max(0.0);
        if ratio < 1.0 && term * count < 1e-16 * total * (1.0 - ratio) {
            break;
        }
        if source.is_infinite() && count > 2.0 * MOST_SOURCES {
            return None;
        }
        if total > 1e200 {
            term *= 1e-200;
            total *= 1e-200;
            come *= 1e-200;
            busy *= 1e-200;
            queue *= 1e-200;
        }
    }
    Some((Steady { busy: busy / total, queue: queue / total }, traffic * come / total))
}
