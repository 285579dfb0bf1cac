//! Operations of which spans failed, by scenario.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Operation, Origins, TraceNames};

/// How many scenarios are listed in text.
const SHOWN: usize = 20;

/// Counts of one scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    operations: u64,
    with_failures: u64,
    failed_spans: u64,
    retries: u64,
}

/// Counts of operations, by scenario, of spans that failed in them, and of spans that say that they are another try.
#[derive(Clone, Debug, Default)]
pub struct FailureCounts {
    scenarios: BTreeMap<String, Counts>,
}

impl FailureCounts {
    /// Takes in an operation.
    pub fn add(&mut self, names: &TraceNames, operation: &Operation) {
        let Origins::Items(items) = &operation.origins else { return };
        let failed = items.iter().filter(|item| item.failed).count() as u64;
        let scenario = names.names.text(operation.scenario);
        if !self.scenarios.contains_key(scenario) {
            self.scenarios.insert(scenario.to_owned(), Counts::default());
        }
        let Some(own) = self.scenarios.get_mut(scenario) else { return };
        own.operations += 1;
        own.with_failures += u64::from(failed > 0);
        own.failed_spans += failed;
        own.retries += items.iter().filter(|item| item.retry).count() as u64;
    }

    fn failing(&self) -> impl Iterator<Item = (&String, &Counts)> {
        self.scenarios.iter().filter(|(_, own)| own.failed_spans + own.retries > 0)
    }

    /// A line for each scenario that has some; nothing where none has.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, own) in self.failing().take(SHOWN) {
            let again =
                if own.retries > 0 { format!(", and {} that are another try", own.retries) } else { String::new() };
            let _ = writeln!(
                text,
                "{name}: {} of {} operations have spans that failed ({} spans{again})",
                own.with_failures, own.operations, own.failed_spans
            );
        }
        let more = self.failing().count().saturating_sub(SHOWN);
        if more > 0 {
            let _ = writeln!(text, "and {more} more scenarios with failures");
        }
        text
    }

    /// `[{"name", "operations", "with_failures", "failed_spans", "retries"}]`, of scenarios that have some.
    pub fn json(&self) -> serde_json::Value {
        let one = |(name, own): (&String, &Counts)| {
            serde_json::json!({
                "name": name,
                "operations": own.operations,
                "with_failures": own.with_failures,
                "failed_spans": own.failed_spans,
                "retries": own.retries,
            })
        };
        self.failing().map(one).collect()
    }
}
