//! Compressed input, told by its first bytes and unpacked as it is read.

use std::fmt;
use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bzip2::read::MultiBzDecoder;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::detect::HEAD;

/// The largest window that a zstd frame may ask for, as a power of two: 128 MiB, which is what `zstd` itself takes.
const WINDOW: u32 = 27;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const BZIP2: &[u8] = b"BZh";
const XZ: &[u8] = b"\xfd7zXZ\0";
/// What the deflate streams of Java and others begin with, by how hard they were packed; the third way is text, too.
const ZLIB: [&[u8]; 3] = [b"\x78\x01", b"\x78\x9c", b"\x78\xda"];

/// How much memory unpacking xz may take, in bytes.
const XZ_MEMORY: u64 = 128 << 20;

/// An input that is unpacked where it is packed, and whose head can be looked at.
pub(crate) struct Unpacked<'a> {
    /// What was read to look at it, from `given` on.
    head: Vec<u8>,
    given: usize,
    looked: bool,
    inner: Inner<'a>,
    /// Where damage is put down, and is the end of the content and no error.
    damage: Option<Found>,
}

/// The damage that was found, if any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found(Arc<Mutex<Option<Damage>>>);

impl Found {
    fn put(&self, damage: Damage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(damage);
    }

    /// The damage; nobody gets it twice.
    pub(crate) fn take(&self) -> Option<Damage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

type Peeked<'a> = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send + 'a>>;

enum Inner<'a> {
    Plain(Peeked<'a>),
    Gzip(Box<MultiGzDecoder<BufReader<Peeked<'a>>>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Peeked<'a>>>),
    Bzip2(Box<MultiBzDecoder<BufReader<Peeked<'a>>>>),
    Xz(Box<XzDecoder<BufReader<Peeked<'a>>>>),
    Zlib(Box<ZlibDecoder<BufReader<Peeked<'a>>>>),
}

/// What is wrong with an archive.
#[derive(Debug)]
pub(crate) struct Damage {
    kind: &'static str,
    early: bool,
    /// In the words of the library that unpacks it.
    pub(crate) reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.early { "ends before it is complete" } else { "is damaged" };
        write!(f, "the {} archive {what}", self.kind)
    }
}

impl std::error::Error for Damage {}

/// The damage of an archive behind an error of the input, if it is that.
pub(crate) fn damage(error: &io::Error) -> Option<&Damage> {
    error.get_ref()?.downcast_ref()
}

/// An input as it is, or unpacked where its first bytes are those of gzip, zstd, bzip2, xz or deflate.
///
/// # Errors
/// When its first bytes cannot be read. Damage of an archive is an error of the reading.
pub fn unpacked<'a>(input: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(Box::new(open(input)?))
}

/// Whether a file that begins so is packed.
pub fn is_packed(begin: &[u8]) -> bool {
    open(begin).is_ok_and(|own| !matches!(own.inner, Inner::Plain(_)))
}

/// Looks at the first bytes of an input and unpacks it if they are those of an archive.
pub(crate) fn open<'a>(input: impl Read + Send + 'a) -> io::Result<Unpacked<'a>> {
    let mut input: Box<dyn Read + Send + 'a> = Box::new(input);
    let mut magic = Vec::with_capacity(XZ.len());
    input.by_ref().take(XZ.len() as u64).read_to_end(&mut magic)?;
    let begins = |with: &[u8]| magic.starts_with(with);
    let [gzip, zstd, bzip2, xz] = [GZIP, ZSTD, BZIP2, XZ].map(begins);
    // The size of its blocks is a digit.
    let bzip2 = bzip2 && magic.get(3).is_some_and(u8::is_ascii_digit);
    let zlib = ZLIB.into_iter().any(begins);
    let peeked = Cursor::new(magic).chain(input);
    let buffered = |peeked| BufReader::with_capacity(HEAD, peeked);
    let inner = if gzip {
        Inner::Gzip(Box::new(MultiGzDecoder::new(buffered(peeked))))
    } else if bzip2 {
        Inner::Bzip2(Box::new(MultiBzDecoder::new(buffered(peeked))))
    } else if xz {
        let decoder = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
        Inner::Xz(Box::new(XzDecoder::new_stream(buffered(peeked), decoder)))
    } else if zlib {
        Inner::Zlib(Box::new(ZlibDecoder::new(buffered(peeked))))
    } else if zstd {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(peeked))?;
        decoder.window_log_max(WINDOW)?;
        Inner::Zstd(decoder)
    } else {
        Inner::Plain(peeked)
    };
    Ok(Unpacked { head: Vec::new(), given: 0, looked: false, inner, damage: None })
}

impl Unpacked<'_> {
    /// Takes what can be unpacked of a damaged archive as the whole of it; the damage is found in what is given back.
    pub(crate) fn as_far_as_it_goes(&mut self) -> Found {
        self.damage.get_or_insert_default().clone()
    }

    fn read_inner(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(found) = &self.damage else { return self.inner.read(buffer) };
        self.inner.read(buffer).or_else(|error| match error.downcast::<Damage>() {
            Ok(damage) => {
                found.put(damage);
                self.inner = Inner::Plain(Cursor::new(Vec::new()).chain(Box::new(io::empty())));
                Ok(0)
            }
            Err(error) => Err(error),
        })
    }

    /// The first bytes of the content, at most [`HEAD`]; they are read again afterwards.
    pub(crate) fn head(&mut self) -> io::Result<&[u8]> {
        if !self.looked {
            self.looked = true;
            self.head = vec![0; HEAD];
            let mut filled = 0;
            while filled < HEAD {
                let mut head = std::mem::take(&mut self.head);
                let read = self.read_inner(&mut head[filled..]);
                self.head = head;
                match read {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.head.truncate(filled);
        }
        Ok(&self.head[self.given..])
    }
}

impl Read for Inner<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(input) => input.read(buffer).map_err(|error| damaged("gzip", error)),
            Self::Zstd(input) => input.read(buffer).map_err(|error| damaged("zstd", error)),
            Self::Bzip2(input) => input.read(buffer).map_err(|error| damaged("bzip2", error)),
            Self::Xz(input) => input.read(buffer).map_err(|error| damaged("xz", error)),
            Self::Zlib(input) => input.read(buffer).map_err(|error| damaged("deflate", error)),
        }
    }
}

/// Marks the errors of an unpacking library; those of the input itself pass.
fn damaged(kind: &'static str, error: io::Error) -> io::Error {
    let early = error.kind() == ErrorKind::UnexpectedEof;
    let faulty = [ErrorKind::InvalidData, ErrorKind::InvalidInput, ErrorKind::Other, ErrorKind::OutOfMemory];
    if early || faulty.contains(&error.kind()) {
        return io::Error::new(error.kind(), Damage { kind, early, reason: error.to_string() });
    }
    error
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let kept = &self.head[self.given..];
        if kept.is_empty() {
            return self.read_inner(buffer);
        }
        let count = kept.len().min(buffer.len());
        buffer[..count].copy_from_slice(&kept[..count]);
        self.given += count;
        if self.given == self.head.len() {
            self.head = Vec::new();
            self.given = 0;
        }
        Ok(count)
    }
}
