//! What every answer of this door has in common: headers that keep a page to itself, and errors as pages.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use posthaste_engine::{EngineError, Fault};

use super::frame::{self, Section};
use super::visitor::Visitor;
use posthaste_host::http::errors::status_of;

/// Nothing from other sites, no script or style inline, no frame around the page, forms to this server only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What a handler answers.
pub(super) type Page = Result<Response, DoorError>;

/// Why a request has no page.
#[derive(Debug)]
pub(super) struct DoorError {
    status: StatusCode,
    text: String,
}

impl DoorError {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// As a page inside the frame, for a visitor that is signed in.
    pub(super) async fn framed(self, visitor: &Visitor) -> Response {
        let body = html! {
            h1 { (self.status.canonical_reason().unwrap_or("Something went wrong")) }
            p.sorry { (self.text) }
            p { a href=(visitor.to("")) { "Overview" } }
        };
        (self.status, frame::render(visitor, Section::None, "Sorry", body, None).await).into_response()
    }
}

impl From<EngineError> for DoorError {
    fn from(error: EngineError) -> Self {
        let status = match &error {
            EngineError::Refused(refusal) => status_of(refusal.class()),
            EngineError::Failed(Fault::Poisoned { .. } | Fault::Closing) => StatusCode::SERVICE_UNAVAILABLE,
            EngineError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for DoorError {
    /// Without a frame, for a request without a known visitor.
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Sorry");
        (self.status, Html(frame::bare(title, html! { p.sorry { (self.text) } }).into_string()))
            .into_response()
    }
}

/// A fragment for the script.
pub(super) fn fragment(markup: Markup) -> Response {
    Html(markup.into_string()).into_response()
}

/// Below `/ui` but no page.
pub(super) async fn nowhere(visitor: Visitor) -> Response {
    DoorError::new(StatusCode::NOT_FOUND, "There is no such page.").framed(&visitor).await
}

/// The headers of every answer.
pub(super) async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    // Not `no-referrer`: browsers would then post our own forms with `Origin: null`.
    set(header::REFERRER_POLICY, "same-origin");
    set(header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// What the door answers to a refusal, as one line, for the test that pins the answers of all doors.
pub fn refused(refusal: posthaste_engine::Refusal) -> String {
    let error = DoorError::from(EngineError::from(refusal));
    format!("{} {}", error.status.as_u16(), error.text)
}
