//! Observations that grow old: those of a process that lie in one stretch of time become one, stretches get longer with age.
//!
//! Sums merge, so that figures and demands of a period stay what they were. A merged row keeps which times it covers: a report that
//! comes once more is known.

use dyelog_observe::observation::{Observation, Process};

use super::database::Database;
use super::observations::{insert, overlap, unpacked};
use super::rows::{LEVELS, bytes_of, numbers_of};
use super::{Level, StoreError};

/// Rows that are kept for one question at most: beyond it, neighbours are merged as they are read.
pub const MOST_ROWS: usize = 1 << 14;

/// One transaction makes so many rows. A put waits for it.
const AT_ONCE: u32 = 32;
/// Times that are closer than this are one range, nanoseconds: no interval is so short.
pub(super) const CLOSE: i64 = 1_000_000;
/// How far a merged row reaches beyond the longest stretch at most, as its observations may.
const DAY: i64 = LEVELS[LEVELS.len() - 1].length.cast_signed();

/// Times that were observed, in order, apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    fn add(&mut self, more: &[(i64, i64)]) {
        self.0.extend(more);
        self.0.sort_unstable();
        self.0.dedup_by(|next, own| {
            let is_one = next.0 <= own.1.saturating_add(CLOSE);
            if is_one {
                own.1 = own.1.max(next.1);
            }
            is_one
        });
    }

    /// How a time lies to these.
    fn with(&self, (from, to): (i64, i64)) -> Merged {
        if self.0.iter().any(|own| own.0 <= from && to <= own.1) {
            return Merged::Within;
        }
        let other = self.0.iter().find(|own| overlap((from, to), **own));
        other.map_or(Merged::Apart, |other| Merged::Overlaps(*other))
    }

    /// As bytes, from the begin of the first on.
    fn written(&self) -> Vec<u8> {
        let first = self.0.first().map_or(0, |own| own.0);
        let since = |time: i64| time.wrapping_sub(first).cast_unsigned();
        bytes_of(&self.0.iter().flat_map(|(from, to)| [since(*from), since(*to)]).collect::<Vec<_>>())
    }

    fn read(bytes: &[u8], first: i64) -> Result<Self, StoreError> {
        let numbers = numbers_of(bytes).filter(|numbers| numbers.len().is_multiple_of(2));
        let numbers = numbers.ok_or_else(|| StoreError::Damaged("the times of an observation".to_owned()))?;
        let at = |since: u64| first.wrapping_add(since.cast_signed());
        Ok(Self(numbers.chunks_exact(2).map(|pair| (at(pair[0]), at(pair[1]))).collect()))
    }
}

/// How an observation lies to those that were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It is in one of them.
    Within,
    /// A part of its time is: that from a time to another.
    Overlaps((i64, i64)),
    /// It is in none.
    Apart,
}

/// How an observation lies to those that were merged.
pub fn merged(database: &dyn Database, observation: &Observation) -> Result<Merged, StoreError> {
    let Process { application, host, program, id, started } = &observation.process;
    let (from, to) = (observation.from, observation.to);
    let last = to.saturating_add(3 * DAY);
    let mut found = Merged::Apart;
    // Rows are looked for by their end: what a process reports now is later than all of them. The plus keeps the index of starts out of it.
    database.each(
        "SELECT start, ranges FROM observations WHERE level > 0 AND host = ?1 AND process = ?2 AND +start < ?3
         AND \"end\" < ?4 AND \"end\" > ?5 AND started = ?6 AND application = ?7 AND program = ?8",
        &[
            (&**host).into(),
            (*id).into(),
            to.into(),
            last.into(),
            from.into(),
            (*started).into(),
            (&**application).into(),
            (&**program).into(),
        ],
        &mut |row| {
            match Ranges::read(row.bytes(1)?, row.number(0)?)?.with((from, to)) {
                Merged::Apart => {}
                // Merged ones may overlap where they were stored by an earlier release.
                own if found != Merged::Within => found = own,
                _ => {}
            }
            Ok(())
        },
    )?;
    Ok(found)
}

/// Merges some of what is old enough; whether more is left.
pub fn roll_up(database: &dyn Database, now: u64) -> Result<bool, StoreError> {
    let mut left = AT_ONCE;
    let mut from = Level { length: 0, ..LEVELS[0] };
    for to in &LEVELS[1..] {
        while left > 0 && roll_up_one(database, from, *to, now)? {
            left -= 1;
        }
        from = *to;
    }
    Ok(left == 0)
}

/// Makes one row of those of a process in the oldest stretch of the next level; whether there was any.
fn roll_up_one(database: &dyn Database, from: Level, to: Level, now: u64) -> Result<bool, StoreError> {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let before = signed(now.saturating_sub(from.stays));
    // What came a short while ago stays as it is, however old it says that it is: it may come once more.
    let oldest = database.first(
        "SELECT start, \"end\", application, host, program, process, started FROM observations
         WHERE level = ?1 AND start < ?2 AND \"end\" < ?2 AND touched < ?2 ORDER BY start LIMIT 1",
        &[from.length.into(), before.into()],
        |row| {
            let name = |at| row.text(at).map(str::to_owned);
            let process = (name(2)?, name(3)?, name(4)?, row.number(5)?, row.number(6)?);
            Ok((row.number(0)?, row.number(1)?, process))
        },
    )?;
    let Some((start, end, (application, host, program, id, started))) = oldest else { return Ok(false) };
    let length = signed(to.length);
    // As the statement below reckons it, to the nanosecond.
    let middle = start.saturating_add(end.saturating_sub(start) / 2);
    let stretch = middle.div_euclid(length).saturating_mul(length);
    // Observations lie in the stretch of their middle, and may begin before it.
    let lowest = stretch.min(start).saturating_sub(length);
    let upper = stretch.saturating_add(length);
    let mut sum: Option<Observation> = None;
    let (mut ranges, mut touched, mut merged) = (Ranges::default(), 0_i64, Vec::new());
    let (application, host, program) = (application.as_str(), host.as_str(), program.as_str());
    database.each(
        "SELECT start, \"end\", touched, ranges, content FROM observations
         WHERE host = ?1 AND process = ?2 AND start >= ?3 AND start < ?4 AND application = ?5 AND program = ?6
         AND started = ?7 AND start + (\"end\" - start) / 2 >= ?8 AND start + (\"end\" - start) / 2 < ?4
         AND (level = ?9 AND \"end\" < ?10 AND touched < ?10 OR level = ?11) ORDER BY start, \"end\"",
        &[
            host.into(),
            id.into(),
            lowest.into(),
            upper.into(),
            application.into(),
            program.into(),
            started.into(),
            stretch.into(),
            from.length.into(),
            before.into(),
            length.into(),
        ],
        &mut |row| {
            let (begin, end) = (row.number(0)?, row.number(1)?);
            touched = touched.max(row.number(2)?);
            let own = Ranges::read(row.bytes(3)?, begin)?;
            // What was not merged is one range.
            let whole = [(begin, end)];
            ranges.add(if own.0.is_empty() { &whole } else { &own.0 });
            let content = unpacked(row.bytes(4)?)?;
            match &mut sum {
                None => sum = Some(content),
                Some(sum) => sum.merge(&content),
            }
            merged.push((begin, end));
            Ok(())
        },
    )?;
    let sum = sum.ok_or_else(|| StoreError::Damaged("an observation is gone while it is read".to_owned()))?;
    for (begin, end) in merged {
        database.run(
            "DELETE FROM observations WHERE start = ?1 AND \"end\" = ?2 AND host = ?3 AND process = ?4 AND started = ?5
             AND application = ?6 AND program = ?7",
            &[begin.into(), end.into(), host.into(), id.into(), started.into(), application.into(), program.into()],
        )?;
    }
    match insert(database, &sum, touched, length, &ranges.written())? {
        0 => Err(StoreError::Damaged("an observation is in the place of those that are merged".to_owned())),
        _ => Ok(true),
    }
}

/// Observations that are gathered for a question: where there are very many, neighbours of a process become one.
pub struct Gathered {
    most: usize,
    found: Vec<Observation>,
    /// The length of the stretches in which they are merged, nanoseconds; 0 where they are as they were.
    stretch: i64,
}

impl Gathered {
    /// At most so many, and of each process one at least.
    pub fn new(most: usize) -> Self {
        Self { most, found: Vec::new(), stretch: 0 }
    }

    /// Takes one in.
    ///
    /// # Errors
    /// When there are more processes than there may be observations.
    pub fn add(&mut self, observation: Observation) -> Result<(), StoreError> {
        self.found.push(observation);
        if self.found.len() <= 2 * self.most {
            return Ok(());
        }
        self.thin()
    }

    /// All of them, in the order of time.
    ///
    /// # Errors
    /// When there are more processes than there may be observations.
    pub fn finish(mut self) -> Result<Vec<Observation>, StoreError> {
        self.thin()?;
        self.found.sort_by_key(|own| (own.from, own.to));
        Ok(self.found)
    }

    /// Merges until there are few enough.
    fn thin(&mut self) -> Result<(), StoreError> {
        self.merge();
        while self.found.len() > self.most {
            if self.stretch == i64::MAX {
                return Err(StoreError::TooMany(self.most));
            }
            let longer =
                LEVELS[1..].iter().map(|level| level.length.cast_signed()).find(|length| *length > self.stretch);
            self.stretch = longer.unwrap_or_else(|| self.stretch.saturating_mul(2));
            self.merge();
        }
        Ok(())
    }

    fn merge(&mut self) {
        if self.stretch == 0 {
            return;
        }
        let stretch = self.stretch;
        let place = |own: &Observation| i64::midpoint(own.from, own.to).div_euclid(stretch);
        self.found.sort_by(|left, right| left.process.cmp(&right.process).then(left.from.cmp(&right.from)));
        let mut at = 0;
        let mut merged: Vec<Observation> = Vec::new();
        for own in self.found.drain(..) {
            match merged.last_mut() {
                Some(last) if last.process == own.process && at == place(&own) => last.merge(&own),
                _ => {
                    at = place(&own);
                    merged.push(own);
                }
            }
        }
        self.found = merged;
    }
}

#[cfg(test)]
mod tests {
    use dyelog_observe::observation::{Observation, Process};

    use super::{Gathered, Merged, Ranges, StoreError};

    const SECOND: i64 = 1_000_000_000;

    fn observed(id: u64, number: i64) -> Observation {
        let process = Process { application: "a".into(), host: "h".into(), program: "p".into(), id, started: 0 };
        let mut own = Observation::empty(process, 10 * number * SECOND, 10 * (number + 1) * SECOND);
        own.resources.cpu = 1 + number.unsigned_abs();
        own
    }

    #[test]
    fn very_many_observations_become_few() {
        let mut gathered = Gathered::new(50);
        let all: Vec<_> = (-3000..3000).flat_map(|number| [observed(1, number), observed(2, number)]).collect();
        for own in &all {
            gathered.add(own.clone()).expect("it is in order");
        }
        let found = gathered.finish().expect("nothing is damaged");
        assert!(found.len() <= 50 && found.is_sorted_by_key(|own| own.from), "{}", found.len());
        for id in [1, 2] {
            let sum = |of: &[Observation]| {
                let own = of.iter().filter(|own| own.process.id == id);
                own.fold((0, 0), |sum, own| (sum.0 + own.resources.cpu, sum.1 + own.intervals))
            };
            assert_eq!(sum(&found), sum(&all));
        }
        // Of each process one is left at least.
        let mut gathered = Gathered::new(50);
        let outcome = (0..200).try_for_each(|id| gathered.add(observed(id, 0)));
        assert!(matches!(outcome, Err(StoreError::TooMany(50))));
    }

    #[test]
    fn ranges_are_read_as_they_were_written() {
        let mut ranges = Ranges::default();
        ranges.add(&[(100 * SECOND, 110 * SECOND), (-50 * SECOND, -40 * SECOND), (-40 * SECOND, -30 * SECOND)]);
        assert_eq!(ranges.0, [(-50 * SECOND, -30 * SECOND), (100 * SECOND, 110 * SECOND)]);
        assert_eq!(Ranges::read(&ranges.written(), -50 * SECOND).expect("it was written here"), ranges);
        assert_eq!(ranges.with((-45 * SECOND, -35 * SECOND)), Merged::Within);
        assert_eq!(ranges.with((-31 * SECOND, -29 * SECOND)), Merged::Overlaps((-50 * SECOND, -30 * SECOND)));
        assert_eq!(ranges.with((-30 * SECOND, 100 * SECOND)), Merged::Apart);
        assert!(Ranges::read(&[0x80], 0).is_err() && Ranges::read(&[1], 0).is_err());
    }
}
