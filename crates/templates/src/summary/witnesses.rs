//! Which invocations an entry keeps as its witnesses.

use std::cmp::Ordering;
use std::sync::Arc;

use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::{EntryIndex, EntryTotal, SubModel, WITNESSES, Witness};
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Event, NodeId, Operation, Origins, Toeg, TraceNames};

/// What the greatest witness of an entry is, in short, where the entry has as many as it keeps: what comes after it need not
/// be looked at.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The operation it is from, if it is from the one that was at hand when it was kept.
    operation: u64,
    /// Its scenario, if that is the one of that operation.
    scenario: Option<Name>,
    /// The first bytes of its run.
    run: u64,
    thread: u32,
    index: u32,
}

/// An entry that has room for witnesses.
const ROOM: Cut = Cut { operation: 0, scenario: None, run: u64::MAX, thread: u32::MAX, index: u32::MAX };

/// The cuts of all entries, and the operation at hand.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// By entry.
    list: Vec<Cut>,
    operation: u64,
    run: u64,
}

impl Cuts {
    /// Goes on to another operation.
    pub(super) fn next_operation(&mut self, operation: &Operation) {
        self.operation += 1;
        self.run = beginning(&operation.run);
    }

    /// Keeps the invocation that was accepted at a node among the entry's witnesses if it is one of the least; most are
    /// not, and cost no allocation.
    #[inline]
    pub(super) fn add_witness(
        &mut self,
        submodel: &mut SubModel,
        index: EntryIndex,
        toeg: &Toeg,
        names: &TraceNames,
        accepted_at: NodeId,
    ) {
        if self.list.len() <= index.index() {
            self.list.resize(index.index() + 1, ROOM);
        }
        let operation = toeg.operation();
        let cut = &self.list[index.index()];
        if cut.scenario == Some(operation.scenario) && self.run > cut.run {
            return;
        }
        let event = toeg.event(if accepted_at == NONE { toeg.root() } else { accepted_at });
        if cut.operation == self.operation && (event.thread, event.index) > (cut.thread, cut.index) {
            return;
        }
        let entry = submodel.entry_mut(index);
        if is_among_the_least(entry, operation, names, event) {
            entry.add_witness(&witness(operation, names, event));
        }
        if entry.witnesses.len() == WITNESSES {
            let last = &entry.witnesses[WITNESSES - 1];
            let same_scenario = *last.scenario == *names.names.text(operation.scenario);
            self.list[index.index()] = Cut {
                operation: if Arc::ptr_eq(&last.run, &operation.run) { self.operation } else { 0 },
                scenario: same_scenario.then_some(operation.scenario),
                run: beginning(&last.run),
                thread: last.thread,
                index: last.index,
            };
        }
    }
}

/// The first eight bytes of a run as a number: where it is greater, the run is.
fn beginning(run: &str) -> u64 {
    let mut bytes = [0; 8];
    let count = run.len().min(8);
    bytes[..count].copy_from_slice(&run.as_bytes()[..count]);
    u64::from_be_bytes(bytes)
}

fn is_among_the_least(entry: &EntryTotal, operation: &Operation, names: &TraceNames, event: &Event) -> bool {
    if entry.witnesses.len() < WITNESSES {
        return true;
    }
    let last = &entry.witnesses[WITNESSES - 1];
    let order = names
        .names
        .text(operation.scenario)
        .cmp(&last.scenario)
        .then_with(|| (*operation.run).cmp(&*last.run))
        .then_with(|| (event.thread, event.index).cmp(&(last.thread, last.index)))
        .then_with(|| (*operation.file).cmp(&*last.file));
    order != Ordering::Greater
}

fn witness(operation: &Operation, names: &TraceNames, event: &Event) -> Witness {
    let item: Arc<str> = match &operation.origins {
        Origins::Lines => event.origin.to_string().into(),
        Origins::Items(items) => items.get(event.origin as usize).map(|item| Arc::clone(&item.id)).unwrap_or_default(),
    };
    Witness {
        scenario: names.names.shared(operation.scenario),
        run: Arc::clone(&operation.run),
        thread: event.thread,
        index: event.index,
        file: Arc::clone(&operation.file),
        item,
    }
}
