//! Which answers hang on a number of servers that traces leave open.
//!
//! Where few had to wait, more servers than those that were taken would fit as well, and what saturates first may be another resource.

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::{Model, Multiplicity};
use crate::model::{OpenServers, Origins, codes};
use crate::solve::bounds::Resource;
use crate::solve::{SolveOptions, solve};
use crate::study::outlook::{FirstToSaturate, first_to_saturate};

/// Of a processor that has as many servers as were found, and more would fit as well: that number, and the least that fits.
pub fn open_servers(model: &Model, origins: Option<&Origins>, resource: Resource) -> Option<OpenServers> {
    let Resource::Processor(id) = resource else { return None };
    let processor = &model.processors[id.index()];
    let open = origins?.open_servers.get(&*processor.name)?;
    // A question may ask for another number.
    (processor.multiplicity == Multiplicity::Finite(open.servers)).then_some(*open)
}

/// Says that answers about a model's limit hang on such a number, where what saturates first does. The model is solved for it only where a number is open.
pub fn limit_is_open(model: &Model, origins: Option<&Origins>) -> Option<Diagnostic> {
    if origins.is_none_or(|origins| origins.open_servers.is_empty()) {
        return None;
    }
    let results = solve(model, &SolveOptions::default(), None, &mut ()).ok()?.results;
    open_limit(model, &first_to_saturate(model, &results, origins)?)
}

/// The same of what saturates first, where that is known.
pub fn open_limit(model: &Model, first: &FirstToSaturate) -> Option<Diagnostic> {
    let OpenServers { servers, least } = first.open?;
    let Resource::Processor(id) = first.resource else { return None };
    let name = &model.processors[id.index()].name;
    let message = format!(
        "what limits the model hangs on the servers of `{name}`: {servers} were taken, and {least} or more fit"
    );
    Some(
        Diagnostic::new(Severity::Note, codes::SERVERS_FOUND, Place::Nowhere, message).with_hint(format!(
            "ask again with more: `--set processor.{name}.multiplicity={}`",
            2 * servers.max(least)
        )),
    )
}
