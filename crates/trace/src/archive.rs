//! Archives with several files: what is in a tar or zip archive, and where.
//!
//! Only what lies where is read here; a member is unpacked as it is read. Names are for showing: nothing is written anywhere.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use flate2::read::DeflateDecoder;

/// The length of a header, and what sizes of members are rounded up to (tar).
const BLOCK: u64 = 512;

/// No name of a member is longer, in bytes.
const LONGEST_NAME: u64 = 64 * 1024;

/// No archive may list more members.
const MOST_MEMBERS: usize = 1 << 20;

/// A kind of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// tar, plain; where it is packed as a whole, it is unpacked first.
    Tar,
    /// zip.
    Zip,
}

impl Kind {
    /// The kind of an archive that begins so; at least 512 bytes are needed to tell a tar archive.
    pub fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            return Some(Self::Zip);
        }
        let header = head.first_chunk::<512>()?;
        (header[0] != 0 && is_header(header)).then_some(Self::Tar)
    }
}

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name, with its folders.
    pub name: String,
    /// Its size, unpacked, as the archive says.
    pub size: u64,
    /// Where it lies; its local header in a zip archive.
    pub offset: u64,
    packed: u64,
    method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Stored,
    Deflate,
    Zstd,
    Unknown,
}

/// What is in an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its files, in its order.
    pub members: Vec<Member>,
    /// Whether it ends before its end, or is damaged there: the members before that are listed.
    pub cut_off: bool,
}

/// The files in a tar archive, read from its begin to its end.
///
/// # Errors
/// Those of the input.
pub fn tar(mut input: impl Read) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let (mut at, mut long_name, mut long_size) = (0u64, None, None);
    loop {
        let mut header = [0u8; 512];
        match input.read_exact(&mut header) {
            Ok(()) => {}
            // Some writers leave the empty blocks at the end away.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(listing),
            Err(error) => return Err(error),
        }
        at += BLOCK;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(listing);
        }
        let own = number(&header[124..136]);
        let (true, Some(own)) = (is_header(&header) && listing.members.len() < MOST_MEMBERS, own) else {
            return Ok(Listing { cut_off: true, ..listing });
        };
        let size = long_size.take().unwrap_or(own);
        let stored = size.div_ceil(BLOCK).saturating_mul(BLOCK);
        let mut passed = 0;
        match header[156] {
            0 | b'0' | b'7' => {
                let name = long_name.take().unwrap_or_else(|| name_of(&header));
                listing.members.push(Member { name, size, offset: at, packed: size, method: Method::Stored });
            }
            kind @ (b'L' | b'x') if size <= LONGEST_NAME => {
                let mut text = Vec::new();
                passed = input.by_ref().take(size).read_to_end(&mut text)? as u64;
                if kind == b'L' {
                    long_name = Some(text_of(&text));
                } else {
                    let (name, size) = extended(&text);
                    (long_name, long_size) = (name.or(long_name), size);
                }
            }
            _ => long_name = None,
        }
        let left = stored - passed;
        if io::copy(&mut input.by_ref().take(left), &mut io::sink())? < left {
            return Ok(Listing { cut_off: true, ..listing });
        }
        at = at.saturating_add(stored);
    }
}

/// Whether the sum of the header's bytes is what it says.
fn is_header(header: &[u8; 512]) -> bool {
    let sum: u64 =
        header.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum();
    number(&header[148..156]) == Some(sum)
}

/// A number in octal digits, or in bytes where the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let mut bytes = field.iter().enumerate().map(|(at, byte)| if at == 0 { byte & 0x7f } else { *byte });
        return bytes.try_fold(0u64, |sum, byte| sum.checked_mul(256)?.checked_add(u64::from(byte)));
    }
    let text = text_of(field);
    let text = text.trim();
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

/// A text up to its first zero.
fn text_of(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn name_of(header: &[u8; 512]) -> String {
    let name = text_of(&header[..100]);
    let folder =
        if &header[257..262] == b"ustar" && header[263] == b'0' { text_of(&header[345..500]) } else { String::new() };
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}

/// Name and size of the member that comes next: `LENGTH path=NAME` a line.
fn extended(text: &[u8]) -> (Option<String>, Option<u64>) {
    let (mut name, mut size) = (None, None);
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((_, pair)) = line.split_once(' ') else { continue };
        match pair.split_once('=') {
            Some(("path", path)) => name = Some(path.to_owned()),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    (name, size)
}

/// The files in a zip archive, by the list at its end.
///
/// # Errors
/// Those of the input; where the archive has no list at its end.
pub fn zip(input: &mut (impl Read + Seek)) -> io::Result<Listing> {
    let length = input.seek(SeekFrom::End(0))?;
    let tail = length.min(65_557 + 20);
    let end = read_at(input, length - tail, tail)?;
    let place = memchr::memmem::rfind(&end, b"PK\x05\x06").ok_or_else(no_list)?;
    let record = Bytes(&end[place..]);
    let (mut size, mut offset) = (record.u32(12)?.into(), record.u32(16)?.into());
    if let Some(locator) =
        place.checked_sub(20).map(|at| Bytes(&end[at..place])).filter(|own| own.0.starts_with(b"PK\x06\x07"))
    {
        let large = read_at(input, locator.u64(8)?, 56)?;
        (size, offset) = (Bytes(&large).u64(40)?, Bytes(&large).u64(48)?);
    }
    if size > length {
        return Err(no_list());
    }
    let list = read_at(input, offset, size)?;
    let (mut listing, mut at) = (Listing::default(), 0);
    while let Some(rest) = list.get(at..).filter(|rest| rest.starts_with(b"PK\x01\x02")) {
        let Ok((member, length)) = listed(Bytes(rest)) else { return Ok(Listing { cut_off: true, ..listing }) };
        at += length;
        // A folder ends with a slash.
        if !member.name.ends_with('/') && listing.members.len() < MOST_MEMBERS {
            listing.members.push(member);
        }
    }
    listing.cut_off = at < list.len();
    Ok(listing)
}

fn no_list() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the zip archive has no list at its end: is it complete?")
}

/// One entry of the list, and its length.
fn listed(entry: Bytes<'_>) -> io::Result<(Member, usize)> {
    let (name, extra, comment) = (entry.u16(28)?, entry.u16(30)?, entry.u16(32)?);
    let (name, extra, comment) = (usize::from(name), usize::from(extra), usize::from(comment));
    let method = match (entry.u16(8)? & 1, entry.u16(10)?) {
        (0, 0) => Method::Stored,
        (0, 8) => Method::Deflate,
        (0, 93) => Method::Zstd,
        _ => Method::Unknown,
    };
    let mut sizes = [u64::from(entry.u32(24)?), u64::from(entry.u32(20)?), u64::from(entry.u32(42)?)];
    let mut more = entry.0.get(46 + name..46 + name + extra).ok_or_else(no_list)?;
    while let (Some(kind), Some(length)) = (more.get(..2), more.get(2..4)) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let Some(own) = more.get(4..4 + length) else { break };
        if kind == [1, 0] {
            let wide = sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX));
            for (size, bytes) in wide.zip(own.chunks_exact(8)) {
                *size = Bytes(bytes).u64(0)?;
            }
        }
        more = &more[4 + length..];
    }
    let [size, packed, offset] = sizes;
    let name_bytes = entry.0.get(46..46 + name).ok_or_else(no_list)?;
    let member = Member { name: String::from_utf8_lossy(name_bytes).into_owned(), size, offset, packed, method };
    Ok((member, 46 + name + extra + comment))
}

/// Opens a file of a zip archive.
///
/// # Errors
/// Those of the input; where the file is packed in a way that is not read, or its header is not where the list says.
pub fn open_zipped<R: Read + Seek + Send + 'static>(mut input: R, member: &Member) -> io::Result<Box<dyn Read + Send>> {
    let header = read_at(&mut input, member.offset, 30)?;
    let own = Bytes(&header);
    if !header.starts_with(b"PK\x03\x04") {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "the zip archive is damaged: a file is not where its list says",
        ));
    }
    let begin = member.offset + 30 + u64::from(own.u16(26)?) + u64::from(own.u16(28)?);
    input.seek(SeekFrom::Start(begin))?;
    let packed = input.take(member.packed);
    Ok(match member.method {
        Method::Stored => Box::new(packed),
        Method::Deflate => Box::new(DeflateDecoder::new(packed)),
        Method::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
        Method::Unknown => {
            let what = "it is encrypted, or packed in a way that is not read; pack it with Deflate or zstd";
            return Err(io::Error::new(ErrorKind::Unsupported, what));
        }
    })
}

fn read_at(input: &mut (impl Read + Seek), offset: u64, length: u64) -> io::Result<Vec<u8>> {
    input.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    if input.by_ref().take(length).read_to_end(&mut bytes)? as u64 == length { Ok(bytes) } else { Err(no_list()) }
}

#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(self, at: usize) -> io::Result<[u8; N]> {
        let bytes = self.0.get(at..at + N).ok_or_else(no_list)?;
        Ok(bytes.try_into().expect("as many bytes were taken"))
    }

    fn u16(self, at: usize) -> io::Result<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> io::Result<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: usize) -> io::Result<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}
