//! Saved sub-models as input.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::saved::{self, Kept};
use crate::lqn::submodel::{SubModel, Witness};
use crate::model;
use crate::pipeline::codes;
use crate::pipeline::input::{Input, Reader, read_bytes, text_of};
use crate::pipeline::kept::Joining;
use crate::pipeline::listener::Listener;

/// Sub-models of several files.
pub struct Given {
    /// What they hold.
    pub joining: Joining,
    /// How their entries were merged.
    pub merge: String,
}

/// A saved sub-model, which may be open already.
pub type Saved = (Input, Option<Reader>);

/// Reads sub-models.
pub fn load(files: Vec<Saved>, listener: &mut dyn Listener) -> Result<Given, Diagnostics> {
    let mut merge: Option<String> = None;
    let mut joining = Joining::default();
    let mut errors: Vec<Diagnostic> = Vec::new();
    for (file, open) in files {
        let name = Arc::clone(file.name());
        let bytes = match open {
            Some(open) => read_bytes(&name, open),
            None => file.open().and_then(|open| read_bytes(&name, open)),
        };
        let parsed = bytes.map_err(Diagnostics::from).and_then(|bytes| parse(&name, bytes, listener));
        let (submodel, own, kept) = match parsed {
            Ok(parsed) => parsed,
            Err(Diagnostics(found)) => {
                errors.extend(found);
                continue;
            }
        };
        match &merge {
            Some(merge) if *merge != own => {
                errors.push(other_merge(Place::File { file: name }, &own, merge, "those before"));
                continue;
            }
            Some(_) => {}
            None => merge = Some(own),
        }
        joining.take(&name, &submodel, kept, listener);
    }
    match merge {
        Some(merge) if errors.is_empty() => Ok(Given { joining, merge }),
        _ => Err(Diagnostics(errors)),
    }
}

/// A sub-model, how its entries were merged, and the recordings that its file keeps.
fn parse(
    name: &Arc<str>,
    bytes: Vec<u8>,
    listener: &mut dyn Listener,
) -> Result<(SubModel, String, Option<Kept>), Diagnostics> {
    // As `dyelog-server` hands them over.
    if saved::is_packed(&bytes) {
        let (submodel, merge) = saved::unpack(name, &bytes)?;
        return Ok((submodel, merge, None));
    }
    let text: Arc<str> = text_of(name, bytes)?.into();
    if !saved::is_saved(&text) {
        let place = Place::File { file: Arc::clone(name) };
        let finding = Diagnostic::error(codes::ARGUMENTS, place, "this is no saved sub-model");
        return Err(finding.with_hint("`dyelog model TRACE --format submodel` makes one").into());
    }
    listener.source(Arc::clone(name), Arc::clone(&text));
    saved::parse_keeping(name, &text)
}

/// Operations by which a recording that is given twice is known, each with the file that had it first.
#[derive(Default)]
pub struct Seen(BTreeMap<Witness, Arc<str>>);

impl Seen {
    /// Takes in a file's operations, and warns where another file has one of them: what it shows counts once more.
    pub fn take_in(&mut self, file: &Arc<str>, submodel: &SubModel) -> Option<Diagnostic> {
        let witnesses = || submodel.entries().iter().flat_map(|entry| &entry.witnesses);
        let twice = witnesses().find_map(|witness| Some((witness, self.0.get(witness)?)));
        let finding = twice.map(|(Witness { scenario, run, file: trace, item, .. }, other)| {
            let place = Place::File { file: Arc::clone(file) };
            let message = format!("`{other}` seems to hold operations of this file, too: they count twice");
            Diagnostic::warning(model::codes::SEEN_TWICE, place, message)
                .with_note(format!("one of them is run `{run}` of `{scenario}`, from {trace} ({item})"))
                .with_note("means stay as they are, but rates and weights of what comes twice are too large")
                .with_hint("give each recording once")
        });
        for witness in witnesses() {
            self.0.entry(witness.clone()).or_insert_with(|| Arc::clone(file));
        }
        finding
    }
}

/// Refuses sub-models whose entries were merged otherwise than those of the traces beside them.
pub fn check_merge(given: &Given, of_traces: &str) -> Result<(), Diagnostics> {
    if given.merge == of_traces {
        return Ok(());
    }
    let place = Place::Nowhere;
    let finding = other_merge(place, &given.merge, of_traces, "those of the traces");
    Err(finding.with_hint(format!("`--merge {}` makes the same of the traces", given.merge)).into())
}

fn other_merge(place: Place, own: &str, other: &str, whose: &str) -> Diagnostic {
    let message = format!("its entries were made with `--merge {own}`, {whose} with `--merge {other}`");
    Diagnostic::error(codes::ARGUMENTS, place, message).with_note("what one way makes one entry the other keeps apart")
}
