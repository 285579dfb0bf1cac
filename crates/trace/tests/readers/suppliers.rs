//! What services that store traces give out: Elastic APM, X-Ray, Datadog, Honeycomb, Chrome.

use super::show::{recorded, recorded_as};

#[test]
fn elastic_apm_from_agents() {
    let sent = r#"{"metadata":{"service":{"name":"web","node":{"configured_name":"web-1"},"agent":{"name":"java"}},"system":{"detected_hostname":"hostA"}}}
{"span":{"trace_id":"0af7651916cd43dd8448eb211c80319c","transaction_id":"b7ad6b7169203331","parent_id":"b7ad6b7169203331","id":"0000000000000002","name":"GET stock:80","type":"external","subtype":"http","timestamp":1700000000010000,"duration":20.5,"outcome":"success","context":{"destination":{"service":{"resource":"stock:80"}},"http":{"status_code":200}}}}
{"span":{"trace_id":"0af7651916cd43dd8448eb211c80319c","transaction_id":"b7ad6b7169203331","parent_id":"b7ad6b7169203331","id":"0000000000000003","name":"SELECT FROM t","type":"db","subtype":"mysql","start":40,"duration":10,"composite":{"count":3,"sum":6,"compression_strategy":"exact_match"},"context":{"destination":{"service":{"resource":"mysql"}}}}}
{"span":{"trace_id":"0af7651916cd43dd8448eb211c80319c","transaction_id":"b7ad6b7169203331","parent_id":"b7ad6b7169203331","id":"0000000000000004","name":"render","type":"template","timestamp":1700000000055000,"duration":1}}
{"transaction":{"trace_id":"0af7651916cd43dd8448eb211c80319c","id":"b7ad6b7169203331","name":"GET /buy","type":"request","timestamp":1700000000000000,"duration":60,"sample_rate":0.25,"outcome":"failure","span_count":{"started":3,"dropped":2},"dropped_spans_stats":[{"destination_service_resource":"redis","outcome":"success","duration":{"count":2,"sum":{"us":2000}}}]}}
{"metricset":{"timestamp":1700000000000000,"samples":{}}}
{"span":{"trace_id":"0af7651916cd43dd8448eb211c80319c","transaction_id":"ffffffffffffffff","id":"0000000000000009","name":"lost","start":1,"duration":1}}
"#;
    insta::assert_snapshot!("elastic_sent", recorded(sent.as_bytes()));
}

/// One record stands for no more than ten thousand calls, by however many sums.
#[test]
fn sums_of_dropped_calls_have_a_bound() {
    let sums = vec![r#"{"duration":{"count":4000,"sum":{"us":4000}}}"#; 200].join(",");
    let sent = format!(
        r#"{{"transaction":{{"trace_id":"a","id":"b","name":"n","type":"request","timestamp":1700000000000000,"duration":60,"dropped_spans_stats":[{sums}]}}}}"#
    );
    let found = recorded_as(dyelog_trace::Format::Elastic, sent.as_bytes());
    assert_eq!(found.matches(" client ").count(), 8000);
    assert!(found.contains("198 × sum of too many dropped calls"), "{}", &found[found.len().saturating_sub(500)..]);
}

#[test]
fn elastic_apm_as_stored() {
    let hits = r#"{"took":3,"timed_out":false,"_shards":{"total":1},"hits":{"total":{"value":3},"hits":[
      {"_index":"traces-apm","_id":"x","_source":{"processor":{"event":"transaction"},"trace":{"id":"0af7651916cd43dd8448eb211c80319c"},"transaction":{"id":"a1","name":"GET /buy","type":"request","duration":{"us":60000},"representative_count":4},"timestamp":{"us":1700000000000000},"service":{"name":"web","node":{"name":"web-1"}},"host":{"hostname":"hostA"},"event":{"outcome":"success"}}},
      {"_index":"traces-apm","_id":"y","_source":{"processor":{"event":"span"},"trace":{"id":"0af7651916cd43dd8448eb211c80319c"},"parent":{"id":"a1"},"span":{"id":"b2","name":"send to orders","type":"messaging","action":"send","duration":{"us":100},"destination":{"service":{"resource":"kafka/orders"}}},"timestamp":{"us":1700000000010000},"service":{"name":"web"}}},
      {"_index":"traces-apm","_id":"z","fields":{"processor.event":["transaction"],"trace.id":["0af7651916cd43dd8448eb211c80319c"],"parent.id":["b2"],"transaction.id":["c3"],"transaction.name":["orders process"],"transaction.type":["messaging"],"transaction.duration.us":[5000],"timestamp.us":[1700000000020000],"service.name":["mail"]}},
      {"_index":"logs","_source":{"processor":{"event":"error"},"trace":{"id":"0af7651916cd43dd8448eb211c80319c"}}}]}}"#;
    insta::assert_snapshot!("elastic_stored", recorded(hits.as_bytes()));
}

#[test]
fn x_ray_segments() {
    let lines = r#"{"trace_id":"1-5759e988-bd862e3fe1be46a994272793","id":"53995c3f42cd8ad8","name":"web","start_time":1461096053.37518,"end_time":1461096053.4042,"http":{"request":{"method":"POST","url":"https://shop.example/buy/17?x=1"},"response":{"status":500}},"fault":true,"aws":{"ec2":{"instance_id":"i-1"}},"annotations":{"tier":"gold"},"subsegments":[{"id":"53995c3f42cd8ad9","name":"DynamoDB","start_time":1461096053.38,"end_time":1461096053.39,"namespace":"aws","aws":{"operation":"GetItem","table_name":"t"},"subsegments":[{"id":"53995c3f42cd8adb","name":"attempt","start_time":1461096053.381,"end_time":1461096053.389}]},{"id":"53995c3f42cd8adc","name":"render","start_time":1461096053.391,"end_time":1461096053.392}]}
{"trace_id":"1-5759e988-bd862e3fe1be46a994272793","id":"53995c3f42cd8ae1","parent_id":"53995c3f42cd8ad9","name":"DynamoDB","start_time":1461096053.38,"end_time":1461096053.39,"inferred":true}
{"trace_id":"1-5759e988-bd862e3fe1be46a994272793","id":"53995c3f42cd8ae2","parent_id":"53995c3f42cd8adc","type":"subsegment","name":"pay.example","namespace":"remote","start_time":1461096053.3913,"end_time":1461096053.3919,"http":{"request":{"method":"GET","url":"http://pay.example/pay"}}}
{"trace_id":"1-5759e988-bd862e3fe1be46a994272793","id":"53995c3f42cd8ae3","parent_id":"53995c3f42cd8ae2","name":"pay","start_time":1461096053.3914,"in_progress":true,"http":{"request":{"method":"GET","url":"http://pay.example/pay"}}}
"#;
    insta::assert_snapshot!("x_ray_segments", recorded(lines.as_bytes()));
    let answer = r#"{"Traces":[{"Id":"1-5759e988-bd862e3fe1be46a994272793","Duration":0.03,"Segments":[{"Id":"53995c3f42cd8ad8","Document":"{\"id\":\"53995c3f42cd8ad8\",\"name\":\"web\",\"start_time\":1461096053.37518,\"end_time\":1461096053.4042,\"trace_id\":\"1-5759e988-bd862e3fe1be46a994272793\"}"},{"Id":"2","Document":"{broken"}]}],"UnprocessedTraceIds":[]}"#;
    insta::assert_snapshot!("x_ray_answer", recorded(answer.as_bytes()));
}

#[test]
fn datadog_traces() {
    let sent = r#"[[
      {"trace_id":13929872635420174821,"span_id":17293822569102704641,"parent_id":0,"name":"web.request","resource":"GET /buy","service":"web","type":"web","start":1700000000000000000,"duration":50000000,"error":0,"meta":{"runtime-id":"r1","_dd.hostname":"hostA","_dd.p.tid":"6553f100"},"metrics":{"_sampling_priority_v1":1,"_dd.rule_psr":0.5,"_dd.limit_psr":0.5}},
      {"trace_id":13929872635420174821,"span_id":"17293822569102704642","parent_id":17293822569102704641,"name":"postgres.query","resource":"SELECT 1","service":"web-postgres","type":"sql","start":1700000000010000000,"duration":5000000,"error":1,"meta":{"out.host":"db.example"}},
      {"trace_id":13929872635420174821,"span_id":17293822569102704643,"parent_id":17293822569102704641,"name":"http.request","resource":"GET /pay","service":"pay-client","type":"http","start":1700000000020000000,"duration":9000000,"meta":{"span.kind":"client","_dd.base_service":"web","peer.service":"pay"}},
      {"trace_id":13929872635420174821,"span_id":17293822569102704644,"parent_id":17293822569102704643,"name":"web.request","resource":"GET /pay","service":"pay","type":"web","start":1700000000021000000,"duration":7000000}],
      [{"trace_id":7,"name":"no id","start":1,"duration":1,"resource":"x"}]]"#;
    insta::assert_snapshot!("datadog_sent", recorded(sent.as_bytes()));
    let payload = r#"{"hostname":"agent","tracerPayloads":[{"hostname":"hostB","chunks":[{"priority":-1,"spans":[{"traceID":"7","spanID":"8","parentID":"0","name":"web.request","resource":"GET /","service":"web","start":"1700000000000000000","duration":"5","metrics":{"_dd.agent_psr":0.1}}]}]},
      {"chunks":[{"priority":1,"spans":[{"traceID":"9","spanID":"10","name":"job","resource":"job","service":"cron","start":"1700000000000000000","duration":"5"}]}]}]}"#;
    insta::assert_snapshot!("datadog_payload", recorded(payload.as_bytes()));
}

/// A value in MessagePack.
fn packed(value: &serde_json::Value, out: &mut Vec<u8>) {
    use serde_json::Value;
    match value {
        Value::Null => out.push(0xc0),
        Value::Bool(truth) => out.push(0xc2 + u8::from(*truth)),
        Value::Number(number) => match number.as_u64() {
            Some(number @ 0..0x80) => out.push(number as u8),
            Some(number) => {
                out.push(0xcf);
                out.extend(number.to_be_bytes());
            }
            None => {
                out.push(0xcb);
                out.extend(number.as_f64().expect("a number").to_be_bytes());
            }
        },
        Value::String(text) => {
            out.extend([0xd9, text.len() as u8]);
            out.extend(text.as_bytes());
        }
        Value::Array(items) => {
            out.extend([0xdc, 0, items.len() as u8]);
            for item in items {
                packed(item, out);
            }
        }
        Value::Object(members) => {
            out.push(0x80 + members.len() as u8);
            for (key, value) in members {
                match key.parse::<u64>() {
                    // Places in the table of strings are numbers.
                    Ok(number) => packed(&number.into(), out),
                    Err(_) => packed(&key.as_str().into(), out),
                }
                packed(value, out);
            }
        }
    }
}

/// Two traces as tracers send them.
pub fn msgpack() -> Vec<u8> {
    let traces = serde_json::json!([
        [
            {"trace_id": 13_929_872_635_420_174_821_u64, "span_id": 17_293_822_569_102_704_641_u64, "parent_id": 0, "name": "web.request", "resource": "GET /buy", "service": "web", "type": "web", "start": 1_700_000_000_000_000_000_u64, "duration": 50_000_000, "error": 0, "meta": {"runtime-id": "r1"}, "metrics": {"_dd.agent_psr": 0.5}},
            {"trace_id": 13_929_872_635_420_174_821_u64, "span_id": 17_293_822_569_102_704_642_u64, "parent_id": 17_293_822_569_102_704_641_u64, "name": "postgres.query", "resource": "SELECT 1", "service": "web-postgres", "type": "sql", "start": 1_700_000_000_010_000_000_u64, "duration": 5_000_000, "error": 1, "meta": {}, "metrics": {}}
        ],
        []
    ]);
    let mut bytes = Vec::new();
    packed(&traces, &mut bytes);
    bytes
}

#[test]
fn datadog_traces_in_messagepack() {
    let bytes = msgpack();
    let wanted = recorded(&bytes);
    insta::assert_snapshot!("datadog_msgpack", wanted);
    // The same with texts as places in a table.
    let table = serde_json::json!([
        ["", "web", "web.request", "GET /buy", "runtime-id", "r1", "_dd.agent_psr", "web-postgres", "postgres.query", "SELECT 1", "sql"],
        [[
            [1, 2, 3, 13_929_872_635_420_174_821_u64, 17_293_822_569_102_704_641_u64, 0, 1_700_000_000_000_000_000_u64, 50_000_000, 0, {"4": 5}, {"6": 0.5}, 1],
            [7, 8, 9, 13_929_872_635_420_174_821_u64, 17_293_822_569_102_704_642_u64, 17_293_822_569_102_704_641_u64, 1_700_000_000_010_000_000_u64, 5_000_000, 1, {}, {}, 10]
        ]]
    ]);
    let mut places = Vec::new();
    packed(&table, &mut places);
    let places: Vec<u8> = std::iter::once(0x92).chain(places.into_iter().skip(3)).collect();
    assert_eq!(recorded(&places), wanted);
    insta::assert_snapshot!(
        "datadog_msgpack_cut",
        recorded_as(dyelog_trace::Format::Datadog, &bytes[..bytes.len() - 40])
    );
}

/// A program whose own spans are named otherwise than it was configured.
#[test]
fn datadog_services_that_a_program_names() {
    let span = |id: u64, parent: u64, service: &str, kind: &str, name: &str| {
        serde_json::json!({"trace_id": 1, "span_id": id, "parent_id": parent, "name": name, "resource": name,
            "service": service, "type": if kind == "sql" { "sql" } else { "" }, "start": 1_700_000_000_000_000_000_u64 + id,
            "duration": 100 - id, "meta": {"span.kind": if kind == "sql" { "" } else { kind }, "_dd.base_service": "app"}})
    };
    let spans = serde_json::json!([[
        span(1, 0, "front", "server", "GET /"),
        span(2, 1, "front", "internal", "work"),
        span(3, 2, "front", "client", "POST cart"),
        span(4, 3, "cart", "server", "POST /cart"),
        span(5, 4, "mysql", "sql", "SELECT 1"),
        // Of no server that is known.
        span(6, 99, "redis", "client", "GET k"),
    ]]);
    insta::assert_snapshot!("datadog_named", recorded(spans.to_string().as_bytes()));
}

/// A field of a message: its number and its bytes.
pub fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
    out
}

pub fn number_field(number: u8, mut value: u64) -> Vec<u8> {
    let mut out = vec![number << 3];
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A span of the agent's messages.
fn agent_span(span: &serde_json::Value) -> Vec<u8> {
    let text = |number: u8, key: &str| bytes_field(number, span[key].as_str().expect("a text").as_bytes());
    let number = |number: u8, key: &str| number_field(number, span[key].as_u64().expect("a number"));
    let mut out = [text(1, "service"), text(2, "name"), text(3, "resource"), text(12, "type")].concat();
    for (place, key) in (4..).zip(["trace_id", "span_id", "parent_id", "start", "duration", "error"]) {
        out.extend(number(place, key));
    }
    for (key, value) in span["meta"].as_object().expect("a map") {
        let pair = [bytes_field(1, key.as_bytes()), bytes_field(2, value.as_str().expect("a text").as_bytes())];
        out.extend(bytes_field(10, &pair.concat()));
    }
    for (key, value) in span["metrics"].as_object().expect("a map") {
        let pair = [&bytes_field(1, key.as_bytes())[..], &[0x11], &value.as_f64().expect("a number").to_le_bytes()];
        out.extend(bytes_field(11, &pair.concat()));
    }
    out
}

/// Payloads of two tracers, as JSON, as MessagePack and as the agent sends them on.
pub fn agent_payloads() -> [Vec<u8>; 3] {
    let span = |service: &str, id: u64, parent: u64, kind: &str, start: u64| {
        serde_json::json!({"service": service, "name": "request", "resource": "GET /buy", "type": kind,
            "trace_id": 13_929_872_635_420_174_821_u64, "span_id": id, "parent_id": parent,
            "start": 1_700_000_000_000_000_000_u64 + start, "duration": 5_000_000, "error": 0,
            "meta": {"runtime-id": "r1"}, "metrics": {"_dd.agent_psr": 0.5}})
    };
    let payload = |host: &str, spans: Vec<serde_json::Value>| serde_json::json!({"hostname": host, "language_name": "go", "chunks": [{"priority": 1, "spans": spans}]});
    let both = [
        payload(
            "h1",
            vec![
                span("web", 17_293_822_569_102_704_641, 0, "web", 0),
                span("web", 2, 17_293_822_569_102_704_641, "http", 1000),
            ],
        ),
        payload("h2", vec![span("cart", 3, 2, "web", 2000)]),
    ];
    let mut msgpack = Vec::new();
    for payload in &both {
        packed(payload, &mut msgpack);
    }
    let tracer = |payload: &serde_json::Value| {
        let spans = payload["chunks"][0]["spans"].as_array().expect("a list");
        let chunk: Vec<u8> = spans.iter().flat_map(|span| bytes_field(3, &agent_span(span))).collect();
        let chunk = [number_field(1, 1), chunk].concat();
        let host = bytes_field(9, payload["hostname"].as_str().expect("a text").as_bytes());
        bytes_field(5, &[bytes_field(2, b"go"), bytes_field(6, &chunk), host].concat())
    };
    let version = [bytes_field(1, b"agent-host"), bytes_field(2, b"prod")].concat();
    let agent = [version, tracer(&both[0]), tracer(&both[1]), bytes_field(7, b"7.50.0")].concat();
    [serde_json::json!({ "tracerPayloads": both }).to_string().into_bytes(), msgpack, agent]
}

#[test]
fn payloads_of_the_datadog_agent() {
    let [json, msgpack, agent] = agent_payloads();
    let wanted = recorded(&json);
    insta::assert_snapshot!("datadog_agent", wanted);
    assert_eq!(recorded(&msgpack), wanted, "MessagePack");
    assert_eq!(recorded(&agent), wanted, "protobuf");
    // The payload of one tracer, as it lies in that of the agent; the agent's own machine is that of the file then.
    let one = &agent[agent.windows(2).position(|pair| pair == b"go").expect("it is there") - 2..];
    let length = one.windows(2).position(|pair| pair == b"h1").expect("it is there") + 2;
    assert_eq!(recorded(&one[..length]).lines().filter(|line| line.contains("h1")).count(), 2);
    insta::assert_snapshot!(
        "datadog_agent_cut",
        recorded_as(dyelog_trace::Format::Datadog, &agent[..agent.len() - 30])
    );
    // A payload of the newest form beside the others.
    let newer = [&agent[..], &bytes_field(11, b"\x0a\x01x")].concat();
    assert!(recorded(&newer).contains("payload in a form that is not read"));
}

#[test]
fn honeycomb_events() {
    let events = r#"[
      {"time":"2026-02-15T21:16:43.5Z","samplerate":10,"data":{"trace.trace_id":"t1","trace.span_id":"a","name":"GET /","service.name":"web","span.kind":"server","duration_ms":12.5,"host.name":"hostA","error":true}},
      {"time":"2026-02-15T21:16:43.501Z","samplerate":10,"data":{"trace.trace_id":"t1","trace.span_id":"b","trace.parent_id":"a","name":"send","service_name":"web","meta.span_type":"producer","duration_ms":1}},
      {"time":"2026-02-15T21:16:43.502Z","data":{"trace.trace_id":"t1","trace.parent_id":"a","meta.annotation_type":"span_event","name":"retry"}},
      {"time":"2026-02-15T21:16:43.503Z","data":{"trace.trace_id":"t1","trace.parent_id":"b","meta.annotation_type":"link","trace.link.trace_id":"t0","trace.link.span_id":"z"}},
      {"time":"2026-02-15T21:16:43.503Z","data":{"name":"a log line"}}]"#;
    insta::assert_snapshot!("honeycomb_batch", recorded(events.as_bytes()));
    let lines = r#"{"Timestamp":1771190203988,"trace.trace_id":"t1","trace.span_id":"a","name":"GET /","service.name":"web","duration_ms":2,"SampleRate":4}
{"Timestamp":"2026-02-15T21:16:43.988Z","trace.trace_id":"t1","trace.span_id":"b","trace.parent_id":"a","name":"x","service.name":"web","duration_ms":"1"}
"#;
    insta::assert_snapshot!("honeycomb_lines", recorded(lines.as_bytes()));
}

#[test]
fn chrome_events() {
    // Without its end, as a program that is killed leaves it.
    let events = r#"[{"name":"process_name","ph":"M","pid":1,"args":{"name":"browser"}},
{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"main"}},
{"name":"load","ph":"X","pid":1,"tid":2,"ts":100,"dur":50.5,"args":{"url":"x"}},
{"name":"parse","ph":"B","pid":1,"tid":2,"ts":110},
{"name":"post","cat":"f","ph":"s","id":7,"pid":1,"tid":2,"ts":115},
{"ph":"E","pid":1,"tid":2,"ts":120},
{"name":"work","ph":"X","pid":1,"tid":3,"ts":130,"dur":10},
{"name":"post","cat":"f","ph":"f","bp":"e","id":7,"pid":1,"tid":3,"ts":131},
{"name":"fetch","cat":"net","ph":"b","id":"0x1","pid":1,"tid":2,"ts":125},
{"name":"fetch","cat":"net","ph":"e","id":"0x1","pid":1,"tid":2,"ts":145},
{"ph":"E","pid":1,"tid":3,"ts":200},
{"name":"counter","ph":"C","pid":1,"ts":1,"args":{"x":1}},
{"name":"open","ph":"B","pid":4,"tid":4,"ts":300},
"#;
    insta::assert_snapshot!("chrome_open", recorded(events.as_bytes()));
    let circle = r#"{"displayTimeUnit":"ms","traceEvents":[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":9},{"name":"b","ph":"X","pid":1,"tid":2,"ts":1,"dur":9},
{"ph":"s","id":1,"cat":"x","pid":1,"tid":1,"ts":2},{"ph":"f","bp":"e","id":1,"cat":"x","pid":1,"tid":2,"ts":3},{"ph":"s","id":2,"cat":"x","pid":1,"tid":2,"ts":4},{"ph":"f","bp":"e","id":2,"cat":"x","pid":1,"tid":1,"ts":5}]}"#;
    insta::assert_snapshot!("chrome_circle", recorded(circle.as_bytes()));
}
