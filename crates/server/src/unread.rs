//! What a request brings and nobody reads.
//!
//! A client of HTTP/1 that still writes when its connection closes gets an error in place of the answer. So the rest of a refused body is read first, within
//! bounds. It takes no memory that bodies share.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::http::{StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How many bytes are read before the answer.
const MOST: usize = 64 << 20;
/// How long that may take, and how long nothing may come of it.
const PATIENCE: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(2);

/// A body that comes back with what is left of it.
struct Lent {
    body: Body,
    back: Option<oneshot::Sender<Body>>,
    /// Whether its client sends it. One that asks first does not before somebody reads.
    is_sent: bool,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_sent = true;
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(back) = self.back.take().filter(|_| self.is_sent && !self.body.is_end_stream()) {
            // Nobody waits where the connection was lost.
            let _ = back.send(mem::take(&mut self.body));
        }
    }
}

/// Answers a request once what it brings was read.
pub async fn read_first(request: Request, next: Next) -> Response {
    // A stream of HTTP/2 ends without the others of its connection.
    if request.version() == Version::HTTP_2 || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (back, mut rest) = oneshot::channel();
    let is_sent = !request.headers().contains_key(EXPECT);
    let response = next.run(request.map(|body| Body::new(Lent { body, back: Some(back), is_sent }))).await;
    // Who was too slow is not waited for again.
    if response.status() != StatusCode::REQUEST_TIMEOUT
        && let Ok(rest) = rest.try_recv()
    {
        let _ = timeout(PATIENCE, discard(rest)).await;
    }
    response
}

async fn discard(mut body: Body) {
    let mut left = MOST;
    while let Ok(Some(Ok(frame))) = timeout(SILENCE, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        if length > left {
            return;
        }
        left -= length;
    }
}
