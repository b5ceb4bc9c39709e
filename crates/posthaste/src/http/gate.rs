//! Layers that look at a request and either let it pass or answer it, and may look at the answer as well. What
//! `axum::middleware::from_fn` does, but that boxes what is behind it once more for every request.

use std::future::{Ready, ready};
use std::ops::ControlFlow;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures_util::future::{Either, MapOk, TryFutureExt as _};
use tower::{Layer, Service};

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
            Some(answer) => Either::Left(ready(Ok(answer))),
            None => Either::Right(self.behind.call(request)),
        }
    }
}

/// Puts a question before whatever is behind it, as [`Gate`] does, and something to do with its answer.
#[derive(Clone, Debug)]
pub(crate) struct Around<F>(pub(crate) F);

/// What is behind a question, with it.
#[derive(Clone, Debug)]
pub(crate) struct Surrounded<F, S> {
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
            ControlFlow::Break(answer) => Either::Left(ready(Ok(answer))),
            ControlFlow::Continue(after) => Either::Right(self.behind.call(request).map_ok(after)),
        }
    }
}
