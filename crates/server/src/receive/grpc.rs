//! OTLP over gRPC.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;

use super::answer::{status_message, taken_message};
use super::{Receivers, Refusal, Taken};
use crate::grpc::{self, Status};
use crate::journal::Kind;
use crate::peers::Peer;

/// The call for traces.
pub const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// The call for metrics.
pub const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

pub async fn traces(State(receivers): State<Receivers>, request: Request<Body>) -> Response {
    respond(receivers.grpc(Kind::Traces, request).await)
}

pub async fn metrics(State(receivers): State<Receivers>, request: Request<Body>) -> Response {
    respond(receivers.grpc(Kind::Metrics, request).await)
}

impl Receivers {
    async fn grpc(&self, kind: Kind, request: Request<Body>) -> Result<Taken, Refusal> {
        let begun = Instant::now();
        let taken = async {
            let peer = request.extensions().get::<Arc<Peer>>().cloned();
            self.admit(peer.as_ref())?;
            let (message, share) = grpc::message(&self.budget, request).await?;
            let taken = self.take(kind, message, peer.as_ref()).await;
            drop(share);
            taken
        };
        let taken = taken.await;
        self.count(kind, begun, &taken);
        taken
    }
}

fn respond(outcome: Result<Taken, Refusal>) -> Response {
    grpc::respond(outcome.map(|taken| taken_message(&taken)).map_err(|refusal| {
        let (_, code, words) = refusal.codes();
        Status { code, words: words.to_owned(), details: status_message(&refusal) }
    }))
}
