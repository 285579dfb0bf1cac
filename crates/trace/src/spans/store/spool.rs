//! Records on disk, in runs that are written one after the other and read side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::spans::store::{Disk, Scratch};

/// How much of a run is read at once, in bytes.
const BUFFER: usize = 64 << 10;

/// A file without a name, which is gone with the program whatever happens.
#[derive(Debug)]
pub(super) struct Spool {
    file: Box<dyn Disk>,
    length: u64,
    runs: Vec<Range<u64>>,
}

impl Spool {
    /// An empty one.
    pub fn new(scratch: &Scratch) -> io::Result<Self> {
        Ok(Self { file: scratch.file()?, length: 0, runs: Vec::new() })
    }

    /// Adds a run of records, each of which goes out by the function that is given.
    pub fn run(
        &mut self,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        let begin = self.length;
        self.file.seek(SeekFrom::Start(begin))?;
        let mut out = BufWriter::with_capacity(BUFFER, &mut self.file);
        let mut length = begin;
        write(&mut |record| {
            let size = u32::try_from(record.len()).map_err(io::Error::other)?;
            out.write_all(&size.to_le_bytes())?;
            out.write_all(record)?;
            length += 4 + u64::from(size);
            Ok(())
        })?;
        out.flush()?;
        self.length = length;
        self.runs.push(begin..length);
        Ok(())
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Reads one run.
    pub fn reader(&self, run: usize) -> Run {
        Run { rest: self.runs[run].clone(), buffer: Vec::new(), given: 0 }
    }

    /// The next record of a run; empty at its end.
    pub fn next<'r>(&mut self, run: &'r mut Run) -> io::Result<&'r [u8]> {
        let length = match run.take(&mut *self.file, 4)? {
            Some(length) => u32::from_le_bytes(length.try_into().expect("it is four bytes")),
            None => return Ok(&[]),
        };
        run.take(&mut *self.file, length as usize)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A run that is read.
#[derive(Debug)]
pub(super) struct Run {
    rest: Range<u64>,
    buffer: Vec<u8>,
    given: usize,
}

impl Run {
    /// The next bytes, or nothing at the end.
    fn take(&mut self, file: &mut dyn Disk, count: usize) -> io::Result<Option<&[u8]>> {
        if self.buffer.len() - self.given < count {
            self.buffer.drain(..self.given);
            self.given = 0;
            let room = (self.rest.end - self.rest.start).min(BUFFER.max(count - self.buffer.len()) as u64);
            file.seek(SeekFrom::Start(self.rest.start))?;
            Read::take(&mut *file, room).read_to_end(&mut self.buffer)?;
            self.rest.start += room;
        }
        let bytes = self.buffer.get(self.given..self.given + count);
        self.given += if bytes.is_some() { count } else { 0 };
        Ok(bytes)
    }
}

/// Runs as one, in the order of keys by which each is sorted; of equal keys, those of the earlier run first.
#[derive(Debug)]
pub(super) struct Merge<K> {
    spool: Spool,
    runs: Vec<Run>,
    /// The first record of each run that was not given out.
    heads: Vec<Vec<u8>>,
    heap: BinaryHeap<Reverse<(K, usize)>>,
    key: fn(&[u8]) -> K,
    given: Option<usize>,
}

impl<K: Ord> Merge<K> {
    /// All runs of a spool; the function reads the key of a record.
    pub fn new(mut spool: Spool, key: fn(&[u8]) -> K) -> io::Result<Self> {
        let mut runs: Vec<Run> = (0..spool.runs()).map(|run| spool.reader(run)).collect();
        let mut heads = Vec::with_capacity(runs.len());
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            let head = spool.next(run)?.to_vec();
            if !head.is_empty() {
                heap.push(Reverse((key(&head), number)));
            }
            heads.push(head);
        }
        Ok(Self { spool, runs, heads, heap, key, given: None })
    }

    /// The runs, which can be read once more.
    pub fn into_spool(self) -> Spool {
        self.spool
    }

    /// The next record.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if let Some(run) = self.given.take() {
            let next = self.spool.next(&mut self.runs[run])?;
            if !next.is_empty() {
                self.heap.push(Reverse(((self.key)(next), run)));
            }
            self.heads[run].clear();
            self.heads[run].extend_from_slice(next);
        }
        let Some(Reverse((_, run))) = self.heap.pop() else { return Ok(None) };
        self.given = Some(run);
        Ok(Some(&self.heads[run]))
    }
}
