//! A proxy before a database that cuts connections while a transaction ends.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What happens to a transaction that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing.
    None,
    /// The connection breaks before the database is told.
    Before,
    /// The database ends it, and the connection breaks before it says so.
    After,
}

/// A proxy that runs until the test ends.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    /// How many connections it cut.
    pub cut: Arc<AtomicU64>,
}

impl Proxy {
    /// Before a database at a port; `of` says what happens to which transaction.
    pub fn before(port: u16, of: impl Fn(u64) -> Cut + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = Self { port: listener.local_addr().expect("it is bound").port(), cut: Arc::default() };
        let (of, ended, cut) = (Arc::new(of), Arc::new(AtomicU64::new(0)), Arc::clone(&own.cut));
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let server = TcpStream::connect(("127.0.0.1", port)).expect("the database is there");
                let (of, ended, cut) = (Arc::clone(&of), Arc::clone(&ended), Arc::clone(&cut));
                let is_silent = Arc::new(AtomicBool::new(false));
                let back = (server.try_clone().expect("a stream"), client.try_clone().expect("a stream"));
                let silent = Arc::clone(&is_silent);
                thread::spawn(move || answers(back, &silent));
                thread::spawn(move || questions((client, server), &*of, &ended, &cut, &is_silent));
            }
        });
        own
    }
}

fn questions(
    (mut client, mut server): (TcpStream, TcpStream),
    of: &dyn Fn(u64) -> Cut,
    ended: &AtomicU64,
    cut: &AtomicU64,
    is_silent: &AtomicBool,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read) = client.read(&mut bytes) {
        let said = &bytes[..read];
        let ends = said.windows(7).any(|word| word == b"COMMIT\0");
        let what = if ends { of(ended.fetch_add(1, Ordering::Relaxed)) } else { Cut::None };
        if what == Cut::After {
            is_silent.store(true, Ordering::Release);
        }
        if read == 0 || what == Cut::Before || server.write_all(said).is_err() {
            cut.fetch_add(u64::from(what == Cut::Before), Ordering::Relaxed);
            break;
        }
        if what == Cut::After {
            // Long enough for the database to end it.
            thread::sleep(Duration::from_millis(200));
            cut.fetch_add(1, Ordering::Relaxed);
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn answers((mut server, mut client): (TcpStream, TcpStream), is_silent: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read) = server.read(&mut bytes) {
        if read == 0 || !is_silent.load(Ordering::Acquire) && client.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}
