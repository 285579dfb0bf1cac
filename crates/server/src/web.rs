//! What can be read over HTTP: health, figures, intervals, and the sub-model of a period.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use dyelog::lqn::saved;
use serde::Deserialize;

use crate::answer::Answer;
use crate::page;
use crate::period::{self, Period};
use crate::service::Service;
use crate::store::{Store, StoreError};

/// What may be asked without a token.
pub fn open(service: Arc<Service>) -> Router {
    Router::new().route("/healthz", get(healthz)).with_state(service)
}

/// What needs a token to read.
pub fn reading(service: Arc<Service>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/v1/intervals", get(intervals))
        .route("/v1/period", get(submodel))
        .route("/v1/period/model", get(model))
        .route("/v1/period/solution", get(solution))
        .route("/v1/period/report", get(report))
        .route("/", get(front))
        .with_state(service)
}

/// What needs a token to administer.
pub fn administration(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v1/period", delete(forget))
        .route("/v1/import", post(import))
        .layer(DefaultBodyLimit::max(crate::receive::LARGEST))
        .with_state(service)
}

/// A request that came to nothing.
struct Failed(StatusCode, String);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.0, Json(serde_json::json!({ "error": self.1 }))).into_response()
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, format!("the store cannot be used: {error}"))
    }
}

/// A period as a query has it.
#[derive(Deserialize)]
struct Asked {
    from: Option<String>,
    to: Option<String>,
}

impl Asked {
    fn period(&self, service: &Service) -> Result<Period, Failed> {
        Period::parse(self.from.as_deref(), self.to.as_deref(), service.now())
            .map_err(|why| Failed(StatusCode::BAD_REQUEST, why))
    }
}

/// Asks the store on a thread that may wait.
async fn ask<T: Send + 'static>(
    service: &Service,
    question: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Failed> {
    let store = service.store();
    let asked = tokio::task::spawn_blocking(move || question(&mut store?)).await;
    let failed = |_| Failed(StatusCode::INTERNAL_SERVER_ERROR, "the question failed".to_owned());
    Ok(asked.map_err(failed)??)
}

async fn healthz(State(service): State<Arc<Service>>) -> Response {
    match service.fault() {
        None => "ok\n".into_response(),
        Some(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n")).into_response(),
    }
}

async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let status = service.status();
    let counts = status.counts;
    let spans = [
        ("folded", counts.folded),
        ("open", counts.open),
        ("set_aside", counts.set_aside),
        ("refused", counts.refused),
        ("duplicate", counts.duplicate),
    ];
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let one = |value: u64| vec![(String::new(), value)];
    family("dyelog_spans_received_total", "counter", "Spans that were acknowledged.", &one(counts.received));
    let of = spans.map(|(name, value)| (format!("{{state=\"{name}\"}}"), value));
    family("dyelog_spans", "gauge", "What became of the spans; together, those that were received.", &of);
    let incomplete = counts.incomplete_traces;
    family("dyelog_incomplete_traces_total", "counter", "Traces without their root or some parent.", &one(incomplete));
    family("dyelog_metric_requests_total", "counter", "Requests with metrics.", &one(counts.metric_requests));
    family("dyelog_open_traces", "gauge", "Traces to which more may come.", &one(status.open_traces as u64));
    family("dyelog_open_bytes", "gauge", "Memory of spans that are not folded yet.", &one(status.open_bytes as u64));
    family("dyelog_backlog_bytes", "gauge", "Journal that is not read yet.", &one(service.backlog()));
    family("dyelog_healthy", "gauge", "Whether all works.", &one(service.fault().is_none().into()));
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn intervals(State(service): State<Arc<Service>>, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    let period = asked.period(&service)?;
    let intervals = ask(&service, move |store| store.intervals(period.from, period.to)).await?;
    Ok(Json(period::intervals_json(&intervals)).into_response())
}

async fn submodel(State(service): State<Arc<Service>>, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    let period = asked.period(&service)?;
    let found = ask(&service, move |store| {
        let found = store.period(period.from, period.to)?;
        Ok(found.map(|(submodel, merge)| saved::write(&submodel, &merge)))
    });
    match found.await? {
        Some(text) => Ok(([(CONTENT_TYPE, "application/json")], text).into_response()),
        None => Err(nothing()),
    }
}

/// The model of a period, and something made of it.
async fn answered(
    service: &Service,
    asked: &Asked,
    make: impl FnOnce(&Answer) -> Result<String, String> + Send + 'static,
) -> Result<String, Failed> {
    let period = asked.period(service)?;
    let made = ask(service, move |store| {
        let Some((submodel, merge)) = store.period(period.from, period.to)? else { return Ok(None) };
        Ok(Some(Answer::of(&submodel, &merge).and_then(|answer| make(&answer))))
    });
    match made.await? {
        None => Err(nothing()),
        Some(Err(why)) => Err(Failed(StatusCode::UNPROCESSABLE_ENTITY, why)),
        Some(Ok(text)) => Ok(text),
    }
}

fn nothing() -> Failed {
    Failed(StatusCode::NOT_FOUND, "nothing was recorded in this period".to_owned())
}

async fn model(State(service): State<Arc<Service>>, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    Ok(answered(&service, &asked, |answer| Ok(answer.lqn())).await?.into_response())
}

async fn solution(State(service): State<Arc<Service>>, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    let text = answered(&service, &asked, Answer::solution).await?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

async fn report(State(service): State<Arc<Service>>, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    let ends = [&asked.from, &asked.to].map(|end| end.clone().unwrap_or_else(|| "…".to_owned()));
    let title = format!("From {} to {}", ends[0], ends[1]);
    Ok(Html(answered(&service, &asked, move |answer| answer.report(&title)).await?).into_response())
}

async fn front(State(service): State<Arc<Service>>) -> Result<Response, Failed> {
    const LATELY: u64 = 300 * 1_000_000_000;
    let now = service.now();
    let (from, to) = (now.saturating_sub(LATELY), now);
    let lately = ask(&service, move |store| {
        let busiest = match store.period(from, to)? {
            None => Ok(Vec::new()),
            Some((submodel, merge)) => Answer::of(&submodel, &merge).and_then(|answer| answer.busiest()),
        };
        Ok((store.intervals(from, to)?, busiest))
    });
    let (intervals, busiest) = lately.await?;
    let (status, fault) = (service.status(), service.fault());
    let page = page::page(&page::Page {
        status: &status,
        fault: fault.as_deref(),
        intervals: &intervals,
        busiest: busiest.as_deref().map_err(String::as_str),
    });
    Ok(([("content-security-policy", page::POLICY)], Html(page)).into_response())
}

async fn forget(State(service): State<Arc<Service>>, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    if asked.from.is_none() && asked.to.is_none() {
        return Err(Failed(StatusCode::BAD_REQUEST, "say what to delete: `from` or `to`".to_owned()));
    }
    let period = asked.period(&service)?;
    let deleted = ask(&service, move |store| store.delete(period.from, period.to)).await?;
    Ok(Json(serde_json::json!({ "deleted": deleted })).into_response())
}

async fn import(State(service): State<Arc<Service>>, body: String) -> Result<Response, Failed> {
    let found = period::imported("the body", &body).map_err(|why| Failed(StatusCode::BAD_REQUEST, why))?;
    let now = service.now();
    ask(&service, move |store| store.add(found.start, now, &found.submodel, &found.merge)).await?;
    Ok(Json(serde_json::json!({ "imported": true })).into_response())
}
