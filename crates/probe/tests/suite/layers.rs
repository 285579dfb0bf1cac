//! The layers for servers, clients and spans.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use dyelog_probe::{CallLayer, Carrier, Function, HEADER, Mode, ServeLayer, SpanLayer};
use futures_util::FutureExt as _;
use tower_layer::Layer as _;
use tower_service::Service;
use tracing::{Instrument as _, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::support::{paths, record};

static LOOK_UP: Function = Function::new("catalog", "GET /products/{id}");
static INNER: Function = Function::new("catalog", "look up");

/// What answers requests.
#[derive(Clone)]
struct Shop;

impl Service<http::Request<String>> for Shop {
    type Response = http::Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<String>) -> Self::Future {
        ready(Ok(http::Response::new(request.into_body())))
    }
}

fn request() -> http::Request<String> {
    http::Request::get("/products/7").body(String::new()).expect("it is a request")
}

#[test]
fn a_client_and_a_server_are_one_chain() {
    let ((), recorded) = record(Mode::Both, || {
        // The server is what the client sends to.
        let server = ServeLayer::by(|method, uri, _| {
            Function::named("catalog", format!("{method} {}", uri.path().replace('7', "{id}")))
        });
        let mut client = CallLayer::new(&LOOK_UP).layer(server.layer(Shop));
        for _ in 0..2 {
            let answer = client.call(request()).now_or_never().expect("it does not wait");
            assert!(answer.is_ok());
        }
        // From outside, without a header, and with one that is none.
        let mut server = ServeLayer::new(&LOOK_UP).layer(Shop);
        assert!(server.call(request()).now_or_never().is_some());
    });
    assert_eq!(recorded.sound(), paths(&[("catalog::GET /products/{id}", 3)]));
}

#[test]
fn a_header_that_names_no_chain_is_counted() {
    let ((), recorded) = record(Mode::Both, || {
        for bad in ["", "42", "\u{1}"] {
            let mut server = ServeLayer::new(&LOOK_UP).layer(Shop);
            let mut request = request();
            let Ok(value) = http::HeaderValue::try_from(bad) else { continue };
            request.headers_mut().insert(HEADER, value);
            assert_eq!(Carrier::extract(request.headers()), None);
            assert!(server.call(request).now_or_never().is_some());
        }
    });
    assert_eq!(recorded.summary.bad_carriers, 4);
    assert!(recorded.profile().abnormal.is_empty());
}

#[test]
fn spans_are_calls() {
    let subscriber = tracing_subscriber::registry().with(SpanLayer::default());
    let ((), recorded) = record(Mode::Both, || {
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..2 {
                let outer = info_span!(target: "shop", "outer").entered();
                info_span!(target: "shop", "inner").in_scope(|| drop(INNER.enter()));
                tracing::debug_span!(target: "shop", "too fine").in_scope(|| ());
                drop(outer);
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("there is a thread");
            let task = async {
                tokio::task::yield_now().await;
                tokio::task::yield_now().instrument(info_span!(target: "shop", "inner")).await;
            };
            runtime.block_on(task.instrument(info_span!(target: "shop", "task")));
        });
    });
    let expected = [
        ("shop::outer", 2),
        ("shop::outer > shop::inner", 2),
        ("shop::outer > shop::inner > catalog::look up", 2),
        ("shop::task", 1),
        ("shop::task > shop::inner", 1),
    ];
    assert_eq!(recorded.sound(), paths(&expected));
}
