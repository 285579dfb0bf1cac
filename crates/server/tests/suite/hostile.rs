//! What somebody tries who means harm, over plain sockets. The book lists what happens (`server.md`).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::Program;

const PUT: &str = "put-0123456789abcdef";
const ADMIN: &str = "admin-0123456789abcd";

struct Server {
    program: Program,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = folder.path().join("tokens");
        fs::write(&tokens, format!("put {PUT}\nadmin {ADMIN}\n")).expect("it is written");
        let arguments = ["--tokens", &tokens.display().to_string()];
        let program = Program::start(&folder.path().join("store.db"), &arguments);
        Self { program, _folder: folder }
    }

    /// Sends bytes as they are; gives the statuses of all answers.
    fn statuses(&self, bytes: &[u8]) -> Vec<u16> {
        let mut stream = TcpStream::connect(self.program.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(2))).expect("it is a socket");
        // It may close while this still writes.
        let _ = stream.write_all(bytes);
        let (mut answer, mut some) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = stream.read(&mut some) {
            answer.extend(&some[..read]);
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        text.split("HTTP/1.1 ").skip(1).filter_map(|one| one.get(..3)?.parse().ok()).collect()
    }

    /// Asks for everything to be deleted, in one way or another.
    fn init(&self, path: &str, headers: &str) -> Vec<u16> {
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n{headers}\r\n");
        self.statuses(head.as_bytes())
    }
}

#[test]
fn another_spelling_of_a_path_does_not_lead_around_tokens() {
    let server = Server::start();
    let put = format!("authorization: Bearer {PUT}\r\n");
    assert_eq!(server.init("/services/init", &put), [401]);
    for path in [
        "/v1/../services/init",
        "//services/init",
        "/services/%69nit",
        "/services/init/",
        "/services/init%00",
        "/v1/traces/../../services/init",
        "/SERVICES/INIT",
        "/../../etc/passwd",
    ] {
        assert_eq!(server.init(path, &put), [404], "{path}");
    }
    for path in ["/services/init?x=1", "http://evil/services/init", "/dyelog.server.v1.PerformanceData/Init"] {
        assert_eq!(server.init(path, &put), [401], "{path}");
    }
    let override_method = format!("{put}x-http-method-override: DELETE\r\n");
    assert_eq!(server.init("/v1/intervals", &override_method), [401]);
}

#[test]
fn of_two_tokens_none_counts() {
    let server = Server::start();
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    assert_eq!(server.init("/services/init", &bearer(ADMIN)), [200]);
    for (first, second) in [(PUT, ADMIN), (ADMIN, PUT), (ADMIN, ADMIN)] {
        assert_eq!(server.init("/services/init", &(bearer(first) + &bearer(second))), [401]);
    }
}

#[test]
fn a_request_in_the_body_of_another_is_not_answered() {
    let server = Server::start();
    let inner = format!(
        "POST /services/init HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN}\r\ncontent-length: 0\r\n\r\n"
    );
    let smuggled = |framing: &str, before: &str| {
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {PUT}\r\ncontent-type: application/x-protobuf\r\n{framing}\r\n{before}{inner}"
        );
        server.statuses(head.as_bytes())
    };
    let length = inner.len();
    // Both lengths: chunks count, and the connection ends with the answer.
    let both = format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", 5 + length);
    assert_eq!(smuggled(&both, "0\r\n\r\n"), [200]);
    assert_eq!(smuggled("transfer-encoding: chunked\r\ncontent-length: 4\r\n", "0\r\n\r\n"), [200]);
    for framing in [
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding : chunked\r\ncontent-length: 0\r\n",
        "content-length: +0\r\n",
        "content-length: -1\r\n",
        "content-length: 99999999999999999999\r\n",
        "x: y\r\n z\r\ncontent-length: 0\r\n",
        &format!("content-length: 0\r\ncontent-length: {length}\r\n"),
        &format!("content-length: 0, {length}\r\n"),
    ] {
        assert_eq!(smuggled(framing, ""), [400], "{framing}");
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_sent() {
    let server = Server::start();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {PUT}\r\ncontent-type: application/x-protobuf\r\ncontent-length: 31457280\r\nexpect: 100-continue\r\n\r\n"
    );
    assert_eq!(server.statuses(head.as_bytes()), [413]);
}

#[cfg(unix)]
#[test]
fn other_users_of_the_machine_read_nothing_that_is_kept() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(&folder.path().join("store.db"), &[]);
    for name in ["store.db", "store.db.journal", "store.db-wal"] {
        let mode = fs::metadata(folder.path().join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    drop(program);
}
