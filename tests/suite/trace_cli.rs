//! Tests of `dyelog trace`.

use std::fs;

use assert_cmd::Command;

fn dyelog(arguments: &[&str]) -> (i32, String, String) {
    dyelog_fed(arguments, Vec::new())
}

fn dyelog_fed(arguments: &[&str], input: Vec<u8>) -> (i32, String, String) {
    let mut command = Command::cargo_bin("dyelog").expect("the package has a binary");
    let command = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).write_stdin(input);
    let output = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    (output.status.code().expect("it exits"), text(output.stdout), text(output.stderr))
}

#[test]
fn check_tells_damage_by_its_exit_code() {
    let (code, report, words) = dyelog(&["trace", "check", "traces/figure-3.angio"]);
    assert_eq!((code, words.as_str()), (0, ""));
    insta::assert_snapshot!(report, @"
    operations           1   sound 1, restored 0, set aside 0
    events              11   and 0 set aside
    ");
    let (code, report, _) = dyelog(&["trace", "check", "traces/lost-reply.angio", "--format", "json"]);
    assert_eq!(code, 1);
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!(
        (&report["dyelog-quality"], &report["restored"], &report["set_aside"]),
        (&1.into(), &1.into(), &1.into())
    );
    let (code, report, words) = dyelog(&["trace", "check", "traces/lost-reply.angio", "--strict"]);
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(words.contains("T041"), "{words}");
}

#[test]
fn convert_goes_there_and_back() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let [lines, text] = ["lines", "text"].map(|name| folder.path().join(name).display().to_string());
    for trace in ["traces/figure-4.angio", "traces/fork-join.angio", "traces/two-scenarios.angio"] {
        assert_eq!(dyelog(&["trace", "convert", trace, "--to", "angio-jsonl", "-o", &lines]).0, 0);
        assert_eq!(dyelog(&["trace", "convert", &lines, "-o", &text]).0, 0);
        let (_, direct, _) = dyelog(&["trace", "convert", trace]);
        assert_eq!(fs::read_to_string(&text).expect("it was written"), direct);
    }
}

/// Events lose what only spans tell, and nothing of that silently.
#[test]
fn events_do_not_hold_all_of_spans() {
    for target in ["angio", "angio-jsonl"] {
        let (code, _, words) = dyelog(&["trace", "convert", "traces/shop.otlp.jsonl", "--to", target]);
        assert_eq!(code, 0, "{words}");
        let latency = "the format does not hold which times are of spans, so that network latency and servers can be told: 200 operations had some";
        assert!(words.contains(latency), "{words}");
        let (_, _, words) = dyelog(&["trace", "convert", "traces/figure-4.angio", "--to", target]);
        assert_eq!(words, "", "events lose nothing");
    }
}

#[test]
fn stat_counts() {
    let (code, report, words) = dyelog(&["trace", "stat", "traces/two-scenarios.angio", "traces/figure-3.angio"]);
    assert_eq!((code, words.as_str()), (0, ""));
    insta::assert_snapshot!(report, @"
    all
      operations            4
      events               35   Be 6, Ac 21, Ed 6, Fk 2, Jn 0
      threads               6
      tasks                 5   A, B, C, db, web
      with time            24
      with CPU             15
      duration          3.800 ms a mean operation, from 2.000 ms to 6.400 ms
      span           0.026400 s in all

    scenario a
      operations            1
      events               11   Be 2, Ac 6, Ed 2, Fk 1, Jn 0
      threads               2
      tasks                 3   A, B, C
      with time             0
      with CPU              0

    scenario read
      operations            2
      events               16   Be 2, Ac 12, Ed 2, Fk 0, Jn 0
      threads               2
      tasks                 2   db, web
      with time            16
      with CPU             12
      duration          4.200 ms a mean operation, from 2.000 ms to 6.400 ms
      span           0.026400 s in all

    scenario write
      operations            1
      events                8   Be 2, Ac 3, Ed 2, Fk 1, Jn 0
      threads               2
      tasks                 2   db, web
      with time             8
      with CPU              3
      duration          3.000 ms a mean operation, from 3.000 ms to 3.000 ms
      span           0.003000 s in all
    ");
    let (_, report, _) = dyelog(&["trace", "stat", "traces/figure-3.angio", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!((&report["dyelog-stat"], &report["all"]["operations"]), (&1.into(), &1.into()));
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    for (arguments, code) in
        [(vec!["trace", "stat", "Cargo.toml"], "T004"), (vec!["trace", "check", "no-such-file"], "C001")]
    {
        let (exit, output, words) = dyelog(&arguments);
        assert_eq!((exit, output.as_str()), (2, ""));
        assert!(words.contains(code), "{words}");
    }
}

/// Spans with all that some format cannot hold.
const RICH: [(&str, &str); 2] = [
    (
        "rich.otlp.json",
        r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}},{"key":"host.name","value":{"stringValue":"hostA"}},
        {"key":"service.instance.id","value":{"stringValue":"web-1"}},{"key":"region","value":{"stringValue":"eu"}}]},"scopeSpans":[{"spans":[
        {"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"GET /buy","kind":2,"startTimeUnixNano":"1700000000000000001","endTimeUnixNano":"1700000000050000000",
         "attributes":[{"key":"http.route","value":{"stringValue":"/buy"}},{"key":"retries","value":{"intValue":"2"}},{"key":"SampleRate","value":{"doubleValue":4.5}}],"status":{"code":2}},
        {"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203332","parentSpanId":"b7ad6b7169203331","flags":768,"name":"send","kind":4,"startTimeUnixNano":"1700000000010000000","endTimeUnixNano":"1700000000010000500",
         "attributes":[{"key":"messaging.operation.type","value":{"stringValue":"send"}}],"links":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331"}],
         "events":[{"timeUnixNano":"1700000000010000000","name":"enqueued","attributes":[{"key":"n","value":{"intValue":"1"}}]}]},
        {"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203333","parentSpanId":"b7ad6b7169203331","name":"render","kind":1,"startTimeUnixNano":"1700000000020000000"}]}]}]}"#,
    ),
    (
        "rich.jaeger.json",
        r#"{"data":[{"traceID":"odd","spans":[{"traceID":"odd","spanID":"a","operationName":"job","startTime":1700000000000000,"duration":500,"processID":"p1"},
        {"traceID":"odd","spanID":"b","operationName":"later","references":[{"refType":"FOLLOWS_FROM","traceID":"odd","spanID":"a"}],"startTime":1700000000001000,"duration":500,"processID":"p1"}],
        "processes":{"p1":{"serviceName":"cron"}}}]}"#,
    ),
];

#[test]
fn what_conversions_lose_is_what_the_book_says() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let files: Vec<String> = RICH
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("it can be written");
            path.display().to_string()
        })
        .collect();
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/book/src/spans.md")).expect("a page of the book");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .skip_while(|line| !line.starts_with("| lost | `otlp`"))
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for (column, target) in ["otlp", "jaeger", "zipkin", "spans-csv"].into_iter().enumerate() {
        assert_eq!(rows[0][column + 1], format!("`{target}`"));
        let mut told: Vec<&str> = rows[2..].iter().filter(|row| row[column + 1] == "lost").map(|row| row[0]).collect();
        told.sort_unstable();
        let (code, written, words) = dyelog(&["trace", "convert", &files[0], &files[1], "--to", target]);
        assert_eq!(code, 0, "{words}");
        let mut found: Vec<&str> = words
            .lines()
            .filter_map(|line| line.split_once("the format does not hold ")?.1.split_once(": ").map(|(what, _)| what))
            .collect();
        found.sort_unstable();
        assert_eq!(found, told, "{target}\n{words}");
        // What was written reads as what it was made of.
        let back = folder.path().join(target);
        fs::write(&back, written).expect("it can be written");
        let (_, again, _) = dyelog(&["trace", "convert", &back.display().to_string(), "--to", target]);
        assert_eq!(again, fs::read_to_string(&back).expect("it was written"), "{target}");
    }
}

/// What a format holds comes back from it, to the byte.
#[test]
fn what_a_format_holds_comes_back() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let span = |number: u8, kind: u8, more: &str| {
        format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b716920333{number}","parentSpanId":"{}","name":"step {number}","kind":{kind},"startTimeUnixNano":"170000000000{number}000000","endTimeUnixNano":"1700000000050000000"{more}}}"#,
            if number == 1 { String::new() } else { format!("b7ad6b716920333{}", number - 1) },
        )
    };
    let rich = r#","attributes":[{"key":"peer.service","value":{"stringValue":"shop"}},{"key":"colour","value":{"stringValue":"red"}}],"events":[{"timeUnixNano":"1700000000010000000","name":"queued"}],"status":{"code":2}"#;
    for target in ["otlp", "jaeger", "zipkin", "spans-csv"] {
        let more = if target == "spans-csv" { r#","status":{"code":2}"# } else { rich };
        let text = format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"web"}}}}]}},"scopeSpans":[{{"spans":[{},{},{},{}]}}]}}]}}"#,
            span(1, 2, r#","status":{"code":1}"#),
            span(2, 3, more),
            span(3, 5, ""),
            span(4, 4, more),
        );
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name).display().to_string();
            fs::write(&path, text).expect("it can be written");
            path
        };
        let convert = |from: &str, to: &str| dyelog(&["trace", "convert", from, "--to", to]).1;
        let first = convert(&file("given", &text), "otlp");
        let there = convert(&file("first", &first), target);
        assert_eq!(convert(&file("there", &there), "otlp"), first, "{target}");
    }
}

/// Spans of many traces that come in turn, with attributes of their own, in lines of a hundred.
fn mixed_spans(count: u64) -> String {
    let span = |number: u64| {
        let (trace, start) = (number * 7919 % 997 + 1, 1_700_000_000_000_000_000 + number * 1_000_000);
        let (id, parent) = (number + 1, if number < 997 { String::new() } else { format!("{:016x}", number - 996) });
        format!(
            r#"{{"traceId":"{trace:032x}","spanId":"{id:016x}","parentSpanId":"{parent}","name":"get {}","kind":{},"startTimeUnixNano":"{start}","endTimeUnixNano":"{}","attributes":[{{"key":"request.id","value":{{"stringValue":"id of {number}"}}}}]}}"#,
            number % 7,
            number % 3 + 1,
            start + 900_000,
        )
    };
    let lines = (0..count / 100).map(|line| {
        let spans: Vec<String> = (line * 100..line * 100 + 100).map(span).collect();
        let service = format!(r#"{{"key":"service.name","value":{{"stringValue":"s{}"}}}}"#, line / 3 % 5);
        let resource = format!(r#"{{"attributes":[{service}]}}"#);
        format!(r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn conversions_do_not_depend_on_memory() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("mixed.jsonl").display().to_string();
    fs::write(&path, mixed_spans(20_000)).expect("it can be written");
    for target in ["otlp", "jaeger", "zipkin", "spans-csv"] {
        let convert = |more: &[&str]| {
            let (code, written, words) = dyelog(&[&["trace", "convert", &path, "--to", target], more].concat());
            assert_eq!(code, 0, "{words}");
            (written, words)
        };
        let (whole, words) = convert(&["--memory", "1GB"]);
        assert!(convert(&["--memory", "200KB"]) == (whole.clone(), words), "{target}");
        // All of it is there: so it reads as what it was made of.
        let back = folder.path().join(target).display().to_string();
        fs::write(&back, whole).expect("it can be written");
        let spans = |file: &str| dyelog(&["trace", "convert", file, "--to", "spans-csv"]).1;
        let sorted = |file: &str| {
            let mut rows: Vec<String> = spans(file).lines().map(|row| row.replace(",internal,", ",,")).collect();
            rows.sort_unstable();
            rows
        };
        assert!(sorted(&back) == sorted(&path), "{target}");
    }
}

/// A saved sub-model, too, is the same whatever waits on disk: where it keeps all spans, some or none.
#[test]
fn sub_models_do_not_depend_on_memory() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("mixed.jsonl").display().to_string();
    // Some traces lack spans.
    let spans: Vec<String> =
        mixed_spans(20_000).lines().enumerate().filter(|(at, _)| at % 50 != 20).map(|(_, line)| line.into()).collect();
    fs::write(&path, spans.join("\n")).expect("it can be written");
    for keep in ["1000000", "3000", "0"] {
        let saved =
            |memory: &str| dyelog(&["model", &path, "--format", "submodel", "--keep-spans", keep, "--memory", memory]);
        let (code, whole, words) = saved("1GB");
        assert_eq!(code, 0, "{words}");
        assert!(saved("200KB") == (code, whole, words), "{keep}");
    }
}

#[test]
fn conversions_keep_the_model() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let model = |file: &str| dyelog(&["model", file, "--sampling", "1"]).1;
    let wanted = model("traces/shop.otlp.jsonl");
    for target in ["otlp", "jaeger"] {
        let path = folder.path().join(target).display().to_string();
        assert_eq!(dyelog(&["trace", "convert", "traces/shop.otlp.jsonl", "--to", target, "-o", &path]).0, 0);
        if target == "otlp" {
            assert_eq!(model(&path), wanted);
        } else {
            // Of times no more than microseconds are left.
            assert_eq!(model(&path).lines().count(), wanted.lines().count());
        }
    }
    let (code, _, words) = dyelog(&["trace", "convert", "traces/rpc.angio", "--to", "otlp"]);
    assert!(code == 2 && words.contains("it is `angio`"), "{words}");
}

/// A tar archive of some files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend(header);
        bytes.extend(*content);
        bytes.resize(bytes.len().div_ceil(512) * 512, 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// A zip archive of some files, which are not packed.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let sizes = [0, content.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
        let name_length = [name.len() as u8, 0, 0, 0];
        list.extend([&b"PK\x01\x02"[..], &[0; 12], &sizes, &name_length, &[0; 10]].concat());
        list.extend((bytes.len() as u32).to_le_bytes());
        list.extend(name.as_bytes());
        bytes.extend([&b"PK\x03\x04"[..], &[0; 10], &sizes, &name_length, name.as_bytes(), content].concat());
    }
    let count = [files.len() as u8, 0, files.len() as u8, 0];
    let end = [list.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).concat();
    [&bytes[..], &list, b"PK\x05\x06", &[0; 4], &count, &end, &[0; 2]].concat()
}

#[test]
fn folders_archives_and_patterns() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("it can be written");
    let (rpc, figure) = (include_bytes!("../../traces/rpc.angio"), include_bytes!("../../traces/figure-3.angio"));
    let (_, wanted, _) = dyelog(&["trace", "convert", "traces/figure-3.angio", "traces/rpc.angio"]);
    fs::create_dir(folder.path().join("day")).expect("there is room");
    put("day/a.angio", figure);
    put("day/b.angio", rpc);
    put("day/read.me", b"no trace");
    put("day/picture.svg", b"<svg/>");
    let packed = tar(&[("day/a.angio", figure), ("day/read.me", b"no trace"), ("day/b.angio", rpc)]);
    put("day.tar", &packed);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&packed).expect("memory takes all");
    put("day.tar.gz", &gzip.finish().expect("memory takes all"));
    put("day.tar.zst", &zstd::stream::encode_all(&packed[..], 1).expect("memory takes all"));
    for name in ["day", "day.tar", "day.tar.gz", "day.tar.zst"] {
        let (code, found, words) = dyelog(&["trace", "convert", &path(name)]);
        assert_eq!((code, found.as_str()), (0, wanted.as_str()), "{name}: {words}");
        assert!(words.contains("T007") && words.contains("read.me"), "{name}: {words}");
    }
    put("day.zip", &zip(&[("day/a.angio", figure), ("day/read.me", b"no trace"), ("day/b.angio", rpc)]));
    for name in ["day.zip", "day.tar", "day.tar.gz", "day.tar.zst"] {
        let bytes = fs::read(path(name)).expect("it was written");
        let (code, found, words) = dyelog_fed(&["trace", "convert", "-"], bytes);
        assert_eq!((code, found.as_str()), (0, wanted.as_str()), "{name}: {words}");
        assert!(words.contains("standard input/day/read.me"), "{name}: {words}");
    }
    let (code, _, words) = dyelog_fed(&["trace", "convert", "-"], b"PK\x03\x04 and no more".to_vec());
    assert!(code == 2 && words.contains("standard input"), "{words}");
    let (code, found, words) = dyelog(&["trace", "convert", &path("d*y/[ab].angio")]);
    assert_eq!((code, found.as_str(), words.as_str()), (0, wanted.as_str(), ""));
    assert_eq!(dyelog(&["model", &path("day")]).0, 0, "a picture is no model");
    // An archive in an archive, and what cannot be read, are left out with a warning.
    put("both.zip", &zip(&[("a.angio", figure), ("b.angio", rpc), ("inner.zip", &zip(&[("c.angio", rpc)]))]));
    let (code, found, words) = dyelog(&["trace", "convert", &path("both.zip")]);
    assert_eq!((code, found.as_str()), (0, wanted.as_str()), "{words}");
    assert!(words.contains("warning[T007]: this archive lies in another") && words.contains("inner.zip"), "{words}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", folder.path().join("day/gone.angio")).expect("it can be made");
        let (code, found, words) = dyelog(&["trace", "convert", &path("day")]);
        assert_eq!((code, found.as_str()), (0, wanted.as_str()), "{words}");
        assert!(words.contains("warning[T007]: this file cannot be read") && words.contains("gone.angio"), "{words}");
    }
    // A file that is named is a trace, or refused.
    assert_eq!(dyelog(&["trace", "convert", &path("day/read.me")]).0, 2);
    // What is cut off ends where it ends.
    put("cut.tar", &packed[..packed.len() - 2000]);
    let (code, _, words) = dyelog(&["trace", "convert", &path("cut.tar")]);
    assert!(code == 0 || code == 2, "{words}");
}

/// An operation with a call that is waited for, one beside it that ends sooner, one that is not waited for, and a second phase.
const WATERFALL: &str = "trace_id,span_id,parent_span_id,service,operation,kind,start_ms,duration_ms,status
1,a,,web,GET /,server,1700000000000,100,
1,b,a,web,find,client,1700000000010,50,
1,c,b,db,find,server,1700000000015,70,
1,d,a,web,price,client,1700000000020,20,
1,e,d,price,price,server,1700000000022,15,error
1,f,a,web,send,producer,1700000000070,5,
1,g,f,mail,send,consumer,1700000000072,300,
2,a,,web,GET /,server,1700000001000,40,
2,b,a,web,find,client,1700000001010,20,
2,c,b,db,find,server,1700000001015,10,
3,a,,web,GET /,server,1700000002000,42,
3,b,a,web,find,client,1700000002010,20,
3,c,b,db,find,server,1700000002015,10,
";

#[test]
fn show_draws_an_operation_with_its_critical_path() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("t.csv").display().to_string();
    fs::write(&path, WATERFALL).expect("it can be written");
    let (code, slowest, words) = dyelog(&["trace", "show", &path, "--pick", "slowest"]);
    assert_eq!(code, 0, "{words}");
    insta::assert_snapshot!("waterfall", slowest);
    assert!(words.contains("3 operations of `web GET /` have 2 shapes; 1 have that of the one shown"), "{words}");
    assert_eq!(dyelog(&["trace", "show", &path, "--pick", "rarest"]).1, slowest, "its shape is the rare one");
    let document = |arguments: &[&str]| {
        let (code, text, words) = dyelog(&[&["trace", "show", &path, "--format", "json"], arguments].concat());
        assert_eq!(code, 0, "{words}");
        serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON")
    };
    assert_eq!(document(&[])["response"], 0.04, "of two that are alike the shorter one is the median");
    let own = document(&["--run", "0000000000000001"]);
    let critical: f64 = own["spans"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|span| span["critical"].as_array().expect("a list").iter())
        .map(|part| part[1].as_f64().expect("a number") - part[0].as_f64().expect("a number"))
        .sum();
    assert!((critical - own["response"].as_f64().expect("a number")).abs() < 1e-9, "{critical}");
    let (code, picture, _) = dyelog(&["trace", "show", &path, "--run", "0000000000000001", "--format", "svg"]);
    assert!(
        code == 0 && picture.starts_with("<svg") && picture.matches("class=\"critical\"").count() >= 4,
        "{picture}"
    );
    let (code, _, words) = dyelog(&["trace", "show", &path, "--scenario", "web GET"]);
    assert!(code == 2 && words.contains("did you mean `web GET /`"), "{words}");
    assert_eq!(dyelog(&["trace", "show", &path, "--run", "9"]).0, 2);
}

#[test]
fn stat_tells_services_and_calls() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("t.csv").display().to_string();
    fs::write(&path, WATERFALL).expect("it can be written");
    let (code, report, _) = dyelog(&["trace", "stat", &path]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("stat_services", report);
    let (_, report, _) = dyelog(&["trace", "stat", &path, "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let calls = document["services"]["calls"].as_array().expect("a list");
    assert!(calls.iter().any(|call| call["from"] == "web" && call["to"] == "db" && call["count"] == 3));
}
