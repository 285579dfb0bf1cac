//! How a connection to PostgreSQL begins: over TLS or not, and with which proof of a password.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::address::Address;
use super::wire::{Fault, Stream, Wire, garbled, number_of, put_text, reason, text_of};

/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(5);
/// How long an answer may take. Statements end before, by the server's own clock.
const SILENCE: Duration = Duration::from_secs(75);
/// Rounds of a password's digest beyond which a server means harm.
const MOST_ROUNDS: u32 = 10_000_000;

/// A connection that may ask.
pub fn connect(address: &Address) -> Result<Wire, Fault> {
    let mut wire = Wire::over(reach(address)?);
    let program = format!("dyelog {}", address.schema);
    wire.put_headless(|out| {
        out.extend([0, 3, 0, 0]);
        for (name, value) in [
            ("user", &*address.user),
            ("database", &*address.database),
            ("application_name", &*program),
            ("client_encoding", "UTF8"),
        ] {
            put_text(out, name);
            put_text(out, value);
        }
        out.push(0);
    });
    wire.send()?;
    prove(&mut wire, address)?;
    loop {
        let (kind, body) = wire.next()?;
        if kind == b'E' {
            return Err(Fault::Refused(reason(body)));
        }
        if kind == b'Z' {
            return Ok(wire);
        }
    }
}

fn unreachable(address: &Address, why: &dyn std::fmt::Display) -> Fault {
    Fault::Broken(format!("{}:{} cannot be reached: {why}", address.host, address.port))
}

fn reach(address: &Address) -> Result<Box<dyn Stream>, Fault> {
    #[cfg(unix)]
    if address.is_socket() {
        let path = std::path::Path::new(&address.host).join(format!(".s.PGSQL.{}", address.port));
        let stream = std::os::unix::net::UnixStream::connect(path).map_err(|error| unreachable(address, &error))?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        return Ok(Box::new(stream));
    }
    let found = (&*address.host, address.port).to_socket_addrs().map_err(|error| unreachable(address, &error))?;
    let mut why = "it has no address".to_owned();
    for own in found {
        match TcpStream::connect_timeout(&own, CONNECTING) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE))?;
                stream.set_write_timeout(Some(SILENCE))?;
                return encrypted(stream, address);
            }
            Err(error) => why = error.to_string(),
        }
    }
    Err(unreachable(address, &why))
}

/// The same over TLS, where authorities are named.
fn encrypted(mut stream: TcpStream, address: &Address) -> Result<Box<dyn Stream>, Fault> {
    let Some(trust) = &address.trust else { return Ok(Box::new(stream)) };
    // A question of its own: it is answered before anything else is said.
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47])?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer != *b"S" {
        return Err(Fault::Refused("the server does not speak TLS".to_owned()));
    }
    let failed = |error: &dyn std::fmt::Display| Fault::Refused(format!("no TLS with {}: {error}", address.host));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(trust).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for own in certificates.map_err(|error| Fault::Refused(format!("{}: {error}", trust.display())))? {
        roots.add(own).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(Fault::Refused(format!("{} has no certificate", trust.display())));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))?;
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

/// Answers what the server asks for.
fn prove(wire: &mut Wire, address: &Address) -> Result<(), Fault> {
    let password = || {
        let none = || Fault::Refused("the server asks for a password: PGPASSWORD holds it".to_owned());
        address.password.as_deref().ok_or_else(none)
    };
    loop {
        let (kind, body) = wire.next()?;
        if kind == b'E' {
            return Err(Fault::Refused(reason(body)));
        }
        if kind != b'R' {
            return Err(garbled());
        }
        let (method, rest) = number_of(body)?;
        match method {
            0 => return Ok(()),
            // In the clear: over a socket of this machine or TLS, since nothing else is spoken.
            3 => {
                let own = password()?;
                wire.put(b'p', |out| put_text(out, own));
                wire.send()?;
            }
            10 => {
                let mut offered = rest;
                let mut is_offered = false;
                while let Ok((name, others)) = text_of(offered)
                    && !name.is_empty()
                {
                    is_offered |= name == "SCRAM-SHA-256";
                    offered = others;
                }
                if !is_offered {
                    return Err(Fault::Refused("the server does not take SCRAM-SHA-256".to_owned()));
                }
                scram(wire, password()?)?;
            }
            _ => {
                return Err(Fault::Refused(
                    "the server asks for a proof that is not known here: `scram-sha-256` in its pg_hba.conf is"
                        .to_owned(),
                ));
            }
        }
    }
}

/// Proves a password, and has the server prove that it knows it, too (RFC 5802).
fn scram(wire: &mut Wire, password: &str) -> Result<(), Fault> {
    let mut random = [0; 18];
    SystemRandom::new().fill(&mut random).map_err(|_| Fault::Refused("there are no random numbers".to_owned()))?;
    let nonce = BASE64.encode(random);
    let first = format!("n=,r={nonce}");
    wire.put(b'p', |out| {
        put_text(out, "SCRAM-SHA-256");
        let message = format!("n,,{first}");
        out.extend((message.len() as u32).to_be_bytes());
        out.extend(message.bytes());
    });
    wire.send()?;
    let challenge = challenged(wire, 11)?;
    let proof = proof_of(password, &nonce, &first, &challenge)?;
    wire.put(b'p', |out| out.extend(proof.message.bytes()));
    wire.send()?;
    let answer = challenged(wire, 12)?;
    let signature = answer.strip_prefix("v=").and_then(|text| BASE64.decode(text).ok()).ok_or_else(garbled)?;
    let wrong = |_| Fault::Refused("the server does not know the password".to_owned());
    hmac::verify(&proof.server_key, proof.signed.as_bytes(), &signature).map_err(wrong)
}

/// What the server says in a step of it.
fn challenged(wire: &mut Wire, step: i32) -> Result<String, Fault> {
    match wire.next()? {
        (b'E', body) => Err(Fault::Refused(reason(body))),
        (b'R', body) => match number_of(body)? {
            (own, rest) if own == step => String::from_utf8(rest.to_vec()).map_err(|_| garbled()),
            _ => Err(garbled()),
        },
        _ => Err(garbled()),
    }
}

/// A proof, and what the server's is to be held against.
#[derive(Debug)]
struct Proof {
    message: String,
    signed: String,
    server_key: hmac::Key,
}

fn proof_of(password: &str, nonce: &str, first: &str, challenge: &str) -> Result<Proof, Fault> {
    let part = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name)).ok_or_else(garbled);
    let (both, salt, rounds) = (part("r=")?, part("s=")?, part("i=")?);
    let salt = BASE64.decode(salt).map_err(|_| garbled())?;
    let rounds: u32 = rounds.parse().map_err(|_| garbled())?;
    let rounds = NonZeroU32::new(rounds).filter(|rounds| rounds.get() <= MOST_ROUNDS).ok_or_else(garbled)?;
    if !both.starts_with(nonce) {
        return Err(garbled());
    }
    let mut salted = [0; digest::SHA256_OUTPUT_LEN];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut salted);
    let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
    let own = hmac::sign(&key(&salted), b"Client Key");
    let stored = digest::digest(&digest::SHA256, own.as_ref());
    // `biws` stands for `n,,`: the connection is bound to nothing.
    let last = format!("c=biws,r={both}");
    let signed = format!("{first},{challenge},{last}");
    let signature = hmac::sign(&key(stored.as_ref()), signed.as_bytes());
    let proof: Vec<u8> = own.as_ref().iter().zip(signature.as_ref()).map(|(left, right)| left ^ right).collect();
    let message = format!("{last},p={}", BASE64.encode(proof));
    let server_key = key(hmac::sign(&key(&salted), b"Server Key").as_ref());
    Ok(Proof { message, signed, server_key })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::{BASE64, hmac, proof_of};

    /// The exchange that RFC 7677 prints, but for the name of the user, which is not said here.
    #[test]
    fn a_password_is_proved_as_the_specification_does() {
        let first = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let proof = proof_of("pencil", "rOprNGfwEbeRWgbNEkqO", first, challenge).expect("it is an example of RFC 7677");
        assert!(proof.message.ends_with("p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{}", proof.message);
        let signature =
            BASE64.decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").expect("it is an example of RFC 7677");
        assert!(hmac::verify(&proof.server_key, proof.signed.as_bytes(), &signature).is_ok());
        for wrong in
            ["r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", ""]
        {
            assert!(proof_of("pencil", "rOprNGfwEbeRWgbNEkqO", first, wrong).is_err());
        }
    }
}
