//! A layer that looks at a request and either lets it pass or answers it. What `axum::middleware::from_fn` does as well, but
//! that boxes what is behind it once more for every request.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures_util::future::Either;
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
