//! Observations as JSON: documents with `"dyelog-observations": 1`, one after the other in a file.
//!
//! Sums of times are whole femtoseconds, and squares 10^-18 square seconds, written as strings of digits as in saved sub-models. Histograms
//! are two numbers a bucket. Unknown fields are errors, since what is not understood would be left out in silence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::sketch::Sketch;
use dyelog_lqn::submodel::{Moments, Seconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::codes;
use crate::observation::{Input, Observation, Operation, Output, Process, Request, Resources, Service, Threads, Times};

/// The version that is read and written.
pub const VERSION: u32 = 1;
/// The largest count that is believed: beyond it, sums of counts could leave 64 bits.
const MOST: u64 = 1 << 40;
/// The longest interval that is believed, nanoseconds: ten years.
const LONGEST: u64 = 10 * 366 * 86_400 * 1_000_000_000;
/// The longest name, bytes.
const LONGEST_NAME: usize = 1024;
/// Findings of one text.
const MOST_FINDINGS: usize = 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "dyelog-observations")]
    version: u32,
    observations: Vec<Shape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    application: Arc<str>,
    host: Arc<str>,
    program: Arc<str>,
    process: u64,
    #[serde(default)]
    started: i64,
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    managed: bool,
    from: i64,
    to: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    covered: Option<u64>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    intervals: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(default)]
    most_threads: u32,
    #[serde(default)]
    resources: ResourcesShape,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    interfaces: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<InputShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<OutputShape>,
    #[serde(default, skip_serializing_if = "is_zero")]
    lost: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ResourcesShape {
    cpu_ns: u64,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    written_bytes: u64,
    received_bytes: u64,
    sent_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputShape {
    interface: Arc<str>,
    operation: Arc<str>,
    service: Service,
    count: u64,
    femtoseconds: String,
    squares: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    responses: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputShape {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<[Arc<str>; 2]>,
    interface: Arc<str>,
    operation: Arc<str>,
    request: Request,
    #[serde(default = "nowhere", skip_serializing_if = "is_nowhere")]
    protocol: Arc<str>,
    count: u64,
    femtoseconds: String,
    squares: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    responses: String,
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

fn nowhere() -> Arc<str> {
    "".into()
}

fn is_nowhere(protocol: &Arc<str>) -> bool {
    protocol.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// Writes observations as one document on one line.
#[expect(clippy::missing_panics_doc, reason = "what is written has names as keys and finite numbers")]
pub fn write(observations: &[Observation]) -> String {
    let document = Document { version: VERSION, observations: observations.iter().map(shape).collect() };
    serde_json::to_string(&document).expect("maps have names as keys")
}

fn shape(observation: &Observation) -> Shape {
    let Observation { process, resources, .. } = observation;
    let length = u64::try_from(observation.to.saturating_sub(observation.from)).unwrap_or(0);
    let inputs = observation.inputs.iter().map(|(input, times)| InputShape {
        interface: Arc::clone(&input.operation.interface),
        operation: Arc::clone(&input.operation.name),
        service: input.service,
        count: times.moments.count,
        femtoseconds: times.moments.sum.0.to_string(),
        squares: times.moments.squares.to_string(),
        responses: times.spread.text(),
    });
    let outputs = observation.outputs.iter().map(|(output, times)| OutputShape {
        within: output.within.as_ref().map(|within| [Arc::clone(&within.interface), Arc::clone(&within.name)]),
        interface: Arc::clone(&output.operation.interface),
        operation: Arc::clone(&output.operation.name),
        request: output.request,
        protocol: Arc::clone(&output.protocol),
        count: times.moments.count,
        femtoseconds: times.moments.sum.0.to_string(),
        squares: times.moments.squares.to_string(),
        responses: times.spread.text(),
    });
    Shape {
        application: Arc::clone(&process.application),
        host: Arc::clone(&process.host),
        program: Arc::clone(&process.program),
        process: process.id,
        started: process.started,
        managed: observation.managed,
        from: observation.from,
        to: observation.to,
        covered: (observation.covered != length).then_some(observation.covered),
        intervals: observation.intervals,
        threads: observation.threads.configured,
        most_threads: observation.threads.most,
        resources: ResourcesShape {
            cpu_ns: resources.cpu,
            reads: resources.reads,
            writes: resources.writes,
            read_bytes: resources.read_bytes,
            written_bytes: resources.written_bytes,
            received_bytes: resources.received_bytes,
            sent_bytes: resources.sent_bytes,
        },
        interfaces: observation.interfaces.clone(),
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        lost: observation.lost,
    }
}

/// Reads the documents of a text, which is called so in what is said of it.
///
/// # Errors
/// When a document is no JSON, of another version, or an observation says what cannot be: all of what is wrong at once, up to twenty findings.
pub fn parse(file: &str, text: &str) -> Result<Vec<Observation>, Diagnostics> {
    let mut observations = Vec::new();
    let mut findings = Vec::new();
    let (mut lines, mut counted) = (1, 0);
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let start = documents.byte_offset();
        let Some(document) = documents.next() else { break };
        lines += text[counted..start].bytes().filter(|byte| *byte == b'\n').count() as u32;
        counted = start;
        let place = Place::Line { file: file.into(), line: lines, column: 0 };
        let read = document.map_err(|error| syntax(place.clone(), &error)).and_then(|value| read(place.clone(), value));
        match read {
            Ok(document) => {
                for (number, shape) in document.observations.into_iter().enumerate() {
                    match observation(shape) {
                        Ok(observation) => observations.push(observation),
                        Err(why) => findings.push(
                            Diagnostic::error(codes::BAD_VALUE, place.clone(), why)
                                .with_note(format!("in observation {} of its document", number + 1)),
                        ),
                    }
                }
            }
            Err(finding) => {
                let is_broken = finding.code == codes::SYNTAX;
                findings.push(*finding);
                if is_broken {
                    break;
                }
            }
        }
        if findings.len() >= MOST_FINDINGS {
            findings.truncate(MOST_FINDINGS);
            break;
        }
    }
    if findings.is_empty() { Ok(observations) } else { Err(Diagnostics(findings)) }
}

fn read(place: Place, document: Value) -> Result<Document, Box<Diagnostic>> {
    let version = document.get("dyelog-observations").and_then(Value::as_u64);
    if let Some(version) = version.filter(|version| *version != u64::from(VERSION)) {
        let message = format!("observations of version {version} cannot be read");
        return Err(Box::new(
            Diagnostic::error(codes::UNKNOWN_VERSION, place, message)
                .with_note(format!("this release reads version {VERSION}")),
        ));
    }
    Document::deserialize(document).map_err(|error| syntax(place, &error))
}

fn syntax(place: Place, error: &serde_json::Error) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::SYNTAX, place, format!("these are no observations: {error}")))
}

fn observation(shape: Shape) -> Result<Observation, String> {
    let length = u64::try_from(shape.to.checked_sub(shape.from).unwrap_or(-1)).ok().filter(|length| *length > 0);
    let Some(length) = length.filter(|length| *length <= LONGEST) else {
        return Err(format!("the interval from {} to {} ns has no length that can be", shape.from, shape.to));
    };
    let covered = shape.covered.unwrap_or(length);
    if covered == 0 {
        return Err("nothing of the interval was covered".to_owned());
    }
    limit("intervals", shape.intervals, MOST)?;
    limit("lost", shape.lost, MOST)?;
    for (what, name) in [("application", &shape.application), ("host", &shape.host), ("program", &shape.program)] {
        named(what, name)?;
        if name.is_empty() {
            return Err(format!("the {what} has no name"));
        }
    }
    let process = Process {
        application: shape.application,
        host: shape.host,
        program: shape.program,
        id: shape.process,
        started: shape.started,
    };
    let mut observation = Observation::empty(process, shape.from, shape.to);
    observation.managed = shape.managed;
    observation.covered = covered;
    observation.intervals = shape.intervals.max(1);
    observation.threads =
        Threads { configured: shape.threads.filter(|threads| *threads > 0), most: shape.most_threads };
    observation.resources = resources(&shape.resources)?;
    observation.lost = shape.lost;
    for (interface, protocols) in &shape.interfaces {
        named("interface", interface)?;
        protocols.iter().try_for_each(|protocol| named("protocol sequence", protocol))?;
    }
    observation.interfaces = shape.interfaces;
    for input in shape.inputs {
        let operation = operation(input.interface, input.operation)?;
        let times = times(&operation, input.count, &input.femtoseconds, &input.squares, &input.responses)?;
        observation.inputs.entry(Input { operation, service: input.service }).or_default().merge(&times);
    }
    for output in shape.outputs {
        let called = operation(output.interface, output.operation)?;
        let times = times(&called, output.count, &output.femtoseconds, &output.squares, &output.responses)?;
        named("protocol sequence", &output.protocol)?;
        let within = output.within.map(|[interface, name]| operation(interface, name)).transpose()?;
        let key = Output { within, operation: called, request: output.request, protocol: output.protocol };
        observation.outputs.entry(key).or_default().merge(&times);
    }
    let has_operations = !observation.inputs.is_empty() || !observation.outputs.is_empty();
    if has_operations && !observation.managed {
        return Err("a process that is looked at from outside has no operations".to_owned());
    }
    Ok(observation)
}

fn limit(what: &str, count: u64, most: u64) -> Result<u64, String> {
    if count > most { Err(format!("`{what}` is {count}, more than can be counted")) } else { Ok(count) }
}

fn named(what: &str, name: &str) -> Result<(), String> {
    let fits = name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(format!("the name of the {what} is longer than {LONGEST_NAME} bytes, or no text")) }
}

fn operation(interface: Arc<str>, name: Arc<str>) -> Result<Operation, String> {
    named("interface", &interface)?;
    named("operation", &name)?;
    if name.is_empty() {
        return Err(format!("an operation of the interface `{interface}` has no name"));
    }
    Ok(Operation { interface, name })
}

fn resources(shape: &ResourcesShape) -> Result<Resources, String> {
    Ok(Resources {
        cpu: limit("cpu_ns", shape.cpu_ns, MOST * 1_000)?,
        reads: limit("reads", shape.reads, MOST)?,
        writes: limit("writes", shape.writes, MOST)?,
        read_bytes: shape.read_bytes,
        written_bytes: shape.written_bytes,
        received_bytes: shape.received_bytes,
        sent_bytes: shape.sent_bytes,
    })
}

fn times(operation: &Operation, count: u64, sum: &str, squares: &str, responses: &str) -> Result<Times, String> {
    limit("count", count, MOST)?;
    // Longer than the longest interval for each of the largest count is no sum.
    let most = i128::MAX / i128::from(MOST);
    let digits = |text: &str| text.parse::<i128>().ok().filter(|value| (0..=most).contains(value));
    let (Some(sum), Some(squares)) = (digits(sum), digits(squares)) else {
        return Err(format!("sums of `{operation}` are no whole numbers that can be"));
    };
    if count == 0 && (sum != 0 || squares != 0) {
        return Err(format!("`{operation}` took time and never ended"));
    }
    let Some(spread) = Sketch::of_text(responses).filter(|spread| spread.is_empty() || spread.len() == count) else {
        return Err(format!("`responses` of `{operation}` are not two numbers a bucket for each of {count}"));
    };
    Ok(Times { moments: Moments { count, sum: Seconds(sum), squares }, spread })
}
