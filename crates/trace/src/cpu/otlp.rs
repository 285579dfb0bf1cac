//! Profiles of OTLP, v1development: `ProfilesData` and requests to export it.

use serde_json::Value as Json;

use super::pprof::{numbers, pair};
use super::{CpuProfile, Fault, measure};
use crate::spans::formats::otlp_proto::wire::Fields;
use crate::spans::ids::SpanId;

/// The tables that profiles point to.
#[derive(Default)]
struct Dictionary {
    links: Vec<SpanId>,
    strings: Vec<String>,
}

impl Dictionary {
    fn named(&self, (kind, unit): (u64, u64)) -> (String, String) {
        let text = |number: u64| usize::try_from(number).ok().and_then(|place| self.strings.get(place)).cloned();
        (text(kind).unwrap_or_default(), text(unit).unwrap_or_default())
    }

    /// The span of a link; 0 is no link.
    fn span(&self, link: u64) -> Option<SpanId> {
        usize::try_from(link).ok().filter(|place| *place > 0).and_then(|place| self.links.get(place)).copied()
    }
}

pub(super) fn read_proto(content: &[u8], profile: &mut CpuProfile) -> Result<(), Fault> {
    let (mut resources, mut dictionary, mut dictionaries) = (Vec::new(), Dictionary::default(), 0);
    let mut fields = Fields::of(content);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => resources.push(value.bytes()),
            2 => {
                dictionaries += 1;
                read_dictionary(value.bytes(), &mut dictionary)?;
            }
            _ => {}
        }
    }
    if dictionaries != 1 {
        return Err(Fault::Malformed);
    }
    // A resource has scopes, and a scope profiles, both in their fields 2.
    let scopes = inner(&resources)?;
    for one in inner(&scopes)? {
        read_profile(one, &dictionary, profile)?;
    }
    Ok(())
}

/// What lies in the fields 2 of messages.
fn inner<'a>(messages: &[&'a [u8]]) -> Result<Vec<&'a [u8]>, Fault> {
    let mut found = Vec::new();
    for message in messages {
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            if field == 2 {
                found.push(value.bytes());
            }
        }
    }
    Ok(found)
}

fn read_dictionary(message: &[u8], dictionary: &mut Dictionary) -> Result<(), Fault> {
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            4 => {
                let mut span = SpanId::NONE;
                let mut link = Fields::of(value.bytes());
                while let Some((field, value)) = link.next()? {
                    if let (2, Ok(bytes)) = (field, value.bytes().try_into()) {
                        span = SpanId(u64::from_be_bytes(bytes));
                    }
                }
                dictionary.links.push(span);
            }
            5 => dictionary.strings.push(String::from_utf8_lossy(value.bytes()).into_owned()),
            _ => {}
        }
    }
    Ok(())
}

fn read_profile(message: &[u8], dictionary: &Dictionary, profile: &mut CpuProfile) -> Result<(), Fault> {
    let (mut kind, mut period_type, mut period, mut samples) = ((0, 0), (0, 0), 0, Vec::new());
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => kind = pair(value.bytes())?,
            2 => samples.push(value.bytes()),
            5 => period_type = pair(value.bytes())?,
            6 => period = value.number() as i64,
            _ => {}
        }
    }
    let (_, factor) = measure(&[dictionary.named(kind)], &dictionary.named(period_type), period)?;
    for sample in samples {
        let (mut values, mut link, mut times) = (Vec::new(), 0, 0);
        let mut fields = Fields::of(sample);
        while let Some((field, value)) = fields.next()? {
            match field {
                3 => link = value.number(),
                4 => numbers(value, &mut values)?,
                5 => times += (value.bytes().len() / 8).max(1) as i64,
                _ => {}
            }
        }
        let values: Vec<i64> = values.into_iter().map(|value| value as i64).collect();
        profile.add(dictionary.span(link), total(&values, times).saturating_mul(factor));
    }
    Ok(())
}

/// What a sample counts: its values, a value for each of its times; where it has times only, one each.
fn total(values: &[i64], times: i64) -> i64 {
    if values.is_empty() { times } else { values.iter().fold(0, |sum, value| sum.saturating_add(*value)) }
}

pub(super) fn read_json(content: &[u8], profile: &mut CpuProfile) -> Result<(), Fault> {
    let document: Json = serde_json::from_slice(content).map_err(|_| Fault::Malformed)?;
    let tables = document.get("dictionary").ok_or(Fault::Malformed)?;
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let link = |link: &Json| link.get("spanId").and_then(Json::as_str).map_or(SpanId::NONE, |id| SpanId::parse(id).0);
    let dictionary = Dictionary {
        links: items(tables, "linkTable").map(link).collect(),
        strings: items(tables, "stringTable").map(text).collect(),
    };
    let kind = |value: Option<&Json>| {
        let part = |key: &str| value.and_then(|value| value.get(key)).map_or(0, number) as u64;
        dictionary.named((part("typeStrindex"), part("unitStrindex")))
    };
    let scopes = items(&document, "resourceProfiles").flat_map(|resource| items(resource, "scopeProfiles"));
    for one in scopes.flat_map(|scope| items(scope, "profiles")) {
        let period = one.get("period").map_or(0, number);
        let (_, factor) = measure(&[kind(one.get("sampleType"))], &kind(one.get("periodType")), period)?;
        for sample in items(one, "samples") {
            let link = sample.get("linkIndex").map_or(0, number);
            let values: Vec<i64> = items(sample, "values").map(number).collect();
            let times = items(sample, "timestampsUnixNano").count() as i64;
            profile.add(dictionary.span(link as u64), total(&values, times).saturating_mul(factor));
        }
    }
    Ok(())
}

/// The items of a list; none where it is left out.
fn items<'a>(value: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    value.get(key).and_then(Json::as_array).into_iter().flatten()
}

/// A whole number, which may be written as a text.
fn number(value: &Json) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}
