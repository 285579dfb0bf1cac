//! From files of records to what is known of each path and each function.

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use rustc_hash::FxHashMap;

use crate::abnormal::{Abnormal, Kind, Spot};
use crate::calls::CallTree;
use crate::codes;
use crate::context::{ContextTree, Key};
use crate::graph::{NodeKind, function_name};
use crate::groups::{GroupTable, ProcessorGroups};
use crate::input::{Input, Merged, Reading};
use crate::latency::{Latency, Statistics};
use crate::machine::{Machine, Measure};
use crate::record::{Name, Tables};
use crate::window::Window;

/// How records are analysed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which processors count as one.
    pub groups: ProcessorGroups,
    /// How the overhead of probes is taken off latencies.
    pub latency: Latency,
    /// The clock that times are taken from.
    pub measure: Measure,
    /// How many records may stand between a record and its place in its chain. Memory is in proportion to it.
    pub window: usize,
    /// How many single calls [`Profile::calls`] keeps at most; where there are more, it keeps none. Memory is in proportion to them.
    pub keep_calls: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            groups: ProcessorGroups::default(),
            latency: Latency::default(),
            measure: Measure::default(),
            window: 1 << 19,
            keep_calls: 0,
        }
    }
}

/// What records come to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The processor groups: the coordinates of each vector.
    pub groups: Vec<String>,
    /// The calls, merged by path.
    pub contexts: ContextTree,
    /// The damage, by kind.
    pub abnormal: Vec<Abnormal>,
    /// Every call, where it was asked for.
    pub calls: Option<CallTree>,
    /// What was met on the way of reading.
    pub reading: Reading,
    /// Whether times are of the clock on the wall, for want of processor times or by choice.
    pub wall: bool,
    /// Calls and threads that the Global Virtual Main made.
    pub operations: u64,
    /// Calls and branches that were given up.
    pub cancelled: u64,
    /// By group, the processor time of the processes that no function accounts for: stubs, skeletons and the runtime. None where no process of
    /// the group told what it used in all.
    pub unattributed: Vec<Option<i64>>,
    /// By group, what of the unattributed time the probes took themselves, as far as records and headers tell.
    pub probes: Vec<i64>,
    probes_of: FxHashMap<[Name; 2], i64>,
    pub(crate) statistics: Vec<Statistics>,
    pub(crate) functions: Vec<[Name; 3]>,
    pub(crate) tables: Tables,
}

/// Reads files of records and follows all chains, in one pass and in memory that grows with the number of paths, not of calls.
///
/// # Errors
/// When a file cannot be read to its end, or none of them holds a record.
///
/// ```
/// use dyelog_callgraph::{Input, Options, analyse};
///
/// let records = r#"{"calls":1}
/// {"chain":"c","event":1,"probe":"stub_start","interface":"Shop","function":"buy","processor":"web","cpu":[0,1]}
/// {"chain":"c","event":2,"probe":"skel_start","interface":"Shop","function":"buy","processor":"db","cpu":[100,101]}
/// {"chain":"c","event":3,"probe":"skel_end","interface":"Shop","function":"buy","processor":"db","cpu":[151,152]}
/// {"chain":"c","event":4,"probe":"stub_end","interface":"Shop","function":"buy","processor":"web","cpu":[9,10]}
/// "#;
/// let profile = analyse(vec![Input::new("records", records.as_bytes())], &Options::default())?;
/// assert_eq!(profile.contexts.total(), 50);
/// assert!(profile.abnormal.is_empty());
/// # Ok::<(), dyelog_diagnostic::Diagnostics>(())
/// ```
pub fn analyse(inputs: Vec<Input<'_>>, options: &Options) -> Result<Profile, Diagnostics> {
    let mut reading = Reading::default();
    let mut machine = Machine::new(GroupTable::new(&options.groups), options.latency, options.keep_calls);
    let mut window = Window::new(options.window, options.measure);
    let mut merged = Merged::new(inputs, &mut reading)?;
    while let Some(record) = merged.next(&mut machine.tables, &mut reading)? {
        window.push(record, &mut machine);
    }
    if reading.records == 0 {
        let mut findings = vec![
            Diagnostic::error(codes::NOT_RECORDS, Place::Nowhere, "there are no probe records in the input")
                .with_hint("records are JSON Lines with `chain`, `event` and `probe`, or their binary form"),
        ];
        // One line that is no record is enough to see what the file is instead.
        findings.extend(reading.findings.into_iter().take(1));
        return Err(Diagnostics(findings));
    }
    window.finish(&mut machine);
    Ok(conclude(machine, reading))
}

pub(crate) fn conclude(mut machine: Machine, reading: Reading) -> Profile {
    debug_assert!(machine.waiting.is_settled(), "each latency knows what it waits for");
    if reading.unreadable > 0 {
        machine.counts.add(Kind::Unreadable, reading.unreadable, Spot::NOWHERE);
    }
    let used: Vec<(u16, i64)> =
        reading.processes.iter().map(|time| (machine.groups.of(time.processor, &machine.tables), time.cpu)).collect();
    let (groups, places) = machine.groups.shown();
    machine.contexts.settle(&places);
    if let Some(calls) = &mut machine.calls {
        calls.settle(&places);
    }
    let unattributed = if machine.wall {
        vec![None; groups.len()]
    } else {
        unattributed(&machine.contexts, groups.len(), &used, &places)
    };
    let (mut probes, mut probes_of) = (vec![0i64; groups.len()], FxHashMap::<_, i64>::default());
    for (place, group, time) in machine.probes().filter(|_| !machine.wall) {
        let (of_group, of_process) =
            (&mut probes[usize::from(places[usize::from(group)])], probes_of.entry(place).or_default());
        (*of_group, *of_process) = (of_group.saturating_add(time), of_process.saturating_add(time));
    }
    Profile {
        probes,
        probes_of,
        groups,
        abnormal: machine.counts.list(&machine.tables),
        contexts: machine.contexts,
        calls: machine.calls,
        reading,
        wall: machine.wall,
        operations: machine.operations,
        cancelled: machine.cancelled,
        unattributed,
        statistics: machine.statistics,
        functions: machine.functions,
        tables: machine.tables,
    }
}

fn unattributed(contexts: &ContextTree, groups: usize, used: &[(u16, i64)], places: &[u16]) -> Vec<Option<i64>> {
    let mut left: Vec<Option<i64>> = vec![None; groups];
    for (group, time) in used {
        let left = &mut left[usize::from(places[usize::from(*group)])];
        *left = Some(left.unwrap_or(0).saturating_add(*time));
    }
    for node in 0..contexts.len() {
        if let Some(Some(left)) = contexts.group(node).map(|group| &mut left[group]) {
            *left = left.saturating_sub(contexts.time(node));
        }
    }
    left
}

impl Profile {
    /// What probes of a process took beside all functions, nanoseconds of the processor.
    pub fn probes_of(&self, process: Name, processor: Name) -> i64 {
        self.probes_of.get(&[process, processor]).copied().unwrap_or(0)
    }

    /// What is known of the single invocations of a function, or of threads.
    pub fn statistics(&self, key: Key) -> &Statistics {
        &self.statistics[key.index()]
    }

    /// Interface, function and object; empty for the Global Virtual Main and where they are not given.
    pub fn names(&self, key: Key) -> [&str; 3] {
        self.functions[key.owner()].map(|name| self.tables.text(name))
    }

    /// The names of sites and chains, which [`Profile::calls`] points to.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What to call it: `Mod::Printer::print`, with the object in brackets where there is one and `objects` asks for it.
    pub fn label(&self, key: Key, objects: bool) -> String {
        let [interface, function, object] = self.names(key);
        let kind = match (key.is_thread(), key.owner()) {
            (true, _) => NodeKind::Thread,
            (false, 0) => NodeKind::Main,
            (false, _) => NodeKind::Function,
        };
        kind.label(&function_name(interface, function), if objects { object } else { "" })
    }

    /// What time was spent, by group, in paths and all that lies beneath them, one group at a time.
    ///
    /// The second argument of `each` has the time of each path of the tree with all that lies beneath it, in nanoseconds.
    pub(crate) fn inclusive(contexts: &ContextTree, groups: usize, mut each: impl FnMut(usize, &[i64])) {
        let mut times = vec![0i64; contexts.len()];
        for group in 0..groups {
            for (node, time) in times.iter_mut().enumerate() {
                *time = if contexts.group(node) == Some(group) { contexts.time(node) } else { 0 };
            }
            for node in (1..times.len()).rev() {
                if let Some(parent) = contexts.parent(node) {
                    times[parent] += times[node];
                }
            }
            each(group, &times);
        }
    }
}
