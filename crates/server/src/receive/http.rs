//! OTLP over HTTP.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use bytes::Bytes;

use super::answer::{self, Form};
use super::body::{Budget, Share, unpacked};
use super::{LARGEST, Receivers, Refusal, Taken, json};
use crate::journal::Kind;
use crate::peers::Peer;

pub async fn traces(State(receivers): State<Receivers>, request: Request<Body>) -> Response {
    receivers.http(Kind::Traces, request).await
}

pub async fn metrics(State(receivers): State<Receivers>, request: Request<Body>) -> Response {
    receivers.http(Kind::Metrics, request).await
}

impl Receivers {
    async fn http(&self, kind: Kind, request: Request<Body>) -> Response {
        let (form, begun) = (form(request.headers()), Instant::now());
        let outcome = self.request(kind, form, request).await;
        self.count(kind, begun, &outcome);
        match outcome {
            Ok(taken) => answer::taken(form.unwrap_or(Form::Json), &taken),
            Err(refusal) => answer::refused(form.unwrap_or(Form::Json), &refusal),
        }
    }

    async fn request(&self, kind: Kind, form: Option<Form>, request: Request<Body>) -> Result<Taken, Refusal> {
        let Some(form) = form else {
            let why = "the content type must be application/x-protobuf or application/json";
            return Err(Refusal::Unknown(why.to_owned()));
        };
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        self.admit(peer.as_ref())?;
        let (mut bytes, mut share) = plain(&self.budget, request).await?;
        if form == Form::Json {
            (bytes, share) = json::binary(kind, bytes, share).await?;
        }
        let taken = self.take(kind, bytes, peer.as_ref()).await;
        drop(share);
        taken
    }
}

/// The body of a request, unpacked, and the memory that it has.
pub(crate) async fn plain(budget: &Budget, request: Request<Body>) -> Result<(Bytes, Share), Refusal> {
    let (head, body) = request.into_parts();
    let gzip = is_gzip(&head.headers)?;
    let declared = text(&head.headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
    // Who asks first need not send what is not taken.
    if head.headers.contains_key(EXPECT) && declared.is_some_and(|length: u64| length > LARGEST as u64) {
        return Err(Refusal::TooLarge);
    }
    let (bytes, share) = budget.read(body, declared).await?;
    if gzip { unpacked(bytes, share).await } else { Ok((bytes, share)) }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn form(headers: &HeaderMap) -> Option<Form> {
    let kind = text(headers, CONTENT_TYPE.as_str())?;
    match kind.split(';').next()?.trim() {
        kind if kind.eq_ignore_ascii_case("application/x-protobuf") => Some(Form::Protobuf),
        kind if kind.eq_ignore_ascii_case("application/json") => Some(Form::Json),
        _ => None,
    }
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, Refusal> {
    match text(headers, CONTENT_ENCODING.as_str()).map(str::trim) {
        None | Some("" | "identity") => Ok(false),
        Some(packing) if packing.eq_ignore_ascii_case("gzip") => Ok(true),
        Some(_) => Err(Refusal::Unknown("the content encoding must be gzip or none".to_owned())),
    }
}
