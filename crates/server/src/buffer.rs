//! Where bodies and records lie: small ones on the heap, large ones in pages of their own, which go back to the system with them.
//!
//! An allocator that serves many threads keeps what large blocks of all sizes leave behind: twice as much memory as there were bodies.

use std::io;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use memmap2::MmapMut;

/// From how many bytes on something has pages of its own.
const LARGE: usize = 128 << 10;

/// Bytes that can be added to, up to a limit.
pub enum Buffer {
    /// On the heap.
    Heap {
        /// The bytes.
        bytes: Vec<u8>,
        /// How many there may be.
        most: usize,
    },
    /// In pages, of which those that are not used take no memory.
    Pages {
        /// All pages.
        pages: MmapMut,
        /// How many bytes are used.
        length: usize,
    },
}

impl Buffer {
    /// Without bytes, of which there may be so many.
    pub fn up_to(most: usize) -> Self {
        Self::Heap { bytes: Vec::new(), most }
    }

    /// So many zeros.
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub fn zeros(length: usize) -> io::Result<Self> {
        if length < LARGE {
            return Ok(Self::Heap { bytes: vec![0; length], most: length });
        }
        Ok(Self::Pages { pages: pages(length)?, length })
    }

    /// How much more memory it takes with so many more bytes.
    pub fn needs(&self, more: usize) -> usize {
        match self {
            Self::Heap { bytes, .. } if bytes.len() + more < LARGE => {
                self.capacity_with(more).saturating_sub(bytes.capacity())
            }
            Self::Heap { bytes, .. } => bytes.len() + more - bytes.capacity().min(bytes.len() + more),
            Self::Pages { .. } => more,
        }
    }

    /// The room that a small one gets where it has not enough.
    fn capacity_with(&self, more: usize) -> usize {
        let Self::Heap { bytes, .. } = self else { return 0 };
        let needed = self.len() + more;
        if needed <= bytes.capacity() { bytes.capacity() } else { needed.max(bytes.capacity() * 3 / 2) }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// When there are more than there may be, or the system has no memory for them.
    pub fn extend(&mut self, more: &[u8]) -> io::Result<()> {
        let room = self.capacity_with(more.len());
        match self {
            Self::Heap { bytes, .. } if bytes.len() + more.len() < LARGE => {
                bytes.reserve_exact(room - bytes.len());
                bytes.extend_from_slice(more);
                Ok(())
            }
            Self::Heap { bytes, most } => {
                let (length, mut pages) = (bytes.len(), pages(*most)?);
                pages.get_mut(..length).ok_or(io::ErrorKind::FileTooLarge)?.copy_from_slice(bytes);
                *self = Self::Pages { pages, length };
                self.extend(more)
            }
            Self::Pages { pages, length } => {
                let end = *length + more.len();
                pages.get_mut(*length..end).ok_or(io::ErrorKind::FileTooLarge)?.copy_from_slice(more);
                *length = end;
                Ok(())
            }
        }
    }

    /// Puts bytes in the place of as many others from there on, which are there.
    pub fn replace(&mut self, at: usize, by: &[u8]) {
        let own = match self {
            Self::Heap { bytes, .. } => &mut bytes[..],
            Self::Pages { pages, length } => &mut pages[..*length],
        };
        if let Some(own) = own.get_mut(at..at.saturating_add(by.len())) {
            own.copy_from_slice(by);
        }
    }

    /// The bytes, to be shared.
    pub fn freeze(self) -> Bytes {
        match self {
            Self::Heap { bytes, .. } => bytes.into(),
            Self::Pages { .. } => Bytes::from_owner(self),
        }
    }
}

/// Pages without content. Pages of two megabytes would count as used once a byte of them is.
fn pages(length: usize) -> io::Result<MmapMut> {
    let pages = MmapMut::map_anon(length)?;
    #[cfg(target_os = "linux")]
    // A kernel that has no such pages says so.
    let _ = pages.advise(memmap2::Advice::NoHugePage);
    Ok(pages)
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap { bytes, .. } => bytes,
            Self::Pages { pages, length } => &pages[..*length],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap { bytes, .. } => bytes,
            Self::Pages { pages, length } => &mut pages[..*length],
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, LARGE};

    #[test]
    fn bytes_stay_in_order_wherever_they_lie_and_memory_is_counted() {
        for piece in [1, 700, LARGE - 1, LARGE, LARGE + 1] {
            let mut buffer = Buffer::up_to(3 * LARGE);
            let (mut all, mut counted) = (Vec::new(), 0);
            while all.len() + piece <= 3 * LARGE {
                let more: Vec<u8> = (0..piece).map(|at| (all.len() + at) as u8).collect();
                counted += buffer.needs(piece);
                buffer.extend(&more).expect("there is room");
                all.extend(more);
                let taken = match &buffer {
                    Buffer::Heap { bytes, .. } => bytes.capacity(),
                    Buffer::Pages { length, .. } => *length,
                };
                assert!(counted >= taken && counted <= taken + LARGE, "{piece}: {counted} for {taken}");
            }
            assert!(matches!(buffer, Buffer::Pages { .. }));
            assert!(buffer.extend(&vec![0; 3 * LARGE]).is_err());
            assert_eq!(buffer.freeze(), all);
        }
        assert_eq!(Buffer::zeros(LARGE).expect("there is memory").freeze(), vec![0; LARGE]);
        assert_eq!(Buffer::zeros(7).expect("there is memory").freeze(), vec![0; 7]);
    }
}
