//! Standard input: read once as it comes, or, where it is an archive, kept for its files to be found in it.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyelog::pipeline::Reader;
use dyelog::trace::is_packed;
use tempfile::SpooledTempFile;

use crate::cli::archive;

/// So much of what is packed tells whether it is an archive, in bytes: no packed block is larger.
const PACKED_HEAD: u64 = 1 << 20;

/// An archive up to this size, in bytes, stays in memory; a larger one goes to a temporary file.
const IN_MEMORY: usize = 32 << 20;

/// What is known of standard input.
enum State {
    /// It was not looked at.
    New,
    /// It is no archive, and begins so.
    Plain(Vec<u8>),
    /// It is an archive, of so many bytes.
    Archive(Arc<Mutex<SpooledTempFile>>, u64),
}

static STATE: Mutex<State> = Mutex::new(State::New);

/// What is there to be read: all of it, whether its beginning was looked at or not.
pub fn open() -> Reader {
    match &mut *lock(&STATE) {
        State::Plain(head) => Box::new(io::Cursor::new(std::mem::take(head)).chain(io::stdin())),
        State::New | State::Archive(..) => Box::new(io::stdin()),
    }
}

/// The archive that is there, and reads from its beginning; `None` where there is none.
///
/// # Errors
/// Those of standard input, and of the temporary file.
pub fn archive() -> io::Result<Option<Kept>> {
    let state = &mut *lock(&STATE);
    if matches!(state, State::New) {
        let mut head = Vec::new();
        io::stdin().take(archive::HEAD).read_to_end(&mut head)?;
        if is_packed(&head) {
            io::stdin().take(PACKED_HEAD).read_to_end(&mut head)?;
        }
        *state = if archive::is_archive(&head) { keep(&head)? } else { State::Plain(head) };
    }
    Ok(match state {
        State::Archive(file, length) => Some(Kept { file: Arc::clone(file), length: *length, at: 0 }),
        State::New | State::Plain(_) => None,
    })
}

fn keep(head: &[u8]) -> io::Result<State> {
    let mut file = SpooledTempFile::new(IN_MEMORY);
    file.write_all(head)?;
    let length = head.len() as u64 + io::copy(&mut io::stdin(), &mut file)?;
    Ok(State::Archive(Arc::new(Mutex::new(file)), length))
}

fn lock<T>(own: &Mutex<T>) -> MutexGuard<'_, T> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reader of the archive. Each has a position of its own.
pub struct Kept {
    file: Arc<Mutex<SpooledTempFile>>,
    length: u64,
    at: u64,
}

impl Kept {
    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = lock(&self.file);
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Kept {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
