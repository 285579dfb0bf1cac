//! Processor time of spans from CPU profiles whose samples name the span that ran.
//!
//! | form | the span of a sample | processor time |
//! |---|---|---|
//! | pprof, protobuf | label `span_id`, `span.id`, `spanid` or `profile_id`, hexadecimal; `span id`, decimal | values of type `cpu` in a unit of time; else `samples` times the period |
//! | OTLP profiles (v1development), protobuf or JSON | the link of the sample | the same |
//!
//! Both may be compressed. A sample says which span was innermost, so its time is the span's own, and not that of spans within it.

mod otlp;
mod pprof;

use std::collections::BTreeMap;
use std::io::Read;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

use crate::read::failed;
use crate::spans::ids::SpanId;
use crate::{codes, unpack};

/// The largest profile, unpacked, in bytes.
const LARGEST: u64 = 1 << 30;

/// What a profile tells of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuProfile {
    /// The file.
    pub file: String,
    /// By span, the nanoseconds that it was seen to run.
    pub(crate) by_span: BTreeMap<SpanId, i64>,
    /// Nanoseconds of samples that name no span.
    pub(crate) unnamed: i64,
}

/// Why some bytes are not a profile of processor time.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// They are no message of that form.
    Malformed,
    /// They have no processor time; the types of values that they have instead.
    NoTime(Vec<String>),
}

impl CpuProfile {
    /// Reads a profile: pprof, or OTLP profiles in protobuf or JSON.
    ///
    /// # Errors
    /// `T162` when it is neither, or has no processor time; when the input fails.
    pub fn read(file: &str, input: impl Read + Send) -> Result<Self, Diagnostics> {
        let mut content = Vec::new();
        let input = unpack::open(input).map_err(|error| failed(file, &error))?;
        input.take(LARGEST + 1).read_to_end(&mut content).map_err(|error| failed(file, &error))?;
        let bad = |message: String| {
            let place = Place::File { file: file.into() };
            Diagnostic::error(codes::CPU_PROFILE, place, message)
        };
        if content.len() as u64 > LARGEST {
            return Err(bad("this profile is larger than 1 GiB".to_owned()).into());
        }
        let mut profile = Self { file: file.to_owned(), ..Self::default() };
        let read = if content.trim_ascii_start().starts_with(b"{") {
            otlp::read_json(&content, &mut profile)
        } else if pprof::is(&content) {
            pprof::read(&content, &mut profile)
        } else {
            otlp::read_proto(&content, &mut profile)
        };
        match read {
            Ok(()) => Ok(profile),
            Err(Fault::Malformed) => Err(bad("this is no CPU profile".to_owned())
                .with_hint("profiles are pprof or OTLP (v1development), in protobuf or JSON")
                .into()),
            Err(Fault::NoTime(types)) => Err(bad("this profile has no processor time".to_owned())
                .with_note(format!("its values are {}", types.join(", ")))
                .with_hint("record a profile of type `cpu`")
                .into()),
        }
    }

    /// Adds the time of a sample.
    fn add(&mut self, span: Option<SpanId>, time: i64) {
        let sum = match span.filter(|span| span.is_some()) {
            Some(span) => self.by_span.entry(span).or_default(),
            None => &mut self.unnamed,
        };
        *sum = sum.saturating_add(time.max(0));
    }
}

/// Nanoseconds in a unit of time.
fn nanoseconds(unit: &str) -> Option<i64> {
    match unit {
        "ns" | "nanosecond" | "nanoseconds" => Some(1),
        "us" | "microsecond" | "microseconds" => Some(1_000),
        "ms" | "millisecond" | "milliseconds" => Some(1_000_000),
        "s" | "second" | "seconds" => Some(1_000_000_000),
        _ => None,
    }
}

/// Which value of a sample is processor time, and how many nanoseconds one of it is. Types and the period's type are pairs of name and unit.
fn measure(types: &[(String, String)], period_type: &(String, String), period: i64) -> Result<(usize, i64), Fault> {
    let time = |(kind, unit): &(String, String)| nanoseconds(unit).filter(|_| kind == "cpu");
    if let Some(found) = types.iter().enumerate().find_map(|(place, kind)| Some((place, time(kind)?))) {
        return Ok(found);
    }
    let samples = types.iter().position(|(kind, unit)| kind == "samples" && unit == "count");
    match (samples, time(period_type)) {
        (Some(place), Some(factor)) if period > 0 => Ok((place, period.saturating_mul(factor))),
        _ => Err(Fault::NoTime(types.iter().map(|(kind, unit)| format!("`{kind}` in `{unit}`")).collect())),
    }
}

#[cfg(test)]
mod tests;
