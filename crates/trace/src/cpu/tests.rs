//! Profiles of both forms, and what is none.

use super::CpuProfile;
use crate::spans::ids::SpanId;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value, &mut out);
    out
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

fn read(content: &[u8]) -> Result<CpuProfile, String> {
    CpuProfile::read("profile", content).map_err(|found| found.0[0].message.clone())
}

#[test]
fn samples_of_pprof_by_label() {
    let label =
        |key: u64, text: u64, value: u64| bytes(3, &[number(1, key), number(2, text), number(3, value)].concat());
    let sample = |values: &[u8], label: &[u8]| bytes(2, &[&bytes(2, values), label].concat());
    let strings = ["", "samples", "count", "cpu", "milliseconds", "span_id", "00000000000000ab", "span id"];
    let profile = [
        bytes(1, &[number(1, 1), number(2, 2)].concat()),
        bytes(1, &[number(1, 3), number(2, 4)].concat()),
        sample(&[1, 10], &label(5, 6, 0)),
        sample(&[1, 20], &label(7, 0, 0xab)),
        sample(&[1, 5], &[]),
        strings.iter().flat_map(|text| bytes(6, text.as_bytes())).collect(),
    ]
    .concat();
    let found = read(&profile).expect("a profile");
    assert_eq!(found.by_span.into_iter().collect::<Vec<_>>(), [(SpanId(0xab), 30_000_000)]);
    assert_eq!(found.unnamed, 5_000_000);
}

#[test]
fn samples_of_otlp_in_both_encodings() {
    let json = r#"{"dictionary":{"linkTable":[{},{"traceId":"01","spanId":"00000000000000ab"}],
        "stringTable":["","samples","count","cpu","nanoseconds"]},"resourceProfiles":[{"scopeProfiles":[{"profiles":[{
        "sampleType":{"typeStrindex":1,"unitStrindex":2},"periodType":{"typeStrindex":3,"unitStrindex":4},"period":"1000",
        "samples":[{"linkIndex":1,"values":["3"]},{"linkIndex":1,"timestampsUnixNano":["7","8"]},{"values":[4]}]}]}]}]}"#;
    let link = bytes(4, &bytes(2, &0xab_u64.to_be_bytes()));
    let strings = ["", "samples", "count", "cpu", "nanoseconds"].map(|text| bytes(5, text.as_bytes())).concat();
    let profile = [
        bytes(1, &[number(1, 1), number(2, 2)].concat()),
        bytes(2, &[number(3, 1), bytes(4, &[3])].concat()),
        bytes(2, &[number(3, 1), bytes(5, &[0; 16])].concat()),
        bytes(2, &bytes(4, &[4])),
        bytes(5, &[number(1, 3), number(2, 4)].concat()),
        number(6, 1000),
    ]
    .concat();
    let proto = [bytes(1, &bytes(2, &bytes(2, &profile))), bytes(2, &[bytes(4, &[]), link, strings].concat())].concat();
    for content in [json.as_bytes(), &proto] {
        let found = read(content).expect("a profile");
        assert_eq!(found.by_span.into_iter().collect::<Vec<_>>(), [(SpanId(0xab), 5000)]);
        assert_eq!(found.unnamed, 4000);
    }
}

#[test]
fn what_has_no_processor_time() {
    for content in [&b""[..], b"{}", b"{\"spans\":[]}", b"hello", b"\x0a\xff\xff"] {
        assert_eq!(read(content), Err("this is no CPU profile".to_owned()), "{content:?}");
    }
    let heap = r#"{"dictionary":{"stringTable":["","space","bytes"]},"resourceProfiles":[{"scopeProfiles":[{"profiles":[{
        "sampleType":{"typeStrindex":1,"unitStrindex":2}}]}]}]}"#;
    assert_eq!(read(heap.as_bytes()), Err("this profile has no processor time".to_owned()));
}
