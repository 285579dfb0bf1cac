//! OTLP over gRPC: unary calls, each a message in a frame of its own, and a status in the trailers.
//!
//! The two calls need no more of gRPC than this; and a message that is packed is unpacked within the same limits as over HTTP.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};

use super::answer::{grpc_code, status_message, taken_message};
use super::body::unpacked;
use super::{Receivers, Refusal, Taken};
use crate::journal::Kind;

/// The call for traces.
pub const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// The call for metrics.
pub const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

const GRPC: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Whether a message is packed, and its length.
const FRAME: usize = 5;

pub async fn traces(State(receivers): State<Receivers>, request: Request<Body>) -> Response {
    respond(receivers.grpc(Kind::Traces, request).await)
}

pub async fn metrics(State(receivers): State<Receivers>, request: Request<Body>) -> Response {
    respond(receivers.grpc(Kind::Metrics, request).await)
}

impl Receivers {
    async fn grpc(&self, kind: Kind, request: Request<Body>) -> Result<Taken, Refusal> {
        let (head, body) = request.into_parts();
        let content = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !content.starts_with(GRPC) {
            return Err(Refusal::Unknown("the content type must be application/grpc".to_owned()));
        }
        let (bytes, mut share) = self.budget.read(body, None).await?;
        let cut = || Refusal::Malformed("the body is no message in a frame".to_owned());
        let (frame, _) = bytes.split_first_chunk::<FRAME>().ok_or_else(cut)?;
        let length = u32::from_be_bytes([frame[1], frame[2], frame[3], frame[4]]) as usize;
        let mut message = bytes.slice(FRAME..);
        if message.len() != length {
            return Err(cut());
        }
        if frame[0] != 0 {
            let packing = head.headers.get("grpc-encoding").and_then(|packing| packing.to_str().ok());
            if packing != Some("gzip") {
                return Err(Refusal::Unknown("messages may be packed by gzip only".to_owned()));
            }
            (message, share) = unpacked(message, share).await?;
        }
        let taken = self.take(kind, message).await;
        drop(share);
        taken
    }
}

fn respond(outcome: Result<Taken, Refusal>) -> Response {
    let mut trailers = HeaderMap::new();
    let body = match outcome {
        Ok(taken) => {
            let message = taken_message(&taken);
            let mut frame = vec![0];
            frame.extend((message.len() as u32).to_be_bytes());
            frame.extend(message);
            trailers.insert(STATUS, HeaderValue::from(u16::from(grpc_code::OK)));
            frame
        }
        Err(refusal) => {
            let (_, code, words) = refusal.codes();
            trailers.insert(STATUS, HeaderValue::from(u16::from(code)));
            let words: String = words.chars().filter(|c| (' '..='~').contains(c) && *c != '%').collect();
            if let Ok(words) = HeaderValue::from_str(&words) {
                trailers.insert(MESSAGE, words);
            }
            if let Ok(details) = HeaderValue::from_str(&base64(&status_message(&refusal))) {
                trailers.insert(DETAILS, details);
            }
            Vec::new()
        }
    };
    let body = Full::new(Bytes::from(body)).with_trailers(async move { Some(Ok(trailers)) });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    response.headers_mut().insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip"));
    response
}

/// Base64 without padding, as headers of gRPC have it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            text.push(char::from(DIGITS[((word >> (18 - 6 * digit)) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_without_padding() {
        let texts: Vec<String> =
            ["", "f", "fo", "foo", "foob"].iter().map(|text| super::base64(text.as_bytes())).collect();
        assert_eq!(texts, ["", "Zg", "Zm8", "Zm9v", "Zm9vYg"]);
    }
}
