//! Middleware that answers a request early or passes it on, and may change the response. It does what
//! `axum::middleware::from_fn` does without boxing the inner service's future for every request.

use std::future::{Ready, ready};
use std::ops::ControlFlow;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::future::{Either, MapOk, TryFutureExt as _};
use hyper::body::Body as _;
use tower::{Layer, Service};

/// Drain limits for rejected requests: bytes, total time, idle time.
const DRAIN_BYTES: usize = 16 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// A layer that asks `F` about each request: a response is sent at once, `None` passes the request on.
#[derive(Clone, Debug)]
pub(super) struct EarlyReject<F>(pub(super) F);

/// The service of [`EarlyReject`].
#[derive(Clone, Debug)]
pub(super) struct EarlyRejectService<F, S> {
    reject: F,
    inner: S,
}

impl<F: Clone, S> Layer<S> for EarlyReject<F> {
    type Service = EarlyRejectService<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        EarlyRejectService { reject: self.0.clone(), inner }
    }
}

impl<F, S> Service<Request> for EarlyRejectService<F, S>
where
    F: Fn(&Request) -> Option<Response>,
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match (self.reject)(&request) {
            Some(answer) => {
                drain(request);
                Either::Left(ready(Ok(answer)))
            }
            None => Either::Right(self.inner.call(request)),
        }
    }
}

/// Reads the rest of a rejected request and drops it. Many clients write the whole request before they read: without this
/// they would get a connection reset instead of the response.
fn drain(request: Request) {
    // A client that expects `100 Continue` has sent no body yet and will not.
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return;
    }
    tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
        let (mut rest, mut drained) = (request.into_body().into_data_stream(), 0);
        while drained <= DRAIN_BYTES
            && let Ok(Some(Ok(piece))) = tokio::time::timeout(DRAIN_IDLE_TIMEOUT, rest.next()).await
        {
            drained += piece.len();
        }
    }));
}

/// Like [`EarlyReject`], and a request that is passed on may come with a function that changes its response.
#[derive(Clone, Debug)]
pub struct CheckAndMap<F>(pub F);

/// The service of [`CheckAndMap`].
#[derive(Clone, Debug)]
pub struct AroundService<F, S> {
    check: F,
    inner: S,
}

impl<F: Clone, S> Layer<S> for CheckAndMap<F> {
    type Service = AroundService<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        AroundService { check: self.0.clone(), inner }
    }
}

impl<F, A, S> Service<Request> for AroundService<F, S>
where
    F: Fn(&Request) -> ControlFlow<Response, A>,
    A: FnOnce(Response) -> Response,
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response, S::Error>>, MapOk<S::Future, A>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match (self.check)(&request) {
            ControlFlow::Break(answer) => {
                drain(request);
                Either::Left(ready(Ok(answer)))
            }
            ControlFlow::Continue(after) => Either::Right(self.inner.call(request).map_ok(after)),
        }
    }
}
