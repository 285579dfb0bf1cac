//! The instrumentation that all services share: a server span for each request that a service accepts, a client span for
//! each that it makes, producer and consumer spans for messages, and measured CPU time for the work in between. Beside the spans stand
//! the probes of dyelog, where a recorder runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use axum::http::{HeaderMap, StatusCode};
use dyelog_probe::Carrier;
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::HttpClient;
use crate::telemetry;
use crate::work::{Activity, Operation};

/// One service: its tracer, its threads and its HTTP client.
#[derive(Clone)]
pub struct Service {
    tracer: SdkTracer,
    threads: Arc<Semaphore>,
    client: HttpClient,
}

impl Service {
    /// A service that works on at most `threads` requests at a time; further ones queue.
    pub fn new(provider: &SdkTracerProvider, threads: usize) -> Self {
        Self { tracer: provider.tracer("shop"), threads: Arc::new(Semaphore::new(threads)), client: HttpClient::new() }
    }

    /// Accepts an HTTP request: waits for a thread, then starts the server span.
    pub async fn accept(&self, operation: &'static Operation, path: String, headers: &HeaderMap) -> Visit {
        let Operation { method, route, .. } = *operation;
        let span = SpanBuilder::from_name(format!("{method} {route}")).with_kind(SpanKind::Server).with_attributes([
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", route),
            KeyValue::new("url.path", path),
            KeyValue::new("url.scheme", "http"),
        ]);
        self.begin(span, &telemetry::extract(headers)).await
    }

    /// Takes a message from a queue: waits for a thread, then starts the consumer span.
    pub async fn consume(&self, queue: &'static str, sender: &Context) -> Visit {
        let span = SpanBuilder::from_name(format!("process {queue}"))
            .with_kind(SpanKind::Consumer)
            .with_attributes(messaging("process", queue));
        self.begin(span, sender).await
    }

    async fn begin(&self, span: SpanBuilder, parent: &Context) -> Visit {
        let thread = Arc::clone(&self.threads).acquire_owned().await.expect("the semaphore is never closed");
        let span = self.tracer.build_with_context(span, parent);
        Visit { service: self.clone(), context: parent.with_span(span), _thread: thread }
    }

    /// Waits until no thread is at work, second phases included.
    pub async fn idle(&self, threads: u32) {
        drop(self.threads.acquire_many(threads).await);
    }
}

/// A request on its way through a service. It holds a thread of the service, and its span ends when it is dropped: after the
/// reply, if the service goes on working.
pub struct Visit {
    service: Service,
    context: Context,
    _thread: OwnedSemaphorePermit,
}

impl Visit {
    /// Does a piece of CPU work in a span of its own, with the CPU time that it took. The work is synchronous: it stays on
    /// one thread of the system, whose clock can therefore measure it.
    pub fn compute(&self, activity: &'static Activity, microseconds: u32) {
        let _call = activity.function.enter();
        let mut span = self.service.tracer.start_with_context(activity.name, &self.context);
        if !span.is_recording() {
            activity.work(microseconds);
            return;
        }
        let before = telemetry::thread_cpu_time();
        activity.work(microseconds);
        if let (Some(before), Some(after)) = (before, telemetry::thread_cpu_time()) {
            let nanoseconds = i64::try_from(after.saturating_sub(before)).unwrap_or(i64::MAX);
            span.set_attribute(KeyValue::new("thread.cpu_time_ns", nanoseconds));
        }
        span.end();
    }

    /// Calls another service over HTTP and waits for its answer, in a client span that goes along in the headers.
    pub async fn call<T: DeserializeOwned>(
        &self,
        operation: &'static Operation,
        to: SocketAddr,
        path: &str,
    ) -> anyhow::Result<T> {
        let method = operation.method;
        let span = SpanBuilder::from_name(method).with_kind(SpanKind::Client).with_attributes([
            KeyValue::new("http.request.method", method),
            KeyValue::new("server.address", to.ip().to_string()),
            KeyValue::new("server.port", i64::from(to.port())),
            KeyValue::new("url.full", format!("http://{to}{path}")),
        ]);
        let context = self.context.with_span(self.service.tracer.build_with_context(span, &self.context));
        let mut headers = telemetry::inject(&context);
        let verb = method.parse()?;
        let exchange = async |chain: Option<Carrier>| {
            if let Some(chain) = chain {
                chain.inject(&mut headers);
            }
            let answer = self.service.client.request(verb, to, path, headers).await?;
            anyhow::Ok(serde_json::from_slice(&answer)?)
        };
        let begin = Instant::now();
        let answer = operation.function.call_async(exchange).await;
        operation.time(begin);
        match &answer {
            Ok(_) => context.span().set_attribute(KeyValue::new("http.response.status_code", 200)),
            Err(error) => context.span().set_status(Status::error(error.to_string())),
        }
        context.span().end();
        answer.with_context(|| format!("failed to {method} {path}"))
    }

    /// Sends a message to a queue without waiting for anything, in a producer span. `send` is given the trace context and the causal chain,
    /// which must travel with the message.
    pub fn send(&self, queue: &'static str, to: &'static Operation, send: impl FnOnce(&Context, Option<Carrier>)) {
        let stub = to.function.send();
        let span = SpanBuilder::from_name(format!("send {queue}"))
            .with_kind(SpanKind::Producer)
            .with_attributes(messaging("send", queue));
        let context = self.context.with_span(self.service.tracer.build_with_context(span, &self.context));
        send(&context, stub.carrier());
        context.span().end();
    }

    /// Records the answer's status on the span; the span stays open for a second phase.
    pub fn reply<T>(&self, answer: anyhow::Result<T>) -> Result<T, StatusCode> {
        let status = if answer.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        self.context.span().set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        answer.map_err(|error| {
            self.context.span().set_status(Status::error(error.to_string()));
            status
        })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.context.span().end();
    }
}

fn messaging(operation: &'static str, queue: &'static str) -> [KeyValue; 3] {
    [
        KeyValue::new("messaging.system", "shop-queue"),
        KeyValue::new("messaging.operation.type", operation),
        KeyValue::new("messaging.destination.name", queue),
    ]
}
