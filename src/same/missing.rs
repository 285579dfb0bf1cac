//! What seems to be missing in a trace: replies to requests of a kind that is nearly always answered.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{RequestKind, SubModel, Witness};
use crate::same::codes;
use crate::trace::ReadReport;

/// Of so many messages that are alike, one may be an exception; of fewer, both ways are ways of the system.
const RARE: u64 = 10;

/// Requests of one task to another, of one name.
#[derive(Default)]
struct Asked<'s> {
    answered: u64,
    unanswered: u64,
    witness: Option<&'s Witness>,
}

/// Tells of messages that nobody replied to, though their like are replied to.
pub fn tell(submodel: &SubModel, report: &mut ReadReport) {
    let text = |name| submodel.names.text(name);
    let mut asked: BTreeMap<(&str, &str, &str), Asked<'_>> = BTreeMap::new();
    for entry in submodel.entries() {
        for ((kind, to), total) in entry.work.values().flat_map(|work| &work.requests) {
            let server = submodel.entry(*to);
            let (from, to) = (text(entry.task), text(server.task));
            let own = asked.entry((from, to, text(server.service))).or_default();
            if *kind == RequestKind::Asynchronous {
                own.unanswered += total.count;
                own.witness = own.witness.into_iter().chain(server.witnesses.first()).min();
            } else {
                own.answered += total.count;
            }
        }
    }
    for ((from, to, label), Asked { answered, unanswered, witness }) in asked {
        if unanswered == 0 || answered < unanswered.saturating_mul(RARE) {
            continue;
        }
        let named = if label.is_empty() { String::new() } else { format!(" `{label}`") };
        let all = answered + unanswered;
        let message = format!("{unanswered} of {all} messages{named} from `{from}` to `{to}` have no reply");
        let place = witness.map_or(Place::Nowhere, |witness| Place::Line {
            file: witness.file.clone(),
            line: witness.index,
            column: 0,
        });
        *report.counted.entry("message without the reply that its like have").or_default() += unanswered;
        report.findings.push(
            Diagnostic::warning(codes::UNANSWERED, place, message)
                .with_note("the others have one: these may be lost, or their replies")
                .with_note("they are asynchronous in the model, and whoever is asked has no work there")
                .with_hint("see whether messages are missing there, and leave out operations that are not whole"),
        );
    }
    report.trim();
}
