//! The spans of all files until the last one is read: in memory up to a limit, beyond it on disk.
//!
//! Spans of one operation may lie anywhere in the files, so that nothing is complete before the end. What exceeds the limit is sorted by trace and
//! written out; in the end all such runs are read side by side, and whole traces come out again, a batch at a time. Traces that are linked
//! come in one batch. Later steps use what all batches show together, so the limit changes no result.

mod links;
mod record;
mod spool;
mod trees;

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::io::{self, Read, Seek, Write};
use std::sync::Arc;

use crate::spans::ids::TraceId;
use crate::spans::model::Spans;
use links::LinkedTraces;
use spool::{Merge, Spool};
pub(super) use trees::{Batches, Trees};

/// Where spans go that are more than memory is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// What makes room on disk.
    pub scratch: Scratch,
    /// So much memory spans may take while they wait for the rest of their operations, in bytes.
    pub memory: u64,
}

/// Bytes on disk, such as a file.
pub trait Disk: Read + Write + Seek + Debug + Send {}

impl<D: Read + Write + Seek + Debug + Send> Disk for D {}

/// Makes temporary files: empty, and gone with the program whatever happens.
#[derive(Clone)]
pub struct Scratch(Arc<dyn Fn() -> io::Result<Box<dyn Disk>> + Send + Sync>);

impl Scratch {
    /// From what makes one file.
    pub fn new<D: Disk + 'static>(make: impl Fn() -> io::Result<D> + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Ok(Box::new(make()?))))
    }

    pub(crate) fn file(&self) -> io::Result<Box<dyn Disk>> {
        (self.0)()
    }
}

impl Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}

impl PartialEq for Scratch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Scratch {}

/// The spans so far.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Those that were not written out.
    spans: Spans,
    /// How many were.
    written: usize,
    spill: Option<Spill>,
    runs: Option<Spool>,
    links: LinkedTraces,
    /// Whether links join nothing.
    unlinked: bool,
    /// Whether traces whose identifiers agree in their low 64 bits are one.
    by_low_bits: bool,
}

impl Store {
    /// None yet.
    pub fn new(spill: Option<Spill>) -> Self {
        Self { spill, ..Self::default() }
    }

    /// These, in memory.
    pub fn holding(spans: Spans) -> Self {
        Self { spans, ..Self::default() }
    }

    /// None yet; traces come by themselves whatever links there are.
    pub fn unlinked(spill: Option<Spill>) -> Self {
        Self { unlinked: true, ..Self::new(spill) }
    }

    /// None yet; traces whose identifiers agree in their low 64 bits come together, whatever links there are.
    pub fn by_low_bits(spill: Option<Spill>) -> Self {
        Self { by_low_bits: true, ..Self::unlinked(spill) }
    }

    /// The names of the files.
    pub fn files(&self) -> &[Arc<str>] {
        &self.spans.files
    }

    /// Adds spans of another file, or more of the last one.
    pub fn append(&mut self, spans: Spans) -> io::Result<()> {
        if let Some(spill) = &self.spill {
            if !self.unlinked {
                self.links.add(&spans);
            }
            self.spans.append(spans);
            if self.spans.bytes() as u64 > spill.memory {
                self.write_out()?;
            }
        } else {
            self.spans.append(spans);
        }
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        let Some(spill) = &self.spill else { return Ok(()) };
        let spool = match &mut self.runs {
            Some(spool) => spool,
            None => self.runs.insert(Spool::new(&spill.scratch)?),
        };
        if self.spans.spans.is_empty() {
            return Ok(());
        }
        self.written += self.spans.spans.len();
        let by_low_bits = self.by_low_bits;
        write_run(spool, &mut self.spans, |trace| if by_low_bits { low_bits(trace) } else { trace })
    }

    /// How many spans there are.
    pub fn len(&self) -> usize {
        self.written + self.spans.spans.len()
    }

    /// All spans in memory, whatever the limit, without what else is kept of them.
    pub fn held(&mut self) -> io::Result<Cow<'_, Spans>> {
        if self.runs.is_none() {
            return Ok(Cow::Borrowed(&self.spans));
        }
        let mut all = Spans { kept: None, ..self.spans.like() };
        self.whole_traces(&mut |batch, _| {
            all.take_in(&batch);
            Ok(())
        })?;
        Ok(Cow::Owned(all))
    }

    /// Shows all spans to a function, in batches of whole traces.
    pub fn visit(&mut self, mut look: impl FnMut(&Spans)) -> io::Result<()> {
        if self.runs.is_none() {
            look(&self.spans);
            return Ok(());
        }
        self.whole_traces(&mut |batch, _| {
            look(&batch);
            Ok(())
        })
    }

    /// Gives all spans to a function, in batches of whole traces; and what the batches share: no spans, but their files and resources. The
    /// function also gets the [`Spill`] where spans lie on disk.
    pub fn batches(mut self, mut take: impl FnMut(Spans, Option<&Spill>) -> io::Result<()>) -> io::Result<Spans> {
        let shared = self.spans.like();
        if self.runs.is_none() {
            let all = if self.by_low_bits { in_order(&self.spans)? } else { self.spans };
            return take(all, None).map(|()| shared);
        }
        self.whole_traces(&mut |batch, spill| take(batch, Some(spill)))?;
        Ok(shared)
    }

    /// Gives what lies on disk to a function, in batches of whole traces.
    fn whole_traces(&mut self, take: &mut dyn FnMut(Spans, &Spill) -> io::Result<()>) -> io::Result<()> {
        self.write_out()?;
        let Self { spans: shared, spill: Some(spill), runs, links, .. } = self else {
            unreachable!("spans are written out where it is said");
        };
        let Some(written) = runs.take() else { return Ok(()) };
        let mut linked = shared.like();
        let mut grouped = None;
        let mut gather = Gather { batch: shared.like(), last: TraceId::NONE, most: spill.memory / 2 };
        let mut merge = Merge::new(written, key_of)?;
        while let Some(record) = merge.next()? {
            let trace = key_of(record);
            if links.group(trace).is_none() {
                gather.add(trace, &record[KEY..], &mut |batch| take(batch, spill))?;
                continue;
            }
            read(&record[KEY..], &mut linked)?;
            if linked.bytes() as u64 > spill.memory / 2 {
                links.write(&mut grouped, spill, &mut linked)?;
            }
        }
        *runs = Some(merge.into_spool());
        if !linked.spans.is_empty() {
            links.write(&mut grouped, spill, &mut linked)?;
        }
        if let Some(grouped) = grouped {
            let mut merge = Merge::new(grouped, key_of)?;
            while let Some(record) = merge.next()? {
                gather.add(key_of(record), &record[KEY..], &mut |batch| take(batch, spill))?;
            }
        }
        if gather.batch.spans.is_empty() { Ok(()) } else { take(gather.batch, spill) }
    }
}

impl LinkedTraces {
    /// Writes spans as a run that is sorted by groups of linked traces.
    fn write(&mut self, grouped: &mut Option<Spool>, spill: &Spill, spans: &mut Spans) -> io::Result<()> {
        let spool = match grouped {
            Some(spool) => spool,
            None => grouped.insert(Spool::new(&spill.scratch)?),
        };
        write_run(spool, spans, |trace| self.group(trace).unwrap_or(trace))
    }
}

/// How long the key of a record is, in bytes: the trace that it is sorted by.
const KEY: usize = 16;

fn key_of(record: &[u8]) -> TraceId {
    TraceId(record.first_chunk().map_or(0, |key| u128::from_le_bytes(*key)))
}

fn low_bits(trace: TraceId) -> TraceId {
    TraceId(u128::from(trace.0 as u64))
}

/// Spans in the order of the low bits of their traces, as they come from the disk.
fn in_order(spans: &Spans) -> io::Result<Spans> {
    let mut order: Vec<u32> = (0..spans.spans.len() as u32).collect();
    order.sort_by_key(|place| low_bits(spans.spans[*place as usize].trace));
    let (mut all, mut record) = (spans.like(), Vec::new());
    for place in order {
        record.clear();
        record::write(spans, place, &mut record);
        read(&record, &mut all)?;
    }
    Ok(all)
}

/// Writes spans as a run that is sorted by trace, or by what stands for it, and forgets them.
fn write_run(spool: &mut Spool, spans: &mut Spans, mut key: impl FnMut(TraceId) -> TraceId) -> io::Result<()> {
    let keys = spans.spans.iter().map(|span| key(span.trace));
    let mut order: Vec<(TraceId, u32)> = keys.zip(0..).collect();
    order.sort_unstable();
    spool.run(|out| {
        let mut record = Vec::new();
        for (trace, place) in order {
            record.clear();
            record.extend(trace.0.to_le_bytes());
            record::write(spans, place, &mut record);
            out(&record)?;
        }
        Ok(())
    })?;
    spans.clear();
    Ok(())
}

fn read(mut bytes: &[u8], into: &mut Spans) -> io::Result<()> {
    record::read(&mut bytes, into).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Whole traces, until they are enough for a batch.
struct Gather {
    batch: Spans,
    last: TraceId,
    most: u64,
}

impl Gather {
    fn add(&mut self, trace: TraceId, record: &[u8], take: &mut dyn FnMut(Spans) -> io::Result<()>) -> io::Result<()> {
        if trace != self.last && self.batch.bytes() as u64 > self.most {
            let next = self.batch.like();
            take(std::mem::replace(&mut self.batch, next))?;
        }
        self.last = trace;
        read(record, &mut self.batch)
    }
}
