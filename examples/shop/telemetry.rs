//! Spans into a file: the OpenTelemetry SDK set up with one tracer provider a service, an exporter that writes the form of the
//! OpenTelemetry Collector's file exporter, and the propagation of trace context in headers.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::{Context, KeyValue};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use serde_json::Value;

/// The host that all services say they run on. Synthetic: a trace that is published should not tell real host names.
pub const HOST: &str = "shop-host-1";

/// The file that all services export their spans to.
#[derive(Clone, Debug)]
pub struct TraceFile(Arc<Mutex<BufWriter<File>>>);

impl TraceFile {
    /// Creates or overwrites the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(BufWriter::new(File::create(path)?)))))
    }

    /// Writes out what is buffered.
    pub fn finish(&self) -> io::Result<()> {
        self.0.lock().map_err(|_| io::Error::other("an exporter panicked"))?.flush()
    }
}

/// The tracer provider of one service instance. Its resource is what tells the tasks of the model apart. Without a file its spans are not
/// recorded, and cost next to nothing.
pub fn provider(file: Option<&TraceFile>, service: &'static str) -> SdkTracerProvider {
    let Some(file) = file else { return SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOff).build() };
    let resource = Resource::builder_empty()
        .with_service_name(service)
        .with_attributes([
            KeyValue::new("service.instance.id", format!("{service}-1")),
            KeyValue::new("host.name", HOST),
        ])
        .build();
    let exporter = FileExporter { file: file.clone(), resource: ResourceAttributesWithSchema::default() };
    // Large batches make few lines; the queue is large enough that nothing is dropped under load.
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(1 << 16)
        .with_max_export_batch_size(512)
        .with_scheduled_delay(Duration::from_secs(1))
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
    SdkTracerProvider::builder().with_resource(resource).with_span_processor(processor).build()
}

/// Writes each batch of one service as one line: an `ExportTraceServiceRequest` in OTLP's JSON encoding.
#[derive(Debug)]
struct FileExporter {
    file: TraceFile,
    resource: ResourceAttributesWithSchema,
}

impl SpanExporter for FileExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let request =
            ExportTraceServiceRequest { resource_spans: group_spans_by_resource_and_scope(batch, &self.resource) };
        let failed = |error: &dyn std::fmt::Display| OTelSdkError::InternalFailure(error.to_string());
        let mut line = serde_json::to_value(request).map_err(|error| failed(&error))?;
        leave_out_defaults(&mut line);
        let mut file = self.file.0.lock().map_err(|error| failed(&error))?;
        serde_json::to_writer(&mut *file, &line).map_err(|error| failed(&error))?;
        file.write_all(b"\n").map_err(|error| failed(&error))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
        // The SDK keeps resource attributes in a hash map; sorted, every run writes them in one order.
        self.resource.attributes.0.sort_by(|left, right| left.key.cmp(&right.key));
    }
}

/// Removes fields that have their default value, as protobuf's JSON encoding allows and the Collector does.
fn leave_out_defaults(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                leave_out_defaults(field);
            }
            fields.retain(|name, field| match field {
                Value::Null => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                Value::Number(number) => number.as_i64() != Some(0) || name == "kind",
                Value::Bool(_) => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_defaults),
        _ => {}
    }
}

/// Trace context as text, in a header map or in the properties of a queued message: W3C Trace Context.
struct Carrier<'a>(&'a mut HeaderMap);

impl Injector for Carrier<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

struct ReadCarrier<'a>(&'a HeaderMap);

impl Extractor for ReadCarrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// The headers that carry the span of `context` to another service.
pub fn inject(context: &Context) -> HeaderMap {
    let mut headers = HeaderMap::new();
    TraceContextPropagator::new().inject_context(context, &mut Carrier(&mut headers));
    headers
}

/// The context that a request's headers carry; that of a new trace where they carry none.
pub fn extract(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &ReadCarrier(headers))
}

/// The same for a message's properties.
pub fn inject_properties(context: &Context) -> HashMap<String, String> {
    let mut properties = HashMap::new();
    TraceContextPropagator::new().inject_context(context, &mut properties);
    properties
}

/// The same for a message's properties.
pub fn extract_properties(properties: &HashMap<String, String>) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), properties)
}

/// CPU time that the calling thread has used so far, in nanoseconds; `None` where the system does not tell.
///
/// A service would call `clock_gettime(CLOCK_THREAD_CPUTIME_ID)`. The same figure can be had from Linux without a further
/// crate and without unsafe code: the scheduler's own account of the thread, which a yield brings up to date.
pub fn thread_cpu_time() -> Option<u64> {
    std::thread::yield_now();
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
