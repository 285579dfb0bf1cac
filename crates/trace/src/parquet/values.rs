//! The encodings of values and levels.

use std::sync::Arc;

use super::schema::Physical;
use super::{Datum, Malformed};

/// A whole number of seven bits a byte.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Malformed> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Malformed::SHORT)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Malformed("a number is too long"))
}

pub(super) fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Bits of a page, the lowest first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn next(&mut self, width: usize) -> Result<u64, Malformed> {
        let (mut number, mut have) = (0u64, 0);
        while have < width {
            let byte = u64::from(*self.bytes.get(self.at / 8).ok_or(Malformed::SHORT)?);
            let (from, take) = (self.at % 8, (8 - self.at % 8).min(width - have));
            number |= (byte >> from & ((1 << take) - 1)) << have;
            self.at += take;
            have += take;
        }
        Ok(number)
    }
}

/// So many numbers in runs and packed bits (`RLE`).
pub(super) fn runs(bytes: &[u8], width: usize, count: usize) -> Result<Vec<u32>, Malformed> {
    if width > 32 {
        return Err(Malformed("a number is too wide"));
    }
    let (mut numbers, mut at) = (Vec::new(), 0);
    while numbers.len() < count {
        let head = varint(bytes, &mut at)?;
        let wanted = count - numbers.len();
        if head & 1 == 0 {
            let length = usize::try_from(head >> 1).unwrap_or(usize::MAX).min(wanted);
            let mut own = Bits { bytes: bytes.get(at..).ok_or(Malformed::SHORT)?, at: 0 };
            let number = own.next(width)? as u32;
            at += width.div_ceil(8);
            numbers.resize(numbers.len() + length, number);
            if length == 0 {
                return Err(Malformed("a run is empty"));
            }
        } else {
            let groups = usize::try_from(head >> 1).unwrap_or(usize::MAX);
            let mut own = Bits { bytes: bytes.get(at..).ok_or(Malformed::SHORT)?, at: 0 };
            for _ in 0..groups.saturating_mul(8).min(wanted) {
                numbers.push(own.next(width)? as u32);
            }
            at = at.saturating_add(groups.saturating_mul(width));
            if groups == 0 {
                return Err(Malformed("a run is empty"));
            }
        }
    }
    Ok(numbers)
}

/// So many values one after another (`PLAIN`).
pub(super) fn plain(bytes: &[u8], physical: Physical, count: usize) -> Result<Vec<Datum>, Malformed> {
    let mut values = Vec::new();
    let (mut at, mut bits) = (0, Bits { bytes, at: 0 });
    let mut take = |length: usize| {
        let end = at + length;
        let taken = bytes.get(at..end).ok_or(Malformed::SHORT)?;
        at = end;
        Ok::<_, Malformed>(taken)
    };
    for _ in 0..count {
        values.push(match physical {
            Physical::Boolean => Datum::Bool(bits.next(1)? == 1),
            Physical::Int32 => Datum::Int(i64::from(i32::from_le_bytes(array(take(4)?)))),
            Physical::Int64 => Datum::Int(i64::from_le_bytes(array(take(8)?))),
            Physical::Int96 => int96(take(12)?),
            Physical::Float => Datum::Double(f64::from(f32::from_le_bytes(array(take(4)?)))),
            Physical::Double => Datum::Double(f64::from_le_bytes(array(take(8)?))),
            Physical::Bytes => {
                let length = u32::from_le_bytes(array(take(4)?)) as usize;
                Datum::Bytes(take(length)?.into())
            }
            Physical::Fixed(length) => Datum::Bytes(take(length)?.into()),
        });
    }
    Ok(values)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("as many bytes were taken")
}

/// A time of day and a day, as older engines write it: nanoseconds from 1970.
fn int96(bytes: &[u8]) -> Datum {
    let time = i64::from_le_bytes(array(&bytes[..8]));
    let day = i64::from(u32::from_le_bytes(array(&bytes[8..])));
    Datum::Int((day - 2_440_588).saturating_mul(86_400_000_000_000).saturating_add(time))
}

/// Differences in blocks (`DELTA_BINARY_PACKED`), at most so many; where they end, too.
fn deltas(bytes: &[u8], most: usize) -> Result<(Vec<i64>, usize), Malformed> {
    let mut at = 0;
    let block = varint(bytes, &mut at)?;
    let parts = varint(bytes, &mut at)?;
    let total = varint(bytes, &mut at)?;
    let mut last = zigzag(varint(bytes, &mut at)?);
    if parts == 0 || parts > 512 || block == 0 || block > 1 << 20 || block % parts != 0 || total > most as u64 {
        return Err(Malformed("a block of differences is of no size"));
    }
    let (length, total) = ((block / parts) as usize, total as usize);
    let mut values = Vec::new();
    if total > 0 {
        values.push(last);
    }
    while values.len() < total {
        let least = zigzag(varint(bytes, &mut at)?);
        let widths = bytes.get(at..at + parts as usize).ok_or(Malformed::SHORT)?;
        at += parts as usize;
        for width in widths.iter().map(|width| usize::from(*width)) {
            if values.len() >= total {
                break;
            }
            if width > 64 {
                return Err(Malformed("a number is too wide"));
            }
            let mut bits = Bits { bytes: bytes.get(at..).ok_or(Malformed::SHORT)?, at: 0 };
            for _ in 0..length.min(total - values.len()) {
                last = last.wrapping_add(least).wrapping_add(bits.next(width)?.cast_signed());
                values.push(last);
            }
            at = at.saturating_add((length * width).div_ceil(8));
        }
    }
    Ok((values, at))
}

/// Numbers as differences.
pub(super) fn delta_numbers(bytes: &[u8], physical: Physical, count: usize) -> Result<Vec<Datum>, Malformed> {
    let (numbers, _) = deltas(bytes, count)?;
    let of = |number: i64| if physical == Physical::Int32 { i64::from(number as i32) } else { number };
    Ok(numbers.into_iter().map(|number| Datum::Int(of(number))).collect())
}

/// Texts behind their lengths (`DELTA_LENGTH_BYTE_ARRAY`).
fn delta_lengths(bytes: &[u8], count: usize) -> Result<Vec<&[u8]>, Malformed> {
    let (lengths, mut at) = deltas(bytes, count)?;
    let mut texts = Vec::new();
    for length in lengths {
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length)).ok_or(Malformed::SHORT)?;
        texts.push(bytes.get(at..end).ok_or(Malformed::SHORT)?);
        at = end;
    }
    Ok(texts)
}

/// The same as values.
pub(super) fn delta_texts(bytes: &[u8], count: usize) -> Result<Vec<Datum>, Malformed> {
    Ok(delta_lengths(bytes, count)?.into_iter().map(|text| Datum::Bytes(text.into())).collect())
}

/// Texts that begin as the one before (`DELTA_BYTE_ARRAY`). All of them together may be as long as `most`.
pub(super) fn delta_suffixes(bytes: &[u8], count: usize, most: usize) -> Result<Vec<Datum>, Malformed> {
    let (shared, at) = deltas(bytes, count)?;
    let rests = delta_lengths(bytes.get(at..).ok_or(Malformed::SHORT)?, count)?;
    let (mut values, mut last, mut room): (Vec<Datum>, Arc<[u8]>, usize) = (Vec::new(), Arc::new([]), most);
    for (shared, rest) in shared.into_iter().zip(rests) {
        let begin = usize::try_from(shared).ok().and_then(|shared| last.get(..shared)).ok_or(Malformed::SHORT)?;
        last = [begin, rest].concat().into();
        room = room.checked_sub(last.len()).ok_or(Malformed("a page holds too much"))?;
        values.push(Datum::Bytes(Arc::clone(&last)));
    }
    Ok(values)
}

/// Numbers whose bytes lie in as many streams (`BYTE_STREAM_SPLIT`).
pub(super) fn split_streams(bytes: &[u8], physical: Physical, count: usize) -> Result<Vec<Datum>, Malformed> {
    let width = match physical {
        Physical::Int32 | Physical::Float => 4,
        Physical::Int64 | Physical::Double => 8,
        Physical::Fixed(width) => width,
        _ => return Err(Malformed("an encoding does not fit its type")),
    };
    if bytes.len() / width.max(1) < count {
        return Err(Malformed::SHORT);
    }
    let joined: Vec<u8> = (0..count * width).map(|at| bytes[at % width * count + at / width]).collect();
    plain(&joined, physical, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_bits() {
        // Five times 3, then eight numbers of two bits.
        let bytes = [10, 3, 3, 0b1110_0100, 0b0001_1011];
        assert_eq!(runs(&bytes, 2, 13).expect("it is whole"), [3, 3, 3, 3, 3, 0, 1, 2, 3, 3, 2, 1, 0]);
        assert!(runs(&bytes, 2, 14).is_err() && runs(&[0, 1], 1, 1).is_err() && runs(&bytes, 33, 1).is_err());
    }

    #[test]
    fn differences() {
        // A block of 128 in 4 parts: 7, 5, 3, 1, 2, as the format's own example has them.
        let bytes = [0x80, 0x01, 4, 5, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0, 0, 0, 0, 0, 0, 0];
        let (numbers, end) = deltas(&bytes, 5).expect("it is whole");
        assert_eq!((numbers, end), (vec![7, 5, 3, 1, 2], 18));
        assert!(deltas(&bytes, 4).is_err() && deltas(&bytes[..12], 5).is_ok() && deltas(&bytes[..8], 5).is_err());
    }
}
