//! Running sums: a table for each thread, locked by its thread and, once an interval, by the observer's.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Different operations that a thread keeps sums of; executions of further ones are lost, and counted.
const MOST_ROWS: usize = 4096;
/// Buckets to a factor of two are 2 to this power, and values are told apart between two to the power of minus this and two to its power:
/// the buckets of `dyelog`'s histograms.
const FINENESS: u32 = 6;
const RANGE: u32 = 60;

/// What kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cycle,
    Served,
    ServedAsynchronously,
    Forwarded,
    Called,
    Sent,
    Deferred,
}

impl Kind {
    pub(crate) fn is_input(self) -> bool {
        matches!(self, Self::Cycle | Self::Served | Self::ServedAsynchronously | Self::Forwarded)
    }
}

/// Which operation: by number of its function, and of that within which it is called, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) within: u32,
    pub(crate) function: u32,
    pub(crate) kind: Kind,
}

/// How often and for how long, nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) count: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) squares: u128,
    /// The first bucket that is kept, and counts from there on.
    first: usize,
    buckets: Vec<u64>,
}

impl Sums {
    #[inline]
    fn add(&mut self, nanoseconds: u64) {
        self.count += 1;
        self.nanoseconds = self.nanoseconds.wrapping_add(nanoseconds);
        self.squares = self.squares.wrapping_add(u128::from(nanoseconds) * u128::from(nanoseconds));
        let bucket = bucket(nanoseconds);
        match self.buckets.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.widen(bucket, 1),
        }
    }

    #[cold]
    fn widen(&mut self, bucket: usize, count: u64) {
        if self.buckets.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = self.first - bucket;
            self.buckets.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.buckets.len() {
            self.buckets.resize(place + 1, 0);
        }
        self.buckets[place] += count;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.nanoseconds = self.nanoseconds.wrapping_add(other.nanoseconds);
        self.squares = self.squares.wrapping_add(other.squares);
        for (bucket, count) in other.buckets() {
            match self.buckets.get_mut(bucket.wrapping_sub(self.first)) {
                Some(own) => *own += count,
                None => self.widen(bucket, count),
            }
        }
    }

    /// Numbers of buckets with how many values are in each, in the order of values.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.buckets.iter().enumerate().map(|(place, count)| (self.first + place, *count));
        counts.filter(|(_, count)| *count > 0)
    }
}

/// The bucket of a time, from 1; 0 is that of times that are zero.
#[inline]
fn bucket(nanoseconds: u64) -> usize {
    const FIRST: usize = (1023 - RANGE as usize) << FINENESS;
    if nanoseconds == 0 {
        return 0;
    }
    let seconds = nanoseconds as f64 * 1e-9;
    (seconds.to_bits() >> (52 - FINENESS)) as usize - FIRST + 1
}

/// The sums of one thread, by number of the function.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<(Key, Sums)>>,
    count: usize,
}

impl Table {
    /// Adds a time; false where there are too many operations.
    #[inline]
    fn add(&mut self, key: Key, nanoseconds: u64) -> bool {
        if let Some(rows) = self.rows.get_mut(key.function as usize) {
            for (own, sums) in rows {
                if *own == key {
                    sums.add(nanoseconds);
                    return true;
                }
            }
        }
        self.add_row(key, nanoseconds)
    }

    #[cold]
    fn add_row(&mut self, key: Key, nanoseconds: u64) -> bool {
        if self.count >= MOST_ROWS {
            return false;
        }
        self.count += 1;
        let place = key.function as usize;
        if place >= self.rows.len() {
            self.rows.resize_with(place + 1, Vec::new);
        }
        let mut sums = Sums::default();
        sums.add(nanoseconds);
        self.rows[place].push((key, sums));
        true
    }
}

/// What all threads share while an observer runs.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    generation: u32,
    tables: Mutex<Vec<Arc<Mutex<Table>>>>,
    pub(crate) stop: AtomicBool,
    pub(crate) lost: AtomicU64,
}

/// The observer that runs, by number; 0 for none.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static CURRENT: Mutex<(u32, Option<Arc<Shared>>)> = Mutex::new((0, None));
/// Input operations under way, and the most that were since the last report.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);
static MOST: AtomicU32 = AtomicU32::new(0);

struct Own {
    generation: u32,
    table: Arc<Mutex<Table>>,
    shared: Arc<Shared>,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
    /// The input operation that runs on this thread.
    static WITHIN: Cell<u32> = const { Cell::new(0) };
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic leaves behind is whole: sums are added one by one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Sets the input operation of this thread; gives the one before.
#[inline]
pub(crate) fn enter(function: u32) -> u32 {
    WITHIN.try_with(|within| within.replace(function)).unwrap_or(0)
}

#[inline]
pub(crate) fn within() -> u32 {
    WITHIN.try_with(Cell::get).unwrap_or(0)
}

#[inline]
pub(crate) fn arrive() {
    let now = UNDER_WAY.fetch_add(1, Ordering::Relaxed) + 1;
    if now > MOST.load(Ordering::Relaxed) {
        MOST.fetch_max(now, Ordering::Relaxed);
    }
}

#[inline]
pub(crate) fn depart() {
    UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
}

/// Adds a time to the sums of this thread, if the observer still runs under which it began.
#[inline]
pub(crate) fn add(generation: u32, key: Key, nanoseconds: u64) {
    if GENERATION.load(Ordering::Relaxed) != generation {
        return;
    }
    let added = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        if own.as_ref().is_none_or(|own| own.generation != generation) {
            *own = register(generation);
        }
        let Some(own) = own.as_ref() else { return };
        if !locked(&own.table).add(key, nanoseconds) {
            own.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    });
    if added.is_err() {
        // The thread is past the end of its own table.
        if let Some(shared) = &locked(&CURRENT).1 {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cold]
fn register(generation: u32) -> Option<Own> {
    let shared = Arc::clone(locked(&CURRENT).1.as_ref().filter(|shared| shared.generation == generation)?);
    let table = Arc::new(Mutex::new(Table::default()));
    locked(&shared.tables).push(Arc::clone(&table));
    Some(Own { generation, table, shared })
}

impl Shared {
    /// Turns guards on; `None` where an observer runs already.
    pub(crate) fn turn_on() -> Option<Arc<Self>> {
        let mut current = locked(&CURRENT);
        if current.1.is_some() {
            return None;
        }
        current.0 = current.0.wrapping_add(1).max(1);
        let shared = Arc::new(Self { generation: current.0, ..Self::default() });
        current.1 = Some(Arc::clone(&shared));
        MOST.store(UNDER_WAY.load(Ordering::Relaxed), Ordering::Relaxed);
        GENERATION.store(current.0, Ordering::Release);
        Some(shared)
    }

    /// Turns guards off.
    pub(crate) fn turn_off(&self) {
        let mut current = locked(&CURRENT);
        if current.0 == self.generation {
            GENERATION.store(0, Ordering::Release);
            current.1 = None;
        }
    }

    /// Takes out the sums of all threads, in the order of keys, and the most input operations that were under way together.
    pub(crate) fn take(&self) -> (Vec<(Key, Sums)>, u32) {
        let most = MOST.swap(UNDER_WAY.load(Ordering::Relaxed), Ordering::Relaxed);
        let mut all: Vec<(Key, Sums)> = Vec::new();
        locked(&self.tables).retain(|table| {
            let taken = std::mem::take(&mut *locked(table));
            all.extend(taken.rows.into_iter().flatten());
            // Its thread has the other one.
            Arc::strong_count(table) > 1
        });
        all.sort_by_key(|(key, _)| *key);
        all.dedup_by(|later, earlier| {
            let alike = later.0 == earlier.0;
            if alike {
                earlier.1.merge(&later.1);
            }
            alike
        });
        (all, most)
    }
}
