//! Clocks that are off by the same amount: evidence that services run on one machine.

use std::collections::BTreeMap;

use crate::spans::pipeline::SLACK;
use crate::spans::skew::Skew;
use crate::{ReadReport, codes};
use dyelog_diagnostic::names::Names;
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// Clocks whose offsets from another one differ by no more than this, in nanoseconds, are off alike.
const ALIKE: i64 = SLACK / 2;

/// Services that name no machine, and whose clocks are off alike: likely they read one clock. Offsets that may be none tell nothing.
fn off_alike(skew: &Skew, names: &Names) -> Vec<(String, i64, Vec<String>)> {
    let mut by_caller: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
    for (from, to, (least, greatest)) in skew.offsets() {
        let is_steady = greatest.saturating_sub(least) <= ALIKE && least.saturating_abs() > 2 * SLACK;
        if is_steady && !to.names_machine() {
            by_caller.entry(from.label(names)).or_default().push((least, to.label(names)));
        }
    }
    let mut found = Vec::new();
    for (from, mut offsets) in by_caller {
        offsets.sort();
        let is_near = |one: &(i64, String), next: &(i64, String)| next.0.saturating_sub(one.0) <= ALIKE;
        for alike in offsets.chunk_by(is_near).filter(|alike| alike.len() > 1) {
            found.push((from.clone(), alike[0].0, alike.iter().map(|(_, to)| to.clone()).collect()));
        }
    }
    found
}

/// Says which do.
pub(super) fn report(skew: &Skew, names: &Names, report: &mut ReadReport) {
    for (from, offset, services) in off_alike(skew, names) {
        report.count("clocks that are off alike", || {
            let named: Vec<String> = services.iter().map(|name| format!("`{name}`")).collect();
            let off = format!("{:.1} ms", offset as f64 / -1e6);
            let message = format!("the clocks of {} are {off} from that of {from}, all of them", named.join(", "));
            Diagnostic::new(Severity::Note, codes::CLOCK_SKEW, Place::Nowhere, message)
                .with_note("services whose clocks are off by the same amount are likely on one machine; nothing else says so, and the model keeps them apart")
                .with_hint("where they are, let them share a processor: `processor` under `[task.NAME]` of the configuration")
        });
    }
}
