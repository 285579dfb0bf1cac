//! A profile from calls that are known as a whole, as those of spans are.

use crate::abnormal::{Kind, Spot};
use crate::calls::{Call, CallTree};
use crate::context::{Key, NONE};
use crate::groups::GroupTable;
use crate::input::Reading;
use crate::machine::Machine;
use crate::profile::{Options, Profile, conclude};
use crate::record::{ChainId, Name, Reading as ClockReading, SiteId, Tables};

/// A call of which begin, end and place are known at once. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct WholeCall {
    /// The call that made it; none for a call of the Global Virtual Main.
    pub parent: Option<Made>,
    /// Where it runs; its function has a name.
    pub site: SiteId,
    /// Where its caller runs, if a caller in another process was recorded.
    pub caller: Option<SiteId>,
    /// The causal chain.
    pub chain: ChainId,
    /// Its number in the chain, from 1: calls of one caller are in this order.
    pub event: u32,
    /// Whether it runs in the process of its caller.
    pub collocated: bool,
    /// Whether its caller does not wait.
    pub detached: bool,
    /// What it spent itself, if that was measured.
    pub time: Option<i64>,
    /// From its begin to its end as its caller sees it.
    pub latency: Option<i64>,
    /// Its interval on the side of the caller.
    pub outside: ClockReading,
    /// Its interval on the side of the function.
    pub inside: ClockReading,
}

/// A call that a [`Builder`] has.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    context: u32,
    call: u32,
}

/// Adds up calls, each after the one that made it.
///
/// ```
/// use dyelog_callgraph::{Builder, ClockReading, Graph, Granularity, Options, Reading, Site, WholeCall};
///
/// let mut builder = Builder::new(&Options::default(), false);
/// let tables = builder.tables();
/// let (interface, function, processor) = (tables.name("Shop"), tables.name("buy"), tables.name("web"));
/// let site = tables.site(Site { interface, function, processor, ..Site::default() });
/// let (chain, none) = (tables.chain("c"), ClockReading::NONE);
/// let call = WholeCall {
///     parent: None,
///     site,
///     caller: None,
///     chain,
///     event: 1,
///     collocated: true,
///     detached: false,
///     time: Some(70),
///     latency: Some(100),
///     outside: none,
///     inside: none,
/// };
/// let buy = builder.call(&call);
/// builder.call(&WholeCall { parent: Some(buy), event: 2, time: Some(30), ..call });
/// let profile = builder.finish(Reading::default());
/// assert_eq!(Graph::of(&profile, &Granularity::default()).total(), [100]);
/// ```
pub struct Builder {
    machine: Machine,
    unattributed: Vec<(Name, i64)>,
}

impl Builder {
    /// No calls yet; `wall` says whether their times are of the clock on the wall.
    pub fn new(options: &Options, wall: bool) -> Self {
        let mut machine = Machine::new(GroupTable::new(&options.groups), options.latency, options.keep_calls);
        machine.wall = wall;
        Self { machine, unattributed: Vec::new() }
    }

    /// The names that calls refer to.
    pub fn tables(&mut self) -> &mut Tables {
        &mut self.machine.tables
    }

    /// Adds a call.
    pub fn call(&mut self, call: &WholeCall) -> Made {
        let machine = &mut self.machine;
        machine.learn_sites();
        let info = machine.site(call.site);
        let around = call.parent.unwrap_or(Made { context: 0, call: NONE });
        machine.operations += u64::from(call.parent.is_none());
        let key = Key::function(info.function);
        let context = machine.contexts.child(around.context, key, info.group);
        machine.contexts.enter(context);
        if let Some(time) = call.time {
            if machine.contexts.spend(context, time) {
                machine.statistics[key.index()].time.add(time);
            } else {
                machine.counts.one(Kind::Overflow, Spot::NOWHERE);
            }
        }
        if let Some(latency) = call.latency {
            machine.statistics[key.index()].latency.add(latency);
        }
        let number = machine.keep(|| Call {
            parent: around.call,
            group: info.group,
            key,
            site: call.site,
            caller: call.caller,
            chain: call.chain,
            event: call.event,
            at: call.event,
            collocated: call.collocated,
            detached: call.detached,
            complete: true,
            time: call.time,
            outside: call.outside,
            inside: call.inside,
        });
        Made { context, call: number }
    }

    /// Counts damage that has no record to stand for it.
    pub fn damage(&mut self, kind: Kind, count: u64) {
        self.machine.counts.add(kind, count, Spot::NOWHERE);
    }

    /// Adds time of a processor that no call accounts for.
    pub fn unattributed(&mut self, processor: Name, time: i64) {
        self.unattributed.push((processor, time));
    }

    /// What all calls come to. The reading tells what was met on the way.
    pub fn finish(mut self, reading: Reading) -> Profile {
        let Self { machine, unattributed, .. } = &mut self;
        let groups: Vec<(u16, i64)> = std::mem::take(unattributed)
            .into_iter()
            .map(|(processor, time)| (machine.groups.of(processor, &machine.tables), time))
            .collect();
        let places = machine.groups.shown().1;
        let mut profile = conclude(self.machine, reading);
        for (group, time) in groups {
            let own = &mut profile.unattributed[usize::from(places[usize::from(group)])];
            *own = Some(own.unwrap_or(0).saturating_add(time));
        }
        profile
    }
}

impl Machine {
    /// Keeps a call where calls are kept; where there are too many, none is. Gives its number.
    pub(super) fn keep(&mut self, call: impl FnOnce() -> Call) -> u32 {
        let Some(calls) = &mut self.calls else { return NONE };
        if calls.calls().len() >= self.keep_calls {
            self.calls = None;
            return NONE;
        }
        CallTree::open(calls, call())
    }
}
