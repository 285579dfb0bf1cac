//! The receivers: OTLP over HTTP and over gRPC.
//!
//! A request is acknowledged when it is on disk. What cannot be taken now is refused so that senders try again; what is bad for good is
//! refused for good. Bodies are limited in size, packed and unpacked, and all that are in work together in memory.

mod answer;
pub(crate) mod body;
mod grpc;
mod http;
mod json;
mod piece;
mod schema;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;

use crate::journal::Kind;
use crate::peers::{Peer, Peers};
use crate::points::each_point;
use crate::requests::Brings;
use crate::service::{Busy, Service};
use crate::spans::each_span;
pub(crate) use answer::WAIT;
use body::Budget;
pub(crate) use http::plain;

/// The largest body, in bytes, after unpacking.
pub const LARGEST: usize = 20 << 20;

/// What receivers share.
#[derive(Clone)]
pub struct Receivers {
    service: Arc<Service>,
    budget: Budget,
    peers: Peers,
}

/// What a request to a path brings, where it brings something.
pub fn brings(path: &str) -> Option<Brings> {
    match path {
        "/v1/traces" | grpc::TRACES => Some(Brings::Traces),
        "/v1/metrics" | grpc::METRICS => Some(Brings::Metrics),
        _ => None,
    }
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is larger than any may be.
    TooLarge,
    /// It is no request.
    Malformed(String),
    /// Its type or packing is not known.
    Unknown(String),
    /// It came too slowly, or was cut off.
    Incomplete,
    /// It cannot be taken now.
    Busy(String),
}

/// What a request was taken as.
struct Taken {
    /// What it brings.
    kind: Kind,
    /// How many of its spans, or points of metrics, were refused for good.
    rejected: u64,
}

impl Receivers {
    /// For a service.
    pub fn new(service: Arc<Service>, budget: Budget) -> Self {
        Self { service, budget, peers: Peers::default() }
    }

    /// The routes.
    pub fn routes(self) -> Router {
        Router::new()
            .route("/v1/traces", post(http::traces))
            .route("/v1/metrics", post(http::metrics))
            .route(grpc::TRACES, post(grpc::traces))
            .route(grpc::METRICS, post(grpc::metrics))
            .with_state(self)
    }

    /// Counts a request that ended.
    fn count(&self, kind: Kind, begun: Instant, outcome: &Result<Taken, Refusal>) {
        let brings = match kind {
            Kind::Traces => Brings::Traces,
            Kind::Metrics => Brings::Metrics,
        };
        let status = outcome.as_ref().err().map_or(StatusCode::OK, |refusal| refusal.codes().0);
        self.service.requests().ended(brings, status, begun.elapsed());
    }

    /// Whether a request can be taken now. It is asked before the body is read and unpacked, so that work goes into what will be taken.
    fn admit(&self, peer: Option<&Arc<Peer>>) -> Result<(), Refusal> {
        self.service.admit()?;
        if self.service.is_pressed()
            && let Some(peer) = peer
            && !self.peers.has_turn(peer, Instant::now())
        {
            return Err(Refusal::Busy("the server is behind, and others have brought less".to_owned()));
        }
        Ok(())
    }

    /// Checks a request in binary form and takes it.
    async fn take(&self, kind: Kind, payload: Bytes, peer: Option<&Arc<Peer>>) -> Result<Taken, Refusal> {
        let mut rejected = 0;
        match kind {
            Kind::Traces => each_span(&payload, |_, span| rejected += u64::from(span.is_err())),
            Kind::Metrics => each_point(&payload, |_, point| rejected += u64::from(point.is_err())),
        }
        .map_err(|_| Refusal::Malformed("the body is no OTLP request".to_owned()))?;
        let length = payload.len();
        if length > 0 {
            self.service.take(kind, payload).await?;
        }
        if let Some(peer) = peer {
            self.peers.brought(peer, length, Instant::now());
        }
        Ok(Taken { kind, rejected })
    }
}

impl From<Busy> for Refusal {
    fn from(busy: Busy) -> Self {
        Self::Busy(match busy {
            Busy::Behind => "the server is behind".to_owned(),
            Busy::Stopping => "the server stops".to_owned(),
            Busy::Unwritable(why) => why,
        })
    }
}
