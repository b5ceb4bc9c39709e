//! Middleware of every request: a request id, a log line, conversion of panics, and limits.

use std::any::Any;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::classify::ServerErrorsFailureClass;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::request_id::PropagateRequestIdLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;
use tower_http::trace::{OnResponse, TraceLayer};
use tracing::Span;

use super::bound::BoundReads;
use super::early_reject::EarlyReject;
use super::errors::answer;
use super::guard::{Guard, guard};

/// The header that names a request in logs and in answers.
pub static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of the request at hand, for doors that put it into their own answers.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

/// Settings of the middleware.
#[derive(Clone, Debug)]
pub struct LayerOptions {
    pub guard: Guard,
    /// The largest request body, in bytes; a longer one is answered with 413.
    pub max_body: usize,
    /// Idle timeout while a body is read.
    pub body_timeout: Duration,
}

/// Puts the common layers around all doors.
pub fn wrap(doors: Router, options: LayerOptions) -> Router {
    let trace = TraceLayer::new_for_http()
        .make_span_with(span)
        .on_request(())
        .on_response(Answered)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(|failure: ServerErrorsFailureClass, latency: Duration, _: &Span| {
            tracing::warn!(%failure, ?latency, "failed");
        });
    let allowed = Arc::new(options.guard);
    // Outermost first. One stack instead of one `Router::layer` each: every such call boxes anew.
    doors.layer(
        ServiceBuilder::new()
            .map_request(identify)
            .layer(PropagateRequestIdLayer::new(REQUEST_ID.clone()))
            .layer(trace)
            .layer(CatchPanicLayer::custom(panicked))
            .layer(EarlyReject(move |request: &Request| guard(&allowed, request)))
            .layer(EarlyReject(move |request: &Request| measure(options.max_body, request)))
            .map_response(IntoResponse::into_response)
            .layer(RequestBodyTimeoutLayer::new(options.body_timeout))
            .layer(RequestBodyLimitLayer::new(options.max_body))
            .layer(BoundReads)
            // Otherwise axum's own limit of 2 MB would stand under ours.
            .layer(DefaultBodyLimit::disable()),
    )
}

impl RequestId {
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Unique in this process and, by its random half, most likely among all.
    fn fresh() -> Self {
        static START: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let text = format!("{:016x}-{:x}", *START, NEXT.fetch_add(1, Ordering::Relaxed));
        Self(HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("-")))
    }

    /// A caller's own id is kept if it is short and plain, since it goes into the log.
    fn given(request: &Request) -> Option<Self> {
        let value = request.headers().get(&REQUEST_ID)?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        let bytes = value.as_bytes();
        ((1..=64).contains(&bytes.len()) && bytes.iter().all(plain)).then(|| Self(value.clone()))
    }
}

/// Names a request, in its header as well, from where it goes into the answer.
fn identify(mut request: Request) -> Request {
    let id = RequestId::given(&request).unwrap_or_else(RequestId::fresh);
    request.headers_mut().insert(&REQUEST_ID, id.0.clone());
    request.extensions_mut().insert(id);
    request
}

/// Answers a body that is announced as too long; one that is not announced is counted further in, and
/// the door that reads it answers.
fn measure(limit: usize, request: &Request) -> Option<Response> {
    if request.body().size_hint().lower() <= limit as u64 {
        return None;
    }
    let message = format!("a request may have {limit} bytes at most");
    Some(answer(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message))
}

// The path and not the whole target: a query may carry a token.
fn span(request: &Request) -> Span {
    let id = request.extensions().get::<RequestId>().map(RequestId::as_str);
    tracing::info_span!("request", id, method = %request.method(), path = request.uri().path())
}

/// Logs the answer, whatever its body is made of.
#[derive(Clone, Copy, Debug)]
struct Answered;

impl<B> OnResponse<B> for Answered {
    fn on_response(self, response: &axum::http::Response<B>, latency: Duration, _: &Span) {
        tracing::debug!(status = response.status().as_u16(), ?latency, "answered");
    }
}

fn panicked(cause: Box<dyn Any + Send + 'static>) -> Response {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause");
    tracing::error!(panic = text, "a request handler panicked");
    answer(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the server failed on this request; its log says why",
    )
}
