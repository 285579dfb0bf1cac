//! The language server, spoken to as an editor does.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::{Folder, run};

/// An editor.
struct Client {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    next: i64,
    /// What came while something else was waited for.
    told: Vec<Value>,
}

impl Client {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dyelog"))
            .args(["rules", "lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it runs");
        let input = child.stdin.take().expect("it is piped");
        let mut stream = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, output) = channel();
        thread::spawn(move || while receive(&mut stream).is_some_and(|message| sender.send(message).is_ok()) {});
        Self { child, input, output, next: 0, told: Vec::new() }
    }

    fn ready() -> Self {
        let mut client = Self::start();
        let answer = client.request("initialize", &json!({ "processId": null, "rootUri": null, "capabilities": {} }));
        assert_eq!(answer["result"]["capabilities"]["hoverProvider"], true, "{answer}");
        client.notify("initialized", &json!({}));
        client
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).expect("it listens");
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// What comes first that fits, of what came already or comes next.
    fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.told.iter().position(&fits) {
            return self.told.remove(at);
        }
        loop {
            let message = self.output.recv_timeout(PATIENCE).expect("it answers");
            if fits(&message) {
                return message;
            }
            self.told.push(message);
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait(|message| message["id"] == id)
    }

    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": "dyelog", "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }));
        self.findings(uri)
    }

    fn change(&mut self, uri: &str, changes: &Value) -> Vec<Value> {
        let document = json!({ "uri": uri, "version": 2 });
        self.notify("textDocument/didChange", &json!({ "textDocument": document, "contentChanges": changes }));
        self.findings(uri)
    }

    /// The findings of a document that come next.
    fn findings(&mut self, uri: &str) -> Vec<Value> {
        let told = self
            .wait(|message| message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri);
        told["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    /// The findings of a document, once they are what is waited for.
    fn settled(&mut self, uri: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        loop {
            let found = self.findings(uri);
            if wanted(&found) {
                return found;
            }
        }
    }

    /// What is answered about the first place of a document where some text stands, so many characters into it.
    fn ask(&mut self, method: &str, uri: &str, text: &str, what: &str, into: usize) -> Value {
        let at = text.find(what).unwrap_or_else(|| panic!("{what} stands in it")) + into;
        let line = text[..at].matches('\n').count();
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let position = json!({ "line": line, "character": text[start..at].encode_utf16().count() });
        self.request(method, &json!({ "textDocument": { "uri": uri }, "position": position }))["result"].clone()
    }

    fn end(mut self) -> Option<i32> {
        self.request("shutdown", &Value::Null);
        self.notify("exit", &Value::Null);
        self.child.wait().expect("it ends").code()
    }
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The next message; `None` at the end.
fn receive(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().strip_prefix("Content-Length: ") {
            Some(number) => length = number.parse().ok()?,
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn codes(findings: &[Value]) -> Vec<&str> {
    findings.iter().filter_map(|finding| finding["code"].as_str()).collect()
}

const HELPERS: &str =
    "/// Y comes after X.\nafter(X, Y) :- edge(X, Y).\nafter(X, Z) :- after(X, Y), edge(Y, Z).\nexport after.\n";

const RULES: &str = "use \"helpers.dl\"\n/// 𝕩 asks and goes on.\ntemplate asks {\n  order -1\n  match {\n    e1 = Fk(k2) [j, k, m | a, v]\n    e2 = Be [j, k2, 1 | b, w]\n  }\n  where { a != b, after(e1, e2) }\n  model {\n    S := newEntry(A, b)\n    addRequest(E, S)\n    addTrigger([j, k2, 2 | b, w+1], S)\n  }\n}\n";

#[test]
fn an_editor_is_served() {
    let folder = Folder::new();
    folder.file("helpers.dl", HELPERS);
    folder.file("asks.dl", RULES);
    folder.file("one.angio", &fs::read_to_string("traces/asynchronous.angio").expect("it is bundled"));
    let (file, helpers) = (uri(&folder.path("asks.dl")), uri(&folder.path("helpers.dl")));
    let mut client = Client::ready();
    assert_eq!(client.open(&file, RULES), [] as [Value; 0]);

    let hover = |client: &mut Client, what: &str, into| {
        let told = client.ask("textDocument/hover", &file, RULES, what, into);
        told["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let template = hover(&mut client, "template asks", 10);
    for told in ["**asks**, order -1", "𝕩 asks and goes on.", "a        e1 Fk(k2) ", "where `a != b`"] {
        assert!(template.contains(told), "{told}: {template}");
    }
    assert!(hover(&mut client, "addRequest", 3).contains("addRequest(entry, entry)"));
    assert!(hover(&mut client, "after(e1", 1).contains("Y comes after X."));
    assert!(hover(&mut client, "e2)", 0).contains("e2 = Be [j, k2, 1 | b, w]"));

    let definition = client.ask("textDocument/definition", &file, RULES, "after(e1", 2);
    assert_eq!(
        (&definition["uri"], &definition["range"]["start"]),
        (&json!(helpers), &json!({"line": 1, "character": 0}))
    );
    let used = client.ask("textDocument/definition", &file, RULES, "helpers.dl", 2);
    assert_eq!(used["uri"], json!(helpers));
    let entry = client.ask("textDocument/definition", &file, RULES, "E, S)", 3);
    assert_eq!(entry["range"]["start"], json!({"line": 10, "character": 4}));

    for (what, into, label) in [
        ("addRequest", 3, "addTrigger"),
        ("addRequest(E", 12, "S"),
        ("after(e1", 2, "next_in_task"),
        ("after(e1", 2, "after"),
        ("after(e1", 2, "starts"),
        ("after(e1", 6, "X"),
        ("Be [", 1, "Fk"),
        ("order", 1, "where"),
        ("helpers", 2, "std/tree.dl"),
        ("newEntry(A", 10, "R"),
    ] {
        let list = client.ask("textDocument/completion", &file, RULES, what, into);
        let labels: Vec<&str> =
            list.as_array().expect("a list").iter().filter_map(|one| one["label"].as_str()).collect();
        assert!(labels.contains(&label), "{what}: {label} is not among {labels:?}");
    }

    let formatting = json!({ "textDocument": { "uri": file }, "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = client.request("textDocument/formatting", &formatting);
    let tidy = crate::cli::fed(&["rules", "fmt", "-"], RULES).out;
    assert_eq!(edits["result"][0]["newText"], json!(tidy));

    let lenses = client.request("textDocument/codeLens", &json!({ "textDocument": { "uri": file } }));
    assert_eq!(lenses["result"][0]["command"]["title"], "2 matches in 1 trace", "{lenses}");
    assert_eq!(lenses["result"][0]["range"]["start"], json!({"line": 2, "character": 9}));

    // A change of a range, in units of UTF-16: the line before has a character of two.
    let slip = json!([{ "range": { "start": {"line": 8, "character": 24}, "end": {"line": 8, "character": 26} }, "text": "zz" }]);
    let found = client.change(&file, &slip);
    assert_eq!(codes(&found), ["R058"], "{found:?}");
    assert_eq!(found[0]["range"]["start"], json!({"line": 8, "character": 24}));
    // A file that is used is read as it is being written.
    client.change(&file, &json!([{ "text": RULES }]));
    client.open(&helpers, HELPERS);
    let renamed = HELPERS.replace("after", "behind");
    client.notify(
        "textDocument/didChange",
        &json!({ "textDocument": { "uri": helpers, "version": 2 }, "contentChanges": [{ "text": renamed }] }),
    );
    client.settled(&file, |found| codes(found).contains(&"R020"));
    client.notify("textDocument/didClose", &json!({ "textDocument": { "uri": helpers } }));
    client.settled(&file, <[Value]>::is_empty);
    // And from the disk, where it changes there.
    folder.file("helpers.dl", &format!("{HELPERS}oops(\n"));
    let found = client.settled(&file, |found| !found.is_empty());
    assert!(found[0]["message"].as_str().is_some_and(|told| told.contains("in `helpers.dl`")), "{found:?}");
    assert_eq!(found[0]["range"]["start"], json!({"line": 0, "character": 4}));
    assert_eq!(client.end(), Some(0));
}

/// Templates on events have all that templates of nodes have.
#[test]
fn an_editor_is_served_with_templates_on_events() {
    let folder = Folder::new();
    let text = fs::read_to_string("examples/rules/in_order.dl").expect("it is bundled");
    folder.file("in_order.dl", &text);
    folder.file("two.csv", "sender,receiver,time\na,b,1\na,b,2\nb,a,3\nb,a,4\n");
    folder.file("notes.txt", "no trace\n");
    let file = uri(&folder.path("in_order.dl"));
    let mut client = Client::ready();
    assert_eq!(client.open(&file, &text), [] as [Value; 0]);

    for (what, into, wanted) in [
        ("template sync_in_order", 10, "**sync_in_order**, order 1"),
        ("template sync_in_order", 10, "The reply to the request that waits longest."),
        ("template sync_in_order", 10, "match  A = task(U)\n       W = live(B)"),
        ("message(U", 2, "A message from occurrence U arrives at task B."),
        ("first(W", 2, "the first of them that is an occurrence of task T"),
        ("waiting(V", 2, "may still wait for the reply"),
        ("sync(W", 2, "W sent a request to U and waited for the reply"),
        ("arc(W", 1, "a message went from P to C"),
        ("W, V", 0, "W = live(B)"),
    ] {
        let told = client.ask("textDocument/hover", &file, &text, what, into);
        let told = told["contents"]["value"].as_str().unwrap_or_default();
        assert!(told.contains(wanted), "{what}: {told}");
    }
    let bound = client.ask("textDocument/definition", &file, &text, "waiting(V", 8);
    let at = text[..text.find("V = first").expect("it stands there")].matches('\n').count();
    assert_eq!(bound["range"]["start"], json!({ "line": at, "character": 4 }));

    for (what, into, label) in [
        ("message(U", 2, "answered"),
        ("first(W", 2, "parent"),
        ("waiting(V", 2, "arc"),
        ("sync(W", 2, "forward"),
        ("arc(W", 1, "live"),
        ("order 1", 2, "retire"),
        ("W, V", 0, "A"),
    ] {
        let list = client.ask("textDocument/completion", &file, &text, what, into);
        let labels: Vec<&str> =
            list.as_array().expect("a list").iter().filter_map(|one| one["label"].as_str()).collect();
        assert!(labels.contains(&label), "{what}: {label} is not among {labels:?}");
    }
    let lenses = client.request("textDocument/codeLens", &json!({ "textDocument": { "uri": file } }));
    let titles: Vec<&Value> =
        lenses["result"].as_array().expect("a list").iter().map(|lens| &lens["command"]["title"]).collect();
    assert_eq!(titles, ["2 matches in 1 trace", "2 matches in 1 trace"], "{lenses}");

    // A condition that cannot be read says nothing about the templates after it.
    let slip = text.replace("waiting(V)", "waitng(V)");
    let found = client.change(&file, &json!([{ "text": slip }]));
    assert_eq!(codes(&found), ["R020"], "{found:?}");
    assert_eq!(client.end(), Some(0));
}

/// Codes and lines are those of the command line, of templates, of questions and of slips.
#[test]
fn an_editor_shows_what_the_command_line_tells() {
    let mut client = Client::ready();
    for file in [
        "rules/paper/tlc-1998.dl",
        "examples/rules/acknowledged.dl",
        "examples/queries/slow.dl",
        "examples/rules/in_order.dl",
        "rules/same.dl",
        "rules/std/tree.dl",
        "tests/suite/rule_faults.dl",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(&path).expect("it is bundled");
        let shown = client.open(&uri(&path), &text);
        let told = run(&["rules", "check", path.to_str().expect("it is text"), "--format", "json"]);
        let told: Value = serde_json::from_str(&told.out).expect("it is JSON");
        let told = told["findings"].as_array().or_else(|| told["diagnostics"].as_array()).expect("a list").clone();
        let sorted = |findings: &[Value]| {
            let mut codes: Vec<String> = codes(findings).into_iter().map(str::to_owned).collect();
            codes.sort();
            codes
        };
        assert_eq!(sorted(&shown), sorted(&told), "{file}");
    }
    assert_eq!(client.end(), Some(0));
}

#[test]
fn nothing_that_a_client_sends_ends_the_server() {
    let mut client = Client::start();
    assert_eq!(client.request("textDocument/hover", &json!({}))["error"]["code"], -32002);
    client.notify("textDocument/didOpen", &json!({}));
    drop(client.request("initialize", &json!(null)));
    for (frame, code) in [
        (&b"Content-Length: x\r\n\r\n"[..], -32700),
        (b"No header\r\n\r\n", -32700),
        (b"Content-Length: 3\r\n\r\n{\"a", -32700),
        (b"Content-Length: 2\r\n\r\n[]", -32600),
        (b"Content-Length: 4\r\n\r\nnull", -32600),
        (b"Content-Length: 2\r\n\r\n\xff\xfe", -32700),
    ] {
        client.raw(frame);
        let answer = client.wait(|message| message["id"].is_null() && message["error"].is_object());
        assert_eq!(answer["error"]["code"], code, "{}: {answer}", String::from_utf8_lossy(frame));
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    client.raw(format!("Content-Length: {}\r\n\r\n{deep}", deep.len()).as_bytes());
    client.wait(|message| message["id"].is_null());
    assert_eq!(client.request("no/such", &json!({}))["error"]["code"], -32601);
    assert_eq!(client.request("textDocument/hover", &json!({ "textDocument": 5 }))["error"]["code"], -32602);
    assert_eq!(client.request("initialize", &json!({}))["error"]["code"], -32600);
    client.notify("textDocument/didChange", &json!({ "wrong": true }));
    client.wait(|message| message["method"] == "window/showMessage");

    // Texts that are no rule files, positions that are nowhere, changes upside down.
    let nested = "(".repeat(200_000);
    let long = format!("// {}\ntemplate t {{ match {{ e1 = Ac [j, k, m | a, v] }} }}", "𝕩".repeat(1 << 20));
    for (number, text) in
        ["", "\u{feff}", "\0\0", "\"", "//@", "use \"", nested.as_str(), long.as_str()].iter().enumerate()
    {
        let uri = format!("untitled:{number}");
        client.open(&uri, text);
        for (line, character) in [(0, 0), (0, 5), (4_294_967_295u32, 4_294_967_295u32), (1, 3)] {
            let at = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } });
            for method in ["hover", "definition", "completion"] {
                let answer = client.request(&format!("textDocument/{method}"), &at);
                assert!(answer.get("result").is_some(), "{answer}");
            }
        }
        let around = json!({ "start": { "line": 9, "character": 9 }, "end": { "line": 0, "character": 1 } });
        client.change(&uri, &json!([{ "range": around, "text": "é" }, { "range": around, "text": "" }]));
        let lenses = client.request("textDocument/codeLens", &json!({ "textDocument": { "uri": uri } }));
        assert_eq!(lenses["result"], json!([]));
        let options = json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 2, "insertSpaces": true } });
        assert!(client.request("textDocument/formatting", &options).get("result").is_some());
    }
    assert_eq!(client.end(), Some(0));

    // Without a goodbye it ends with its input, or with the code that the protocol has for it.
    let mut rude = Client::ready();
    rude.notify("exit", &Value::Null);
    assert_eq!(rude.child.wait().expect("it ends").code(), Some(1));
    let Client { mut child, mut input, .. } = Client::ready();
    input.write_all(b"Content-Length: 100\r\n\r\n{").expect("it listens");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
