//! What threads recorded and nobody has written yet: a buffer for each thread, locked by its thread and, twenty times a second, by the flusher.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use dyelog_wire::{CANCELLED, COLLOCATED, ONEWAY};

use crate::chain::Chain;
use crate::clock::Stamp;

/// A full chunk: 64 KiB of records.
pub(crate) const CHUNK: usize = (64 << 10) / size_of::<Raw>();

/// How many full chunks may wait for the flusher in all; beyond that records are lost, and counted. That is 64 MiB.
const MOST_CHUNKS: usize = 1024;

/// No chain.
pub(crate) const NO_CHAIN: u32 = u32::MAX;

/// Which probe it was, by the numbers of the binary form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Probe {
    StubStart,
    SkelStart,
    SkelEnd,
    StubEnd,
    ThreadStart,
    ThreadEnd,
}

/// A record as its thread leaves it. Chains and labels are places in the lists of the chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub(crate) stamp: Stamp,
    pub(crate) chain: u32,
    pub(crate) child: u32,
    pub(crate) event: u32,
    /// The function; at the start of a thread the label of the thread that started it, from 1.
    pub(crate) function: u32,
    pub(crate) probe: Probe,
    pub(crate) flags: u8,
}

/// Records of one thread, and what they point to.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) records: Vec<Raw>,
    pub(crate) chains: Vec<Arc<Chain>>,
    pub(crate) labels: Vec<Arc<str>>,
    last: u64,
}

impl Chunk {
    #[inline]
    pub(crate) fn chain(&mut self, chain: &Arc<Chain>) -> u32 {
        if self.last != chain.number {
            self.last = chain.number;
            self.chains.push(Arc::clone(chain));
        }
        self.chains.len() as u32 - 1
    }

    pub(crate) fn child(&mut self, chain: &Arc<Chain>) -> u32 {
        self.last = 0;
        self.chains.push(Arc::clone(chain));
        self.chains.len() as u32 - 1
    }

    pub(crate) fn label(&mut self, label: &Arc<str>) -> u32 {
        self.labels.push(Arc::clone(label));
        self.labels.len() as u32
    }

    fn clear(&mut self) {
        self.records.clear();
        self.chains.clear();
        self.labels.clear();
        self.last = 0;
    }
}

#[derive(Debug, Default)]
struct Content {
    current: Chunk,
    full: Vec<Chunk>,
    spare: Option<Chunk>,
    /// Its thread is gone.
    ended: bool,
    /// Nobody will write it any more.
    closed: bool,
}

/// The buffer of a thread.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// How records name the thread.
    pub(crate) label: Arc<str>,
    /// The place among labels, to be given back.
    place: usize,
    content: Mutex<Content>,
}

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, Content> {
        // What a panic leaves behind is whole: records are pushed in one step.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record.
    #[inline]
    pub(crate) fn push(&self, shared: &Shared, make: impl FnOnce(&mut Chunk) -> Raw) {
        let mut content = self.lock();
        if (content.closed || content.current.records.len() >= CHUNK) && !shared.next_chunk(&mut content) {
            return;
        }
        let raw = make(&mut content.current);
        content.current.records.push(raw);
    }

    /// Says that its thread is gone.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
    }

    /// Takes out all records; gives how many full chunks there were, and whether the thread is gone.
    fn take(&self, chunks: &mut Vec<Chunk>, close: bool) -> (usize, bool) {
        let mut content = self.lock();
        content.closed |= close;
        let full = content.full.len();
        chunks.append(&mut content.full);
        if !content.current.records.is_empty() {
            let spare = content.spare.take().unwrap_or_default();
            chunks.push(std::mem::replace(&mut content.current, spare));
        }
        (full, content.ended)
    }

    /// Gives back a chunk that was written, so that its memory is used again.
    fn recycle(&self, mut chunk: Chunk) {
        chunk.clear();
        let mut content = self.lock();
        if content.spare.is_none() && !content.ended {
            content.spare = Some(chunk);
        }
    }
}

/// What all threads share while a recorder runs.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) generation: u32,
    buffers: Mutex<Registry>,
    waiting: AtomicUsize,
    pub(crate) flusher: OnceLock<std::thread::Thread>,
    pub(crate) stop: AtomicBool,
    pub(crate) counts: Counts,
    /// For records of threads whose own buffer is gone already.
    last_resort: OnceLock<Arc<Buffer>>,
}

/// What was not as it should be.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) lost: AtomicU64,
    pub(crate) interleaved: AtomicU64,
    pub(crate) misplaced: AtomicU64,
    pub(crate) too_deep: AtomicU64,
    pub(crate) bad_carriers: AtomicU64,
}

impl Counts {
    pub(crate) fn one(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Registry {
    live: Vec<Arc<Buffer>>,
    /// Labels that are free again, and how many there are in all.
    free: Vec<usize>,
    places: usize,
}

impl Shared {
    pub(crate) fn of(generation: u32) -> Self {
        Self { generation, ..Self::default() }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer for the calling thread.
    pub(crate) fn register(&self) -> Arc<Buffer> {
        let name = std::thread::current().name().map(|name| name.chars().take(64).collect::<String>());
        self.add(name.as_deref())
    }

    fn add(&self, name: Option<&str>) -> Arc<Buffer> {
        let mut registry = self.registry();
        let place = registry.free.pop().unwrap_or_else(|| {
            registry.places += 1;
            registry.places
        });
        let label = match name {
            Some(name) => format!("{name}-{place}").into(),
            None => place.to_string().into(),
        };
        let buffer = Arc::new(Buffer { label, place, content: Mutex::default() });
        registry.live.push(Arc::clone(&buffer));
        buffer
    }

    /// The buffer for threads that are past the end of theirs.
    pub(crate) fn last_resort(&self) -> &Arc<Buffer> {
        self.last_resort.get_or_init(|| self.add(Some("exiting")))
    }

    /// Puts a full chunk aside; false where too many wait, or nobody would write it: the record is lost.
    #[cold]
    fn next_chunk(&self, content: &mut Content) -> bool {
        if content.closed || self.waiting.load(Ordering::Relaxed) >= MOST_CHUNKS {
            Counts::one(&self.counts.lost);
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let spare = content.spare.take().unwrap_or_default();
        content.full.push(std::mem::replace(&mut content.current, spare));
        if let Some(flusher) = self.flusher.get() {
            flusher.unpark();
        }
        true
    }

    /// Hands all records to `write`, thread by thread.
    pub(crate) fn drain(&self, close: bool, mut write: impl FnMut(&str, &Chunk)) {
        let buffers = self.registry().live.clone();
        let mut ended = Vec::new();
        let mut chunks = Vec::new();
        for buffer in buffers {
            let (full, gone) = buffer.take(&mut chunks, close);
            for chunk in chunks.drain(..) {
                write(&buffer.label, &chunk);
                buffer.recycle(chunk);
            }
            self.waiting.fetch_sub(full, Ordering::Relaxed);
            if gone {
                ended.push(buffer);
            }
        }
        if !ended.is_empty() {
            let mut registry = self.registry();
            registry.live.retain(|buffer| !ended.iter().any(|gone| Arc::ptr_eq(gone, buffer)));
            registry.free.extend(ended.iter().map(|buffer| buffer.place));
        }
    }
}
