//! The wire format of Protocol Buffers: fields of a message, one after the other, without a copy.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, bytes or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// The bytes; none where it is a number.
    pub fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// The number; 0 where it is bytes.
    pub fn number(self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => number,
            Self::Fixed32(number) => number.into(),
            Self::Bytes(_) => 0,
        }
    }
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The fields of a message.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Of a message.
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// What was not given out.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The next field: its number and value.
    ///
    /// # Errors
    /// When what follows is no field.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would not end at the first that fails")]
    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (key, rest) = varint(self.rest).ok_or(Malformed)?;
        let (value, rest) = match key & 7 {
            0 => {
                let (number, rest) = varint(rest).ok_or(Malformed)?;
                (Value::Varint(number), rest)
            }
            1 => {
                let (bytes, rest) = rest.split_first_chunk().ok_or(Malformed)?;
                (Value::Fixed64(u64::from_le_bytes(*bytes)), rest)
            }
            2 => {
                let (length, rest) = varint(rest).ok_or(Malformed)?;
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                let (bytes, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
                (Value::Bytes(bytes), rest)
            }
            5 => {
                let (bytes, rest) = rest.split_first_chunk().ok_or(Malformed)?;
                (Value::Fixed32(u32::from_le_bytes(*bytes)), rest)
            }
            // Groups are older than any of these messages.
            _ => return Err(Malformed),
        };
        self.rest = rest;
        Ok(Some((key >> 3, value)))
    }
}

/// A number of variable length at the beginning of some bytes, and what follows.
#[inline]
pub fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((first.into(), rest));
    }
    let mut number = u64::from(first & 0x7f);
    for (at, &byte) in rest.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * (at + 1));
        if byte < 0x80 {
            return Some((number, &rest[at + 1..]));
        }
    }
    None
}

/// What a field of a known message holds.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A number of variable length.
    Number,
    /// Eight bytes.
    Fixed64,
    /// Four bytes.
    Fixed32,
    /// A string or bytes.
    Bytes,
    /// A message of these fields.
    Message(&'static [(u64, Shape)]),
}

/// Whether bytes are a message of that shape, which may be cut off. Its depth is that of the shape.
pub fn fits(mut bytes: &[u8], shape: &[(u64, Shape)], cut: bool) -> bool {
    while !bytes.is_empty() {
        let Some((key, rest)) = varint(bytes) else { return cut && bytes.len() < 10 };
        let Some((_, field)) = shape.iter().find(|(number, _)| *number == key >> 3) else { return false };
        let (wire, skipped) = match field {
            Shape::Number => match varint(rest) {
                Some((_, after)) => (0, rest.len() - after.len()),
                None => return key % 8 == 0 && cut && rest.len() < 10,
            },
            Shape::Fixed64 => (1, 8),
            Shape::Fixed32 => (5, 4),
            Shape::Bytes | Shape::Message(_) => {
                let Some((length, body)) = varint(rest) else { return key & 7 == 2 && cut && rest.len() < 10 };
                let Ok(length) = usize::try_from(length) else { return false };
                let whole = length <= body.len();
                if let Shape::Message(inner) = field
                    && !fits(&body[..length.min(body.len())], inner, cut && !whole)
                {
                    return false;
                }
                (2, (rest.len() - body.len()).saturating_add(length))
            }
        };
        if key & 7 != wire {
            return false;
        }
        match rest.get(skipped..) {
            Some(after) => bytes = after,
            None => return cut,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{Fields, Malformed, Value, varint};

    #[test]
    fn fields_of_all_kinds() {
        let message = b"\x08\x96\x01\x12\x02hi\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0";
        let mut fields = Fields::of(message);
        assert_eq!(fields.next(), Ok(Some((1, Value::Varint(150)))));
        assert_eq!(fields.next(), Ok(Some((2, Value::Bytes(b"hi")))));
        assert_eq!(fields.next(), Ok(Some((3, Value::Fixed64(1)))));
        assert_eq!(fields.next(), Ok(Some((4, Value::Fixed32(2)))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn what_is_no_message() {
        for bytes in
            [&b"\x0a\x05hi"[..], b"\x0b", b"\x80", b"\x09\x01", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
        {
            assert_eq!(Fields::of(bytes).next(), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(varint(&[0xff; 11]), None);
    }
}
