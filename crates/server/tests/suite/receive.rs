//! What the receivers take, and what they refuse.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::program::Program;
use crate::support::{BEGIN, SECOND, of_file, request, trace};

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
const JSON: (&str, &str) = ("content-type", "application/json");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Waits until all that was sent is folded.
fn folded(program: &Program, spans: u64) {
    let begin = Instant::now();
    while program.figure("dyelog_spans{state=\"folded\"}") < spans {
        assert!(begin.elapsed() < Duration::from_secs(30), "not folded in time");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn binary_json_and_gzip_come_to_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0.1"]);
    let spans: Vec<_> = (0..3).flat_map(|number| trace(number, BEGIN + number * SECOND, &[3, 4])).collect();
    let of = |number: usize| &spans[number * 5..(number + 1) * 5];
    assert_eq!(program.put(&request(of(0))).unwrap().status, 200);
    let packed = program.ask("POST", "/v1/traces", &[PROTOBUF, GZIP], &gzip(&request(of(1)))).unwrap();
    assert_eq!((packed.status, packed.body.len()), (200, 0));
    let json = json_of(&request(of(2)));
    let answer = program
        .ask("POST", "/v1/traces", &[JSON, GZIP], &[&json.as_bytes()[..9], &json.as_bytes()[9..]].map(gzip).concat())
        .unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    folded(&program, 15);
    let period = program.ask("GET", "/v1/period?from=2023-11-14T22:13:20Z&to=2023-11-14T22:14:00Z", &[], b"").unwrap();
    assert_eq!(period.text(), of_file(&spans));
    let get = |path: &str| {
        let answer = program.ask("GET", path, &[], b"").unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.text()
    };
    assert!(get("/").contains("<td>folded into models</td><td class=\"n\">15</td>"), "{}", get("/"));
    assert!(get("/").contains("Measured against predicted"));
    let same = get("/v1/period/difference?from=0&other_from=0");
    assert!(!same.contains("stock"), "{same}");
    assert!(get("/v1/period/model").contains("stock") && get("/v1/period/report").contains("<html"));
    assert!(serde_json::from_str::<serde_json::Value>(&get("/v1/period/solution")).is_ok());
    assert_eq!(program.ask("GET", "/v1/period?to=2000-01-02T00:00:00Z", &[], b"").unwrap().status, 404);
    assert_eq!(program.ask("GET", "/v1/period?from=x", &[], b"").unwrap().status, 400);
}

/// A request in the JSON of OTLP.
fn json_of(request: &[u8]) -> String {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use prost::Message as _;
    serde_json::to_string(&ExportTraceServiceRequest::decode(request).unwrap()).unwrap()
}

#[test]
fn a_span_that_cannot_be_read_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let json = json_of(&request(&trace(1, BEGIN, &[2, 3])));
    let trace = format!("{:032x}", 2);
    // No hexadecimal digits, a time that is none, and an object that is no span.
    let wrong = json.replacen(&trace, "not hexadecimal", 1).replacen(
        "\"startTimeUnixNano\":\"17",
        "\"startTimeUnixNano\":\"x",
        1,
    );
    let wrong = wrong.replacen("\"spans\":[", "\"spans\":[7,", 1);
    let answer = program.ask("POST", "/v1/traces", &[JSON], wrong.as_bytes()).unwrap();
    let said: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!((answer.status, &said["partialSuccess"]["rejectedSpans"]), (200, &"2".into()), "{said}");
    // What is no JSON is refused as a whole.
    let cut = &json.as_bytes()[..json.len() - 3];
    assert_eq!(program.ask("POST", "/v1/traces", &[JSON], cut).unwrap().status, 400);
}

#[test]
fn what_is_refused_says_why_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let status =
        |headers: &[(&str, &str)], body: &[u8]| program.ask("POST", "/v1/traces", headers, body).unwrap().status;
    assert_eq!(status(&[PROTOBUF], b"\xff\xff\xff"), 400);
    assert_eq!(status(&[JSON], b"{\"resourceSpans\": 7}"), 400);
    assert_eq!((status(&[JSON], b" {}"), status(&[JSON], b"[]")), (200, 400));
    assert_eq!(status(&[("content-type", "text/plain")], b"x"), 415);
    assert_eq!(status(&[PROTOBUF, ("content-encoding", "br")], b"x"), 415);
    assert_eq!(status(&[PROTOBUF, GZIP], b"no gzip"), 400);
    assert_eq!(status(&[PROTOBUF], &vec![0; (20 << 20) + 1]), 413);
    // JSON may be as large. For a longer piece of it there is never memory: nobody is to try again.
    let spaces = |length: usize| format!("{{{}}}", " ".repeat(length - 2));
    assert_eq!([20 << 20, (20 << 20) + 1].map(|length| status(&[JSON], spaces(length).as_bytes())), [200, 413]);
    let resource = |length: usize| {
        format!(r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"{}"}}]}}}}]}}"#, "x".repeat(length))
    };
    assert_eq!([4 << 20, 5 << 20].map(|length| status(&[JSON], resource(length).as_bytes())), [200, 413]);
    // Of very many parts, and a gigabyte of zeros in a megabyte.
    assert_eq!(status(&[PROTOBUF, GZIP], &gzip(b"").repeat(5000)), 400);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..1024).for_each(|_| bomb.write_all(&zeros).unwrap());
    assert_eq!(status(&[PROTOBUF, GZIP], &bomb.finish().unwrap()), 413);
    assert_eq!(program.ask("GET", "/v1/traces", &[], b"").unwrap().status, 405);
    assert_eq!(program.ask("GET", "/healthz", &[], b"").unwrap().status, 200);
    assert_eq!(program.figure("dyelog_spans_received_total"), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn large_bodies_of_many_at_a_time_take_no_more_memory_than_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let mut spans = trace(1, BEGIN, &[2; 8]);
    for (_, span) in &mut spans {
        span.trace_state = "x".repeat(1 << 20);
    }
    let (address, body) = (program.address, request(&spans));
    assert!(body.len() > 16 << 20);
    thread::scope(|scope| {
        for _ in 0..8 {
            // Those that find no room are to try again.
            scope.spawn(|| {
                (0..4).for_each(|_| assert!([200, 503].contains(&Program::put_to(address, &body).unwrap().status)));
            });
        }
    });
    let most = program.most_memory();
    assert!(most < 140 << 20, "{} MiB", most >> 20);
}

#[test]
fn who_sends_all_of_a_large_body_first_sees_why_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "put aaaaaaaaaaaaaaaa\n").unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--tokens", tokens.to_str().unwrap()]);
    let begin = |headers: &str, length: usize| {
        let mut stream = TcpStream::connect(program.address).unwrap();
        let head = format!("POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let whole = |headers: &str, megabytes: usize| {
        let mut stream = begin(headers, megabytes << 20);
        stream.write_all(&vec![0; megabytes << 20]).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        String::from_utf8_lossy(&status[9..]).into_owned()
    };
    let token = "authorization: Bearer aaaaaaaaaaaaaaaa\r\n";
    let usual = format!("{token}content-type: application/x-protobuf\r\n");
    assert_eq!(whole("", 16), "401");
    assert_eq!(whole(token, 16), "415");
    assert_eq!(whole(&usual, 21), "413");
    // Bodies that do not end have the memory, once the server has read of them. Where one before them had it still, it refuses one of these.
    let is_refused = |attempt: u64| {
        // The server sees later that those before are gone.
        thread::sleep(Duration::from_millis(100 * attempt));
        let mut open: Vec<TcpStream> = (0..3).map(|_| begin(&usual, 20 << 20)).collect();
        for stream in &mut open {
            let _ = stream.write_all(&vec![0; 18 << 20]);
        }
        thread::sleep(Duration::from_millis(200));
        whole(&usual, 16) == "503"
    };
    assert!((0..20).any(is_refused), "all were taken");
    // What comes to no end is not waited for.
    let (mut cut, begun) = (begin("", 16 << 20), Instant::now());
    cut.write_all(&[0; 1000]).unwrap();
    cut.read_exact(&mut [0; 12]).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_allocator_of_the_c_library_has_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let environment = std::fs::read(format!("/proc/{}/environ", program.number())).unwrap();
    assert!(environment.split(|byte| *byte == 0).any(|set| set == b"MALLOC_ARENA_MAX=1"));
}

#[test]
fn attributes_without_content_refuse_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0.1"]);
    let mut spans = 0;
    for (number, value) in (1..).zip([
        r#"{"arrayValue":{}}"#,
        r#"{"kvlistValue":{}}"#,
        r#"{"doubleValue":"NaN"}"#,
        r#"{"doubleValue":"-Infinity"}"#,
    ]) {
        let sent = trace(number, BEGIN, &[2, 3]);
        spans += sent.len() as u64;
        let mut sent: serde_json::Value = serde_json::from_str(&json_of(&request(&sent))).unwrap();
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        let attribute = serde_json::json!({ "key": "process.command_args", "value": value });
        for own in sent["resourceSpans"].as_array_mut().unwrap() {
            own["resource"]["attributes"].as_array_mut().unwrap().push(attribute.clone());
            own["scopeSpans"][0]["scope"] = serde_json::json!({ "attributes": [attribute] });
            own["scopeSpans"][0]["spans"][0]["attributes"] = serde_json::json!([attribute]);
        }
        let answer = program.ask("POST", "/v1/traces", &[JSON], sent.to_string().as_bytes()).unwrap();
        assert_eq!((answer.status, &*answer.text()), (200, "{}"), "{value}");
    }
    folded(&program, spans);
}

/// An unreadable point is refused by itself. The answer counts it, as it counts an unreadable span.
#[test]
fn points_that_cannot_be_read_are_a_partial_success() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let metrics = |metrics: &str| {
        let json = format!(
            r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"w"}}}}]}},"scopeMetrics":[{{"metrics":[{metrics}]}}]}}]}}"#
        );
        let answer = program.ask("POST", "/v1/metrics", &[JSON], json.as_bytes()).unwrap();
        (answer.status, answer.text())
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let point = |second: u64, more: &str| format!(r#"{{"timeUnixNano":"{}000000000",{more}}}"#, now - 60 + second);
    let sum = |points: &str| {
        format!(
            r#"{{"name":"process.cpu.time","unit":"s","sum":{{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{points}]}}}}"#
        )
    };
    let histogram = format!(
        r#"{{"name":"http.server.request.duration","histogram":{{"aggregationTemporality":2,"dataPoints":[{}]}}}}"#,
        point(1, r#""count":5,"sum":"NaN","exemplars":null"#)
    );
    // What protocol buffers take is used.
    assert_eq!(
        metrics(&format!("{},{histogram}", sum(&point(1, r#""asDouble":"1.5","attributes":null"#)))),
        (200, "{}".to_owned())
    );
    let (status, said) = metrics(&format!(
        "{},{},7",
        sum(&format!("{},{{}}", point(2, r#""asInt":[]"#))),
        sum(&point(3, r#""asInt":3"#))
    ));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &said["partialSuccess"]["rejectedDataPoints"]), (200, &"3".into()), "{said}");
    assert!(said["partialSuccess"]["errorMessage"].as_str().unwrap().contains("points that cannot be read"));
    let figure = |state: &str| program.figure(&format!("dyelog_metric_points_total{{state=\"{state}\"}}"));
    let begin = Instant::now();
    while figure("received") < 6 {
        assert!(begin.elapsed() < Duration::from_secs(20), "not read in time");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(["received", "used", "refused", "set_aside"].map(figure), [6, 3, 3, 0]);
    // A request that is cut within a point is none.
    assert_eq!(
        program
            .ask("POST", "/v1/metrics", &[PROTOBUF], b"\x0a\x0a\x12\x08\x12\x06\x2a\x04\x0a\x02\x3a\x05")
            .unwrap()
            .status,
        400
    );
}

#[test]
fn spans_without_identifiers_are_a_partial_success() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0.1"]);
    let mut spans = trace(1, BEGIN, &[2]);
    spans[0].1.span_id = vec![0; 8];
    spans[1].1.trace_id.pop();
    let answer = program.ask("POST", "/v1/traces", &[JSON], json_of(&request(&spans)).as_bytes()).unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("\"rejectedSpans\":\"2\""), "{}", answer.text());
    let answer = program.put(&request(&spans)).unwrap();
    assert_eq!((answer.status, &answer.body[..2], &answer.body[2..4]), (200, &[10, 84][..], &[8, 2][..]));
    folded(&program, 1);
    assert_eq!(program.figure("dyelog_spans{state=\"refused\"}"), 4);
    assert_eq!(program.figure("dyelog_spans{state=\"duplicate\"}"), 1);
}

#[test]
fn slow_clients_do_not_keep_others_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(program.address).unwrap();
            let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 100000\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(b"\x0a").unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    assert_eq!(program.put(&request(&trace(1, BEGIN, &[2]))).unwrap().status, 200);
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(slow);
}

#[test]
fn tokens_tell_who_may_put_read_and_delete() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "put aaaaaaaaaaaaaaaa\nread bbbbbbbbbbbbbbbb\nadmin cccccccccccccccc\n").unwrap();
    let tokens = tokens.to_str().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--tokens", tokens]);
    let body = request(&trace(1, BEGIN, &[2]));
    let ask = |method: &str, path: &str, token: &str, body: &[u8]| {
        let bearer = format!("Bearer {token}");
        program.ask(method, path, &[PROTOBUF, ("authorization", &bearer)], body).unwrap().status
    };
    assert_eq!(program.put(&body).unwrap().status, 401);
    assert_eq!(ask("POST", "/v1/traces", "aaaaaaaaaaaaaaaa", &body), 200);
    assert_eq!(ask("POST", "/v1/traces", "bbbbbbbbbbbbbbbb", &body), 401);
    assert_eq!(ask("GET", "/v1/intervals", "aaaaaaaaaaaaaaaa", b""), 401);
    assert_eq!(ask("GET", "/v1/intervals", "bbbbbbbbbbbbbbbb", b""), 200);
    assert_eq!(ask("DELETE", "/v1/period?to=now", "bbbbbbbbbbbbbbbb", b""), 401);
    assert_eq!(ask("DELETE", "/v1/period?to=now", "cccccccccccccccc", b""), 200);
    assert_eq!(ask("GET", "/healthz", "", b""), 200);
    let figures = program.ask("GET", "/metrics", &[("authorization", "Bearer bbbbbbbbbbbbbbbb")], b"").unwrap().text();
    assert!(figures.contains("dyelog_requests_total{kind=\"traces\",code=\"401\"} 2\n"), "{figures}");
    // A browser asks for a password: `me:bbbbbbbbbbbbbbbb`, and that of an administrator.
    let (reader, administrator) = ("Basic bWU6YmJiYmJiYmJiYmJiYmJiYg==", "Basic bWU6Y2NjY2NjY2NjY2NjY2NjYw==");
    let browse = |method: &str, path: &str, password: &str| {
        program.ask(method, path, &[("accept", "text/html,*/*"), ("authorization", password)], b"").unwrap()
    };
    for path in ["/", "/metrics", "/v1/intervals"] {
        assert_eq!((browse("GET", path, reader).status, browse("GET", path, "").status), (200, 401), "{path}");
    }
    assert_eq!(browse("GET", "/", administrator).status, 200);
    for (method, path) in [("DELETE", "/v1/period?to=now"), ("POST", "/services/init"), ("POST", "/services/put")] {
        for password in [reader, administrator] {
            assert_eq!(browse(method, path, password).status, 401, "{method} {path}");
        }
    }
    let asks_for_password = |method: &str, path: &str, accept: &str| {
        let refused = program.ask(method, path, &[("accept", accept)], b"").unwrap();
        refused.head.contains("www-authenticate: bearer") && refused.head.contains("www-authenticate: basic")
    };
    assert!(asks_for_password("GET", "/", "text/html,*/*") && !asks_for_password("GET", "/", "*/*"));
    assert!(!asks_for_password("POST", "/services/init", "text/html"));
}

#[test]
fn requests_are_counted_by_how_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let post = |path: &str, body: &[u8]| program.ask("POST", path, &[PROTOBUF], body).unwrap();
    assert_eq!(post("/v1/traces", &request(&trace(1, BEGIN, &[2]))).status, 200);
    assert_eq!(post("/v1/traces", b"nothing").status, 400);
    assert_eq!(post("/v1/metrics", &vec![0; 21 << 20]).status, 413);
    // A report must be there.
    let missing = post("/services/put", b"");
    assert_eq!((missing.status, &*missing.text()), (400, "{\"error\":\"there is no report\"}"));
    assert_eq!(post("/services/put", b"{\"dyelog-observations\":1,\"observations\":[]}").status, 200);
    for (kind, code) in
        [("traces", 200), ("traces", 400), ("metrics", 413), ("observations", 400), ("observations", 200)]
    {
        assert_eq!(
            program.figure(&format!("dyelog_requests_total{{kind=\"{kind}\",code=\"{code}\"}}")),
            1,
            "{kind} {code}"
        );
    }
    assert_eq!(program.figure("dyelog_acknowledgement_seconds_count{kind=\"traces\"}"), 1);
    assert_eq!(program.figure("dyelog_acknowledgement_seconds_bucket{kind=\"observations\",le=\"+Inf\"}"), 1);
    #[cfg(target_os = "linux")]
    assert!((1 << 20..1 << 30).contains(&program.figure("process_resident_memory_bytes")));
}

#[test]
fn a_name_of_this_machine_is_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start_at("localhost:0", &folder.path().join("store.db"), &[]);
    assert!(program.address.ip().is_loopback());
    assert_eq!(program.ask("GET", "/healthz", &[], b"").unwrap().status, 200);
    let refused = |name: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        let output = command.args(["--listen", name, "--store", "never-made.db"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for name in ["localhost", "nobody.invalid:1", "localhost:port"] {
        let words = refused(name);
        assert!(words.contains("such as 127.0.0.1:4318 or localhost:4318"), "{words}");
    }
}

#[test]
fn other_machines_only_with_tokens() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["--listen", "0.0.0.0:0", "--store", "never-made.db"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("can be reached from other machines") && words.contains("--tokens FILE"), "{words}");
}

#[test]
fn heads_that_never_end_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &[]);
    let begun = [&b"POST /v1/traces HT"[..], b"PRI * HTTP/2", b""].map(|head| {
        let mut stream = TcpStream::connect(program.address).unwrap();
        stream.write_all(head).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    });
    for mut stream in begun {
        // It is closed within the time that heads have; a reset is an end, too, where some of it was not read.
        let end = stream.read_to_end(&mut Vec::new());
        let reset = end.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert!(end.is_ok() || reset, "{end:?}");
    }
}
