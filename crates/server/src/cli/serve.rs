//! `dyelog-server`: listens until it is stopped.

use std::fs;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use dyelog::diagnostic::quantity::counted;
use dyelog::trace::spans::Deployment;
use dyelog_server::access::Access;
use dyelog_server::config::{Config, Scrape};
use dyelog_server::scrape;
use dyelog_server::serve;
use dyelog_server::service::{Service, journal_of};
use dyelog_server::store::Location;
use dyelog_server::tls::{self, Tls};
use dyelog_server::worker::{GRACE, WorkerError, Working};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Outcome, arenas};

/// Arguments of the server.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The file that keeps the sub-models, or a database: `postgresql://USER@HOST/DATABASE`, its password in PGPASSWORD
    #[arg(long, value_name = "FILE|URL", default_value = "dyelog.db")]
    store: Location,
    /// What the names of the journal and the lock begin with; that of the store's file, or of its database, unless given
    #[arg(long, value_name = "PATH")]
    files: Option<PathBuf>,
    /// Where to listen, for HTTP and gRPC alike; repeatable
    #[arg(long, value_name = "ADDR", default_values = ["127.0.0.1:4318", "127.0.0.1:4317"])]
    listen: Vec<Listen>,
    /// A file of tokens, a line each: `put TOKEN`, `read TOKEN` or `admin TOKEN`, of 16 characters or more; SIGHUP has it and the certificate read again; needed to listen elsewhere than on loopback
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// A PEM file of this server's certificate, with those that lead to an authority; needed to listen elsewhere than on loopback
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// A PEM file of the private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Listens elsewhere than on loopback without TLS, which a proxy in front of it does
    #[arg(long, conflicts_with = "tls_certificate")]
    tls_by_proxy: bool,
    /// A TOML file: from where metrics are fetched, what the system's nodes have, and the environment and the namespace that are taken
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Takes spans and metrics of one environment, such as `production`, and those that name none; others are set aside, and counted
    #[arg(long, value_name = "NAME")]
    environment: Option<Arc<str>>,
    /// Takes spans and metrics of services of one namespace, and those that name none; others are set aside, and counted
    #[arg(long, value_name = "NAME")]
    namespace: Option<Arc<str>>,
    /// Seconds without a new span after which a complete trace is folded: 6, or the limit where that is less. SDKs send every five unless told otherwise
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    grace: Option<f64>,
    /// Seconds without a new span after which a trace is folded that is not complete; one whose spans keep coming, after ten times as long
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    limit: f64,
    /// For how many days intervals are kept
    #[arg(long, value_name = "DAYS", default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    retention: u32,
    /// The probability with which traces are kept, where nothing in them tells it
    #[arg(long, value_name = "P", value_parser = probability)]
    sampling: Option<f64>,
}

/// An address as it is written, and what it is.
#[derive(Clone, Debug)]
struct Listen(Vec<SocketAddr>);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self(vec![address]));
        }
        let wrong = |why: &dyn std::fmt::Display| {
            format!(
                "{why}: write a number or a name of this machine and a port, such as 127.0.0.1:4318 or localhost:4318"
            )
        };
        let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|error| wrong(&error))?.collect();
        if found.is_empty() { Err(wrong(&"no address has this name")) } else { Ok(Self(found)) }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "this is no number".to_owned())?;
    if (0.0..=86_400.0).contains(&value) { Ok(value) } else { Err("0 to 86400 seconds".to_owned()) }
}

fn probability(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "this is no number".to_owned())?;
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err("above 0 and at most 1".to_owned()) }
}

impl Arguments {
    fn working(&self, config: &Config) -> Result<Working, String> {
        const SECOND: f64 = 1e9;
        let mut working = Working::default();
        working.gathering.limit = (self.limit * SECOND) as u64;
        working.gathering.grace = match self.grace {
            Some(grace) if grace > self.limit => {
                return Err(format!(
                    "`--grace {grace}` is longer than `--limit {}`, after which no trace is waited for\n  hint: `--limit {grace}` or more",
                    self.limit
                ));
            }
            Some(grace) => (grace * SECOND) as u64,
            None => GRACE.min(working.gathering.limit),
        };
        working.retention = u64::from(self.retention) * 24 * 3600 * 1_000_000_000;
        working.folding.sampling = self.sampling;
        working.deployment = Deployment {
            environment: self.environment.clone().or_else(|| config.deployment.environment.clone()),
            namespace: self.namespace.clone().or_else(|| config.deployment.namespace.clone()),
        };
        Ok(working)
    }

    /// All addresses: a name may have several, and two names the same.
    fn addresses(&self) -> Vec<SocketAddr> {
        let mut all: Vec<SocketAddr> = Vec::new();
        for address in self.listen.iter().flat_map(|own| &own.0) {
            // Of port 0 each listener gets another one.
            if address.port() == 0 || !all.contains(address) {
                all.push(*address);
            }
        }
        all
    }

    fn access(&self) -> Result<Access, String> {
        if let Some(address) = self.addresses().iter().find(|address| !address.ip().is_loopback()) {
            let refused = |why: &str, hint: &str| {
                Err(format!("{address} can be reached from other machines, {why}\n  hint: {hint}"))
            };
            if self.tokens.is_none() {
                return refused("where all could read and delete", "`--tokens FILE` says which tokens allow what");
            }
            if self.tls_certificate.is_none() && !self.tls_by_proxy {
                let hint = "`--tls-certificate FILE --tls-key FILE` encrypt; `--tls-by-proxy` says that a proxy in front of it does";
                return refused("and tokens would cross the network in the clear", hint);
            }
        }
        self.tokens.as_deref().map_or_else(|| Ok(Access::default()), Self::tokens_of)
    }

    /// The tokens of a file.
    fn tokens_of(path: &Path) -> Result<Access, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if is_open_to_others(path) {
            eprintln!("warning: other users of this machine can read the tokens: `chmod go= {}`", path.display());
        }
        Access::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn acceptor(&self) -> Result<Option<TlsAcceptor>, String> {
        let files = self.tls_certificate.as_ref().zip(self.tls_key.as_ref());
        files.map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()
    }
}

/// The tokens and the certificate, which SIGHUP has the server read again.
struct Renewable<'a> {
    arguments: &'a Arguments,
    access: Arc<Access>,
    tls: Option<Tls>,
}

impl Renewable<'_> {
    /// Reads tokens and certificate again. Where one of them cannot be used, all stay as they were, and it is said why.
    fn renew(&self) -> Result<(), String> {
        let access = self.arguments.tokens.as_deref().map(Arguments::tokens_of).transpose()?;
        let acceptor = self.arguments.acceptor()?;
        if let Some(access) = access {
            self.access.replace(access);
        }
        if let Some((tls, acceptor)) = self.tls.as_ref().zip(acceptor) {
            tls.replace(acceptor);
        }
        Ok(())
    }
}

/// Whether others than the user may read a file.
#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

/// Serves until it is interrupted or terminated.
pub fn run(arguments: &Arguments) -> Outcome {
    arenas::bound();
    let access = Arc::new(arguments.access()?);
    let tls = arguments.acceptor()?.map(Tls::new);
    let config = arguments.config.as_deref().map_or_else(|| Ok(Config::default()), Config::read)?;
    let store = &arguments.store;
    let files = arguments.files.clone().unwrap_or_else(|| store.beside());
    let service = Service::start_at(store, &files, arguments.working(&config)?)
        .map_err(|error| refused(store, &files, &error))?;
    if service.lost() > 0 {
        eprintln!(
            "warning: {} that were open are no longer in the journal, and count as set aside",
            counted(service.lost(), "span")
        );
    }
    service.configure(config.system);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // For two questions and two bodies: each thread keeps memory that no other one gets.
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(|error| format!("no threads can be started: {error}"))?;
    let renewable = Renewable { arguments, access, tls };
    let outcome = runtime.block_on(serve_all(&service, &renewable, &arguments.addresses(), config.scrapes));
    runtime.shutdown_background();
    service.stop();
    service.remove_if_asked().map_err(|error| format!("{store}: {error}"))?;
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Why the server does not start.
fn refused(store: &Location, files: &Path, error: &WorkerError) -> String {
    match error {
        WorkerError::Journal(why) if why.kind() == io::ErrorKind::InvalidData => {
            let journal = journal_of(files);
            format!(
                "{}: {why}\n  hint: put back the store and the journal as they were at one time; or move the journal away, and the server begins \
                 another one: what {store} has read stays, and what it has not read is lost",
                journal.display()
            )
        }
        _ => format!("{store}: {error}"),
    }
}

async fn serve_all(
    service: &Arc<Service>,
    renewable: &Renewable<'_>,
    addresses: &[SocketAddr],
    scrapes: Vec<Scrape>,
) -> Result<(), String> {
    let (stop, stopped) = watch::channel(false);
    let mut listeners = JoinSet::new();
    // Listeners share one memory for bodies.
    let Renewable { access, tls, .. } = renewable;
    let routes = serve::routes(service, access);
    // Before anybody knows that it listens: nothing told it to end before.
    let told = told_to_stop(renewable).map_err(|error| format!("signals cannot be awaited: {error}"))?;
    for address in addresses {
        let refused = |error| format!("{address}: {error}");
        let listener = TcpListener::bind(*address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        println!("listening on {scheme}://{address}");
        listeners.spawn(serve::serve(listener, tls.clone(), routes.clone(), stopped.clone()));
    }
    let mut fetching = JoinSet::new();
    for own in scrapes {
        fetching.spawn(scrape::follow(own, Arc::clone(service), |words| eprintln!("{words}")));
    }
    tokio::select! {
        told = told => told.map_err(|error| format!("signals cannot be awaited: {error}"))?,
        () = service.until_asked_to_stop() => {}
    }
    fetching.abort_all();
    let _ = stop.send(true);
    while listeners.join_next().await.is_some() {}
    Ok(())
}

/// Waits for a signal to stop. Until then, each hangup has files read again, which would end the program otherwise.
#[cfg(unix)]
fn told_to_stop(renewable: &Renewable<'_>) -> io::Result<impl Future<Output = io::Result<()>>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    Ok(async move {
        let renewals = async {
            while hangup.recv().await.is_some() {
                match renewable.renew() {
                    Ok(()) => eprintln!("tokens and certificate were read again"),
                    Err(why) => eprintln!("warning: tokens and certificate stay as they were: {why}"),
                }
            }
        };
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
            () = renewals => Ok(()),
        }
    })
}

#[cfg(not(unix))]
fn told_to_stop(_: &Renewable<'_>) -> io::Result<impl Future<Output = io::Result<()>>> {
    Ok(tokio::signal::ctrl_c())
}
