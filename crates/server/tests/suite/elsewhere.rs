//! A store behind a server, and a server behind TLS.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use dyelog::lqn::saved;
use dyelog_server::recorded::Recorded;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use crate::program::Program;
use crate::support::{BEGIN, SECOND, of_file, request, trace};

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/tls").join(name).display().to_string()
}

fn period(store: &str, token: &str, question: &str, rest: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["period", question, "--store", store])
        .args(rest)
        .env("DYELOG_TOKEN", token)
        .output()
        .expect("it starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("it is text")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends three traces, and waits until they are folded and on disk.
fn fill(program: &Program, headers: &[(&str, &str)]) -> String {
    let spans: Vec<_> = (0..3).flat_map(|number| trace(number, BEGIN + number * 10 * SECOND, &[2])).collect();
    let headers = [&[("content-type", "application/x-protobuf")], headers].concat();
    assert_eq!(program.ask("POST", "/v1/traces", &headers, &request(&spans)).unwrap().status, 200);
    of_file(&spans)
}

fn wait_for(what: impl Fn() -> bool) {
    for _ in 0..300 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it did not come in time");
}

#[test]
fn a_store_behind_a_server_answers_as_its_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "put 0123456789abcdef\nadmin fedcba9876543210\n").unwrap();
    let program = Program::start(&file, &["--grace", "0", "--limit", "1", "--tokens", tokens.to_str().unwrap()]);
    let whole = fill(&program, &[("authorization", "Bearer 0123456789abcdef")]);
    let url = format!("http://{}/", program.address);
    let file = file.display().to_string();
    wait_for(|| String::from_utf8_lossy(&period(&file, "", "list", &[]).stdout).lines().count() == 4);
    let asked = |question: &str, rest: &[&str]| {
        let here = text(&period(&file, "", question, rest));
        assert_eq!(text(&period(&url, "fedcba9876543210", question, rest)), here, "{question} {rest:?}");
        here
    };
    asked("list", &["--json"]);
    asked("list", &["--from", "2023-11-14T22:13:30Z", "--to", "2023-11-14T23:13:35+00:00"]);
    assert_eq!(asked("export", &[]), whole);
    // Commands get it packed, those who do not know that form as JSON, and both have the same.
    let get = |accept: &[(&str, &str)]| {
        let headers = [&[("authorization", "Bearer fedcba9876543210")], accept].concat();
        program.ask("GET", "/v1/period/recorded", &headers, b"").unwrap()
    };
    let packed_type = Recorded::packed_type();
    let packed = get(&[("accept", &format!("{packed_type}, application/json;q=0.5"))]);
    assert!(packed.head.contains(&format!("content-type: {packed_type}\r")), "{}", packed.head);
    let packed = Recorded::from_bytes(&packed.body).unwrap();
    let (sub, merge) = saved::unpack(&"packed".into(), &packed.packed).unwrap();
    for other in [&[][..], &[("accept", "*/*")], &[("accept", "application/vnd.dyelog.recorded;version=1")]] {
        let plain = get(other);
        assert!(plain.head.contains("content-type: application/json\r"), "{}", plain.head);
        let plain: Recorded = serde_json::from_slice(&plain.body).unwrap();
        assert_eq!(plain.submodel, saved::write(&sub, &merge));
        assert_eq!(
            (plain.utilisation, plain.unknown, plain.missing),
            (packed.utilisation.clone(), packed.unknown.clone(), packed.missing.clone())
        );
    }
    // All three traces have the same entries, of which the first one bears witness.
    let kept = period(&url, "fedcba9876543210", "exemplars", &[]).stdout;
    assert_eq!(kept, period(&file, "", "exemplars", &[]).stdout);
    let kept = ExportTraceServiceRequest::decode(&*kept).unwrap();
    let spans = kept.resource_spans.iter().flat_map(|own| &own.scope_spans).flat_map(|own| &own.spans);
    let mut spans: Vec<_> = spans.cloned().collect();
    let mut sent: Vec<_> = trace(0, BEGIN, &[2]).into_iter().map(|(_, span)| span).collect();
    spans.sort_by(|a, b| a.span_id.cmp(&b.span_id));
    sent.sort_by(|a, b| a.span_id.cmp(&b.span_id));
    assert_eq!(spans, sent);
    for wrong in ["", "0123456789abcdef"] {
        let why = refused(&period(&url, wrong, "export", &[]));
        assert!(why.contains("401") && why.contains("DYELOG_TOKEN"), "{why}");
    }
    let why = refused(&period(&url, "fedcba9876543210", "export", &["--from", "-1h"]));
    assert!(why.contains("nothing was recorded in this period"), "{why}");
    let saved = folder.path().join("saved.json");
    fs::write(&saved, &whole).unwrap();
    assert_eq!(
        text(&period(&url, "fedcba9876543210", "delete", &["--to", "2033-01-01T00:00:00Z"])),
        "deleted 3 intervals\n"
    );
    let why = refused(&period(&file, "", "exemplars", &[]));
    assert!(why.contains("nothing was recorded"), "{why}");
    text(&period(&url, "fedcba9876543210", "import", &[saved.to_str().unwrap()]));
    assert_eq!(asked("export", &[]), whole);
    let why = refused(&period(&url, "fedcba9876543210", "import", &[saved.to_str().unwrap()]));
    assert!(why.contains("seems to hold operations") && why.contains("--again"), "{why}");
    assert_eq!(asked("export", &[]), whole);
    let twice = period(&url, "fedcba9876543210", "import", &["--again", saved.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("they count twice"), "{twice:?}");
    let why = refused(&period(&url, "fedcba9876543210", "exemplars", &[]));
    assert!(why.contains("no trace of this period was kept"), "{why}");
}

#[test]
fn connections_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let (certificate, key) = (fixture("certificate.pem"), fixture("key.pem"));
    let program = Program::start(&file, &["--tls-certificate", &certificate, "--tls-key", &key]);
    let url = format!("https://{}", program.address);
    let trust = ["--trust", &certificate[..]];
    assert_eq!(text(&period(&url, "", "list", &trust)).lines().count(), 1);
    let why = refused(&period(&url, "", "list", &[]));
    assert!(why.contains("certificate") || why.contains("UnknownIssuer"), "{why}");
    // What is not encrypted gets no answer, and does not keep others from theirs.
    let mut plain = TcpStream::connect(program.address).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    // A certificate as openssl makes it unless told otherwise is one of an authority.
    let other = fixture("authority.pem");
    let authority = Program::start(&folder.path().join("other.db"), &["--tls-certificate", &other, "--tls-key", &key]);
    let why = refused(&period(&format!("https://{}", authority.address), "", "list", &["--trust", &other]));
    assert!(why.contains("is one of an authority") && why.contains("basicConstraints=critical,CA:FALSE"), "{why}");
    // Where it is asked so and nothing is encrypted, it says what to do.
    let open = Program::start(&folder.path().join("open.db"), &[]);
    let why = refused(&period(&format!("https://{}", open.address), "", "list", &[]));
    assert!(why.contains("the server does not encrypt") && why.contains("hint: where it listens on http://"), "{why}");
    let silent = TcpStream::connect(program.address).unwrap();
    assert_eq!(text(&period(&url, "", "list", &trust)).lines().count(), 1);
    drop(silent);
}

#[test]
fn other_machines_need_tokens_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "put 0123456789abcdef\n").unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let start = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
            .args(["--listen", "0.0.0.0:0", "--store"])
            .arg(path("never-made.db"))
            .args(arguments)
            .output()
            .unwrap();
        refused(&output)
    };
    let tokens = ["--tokens", tokens.to_str().unwrap()];
    assert!(start(&[]).contains("--tokens FILE"));
    assert!(start(&tokens).contains("--tls-certificate FILE --tls-key FILE"));
    let (certificate, key) = (fixture("certificate.pem"), fixture("key.pem"));
    let swapped = [&tokens[..], &["--tls-certificate", &key, "--tls-key", &certificate]].concat();
    let why = start(&swapped);
    assert!(why.contains("key.pem") && why.contains("no certificate"), "{why}");
    assert!(!path("never-made.db").exists());
    let program = Program::start_at("0.0.0.0:0", &path("store.db"), &[&tokens[..], &["--tls-by-proxy"]].concat());
    drop(program);
}

#[cfg(unix)]
#[test]
fn tokens_and_certificates_are_replaced_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (tokens, certificate) = (path("tokens"), path("certificate.pem"));
    let begin_with = |token: &str| fs::write(&tokens, format!("read {token}\n")).unwrap();
    begin_with("0123456789abcdef");
    fs::copy(fixture("certificate.pem"), &certificate).unwrap();
    let arguments = ["--tokens", &tokens, "--tls-certificate", &certificate, "--tls-key", &fixture("key.pem")];
    let program = Program::start(&folder.path().join("store.db"), &arguments);
    let url = format!("https://{}", program.address);
    let list = |token: &str| period(&url, token, "list", &["--trust", &fixture("certificate.pem")]);
    text(&list("0123456789abcdef"));
    begin_with("fedcba9876543210");
    program.signal("HUP");
    wait_for(|| list("fedcba9876543210").status.success());
    assert!(refused(&list("0123456789abcdef")).contains("401"));
    // What cannot be used changes nothing, and does not end the server.
    fs::write(&tokens, "read short\n").unwrap();
    program.signal("HUP");
    begin_with("0123456789abcdef");
    fs::write(&certificate, "none").unwrap();
    program.signal("HUP");
    std::thread::sleep(Duration::from_millis(500));
    text(&list("fedcba9876543210"));
    fs::copy(fixture("authority.pem"), &certificate).unwrap();
    program.signal("HUP");
    let other = || period(&url, "0123456789abcdef", "list", &["--trust", &fixture("authority.pem")]);
    wait_for(|| String::from_utf8_lossy(&other().stderr).contains("is one of an authority"));
    program.stop();
}

#[test]
fn a_journal_that_begins_after_what_the_store_has_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("store.db.journal");
    fs::create_dir(&journal).unwrap();
    fs::write(journal.join("00000000000000001000.journal"), "").unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        command.args(["--listen", "127.0.0.1:0", "--store"]).arg(folder.path().join("store.db")).output().unwrap()
    };
    let why = refused(&start());
    for words in [
        "store.db.journal: the journal is damaged: it begins at 1000, but the store read it only up to 0",
        "hint: put back the store and the journal as they were at one time; or move the journal away",
    ] {
        assert!(why.contains(words), "{why}");
    }
    // As it says.
    fs::rename(&journal, folder.path().join("old")).unwrap();
    drop(Program::start(&folder.path().join("store.db"), &[]));
}

#[test]
fn arguments_that_contradict_each_other_are_refused() {
    let start = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        refused(&command.args(arguments).output().unwrap())
    };
    let why = start(&["--grace", "60", "--limit", "5", "--store", "never-made.db"]);
    assert!(why.contains("`--grace 60` is longer than `--limit 5`") && why.contains("hint: `--limit 60`"), "{why}");
    let why = start(&["--store", "ftp://x"]);
    assert!(why.contains("`ftp://x` is no store: write the name of a file, or `postgresql://"), "{why}");
}
