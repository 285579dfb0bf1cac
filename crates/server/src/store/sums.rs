//! The sub-model of a period: the sum of what its intervals hold.
//!
//! Rows are read in one view of the database, unpacked and merged by several threads. A dozen intervals that follow each other are a stretch. Sums of
//! stretches are remembered, since the next question is about nearly the same time: a row with the same numbers holds what it held.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::together;

use super::database::Database;
use super::rows::{LEVELS, Unpacked, add, add_to, bounds, within};
use super::{StoreError, unpacked};
use crate::late::{self, Answers};
use crate::parts::Glance;

/// How many intervals of their length a stretch has.
const DOZEN: u64 = 12;

/// How much is remembered, bytes.
const MOST: usize = 48 << 20;

/// How many bytes are read at a time, and of how many stretches: all of them wait in memory, packed.
const AT_ONCE: (u64, usize) = (2 << 20, 512);

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
        let level = LEVELS.iter().find(|level| self.length <= level.length);
        let length = level.map_or(self.length, |level| level.length).saturating_mul(DOZEN);
        (self.start - self.start % length, length)
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

/// Rows that are summed up together, and their sum where it is remembered.
struct Part<'r> {
    rows: &'r [Row],
    /// Whether it is worth remembering.
    is_whole: bool,
    known: Option<Arc<Stretch>>,
}

impl Part<'_> {
    /// How many bytes are to be unpacked.
    fn packed(&self) -> u64 {
        if self.known.is_some() { 0 } else { self.rows.iter().map(|row| row.bytes).sum() }
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

/// The sub-model of what reaches into a period, and what tells its entries apart; gives what each interval adds to a history, in the order of time.
pub fn sum_up(
    database: &dyn Database,
    sums: Option<&Sums>,
    (from, to): (u64, u64),
    answers: &Answers,
    mut take: impl FnMut(&Glance),
) -> Result<Option<Unpacked>, StoreError> {
    let digest = digest_of(answers);
    let rows = rows(database, from, to)?;
    let is_whole = |rows: &[Row]| {
        let (begin, length) = rows[0].stretch();
        rows.len() > 1 && from <= begin && begin.saturating_add(length) <= to
    };
    let mut parts: Vec<Part<'_>> = Vec::new();
    for rows in rows.chunk_by(|left, right| left.stretch() == right.stretch()) {
        let part = Part { rows, is_whole: sums.is_some() && is_whole(rows), known: None };
        if part.packed() <= AT_ONCE.0 {
            let known = sums.filter(|_| part.is_whole).and_then(|sums| sums.find(rows, digest));
            parts.push(Part { known, ..part });
        } else {
            let intervals = rows.chunk_by(|left, right| (left.start, left.length) == (right.start, right.length));
            parts.extend(intervals.map(|rows| Part { rows, is_whole: false, known: None }));
        }
    }
    let mut sum: Option<Unpacked> = None;
    let mut left = &parts[..];
    while !left.is_empty() {
        let (round, rest) = left.split_at(fitting(left));
        left = rest;
        let contents = contents(database, round)?;
        for (places, folded) in folded(round, &contents, answers) {
            let folded = folded?;
            if let Some(own) = folded.sum {
                add(&mut sum, own)?;
            }
            folded.glances.iter().flat_map(|glances| glances.iter()).for_each(&mut take);
            for (place, stretch) in folded.made {
                if let Some(sums) = sums {
                    sums.keep(round[places + place].rows.to_vec(), digest, stretch);
                }
            }
        }
    }
    Ok(sum)
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

/// How many of these parts are looked at together.
fn fitting(parts: &[Part<'_>]) -> usize {
    let mut bytes = 0;
    let mut fits = |part: &Part<'_>| {
        bytes += part.packed();
        bytes <= AT_ONCE.0
    };
    parts.iter().take(AT_ONCE.1).take_while(|part| fits(part)).count().max(1)
}

/// What the rows hold whose sum is not known.
fn contents(database: &dyn Database, parts: &[Part<'_>]) -> Result<HashMap<i64, Vec<u8>>, StoreError> {
    let missing = parts.iter().filter(|part| part.known.is_none()).flat_map(|part| part.rows);
    let ids: Vec<String> = missing.map(|row| row.id.to_string()).collect();
    let mut contents = HashMap::with_capacity(ids.len());
    if ids.is_empty() {
        return Ok(contents);
    }
    let sql = format!("SELECT id, content FROM intervals WHERE id IN ({})", ids.join(","));
    database.each(&sql, &[], &mut |row| {
        contents.insert(row.number(0)?, row.bytes(1)?.to_vec());
        Ok(())
    })?;
    Ok(contents)
}

/// Sums of neighbours, each with the place of its first part: as many as there are threads for.
fn folded(
    parts: &[Part<'_>],
    contents: &HashMap<i64, Vec<u8>>,
    answers: &Answers,
) -> Vec<(usize, Result<Folded, StoreError>)> {
    // What is known is merged as quickly as so many bytes are unpacked.
    let work = |part: &Part<'_>| if part.known.is_some() { WORTH / 4 } else { part.packed() };
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

fn fold(parts: &[Part<'_>], contents: &HashMap<i64, Vec<u8>>, answers: &Answers) -> Result<Folded, StoreError> {
    let mut folded = Folded::default();
    for (place, part) in parts.iter().enumerate() {
        let stretch = match &part.known {
            Some(known) => Arc::clone(known),
            None if part.is_whole => {
                let mut sum = None;
                let glances = intervals(part.rows, contents, answers, &mut sum)?;
                let Some(sum) = sum else { continue };
                let made = Arc::new(Stretch { sum, glances });
                folded.made.push((place, Arc::clone(&made)));
                made
            }
            None => {
                let glances = intervals(part.rows, contents, answers, &mut folded.sum)?;
                folded.glances.push(glances);
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
    for rows in rows.chunk_by(|left, right| (left.start, left.length) == (right.start, right.length)) {
        let mut own: Option<Unpacked> = None;
        for row in rows {
            let content = contents.get(&row.id);
            let gone = || StoreError::Damaged("an interval is gone while it is read".to_owned());
            add(&mut own, unpacked(content.ok_or_else(gone)?)?)?;
        }
        let Some((mut submodel, merge)) = own else { continue };
        let spans = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.spans));
        let glance = |submodel: &SubModel| Glance::of(rows[0].start, rows[0].length, spans, submodel);
        // What came late is put together in the sum, when that is whole.
        if answers.is_empty() {
            glances.push(glance(&submodel));
            add(sum, (submodel, merge))?;
        } else {
            add(sum, (submodel.clone(), merge))?;
            late::join(&mut submodel, answers);
            glances.push(glance(&submodel));
        }
    }
    Ok(glances.into())
}
