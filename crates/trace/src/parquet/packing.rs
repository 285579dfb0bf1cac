//! Pages as they were before they were packed.

use std::io::Read as _;

use super::{Malformed, values};

/// No page may be larger, in bytes.
pub(super) const LARGEST_PAGE: usize = 1 << 29;

/// A page as it was before it was packed, of so many bytes.
pub(super) fn unpacked(codec: i64, bytes: &[u8], size: usize) -> Result<Vec<u8>, Malformed> {
    if size > LARGEST_PAGE {
        return Err(Malformed("a page is too large"));
    }
    let read = |mut input: Box<dyn std::io::Read + '_>| {
        let mut out = Vec::new();
        input.by_ref().take(size as u64).read_to_end(&mut out).map_err(|_| Malformed("a page cannot be unpacked"))?;
        Ok(out)
    };
    match codec {
        0 => Ok(bytes.to_vec()),
        1 => snappy(bytes, size),
        2 => read(Box::new(flate2::read::MultiGzDecoder::new(bytes))),
        5 => framed_lz4(bytes, size).or_else(|_| lz4(bytes, size)),
        6 => {
            let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
            read(Box::new(decoder.map_err(|_| Malformed("a page cannot be unpacked"))?))
        }
        7 => lz4(bytes, size),
        _ => Err(Malformed("it is packed with LZO or Brotli; pack it with Snappy, LZ4, zstd or gzip")),
    }
}

/// What Snappy packed, without a frame.
fn snappy(bytes: &[u8], size: usize) -> Result<Vec<u8>, Malformed> {
    let mut at = 0;
    let length = usize::try_from(values::varint(bytes, &mut at)?).map_err(|_| Malformed::SHORT)?;
    if length > size {
        return Err(Malformed("a page is larger than it says"));
    }
    let mut out: Vec<u8> = Vec::new();
    let number = |at: &mut usize, count: usize| {
        let taken = bytes.get(*at..*at + count).ok_or(Malformed::SHORT)?;
        *at += count;
        Ok::<_, Malformed>(taken.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    while at < bytes.len() {
        let tag = number(&mut at, 1)?;
        let (length, offset) = match tag & 3 {
            0 => {
                let length = match tag >> 2 {
                    short @ 0..60 => short,
                    long => number(&mut at, long - 59)?,
                } + 1;
                let end = at.checked_add(length).ok_or(Malformed::SHORT)?;
                out.extend_from_slice(bytes.get(at..end).ok_or(Malformed::SHORT)?);
                at = end;
                continue;
            }
            1 => ((tag >> 2 & 7) + 4, tag >> 5 << 8 | number(&mut at, 1)?),
            2 => ((tag >> 2) + 1, number(&mut at, 2)?),
            _ => ((tag >> 2) + 1, number(&mut at, 4)?),
        };
        let from = out.len().checked_sub(offset).filter(|_| offset > 0).ok_or(Malformed::SHORT)?;
        if out.len() + length > size {
            return Err(Malformed("a page is larger than it says"));
        }
        copy(&mut out, from, length);
    }
    if out.len() == length { Ok(out) } else { Err(Malformed::SHORT) }
}

/// Copies what was written before. It may overlap what comes of it.
fn copy(out: &mut Vec<u8>, from: usize, length: usize) {
    for place in from..from + length {
        out.push(out[place]);
    }
}

/// One block of LZ4, without a frame.
fn lz4(bytes: &[u8], size: usize) -> Result<Vec<u8>, Malformed> {
    let mut at = 0;
    let mut out: Vec<u8> = Vec::new();
    let length = |short: usize, at: &mut usize| {
        let mut length = short;
        let mut more = short == 15;
        while more {
            let next = *bytes.get(*at).ok_or(Malformed::SHORT)?;
            *at += 1;
            length += usize::from(next);
            more = next == u8::MAX;
        }
        Ok::<_, Malformed>(length)
    };
    while let Some(token) = bytes.get(at) {
        at += 1;
        let literal = length(usize::from(token >> 4), &mut at)?;
        let end = at.checked_add(literal).ok_or(Malformed::SHORT)?;
        out.extend_from_slice(bytes.get(at..end).ok_or(Malformed::SHORT)?);
        at = end;
        // The last part of a block has nothing to copy.
        if at == bytes.len() {
            break;
        }
        let offset = bytes.get(at..at + 2).ok_or(Malformed::SHORT)?;
        let offset = usize::from(u16::from_le_bytes([offset[0], offset[1]]));
        at += 2;
        let copied = length(usize::from(token & 15), &mut at)? + 4;
        let from = out.len().checked_sub(offset).filter(|_| offset > 0).ok_or(Malformed::SHORT)?;
        if out.len() + copied > size {
            return Err(Malformed("a page is larger than it says"));
        }
        copy(&mut out, from, copied);
    }
    if out.len() == size { Ok(out) } else { Err(Malformed::SHORT) }
}

/// Blocks of LZ4 as Hadoop writes them: each after its sizes.
fn framed_lz4(mut bytes: &[u8], size: usize) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (sizes, rest) = bytes.split_at_checked(8).ok_or(Malformed::SHORT)?;
        let number = |at: usize| u32::from_be_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]) as usize;
        let (block, rest) = rest.split_at_checked(number(4)).ok_or(Malformed::SHORT)?;
        if number(0) > size - out.len() {
            return Err(Malformed("a page is larger than it says"));
        }
        out.extend(lz4(block, number(0))?);
        bytes = rest;
    }
    if out.len() == size { Ok(out) } else { Err(Malformed::SHORT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snappy_copies_what_it_wrote() {
        // "ab", then four bytes from two before, then a literal.
        let packed = [7, 0b0000_0100, b'a', b'b', 0b0000_0001, 2, 0, b'c'];
        assert_eq!(snappy(&packed, 7).expect("it is whole"), b"abababc");
        assert!(snappy(&packed, 6).is_err() && snappy(&packed[..6], 7).is_err());
        assert!(snappy(&[4, 0b0000_0001, 2], 4).is_err(), "nothing lies before");
    }

    #[test]
    fn lz4_copies_what_it_wrote() {
        // "ab", then five bytes from two before; then "c".
        let packed = [0x21, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(lz4(&packed, 8).expect("it is whole"), b"abababac");
        assert!(lz4(&packed, 7).is_err() && lz4(&packed, 9).is_err() && lz4(&packed[..4], 8).is_err());
        assert!(lz4(&[0x01, 2, 0, 0], 5).is_err(), "nothing lies before");
        // Twenty letters: a length of 15 goes on in the next byte.
        let long: Vec<u8> = [0xf0, 5].into_iter().chain([b'x'; 20]).collect();
        assert_eq!(lz4(&long, 20).expect("it is whole"), [b'x'; 20]);
        let framed: Vec<u8> = [0, 0, 0, 8, 0, 0, 0, 7].into_iter().chain(packed).collect();
        assert_eq!(unpacked(5, &framed, 8).expect("it is whole"), b"abababac");
        assert_eq!(unpacked(5, &packed, 8).expect("it is whole"), b"abababac");
    }
}
