//! Clocks that differ, per pair of machines or services.
//!
//! A server works within the time that its client waits. Where it seems not to, its clock is off, and by the same amount in
//! all calls between the two: each call bounds the amount from both sides, and the amount that satisfies most calls is
//! taken (the classical bounds of clock synchronisation, of all calls at once). A server that takes longer than its client waits has a second
//! phase; such a call only says that the server began while the client waited, and proposes no offset. Nothing is moved
//! where no offset satisfies more calls than none does. Where servers have second phases, those are why a server ends after its client if a third of those that could end in time do, and
//! servers begin while their clients wait.
//!
//! Clocks drift, and are set. Where an offset of its own for each of several periods of time satisfies at least 5% more of the calls, the
//! offset goes from the one to the next in straight lines.
//!
//! Without a client half, only the time of the calling visit bounds the amount, and work that is simply deferred looks the
//! same; so there an offset is taken only if three calls agree on it, and a drift, or a clock that is set, only if one straight line, or a few offsets one after the other, satisfy nearly
//! all calls, and clearly more than any offset does that does not change.
//!
//! Where all that passes between two machines are messages, only the send bounds the amount, and from one side: work on a message begins after it was sent. Where much of it seems
//! to begin before that, the least amount is taken that satisfies nearly all messages.
//!
//! Operations that begin by different clocks come to one of them, too: of each pair the offset leads from clock to clock (a spanning tree of those with most calls), so that what a
//! server does for several clients is seen by one clock. The offset of a pair that closes a circle is that of the way round, where its calls allow that as well.
//!
//! What names one machine has one clock. Where calls between services that name the same one contradict that, by more than clocks stray and most of them
//! alike, the name is no machine's, and each of them has a clock of its own.

use std::cmp::Reverse;

use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::spans::model::Clock;
use crate::spans::pipeline::SLACK;
use dyelog_diagnostic::names::{Name, Names};

/// The fewest calls that contradict a common clock.
const ENOUGH: usize = 10;

/// So many calls make a period of time with an offset of its own.
const PERIOD: usize = 20;

/// More periods than that are not told apart.
const MOST_PERIODS: usize = 64;

/// From this part of calls on, servers that take longer than their clients wait tell of second phases: (2, 100).
const SOME: (usize, usize) = (2, 100);

/// No more than this part is hardly any: (10, 100).
const FEW: (usize, usize) = (10, 100);

/// An offset that leads round a circle is as good as a pair's own if at most one of so many calls allows it less.
const CLOSELY: usize = 100;

/// What one call says of the offset between two clocks.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// When, by the callee's clock.
    at: i64,
    low: i64,
    high: i64,
    /// The most for which the callee begins before its caller has the answer.
    answered: i64,
}

impl Bound {
    fn allows(&self, offset: i64) -> bool {
        self.low <= offset && offset <= self.high
    }
}

/// The bounds that calls set on the offset between two clocks.
#[derive(Clone, Debug, Default)]
struct Bounds {
    /// The server works within the client's time.
    strong: Vec<Bound>,
    /// The server works within the time of the calling visit.
    weak: Vec<Bound>,
    /// It works for longer than the calling visit takes: when, by the callee's clock.
    longer: Vec<i64>,
    /// The server begins within the client's time.
    starts: Vec<Bound>,
    /// The work on a message begins after it was sent: by the callee's clock when it does, and how much before that.
    sent: Vec<(i64, i64)>,
}

/// The offset of a clock over time: at each of these times of its own, linear between them.
#[derive(Clone, Debug)]
struct Offset(Vec<(i64, i64)>);

/// Collects bounds, then offsets.
#[derive(Debug, Default)]
pub struct Skew {
    bounds: FxHashMap<(Clock, Clock), Bounds>,
    offsets: FxHashMap<(Clock, Clock), Offset>,
    /// From clock to clock, for each that is not the one that all come to: whether the next is the caller's.
    next: FxHashMap<Clock, (Clock, bool)>,
    /// Names of machines whose services have clocks that differ.
    several: FxHashSet<Name>,
}

/// What one call tells about two clocks: start and end at the caller, start and end at the callee.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The caller's clock.
    pub from: Clock,
    /// The callee's clock.
    pub to: Clock,
    /// The time that bounds the callee's.
    pub outer: (i64, i64),
    /// The callee's time.
    pub inner: (i64, i64),
    /// Whether the caller recorded the call itself.
    pub client: bool,
    /// Whether it is a message, which nobody waits for.
    pub is_message: bool,
}

impl Skew {
    /// Takes in a call.
    pub fn observe(&mut self, call: Observation) {
        if call.from == call.to {
            return;
        }
        let at = call.inner.0;
        let low = call.outer.0.saturating_sub(call.inner.0);
        let high = call.outer.1.saturating_sub(call.inner.1);
        let answered = call.outer.1.saturating_sub(call.inner.0);
        let bounds = self.bounds.entry((call.from, call.to)).or_default();
        if call.is_message {
            bounds.sent.push((at, low));
            return;
        }
        match (low <= high, call.client) {
            (true, true) => bounds.strong.push(Bound { at, low, high, answered }),
            (true, false) => bounds.weak.push(Bound { at, low, high, answered }),
            (false, true) => {
                bounds.starts.push(Bound { at, low, high: answered, answered });
            }
            (false, false) => bounds.longer.push(at),
        }
    }

    /// Decides on the offsets. Names tell clocks apart, in whatever order they were met.
    pub fn fit(&mut self, names: &Names) {
        let all = std::mem::take(&mut self.bounds);
        let contradict = |((from, to), bounds): (&(Clock, Clock), &Bounds)| {
            from.machine().filter(|machine| to.machine() == Some(*machine) && bounds.contradict_one_clock())
        };
        self.several = all.iter().filter_map(contradict).collect();
        let mut together: FxHashMap<(Clock, Clock), Bounds> = FxHashMap::default();
        for ((from, to), bounds) in all {
            let (from, to) = (self.clock(from), self.clock(to));
            if from != to {
                together.entry((from, to)).or_default().append(bounds);
            }
        }
        let mut pairs = Vec::with_capacity(together.len());
        for (&(from, to), bounds) in &together {
            let (is_waited_for, calls, first) = (bounds.is_waited_for(), bounds.count(), bounds.times().min());
            pairs.push(Pair { from, to, is_waited_for, calls, first: first.unwrap_or(i64::MAX) });
            if let Some(offset) = bounds.offset() {
                self.offsets.insert((from, to), offset);
            }
        }
        if !self.offsets.is_empty() {
            self.next = ways(pairs, names);
            self.close_circles(&together);
        }
    }

    /// Gives pairs that are not part of the tree the offset that leads round by it, as far as their calls allow: were each offset as far off as its calls leave open, a server
    /// would see its clients by as many clocks.
    fn close_circles(&mut self, together: &FxHashMap<(Clock, Clock), Bounds>) {
        let is_in_tree = |(from, to): &(Clock, Clock)| {
            self.next.get(to) == Some(&(*from, true)) || self.next.get(from) == Some(&(*to, false))
        };
        let mut round = Vec::new();
        for (pair, bounds) in together.iter().filter(|(pair, _)| !is_in_tree(pair)) {
            let (first, last) = (bounds.times().min().unwrap_or(0), bounds.times().max().unwrap_or(0));
            let offset = Offset::sampled(first, last, |at| self.round(*pair, at));
            let own =
                self.offsets.get(pair).map_or_else(|| bounds.allowed(&Offset::constant(0)), |own| bounds.allowed(own));
            if bounds.allowed(&offset) + bounds.count() / CLOSELY >= own {
                round.push((*pair, offset));
            }
        }
        for (pair, offset) in round {
            if offset.is_none() {
                self.offsets.remove(&pair);
            } else {
                self.offsets.insert(pair, offset);
            }
        }
    }

    /// The offset between two clocks as the tree has it.
    fn round(&self, (from, to): (Clock, Clock), at: i64) -> i64 {
        /// Clocks drift by so little that few steps lead to the time that has an offset of its own.
        const STEPS: usize = 3;
        let common = at.saturating_add(self.base(to, at));
        let mut time = common;
        for _ in 0..STEPS {
            time = common.saturating_sub(self.base(from, time));
        }
        time.saturating_sub(at)
    }

    /// The clock that a span was recorded by: that of its machine, unless the name is that of several.
    pub fn clock(&self, clock: Clock) -> Clock {
        let is_several = clock.machine().is_some_and(|machine| self.several.contains(&machine));
        if is_several { clock.of_service() } else { clock.of_machine() }
    }

    /// Names of machines whose services have clocks that differ, in no particular order.
    pub fn several(&self) -> impl Iterator<Item = Name> + '_ {
        self.several.iter().copied()
    }

    /// What to add to times of the second clock about that one, to compare them with the first.
    pub fn offset(&self, from: Clock, to: Clock, at: i64) -> i64 {
        self.offsets.get(&(from, to)).map_or(0, |offset| offset.at(at))
    }

    /// What to add to times of the second clock, to compare them with the first, for a call of the first from one time to another that the second sees so. A clock that was set back shows
    /// some times twice: of the offsets about such a time the one is taken that the call allows.
    pub fn offset_of_call(&self, (from, to): (Clock, Clock), outer: (i64, i64), inner: (i64, i64)) -> i64 {
        let Some(offset) = self.offsets.get(&(from, to)) else { return 0 };
        let own = offset.at(inner.0);
        let allows =
            |offset: i64| outer.0 <= inner.0.saturating_add(offset) && inner.1.saturating_add(offset) <= outer.1;
        if allows(own) { own } else { offset.set_about(inner.0).find(|offset| allows(*offset)).unwrap_or(own) }
    }

    /// What to add to times of a clock about that one where an operation begins, to compare them with operations that begin by other clocks.
    pub fn base(&self, clock: Clock, at: i64) -> i64 {
        let (mut clock, mut time) = (clock, at);
        while let Some(&(next, is_caller)) = self.next.get(&clock) {
            time = if is_caller {
                time.saturating_add(self.offset(next, clock, time))
            } else {
                // The offset is that at a time by the callee's clock.
                let about = time.saturating_sub(self.offset(clock, next, time));
                time.saturating_sub(self.offset(clock, next, about))
            };
            clock = next;
        }
        time.saturating_sub(at)
    }

    /// The least and the greatest offset of all pairs but those of none, in no particular order.
    pub fn offsets(&self) -> impl Iterator<Item = (Clock, Clock, (i64, i64))> + '_ {
        self.offsets.iter().map(|((from, to), Offset(points))| {
            let offsets = || points.iter().map(|(_, offset)| *offset);
            (*from, *to, (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0)))
        })
    }
}

/// Two clocks, the caller's first.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: Clock,
    to: Clock,
    /// Whether clients wait for any of the calls: these tell more than messages do.
    is_waited_for: bool,
    calls: usize,
    /// The first call, by the callee's clock.
    first: i64,
}

/// The way from each clock to one that all come to: in a spanning tree of pairs with most calls, to the clock that is called by no other and calls most. What tells equals apart
/// depends on nothing but the calls and the names.
fn ways(mut pairs: Vec<Pair>, names: &Names) -> FxHashMap<Clock, (Clock, bool)> {
    let mut clocks: FxHashMap<Clock, (bool, Reverse<usize>, i64)> = FxHashMap::default();
    for pair in &pairs {
        for (clock, is_called) in [(pair.from, false), (pair.to, true)] {
            let own = clocks.entry(clock).or_insert((false, Reverse(0), i64::MAX));
            own.0 |= is_called;
            own.1.0 += if is_called { 0 } else { pair.calls };
            own.2 = own.2.min(pair.first);
        }
    }
    let mut ranked: Vec<Clock> = clocks.keys().copied().collect();
    ranked.sort_by_cached_key(|clock| (clocks[clock], clock.texts(names)));
    pairs.sort_by_cached_key(|pair| {
        (Reverse((pair.is_waited_for, pair.calls)), pair.first, pair.from.texts(names), pair.to.texts(names))
    });
    let places: FxHashMap<Clock, usize> = ranked.iter().enumerate().map(|(place, clock)| (*clock, place)).collect();
    let mut trees = UnionFind::new(ranked.len());
    let mut beside: FxHashMap<Clock, Vec<(Clock, bool)>> = FxHashMap::default();
    for pair in pairs {
        if trees.union(places[&pair.from], places[&pair.to]) {
            beside.entry(pair.from).or_default().push((pair.to, true));
            beside.entry(pair.to).or_default().push((pair.from, false));
        }
    }
    let mut next = FxHashMap::default();
    let mut reached: FxHashSet<Clock> = FxHashSet::default();
    for clock in ranked {
        let mut open = if reached.insert(clock) { vec![clock] } else { Vec::new() };
        while let Some(at) = open.pop() {
            for &(other, is_caller) in &beside[&at] {
                if reached.insert(other) {
                    next.insert(other, (at, is_caller));
                    open.push(other);
                }
            }
        }
    }
    next
}

impl Bounds {
    fn count(&self) -> usize {
        self.times().count()
    }

    /// When the calls were, by the callee's clock.
    fn times(&self) -> impl Iterator<Item = i64> + '_ {
        let waited = self.strong.iter().chain(&self.weak).chain(&self.starts).map(|bound| bound.at);
        waited.chain(self.sent.iter().map(|(at, _)| *at))
    }

    /// Whether clients wait for any of the calls.
    fn is_waited_for(&self) -> bool {
        !(self.strong.is_empty() && self.weak.is_empty() && self.starts.is_empty())
    }

    /// How many calls allow an offset: those that their client recorded, where there are any; messages, where there is nothing else.
    fn allowed(&self, offset: &Offset) -> usize {
        if !self.is_waited_for() {
            return self.sent.iter().filter(|(at, low)| *low <= offset.at(*at)).count();
        }
        let of = |bounds: &[Bound]| bounds.iter().filter(|bound| offset.fits(bound)).count();
        if self.strong.is_empty() { of(&self.weak) } else { of(&self.strong) + of(&self.starts) }
    }

    /// Takes in those of other clocks that are the same.
    fn append(&mut self, mut other: Self) {
        self.strong.append(&mut other.strong);
        self.weak.append(&mut other.weak);
        self.longer.append(&mut other.longer);
        self.starts.append(&mut other.starts);
        self.sent.append(&mut other.sent);
    }

    /// Whether one clock cannot have had most of the times, and another offset fits nearly all of them.
    fn contradict_one_clock(&self) -> bool {
        let bounds = || self.strong.iter().chain(&self.starts);
        let fit_one = bounds().filter(|bound| bound.low <= SLACK && bound.high >= -SLACK).count();
        let all = bounds().count();
        if self.strong.is_empty() || all < ENOUGH || fit_one * 2 > all {
            return false;
        }
        let Some(offset) = self.offset() else { return false };
        bounds().filter(|bound| bound.allows(offset.at(bound.at))).count() * 10 >= all * 9
    }

    fn offset(&self) -> Option<Offset> {
        let Self { strong, weak, starts, .. } = self;
        let none = Offset::constant(0);
        if !self.is_waited_for() {
            return self.offset_of_messages();
        }
        if strong.is_empty() {
            let offset = Offset::constant(best(weak)?);
            let (satisfied, by_none) = (self.allowed(&offset), self.allowed(&none));
            let agreed = weak.len() >= 3 && satisfied * 10 >= weak.len() * 9 && by_none * 2 < weak.len();
            let twentieth = weak.len() / 20;
            if weak.len() >= 2 * PERIOD && satisfied.max(by_none) + twentieth < weak.len() {
                let mut sorted = weak.clone();
                sorted.sort_unstable_by_key(|bound| (bound.at, bound.low, bound.high));
                // Work that is deferred is so by no more as time goes by.
                let is_clear = |varying: &Offset| {
                    let allowed = self.allowed(varying);
                    allowed + twentieth >= weak.len() && allowed > satisfied.max(by_none) + twentieth
                };
                let steps = || Some(Offset::steps(&sorted)).filter(is_clear).filter(|steps| self.waits_for_all(steps));
                let varying = Offset::drift(&sorted).filter(is_clear).or_else(steps);
                if varying.is_some() {
                    return varying;
                }
            }
            return agreed.then_some(offset);
        }
        let mut offset = Offset::constant(best(strong)?);
        let mut most = self.allowed(&offset);
        let by_none = self.allowed(&none);
        if strong.len() >= 2 * PERIOD && most < strong.len() + starts.len() {
            let mut sorted = strong.clone();
            sorted.sort_unstable_by_key(|bound| (bound.at, bound.low, bound.high));
            let varying = Offset::varying(&sorted);
            let by_varying = self.allowed(&varying);
            if by_varying > most + strong.len() / 20 {
                (offset, most) = (varying, by_varying);
            }
        }
        (most > by_none && !second_phases_explain(strong, starts)).then_some(offset)
    }

    /// Whether, while the clock is off by that, hardly any server works for longer than its caller's visit takes. One that waits takes longer than what it waits for; work that is deferred from some
    /// time on does so as well, and shortens the visit.
    fn waits_for_all(&self, offset: &Offset) -> bool {
        let is_off = |at: &i64| offset.at(*at) != 0;
        let longer = self.longer.iter().filter(|at| is_off(at)).count();
        let all = longer + self.weak.iter().filter(|bound| is_off(&bound.at)).count();
        longer * LONGER.1 <= all * LONGER.0
    }

    /// The least offset by which nearly all work on messages begins after these were sent; `None` where hardly any begins before.
    fn offset_of_messages(&self) -> Option<Offset> {
        let early = self.sent.iter().filter(|(_, low)| *low > 0).count();
        if early * FEW.1 <= self.sent.len() * FEW.0 {
            return None;
        }
        let mut lows: Vec<i64> = self.sent.iter().map(|(_, low)| *low).collect();
        lows.sort_unstable_by_key(|low| Reverse(*low));
        lows.get(lows.len() / FIRST).map(|low| Offset::constant(*low))
    }
}

/// No more than this part of servers seems to work for longer than callers that wait for them (ours): (2, 100).
const LONGER: (usize, usize) = (2, 100);

/// The first of so many messages, by how much they seem to be worked on before they were sent, may have a cause of their own.
const FIRST: usize = 100;

/// Whether second phases are why servers end after their clients: there are some that take longer than their clients wait, hardly any server begins before its client or after it
/// has the answer, and many end in time as clocks are.
fn second_phases_explain(strong: &[Bound], starts: &[Bound]) -> bool {
    let all = strong.len() + starts.len();
    let apart = strong.iter().chain(starts).filter(|bound| bound.low > 0 || bound.answered < 0).count();
    let in_time = strong.iter().filter(|bound| bound.allows(0)).count();
    starts.len() * SOME.1 >= all * SOME.0 && apart * FEW.1 <= all * FEW.0 && in_time * 3 >= strong.len()
}

impl Offset {
    fn constant(offset: i64) -> Self {
        Self(vec![(0, offset)])
    }

    /// What a function has from one time to another.
    fn sampled(first: i64, last: i64, of: impl Fn(i64) -> i64) -> Self {
        let step = (last.saturating_sub(first) / MOST_PERIODS as i64).max(1);
        let times = (0..=MOST_PERIODS as i64).map(|number| first.saturating_add(step.saturating_mul(number)));
        let mut points: Vec<(i64, i64)> = times.map(|at| (at, of(at))).collect();
        if points.iter().all(|(_, offset)| *offset == points[0].1) {
            points.truncate(1);
        }
        Self(points)
    }

    /// Whether times stay as they are.
    fn is_none(&self) -> bool {
        self.0.iter().all(|(_, offset)| *offset == 0)
    }

    /// One offset for each of several periods of the same number of calls, which are sorted by time.
    fn varying(sorted: &[Bound]) -> Self {
        let periods = (sorted.len() / PERIOD).clamp(1, MOST_PERIODS);
        let points = sorted.chunks(sorted.len().div_ceil(periods)).filter_map(|period| {
            let middle = period[period.len() / 2].at;
            Some((middle, best(period)?))
        });
        Self(points.collect())
    }

    /// Offsets one after the other, as those of a clock that is set now and then; of calls that are sorted by time.
    fn steps(sorted: &[Bound]) -> Self {
        let every = sorted.len().div_ceil(MOST_SPLIT);
        let some: Vec<Bound> = sorted.iter().copied().step_by(every).collect();
        let mut ends = Vec::new();
        split(&some, (some.len() / MOST_PERIODS).max(PERIOD / 2), MOST_SPLITS, &mut ends, 0);
        ends.push(some.len());
        let mut points: Vec<(i64, i64)> = Vec::new();
        let mut begin = 0;
        for end in ends {
            let (offset, _) = satisfying(&some[begin..end]);
            if let Some((_, before)) = points.last().copied() {
                let allows = |at: usize, offset: i64| isize::from(sorted[at].allows(offset));
                // Which of the calls about it is the first by the new offset.
                let about = (begin.saturating_sub(PERIOD) * every)..((begin + PERIOD) * every).min(sorted.len());
                let (mut gain, mut most, mut first) = (0, 0, about.start);
                for at in about {
                    gain += allows(at, before) - allows(at, offset);
                    if gain > most {
                        (most, first) = (gain, at + 1);
                    }
                }
                let at = sorted.get(first).map_or(i64::MAX, |bound| bound.at);
                points.push((at.saturating_sub(1), before));
                points.push((at, offset));
            } else {
                points.push((sorted.first().map_or(0, |bound| bound.at), offset));
            }
            begin = end;
        }
        Self(points)
    }

    /// The straight line through the offsets of several periods, by least squares, of calls that are sorted by time; `None` where all are at one.
    fn drift(sorted: &[Bound]) -> Option<Self> {
        let Self(points) = Self::varying(sorted);
        let (first, last) = (points.first()?.0, points.last()?.0);
        let count = points.len() as f64;
        let since = |time: i64| time.saturating_sub(first) as f64;
        let mean = |of: &dyn Fn(&(i64, i64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (middle, level) = (mean(&|point| since(point.0)), mean(&|point| point.1 as f64));
        let spread = mean(&|point| (since(point.0) - middle).powi(2));
        if spread <= 0.0 {
            return None;
        }
        let slope = mean(&|point| (since(point.0) - middle) * (point.1 as f64 - level)) / spread;
        let at = |time: i64| (time, (level + slope * (since(time) - middle)).round() as i64);
        Some(Self(vec![at(sorted[0].at.min(first)), at(sorted[sorted.len() - 1].at.max(last))]))
    }

    /// Whether a call allows it.
    fn fits(&self, bound: &Bound) -> bool {
        bound.allows(self.at(bound.at)) || self.set_about(bound.at).any(|offset| bound.allows(offset))
    }

    /// The offsets before and after the clock was set, where that was no longer from this time than by how much it was.
    fn set_about(&self, time: i64) -> impl Iterator<Item = i64> + '_ {
        let is_near = move |pair: &&[(i64, i64)]| {
            let [(before, first), (after, last)] = pair else { return false };
            after.saturating_sub(*before) <= 1 && time.abs_diff(*after) <= first.abs_diff(*last)
        };
        self.0.windows(2).filter(is_near).flatten().map(|(_, offset)| *offset)
    }

    fn at(&self, time: i64) -> i64 {
        let Self(points) = self;
        let after = points.partition_point(|(at, _)| *at <= time);
        match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
            (Some((from, first)), Some(&(to, last))) => {
                let part = time.saturating_sub(from) as f64 / to.saturating_sub(from) as f64;
                first.saturating_add((last.saturating_sub(first) as f64 * part).round() as i64)
            }
            (Some((_, offset)), None) => offset,
            (None, first) => first.map_or(0, |(_, offset)| *offset),
        }
    }
}

/// So many calls are looked at, evenly spread, to see when a clock was set.
const MOST_SPLIT: usize = 4096;

/// Halves of halves are looked at so deep.
const MOST_SPLITS: usize = 3;

/// The offset that satisfies most calls, none where it satisfies as many, and how many.
fn satisfying(bounds: &[Bound]) -> (i64, usize) {
    let by = |offset: i64| (offset, bounds.iter().filter(|bound| bound.allows(offset)).count());
    let (none, best) = (by(0), by(best(bounds).unwrap_or(0)));
    if none.1 >= best.1 { none } else { best }
}

/// Finds where one offset before and another one after satisfy at least a twentieth more of the calls than one for all, no part being shorter than so many calls.
fn split(sorted: &[Bound], least: usize, depth: usize, ends: &mut Vec<usize>, begin: usize) {
    let twentieth = sorted.len() / 20;
    let (_, whole) = satisfying(sorted);
    if depth == 0 || whole + twentieth >= sorted.len() {
        return;
    }
    let places = (1..).map(|number| number * least).take_while(|place| place + least <= sorted.len());
    let both = |place: usize| satisfying(&sorted[..place]).1 + satisfying(&sorted[place..]).1;
    let best = places.map(|place| (both(place), Reverse(place))).max();
    if let Some((_, Reverse(place))) = best.filter(|(satisfied, _)| *satisfied > whole + twentieth) {
        split(&sorted[..place], least, depth - 1, ends, begin);
        ends.push(begin + place);
        split(&sorted[place..], least, depth - 1, ends, begin + place);
    }
}

/// The middle of the first range that satisfies most bounds.
fn best(bounds: &[Bound]) -> Option<i64> {
    // A bound opens at its low end and closes behind its high end.
    let mut edges: Vec<(i64, bool)> =
        bounds.iter().flat_map(|bound| [(bound.low, false), (bound.high, true)]).collect();
    edges.sort_unstable();
    let mut open = 0_usize;
    let mut found: Option<(usize, i64, i64)> = None;
    for (at, &(edge, closes)) in edges.iter().enumerate() {
        if closes {
            open -= 1;
        } else {
            open += 1;
            if found.is_none_or(|(most, ..)| open > most) {
                let end = edges.get(at + 1).map_or(edge, |next| next.0);
                found = Some((open, edge, end));
            }
        }
    }
    found.map(|(_, low, high)| low + (high - low) / 2)
}

#[cfg(test)]
mod tests {
    use dyelog_diagnostic::names::Names;

    use super::{Observation, Skew};
    use crate::spans::model::Clock;

    const MS: i64 = 1_000_000;

    fn clocks<const N: usize>(names: &mut Names) -> [Clock; N] {
        std::array::from_fn(|number| Clock::of(names.intern(&format!("host {number}"))))
    }

    /// Calls every 10 ms that take 1 ms each way and 2 ms there, with work after the reply, by a server whose clock is that far ahead.
    fn calls(from: Clock, to: Clock, ahead: i64, after: impl Fn(i64) -> i64) -> impl Iterator<Item = Observation> {
        (0..200).map(move |number| {
            let start = number * 10 * MS;
            let inner = (start + MS + ahead, start + 3 * MS + after(number) + ahead);
            Observation { from, to, outer: (start, start + 4 * MS), inner, client: true, is_message: false }
        })
    }

    fn fitted(names: &Names, calls: impl IntoIterator<Item = Observation>) -> Skew {
        let mut skew = Skew::default();
        calls.into_iter().for_each(|call| skew.observe(call));
        skew.fit(names);
        skew
    }

    #[test]
    fn second_phases_are_no_clocks() {
        let mut names = Names::default();
        let [from, to] = clocks(&mut names);
        // From none to 8 ms.
        let skew = fitted(&names, calls(from, to, 0, |number| number % 9 * MS));
        assert_eq!(skew.offset(from, to, 0), 0);
        // With few of them, a clock that is off is.
        let skew = fitted(&names, calls(from, to, 20 * MS, |number| if number % 10 == 0 { 8 * MS } else { 0 }));
        assert_eq!(skew.offset(from, to, 0), -20 * MS);
        // So is one by which servers begin after the answer.
        let skew = fitted(&names, calls(from, to, 300 * MS, |number| number % 9 * MS));
        assert!((skew.offset(from, to, 0) + 300 * MS).abs() <= 2 * MS, "{}", skew.offset(from, to, 0));
        // A server that seems to begin before it is called has a clock that is off, whatever follows.
        let skew = fitted(&names, calls(from, to, -20 * MS, |number| number % 9 * MS));
        assert!((skew.offset(from, to, 0) - 20 * MS).abs() <= 2 * MS, "{}", skew.offset(from, to, 0));
    }

    #[test]
    fn clocks_are_set_while_only_servers_record() {
        let mut names = Names::default();
        let [from, to] = clocks(&mut names);
        let set_at = |set: i64| {
            calls(from, to, 0, |_| 0).map(move |call| {
                let ahead = if call.outer.0 < set { 0 } else { 25 * MS };
                Observation { inner: (call.inner.0 + ahead, call.inner.1 + ahead), client: false, ..call }
            })
        };
        for set in [300, 1_000, 1_234, 1_700] {
            let skew = fitted(&names, set_at(set * MS));
            assert_eq!(skew.offset(from, to, (set - 12) * MS), 0, "{set}");
            assert!((skew.offset(from, to, (set + 50) * MS) + 25 * MS).abs() <= MS, "{set}");
        }
        // A clock that is set back shows times twice.
        let back = calls(from, to, 0, |_| 0).map(|call| {
            let ahead = if call.outer.0 < 1_000 * MS { 500 * MS } else { 0 };
            Observation { inner: (call.inner.0 + ahead, call.inner.1 + ahead), client: false, ..call }
        });
        let back: Vec<Observation> = back.collect();
        let skew = fitted(&names, back.iter().copied());
        for call in back {
            let offset = skew.offset_of_call((from, to), call.outer, call.inner);
            let wanted = if call.outer.0 < 1_000 * MS { -500 * MS } else { 0 };
            assert!((offset - wanted).abs() <= MS, "{call:?}: {offset}");
        }
        // Nobody waits for work that begins when its caller has ended, and takes longer than that one now and then.
        let deferred = calls(from, to, 0, |_| 0).enumerate().map(|(number, call)| {
            let later = if call.outer.0 < 1_000 * MS { 0 } else { 3 * MS };
            let longer = if number % 10 == 0 { later } else { 0 };
            Observation { inner: (call.inner.0 + later, call.inner.1 + later + longer), client: false, ..call }
        });
        assert_eq!(fitted(&names, deferred).offset(from, to, 1_500 * MS), 0);
        // Work that is deferred by more and less is not.
        let deferred = calls(from, to, 0, |_| 0).enumerate().map(|(number, call)| {
            let later = number as i64 * 7 % 40 * MS;
            Observation { inner: (call.inner.0 + later, call.inner.1 + later), client: false, ..call }
        });
        assert_eq!(fitted(&names, deferred).offset(from, to, 0), 0);
    }

    #[test]
    fn operations_come_to_one_clock() {
        let mut names = Names::default();
        let [first, second, server, behind] = clocks(&mut names);
        let skew = fitted(
            &names,
            calls(first, server, 300 * MS, |_| 0)
                .chain(calls(second, server, -200 * MS, |_| 0).skip(100))
                .chain(calls(server, behind, 0, |_| 0)),
        );
        let at = 7_000 * MS;
        assert_eq!(skew.base(first, at), 0);
        // The second is 500 ms ahead of the first, which the server shows.
        assert_eq!(skew.base(second, at), -500 * MS);
        assert_eq!(skew.base(server, at), -300 * MS);
        assert_eq!(skew.base(behind, at), -300 * MS);
        // Where no clock is off, nothing is moved.
        assert_eq!(fitted(&names, calls(first, server, 0, |_| 0)).base(second, at), 0);
    }

    #[test]
    fn pairs_that_close_a_circle_go_round_it() {
        let mut names = Names::default();
        let [first, second, server] = clocks(&mut names);
        // The latency back is 3 ms longer on one of the ways: the middle of what its calls allow is off by half of that.
        let slow = |call: Observation| Observation { outer: (call.outer.0, call.outer.1 + 3 * MS), ..call };
        let skew = fitted(
            &names,
            calls(first, second, 100 * MS, |_| 0)
                .chain(calls(first, server, 300 * MS, |_| 0))
                .chain(calls(second, server, 200 * MS, |_| 0).skip(100).map(slow)),
        );
        assert_eq!(skew.offset(first, server, 0), -300 * MS);
        assert_eq!(skew.offset(second, server, 0), -200 * MS);
        // Where its calls do not allow that, the pair keeps an offset of its own.
        let skew = fitted(
            &names,
            calls(first, second, 100 * MS, |_| 0)
                .chain(calls(first, server, 300 * MS, |_| 0))
                .chain(calls(second, server, 250 * MS, |_| 0).skip(100)),
        );
        assert_eq!(skew.offset(second, server, 0), -250 * MS);
    }

    #[test]
    fn work_on_messages_begins_after_they_were_sent() {
        let mut names = Names::default();
        let [first, second, server] = clocks(&mut names);
        // Messages wait for 1 to 9 ms, and nobody waits for what works on them.
        let sent = |from: Clock, ahead: i64| {
            calls(from, server, ahead, |_| 0).enumerate().map(|(number, call)| {
                let later = number as i64 % 9 * MS;
                Observation { inner: (call.inner.0 + later, call.inner.1 + later), is_message: true, ..call }
            })
        };
        let skew = fitted(&names, sent(first, -300 * MS));
        assert_eq!(skew.offset(first, server, 0), 299 * MS);
        // Work that seems to begin late may do so.
        assert_eq!(fitted(&names, sent(first, 300 * MS)).offset(first, server, 0), 0);
        // What two clocks send is seen by one, which is that of the server.
        let between = calls(first, second, 100 * MS, |_| 0);
        let skew = fitted(&names, sent(first, -300 * MS).chain(sent(second, -400 * MS).skip(100)).chain(between));
        let [by_first, by_second] = [skew.offset(first, server, 0), skew.offset(second, server, 0)];
        assert_eq!(by_first + skew.base(first, 0), by_second + skew.base(second, 0));
    }
}
