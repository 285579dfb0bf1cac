//! Answers, in the form that was asked in.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use super::{Refusal, Taken};
use crate::journal::Kind;
use crate::spans::{put_field, put_head, put_number};

/// How long senders should wait, seconds.
pub const WAIT: u8 = 2;

/// Codes of gRPC.
pub mod grpc_code {
    /// The request is bad for good.
    pub const INVALID_ARGUMENT: u8 = 3;
    /// The request is too large.
    pub const RESOURCE_EXHAUSTED: u8 = 8;
    /// What was asked for is not known.
    pub const UNIMPLEMENTED: u8 = 12;
    /// Not now.
    pub const UNAVAILABLE: u8 = 14;
}

/// The forms of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Binary.
    Protobuf,
    /// JSON.
    Json,
}

impl Form {
    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        })
    }
}

/// What is said of what was refused for good.
fn rejected(kind: Kind) -> &'static str {
    match kind {
        Kind::Traces => "spans that cannot be read, or have no valid trace id and span id, were not taken",
        Kind::Metrics => "points that cannot be read, or have no time, were not taken",
    }
}

/// The binary form of the answer to what was taken: with a partial success where some of it was not.
pub fn taken_message(taken: &Taken) -> Vec<u8> {
    let mut message = Vec::new();
    if taken.rejected > 0 {
        let mut partial = vec![1 << 3];
        put_number(&mut partial, taken.rejected);
        put_field(&mut partial, 2, rejected(taken.kind).as_bytes());
        put_field(&mut message, 1, &partial);
    }
    message
}

/// The answer to what was taken.
pub fn taken(form: Form, taken: &Taken) -> Response {
    let body = match form {
        Form::Protobuf => taken_message(taken),
        Form::Json if taken.rejected == 0 => b"{}".to_vec(),
        Form::Json => {
            let name = match taken.kind {
                Kind::Traces => "rejectedSpans",
                Kind::Metrics => "rejectedDataPoints",
            };
            let partial = serde_json::json!({ name: taken.rejected.to_string(), "errorMessage": rejected(taken.kind) });
            serde_json::json!({ "partialSuccess": partial }).to_string().into_bytes()
        }
    };
    ([(CONTENT_TYPE, form.content_type())], body).into_response()
}

impl Refusal {
    /// The codes of HTTP and gRPC, and the words.
    pub fn codes(&self) -> (StatusCode, u8, &str) {
        match self {
            Self::TooLarge => {
                let words = "the body is larger than 20 MiB";
                (StatusCode::PAYLOAD_TOO_LARGE, grpc_code::RESOURCE_EXHAUSTED, words)
            }
            Self::Malformed(why) => (StatusCode::BAD_REQUEST, grpc_code::INVALID_ARGUMENT, why),
            Self::Unknown(why) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, grpc_code::UNIMPLEMENTED, why),
            Self::Incomplete => {
                (StatusCode::REQUEST_TIMEOUT, grpc_code::UNAVAILABLE, "the body did not come to its end in time")
            }
            Self::Busy(why) => (StatusCode::SERVICE_UNAVAILABLE, grpc_code::UNAVAILABLE, why),
        }
    }
}

/// The answer to what was refused: a `google.rpc.Status`.
pub fn refused(form: Form, refusal: &Refusal) -> Response {
    let (status, code, words) = refusal.codes();
    let body = match form {
        Form::Protobuf => status_message(refusal),
        Form::Json => serde_json::json!({ "code": code, "message": words }).to_string().into_bytes(),
    };
    let mut response = (status, [(CONTENT_TYPE, form.content_type())], body).into_response();
    if matches!(refusal, Refusal::Busy(_)) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(u16::from(WAIT)));
    }
    response
}

/// A `google.rpc.Status`, with `RetryInfo` where it is worth to try again.
pub fn status_message(refusal: &Refusal) -> Vec<u8> {
    let (_, code, words) = refusal.codes();
    let mut message = vec![1 << 3, code];
    put_field(&mut message, 2, words.as_bytes());
    if matches!(refusal, Refusal::Busy(_)) {
        // RetryInfo { retry_delay: Duration { seconds } }
        let retry = [(1 << 3) | 2, 2, 1 << 3, WAIT];
        let mut any = Vec::new();
        put_field(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
        put_field(&mut any, 2, &retry);
        put_head(&mut message, 3, any.len());
        message.extend(any);
    }
    message
}
