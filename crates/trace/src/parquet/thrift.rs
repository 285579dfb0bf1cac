//! Thrift's compact protocol, in which Parquet writes what it says about itself.

use super::Malformed;

/// How deep values may lie in each other: Parquet's own lie four deep.
const DEEPEST: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Int(i64),
    Double,
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Struct(Struct<'a>),
}

/// The fields of a structure, by their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Struct<'a>(Vec<(i64, Value<'a>)>);

impl<'a> Struct<'a> {
    pub fn get(&self, field: i64) -> Option<&Value<'a>> {
        self.0.iter().find(|(number, _)| *number == field).map(|(_, value)| value)
    }

    /// A whole number; truth values are 0 and 1.
    pub fn int(&self, field: i64) -> Option<i64> {
        match self.get(field)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A number that may not be negative.
    pub fn size(&self, field: i64) -> Result<usize, Malformed> {
        self.int(field).and_then(|number| usize::try_from(number).ok()).ok_or(Malformed("a size is missing"))
    }

    pub fn text(&self, field: i64) -> Option<&'a str> {
        match self.get(field)? {
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub fn inner(&self, field: i64) -> Option<&Struct<'a>> {
        match self.get(field)? {
            Value::Struct(inner) => Some(inner),
            _ => None,
        }
    }

    /// The elements of a list; none where there is no list.
    pub fn list(&self, field: i64) -> &[Value<'a>] {
        match self.get(field) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }
}

/// Reads a structure; gives how many bytes it took, too.
pub(super) fn structure(bytes: &[u8]) -> Result<(Struct<'_>, usize), Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    let read = reader.structure(0)?;
    Ok((read, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed::SHORT)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed::SHORT)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed::SHORT)?;
        self.at = end;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        super::values::varint(self.bytes, &mut self.at)
    }

    fn zigzag(&mut self) -> Result<i64, Malformed> {
        self.varint().map(super::values::zigzag)
    }

    fn structure(&mut self, depth: usize) -> Result<Struct<'a>, Malformed> {
        if depth > DEEPEST {
            return Err(Malformed("what it says about itself is nested too deep"));
        }
        let (mut fields, mut number) = (Vec::new(), 0i64);
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(Struct(fields));
            }
            number = match head >> 4 {
                0 => self.zigzag()?,
                delta => number.saturating_add(i64::from(delta)),
            };
            let value = match head & 0x0f {
                1 => Value::Int(1),
                2 => Value::Int(0),
                kind => self.value(kind, depth)?,
            };
            fields.push((number, value));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Value<'a>, Malformed> {
        Ok(match kind {
            // Truth values in a list, and bytes.
            1..=3 => Value::Int(i64::from(self.byte()?.cast_signed())),
            4..=6 => Value::Int(self.zigzag()?),
            7 => self.take(8).map(|_| Value::Double)?,
            8 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed::SHORT)?;
                Value::Bytes(self.take(length)?)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                self.elements(count, &[head & 0x0f], depth)?
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                self.elements(count.saturating_mul(2), &[kinds >> 4, kinds & 0x0f], depth)?
            }
            12 => Value::Struct(self.structure(depth + 1)?),
            _ => return Err(Malformed("what it says about itself has a value of no type")),
        })
    }

    /// So many values, of these types in turn.
    fn elements(&mut self, count: u64, kinds: &[u8], depth: usize) -> Result<Value<'a>, Malformed> {
        if depth > DEEPEST {
            return Err(Malformed("what it says about itself is nested too deep"));
        }
        // Each takes a byte at least.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Malformed::SHORT);
        }
        let mut items = Vec::new();
        for number in 0..count as usize {
            items.push(self.value(kinds[number % kinds.len()], depth + 1)?);
        }
        Ok(Value::List(items))
    }
}
