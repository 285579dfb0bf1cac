//! The server as a program of its own, and a client that speaks HTTP/1.1 to it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// A server that runs.
pub struct Program {
    child: Child,
    pub address: SocketAddr,
}

impl Program {
    /// Starts it on a port of its own.
    pub fn start(store: &Path, arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", store, arguments)
    }

    /// Starts it at an address.
    pub fn start_at(address: &str, store: &Path, arguments: &[&str]) -> Self {
        Self::started(Command::new(env!("CARGO_BIN_EXE_dyelog-server")), address, store, arguments)
    }

    /// Starts it; gives what it tells on standard error as well.
    pub fn start_told(store: &Path, arguments: &[&str]) -> (Self, ChildStderr) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        command.stderr(Stdio::piped());
        let mut own = Self::started(command, "127.0.0.1:0", store, arguments);
        let told = own.child.stderr.take().expect("it is piped");
        (own, told)
    }

    /// Starts it under another program, which ends as it does.
    pub fn start_under(wrapper: &[&str], store: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(env!("CARGO_BIN_EXE_dyelog-server"));
        Self::started(command, "127.0.0.1:0", store, arguments)
    }

    fn started(mut command: Command, address: &str, store: &Path, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["--listen", address, "--store"])
            .arg(store)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says its port");
        let address = line.trim().rsplit_once("://").expect("a port").1.parse().expect("an address");
        Self { child, address }
    }

    /// The number of its process.
    #[cfg(target_os = "linux")]
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it took, bytes.
    #[cfg(target_os = "linux")]
    pub fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) {
        assert!(self.child.wait().expect("it ends").success());
    }

    /// Kills it at once.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends it a signal.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name]).arg(self.child.id().to_string()).status();
        assert!(sent.expect("a signal is sent").success());
    }

    /// Asks it to stop, and waits until it did.
    #[cfg(unix)]
    pub fn stop(mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().expect("a signal is sent");
        assert!(asked.success());
        assert!(self.child.wait().expect("it ends").success());
    }

    /// Sends a request; gives the status and the body of the answer.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        Self::ask_of(self.address, method, path, headers, body)
    }

    fn ask_of(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        head.push_str(&format!("content-length: {}\r\n", body.len()));
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        // A server that refuses a body need not read it.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).or_else(|error| if answer.is_empty() { Err(error) } else { Ok(0) })?;
        let cut = || io::Error::other("no whole answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(cut)?;
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
        Ok(Answer { status, head, body: answer[end + 4..].to_vec() })
    }

    /// Sends traces in binary form.
    pub fn put(&self, body: &[u8]) -> io::Result<Answer> {
        Self::put_to(self.address, body)
    }

    /// The same, to an address.
    pub fn put_to(address: SocketAddr, body: &[u8]) -> io::Result<Answer> {
        Self::ask_of(address, "POST", "/v1/traces", &[("content-type", "application/x-protobuf")], body)
    }

    /// A figure of its own metrics.
    pub fn figure(&self, name: &str) -> u64 {
        let text = self.ask("GET", "/metrics", &[], b"").expect("it answers").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse().expect("a number")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the server said.
pub struct Answer {
    pub status: u16,
    /// The rest of the head, in small letters.
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
