//! Profiles of pprof: `Profile` of `profile.proto`, not compressed any more.

use super::{CpuProfile, Fault, measure};
use crate::spans::formats::otlp_proto::wire::{Fields, Malformed, Value, varint};
use crate::spans::ids::SpanId;

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Whether a message is of pprof: its table of strings begins with the empty one.
pub(super) fn is(content: &[u8]) -> bool {
    let mut fields = Fields::of(content);
    while let Ok(Some((field, value))) = fields.next() {
        if field == 6 {
            return value == Value::Bytes(b"");
        }
    }
    false
}

pub(super) fn read(content: &[u8], profile: &mut CpuProfile) -> Result<(), Fault> {
    let mut strings: Vec<&[u8]> = Vec::new();
    let (mut types, mut period_type, mut period) = (Vec::new(), (0, 0), 0);
    let mut fields = Fields::of(content);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => types.push(pair(value.bytes())?),
            6 => strings.push(value.bytes()),
            11 => period_type = pair(value.bytes())?,
            12 => period = value.number() as i64,
            _ => {}
        }
    }
    let bytes = |number: u64| usize::try_from(number).ok().and_then(|place| strings.get(place)).copied();
    let text = |number: u64| String::from_utf8_lossy(bytes(number).unwrap_or_default()).into_owned();
    let named = |(kind, unit): (u64, u64)| (text(kind), text(unit));
    let types: Vec<_> = types.into_iter().map(named).collect();
    let (place, factor) = measure(&types, &named(period_type), period)?;
    let mut fields = Fields::of(content);
    while let Some((field, value)) = fields.next()? {
        if field != 2 {
            continue;
        }
        let (mut values, mut span) = (Vec::new(), None);
        let mut sample = Fields::of(value.bytes());
        while let Some((field, value)) = sample.next()? {
            match field {
                2 => numbers(value, &mut values)?,
                3 => span = span.or(label(value.bytes(), bytes)?),
                _ => {}
            }
        }
        let count = values.get(place).copied().unwrap_or(0) as i64;
        profile.add(span, count.saturating_mul(factor));
    }
    Ok(())
}

/// The numbers in the fields 1 and 2 of a message.
pub(super) fn pair(message: &[u8]) -> Result<(u64, u64), Malformed> {
    let (mut first, mut second) = (0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => first = value.number(),
            2 => second = value.number(),
            _ => {}
        }
    }
    Ok((first, second))
}

/// Adds the numbers of a repeated field, packed or not.
pub(super) fn numbers(value: Value<'_>, into: &mut Vec<u64>) -> Result<(), Malformed> {
    let Value::Bytes(mut rest) = value else {
        into.push(value.number());
        return Ok(());
    };
    while !rest.is_empty() {
        let (number, behind) = varint(rest).ok_or(Malformed)?;
        into.push(number);
        rest = behind;
    }
    Ok(())
}

/// The span that a label names, if it is one that does.
fn label<'a>(message: &[u8], bytes: impl Fn(u64) -> Option<&'a [u8]>) -> Result<Option<SpanId>, Malformed> {
    let (mut key, mut text, mut number) = (0, 0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => key = value.number(),
            2 => text = value.number(),
            3 => number = value.number(),
            _ => {}
        }
    }
    let decimal = match bytes(key).unwrap_or_default() {
        b"span id" => true,
        b"span_id" | b"span.id" | b"spanid" | b"profile_id" => false,
        _ => return Ok(None),
    };
    let text = std::str::from_utf8(bytes(text).unwrap_or_default()).unwrap_or_default();
    if text.is_empty() {
        return Ok(Some(SpanId(number)));
    }
    Ok(if decimal { text.parse().ok().map(SpanId) } else { Some(SpanId::parse(text).0) })
}
