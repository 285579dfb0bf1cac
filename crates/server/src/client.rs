//! Asks over HTTP: programs for their metrics, and servers for what their stores hold.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::http::{Method, Request, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Error};

/// A place to ask.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    url: String,
    token: Option<String>,
    largest: u64,
}

/// How a client asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking<'a> {
    /// The token that allows it, if one is needed.
    pub token: Option<&'a str>,
    /// A PEM file of certificates that are trusted in place of the usual authorities.
    pub trust: Option<&'a Path>,
    /// How long an answer may take.
    pub patience: Option<Duration>,
    /// How many bytes an answer may have.
    pub largest: u64,
}

impl Client {
    /// Of a URL that begins with `http://` or `https://`.
    ///
    /// # Errors
    /// Why the URL or the certificates cannot be used, or why the token must not be sent there.
    pub fn new(url: &str, asking: Asking<'_>) -> Result<Self, String> {
        let (uri, is_loopback) = place(url)?;
        if asking.token.is_some() && uri.scheme_str() != Some("https") && !is_loopback {
            return Err(format!("`{url}` would get the token unencrypted: use https://"));
        }
        let mut tls = TlsConfig::builder();
        if let Some(path) = asking.trust {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(trusted(path)?)));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // What the environment says of proxies is for programs that browse.
            .proxy(None)
            .timeout_global(asking.patience)
            .tls_config(tls.build())
            .build();
        let (agent, token) = (config.new_agent(), asking.token.map(str::to_owned));
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), token, largest: asking.largest })
    }

    /// What is at the URL itself.
    ///
    /// # Errors
    /// Why there is no answer, or no good one.
    pub fn fetch(&self) -> Result<String, String> {
        self.ask(&Method::GET, "", &[], "")
    }

    /// What a path below the URL answers to a question, as text.
    ///
    /// # Errors
    /// Why there is no answer, or no good one.
    pub fn ask(&self, method: &Method, path: &str, query: &[(&str, &str)], body: &str) -> Result<String, String> {
        let (_, answer) = self.answer(method, path, query, body, None)?;
        String::from_utf8(answer).map_err(|_| "the answer is no text".to_owned())
    }

    /// What is at a path below the URL.
    ///
    /// # Errors
    /// Why there is no answer, or no good one.
    pub fn bytes(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        self.answer(&Method::GET, path, query, "", None).map(|(_, answer)| answer)
    }

    /// The same in one of several types, the best first; with its type.
    ///
    /// # Errors
    /// Why there is no answer, or no good one.
    pub fn typed(&self, path: &str, query: &[(&str, &str)], types: &str) -> Result<(String, Vec<u8>), String> {
        self.answer(&Method::GET, path, query, "", Some(types))
    }

    fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &[(&str, &str)],
        body: &str,
        types: Option<&str>,
    ) -> Result<(String, Vec<u8>), String> {
        let mut url = format!("{}{path}", self.url);
        for (number, (name, value)) in query.iter().enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            url.push_str(&format!("{name}={}", escaped(value)));
        }
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(types) = types {
            request = request.header("accept", types);
        }
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        let answer = if body.is_empty() {
            self.agent.run(request.body(()).map_err(|error| error.to_string())?)
        } else {
            self.agent.run(request.body(body).map_err(|error| error.to_string())?)
        };
        let mut answer = answer.map_err(|error| words(&error))?;
        let status = answer.status();
        let of_type =
            answer.headers().get("content-type").and_then(|own| own.to_str().ok()).unwrap_or_default().to_owned();
        let bytes = answer.body_mut().with_config().limit(self.largest).read_to_vec();
        let bytes = bytes.map_err(|error| match error {
            Error::BodyExceedsLimit(most) => format!("the answer is larger than {} MiB", most >> 20),
            other => words(&other),
        });
        if status.is_success() {
            return bytes.map(|bytes| (of_type, bytes));
        }
        let said = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        let why = serde_json::from_str::<Value>(&said).ok().and_then(|said| Some(said["error"].as_str()?.to_owned()));
        match (why, said.lines().next()) {
            (Some(why), _) => Err(why),
            (None, Some(line)) if !line.starts_with('<') => Err(format!("it answers `{status}`: {line}")),
            _ => Err(format!("it answers `{status}`")),
        }
    }
}

fn words(error: &Error) -> String {
    match error {
        Error::Timeout(_) => "it does not answer in time".to_owned(),
        Error::Io(error) => told(error.to_string()),
        other => told(other.to_string()),
    }
}

/// What rustls calls a certificate that stands for an authority. Its own type for it is not that of a dependency here.
const OF_AUTHORITY: &str = "CaUsedAsEndEntity";

/// What rustls says where something answers that is no TLS.
const NO_TLS: &str = "InvalidContentType";

/// With what to do about a certificate as `openssl req -x509` makes it, unless told otherwise.
fn told(words: String) -> String {
    if words.contains(NO_TLS) {
        return "the server does not encrypt\n  hint: where it listens on http://, ask it so".to_owned();
    }
    if !words.contains(OF_AUTHORITY) {
        return words;
    }
    "the server's certificate is one of an authority, and not one of a server
  hint: `openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 365 -subj /CN=HOST \
     -addext subjectAltName=DNS:HOST -addext basicConstraints=critical,CA:FALSE` makes one of a server"
        .to_owned()
}

/// A URL in its parts, and whether its host is this machine.
///
/// # Errors
/// Why it cannot be used.
pub fn place(url: &str) -> Result<(Uri, bool), String> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(format!("`{url}` does not begin with http:// or https://"));
    }
    let no_host = || format!("`{url}` names no host");
    let uri: Uri = url.parse().map_err(|_| no_host())?;
    let authority = uri.authority().ok_or_else(no_host)?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || authority.as_str().contains('@') {
        return Err(no_host());
    }
    let is_loopback =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    Ok((uri, is_loopback))
}

fn trusted(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let name = path.display();
    let text = fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let items: Result<Vec<_>, _> = parse_pem(&text).collect();
    let items = items.map_err(|error| format!("{name}: {error}"))?;
    let certificates = items.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() { Err(format!("{name}: it has no certificate")) } else { Ok(certificates) }
}

/// A value as queries have it (RFC 3986, §2.1).
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Asking, Client, escaped, place};

    #[test]
    fn urls_name_a_host() {
        assert!(place("http://localhost:4318").is_ok_and(|(_, is_loopback)| is_loopback));
        assert!(place("https://[::1]:4318/x").is_ok_and(|(_, is_loopback)| is_loopback));
        assert!(place("https://shop.example/").is_ok_and(|(_, is_loopback)| !is_loopback));
        for wrong in ["ftp://x", "http://", "http://user@host", "https://a b", "shop.db"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_not_sent_in_the_clear() {
        let asking = Asking { token: Some("0123456789abcdef"), ..Asking::default() };
        assert!(Client::new("http://127.0.0.1:1", asking).is_ok());
        assert!(Client::new("http://shop.example", asking).is_err_and(|why| why.contains("unencrypted")));
    }

    #[test]
    fn values_of_queries_are_escaped() {
        assert_eq!(escaped("-15m 2026-02-15T21:16:00+01:00"), "-15m%202026-02-15T21%3A16%3A00%2B01%3A00");
    }
}
