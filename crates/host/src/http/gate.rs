//! Layers that look at a request and either let it pass or answer it, and may look at the answer as well. What
//! `axum::middleware::from_fn` does, but that boxes what is behind it once more for every request.

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

/// So much of a request that was stopped is read all the same, for so long, and while it does not stand still for so long.
const HEARD_OUT: usize = 16 << 20;
const HEARD_FOR: Duration = Duration::from_secs(10);
const STANDS_STILL: Duration = Duration::from_secs(1);

/// Puts a question before whatever is behind it: nothing, or the answer in place of the door's.
#[derive(Clone, Debug)]
pub(super) struct Gate<F>(pub(super) F);

/// What is behind a gate, with it.
#[derive(Clone, Debug)]
pub(super) struct Gated<F, S> {
    stops: F,
    behind: S,
}

impl<F: Clone, S> Layer<S> for Gate<F> {
    type Service = Gated<F, S>;

    fn layer(&self, behind: S) -> Self::Service {
        Gated { stops: self.0.clone(), behind }
    }
}

impl<F, S> Service<Request> for Gated<F, S>
where
    F: Fn(&Request) -> Option<Response>,
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.behind.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match (self.stops)(&request) {
            Some(answer) => {
                hear_out(request);
                Either::Left(ready(Ok(answer)))
            }
            None => Either::Right(self.behind.call(request)),
        }
    }
}

/// Reads the rest of a request and drops it. Many write all they have before they read, and would find the connection broken
/// instead of the answer.
fn hear_out(request: Request) {
    // Who asks before it sends has sent nothing yet, and need not.
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return;
    }
    tokio::spawn(tokio::time::timeout(HEARD_FOR, async move {
        let (mut rest, mut heard) = (request.into_body().into_data_stream(), 0);
        while heard <= HEARD_OUT
            && let Ok(Some(Ok(piece))) = tokio::time::timeout(STANDS_STILL, rest.next()).await
        {
            heard += piece.len();
        }
    }));
}

/// Puts a question before whatever is behind it, as [`Gate`] does, and something to do with its answer.
#[derive(Clone, Debug)]
pub struct Around<F>(pub F);

/// What is behind a question, with it.
#[derive(Clone, Debug)]
pub struct Surrounded<F, S> {
    asks: F,
    behind: S,
}

impl<F: Clone, S> Layer<S> for Around<F> {
    type Service = Surrounded<F, S>;

    fn layer(&self, behind: S) -> Self::Service {
        Surrounded { asks: self.0.clone(), behind }
    }
}

impl<F, A, S> Service<Request> for Surrounded<F, S>
where
    F: Fn(&Request) -> ControlFlow<Response, A>,
    A: FnOnce(Response) -> Response,
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response, S::Error>>, MapOk<S::Future, A>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.behind.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match (self.asks)(&request) {
            ControlFlow::Break(answer) => {
                hear_out(request);
                Either::Left(ready(Ok(answer)))
            }
            ControlFlow::Continue(after) => Either::Right(self.behind.call(request).map_ok(after)),
        }
    }
}
