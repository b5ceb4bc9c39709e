//! Errors of HTTP doors: the status of each class of refusal, and the response to a request that reaches no door.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::RefusalClass;
use posthaste_wire::control::{HttpError, HttpErrorDetail};

/// The status for a refusal that a door's protocol does not name itself.
pub fn status_of(class: RefusalClass) -> StatusCode {
    match class {
        RefusalClass::NotFound => StatusCode::NOT_FOUND,
        RefusalClass::Forbidden => StatusCode::FORBIDDEN,
        RefusalClass::Conflict => StatusCode::CONFLICT,
        RefusalClass::Invalid | RefusalClass::OverLimit => StatusCode::BAD_REQUEST,
        RefusalClass::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalClass::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        RefusalClass::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        RefusalClass::Busy => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// `{"error": {"code": …, "message": …}}` with this status.
pub fn answer(status: StatusCode, code: &str, message: &str) -> Response {
    let error = HttpErrorDetail { code: code.to_owned(), message: message.to_owned() };
    (status, Json(HttpError { error })).into_response()
}
