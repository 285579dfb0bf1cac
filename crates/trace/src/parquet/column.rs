//! The values of a column, page by page.

use std::ops::Range;
use std::vec::IntoIter;

use super::packing::{LARGEST_PAGE, unpacked};
use super::schema::Physical;
use super::thrift::{Struct, structure};
use super::{Datum, Malformed, Part, values};

/// No page may hold more values.
const MOST_VALUES: usize = 1 << 24;

/// One column of a row group.
pub(super) struct Column<'f> {
    file: &'f [u8],
    physical: Physical,
    levels: [u8; 2],
    codec: i64,
    /// Where the pages lie that were not read yet.
    pages: Range<usize>,
    /// How many values come in them.
    left: u64,
    dictionary: Vec<Datum>,
    repetitions: IntoIter<u32>,
    definitions: IntoIter<u32>,
    /// How many values of this page were not given out yet.
    waiting: usize,
    held: Held,
    next: Option<(u8, u8)>,
}

/// The values of a page.
enum Held {
    Own(IntoIter<Datum>),
    /// Places in the dictionary.
    Places(IntoIter<u32>),
}

/// Where a column lies in its file, by what the row group says of it.
pub(super) fn place(chunk: &Struct<'_>) -> Result<Range<u64>, Malformed> {
    if chunk.get(1).is_some() {
        return Err(Malformed("a column lies in another file"));
    }
    let meta = chunk.inner(3).ok_or(Malformed("a column is not described"))?;
    let data = meta.size(9)? as u64;
    let first = meta.int(11).and_then(|at| u64::try_from(at).ok()).filter(|at| *at > 0 && *at < data);
    let begin = first.unwrap_or(data);
    Ok(begin..begin.checked_add(meta.size(7)? as u64).ok_or(Malformed::SHORT)?)
}

impl<'f> Column<'f> {
    /// A column by what the row group says of it.
    pub fn open(part: Part<'f>, chunk: &Struct<'_>, physical: Physical, levels: [u8; 2]) -> Result<Self, Malformed> {
        let place = place(chunk)?;
        let within = |at: u64| usize::try_from(at.checked_sub(part.begin)?).ok().filter(|at| *at <= part.bytes.len());
        let (begin, end) = within(place.start).zip(within(place.end)).ok_or(Malformed::SHORT)?;
        let meta = chunk.inner(3).ok_or(Malformed("a column is not described"))?;
        Ok(Self {
            file: part.bytes,
            physical,
            levels,
            codec: meta.int(4).unwrap_or(0),
            pages: begin..end,
            left: meta.int(5).and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
            dictionary: Vec::new(),
            repetitions: Vec::new().into_iter(),
            definitions: Vec::new().into_iter(),
            waiting: 0,
            held: Held::Own(Vec::new().into_iter()),
            next: None,
        })
    }

    /// The levels of the value that comes next: repetition and definition.
    pub fn peek(&mut self) -> Result<Option<(u8, u8)>, Malformed> {
        if self.next.is_some() {
            return Ok(self.next);
        }
        while self.waiting == 0 {
            if self.left == 0 || self.pages.is_empty() {
                return Ok(None);
            }
            self.page()?;
        }
        self.waiting -= 1;
        let [most, _] = self.levels;
        let repetition = self.repetitions.next().unwrap_or(0) as u8;
        let definition = self.definitions.next().map_or(most, |level| level as u8);
        self.next = Some((repetition, definition));
        Ok(self.next)
    }

    /// The value that comes next.
    pub fn take(&mut self) -> Result<Datum, Malformed> {
        let (_, definition) = self.peek()?.ok_or(Malformed("a column ends before the others"))?;
        self.next = None;
        if definition < self.levels[0] {
            return Ok(Datum::Null);
        }
        match &mut self.held {
            Held::Own(own) => own.next().ok_or(Malformed::SHORT),
            Held::Places(places) => {
                let place = places.next().ok_or(Malformed::SHORT)?;
                self.dictionary.get(place as usize).cloned().ok_or(Malformed("a value is not in its dictionary"))
            }
        }
    }

    /// Reads a page.
    fn page(&mut self) -> Result<(), Malformed> {
        let (header, length) = structure(&self.file[self.pages.clone()])?;
        let begin = self.pages.start + length;
        let packed = header.size(3)?;
        let end = begin.checked_add(packed).filter(|end| *end <= self.pages.end).ok_or(Malformed::SHORT)?;
        self.pages.start = end;
        let (body, size) = (&self.file[begin..end], header.size(2)?);
        match (header.int(1), header.inner(5), header.inner(7), header.inner(8)) {
            (Some(2), _, Some(own), _) => {
                let count = own.size(1)?.min(MOST_VALUES);
                self.dictionary = values::plain(&unpacked(self.codec, body, size)?, self.physical, count)?;
            }
            (Some(0), Some(own), ..) => {
                let bytes = unpacked(self.codec, body, size)?;
                let count = self.begins(own.size(1)?)?;
                let [most, lists] = self.levels;
                let (repetitions, rest) = levels_before(&bytes, lists, count, own.int(4))?;
                let (definitions, rest) = levels_before(rest, most, count, own.int(3))?;
                self.repetitions = repetitions.into_iter();
                self.definitions = definitions.into_iter();
                self.values(rest, own.int(2), count, size)?;
            }
            (Some(3), _, _, Some(own)) => {
                let count = self.begins(own.size(1)?)?;
                let (definitions, repetitions) = (own.size(5)?, own.size(6)?);
                let lists = body.get(..repetitions).ok_or(Malformed::SHORT)?;
                let levels = definitions.checked_add(repetitions).ok_or(Malformed::SHORT)?;
                let present = body.get(repetitions..levels).ok_or(Malformed::SHORT)?;
                self.repetitions = level_runs(lists, self.levels[1], count)?.into_iter();
                self.definitions = level_runs(present, self.levels[0], count)?.into_iter();
                let size = size.checked_sub(levels).ok_or(Malformed::SHORT)?;
                let codec = if own.int(7) == Some(0) { 0 } else { self.codec };
                // A page without values may have nothing that could be unpacked.
                let bytes = if body.len() == levels { Vec::new() } else { unpacked(codec, &body[levels..], size)? };
                self.values(&bytes, own.int(4), count, size)?;
            }
            // An index.
            _ => {}
        }
        Ok(())
    }

    /// Takes note of a page of so many values.
    fn begins(&mut self, count: usize) -> Result<usize, Malformed> {
        if count > MOST_VALUES || count as u64 > self.left {
            return Err(Malformed("a page has too many values"));
        }
        self.left -= count as u64;
        self.waiting = count;
        Ok(count)
    }

    /// Reads the values of a page, of which so many are there or absent.
    fn values(&mut self, bytes: &[u8], encoding: Option<i64>, count: usize, size: usize) -> Result<(), Malformed> {
        let [most, _] = self.levels;
        let definitions = self.definitions.as_slice();
        let present = match most {
            0 => count,
            most => definitions.iter().filter(|level| **level == u32::from(most)).count(),
        };
        self.held = Held::Own(match encoding {
            _ if present == 0 => Vec::new().into_iter(),
            Some(0) => values::plain(bytes, self.physical, present)?.into_iter(),
            Some(2 | 8) => {
                let (width, rest) = bytes.split_first().ok_or(Malformed::SHORT)?;
                self.held = Held::Places(values::runs(rest, usize::from(*width), present)?.into_iter());
                return Ok(());
            }
            Some(3) if self.physical == Physical::Boolean => {
                let rest = bytes.get(4..).ok_or(Malformed::SHORT)?;
                let truths = values::runs(rest, 1, present)?;
                truths.into_iter().map(|truth| Datum::Bool(truth == 1)).collect::<Vec<_>>().into_iter()
            }
            Some(5) => values::delta_numbers(bytes, self.physical, present)?.into_iter(),
            Some(6) => values::delta_texts(bytes, present)?.into_iter(),
            Some(7) => values::delta_suffixes(bytes, present, LARGEST_PAGE.min(size.saturating_mul(64)))?.into_iter(),
            Some(9) => values::split_streams(bytes, self.physical, present)?.into_iter(),
            _ => return Err(Malformed("a column is in an encoding that is not known")),
        });
        Ok(())
    }
}

/// Levels with their length before them, and what comes after them.
fn levels_before(bytes: &[u8], most: u8, count: usize, how: Option<i64>) -> Result<(Vec<u32>, &[u8]), Malformed> {
    if most == 0 {
        return Ok((Vec::new(), bytes));
    }
    if how != Some(3) {
        return Err(Malformed("levels are in an encoding that is not known"));
    }
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(Malformed::SHORT)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (own, rest) = rest.split_at_checked(length).ok_or(Malformed::SHORT)?;
    Ok((level_runs(own, most, count)?, rest))
}

fn level_runs(bytes: &[u8], most: u8, count: usize) -> Result<Vec<u32>, Malformed> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let levels = values::runs(bytes, 8 - most.leading_zeros() as usize, count)?;
    if levels.iter().any(|level| *level > u32::from(most)) {
        return Err(Malformed("a level is too high"));
    }
    Ok(levels)
}
