//! The journal: payloads as they came, on disk before they are acknowledged.
//!
//! A journal is a sequence of segments, files that are named by the position of their first byte. A segment is a sequence of records:
//! the length of the payload and a checksum (four bytes each, lowest first), the kind, the time of receipt (eight bytes), the payload.
//! The checksum covers all that follows it. A position counts bytes over all segments.
//!
//! What a crash leaves at the end, a record that is cut off or never reached the disk, is cut when the journal is opened: it was never
//! acknowledged. Damage anywhere else is an error.

pub mod medium;
mod reader;
mod record;

use std::io;

use medium::{Disk, Handle, Medium};
pub use reader::Reader;
pub use record::{Kind, Record};

/// So much is copied to be written at once. A copy of all would take as much memory again as the payloads do.
const PIECE: usize = 256 << 10;

/// The length from which a segment is followed by another. A segment goes as a whole, once the store has all of it: on a small disk it is shorter.
const SEGMENT: u64 = 64 << 20;
/// The part of a disk that a segment takes at most.
const OF_DISK: u64 = 20;
/// What the journal leaves free for the store: once a disk is full, no checkpoint could be written, and nothing of the journal could go.
const LEFT: u64 = 64 << 20;
/// The part of a small disk that it leaves free.
const LEFT_OF_DISK: u64 = 10;

/// A journal that is open to be appended to.
pub struct Journal<M: Medium> {
    medium: M,
    /// Where the segments begin, in order, but for the last.
    earlier: Vec<u64>,
    /// Where the last segment begins.
    start: u64,
    last: M::Handle,
    /// The end of the last whole record; all before it is on disk.
    end: u64,
    /// Why nothing more can be written, once that is so.
    broken: Option<String>,
}

impl<M: Medium> Journal<M> {
    /// Opens a journal, or begins one at `floor`; cuts what a crash left at its end.
    ///
    /// `floor` is the position up to which records are known to have been on disk.
    ///
    /// # Errors
    /// When the medium fails, or the journal is damaged or ends before `floor`.
    pub fn open(medium: M, floor: u64) -> io::Result<Self> {
        let mut earlier = medium.segments()?;
        let start = earlier.pop().unwrap_or(floor);
        let mut end = earlier.first().copied().unwrap_or(start);
        for &start in &earlier {
            let mut segment = medium.open(start)?;
            let whole = start + whole_records(&mut segment, start, end)?;
            if whole < start + segment.length()? {
                return Err(damaged(&format!("the record at {whole} is damaged")));
            }
            end = whole;
        }
        let mut last = medium.open(start)?;
        let whole = whole_records(&mut last, start, end)?;
        end = start + whole;
        if whole < last.length()? {
            if end < floor {
                return Err(damaged(&format!("the record at {end} is damaged")));
            }
            last.truncate(whole)?;
            last.sync()?;
        }
        if end < floor {
            return Err(damaged(&format!("it ends at {end}, but {floor} was reached")));
        }
        Ok(Self { medium, earlier, start, last, end, broken: None })
    }

    /// Where the next record begins; all before it are on disk.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Why nothing can be written any more, where that is so.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Appends records; they are on disk when this returns.
    ///
    /// # Errors
    /// When they could not all be written; then none of them is in the journal.
    pub fn append(&mut self, records: &[Record]) -> io::Result<()> {
        if let Some(why) = &self.broken {
            return Err(io::Error::other(why.clone()));
        }
        if records.is_empty() {
            return Ok(());
        }
        let length: u64 = records.iter().map(|record| record.length() as u64).sum();
        let disk = self.medium.disk();
        if let Some(full) = disk.and_then(|disk| without_room(disk, length)) {
            return Err(full);
        }
        let segment = disk.map_or(SEGMENT, |disk| SEGMENT.min(disk.size / OF_DISK));
        if self.end - self.start >= segment {
            self.last = self.medium.open(self.end)?;
            self.earlier.push(self.start);
            self.start = self.end;
        }
        if let Err(error) = write(&mut self.last, records) {
            // Half a record at the end would hide all that follows it.
            self.cut_back();
            return Err(error);
        }
        if let Err(error) = self.last.sync() {
            // After a failed sync nobody knows what is on disk, and a second one would not tell.
            self.broken = Some(format!("the journal could not be synced: {error}"));
            return Err(error);
        }
        self.end += length;
        Ok(())
    }

    /// Whether there is room again after a write failed: zeros are written and cut off again.
    pub fn has_room(&mut self) -> bool {
        let is_full = self.medium.disk().is_some_and(|disk| without_room(disk, PIECE as u64).is_some());
        if self.broken.is_some() || is_full {
            return false;
        }
        let written = self.last.append(&vec![0; PIECE]);
        self.cut_back();
        written.is_ok() && self.broken.is_none()
    }

    /// Cuts off what was written after the last record.
    fn cut_back(&mut self) {
        if let Err(worse) = self.last.truncate(self.end - self.start) {
            self.broken = Some(format!("the journal could not be cut back after a failed write: {worse}"));
        }
    }

    /// Removes segments of which nothing at or after a position is needed.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn forget_before(&mut self, position: u64) -> io::Result<()> {
        loop {
            let next = self.earlier.get(1).copied().unwrap_or(self.start);
            match self.earlier.first() {
                Some(&first) if next <= position => self.medium.remove(first)?,
                _ => return Ok(()),
            }
            self.earlier.remove(0);
        }
    }
}

/// That so many bytes more would leave too little for the store.
fn without_room(disk: Disk, length: u64) -> Option<io::Error> {
    let left = LEFT.min(disk.size / LEFT_OF_DISK);
    let message = || format!("its disk has {} MiB free, and the store needs {} MiB of it", disk.free >> 20, left >> 20);
    (disk.free < length.saturating_add(left)).then(|| io::Error::new(io::ErrorKind::StorageFull, message()))
}

/// Writes records at the end, small ones together.
fn write(handle: &mut impl Handle, records: &[Record]) -> io::Result<()> {
    let mut piece = Vec::new();
    for record in records {
        if piece.len() + record.length() > PIECE && !piece.is_empty() {
            handle.append(&piece)?;
            piece.clear();
        }
        record.begin(&mut piece);
        if record.length() > PIECE {
            handle.append(&piece)?;
            handle.append(&record.payload)?;
            piece.clear();
        } else {
            piece.extend(&record.payload);
        }
    }
    if piece.is_empty() { Ok(()) } else { handle.append(&piece) }
}

/// How many bytes of a segment are whole records; it must begin where the one before it ends.
fn whole_records(handle: &mut impl Handle, start: u64, end: u64) -> io::Result<u64> {
    if start != end {
        return Err(damaged(&format!("what begins at {end} is missing, the next segment begins at {start}")));
    }
    let mut at = 0;
    while let Some(record) = record::read(handle, at)? {
        at += record.length() as u64;
    }
    Ok(at)
}

/// An error of a journal that is not as it was left.
pub fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the journal is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::medium::{Handle, Medium as _, Memory};
    use super::{Journal, Kind, PIECE, Reader, Record, write};

    fn record(text: &str) -> Record {
        Record { kind: Kind::Traces, received: 7, payload: text.as_bytes().to_vec().into() }
    }

    fn all(memory: &Memory, end: u64) -> Vec<String> {
        let mut reader = Reader::at(memory.clone(), 0);
        let mut texts = Vec::new();
        while let Some((_, record)) = reader.next(end).expect("a journal in memory does not fail") {
            texts.push(String::from_utf8(record.payload.to_vec()).expect("text was put in"));
        }
        texts
    }

    #[test]
    fn what_was_appended_comes_back_after_a_crash() {
        let memory = Memory::default();
        let mut journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        journal.append(&[record("a"), record("bc")]).expect("a journal in memory does not fail");
        journal.append(&[record("def")]).expect("a journal in memory does not fail");
        memory.crash();
        let journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        assert_eq!(all(&memory, journal.end()), ["a", "bc", "def"]);
    }

    #[test]
    fn segments_follow_each_other_and_are_forgotten() {
        let memory = Memory::default();
        let mut journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        let large = Record { payload: vec![7; 40 << 20].into(), ..record("") };
        for _ in 0..4 {
            journal.append(std::slice::from_ref(&large)).expect("a journal in memory does not fail");
        }
        journal.append(&[record("end")]).expect("a journal in memory does not fail");
        let mut journal = Journal::open(memory.clone(), journal.end()).expect("a journal in memory does not fail");
        let mut reader = Reader::at(memory.clone(), 0);
        let mut places = Vec::new();
        while let Some((at, record)) = reader.next(journal.end()).expect("a journal in memory does not fail") {
            places.push((at, record.payload.len()));
        }
        assert_eq!(
            places.iter().map(|(_, length)| *length).collect::<Vec<_>>(),
            [40 << 20, 40 << 20, 40 << 20, 40 << 20, 3]
        );
        journal.forget_before(places[3].0).expect("a journal in memory does not fail");
        assert_eq!(memory.segments().expect("a journal in memory does not fail"), [places[2].0, places[4].0]);
        assert_eq!(
            Journal::open(memory, journal.end()).expect("a journal in memory does not fail").end(),
            journal.end()
        );
    }

    /// Tells the longest piece that was written.
    struct Pieces(usize);

    impl Handle for Pieces {
        fn length(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn read(&mut self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }

        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0 = self.0.max(bytes.len());
            Ok(())
        }

        fn truncate(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_together_is_not_copied_as_a_whole() {
        let of = |length: usize| Record { payload: vec![7; length].into(), ..record("") };
        let mut pieces = Pieces(0);
        write(&mut pieces, &vec![of(1000); 1000]).expect("it does not fail");
        assert!((PIECE / 2..=PIECE).contains(&pieces.0), "{}", pieces.0);
        write(&mut pieces, &[of(3 << 20), of(7), of(2 << 20)]).expect("it does not fail");
        assert_eq!(pieces.0, 3 << 20);
    }

    #[test]
    fn a_torn_end_is_cut_at_whatever_byte() {
        let memory = Memory::default();
        let mut journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        journal.append(&[record("one")]).expect("a journal in memory does not fail");
        let whole = journal.end();
        journal.append(&[record("two")]).expect("a journal in memory does not fail");
        for torn in whole..journal.end() {
            let copy = memory.copy();
            copy.cut(0, torn);
            let journal = Journal::open(copy.clone(), whole).expect("a journal in memory does not fail");
            assert_eq!((journal.end(), all(&copy, journal.end())), (whole, vec!["one".to_owned()]), "{torn}");
        }
    }

    #[test]
    fn a_small_disk_keeps_room_for_the_store() {
        let memory = Memory::of_size(40 << 20);
        let mut journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        let of = |length: usize| [Record { payload: vec![7; length].into(), ..record("") }];
        let written = (0..40).take_while(|_| journal.append(&of(1 << 20)).is_ok()).count();
        // A tenth of it stays free, and what a record needs beside its payload.
        assert_eq!((written, journal.has_room(), journal.broken()), (35, true, None));
        let error = journal.append(&of(1 << 20)).expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), "its disk has 4 MiB free, and the store needs 4 MiB of it");
        journal.append(&of(900 << 10)).expect("this fits");
        assert!(!journal.has_room());
        // What the store has goes in short segments.
        journal.forget_before(journal.end()).expect("a journal in memory does not fail");
        assert!(journal.has_room());
        let left: u64 = memory.segments().expect("a journal in memory does not fail").len() as u64;
        assert_eq!(left, 1);
    }

    #[test]
    fn what_was_reached_must_be_there() {
        let memory = Memory::default();
        let mut journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        journal.append(&[record("one"), record("two")]).expect("a journal in memory does not fail");
        let end = journal.end();
        memory.flip(0, 10);
        let error = Journal::open(memory.clone(), end).err().expect("it is damaged");
        assert_eq!(error.to_string(), "the journal is damaged: the record at 0 is damaged");
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_the_next_one_succeeds() {
        let memory = Memory::default();
        let mut journal = Journal::open(memory.clone(), 0).expect("a journal in memory does not fail");
        journal.append(&[record("one")]).expect("a journal in memory does not fail");
        memory.fill_up_after(5);
        journal.append(&[record("two")]).unwrap_err();
        memory.fill_up_after(usize::MAX);
        journal.append(&[record("three")]).expect("a journal in memory does not fail");
        assert_eq!(all(&memory, journal.end()), ["one", "three"]);
    }
}
