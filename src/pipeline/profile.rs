//! From files of probe records to call graphs.

use std::sync::Arc;

use crate::callgraph::{self, Options, ProcessorGroups, Profile};
use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::model::Configuration;
use crate::pipeline::codes;
use crate::pipeline::input::Input;
use crate::pipeline::listener::Listener;
use crate::trace;

/// Reads probe records, packed or not, and follows their chains. The listener hears what was left out.
///
/// # Errors
/// When an input cannot be read to its end, or none holds a record.
pub fn profile(inputs: &[Input], options: &Options, listener: &mut dyn Listener) -> Result<Profile, Diagnostics> {
    let meter = listener.reading(inputs);
    let files = unpacked(inputs, |reader| meter.watch(reader))?;
    let profile = callgraph::analyse(files, options)?;
    meter.done();
    listener.findings(&profile.reading.findings);
    Ok(profile)
}

/// Inputs as files of records, unpacked where they are packed.
///
/// # Errors
/// When one cannot be opened.
pub fn unpacked(
    inputs: &[Input],
    watch: impl Fn(super::Reader) -> super::Reader,
) -> Result<Vec<callgraph::Input<'static>>, Diagnostics> {
    let open = |input: &Input| -> Result<callgraph::Input<'static>, Diagnostic> {
        let content = trace::unpacked(watch(input.open()?)).map_err(|error| {
            let place = Place::File { file: Arc::clone(input.name()) };
            Diagnostic::error(codes::UNREADABLE, place, format!("it cannot be read: {error}"))
        })?;
        Ok(callgraph::Input::new(Arc::clone(input.name()), content))
    };
    Diagnostics::gather(inputs.iter().map(open))
}

/// The processor groups of a configuration.
///
/// # Errors
/// `G006` when a name comes twice, a processor is in two groups, or a group is empty.
pub fn processor_groups(configuration: &Configuration) -> Result<ProcessorGroups, Diagnostics> {
    ProcessorGroups::new(configuration.processor_groups.clone())
}
