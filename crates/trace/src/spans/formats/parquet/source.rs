//! A Parquet file as it comes: in memory, or, where it is large, on disk, from where it is read in parts.

use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::spans::store::{Disk, Scratch};

/// A file up to this size, in bytes, stays in memory.
const HELD: u64 = 32 << 20;

pub(super) enum Source {
    Memory(Vec<u8>),
    Disk(Box<dyn Disk>, u64),
}

impl Source {
    /// All of an input, on disk where that may be and is needed.
    pub fn of(input: &mut dyn Read, scratch: Option<&Scratch>) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let Some(scratch) = scratch else {
            input.read_to_end(&mut bytes)?;
            return Ok(Self::Memory(bytes));
        };
        if input.take(HELD).read_to_end(&mut bytes)? < HELD as usize {
            return Ok(Self::Memory(bytes));
        }
        let mut file = scratch.file()?;
        file.write_all(&bytes)?;
        let length = bytes.len() as u64 + io::copy(input, &mut file)?;
        Ok(Self::Disk(file, length))
    }

    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(_, length) => *length,
        }
    }

    /// Some of its bytes.
    pub fn part(&mut self, place: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Memory(bytes) => {
                let part = usize::try_from(place.start).ok().zip(usize::try_from(place.end).ok());
                let part = part.and_then(|(begin, end)| bytes.get(begin..end));
                part.map(Cow::Borrowed).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
            Self::Disk(file, _) => {
                file.seek(SeekFrom::Start(place.start))?;
                let (mut part, length) = (Vec::new(), place.end.saturating_sub(place.start));
                if Read::take(file, length).read_to_end(&mut part)? as u64 != length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Cow::Owned(part))
            }
        }
    }
}
