//! The sub-model of a period: the sum of what its intervals hold.
//!
//! Rows are read in one view of the database, unpacked and merged by several threads. A dozen intervals that follow each other are a stretch.
//!
//! - Of a short period, each interval adds to the history. Sums of stretches are remembered, since the next question is about nearly the same time: a row
//!   with the same numbers holds what it held.
//! - Of a long one, a stretch that lies in it adds to the history as one. Its sum is read from the database, where it stands there.
//!
//! Which of both it is depends on nothing but the period: the answer is the same before and after sums were written.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use dyelog::lqn::digest::Digest;
use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::together;

use super::database::Database;
use super::materialized::{self, Made};
use super::rows::{Unpacked, add, add_to, bounds, stretch_of, within};
use super::{StoreError, unpacked};
use crate::late::{self, Answers};
use crate::parts::Glance;

/// A period with more intervals is long.
const LONG: usize = 480;

/// How much is remembered, bytes.
const MOST: usize = 48 << 20;

/// How many bytes are read at a time, and of how many stretches: all of them wait in memory, packed, and the next beside them.
const AT_ONCE: (u64, usize) = (2 << 20, 512);

/// One thread gathers what others fold.
const TOGETHER: usize = 2;

/// So many packed bytes keep a thread busy for longer than it takes to start one.
const WORTH: u64 = 16 << 10;

/// A row without what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    id: i64,
    start: u64,
    length: u64,
    touched: i64,
    spans: u64,
    bytes: u64,
}

impl Row {
    /// The begin and the length of the stretch that it is in.
    fn stretch(&self) -> (u64, u64) {
        stretch_of(self.start, self.length)
    }

    /// Whether it is a part of the same interval as the other.
    fn is_of_interval(&self, other: &Self) -> bool {
        (self.start, self.length) == (other.start, other.length)
    }
}

/// The sum of a stretch.
struct Stretch {
    sum: Unpacked,
    glances: Arc<[Glance]>,
}

impl Stretch {
    fn bytes(&self) -> usize {
        self.sum.0.bytes() + self.glances.iter().map(Glance::bytes).sum::<usize>()
    }
}

/// What is remembered of a stretch.
struct Kept {
    rows: Vec<Row>,
    /// A digest of the answers that glances were taken with.
    answers: u64,
    stretch: Arc<Stretch>,
    bytes: usize,
}

/// Sums of stretches that questions came to.
#[derive(Default)]
pub struct Sums(Mutex<All>);

#[derive(Default)]
struct All {
    /// By begin and length of the stretch, and its first row.
    kept: BTreeMap<(u64, u64, i64), Kept>,
    bytes: usize,
    turn: usize,
}

impl Sums {
    fn find(&self, rows: &[Row], answers: u64) -> Option<Arc<Stretch>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.kept.get(&key(rows)?)?;
        (kept.rows == rows && kept.answers == answers).then(|| Arc::clone(&kept.stretch))
    }

    fn keep(&self, rows: Vec<Row>, answers: u64, stretch: Arc<Stretch>) {
        let Some(key) = key(&rows) else { return };
        let bytes = stretch.bytes() + rows.len() * size_of::<Row>();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.kept.insert(key, Kept { rows, answers, stretch, bytes });
        all.bytes = all.bytes + bytes - before.map_or(0, |before| before.bytes);
        // Any of them goes. Of a period that is too long, those used longest ago would be gone each time that it is asked about anew.
        while all.bytes > MOST {
            all.turn = all.turn.wrapping_add(0x9e37_79b9);
            let place = all.turn % all.kept.len();
            let Some(key) = all.kept.keys().nth(place).copied() else { break };
            all.bytes -= all.kept.remove(&key).map_or(0, |gone| gone.bytes);
        }
    }
}

fn key(rows: &[Row]) -> Option<(u64, u64, i64)> {
    let first = rows.first()?;
    let (begin, length) = first.stretch();
    Some((begin, length, first.id))
}

/// Rows that are summed up together, and where their sum is to be had.
struct Part<'r> {
    rows: &'r [Row],
    sum: Source,
}

/// Where the sum of a part is to be had.
enum Source {
    /// From its intervals, each of which adds to the history.
    Intervals,
    /// From its intervals, each of which adds to the history. It is worth remembering.
    Stretch,
    /// It is remembered.
    Remembered(Arc<Stretch>),
    /// From its intervals, which add to the history as one.
    Whole,
    /// It stands in the database, and adds to the history as one.
    Made(Made),
}

impl Part<'_> {
    /// How many bytes are to be unpacked.
    fn packed(&self) -> u64 {
        match &self.sum {
            Source::Remembered(_) => 0,
            Source::Made(made) => made.bytes,
            Source::Intervals | Source::Stretch | Source::Whole => self.rows.iter().map(|row| row.bytes).sum(),
        }
    }
}

/// What several parts come to.
#[derive(Default)]
struct Folded {
    sum: Option<Unpacked>,
    glances: Vec<Arc<[Glance]>>,
    /// By the place of the part, what is worth remembering.
    made: Vec<(usize, Arc<Stretch>)>,
}

/// The sub-model of what reaches into a period, and what tells its entries apart; gives what its intervals add to a history, in the order of time.
pub fn sum_up(
    database: &dyn Database,
    sums: Option<&Sums>,
    (from, to): (u64, u64),
    answers: &Answers,
    mut take: impl FnMut(&Glance),
) -> Result<Option<Unpacked>, StoreError> {
    let mut rows = rows(database, from, to)?;
    let digest = digest_of(answers);
    let parts = if is_long(&rows) {
        by_stretch(&mut rows);
        long(&rows, (from, to), &materialized::list(database, from, to)?)
    } else {
        short(&rows, (from, to), sums.map(|sums| (sums, digest)))
    };
    let mut sum: Option<Unpacked> = None;
    let mut gather = |Round { parts, folded }: Round<'_>| -> Result<(), StoreError> {
        for (places, folded) in folded {
            let folded = folded?;
            if let Some(own) = folded.sum {
                add(&mut sum, own)?;
            }
            folded.glances.iter().flat_map(|glances| glances.iter()).for_each(&mut take);
            for (place, stretch) in folded.made {
                if let Some(sums) = sums {
                    sums.keep(parts[places + place].rows.to_vec(), digest, stretch);
                }
            }
        }
        Ok(())
    };
    let mut left = &parts[..];
    let mut read = || -> Result<Option<(&[Part<'_>], Contents)>, StoreError> {
        let (round, rest) = left.split_at(fitting(left));
        left = rest;
        if round.is_empty() { Ok(None) } else { Ok(Some((round, Contents::of(database, round)?))) }
    };
    let (mut next, mut done) = (read()?, None);
    while let Some((parts, contents)) = next {
        // While some are folded, those before them are gathered, and the next are read.
        let beside = || done.take().map_or(Ok(()), &mut gather).and_then(|()| read());
        let (found, folded) = together::both(TOGETHER, beside, || folded(parts, &contents, answers));
        (next, done) = (found?, Some(Round { parts, folded }));
    }
    done.map_or(Ok(()), gather)?;
    Ok(sum)
}

/// Parts that were looked at together, and what they come to: sums of neighbours, each with the place of its first part.
struct Round<'p> {
    parts: &'p [Part<'p>],
    folded: Vec<(usize, Result<Folded, StoreError>)>,
}

/// Whether rows, in the order of time, are those of a long period.
fn is_long(rows: &[Row]) -> bool {
    rows.chunk_by(Row::is_of_interval).count() > LONG
}

/// Brings rows in the order of their stretches: what came late stands between the intervals of another length.
fn by_stretch(rows: &mut [Row]) {
    rows.sort_by_key(|row| (row.stretch(), row.start, row.id));
}

/// Whether rows of a stretch are several, and all of it lies in a period.
fn is_whole(rows: &[Row], (from, to): (u64, u64)) -> bool {
    let (begin, length) = rows[0].stretch();
    rows.len() > 1 && from <= begin && begin.saturating_add(length) <= to
}

/// The parts of a short period.
fn short<'r>(rows: &'r [Row], period: (u64, u64), sums: Option<(&Sums, u64)>) -> Vec<Part<'r>> {
    let mut parts = Vec::new();
    for rows in rows.chunk_by(|left, right| left.stretch() == right.stretch()) {
        let part = Part { rows, sum: Source::Intervals };
        match sums.filter(|_| is_whole(rows, period)) {
            _ if part.packed() > AT_ONCE.0 => parts.extend(by_interval(rows)),
            None => parts.push(part),
            Some((sums, digest)) => {
                let sum = sums.find(rows, digest).map_or(Source::Stretch, Source::Remembered);
                parts.push(Part { rows, sum });
            }
        }
    }
    parts
}

/// The parts of a long period, of which some sums stand in the database.
fn long<'r>(rows: &'r [Row], period: (u64, u64), made: &HashMap<(u64, u64), Made>) -> Vec<Part<'r>> {
    let mut parts = Vec::new();
    for rows in rows.chunk_by(|left, right| left.stretch() == right.stretch()) {
        if is_whole(rows, period) {
            let sum = made.get(&rows[0].stretch()).map_or(Source::Whole, |made| Source::Made(*made));
            parts.push(Part { rows, sum });
        } else {
            parts.extend(by_interval(rows));
        }
    }
    parts
}

/// A part for each interval.
fn by_interval(rows: &[Row]) -> impl Iterator<Item = Part<'_>> {
    let intervals = rows.chunk_by(Row::is_of_interval);
    intervals.map(|rows| Part { rows, sum: Source::Intervals })
}

fn digest_of(answers: &Answers) -> u64 {
    let mut hasher = DefaultHasher::new();
    answers.hash(&mut hasher);
    hasher.finish()
}

/// All rows that reach into a period, in the order of time.
fn rows(database: &dyn Database, from: u64, to: u64) -> Result<Vec<Row>, StoreError> {
    let sql = format!(
        "SELECT id, start, length, touched, spans, LENGTH(content) AS bytes FROM intervals WHERE {} ORDER BY start, length, id",
        within()
    );
    let (from, to) = bounds(from, to);
    database.all(&sql, &[from.into(), to.into()], |row| {
        let number = |at| row.unsigned(at);
        let (start, length) = (number(1)?, number(2)?.max(1));
        Ok(Row { id: row.number(0)?, start, length, touched: row.number(3)?, spans: number(4)?, bytes: number(5)? })
    })
}

/// A digest with all that intervals which reach into a period hold, as far as rows tell it, and with how they add to a history. Where the period begins and ends
/// within them is no matter.
pub fn digest(database: &dyn Database, (from, to): (u64, u64), digest: Digest) -> Result<Digest, StoreError> {
    let mut rows = rows(database, from, to)?;
    let of = |digest: Digest, row: &Row| {
        let words = [row.id.cast_unsigned(), row.start, row.length, row.touched.cast_unsigned(), row.spans, row.bytes];
        words.into_iter().fold(digest, Digest::word)
    };
    let mut digest = rows.iter().fold(digest, of);
    if is_long(&rows) {
        by_stretch(&mut rows);
        for rows in rows.chunk_by(|left, right| left.stretch() == right.stretch()) {
            digest = digest.word(is_whole(rows, (from, to)).into());
        }
    }
    Ok(digest)
}

/// How many of these parts are looked at together.
fn fitting(parts: &[Part<'_>]) -> usize {
    let mut bytes = 0;
    let mut fits = |part: &Part<'_>| {
        bytes += part.packed();
        bytes <= AT_ONCE.0
    };
    parts.iter().take(AT_ONCE.1).take_while(|part| fits(part)).count().max(1).min(parts.len())
}

/// What is to be unpacked.
struct Contents {
    intervals: HashMap<i64, Vec<u8>>,
    sums: HashMap<i64, Vec<u8>>,
}

impl Contents {
    fn of(database: &dyn Database, parts: &[Part<'_>]) -> Result<Self, StoreError> {
        let (mut intervals, mut sums) = (Vec::new(), Vec::new());
        for part in parts {
            match &part.sum {
                Source::Remembered(_) => {}
                Source::Made(made) => sums.push(made.id),
                Source::Intervals | Source::Stretch | Source::Whole => {
                    intervals.extend(part.rows.iter().map(|row| row.id));
                }
            }
        }
        Ok(Self { intervals: contents(database, "intervals", &intervals)?, sums: contents(database, "sums", &sums)? })
    }
}

/// What rows of a table hold.
fn contents(database: &dyn Database, table: &str, ids: &[i64]) -> Result<HashMap<i64, Vec<u8>>, StoreError> {
    let mut contents = HashMap::with_capacity(ids.len());
    if ids.is_empty() {
        return Ok(contents);
    }
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let sql = format!("SELECT id, content FROM {table} WHERE id IN ({})", ids.join(","));
    database.each(&sql, &[], &mut |row| {
        contents.insert(row.number(0)?, row.bytes(1)?.to_vec());
        Ok(())
    })?;
    Ok(contents)
}

/// The sub-model that a row holds.
fn content(contents: &HashMap<i64, Vec<u8>>, id: i64) -> Result<Unpacked, StoreError> {
    let gone = || StoreError::Damaged("an interval is gone while it is read".to_owned());
    unpacked(contents.get(&id).ok_or_else(gone)?)
}

/// Sums of neighbours, each with the place of its first part: as many as there are threads for.
fn folded(parts: &[Part<'_>], contents: &Contents, answers: &Answers) -> Vec<(usize, Result<Folded, StoreError>)> {
    // What is known is merged as quickly as so many bytes are unpacked.
    let work = |part: &Part<'_>| if let Source::Remembered(_) = part.sum { WORTH / 4 } else { part.packed() };
    let all: u64 = parts.iter().map(work).sum();
    let threads = together::threads_for(all / WORTH);
    let mut shares: Vec<(usize, &[Part<'_>])> = Vec::with_capacity(threads);
    let (mut first, mut done) = (0, 0);
    for (place, part) in parts.iter().enumerate() {
        done += work(part);
        let due = shares.len() as u64 + 1;
        if done * threads as u64 >= due * all || place + 1 == parts.len() {
            shares.push((first, &parts[first..=place]));
            first = place + 1;
        }
    }
    together::each(threads, shares, |(first, parts)| (first, fold(parts, contents, answers)))
}

fn fold(parts: &[Part<'_>], contents: &Contents, answers: &Answers) -> Result<Folded, StoreError> {
    let mut folded = Folded::default();
    for (place, part) in parts.iter().enumerate() {
        let stretch = match &part.sum {
            Source::Remembered(known) => Arc::clone(known),
            Source::Stretch => {
                let mut sum = None;
                let glances = intervals(part.rows, &contents.intervals, answers, &mut sum)?;
                let Some(sum) = sum else { continue };
                let made = Arc::new(Stretch { sum, glances });
                folded.made.push((place, Arc::clone(&made)));
                made
            }
            Source::Intervals => {
                let glances = intervals(part.rows, &contents.intervals, answers, &mut folded.sum)?;
                folded.glances.push(glances);
                continue;
            }
            Source::Whole | Source::Made(_) => {
                let own = match &part.sum {
                    Source::Made(made) => Some(content(&contents.sums, made.id)?),
                    _ => merged(part.rows, &contents.intervals)?.map(materialized::thinned),
                };
                let Some(own) = own else { continue };
                let glance = added(part.rows, own, answers, &mut folded.sum)?;
                folded.glances.push(Arc::new([glance]));
                continue;
            }
        };
        folded.glances.push(Arc::clone(&stretch.glances));
        let (submodel, merge) = &stretch.sum;
        match &mut folded.sum {
            Some(sum) => add_to(sum, submodel, merge)?,
            None => folded.sum = Some((submodel.clone(), merge.clone())),
        }
    }
    Ok(folded)
}

/// Adds intervals to a sum, and gives what each adds to a history.
fn intervals(
    rows: &[Row],
    contents: &HashMap<i64, Vec<u8>>,
    answers: &Answers,
    sum: &mut Option<Unpacked>,
) -> Result<Arc<[Glance]>, StoreError> {
    let mut glances = Vec::with_capacity(rows.len());
    for rows in rows.chunk_by(Row::is_of_interval) {
        if let Some(own) = merged(rows, contents)? {
            glances.push(added(rows, own, answers, sum)?);
        }
    }
    Ok(glances.into())
}

/// The sum of rows.
fn merged(rows: &[Row], contents: &HashMap<i64, Vec<u8>>) -> Result<Option<Unpacked>, StoreError> {
    let mut own: Option<Unpacked> = None;
    for row in rows {
        add(&mut own, content(contents, row.id)?)?;
    }
    Ok(own)
}

/// Adds the sum of rows to another, and gives what it adds to a history.
fn added(
    rows: &[Row],
    (mut submodel, merge): Unpacked,
    answers: &Answers,
    sum: &mut Option<Unpacked>,
) -> Result<Glance, StoreError> {
    let spans = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.spans));
    let start = rows[0].start;
    let end = rows.iter().map(|row| row.start.saturating_add(row.length)).max().unwrap_or(start);
    let glance = |submodel: &SubModel| Glance::of(start, end - start, spans, submodel);
    // What came late is put together in the sum, when that is whole.
    if answers.is_empty() {
        let glance = glance(&submodel);
        add(sum, (submodel, merge))?;
        Ok(glance)
    } else {
        add(sum, (submodel.clone(), merge))?;
        late::join(&mut submodel, answers);
        Ok(glance(&submodel))
    }
}
