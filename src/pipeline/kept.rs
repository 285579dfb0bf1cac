//! Recordings that sub-models keep: spans that wait for those of other files.
//!
//! Which spans an operation has is known when all files are there. A sub-model of one file keeps its spans for that, up to a bound; what
//! saved sub-models keep is read as if it stood in the traces themselves, and reduced together. Beyond the bound operations that look whole
//! are summed up for good, and only those wait that lack spans.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::lqn::saved::{Kept, Made, Sample};
use crate::lqn::submodel::SubModel;
use crate::model;
use crate::names::Names;
use crate::pipeline::codes;
use crate::pipeline::input::Input;
use crate::pipeline::listener::Listener;
use crate::pipeline::options::Reading;
use crate::pipeline::submodels::Seen;
use crate::tlc::Rules;
use crate::trace::TraceNames;
use crate::trace::spans::Grouping;
use crate::trace::spans::model::Spans;
use crate::trace::spans::recording::{Recording, Waiting, digests};

/// Bytes for each span that may be kept, names of services and operations among them.
const BYTES: usize = 64;
/// Bytes for names, however few the spans.
const NAMES: usize = 1 << 20;

/// What saved sub-models hold, before it is put together.
#[derive(Default)]
pub struct Joining {
    /// The sums of all of them.
    pub submodel: SubModel,
    /// The sums of all operations of which nothing is kept.
    pub closed: SubModel,
    /// Traces that these are from.
    pub closed_traces: Sample,
    /// Some of the operations of which nothing is kept.
    pub seen: Seen,
    /// The first of the files.
    first: Option<Arc<str>>,
    /// What the files keep.
    pub kept: Vec<(Arc<str>, Kept)>,
}

impl Joining {
    /// Takes in a file. Tells of operations of which nothing is kept, and that are in another one, too: the others count once.
    pub fn take(&mut self, file: &Arc<str>, submodel: &SubModel, kept: Option<Kept>, listener: &mut dyn Listener) {
        let summed_up = kept.as_ref().map_or(submodel, |kept| &kept.closed);
        listener.findings(self.seen.take_in(file, summed_up).as_slice());
        self.first.get_or_insert_with(|| Arc::clone(file));
        self.submodel.merge(submodel);
        match kept {
            Some(mut kept) => {
                self.closed.merge(&std::mem::take(&mut kept.closed));
                self.closed_traces.merge(&kept.closed_traces);
                self.kept.push((Arc::clone(file), kept));
            }
            None => self.closed.merge(submodel),
        }
    }

    /// Whether operations may have spans in several of them.
    pub fn has_several(&self) -> bool {
        self.kept.iter().filter(|(_, kept)| kept.spans > 0).count() > 1
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.submodel.is_empty()
    }

    /// Whether one of them keeps more spans than are to be kept.
    pub fn exceeds(&self, most: usize) -> bool {
        self.kept.iter().any(|(_, kept)| kept.spans > most as u64)
    }

    /// Whether nothing was summed up for good.
    pub fn is_open(&self) -> bool {
        self.closed.is_empty()
    }

    /// Whether names of operations are to be grouped otherwise than they were.
    pub fn is_other(&self, asked: &Reading) -> bool {
        let patterns = asked.grouping.patterns();
        asked.grouping != Grouping::default() && self.kept.iter().any(|(_, kept)| kept.made.group != patterns)
    }

    /// What is kept of one file or none, as it is.
    pub fn only(self) -> (SubModel, Option<Kept>) {
        let Self { submodel, closed, closed_traces, mut kept, .. } = self;
        kept.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.spans));
        let kept = kept.into_iter().next().map(|(_, kept)| Kept { closed, closed_traces, ..kept });
        (submodel, kept)
    }

    /// Checks that nothing is asked of sub-models that they do not tell: spans are kept without their deployments.
    ///
    /// # Errors
    /// When spans of one deployment are asked for.
    pub fn check_deployment(&self, asked: &Reading) -> Result<(), Diagnostics> {
        match &self.first {
            Some(first) if !asked.deployment.is_any() => {
                let message = "`--environment` and `--namespace` take spans of traces, and this is a sub-model";
                Err(refused(first, message).into())
            }
            _ => Ok(()),
        }
    }

    /// How the recordings are to be read: as they were.
    ///
    /// # Errors
    /// Where files differ in that, or from what is asked for.
    pub fn reading(&self, asked: &Reading) -> Result<Reading, Diagnostics> {
        let mut reading = asked.clone();
        let Some((first, kept)) = self.kept.first() else { return Ok(reading) };
        let made = &kept.made;
        // Spans are kept as they were recorded, so that names can be grouped anew.
        let regroups = reading.grouping != Grouping::default() && self.is_open();
        if let Some((file, _)) = self
            .kept
            .iter()
            .find(|(_, other)| other.made.sampling != made.sampling || !regroups && other.made.group != made.group)
        {
            let message = format!("its spans were read with other `--group` or `--sampling` than those of `{first}`");
            return Err(refused(file, &message).into());
        }
        if reading.grouping == Grouping::default() {
            reading.grouping = Grouping::of_patterns(&made.group).map_err(|why| refused(first, &why))?;
        } else if !regroups && reading.grouping.patterns() != made.group {
            return Err(refused(first, "its spans were read with another `--group`").into());
        }
        if reading.sampling.is_some() && reading.sampling != made.sampling {
            return Err(refused(first, "its spans were read with another `--sampling`").into());
        }
        reading.sampling = made.sampling;
        Ok(reading)
    }

    /// Refuses files that were made with other rules than these, where operations are to be made anew.
    ///
    /// # Errors
    /// Which files these are.
    pub fn check_rules(&self, rules: &Rules) -> Result<(), Diagnostics> {
        let digest = rules.digest();
        let others = self.kept.iter().filter(|(_, kept)| kept.spans > 0 && kept.made.rules != digest);
        let refused = others.map(|(file, _)| {
            refused(file, "its operations are to be joined with others, and were recognised by other rules")
                .with_hint("give the same `--rules` again")
        });
        let found: Vec<Diagnostic> = refused.collect();
        if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
    }

    /// The spans that are kept, each with the number of their file.
    ///
    /// # Errors
    /// Where what a file keeps cannot be read.
    pub fn spans(&self, names: &mut Names) -> Result<Vec<(usize, Spans)>, Diagnostics> {
        let files = self.kept.iter().enumerate().filter(|(_, (_, kept))| kept.spans > 0);
        Diagnostics::gather(files.map(|(number, (file, kept))| {
            let spans = Recording::decoded(&kept.recording, names)
                .filter(|spans| spans.spans.len() as u64 == kept.spans)
                .ok_or_else(|| refused(file, "the spans that it keeps cannot be read"))?;
            Ok::<_, Diagnostic>((number, spans))
        }))
    }

    /// Whether operations that were summed up may have spans in several of them.
    pub fn has_summed_up(&self) -> bool {
        self.kept.len() > 1 && self.kept.iter().any(|(_, kept)| kept.closed_traces.count > 0)
    }

    /// Tells of operations of which nothing is kept, and that traces have, too.
    pub fn tell_twice(&mut self, traces: &[Input], submodel: &SubModel, listener: &mut dyn Listener) {
        let named = if let [trace] = traces { Arc::clone(trace.name()) } else { "the traces".into() };
        listener.findings(self.seen.take_in(&named, submodel).as_slice());
    }

    /// Tells of traces that were summed up for good in one file and have spans in another, too.
    pub fn tell_late(&self, spans: &[(usize, Spans)], listener: &mut dyn Listener) {
        if !self.has_summed_up() {
            return;
        }
        let traces: Vec<_> = spans.iter().map(|(number, spans)| (*number, digests(spans))).collect();
        for (number, (file, kept)) in self.kept.iter().enumerate() {
            let closed = &kept.closed_traces;
            for (other, traces) in traces.iter().filter(|(other, _)| *other != number) {
                let late = traces.iter().filter(|trace| closed.has(**trace)).count();
                tell_late(file, &self.kept[*other].0, late as f64 * closed.each(), false, listener);
            }
        }
        for (number, (file, kept)) in self.kept.iter().enumerate() {
            for (other, more) in &self.kept[..number] {
                let (own, its) = (&kept.closed_traces, &more.closed_traces);
                let twice = own.least().iter().filter(|trace| its.has(**trace)).count();
                tell_late(file, other, twice as f64 * own.each().max(its.each()), true, listener);
            }
        }
    }
}

fn tell_late(file: &Arc<str>, other: &str, count: f64, both: bool, listener: &mut dyn Listener) {
    if count < 1.0 {
        return;
    }
    let place = Place::File { file: Arc::clone(file) };
    let what = if both { "summed up there, too" } else { "in spans that came later" };
    let message = format!("`{other}` has more of about {count:.0} of its operations, {what}");
    let finding = Diagnostic::warning(model::codes::SUMMED_UP, place, message)
        .with_note("both count: as parts of operations, or twice")
        .with_hint("a greater `--keep-spans` keeps the spans of both until they are joined");
    listener.findings(&[finding]);
}

fn refused(file: &Arc<str>, message: &str) -> Diagnostic {
    Diagnostic::error(codes::ARGUMENTS, Place::File { file: Arc::clone(file) }, message)
}

/// What is kept of a recording, and what is not.
pub struct Division {
    /// What is kept, without sums.
    pub kept: Kept,
    /// Which operations are kept; none where all are.
    pub waiting: Option<Waiting>,
}

/// Decides what is kept of a recording: all of it, or, where that is too much, what lacks spans.
///
/// # Errors
/// Where spans that wait on disk cannot be read.
pub fn divide(
    recording: &mut Recording,
    most: usize,
    made: &Made,
    names: &TraceNames,
    listener: &mut dyn Listener,
) -> Result<Division, Diagnostics> {
    let most_bytes = most.saturating_mul(BYTES).saturating_add(NAMES);
    let kept = |part: &mut Recording| {
        if part.len() > most {
            return Ok(None);
        }
        let (spans, recording) = part.encoded(&names.names)?;
        let fits = recording.len() <= most_bytes;
        Ok::<_, Diagnostics>(fits.then(|| Kept { made: made.clone(), spans, recording, ..Kept::default() }))
    };
    if let Some(kept) = kept(recording)? {
        return Ok(Division { kept, waiting: None });
    }
    let mut waiting = recording.waiting(most)?;
    let mut found = kept(&mut waiting.recording)?;
    if found.is_none() {
        // Their names are too long.
        waiting = recording.waiting(0)?;
        found = kept(&mut waiting.recording)?;
    }
    let kept = found.unwrap_or_else(|| Kept { made: made.clone(), ..Kept::default() });
    if most > 0 {
        let message = format!(
            "of {} spans the sub-model keeps {}: operations that look whole are summed up for good",
            recording.len(),
            kept.spans
        );
        let mut finding = Diagnostic::new(Severity::Note, model::codes::SUMMED_UP, Place::Nowhere, message)
            .with_hint("`--keep-spans` sets how many spans are kept for files that have the rest of an operation");
        if waiting.left > 0 {
            let left = waiting.left;
            finding =
                finding.with_note(format!("{left} traces that lack spans are summed up, too, as parts of operations"));
        }
        listener.findings(&[finding]);
    }
    let closed_traces = Sample::of(std::mem::take(&mut waiting.others).into_iter());
    Ok(Division { kept: Kept { closed_traces, ..kept }, waiting: Some(waiting) })
}
