//! Where a database is, and who asks it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The port of PostgreSQL.
const PORT: u16 = 5432;
/// The tables' schema, where none is named.
const SCHEMA: &str = "dyelog";

/// A database, from a URL: `postgresql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?schema=NAME&trust=FILE]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// The name of a machine, its number, or the folder of a socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Who asks.
    pub user: String,
    /// The password, where one is needed.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// The schema in which the tables lie.
    pub schema: String,
    /// A PEM file of the authorities that are trusted: the connection is encrypted then.
    pub trust: Option<PathBuf>,
}

impl Address {
    /// Of what stands behind `postgresql://`.
    ///
    /// # Errors
    /// What of it is no address.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let (place, database) =
            place.split_once('/').ok_or("the URL names no database: postgresql://USER@HOST/DATABASE")?;
        let (user, host) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = user.split_once(':').map_or((user, None), |(user, password)| (user, Some(password)));
        let (host, port) = split_port(host)?;
        let mut own = Self {
            host: decoded(host)?,
            port,
            user: decoded(user)?,
            password: password.map(decoded).transpose()?.or_else(|| std::env::var("PGPASSWORD").ok()),
            database: decoded(database)?,
            schema: SCHEMA.to_owned(),
            trust: None,
        };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name {
                "host" => own.host = decoded(value)?,
                "schema" => own.schema = decoded(value)?,
                "trust" => own.trust = Some(decoded(value)?.into()),
                _ => return Err(format!("`{name}` says nothing of a database: `host`, `schema` and `trust` do")),
            }
        }
        own.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= 63
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if self.user.is_empty() || self.database.is_empty() || self.host.is_empty() {
            return Err("the URL names no user, host or database: postgresql://USER@HOST/DATABASE".to_owned());
        }
        if !is_name(&self.schema) {
            return Err(format!("`{}` is no name of a schema: small letters, digits and `_`", self.schema));
        }
        if [&self.user, &self.database, &self.host].iter().any(|name| name.contains('\0')) {
            return Err("the URL has a name that is no text".to_owned());
        }
        if !self.is_near() && self.trust.is_none() {
            let why = "is another machine, and what is stored would cross the network in the clear";
            return Err(format!(
                "{} {why}\n  hint: `?trust=FILE` names the certificates of authorities that are trusted",
                self.host
            ));
        }
        Ok(self)
    }

    /// Whether the folder of a socket is meant.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Whether it is on this machine.
    fn is_near(&self) -> bool {
        self.is_socket() || self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// What files here are called that belong to it.
    pub fn file_name(&self) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' };
        self.database.chars().map(plain).chain(['-']).chain(self.schema.chars()).collect()
    }
}

fn split_port(host: &str) -> Result<(&str, u16), String> {
    // The number of a machine may have colons itself, in brackets then.
    let (name, rest) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((name, rest)) => (name, rest),
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    match rest.strip_prefix(':') {
        Some(port) => Ok((name, port.parse().map_err(|_| format!("`{port}` is no port"))?)),
        None if rest.is_empty() => Ok((name, PORT)),
        None => Err(format!("`{host}` is no host")),
    }
}

/// A part of a URL, in which `%` and two digits stand for a byte.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || format!("`{text}` is not encoded as a part of a URL is");
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (high, low) = digit(0).zip(digit(1)).ok_or_else(wrong)?;
        bytes.push((high * 16 + low) as u8);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgresql://{}@{}:{}/{}?schema={}", self.user, self.host, self.port, self.database, self.schema)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn urls_are_taken_apart() {
        let own = Address::parse("some%40one:se%3acret@[::1]:5433/data?schema=other_1").expect("it is an address");
        assert_eq!(
            (&*own.user, own.password.as_deref(), &*own.host, own.port),
            ("some@one", Some("se:cret"), "::1", 5433)
        );
        assert_eq!((&*own.database, &*own.schema), ("data", "other_1"));
        assert!(!format!("{own} {own:?}").contains("cret"));
        let socket = Address::parse("me@/data?host=/run/postgresql").expect("it is an address");
        assert!(socket.is_socket() && socket.port == 5432 && socket.file_name() == "data-dyelog");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (url, why) in [
            ("me@localhost", "names no database"),
            ("localhost/data", "no user"),
            ("me@localhost:x/data", "no port"),
            ("me@db.example/data", "in the clear"),
            ("me@localhost/data?schema=a;b", "no name of a schema"),
            ("me@localhost/data?sslmode=no", "says nothing"),
            ("m%e@localhost/data", "not encoded"),
        ] {
            let found = Address::parse(url).unwrap_err();
            assert!(found.contains(why), "{url}: {found}");
        }
        assert!(Address::parse("me@db.example/data?trust=ca.pem").is_ok());
    }
}
