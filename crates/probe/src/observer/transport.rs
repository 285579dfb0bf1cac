//! How reports leave the process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

/// How long the server may take to connect, to take a report and to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// As much of an answer is read.
const LONGEST_ANSWER: usize = 8 << 10;

/// Takes reports out of the process. It is called by the observer's thread alone, one report at a time.
pub trait Transport: Send {
    /// Takes a report, a line of JSON. What comes back as [`TransportError::Unavailable`] is tried again later.
    ///
    /// # Errors
    /// When the report was not taken.
    fn put(&mut self, report: &str) -> Result<(), TransportError>;
}

/// Why a report was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// It never will be.
    Refused(String),
    /// It may be taken later.
    Unavailable {
        /// Why.
        why: String,
        /// When, where that was said.
        after: Option<Duration>,
    },
}

impl TransportError {
    fn unavailable(error: &io::Error) -> Self {
        Self::Unavailable { why: error.to_string(), after: None }
    }
}

/// Appends reports to a file, a line each.
#[derive(Debug)]
pub struct JsonLines {
    file: File,
}

impl JsonLines {
    /// A file, which is made where there is none.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)? })
    }
}

impl Transport for JsonLines {
    fn put(&mut self, report: &str) -> Result<(), TransportError> {
        let line = format!("{report}\n");
        self.file.write_all(line.as_bytes()).map_err(|error| TransportError::unavailable(&error))
    }
}

/// Posts reports to a server over HTTP/1.1, a connection each: they are few.
#[derive(Clone, Debug)]
pub struct HttpPost {
    address: String,
    path: String,
    token: Option<String>,
}

impl HttpPost {
    /// To a server at that address, such as `127.0.0.1:4318`, and that path, such as `/services/put`.
    pub fn new(address: impl Into<String>, path: impl Into<String>) -> Self {
        Self { address: address.into(), path: path.into(), token: None }
    }

    /// With a token that permits to put.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    fn post(&self, report: &str) -> io::Result<Vec<u8>> {
        let mut connection = self.connect()?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let authorization = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
            self.path,
            self.address,
            report.len(),
            authorization.unwrap_or_default(),
        );
        connection.write_all(head.as_bytes())?;
        connection.write_all(report.as_bytes())?;
        let mut answer = Vec::new();
        let mut buffer = [0; 1024];
        while answer.len() < LONGEST_ANSWER && !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            match connection.read(&mut buffer)? {
                0 => break,
                count => answer.extend_from_slice(&buffer[..count]),
            }
        }
        Ok(answer)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the address names no server");
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Transport for HttpPost {
    fn put(&mut self, report: &str) -> Result<(), TransportError> {
        let answer = self.post(report).map_err(|error| TransportError::unavailable(&error))?;
        judged(&String::from_utf8_lossy(&answer))
    }
}

/// What an answer means for a report.
fn judged(answer: &str) -> Result<(), TransportError> {
    let mut lines = answer.lines();
    let status = lines.next().unwrap_or_default();
    let code =
        status.strip_prefix("HTTP/1.").and_then(|rest| rest.split_ascii_whitespace().nth(1)?.parse::<u16>().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("retry-after").then(|| value.trim().parse().ok().map(Duration::from_secs))?
    };
    let after = lines.take_while(|line| !line.is_empty()).find_map(header);
    match code {
        Some(200..=299) => Ok(()),
        Some(408 | 425 | 429 | 500..=599) => Err(TransportError::Unavailable { why: status.to_owned(), after }),
        Some(_) => Err(TransportError::Refused(status.to_owned())),
        None => Err(TransportError::Unavailable { why: "the answer is no HTTP".to_owned(), after: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::{TransportError, judged};
    use std::time::Duration;

    #[test]
    fn answers_are_taken_for_what_they_say() {
        assert_eq!(judged("HTTP/1.1 202 Accepted\r\n\r\n"), Ok(()));
        assert!(matches!(judged("HTTP/1.1 413 Too Large\r\n\r\n"), Err(TransportError::Refused(_))));
        let busy = judged("HTTP/1.1 503 Busy\r\nretry-AFTER: 7\r\n\r\nRetry-After: 9\r\n");
        let Err(TransportError::Unavailable { after, .. }) = busy else { panic!("{busy:?}") };
        assert_eq!(after, Some(Duration::from_secs(7)));
        assert!(matches!(judged("SSH-2.0"), Err(TransportError::Unavailable { after: None, .. })));
    }
}
