//! Whatever is done to an input, it is read or refused; nothing panics, and nothing takes for ever.

use std::io::{Cursor, Read as _};

use dyelog_trace::Format;
use proptest::prelude::*;
use prost::Message as _;

use super::otlp_proto::{JSON, request};
use super::show::survives;

/// An input of each format, to be damaged.
fn inputs() -> Vec<(Format, Vec<u8>)> {
    let zipkin = r#"[{"traceId":"1","id":"b","parentId":"a","kind":"CLIENT","timestamp":17,"duration":5,"localEndpoint":{"serviceName":"w","port":1},"tags":{"a":"b"},
      "annotations":[{"timestamp":1,"value":"cs","endpoint":{"serviceName":"x"}}],"binaryAnnotations":[{"key":"sa","value":true,"endpoint":{}}]},{"traceId":"1","id":"b","shared":true}]"#;
    vec![
        (Format::OtlpProto, request(JSON).encode_to_vec()),
        (Format::Otlp, JSON.into()),
        (Format::Zipkin, zipkin.into()),
        (
            Format::SkyWalking,
            br#"[{"traceId":"t","traceSegmentId":"s","service":"w","spans":[{"spanId":0,"parentSpanId":-1,"startTime":17,"endTime":"19","spanType":1,"refs":[{"parentTraceSegmentId":"r","parentSpanId":1,"traceId":"t"}],"tags":[{"key":"a","value":1}]}]}]"#
                .to_vec(),
        ),
        (Format::Elastic, br#"{"transaction":{"trace_id":"a","id":"b","duration":1.5,"timestamp":1,"sample_rate":0.1,"dropped_spans_stats":[{"duration":{"count":9,"sum":{"us":5}}}]}}
{"span":{"trace_id":"a","id":"c","transaction_id":"b","start":1,"duration":5,"composite":{"count":3,"sum":2}}}"#.to_vec()),
        (Format::XRay, br#"{"Traces":[{"Segments":[{"Document":"{\"trace_id\":\"1-5759e988-bd862e3fe1be46a994272793\",\"id\":\"a\",\"start_time\":1.5,\"subsegments\":[{\"id\":\"b\",\"start_time\":2}]}"}]}]}
{"trace_id":"1","id":"c","type":"subsegment","parent_id":"c","start_time":1,"end_time":2}"#.to_vec()),
        (Format::Datadog, br#"[[{"trace_id":1,"span_id":2,"parent_id":2,"name":"a","resource":"b","service":"c","type":"sql","start":5,"duration":6,"meta":{"a":"b"},"metrics":{"_dd.agent_psr":0.5}}]]"#.to_vec()),
        (Format::Honeycomb, br#"[{"time":"2026-02-15T21:16:43.5Z","samplerate":2,"data":{"trace.trace_id":"a","trace.span_id":"b","duration_ms":1}},{"data":{"trace.parent_id":"b","meta.annotation_type":"link"}}]"#.to_vec()),
        (Format::Chrome, br#"[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"B","ts":1,"pid":1,"tid":1},{"ph":"E","ts":4,"pid":1,"tid":1},{"ph":"s","id":1,"ts":2,"pid":1,"tid":1},{"ph":"f","id":1,"ts":3,"pid":1,"tid":2},{"ph":"b","id":1,"ts":3,"pid":1,"tid":1},{"ph":"X","ts":3,"pid":1,"tid":2}]"#.to_vec()),
        (Format::SpansCsv, b"trace_id,span_id,parent,service,name,kind,start_us,duration_us\n1,a,,w,\"g\",server,5,6\n1,b,a,w,x,client,6,1\n".to_vec()),
        (Format::SpansCsv, b"traceid,timestamp,rpcid,um,rpctype,dm,interface,rt\nt,1,0,u,rpc,f,i,-3\nt,1,0.1,f,mq,g,i,2\n".to_vec()),
        (Format::Parquet, super::parquet::TABLES[1].1.to_vec()),
        (Format::Parquet, super::parquet::TEMPO4.to_vec()),
        (Format::Datadog, super::suppliers::msgpack()),
        (Format::SkyWalking, super::skywalking::collection()),
        (Format::Kieker, b"$0=kieker.common.record.controlflow.OperationExecutionRecord\n".to_vec()),
    ]
}

/// A change to some bytes.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8),
    Cut(usize),
    Drop(usize, usize),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<proptest::sample::Index>().prop_map(|index| index.index(4096));
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:;$0-9=\n\\".to_vec())];
    prop_oneof![
        4 => (at.clone(), byte).prop_map(|(at, byte)| Change::Put(at, byte)),
        1 => at.clone().prop_map(Change::Cut),
        1 => (at.clone(), 1..40_usize).prop_map(|(at, length)| Change::Drop(at, length)),
        1 => (at, 1..400_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = bytes.len().max(1);
        match *change {
            Change::Put(at, byte) => {
                if let Some(own) = bytes.get_mut(at % length) {
                    *own = byte;
                }
            }
            Change::Cut(at) => bytes.truncate(at % length),
            Change::Drop(at, count) => {
                let at = (at % length).min(bytes.len());
                let end = (at + count).min(bytes.len());
                bytes.drain(at..end);
            }
            Change::Repeat(at, count) => {
                let at = (at % length).min(bytes.len());
                let end = (at + count).min(bytes.len());
                bytes.extend_from_within(at..end);
            }
        }
    }
    bytes
}

proptest! {
    // `PROPTEST_CASES` asks for more, for as long as anybody wants to wait.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]

    #[test]
    fn damaged_inputs_are_read_or_refused(which in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..6)) {
        let inputs = inputs();
        let (format, bytes) = which.get(&inputs);
        let bytes = changed(bytes.clone(), &changes);
        survives(*format, &bytes);
        // What it looks like now is read, too.
        if let Ok(found) = dyelog_trace::detect::detect("t", &bytes) && found.has_spans() {
            survives(found, &bytes);
        }
    }

    #[test]
    fn damaged_logs_of_kieker_are_read_or_refused(changes in prop::collection::vec(change(), 1..6)) {
        let log = changed(super::kieker::LOG.as_bytes().to_vec(), &changes);
        let _ = super::show::operations(&[("kieker.map", super::kieker::MAP.as_bytes()), ("1.dat", &log)]);
    }

    #[test]
    fn damaged_archives_are_listed_or_refused(changes in prop::collection::vec(change(), 1..6)) {
        let bytes = changed(super::archive::zip(&[("a", b"first"), ("b", b"second, second")]), &changes);
        let _ = dyelog_trace::archive::tar(&bytes[..]);
        if let Ok(listing) = dyelog_trace::archive::zip(&mut Cursor::new(&bytes)) {
            for member in &listing.members {
                if let Ok(opened) = dyelog_trace::archive::open_zipped(Cursor::new(bytes.clone()), member) {
                    let _ = opened.take(1 << 16).read_to_end(&mut Vec::new());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(which in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(which.get(&inputs()).0, &bytes);
    }
}
