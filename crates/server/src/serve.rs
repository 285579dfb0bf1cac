//! Listeners, and all routes behind them.

use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::access::{Access, Act};
use crate::peers::Peer;
use crate::receive::body::Budget;
use crate::receive::{self, Receivers};
use crate::requests::{Brings, TURNED_AWAY};
use crate::service::Service;
use crate::services::Desk;
use crate::tls::Tls;
use crate::{services, sites, unread, web};

/// How many connections are open at a time.
const CONNECTIONS: usize = 1024;
/// What a connection reads ahead, bytes: more would add up over very many of them, beside the budget for bodies.
const BUFFER: usize = 32 << 10;
/// How long the head of a connection's first request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection is kept without a request: senders of metrics come once a minute, and lose what they send on a connection that is just being closed.
const IDLE: Duration = Duration::from_secs(75);
/// How long a stop waits for requests in work.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Room for what a connection is read into at first, bytes.
const FIRST_READ: usize = 1 << 10;

/// What HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until it is plain which HTTP a client speaks, and the whole head of a first request of HTTP/1 unless it is very long; gives what was read. `None` where the client does not say so
/// much in time.
async fn begin(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let said = async {
        let mut head = Vec::with_capacity(FIRST_READ);
        loop {
            let before = head.len();
            stream.read_buf(&mut head).await.ok().filter(|read| *read > 0)?;
            if head.len() < PREFACE.len() && PREFACE.starts_with(&head) {
                continue;
            }
            // Lines end with CR LF, or with LF alone.
            let new = &head[before.saturating_sub(2)..];
            let has_end = new.windows(3).any(|own| own == b"\n\r\n") || new.windows(2).any(|own| own == b"\n\n");
            let is_whole = head.starts_with(PREFACE) || has_end;
            // What is no HTTP, such as the first words of TLS, is answered at once.
            let is_http = head[0].is_ascii_alphabetic() || matches!(head[0], b'\r' | b'\n');
            if is_whole || !is_http || head.len() >= BUFFER {
                return Some(head);
            }
        }
    };
    tokio::time::timeout(HEAD, said).await.ok().flatten()
}

/// All routes.
pub fn routes(service: &Arc<Service>, access: &Arc<Access>) -> Router {
    let guarded = |router: Router, act: Act| {
        let access = Arc::clone(access);
        router.layer(from_fn(move |request: Request, next: Next| {
            let access = Arc::clone(&access);
            async move { guard(&access, act, request, next).await }
        }))
    };
    let desk = Desk { service: Arc::clone(service), budget: Budget::default() };
    let receivers = Receivers::new(Arc::clone(service), desk.budget.clone()).routes();
    let put = guarded(receivers.merge(services::storage(desk.clone())), Act::Put);
    let reading = web::reading(Arc::clone(service));
    let read = guarded(reading.merge(services::reporting(desk.clone())), Act::Read);
    let administration = web::administration(desk.clone());
    let admin = guarded(administration.merge(services::management(desk)), Act::Admin);
    let is_closed = access.is_closed();
    let all = put.merge(read).merge(admin).merge(web::open(Arc::clone(service)));
    let counting = Arc::clone(service);
    let all = all.layer(from_fn(move |request: Request, next: Next| {
        let service = Arc::clone(&counting);
        async move {
            let (begun, brings) = (Instant::now(), brings(request.uri().path()));
            let response = match sites::refused(&request, is_closed) {
                None => next.run(request).await,
                Some((status, why)) => (status, why).into_response(),
            };
            // All others are counted where they are looked into.
            if let Some(brings) = brings.filter(|_| TURNED_AWAY.contains(&response.status().as_u16())) {
                service.requests().ended(brings, response.status(), begun.elapsed());
            }
            response
        }
    }));
    all.layer(from_fn(no_sniffing)).layer(from_fn(unread::read_first))
}

/// What a request to a path brings, where it brings something.
fn brings(path: &str) -> Option<Brings> {
    receive::brings(path).or_else(|| services::is_put(path).then_some(Brings::Observations))
}

async fn guard(access: &Access, act: Act, request: Request, next: Next) -> Response {
    let mut given = request.headers().get_all(AUTHORIZATION).iter();
    // Of two, a proxy in front of the server may have looked at the other one.
    let given = given.next().filter(|_| given.next().is_none()).and_then(|value| value.to_str().ok());
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if access.allows(act, only_reads, given) {
        return next.run(request).await;
    }
    let wants_page = request.headers().get(ACCEPT).and_then(|kinds| kinds.to_str().ok());
    let is_browser = act == Act::Read && only_reads && wants_page.is_some_and(|kinds| kinds.contains("text/html"));
    let mut refused = (StatusCode::UNAUTHORIZED, "this needs a token that allows it\n").into_response();
    refused.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    if is_browser {
        let basic = HeaderValue::from_static("Basic realm=\"the token is the password\", charset=\"UTF-8\"");
        refused.headers_mut().append(WWW_AUTHENTICATE, basic);
    }
    refused
}

/// Browsers take each answer for what it says that it is, and run no script of another place.
async fn no_sniffing(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    response
}

/// Serves a listener until told to stop, then lets requests in work come to their end. Connections are encrypted where there is something
/// that accepts such.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, routes: Router, mut stop: watch::Receiver<bool>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(BUFFER);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEAD)).keep_alive_timeout(HEAD);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = accepted else {
            // Too many files are open, as a rule: some will be closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // One too many is closed at once; its client tries again.
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else { continue };
        let (builder, watcher, tls, routes) = (builder.clone(), graceful.watcher(), tls.clone(), routes.clone());
        tokio::spawn(async move {
            match tls {
                None => converse(stream, &builder, watcher, routes).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, tls.acceptor().accept(stream)).await {
                        converse(stream, &builder, watcher, routes).await;
                    }
                }
            }
            drop(permit);
        });
    }
    let _ = tokio::time::timeout(LAST_WORDS, graceful.shutdown()).await;
}

/// Answers the requests of a connection until it ends. What goes wrong with it concerns its client alone.
async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    builder: &auto::Builder<TokioExecutor>,
    watcher: Watcher,
    routes: Router,
) {
    let Some(head) = begin(&mut stream).await else { return };
    let (rest, writer) = tokio::io::split(stream);
    let stream = tokio::io::join(Cursor::new(head).chain(rest), writer);
    let (peer, routes) = (Peer::new(Instant::now()), TowerToHyperService::new(routes));
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        routes.call(request)
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    let _ = watcher.watch(connection).await;
}
