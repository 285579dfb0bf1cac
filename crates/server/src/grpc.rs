//! What unary calls of gRPC are made of: a message in a frame of its own, and a status in the trailers.
//!
//! The calls need no more of gRPC than this; and a message that is packed is unpacked within the same limits as over HTTP.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};

use crate::receive::Refusal;
use crate::receive::body::{Budget, Share, unpacked};

const GRPC: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Whether a message is packed, and its length.
const FRAME: usize = 5;

/// How a call ended that brings no message.
pub struct Status {
    /// The code, which is not 0.
    pub code: u8,
    /// Why.
    pub words: String,
    /// A `google.rpc.Status`, or nothing.
    pub details: Vec<u8>,
}

/// The code of gRPC for a status of HTTP.
pub fn code_of(status: StatusCode) -> u8 {
    match status {
        StatusCode::BAD_REQUEST => 3,
        StatusCode::NOT_FOUND => 5,
        StatusCode::PAYLOAD_TOO_LARGE => 8,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => 12,
        StatusCode::REQUEST_TIMEOUT | StatusCode::SERVICE_UNAVAILABLE => 14,
        _ => 13,
    }
}

/// The message of a call, and the memory that it has.
pub async fn message(budget: &Budget, request: Request<Body>) -> Result<(Bytes, Share), Refusal> {
    let (head, body) = request.into_parts();
    let content = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !content.starts_with(GRPC) {
        return Err(Refusal::Unknown("the content type must be application/grpc".to_owned()));
    }
    let (bytes, share) = budget.read(body, None).await?;
    let cut = || Refusal::Malformed("the body is no message in a frame".to_owned());
    let (frame, _) = bytes.split_first_chunk::<FRAME>().ok_or_else(cut)?;
    let length = u32::from_be_bytes([frame[1], frame[2], frame[3], frame[4]]) as usize;
    let message = bytes.slice(FRAME..);
    if message.len() != length {
        return Err(cut());
    }
    if frame[0] == 0 {
        return Ok((message, share));
    }
    let packing = head.headers.get("grpc-encoding").and_then(|packing| packing.to_str().ok());
    if packing != Some("gzip") {
        return Err(Refusal::Unknown("messages may be packed by gzip only".to_owned()));
    }
    unpacked(message, share).await
}

/// The answer to a call.
pub fn respond(outcome: Result<Vec<u8>, Status>) -> Response {
    let mut trailers = HeaderMap::new();
    let body = match outcome {
        Ok(message) => {
            let mut frame = vec![0];
            frame.extend((message.len() as u32).to_be_bytes());
            frame.extend(message);
            trailers.insert(STATUS, HeaderValue::from(0));
            frame
        }
        Err(Status { code, words, details }) => {
            trailers.insert(STATUS, HeaderValue::from(u16::from(code)));
            let words: String = words.chars().filter(|c| (' '..='~').contains(c) && *c != '%').collect();
            if let Ok(words) = HeaderValue::from_str(&words) {
                trailers.insert(MESSAGE, words);
            }
            if !details.is_empty()
                && let Ok(details) = HeaderValue::from_str(&base64(&details))
            {
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
