//! What a process uses beside its functions: stubs, skeletons, the runtime and the system beneath.

use dyelog_callgraph::{Call, ClockReading, Name, Profile, SiteId};
use rustc_hash::FxHashMap;

/// Where something runs: process and processor.
pub type Place = [Name; 2];

/// What one end of a call takes in each process, nanoseconds.
pub struct Runtime<'a> {
    profile: &'a Profile,
    each: FxHashMap<Place, i64>,
    /// The shortest way there and back from one process to another of the same processor.
    shortest: FxHashMap<[Place; 2], i64>,
}

/// The intervals of a call on both sides when the work at its ends counts with them and not with the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    pub outside: ClockReading,
    pub inside: ClockReading,
}

impl<'a> Runtime<'a> {
    /// What measured processes used beside all functions, in equal shares. A call of the Global Virtual Main that has no stub counts as a
    /// request from outside.
    pub fn of(profile: &'a Profile) -> Self {
        let mut runtime = Self { profile, each: FxHashMap::default(), shortest: FxHashMap::default() };
        let Some(calls) = profile.calls.as_ref().filter(|_| !profile.wall && !profile.reading.processes.is_empty())
        else {
            return runtime;
        };
        let mut left: FxHashMap<Place, (i64, i64)> = FxHashMap::default();
        for time in &profile.reading.processes {
            // The program without its probes is what is asked about.
            let probes = profile.probes_of(time.process, time.processor);
            left.entry([time.process, time.processor]).or_default().0 += time.cpu.max(0).saturating_sub(probes);
        }
        for (number, call) in calls.calls().iter().enumerate() {
            let place = runtime.place(call.site);
            if let Some((time, ends)) = left.get_mut(&place) {
                *time = time.saturating_sub(call.time.unwrap_or(0));
                *ends += i64::from(is_end(call, calls.parent(number).is_none()));
            }
            let Some(caller) = call.caller.filter(|_| is_remote(call)).map(|site| runtime.place(site)) else {
                continue;
            };
            if let Some((_, ends)) = left.get_mut(&caller) {
                *ends += 1;
            }
            if let Some(way) = way(call).filter(|_| caller[1] == place[1]) {
                let shortest = runtime.shortest.entry([caller, place]).or_insert(way);
                *shortest = way.min(*shortest);
            }
        }
        let used = left.into_iter().filter(|(_, (time, ends))| *time > 0 && *ends > 0);
        runtime.each = used.map(|(place, (time, ends))| (place, time / ends)).collect();
        runtime
    }

    fn place(&self, site: SiteId) -> Place {
        place_of(self.profile, site)
    }

    fn at(&self, site: SiteId) -> i64 {
        self.each.get(&self.place(site)).copied().unwrap_or(0)
    }

    /// What the process of the function takes beside it, nanoseconds.
    pub fn of_function(&self, call: &Call, root: bool) -> i64 {
        if is_end(call, root) { self.at(call.site) } else { 0 }
    }

    /// What the process of the caller takes, nanoseconds.
    pub fn of_caller(&self, call: &Call) -> i64 {
        call.caller.filter(|_| is_remote(call)).map_or(0, |site| self.at(site))
    }

    /// The intervals of a call whose caller waits. On the way remains what it takes beside the work at its ends. Between processes of one processor
    /// that is what the shortest way takes: on any longer one something waited for the processor, and waiting is for solvers to tell.
    pub fn intervals(&self, call: &Call) -> Intervals {
        let (caller, function) = (self.of_caller(call), self.of_function(call, false));
        let both = caller.saturating_add(function);
        let known = Intervals { outside: call.outside, inside: call.inside };
        let (Some(way), Some(site)) = (way(call).filter(|_| both > 0), call.caller) else { return known };
        let shortest = self.shortest.get(&[self.place(site), self.place(call.site)]).copied();
        let remains = shortest.unwrap_or(way).min(way).saturating_sub(both).max(0);
        let rest = way - remains;
        let of_caller = (i128::from(rest) * i128::from(caller) / i128::from(both)) as i64;
        let of_function = rest - of_caller;
        // Half of it before, half behind; the odd nanosecond is behind.
        let narrower = |reading: ClockReading, by: i64| ClockReading {
            begin: reading.begin.saturating_add(by / 2),
            end: reading.end.saturating_sub(by - by / 2),
        };
        Intervals { outside: narrower(call.outside, of_caller), inside: narrower(call.inside, -of_function) }
    }
}

/// Where a site is.
pub fn place_of(profile: &Profile, site: SiteId) -> Place {
    let site = profile.tables().of(site);
    [site.process, site.processor]
}

/// Network latency of a call, both ways.
fn way(call: &Call) -> Option<i64> {
    let known = call.outside.is_some() && call.inside.is_some();
    known.then(|| call.outside.duration().saturating_sub(call.inside.duration()).max(0))
}

fn is_remote(call: &Call) -> bool {
    !call.collocated && !call.key.is_thread()
}

/// Whether a call is taken up by a process: it comes from another one, or from outside.
pub fn is_end(call: &Call, root: bool) -> bool {
    is_remote(call) || root && !call.key.is_thread()
}
