//! Listeners, and all routes behind them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, middleware};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::access::{Access, Act};
use crate::receive::Receivers;
use crate::receive::body::Budget;
use crate::service::Service;
use crate::services::Desk;
use crate::{services, web};

/// How many connections are open at a time.
const CONNECTIONS: usize = 1024;
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long a stop waits for requests in work.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether a client says in time which HTTP it speaks.
async fn begins(stream: &TcpStream) -> bool {
    let said = async {
        let mut head = [0; PREFACE.len()];
        loop {
            match stream.peek(&mut head).await {
                Ok(0) | Err(_) => return false,
                Ok(length) if length < PREFACE.len() && PREFACE.starts_with(&head[..length]) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Ok(_) => return true,
            }
        }
    };
    tokio::time::timeout(HEAD, said).await.unwrap_or(false)
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
    put.merge(read).merge(admin).merge(web::open(Arc::clone(service))).layer(middleware::from_fn(no_sniffing))
}

async fn guard(access: &Access, act: Act, request: Request, next: Next) -> Response {
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if access.allows(act, given) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")], "this needs a token that allows it\n").into_response()
}

/// Browsers take each answer for what it says that it is, and run no script of another place.
async fn no_sniffing(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", axum::http::HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", axum::http::HeaderValue::from_static("no-referrer"));
    response
}

/// Serves a listener until told to stop, then lets requests in work come to their end.
pub async fn serve(listener: TcpListener, routes: Router, mut stop: watch::Receiver<bool>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
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
        let service = TowerToHyperService::new(routes.clone());
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        tokio::spawn(async move {
            if begins(&stream).await {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                // What goes wrong with a connection concerns its client alone.
                let _ = watcher.watch(connection).await;
            }
            drop(permit);
        });
    }
    let _ = tokio::time::timeout(LAST_WORDS, graceful.shutdown()).await;
}
