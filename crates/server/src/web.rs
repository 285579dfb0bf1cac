//! What can be read over HTTP: health, figures, intervals, and the sub-model of a period.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use dyelog::lqn::saved;
use dyelog_observe::model::PeriodModel;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answer::Answer;
use crate::aside;
use crate::deployment;
use crate::late;
use crate::lately;
use crate::meter::MOST_SERIES;
use crate::observed;
use crate::openapi;
use crate::page;
use crate::parts;
use crate::period::{self, Added, Period, Twice};
use crate::receive::{Refusal, WAIT, plain};
use crate::recorded::Recorded;
use crate::requests::resident_memory;
use crate::service::{Service, wall_clock};
use crate::services::messages::{Report, Stored};
use crate::services::{self, Desk, text};
use crate::store::{Store, StoreError};
use crate::told::Question;

/// How long a question waits for others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Routes that need no token.
pub fn open(service: Arc<Service>) -> Router {
    Router::new().route("/healthz", get(healthz)).route("/openapi.json", get(description)).with_state(service)
}

/// What needs a token to read.
pub fn reading(service: Arc<Service>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/v1/intervals", get(intervals))
        .route("/v1/period", get(submodel))
        .route("/v1/period/parts", get(parts))
        .route("/v1/period/recorded", get(recorded))
        .route("/v1/period/exemplars", get(exemplars))
        .route("/v1/period/model", get(model))
        .route("/v1/period/solution", get(solution))
        .route("/v1/period/report", get(report))
        .route("/v1/period/difference", get(difference))
        .route("/v1/observed/model", get(observed_model))
        .route("/v1/observed/reports", get(reports))
        .route("/v1/observed/validation", get(observed_validation))
        .route("/", get(front))
        .with_state(service)
}

/// What needs a token to administer.
pub fn administration(desk: Desk) -> Router {
    let import = Router::new().route("/v1/import", post(import)).with_state(desk.clone());
    Router::new().route("/v1/period", delete(forget)).with_state(desk.service).merge(import)
}

/// A request that came to nothing.
pub(crate) struct Failed(pub(crate) StatusCode, pub(crate) String);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let mut response = (self.0, Json(serde_json::json!({ "error": self.1 }))).into_response();
        if self.0 == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(u16::from(WAIT)));
        }
        response
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        if let StoreError::TooMany(_) = error {
            return Self(StatusCode::BAD_REQUEST, format!("{error}: choose a shorter one"));
        }
        Self(StatusCode::SERVICE_UNAVAILABLE, format!("the store cannot be used: {error}"))
    }
}

/// A query, whose faults are reported as all others.
pub(crate) struct Asking<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Asking<T> {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failed> {
        let read = Query::try_from_uri(&parts.uri).map(|Query(asked)| Self(asked));
        read.map_err(|why| Failed(StatusCode::BAD_REQUEST, why.body_text()))
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        let (status, _, words) = refusal.codes();
        Self(status, words.to_owned())
    }
}

/// A period as a query has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Option<String>,
    to: Option<String>,
}

impl Asked {
    fn period(&self) -> Result<Period, Failed> {
        Period::parse(self.from.as_deref(), self.to.as_deref(), wall_clock())
            .map_err(|why| Failed(StatusCode::BAD_REQUEST, why))
    }
}

/// Asks the store on a thread that may wait.
pub(crate) async fn ask<T: Send + 'static>(
    service: &Service,
    question: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Failed> {
    let turn = service.turn_to_ask();
    let turn = tokio::time::timeout(PATIENCE, turn).await.ok().flatten().ok_or_else(too_many)?;
    let store = service.store();
    let asked = tokio::task::spawn_blocking(move || {
        // The client may have gone away: its question is in work all the same.
        let _turn = turn;
        question(&mut store?)
    });
    let asked = asked.await;
    let failed = |_| Failed(StatusCode::INTERNAL_SERVER_ERROR, "the question failed".to_owned());
    Ok(asked.map_err(failed)??)
}

pub(crate) fn too_many() -> Failed {
    Failed(StatusCode::SERVICE_UNAVAILABLE, "too many questions are in work: ask again later".to_owned())
}

async fn description() -> Response {
    Json(openapi::description()).into_response()
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
    family(
        "dyelog_spans_received_total",
        "counter",
        "Spans that were acknowledged and read; the rest waits in `dyelog_backlog_bytes`.",
        &one(counts.received),
    );
    let of = spans.map(|(name, value)| (format!("{{state=\"{name}\"}}"), value));
    family("dyelog_spans", "gauge", "What became of the spans; together, those that were received.", &of);
    let help = "Spans set aside since they name another environment or namespace than the one that is taken.";
    family("dyelog_other_environment_spans_total", "counter", help, &one(counts.other_environment));
    let incomplete = counts.incomplete_traces;
    family("dyelog_incomplete_traces_total", "counter", "Traces without their root or some parent.", &one(incomplete));
    let help = "Parts of traces that came after the rest of their trace was folded.";
    family("dyelog_late_parts_total", "counter", help, &one(counts.late_parts));
    family("dyelog_late_spans_total", "counter", "Spans of such parts.", &one(counts.late_spans));
    let help = "How often the clock of this machine was found to have been ahead by an hour or more.";
    family("dyelog_clock_set_back_total", "counter", help, &one(counts.set_back));
    family("dyelog_metric_requests_total", "counter", "Requests with metrics.", &one(counts.metric_requests));
    let points = [
        ("used", counts.used_points),
        ("late", counts.late_points),
        ("set_aside", counts.set_aside_points),
        ("no_room", counts.no_room_points),
        ("no_value", counts.no_value_points),
        ("refused", counts.refused_points),
        ("received", counts.metric_points),
    ];
    let of = points.map(|(name, value)| (format!("{{state=\"{name}\"}}"), value));
    family(
        "dyelog_metric_points_total",
        "counter",
        "Points of metrics, and those that tell rates or utilisation; those without room are among those set aside, and those without value say that nothing was recorded.",
        &of,
    );
    family("dyelog_metric_series", "gauge", "Series of metrics that are followed.", &one(status.series as u64));
    family("dyelog_metric_series_limit", "gauge", "How many there may be.", &one(MOST_SERIES as u64));
    let label = |text: &str| text.replace(['"', '\\', '\n'], "_");
    let offending = status.offending.iter();
    let offending: Vec<_> =
        offending.map(|(service, (spans, _))| (format!("{{service=\"{}\"}}", label(service)), *spans)).collect();
    if !offending.is_empty() {
        let help = "Spans whose names were grouped, since their service has too many.";
        family("dyelog_grouped_spans_total", "counter", help, &offending);
    }
    if let Some((spans, _)) = &status.other_services {
        let help = "Spans of services beyond those that are told apart: these are among those set aside.";
        family("dyelog_other_services_spans_total", "counter", help, &one(*spans));
    }
    let ahead = status.ahead.lately(wall_clock()).into_iter();
    let ahead: Vec<_> =
        ahead.map(|(service, seconds)| (format!("{{service=\"{}\"}}", label(service)), seconds)).collect();
    if !ahead.is_empty() {
        let help = "By how much the clock of a service is ahead at least: spans had not ended when they came.";
        family("dyelog_clock_ahead_seconds", "gauge", help, &ahead);
    }
    let scrapes = status.scrapes.iter().flat_map(|(url, own)| {
        let labels = |outcome: &str| format!("{{url=\"{}\",outcome=\"{outcome}\"}}", label(url));
        [(labels("well"), own.well), (labels("failed"), own.failed)]
    });
    let scrapes: Vec<_> = scrapes.collect();
    if !scrapes.is_empty() {
        family("dyelog_scrapes_total", "counter", "How often metrics were fetched.", &scrapes);
        let unread = status.scrapes.iter().map(|(url, own)| (format!("{{url=\"{}\"}}", label(url)), own.unread));
        let help = "Lines of fetched metrics that are no lines of Prometheus' text: they were left out.";
        family("dyelog_scrape_unread_lines_total", "counter", help, &unread.collect::<Vec<_>>());
    }
    family("dyelog_open_traces", "gauge", "Traces to which more may come.", &one(status.open_traces as u64));
    family("dyelog_open_bytes", "gauge", "Memory of spans that are not folded yet.", &one(status.open_bytes as u64));
    family("dyelog_backlog_bytes", "gauge", "Journal that is not read yet.", &one(service.backlog()));
    let answers = ["remembered", "made"].iter().zip(service.told().counts());
    let answers: Vec<_> = answers.map(|(how, count)| (format!("{{how=\"{how}\"}}"), count)).collect();
    let help = "Models, solutions, reports and differences of periods: remembered from an earlier question, or made.";
    family("dyelog_period_answers_total", "counter", help, &answers);
    family("dyelog_healthy", "gauge", "Whether all works.", &one(service.fault().is_none().into()));
    if let Some(bytes) = resident_memory() {
        family("process_resident_memory_bytes", "gauge", "Memory of the machine that this process has.", &one(bytes));
    }
    service.requests().write(&mut text);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn intervals(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let period = asked.period()?;
    let answer = ask(&service, move |store| period::intervals_json(store, period)).await?;
    Ok(Json(answer).into_response())
}

async fn submodel(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let period = asked.period()?;
    let found = ask(&service, move |store| {
        let found = store.period(period.from, period.to)?;
        Ok(found.map(|(submodel, merge)| saved::write(&submodel, &merge)))
    });
    match found.await? {
        Some(text) => Ok(([(CONTENT_TYPE, "application/json")], text).into_response()),
        None => Err(nothing()),
    }
}

async fn parts(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let period = asked.period()?;
    let system = service.system().clone();
    let found = ask(&service, move |store| parts::json(store, period, &system)).await?;
    Ok(Json(found.ok_or_else(nothing)?).into_response())
}

/// Packed for those who know that form, and as JSON for all others.
async fn recorded(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Asking(asked): Asking<Asked>,
) -> Result<Response, Failed> {
    let period = asked.period()?;
    let packed = Recorded::packed_type();
    let named = headers.get_all(ACCEPT).iter().filter_map(|own| own.to_str().ok()).flat_map(|own| own.split(','));
    let mut answer = if named.into_iter().any(|own| own.trim() == packed) {
        let found = ask(&service, move |store| Ok(Recorded::packed(store, period)?.map(|own| own.to_bytes())));
        ([(CONTENT_TYPE, packed)], found.await?.ok_or_else(nothing)?).into_response()
    } else {
        let found = ask(&service, move |store| Recorded::of(store, period)).await?;
        Json(found.ok_or_else(nothing)?).into_response()
    };
    answer.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(answer)
}

async fn exemplars(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let period = asked.period()?;
    let found = ask(&service, move |store| store.exemplars(period.from, period.to)).await?;
    Ok(([(CONTENT_TYPE, "application/x-protobuf")], found.ok_or_else(nothing)?).into_response())
}

/// The model of a period, and something of a form made of it; remembered where nothing came to the period meanwhile.
async fn answered(
    service: &Service,
    asked: &Asked,
    form: String,
    make: impl FnOnce(&Answer) -> Result<String, String> + Send + 'static,
) -> Result<String, Failed> {
    let period = asked.period()?;
    let question = Question { form, ends: [asked.from.clone(), asked.to.clone()] };
    let of_model = move |store: &Store| Ok(modelled(store, period)?.map(|made| made.and_then(|own| make(&own))));
    remembered(service, question, move |store| store.state(period.from, period.to), of_model).await
}

/// The answer to a question: one that is remembered of the same state, or else it is made, and remembered where the state is the same after that.
async fn remembered(
    service: &Service,
    question: Question,
    state: impl Fn(&Store) -> Result<u128, StoreError> + Send + 'static,
    make: impl FnOnce(&Store) -> Result<Option<Result<String, String>>, StoreError> + Send + 'static,
) -> Result<String, Failed> {
    let told = Arc::clone(service.told());
    let made = ask(service, move |store| {
        let before = state(store)?;
        if let Some(answer) = told.find(&question.form, before) {
            return Ok(Some(Ok(answer)));
        }
        let Some(made) = make(store)? else { return Ok(None) };
        let made = made.map(Arc::from);
        if let Ok(answer) = &made
            && state(store)? == before
        {
            told.keep(question, before, answer);
        }
        Ok(Some(made))
    });
    let unsolvable = |why| Failed(StatusCode::UNPROCESSABLE_ENTITY, why);
    Ok(made.await?.ok_or_else(nothing)?.map_err(unsolvable)?.to_string())
}

/// The model of a period, which tells what changes within it; `None` where nothing was recorded.
fn modelled(store: &Store, period: Period) -> Result<Option<Result<Answer, String>>, StoreError> {
    let Some((parts, submodel, merge)) = parts::Parts::with_whole(store, period)? else { return Ok(None) };
    let headless = late::headless(&submodel);
    let mut made = Answer::of(submodel, &merge, &store.metered(period.from, period.to)?);
    if let Ok(answer) = &mut made {
        answer.tell(aside::findings(&store.set_aside(period.from, period.to)?, headless));
        answer.tell(deployment::findings(&store.deployed(period.from, period.to)?));
        answer.tell(parts.finding());
    }
    Ok(Some(made))
}

fn nothing() -> Failed {
    Failed(StatusCode::NOT_FOUND, "nothing was recorded in this period".to_owned())
}

async fn model(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    Ok(answered(&service, &asked, "model".to_owned(), |answer| Ok(answer.lqn())).await?.into_response())
}

async fn solution(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let text = answered(&service, &asked, "solution".to_owned(), Answer::solved).await?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

async fn report(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let ends = [&asked.from, &asked.to].map(|end| end.clone().unwrap_or_else(|| "…".to_owned()));
    let title = format!("From {} to {}", ends[0], ends[1]);
    Ok(Html(answered(&service, &asked, format!("report {title}"), move |answer| answer.report(&title)).await?)
        .into_response())
}

/// Two periods as a query has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedTwo {
    from: Option<String>,
    to: Option<String>,
    other_from: Option<String>,
    other_to: Option<String>,
}

async fn difference(State(service): State<Arc<Service>>, Asking(asked): Asking<AskedTwo>) -> Result<Response, Failed> {
    let AskedTwo { from, to, other_from, other_to } = asked;
    if other_from.is_none() && other_to.is_none() {
        let why = "`other_from` and `other_to` name the period to compare with, and neither is given";
        return Err(Failed(StatusCode::BAD_REQUEST, why.to_owned()));
    }
    let form = format!("difference {other_from:?} {other_to:?}");
    let other = Asked { from: other_from, to: other_to }.period()?;
    let period = Asked { from: from.clone(), to: to.clone() }.period()?;
    let state = move |store: &Store| {
        let [own, other] = [period, other].map(|period| store.state(period.from, period.to));
        Ok(own?.rotate_left(1).wrapping_add(other?))
    };
    let compare = move |store: &Store| {
        let Some(own) = modelled(store, period)? else { return Ok(None) };
        let nothing = || Err("nothing was recorded in the other period".to_owned());
        let other = modelled(store, other)?.unwrap_or_else(nothing);
        Ok(Some(own.and_then(|own| Ok(own.difference(&other?)))))
    };
    Ok(remembered(&service, Question { form, ends: [from, to] }, state, compare).await?.into_response())
}

async fn front(State(service): State<Arc<Service>>) -> Result<Response, Failed> {
    let made = lately::look(&service).await?;
    let (status, fault) = (service.status(), service.fault());
    let now = match &made.look {
        None => page::Now::Nothing,
        Some(Err(why)) => page::Now::Unsolved(why),
        Some(Ok(lately::Look { busiest, capacity, picture })) => page::Now::Solved { busiest, capacity, picture },
    };
    let page = page::Page {
        status: &status,
        fault: fault.as_deref(),
        intervals: &made.intervals,
        at: &period::written(made.at),
        ahead: &status.ahead.lately(wall_clock()),
        now,
        held: &made.held,
        hours: &made.hours,
        observed: made.observed.as_ref(),
    };
    Ok(([("content-security-policy", page::POLICY)], Html(page::page(&page))).into_response())
}

/// The model of what observers reported, and something made of it.
async fn observed<T: Send + 'static>(
    service: &Arc<Service>,
    asked: &Asked,
    make: impl FnOnce(&PeriodModel) -> Result<T, String> + Send + 'static,
) -> Result<T, Failed> {
    let period = asked.period()?;
    let system = service.system().clone();
    let made = ask(service, move |store| {
        let made = observed::model(store, period, &system)?;
        Ok(made.map(|made| made.and_then(|made| make(&made))))
    });
    let unsolvable = |why| Failed(StatusCode::UNPROCESSABLE_ENTITY, why);
    made.await?.ok_or_else(nothing)?.map_err(unsolvable)
}

async fn observed_model(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    Ok(observed(&service, &asked, |made| Ok(observed::text(made))).await?.into_response())
}

async fn observed_validation(
    State(service): State<Arc<Service>>,
    Asking(asked): Asking<Asked>,
) -> Result<Response, Failed> {
    Ok(Json(observed(&service, &asked, observed::validation).await?).into_response())
}

async fn reports(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    let period = asked.period()?;
    let text = ask(&service, move |store| store.reports(period.from, period.to)).await?;
    Ok(([(CONTENT_TYPE, "application/json")], text.ok_or_else(nothing)?).into_response())
}

async fn forget(State(service): State<Arc<Service>>, Asking(asked): Asking<Asked>) -> Result<Response, Failed> {
    if asked.from.is_none() && asked.to.is_none() {
        return Err(Failed(StatusCode::BAD_REQUEST, "say what to delete: `from` or `to`".to_owned()));
    }
    let period = asked.period()?;
    let deleted = ask(&service, move |store| store.delete(period.from, period.to)).await?;
    Ok(Json(serde_json::json!({ "deleted": deleted })).into_response())
}

/// How to import.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Importing {
    /// Whether operations that are there already may count twice.
    #[serde(default)]
    again: bool,
}

async fn import(
    State(desk): State<Desk>,
    Asking(Importing { again }): Asking<Importing>,
    request: Request,
) -> Result<Response, Failed> {
    let Desk { service, budget } = desk;
    let (body, share) = plain(&budget, request).await.and_then(text).map_err(Failed::from)?;
    if period::is_reports(&body) {
        let Stored { stored, duplicates } = services::put(service, Report { document: body }).await?;
        drop(share);
        return Ok(Json(
            serde_json::json!({ "imported": true, "stored": stored, "duplicates": duplicates, "warning": null }),
        )
        .into_response());
    }
    let found = period::imported("the body", &body).map_err(|why| Failed(StatusCode::BAD_REQUEST, why))?;
    drop(share);
    let now = wall_clock();
    let twice = if again { Twice::Counted } else { Twice::Refused };
    let warning = match ask(&service, move |store| found.add_to(store, now, twice)).await? {
        Added::Yes(warning) => warning,
        Added::No(why) => return Err(Failed(StatusCode::CONFLICT, why)),
    };
    Ok(Json(serde_json::json!({ "imported": true, "stored": null, "duplicates": null, "warning": warning }))
        .into_response())
}

#[cfg(test)]
mod tests {
    use std::future::{Future as _, poll_fn};
    use std::sync::Arc;
    use std::task::Poll;

    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use axum::response::Response;
    use tower::ServiceExt as _;

    use crate::access::Access;
    use crate::serve::routes;
    use crate::service::{QUESTIONS, Service, WAITING};
    use crate::worker::Working;

    async fn asked(service: &Arc<Service>, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).expect("it is a request");
        routes(service, &Arc::new(Access::default())).oneshot(request).await.expect("it answers")
    }

    #[tokio::test]
    async fn more_questions_than_may_wait_are_told_to_come_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let service = Service::start(&folder.path().join("store.db"), Working::default()).expect("it starts");
        let mut turns = Vec::new();
        for _ in 0..QUESTIONS {
            turns.push(service.turn_to_ask().await.expect("nobody else asks"));
        }
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(service.turn_to_ask())).collect();
        for one in &mut waiting {
            assert!(poll_fn(|context| Poll::Ready(one.as_mut().poll(context).is_pending())).await);
        }
        {
            let mut next = Box::pin(service.turn_to_ask());
            assert!(poll_fn(|context| Poll::Ready(matches!(next.as_mut().poll(context), Poll::Ready(None)))).await);
        }
        for path in ["/v1/intervals", "/v1/period/solution?from=-1h", "/services/applications", "/"] {
            let answer = asked(&service, path).await;
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
            assert!(answer.headers().contains_key("retry-after"), "{path}");
        }
        // What needs no turn is answered all the same.
        assert_eq!(asked(&service, "/healthz").await.status(), StatusCode::OK);
        drop(turns);
        for one in waiting {
            assert!(one.await.is_some());
        }
        assert_eq!(asked(&service, "/v1/intervals").await.status(), StatusCode::OK);
        tokio::task::spawn_blocking(move || service.stop()).await.expect("it stops");
    }
}
