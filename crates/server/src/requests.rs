//! How many requests came that bring something, what became of them, and how long it took until they were acknowledged.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

/// What a request brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brings {
    /// Spans.
    Traces,
    /// Points of metrics.
    Metrics,
    /// Reports of observers.
    Observations,
}

const KINDS: [&str; 3] = ["traces", "metrics", "observations"];
/// The statuses of HTTP that such requests end with; calls of gRPC count as what they would be there. The last one stands for all others.
const CODES: [u16; 10] = [200, 400, 401, 403, 408, 413, 415, 421, 503, 500];
/// Statuses of requests that nobody looks into: without a token that allows it, or of another site.
pub const TURNED_AWAY: [u16; 3] = [401, 403, 421];
/// The bounds of times, milliseconds.
const BOUNDS: [u64; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 20_000];

/// Requests of one kind.
#[derive(Debug, Default)]
struct Own {
    /// By status.
    ended: [AtomicU64; CODES.len()],
    /// Those that were acknowledged, by the first bound that is not less than the time that it took; the last are beyond all.
    took: [AtomicU64; BOUNDS.len() + 1],
    /// All these times, nanoseconds.
    sum: AtomicU64,
}

/// Requests by kind.
#[derive(Debug, Default)]
pub struct Requests([Own; KINDS.len()]);

impl Requests {
    /// One ended: with which status, and how long after it began.
    pub fn ended(&self, brings: Brings, status: StatusCode, after: Duration) {
        let own = &self.0[brings as usize];
        let status = if status.is_success() { 200 } else { status.as_u16() };
        let code = CODES.iter().position(|code| *code == status).unwrap_or(CODES.len() - 1);
        own.ended[code].fetch_add(1, Ordering::Relaxed);
        if status == 200 {
            let bound = BOUNDS.partition_point(|bound| Duration::from_millis(*bound) < after);
            own.took[bound].fetch_add(1, Ordering::Relaxed);
            own.sum.fetch_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Writes all of it as Prometheus text.
    pub fn write(&self, text: &mut String) {
        text.push_str(
            "# HELP dyelog_requests_total Requests that bring something, by the status of HTTP that they ended with.\n\
             # TYPE dyelog_requests_total counter\n",
        );
        let number = |own: &AtomicU64| own.load(Ordering::Relaxed);
        for (kind, own) in KINDS.iter().zip(&self.0) {
            for (code, count) in CODES.iter().zip(&own.ended) {
                let _ = writeln!(text, "dyelog_requests_total{{kind=\"{kind}\",code=\"{code}\"}} {}", number(count));
            }
        }
        text.push_str(
            "# HELP dyelog_acknowledgement_seconds Time from the head of a request until what it brought was on disk.\n\
             # TYPE dyelog_acknowledgement_seconds histogram\n",
        );
        for (kind, own) in KINDS.iter().zip(&self.0) {
            let mut count = 0;
            let bounds = BOUNDS.iter().map(|bound| (*bound as f64 / 1e3).to_string()).chain(["+Inf".to_owned()]);
            for (bound, own) in bounds.zip(&own.took) {
                count += number(own);
                let _ =
                    writeln!(text, "dyelog_acknowledgement_seconds_bucket{{kind=\"{kind}\",le=\"{bound}\"}} {count}");
            }
            let seconds = number(&own.sum) as f64 * 1e-9;
            let _ = writeln!(text, "dyelog_acknowledgement_seconds_sum{{kind=\"{kind}\"}} {seconds}");
            let _ = writeln!(text, "dyelog_acknowledgement_seconds_count{{kind=\"{kind}\"}} {count}");
        }
    }
}

/// How much memory of the machine this process has, bytes; `None` where the system does not tell.
pub fn resident_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::StatusCode;

    use super::{Brings, Requests};

    #[test]
    fn requests_are_counted_by_how_they_end_and_timed_where_they_are_acknowledged() {
        let requests = Requests::default();
        for (status, milliseconds) in [(200, 2), (200, 3), (200, 60_000), (503, 1), (418, 1), (401, 1)] {
            let status = StatusCode::from_u16(status).expect("it is a status");
            requests.ended(Brings::Metrics, status, Duration::from_millis(milliseconds));
        }
        let mut text = String::new();
        requests.write(&mut text);
        for line in [
            "dyelog_requests_total{kind=\"metrics\",code=\"200\"} 3",
            "dyelog_requests_total{kind=\"metrics\",code=\"503\"} 1",
            "dyelog_requests_total{kind=\"metrics\",code=\"500\"} 1",
            "dyelog_requests_total{kind=\"metrics\",code=\"401\"} 1",
            "dyelog_requests_total{kind=\"traces\",code=\"200\"} 0",
            "dyelog_acknowledgement_seconds_bucket{kind=\"metrics\",le=\"0.001\"} 0",
            "dyelog_acknowledgement_seconds_bucket{kind=\"metrics\",le=\"0.002\"} 1",
            "dyelog_acknowledgement_seconds_bucket{kind=\"metrics\",le=\"0.005\"} 2",
            "dyelog_acknowledgement_seconds_bucket{kind=\"metrics\",le=\"20\"} 2",
            "dyelog_acknowledgement_seconds_bucket{kind=\"metrics\",le=\"+Inf\"} 3",
            "dyelog_acknowledgement_seconds_count{kind=\"metrics\"} 3",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
    }
}
