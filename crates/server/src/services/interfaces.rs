//! The services as routes: JSON over HTTP, and unary calls of gRPC.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use axum::{Json, Router};
use bytes::Bytes;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::{Question, Report, Stored};
use super::{
    applications, delete_period, delete_period_of_all, first_observation, get as figures, init, processes, put,
    shutdown, uninstall,
};
use crate::grpc::{self, Status};
use crate::receive::body::{Budget, Share};
use crate::receive::{Refusal, plain};
use crate::requests::Brings;
use crate::service::Service;
use crate::web::{Asking, Failed};

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;

/// What services need.
#[derive(Clone)]
pub struct Desk {
    /// The server at work.
    pub service: Arc<Service>,
    /// Memory for reports.
    pub budget: Budget,
}

/// What observers call.
pub fn storage(desk: Desk) -> Router {
    Router::new().route("/services/put", post(http_put)).route(&call("Put"), grpc(counted_put)).with_state(desk)
}

/// What displays and model builders call.
pub fn reporting(desk: Desk) -> Router {
    Router::new()
        .route("/services/applications", http(GET, applications))
        .route("/services/processes", http(GET, processes))
        .route("/services/observation", get(http_observation))
        .route("/services/get", http(GET, figures))
        .route(&call("Applications"), grpc(applications))
        .route(&call("Processes"), grpc(processes))
        .route(&call("FirstObservation"), grpc(first_observation))
        .route(&call("Get"), grpc(figures))
        .with_state(desk)
}

/// What management applications call.
pub fn management(desk: Desk) -> Router {
    Router::new()
        .route("/services/init", http(POST, init))
        .route("/services/del_period", http(POST, delete_period))
        .route("/services/del_all", http(POST, delete_period_of_all))
        .route("/services/shutdown", http(POST, shutdown))
        .route("/services/uninstall", http(POST, uninstall))
        .route(&call("Init"), grpc(init))
        .route(&call("DeletePeriod"), grpc(delete_period))
        .route(&call("DeletePeriodOfAll"), grpc(delete_period_of_all))
        .route(&call("Shutdown"), grpc(shutdown))
        .route(&call("Uninstall"), grpc(uninstall))
        .with_state(desk)
}

fn call(name: &str) -> String {
    format!("/dyelog.server.v1.PerformanceData/{name}")
}

/// A service over HTTP: its question is the query, its answer is JSON.
fn http<I, O, F>(
    method: MethodFilter,
    act: impl Fn(Arc<Service>, I) -> F + Clone + Send + Sync + 'static,
) -> MethodRouter<Desk>
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize + 'static,
    F: Future<Output = Result<O, Failed>> + Send + 'static,
{
    let answer = async move |State(desk): State<Desk>, Asking(question): Asking<I>| -> Result<Json<O>, Failed> {
        act(desk.service, question).await.map(Json)
    };
    on(method, answer)
}

/// Whether a request to a path stores a report.
pub fn is_put(path: &str) -> bool {
    path == "/services/put" || path == call("Put")
}

async fn http_put(State(desk): State<Desk>, request: Request<Body>) -> Result<Response, Failed> {
    let (begun, service) = (Instant::now(), Arc::clone(&desk.service));
    let stored = async {
        let (document, share) = plain(&desk.budget, request).await.and_then(text).map_err(Failed::from)?;
        let stored = put(desk.service, Report { document }).await?;
        drop(share);
        Ok(stored)
    };
    let stored = stored.await;
    count(&service, begun, &stored);
    Ok(Json(stored?).into_response())
}

/// The same over gRPC, once its message was read.
async fn counted_put(service: Arc<Service>, report: Report) -> Result<Stored, Failed> {
    let begun = Instant::now();
    let stored = put(Arc::clone(&service), report).await;
    count(&service, begun, &stored);
    stored
}

fn count(service: &Service, begun: Instant, stored: &Result<Stored, Failed>) {
    let status = stored.as_ref().err().map_or(StatusCode::OK, |Failed(status, _)| *status);
    service.requests().ended(Brings::Observations, status, begun.elapsed());
}

async fn http_observation(State(desk): State<Desk>, Asking(question): Asking<Question>) -> Result<Response, Failed> {
    let found = first_observation(desk.service, question).await?;
    Ok(([(CONTENT_TYPE, "application/json")], found.document).into_response())
}

/// A service over gRPC.
fn grpc<I, O, F>(act: impl Fn(Arc<Service>, I) -> F + Clone + Send + Sync + 'static) -> MethodRouter<Desk>
where
    I: Message + Default + 'static,
    O: Message + 'static,
    F: Future<Output = Result<O, Failed>> + Send + 'static,
{
    let answer = async move |State(desk): State<Desk>, request: Request<Body>| -> Response {
        let outcome = async {
            let (message, share) = grpc::message(&desk.budget, request).await.map_err(Failed::from)?;
            let malformed = |error| Failed(StatusCode::BAD_REQUEST, format!("the message cannot be read: {error}"));
            let question = I::decode(message).map_err(malformed)?;
            let answer = act(desk.service, question).await?;
            drop(share);
            Ok(answer.encode_to_vec())
        };
        grpc::respond(outcome.await.map_err(|Failed(status, words)| Status {
            code: grpc::code_of(status),
            words,
            details: Vec::new(),
        }))
    };
    post(answer)
}

/// A body that must be text.
pub(crate) fn text((bytes, share): (Bytes, Share)) -> Result<(String, Share), Refusal> {
    let no_text = |_| Refusal::Malformed("the report is no text".to_owned());
    String::from_utf8(bytes.to_vec()).map(|text| (text, share)).map_err(no_text)
}
