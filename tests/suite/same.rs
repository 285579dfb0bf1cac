//! SAME on golden traces: the validation cases, figures and table of the 2005 paper, and its bookstore.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Output};

use dyelog::same::{Analysis, Options, Same};
use dyelog::trace::messages::{self, MessageStep, What};
use dyelog::trace::{ReadOptions, ReadReport, TraceNames};

/// Runs the program in the project's folder.
fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8")
}

/// Analyses texts that are parts of one trace.
pub fn analyse(parts: &[(&str, &str)], options: Options) -> (Analysis, ReadReport, TraceNames) {
    let mut names = TraceNames::new();
    let sources = parts
        .iter()
        .map(|(file, text)| {
            let open =
                dyelog::trace::open(file, text.as_bytes(), &ReadOptions::default()).expect("a format that is known");
            open.messages().expect("a trace of messages")
        })
        .collect();
    let mut same = Same::new(options, parts.iter().map(|(file, _)| (*file).into()).collect());
    let report = messages::read_all(sources, &mut names, &mut same).expect("the trace can be read");
    (same.finish(&names), report, names)
}

/// The records of a table of messages, as rows without times.
fn records(table: &str) -> Vec<String> {
    let (analysis, _, names) = analyse(&[("test", table)], Options { records: true, ..Options::default() });
    let rows = dyelog::report::interactions::csv(&analysis.records, &names);
    let mut rows: Vec<String> = rows
        .lines()
        .skip(1)
        .map(|row| {
            let fields: Vec<&str> = row.split(',').collect();
            format!("{} {} {} {}", fields[0], fields[2], fields[3], fields[4]).trim_end().to_owned()
        })
        .collect();
    rows.sort();
    rows
}

fn golden(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/same").join(file);
    std::fs::read_to_string(path).expect("a golden trace")
}

#[test]
fn records_are_those_of_the_paper() {
    for (file, expected) in [
        ("case-1-sync.csv", &["sync B.1 A.1"][..]),
        ("case-2-async.csv", &["async A.1 B.1"]),
        ("case-3-forward.csv", &["forward A.1 C.1 B.1"]),
        ("case-4-nested-async.csv", &["async B.1 C.1", "sync A.1 B.1"]),
        ("case-5-nested-forward.csv", &["forward B.1 D.1 C.1", "sync A.1 B.1"]),
        ("case-6-concurrent.csv", &["forward A.1 D.2 B.1", "forward C.1 E.1 D.1"]),
        ("figure-3a.csv", &["async B.1 D.1", "forward A.1 E.1 B.1", "sync B.1 C.1"]),
        ("figure-5.csv", &["forward A.1 D.1 B.1>C.1", "sync E.1 B.2"]),
        (
            "bookstore-browse.txt",
            &[
                "sync Client.1 Server.1",
                "sync Inventory.1 Book.1",
                "sync Inventory.1 Book2.1",
                "sync Server.1 Inventory.1",
            ],
        ),
    ] {
        assert_eq!(records(&golden(file)), expected, "{file}");
    }
}

#[test]
fn every_golden_trace_has_its_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/same");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/same");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the traces are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files.len(), 9);
    for file in files {
        let name = file.split('.').next().expect("a stem");
        let path = format!("traces/same/{file}");
        for (what, arguments) in [
            ("model", ["model", &path, "--merge", "structure", "--format", "text"]),
            ("matches", ["matches", &path, "--threads", "1", "--format", "csv"]),
        ] {
            let output = run(&arguments);
            assert!(output.status.success(), "{file}: {}", text(&output.stderr));
            settings.bind(|| insta::assert_snapshot!(format!("{name}.{what}"), text(&output.stdout)));
        }
    }
}

#[test]
fn twelve_bookstore_scenarios_under_a_usage_profile_give_about_ten_responses_a_second() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/same/bookstore");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the traces are there")
        .map(|entry| format!("traces/same/bookstore/{}", entry.expect("an entry").file_name().to_string_lossy()))
        .collect();
    files.sort();
    assert_eq!(files.len(), 12);
    for file in &files {
        let solved = run(&["solve", file, "--format", "json"]);
        assert!(solved.status.success(), "{file}: {}", text(&solved.stderr));
    }
    let mut arguments = vec!["solve", "--config", "examples/bookstore.toml", "--format", "json"];
    arguments.extend(files.iter().map(String::as_str));
    let solved = run(&arguments);
    assert!(solved.status.success(), "{}", text(&solved.stderr));
    let results: serde_json::Value = serde_json::from_slice(&solved.stdout).expect("JSON");
    let tasks = results["tasks"].as_array().expect("tasks");
    let throughput = |name: &str| {
        tasks.iter().find(|task| task["name"] == name).and_then(|task| task["throughput"].as_f64()).expect("a task")
    };
    let responses = throughput("Cu_customers");
    assert!((9.0..=11.5).contains(&responses), "{responses} responses a second");
    let forwarded: Vec<String> = records(&golden("bookstore/09-order.txt"));
    assert!(forwarded.contains(&"forward Server.1 Shipping.1 Billing.1".to_owned()), "{forwarded:?}");
}

#[test]
fn tables_come_in_many_forms() {
    let expected = records("sender,receiver,time,message\nA,B,1,ask\nB,C,2,pass\nC,A,3,answer\n");
    assert_eq!(expected, ["forward A.1 C.1 B.1"]);
    for table in [
        "Time;From;To\n1;A;B\n2;B;C\n3;C;A\n",
        "# a comment\n\nsender\treceiver\ttime_ms\nA\tB\t1000\nB\tC\t2000\nC\tA\t3000\n",
        "sender receiver time\nA B 1\nB C 2\nC A 3\n",
        // Out of order, and a quoted name.
        "sender,receiver,time\n\"C\",A,3\nA,\"B\",1\nB,C,2\n",
        "{\"sender\":\"A\",\"receiver\":\"B\",\"time\":1}\n{\"from\":\"B\",\"to\":\"C\",\"time\":2}\n{\"sender\":\"C\",\"receiver\":\"A\",\"time\":3}\n",
        // At one time the order of the rows counts.
        "sender,receiver,time\nA,B,1\nB,C,1\nC,A,1\n",
        "time,event,process,id\n1,send,A,x\n2,receive,B,x\n2,send,B,y\n3,receive,C,y\n4,send,C,z\n5,receive,A,z\n",
        "time,event,process,peer\n1,send,A,B\n2,receive,B,A\n2,send,B,C\n3,receive,C,B\n4,send,C,A\n5,receive,A,C\n",
    ] {
        assert_eq!(records(table), expected, "{table}");
    }
}

#[test]
fn parts_of_one_trace_are_merged_by_time() {
    let a = "time,event,process,id\n1,send,A,x\n6,receive,A,z\n7,send,A,lost\n";
    let b = "time,event,process,id\n2,receive,B,x\n3,send,B,y\n";
    let c = "time,event,process,id\n0,receive,C,before\n4,receive,C,y\n5,send,C,z\n";
    let options = Options { records: true, ..Options::default() };
    for parts in [[("a", a), ("b", b), ("c", c)], [("c", c), ("a", a), ("b", b)]] {
        let (analysis, report, _) = analyse(&parts, options);
        assert_eq!(analysis.counts, [0, 0, 1]);
        assert_eq!(report.counted["sending without a reception"], 1);
        assert_eq!(report.counted["reception without a sending"], 1);
    }
}

#[test]
fn clocks_that_cannot_be_put_in_causal_order_are_told() {
    let early = "time,event,process,id\n1,send,A,x\n0.5,receive,B,x\n";
    let (analysis, report, _) = analyse(&[("early", early)], Options::default());
    assert_eq!((analysis.messages, report.counted["message received before it was sent"]), (1, 1));
    assert!(report.findings[0].notes[0].contains("clocks of the two differ"), "{:?}", report.findings);
    // One way takes -0.5 s, the other 0.1 s: together less than nothing, whatever the clocks are set to.
    let both = format!("{early}2,send,B,y\n2.1,receive,A,y\n");
    let (_, report, _) = analyse(&[("both", &both)], Options::default());
    assert!(report.findings[0].notes[0].contains("no constant correction"), "{:?}", report.findings);
}

/// Parts of a trace in which tasks ask B, whose clock is 0.5 s behind: a message takes 0.1 s, and so does the one back.
fn clocks_apart(tasks: [&str; 3]) -> [String; 2] {
    let [mut a, mut b] = [(); 2].map(|()| String::from("time,event,process,id\n"));
    for (number, task) in (1..).zip(tasks) {
        a += &format!("{number},send,{task},ask{number}\n{number}.4,receive,{task},answer{number}\n");
        b += &format!("{0}.6,receive,B,ask{number}\n{0}.8,send,B,answer{number}\n", number - 1);
    }
    [a, b]
}

#[test]
fn clocks_of_machines_that_are_off_by_a_constant_are_told_with_it() {
    let [a, b] = clocks_apart(["A", "A", "A2"]);
    let (_, report, _) = analyse(&[("a.csv", &a), ("b.csv", &b)], Options::default());
    // One finding for the two machines, however many tasks there are on them.
    let told: Vec<String> = report
        .findings
        .iter()
        .map(|finding| format!("{}; {}; {}", finding.message, finding.notes[0], finding.hints[0]))
        .collect();
    assert_eq!(report.counted["message received before it was sent"], 3);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("3 messages from `a.csv` to `b.csv`"), "{told:?}");
    assert!(told[0].contains("that of `a.csv` is ahead by 0.400000000 to 0.600000000 s"), "{told:?}");
    assert!(told[0].contains("take as much off the times of `a.csv`"), "{told:?}");
}

#[test]
fn clocks_of_machines_are_corrected_as_told() {
    let folder = crate::cli::Folder::new();
    let [a, b] = clocks_apart(["A"; 3]);
    let (a, b) = (folder.file("a.csv", &a), folder.file("b.csv", &b));
    let matches = |more: &[&str]| {
        let output = run(&[&["matches", "--one-trace", "--format", "csv", &a, &b], more].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (_, _, said) = matches(&[]);
    let option = said.split('`').find_map(|words| words.strip_prefix("--clock '")).expect("the hint says what to do");
    let option = option.trim_end_matches('\'').to_owned();
    assert!(option.ends_with("a.csv=-0.500000000"), "{said}");
    for clock in [option.as_str(), "A=-0.5", "B=0.5"] {
        let (code, rows, said) = matches(&["--clock", clock]);
        assert!(code == Some(0) && !said.contains("T136"), "{clock}: {said}");
        assert_eq!(rows.lines().filter(|row| row.starts_with("sync,")).count(), 3, "{clock}: {rows}");
    }
    for (clock, why) in [("b=1", "did you mean `B`"), ("A", "NAME=SECONDS"), ("A=soon", "a number of seconds")] {
        let (code, _, said) = matches(&["--clock", clock]);
        assert!(code == Some(2) && said.contains(why), "{clock}: {said}");
    }
    let refused = run(&["model", "traces/rpc.angio", "--clock", "client=1"]);
    assert!(
        refused.status.code() == Some(2) && text(&refused.stderr).contains("is for messages"),
        "{}",
        text(&refused.stderr)
    );
    // Each end of a message has its own clock, but one time is that of its reception.
    let sent = folder.file("sent.csv", "sender,receiver,sent,time\nA,B,1,1.5\nB,A,2,2.25\n");
    let table = text(&run(&["trace", "convert", &sent, "--clock", "A=0.25"]).stdout);
    assert!(table.contains("A,B,1.5,1.25,") && table.contains("B,A,2.5,2,"), "{table}");
    let once = folder.file("once.csv", "sender,receiver,time\nA,B,1\nB,A,2\n");
    let table = text(&run(&["trace", "convert", &once, "--clock", "A=0.25"]).stdout);
    assert!(table.contains("A,B,1,1,") && table.contains("B,A,2.25,2.25,"), "{table}");
}

#[test]
fn rows_that_cannot_be_read_are_counted() {
    let table = "sender,receiver,time,colour\nA,B,1,red\nA,B\nA,B,soon,red\n,B,2,red\nA,B,2,red,late\nB,A,2,red,,\n";
    let (analysis, report, _) = analyse(&[("bad", table)], Options::default());
    assert_eq!(analysis.counts, [1, 0, 0]);
    assert_eq!(report.counted["row that cannot be read"], 4);
    assert_eq!(report.counted["column without a meaning"], 1);
    let header = dyelog::trace::open(
        "x",
        &b"sendr,receiver,time\n"[..],
        &ReadOptions { format: Some(dyelog::trace::Format::Messages), ..ReadOptions::default() },
    );
    let Err(found) = header.expect("the format is given").messages() else { panic!("the header lacks a column") };
    assert_eq!(found.0[0].code.0, "T130");
    assert!(found.0[0].hints[0].contains("did you mean `sender`"), "{found:?}");
}

#[test]
fn a_field_over_several_lines_leaves_no_row_behind() {
    let table = "sender,receiver,time,message\nA,B,1,\"one\ntwo\"\nx\",B,2,y\nA,B,3,\"say \"\"please\"\"\"\nB,A,4,\n";
    let (analysis, report, _) = analyse(&[("lines", table)], Options::default());
    assert_eq!((analysis.counts, analysis.messages), ([1, 0, 0], 2));
    assert_eq!(report.counted["row that cannot be read"], 3);
    assert!(report.findings.iter().any(|finding| finding.message.contains("quotation marks")), "{:?}", report.findings);
}

#[test]
fn each_column_of_times_has_its_own_unit() {
    for table in [
        "sender,receiver,time_ms,sent_us\nA,B,1500,1000000\nB,A,2500,2000000\n",
        // A column that names none has that of the other one.
        "sender,receiver,time_ms,sent\nA,B,1500,1000\nB,A,2500,2000\n",
        "{\"sender\":\"A\",\"receiver\":\"B\",\"time_ms\":\"1500\",\"sent_us\":1e6}\n\
         {\"sender\":\"B\",\"receiver\":\"A\",\"sent_us\":\"2000000\",\"time_ms\":2500}\n",
    ] {
        let (analysis, report, _) = analyse(&[("units", table)], Options { records: true, ..Options::default() });
        assert!(report.findings.is_empty(), "{table}: {:?}", report.findings);
        assert_eq!((analysis.records[0].time, analysis.records[0].end), (Some(1.5), Some(2.5)), "{table}");
    }
}

#[test]
fn lines_of_the_simulator_that_are_cut_short_are_counted() {
    let line = |text: &str| format!(" 0.5   client   client( 2): {text}\n");
    let trace: String = [
        "client created.",
        "Start activity Entry client - Ph 1.",
        "Computing [0.25]",
        "Computing [-1]",
        "Computing [1e999]",
        "Entry client -- Sending RNV to task server",
        "Entry client -- Received msg from task server",
    ]
    .into_iter()
    .map(line)
    .collect();
    let (_, report, _) = analyse(&[("cut", &trace)], Options::default());
    assert_eq!(report.counted["row that cannot be read"], 4, "{:?}", report.findings);
}

#[test]
fn clocks_that_know_of_what_is_not_in_the_log_are_told() {
    let log = "a {\"a\":1}\nb {\"b\":1, \"a\":7}\nb {\"b\":2, \"a\":7}\n";
    let (analysis, report, _) = analyse(&[("log", log)], Options::default());
    assert_eq!((analysis.messages, report.counted["reception without a sending"]), (0, 1));
    assert!(report.findings[0].message.contains("event 7 of `a`"), "{:?}", report.findings);
}

#[test]
fn vector_clocks_tell_senders() {
    // b hears of a through c as well, which is no message from a.
    let log = "a {\"a\":1}\nstart\na {\"a\":2}\nsend\nc {\"c\":1, \"a\":2}\nreceive\nc {\"c\":2, \"a\":2}\nsend\nb {\"b\":1, \"c\":2, \"a\":2}\nreceive\n\
               b {\"b\":2, \"c\":2, \"a\":2}\nsend\na {\"a\":3, \"b\":2, \"c\":2}\nanswer\n";
    assert_eq!(records(log), ["forward a.1 b.1 c.1"]);
    // As other parsers of such logs have them.
    let events =
        [("a", "{\"a\":1}"), ("b", "{\"a\":1, \"b\":1}"), ("b", "{\"a\":1,\"b\":2}"), ("a", "{\"a\":2,\"b\":2}")];
    let logs = [
        events.map(|(host, clock)| format!("{clock} {host}: did b a\n")),
        events.map(|(host, clock)| format!("event=did host={host} clock={clock}\n")),
        events.map(|(host, clock)| format!("3 [{host}] {clock} a b {{\"x\":5}}\n")),
        events.map(|(host, clock)| {
            format!(
                "State 1: <did>\n/\\ Host = \"{host}\"\n/\\ Clock = \"{}\"\n/\\ x = 1\n\n",
                clock.replace('"', "\\\"")
            )
        }),
    ];
    for log in logs {
        assert_eq!(records(&log.concat()), ["sync a.1 b.1"], "{}", log.concat());
    }
    let mut reversed: Vec<&str> = log.lines().collect();
    reversed.reverse();
    let reversed = reversed.join("\n") + "\n";
    assert_eq!(records(&reversed), ["forward a.1 b.1 c.1"]);
    let twice = format!("=== one ===\n{log}=== two ===\n{log}");
    assert_eq!(records(&twice), ["forward a.1 b.1 c.1", "forward a.2 b.2 c.2"]);
}

#[test]
fn converted_traces_say_the_same() {
    for file in ["bookstore-browse.txt", "figure-3a.csv"] {
        let whole = golden(file);
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("trace.csv");
        let from = format!("traces/same/{file}");
        let converted = run(&["trace", "convert", &from, "-o", path.to_str().expect("a plain path")]);
        assert!(converted.status.success(), "{}", text(&converted.stderr));
        let table = std::fs::read_to_string(path).expect("it was written");
        assert_eq!(records(&table), records(&whole), "{file}");
    }
}

#[test]
fn tasks_that_run_are_not_blocked_and_idle_ones_have_ended() {
    // A runs after it asked B, so that what B sends back is no reply.
    let table = "time,event,process,message,peer\n1,send,A,ask,B\n2,receive,B,ask,A\n3,run,A,,\n4,send,B,tell,A\n5,receive,A,tell,B\n";
    assert_eq!(records(table), ["async A.1 B.1", "async B.1 A.2"]);
    assert_eq!(records(&table.replace("3,run,A,,\n", "")), ["sync A.1 B.1"]);
    assert_eq!(records(&table.replace("run", "idle")), ["async A.1 B.1", "async B.1 A.2"]);
}

#[test]
fn analyses_are_told_and_can_be_chosen() {
    let output = run(&["model", "traces/same/figure-3a.csv"]);
    assert!(text(&output.stderr).contains("analysis SAME: the traces have messages"), "{}", text(&output.stderr));
    let output = run(&["matches", "traces/rpc.angio", "--analysis", "same", "--format", "csv"]);
    assert_eq!(text(&output.stdout).lines().nth(1), Some("sync,0.0004,client.1,server.1,"), "{}", text(&output.stdout));
    let refused = run(&["model", "traces/same/figure-3a.csv", "--analysis", "tlc"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let mixed = run(&["model", "traces/same/figure-3a.csv", "traces/rpc.angio"]);
    assert!(text(&mixed.stderr).contains("T139"), "{}", text(&mixed.stderr));
}

#[test]
fn steps_have_the_lines_of_receptions() {
    let table = "time,event,process,id\n1,send,A,x\n2,receive,B,x\n";
    let open = dyelog::trace::open("t", table.as_bytes(), &ReadOptions::default()).expect("a table");
    let mut names = TraceNames::new();
    let mut lines = Vec::new();
    let mut sink = |_: &TraceNames, step: &MessageStep| {
        lines.push((step.line, matches!(step.what, What::Receive { .. })));
        ControlFlow::Continue(())
    };
    messages::read_all(vec![open.messages().expect("events")], &mut names, &mut sink).expect("it can be read");
    assert_eq!(lines, [(2, false), (3, true)]);
}

#[test]
fn threads_that_a_trace_does_not_name_are_guessed() {
    // Two customers at once, and a server that asks another one for both of them.
    let mut table = String::from("sender,receiver,time\n");
    for (time, (from, to)) in
        [("A", "B"), ("A", "B"), ("B", "C"), ("B", "C"), ("C", "B"), ("B", "A"), ("C", "B"), ("B", "A")]
            .into_iter()
            .cycle()
            .take(80)
            .enumerate()
    {
        table += &format!("{from},{to},{time}\n");
    }
    let (sequential, _, _) = analyse(&[("test", &table)], Options::default());
    assert!(sequential.counts[1] > 0 && sequential.findings.findings.iter().any(|finding| finding.code.0 == "T152"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("messages.csv");
    std::fs::write(&path, &table).expect("it can be written");
    let path = path.to_str().expect("a path in UTF-8");
    let output = run(&["matches", path, "--guess-threads", "--format", "csv"]);
    let (rows, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.contains("threads were guessed"), "{said}");
    assert_eq!(rows.lines().filter(|row| row.starts_with("sync,")).count(), 40, "{rows}");
    assert_eq!(rows.lines().count(), 41, "{rows}");
    let refused = run(&["matches", "traces/rpc.angio", "--guess-threads"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// Requests of a client, of which a service serves several at once by calls to two others; with the names of messages, where they are wanted.
fn served_at_once(operations: u32, has_names: bool) -> String {
    let steps = [
        ("client", "a", "x"),
        ("a", "b", "y"),
        ("b", "a", "y reply"),
        ("a", "c", "z"),
        ("c", "a", "z reply"),
        ("a", "client", "x reply"),
    ];
    let mut state = 1_u64;
    let mut random = || {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        state * 1000 / (1 << 31)
    };
    let (mut begin, mut rows) = (0, Vec::new());
    for _ in 0..operations {
        begin += 500 + random();
        let mut time = begin;
        for step in steps {
            rows.push((time, step));
            time += 100 + 2 * random();
        }
    }
    rows.sort_unstable();
    let mut table = if has_names { "sender,receiver,time,message\n" } else { "sender,receiver,time\n" }.to_owned();
    for (time, (from, to, name)) in rows {
        let name = if has_names { format!(",{name}") } else { String::new() };
        table += &format!("{from},{to},{}.{:03}{name}\n", time / 1000, time % 1000);
    }
    table
}

#[test]
fn where_requests_look_like_calls_of_each_other_a_guess_of_threads_is_offered() {
    let folder = tempfile::tempdir().expect("a folder");
    for (has_names, code) in [(true, "error[S003]"), (false, "error[S009]")] {
        let path = folder.path().join(format!("{code}.csv"));
        std::fs::write(&path, served_at_once(100, has_names)).expect("it can be written");
        let path = path.to_str().expect("a path in UTF-8");
        let output = run(&["solve", path]);
        let said = text(&output.stderr);
        let told = said.split_once(code).unwrap_or_else(|| panic!("{code}: {said}")).1;
        assert!(!output.status.success() && told.contains("`--guess-threads` tells them apart"), "{said}");
        let guessed = run(&["solve", path, "--guess-threads"]);
        assert!(guessed.status.success(), "{}", text(&guessed.stderr));
    }
}

#[test]
fn times_of_day_are_read_in_tables() {
    let plain = "sender,receiver,time\na,b,1\nb,c,2\nc,b,3.5\nb,a,4\n";
    let dated = "sender,receiver,time\na,b,2026-02-15T10:00:01Z\nb,c,2026-02-15T11:00:02+01:00\nc,b,2026-02-15T10:00:03.500Z\nb,a,2026-02-15T10:00:04Z\n";
    assert_eq!(records(plain), records(dated));
    let (_, report, _) = analyse(&[("test", dated)], Options::default());
    assert_eq!(report.counted.get("row that cannot be read"), None, "{report:?}");
}

#[test]
fn a_header_with_a_slip_is_told_with_the_word_that_was_meant() {
    for (header, meant) in
        [("sender,reciever,time", "`receiver`"), ("tiem,event,process", "`time`"), ("time,evnt,process", "`event`")]
    {
        let text = format!("{header}\na,b,1\n");
        let open = dyelog::trace::open("t", text.as_bytes(), &ReadOptions::default());
        let finding = open.expect("a table").messages().err().expect("a column is missing").0.remove(0);
        assert_eq!(finding.code.0, "T130");
        assert!(finding.hints.iter().any(|hint| hint.contains(meant)), "{finding:?}");
    }
    assert!(dyelog::trace::open("t", "sender,whatever,time\n".as_bytes(), &ReadOptions::default()).is_err());
}
