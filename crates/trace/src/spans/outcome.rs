//! Whether a span failed, and whether it was made once more after another that failed.
//!
//! | | attributes |
//! |---|---|
//! | failure | `error`, `otel.status_code`, `error.type`; `http.response.status_code` or `http.status_code` from 500 on, at a client from 400 on; `rpc.grpc.status_code` or `grpc.status_code` other than 0, at a server those of the server's fault |
//! | retry | `http.request.resend_count`, `http.resend_count`, `http.retry_count`, `retry_count`, `retry.count`, `retry.attempt`, `rpc.retry_count`, `grpc.previous-rpc-attempts` above 0; `retry` |
//!
//! What counts as a failure of either side is that of OpenTelemetry's semantic conventions.

use crate::spans::model::SpanKind;

/// An attribute that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Says by itself that the span failed.
    Error,
    /// The status by OpenTelemetry.
    Status,
    /// The status of HTTP.
    Http,
    /// The status of gRPC.
    Grpc,
    /// How often the request was made before.
    Resent,
}

/// What the attribute of that key tells, if anything.
pub fn key(key: &str) -> Option<Key> {
    Some(match key {
        "error" | "error.type" => Key::Error,
        "otel.status_code" => Key::Status,
        "http.response.status_code" | "http.status_code" => Key::Http,
        "rpc.grpc.status_code" | "grpc.status_code" => Key::Grpc,
        "http.request.resend_count"
        | "http.resend_count"
        | "http.retry_count"
        | "retry_count"
        | "retry.count"
        | "retry.attempt"
        | "rpc.retry_count"
        | "grpc.previous-rpc-attempts"
        | "retry" => Key::Resent,
        _ => return None,
    })
}

/// What attributes tell of the outcome of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    error: bool,
    fine: bool,
    http: u16,
    grpc: u16,
    /// Whether the request was made before.
    pub retry: bool,
}

/// Codes of gRPC that are the server's fault: unknown, deadline exceeded, unimplemented, internal, unavailable, data loss.
const OF_SERVERS: [u16; 6] = [2, 4, 12, 13, 14, 15];

impl Outcome {
    /// Takes in the value of an attribute.
    pub fn take(&mut self, key: Key, text: &str) {
        let text = text.trim();
        let number = || text.parse::<u16>().unwrap_or(0);
        let says = !text.is_empty() && !text.eq_ignore_ascii_case("false") && text != "0";
        match key {
            Key::Error => self.error |= says,
            Key::Status => {
                self.error |= text.eq_ignore_ascii_case("error") || text == "2";
                self.fine |= text.eq_ignore_ascii_case("ok") || text == "1";
            }
            Key::Http => self.http = number(),
            Key::Grpc => self.grpc = number(),
            Key::Resent => self.retry |= says,
        }
    }

    /// Whether a span of that kind failed.
    pub fn failed(self, kind: SpanKind) -> bool {
        let client = kind.calls();
        let http = self.http >= if client { 400 } else { 500 } && self.http < 600;
        let grpc = if client { self.grpc != 0 } else { OF_SERVERS.contains(&self.grpc) };
        self.error || !self.fine && (http || grpc)
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, key};
    use crate::spans::model::SpanKind;

    fn failed(attributes: &[(&str, &str)], kind: SpanKind) -> bool {
        let mut outcome = Outcome::default();
        for (name, value) in attributes {
            outcome.take(key(name).expect("it tells of the outcome"), value);
        }
        outcome.failed(kind)
    }

    #[test]
    fn each_side_has_failures_of_its_own() {
        let not_found = [("http.response.status_code", "404")];
        assert!(failed(&not_found, SpanKind::Client) && !failed(&not_found, SpanKind::Server));
        assert!(failed(&[("http.status_code", "503")], SpanKind::Server));
        assert!(failed(&[("rpc.grpc.status_code", "14")], SpanKind::Server));
        assert!(!failed(&[("rpc.grpc.status_code", "5")], SpanKind::Server));
        assert!(failed(&[("rpc.grpc.status_code", "5")], SpanKind::Client));
        assert!(!failed(&[("error", "false")], SpanKind::Server) && failed(&[("error", "timeout")], SpanKind::Server));
        assert!(!failed(&[("otel.status_code", "OK"), ("http.status_code", "500")], SpanKind::Server));
    }
}
