//! The scenarios of customers: one for each task that begins work of its own and each request that it begins with.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::timing::Timestamp;
use dyelog_diagnostic::names::{Name, Names};
use dyelog_lqn::submodel::{ScenarioTotal, SubModel, Undated};
use dyelog_trace::{TaskId, TraceNames};

/// Times from here on tell a date, nanoseconds since 1970: it is in 1973. No recording is as long.
const DATED: i64 = 100_000_000_000_000_000;

/// Customers by scenario, and what they were seen to do.
#[derive(Debug)]
pub(super) struct Scenarios {
    /// By customer's task name and the request's name.
    by_request: FxHashMap<(Name, Name), Name>,
    totals: FxHashMap<Name, ScenarioTotal>,
    /// When the last operation of each customer ended.
    last_ends: FxHashMap<(Name, TaskId), Timestamp>,
    /// Customers by scenario.
    owners: FxHashMap<Name, Name>,
    /// Names of scenarios.
    pub names: Names,
}

impl Scenarios {
    pub fn new() -> Self {
        Self {
            by_request: FxHashMap::default(),
            totals: FxHashMap::default(),
            last_ends: FxHashMap::default(),
            owners: FxHashMap::default(),
            names: Names::new(),
        }
    }

    /// The scenario of a customer that begins with a request of that name.
    pub fn of(&mut self, names: &TraceNames, task: Name, label: Name) -> Name {
        if let Some(&scenario) = self.by_request.get(&(task, label)) {
            return scenario;
        }
        let (task_text, label_text) = (names.names.text(task), names.names.text(label));
        let scenario = if label_text.is_empty() || label_text == task_text {
            self.names.intern(task_text)
        } else {
            self.names.intern(&format!("{task_text} {label_text}"))
        };
        self.by_request.insert((task, label), scenario);
        self.owners.insert(scenario, task);
        scenario
    }

    /// Counts an operation of a scenario, from its request to its reply where there is one.
    pub fn count(&mut self, scenario: Name, client: TaskId, start: Timestamp, end: Option<Timestamp>) {
        let total = self.totals.entry(scenario).or_default();
        total.operations += 1;
        if let Some(response) = end.and_then(|end| end.since(start)).filter(|response| *response >= 0.0) {
            total.response.add(response);
            total.responses.add(response);
        }
        let last_end = self.last_ends.entry((scenario, client)).or_insert_with(|| {
            total.clients += 1;
            Timestamp::UNKNOWN
        });
        let Some(began) = start.known() else { return };
        if let Some(think) = start.since(*last_end).filter(|think| *think >= 0.0) {
            total.think.add(think);
        }
        // What turns out to be asynchronous does so late.
        *last_end = last_end.later(end.unwrap_or(start));
        let nanoseconds = (began * 1e9) as i64;
        total.first_start = Some(total.first_start.map_or(nanoseconds, |first| first.min(nanoseconds)));
        total.last_start = Some(total.last_start.map_or(nanoseconds, |last| last.max(nanoseconds)));
        total.starts.add(nanoseconds, None);
        let last = last_end.known().map_or(0, |last| (last * 1e9) as i64);
        total.last_end = Some(total.last_end.map_or(last, |before| before.max(last)));
    }

    /// A customer's request that was sent then is lost: how long the customer thinks after it is not known.
    pub fn lose(&mut self, scenario: Name, client: TaskId, sent: Timestamp) {
        if let Some(last_end) = self.last_ends.get_mut(&(scenario, client))
            && sent.since(*last_end).is_some_and(|after| after >= 0.0)
        {
            *last_end = Timestamp::UNKNOWN;
        }
    }

    /// Adds the scenarios to a sub-model. Customers that are servers as well give it their spontaneous work.
    pub fn add_to(mut self, submodel: &mut SubModel, names: &TraceNames, invoked: &FxHashSet<Name>) {
        let mut scenarios: Vec<(Name, ScenarioTotal)> = self.totals.drain().collect();
        scenarios.sort_by(|left, right| self.names.text(left.0).cmp(self.names.text(right.0)));
        for (scenario, mut total) in scenarios {
            total.undated = undated(&total);
            let name = submodel.names.intern(self.names.text(scenario));
            submodel.scenarios.entry(name).or_default().merge(&total);
            if let Some(owner) = self.owners.get(&scenario).filter(|owner| invoked.contains(owner)) {
                crate::spontaneous::give(submodel, self.names.text(scenario), names.names.text(*owner));
            }
        }
    }
}

/// What of a trace's scenario is by a clock that tells no date.
fn undated(total: &ScenarioTotal) -> Undated {
    match (total.first_start, total.last_start) {
        (Some(first), Some(last)) if last < DATED => {
            let operations = total.starts.cells().iter().map(|cell| cell.operations).sum();
            Undated { traces: 1, operations, nanoseconds: last.abs_diff(first) }
        }
        _ => Undated::default(),
    }
}
