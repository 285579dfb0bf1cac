//! An HTTP client over plain connections, which it keeps. Requests have no body, and answers are read whole.

use std::net::SocketAddr;

use anyhow::ensure;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The longest answer that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// The client. Its clones share their connections.
#[derive(Clone)]
pub struct HttpClient(Client<HttpConnector, Body>);

impl HttpClient {
    /// A client without connections.
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    /// Makes a request and reads the answer.
    ///
    /// # Errors
    /// Where there is no answer, or its status is not one of success.
    pub async fn request(
        &self,
        method: Method,
        to: SocketAddr,
        path: &str,
        headers: HeaderMap,
    ) -> anyhow::Result<Bytes> {
        let mut request = Request::builder().method(method).uri(format!("http://{to}{path}")).body(Body::empty())?;
        *request.headers_mut() = headers;
        let answer = self.0.request(request).await?;
        let status = answer.status();
        let body = to_bytes(Body::new(answer.into_body()), LONGEST).await?;
        ensure!(status.is_success(), "the service answered {status}");
        Ok(body)
    }
}
