//! The reads of one HTTP request share one bound on time and bytes, however many calls the request carries.

use std::task::{Context, Poll};

use posthaste_engine::{OneRequest, one_request};
use tower::{Layer, Service};

/// Says to the engine where a request begins and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundReads;

impl<S> Layer<S> for BoundReads {
    type Service = Bound<S>;

    fn layer(&self, inner: S) -> Bound<S> {
        Bound(inner)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bound<S>(S);

impl<R, S: Service<R>> Service<R> for Bound<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = OneRequest<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        one_request(self.0.call(request))
    }
}
