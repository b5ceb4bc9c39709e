//! Errors of the door: a status, and a body with `detail` as the reference has it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::{EngineError, Fault};
use posthaste_wire::mail::FieldError;
use posthaste_wire::mail::answers::{ErrorAnswer, ErrorCode};

use crate::runtime::{ReceiveError, RegisterError, TaskError};
use posthaste_host::caller::AuthError;
use posthaste_host::http::errors::status_of;

/// An error of the door.
#[derive(Debug)]
pub(super) struct DoorError {
    status: StatusCode,
    detail: String,
}

pub(super) type DoorResult = Result<Response, DoorError>;

impl DoorError {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn no_swarm() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "this realm hosts no swarm; start the server with --swarm FILE",
        )
    }
}

impl IntoResponse for DoorError {
    fn into_response(self) -> Response {
        let code = self.status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
        let error = ErrorCode { code, message: self.detail.clone() };
        let body = ErrorAnswer { detail: self.detail, error };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let value = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, value);
        }
        response
    }
}

impl From<FieldError> for DoorError {
    fn from(error: FieldError) -> Self {
        Self::bad(error.to_string())
    }
}

impl From<EngineError> for DoorError {
    fn from(error: EngineError) -> Self {
        let status = match &error {
            EngineError::Refused(refusal) => status_of(refusal.class()),
            EngineError::Failed(fault) => failed(fault),
        };
        Self::new(status, error.to_string())
    }
}

fn failed(fault: &Fault) -> StatusCode {
    match fault {
        Fault::Poisoned { .. } | Fault::Closing | Fault::Locked { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Fault::Database { .. }
        | Fault::Lost { .. }
        | Fault::NewerDatabase { .. }
        | Fault::UnreleasedDatabase { .. }
        | Fault::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<AuthError> for DoorError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Missing | AuthError::Invalid | AuthError::OtherDoor { .. } => {
                Self::new(StatusCode::UNAUTHORIZED, error.to_string())
            }
            AuthError::Failed(error) => error.into(),
        }
    }
}

impl From<TaskError> for DoorError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Field(error) => error.into(),
            TaskError::Bad(why) => Self::bad(why),
            TaskError::NoSuchTask(_) => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            TaskError::TooMany { .. } => Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string()),
            TaskError::Busy => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            TaskError::Engine(error) => error.into(),
        }
    }
}

impl From<ReceiveError> for DoorError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Bad(why) => Self::bad(why),
            ReceiveError::NotFound(why) => Self::new(StatusCode::NOT_FOUND, why),
            ReceiveError::TooMany { .. } => Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string()),
            ReceiveError::Engine(error) => error.into(),
        }
    }
}

impl From<RegisterError> for DoorError {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Bad(..) => Self::bad(error.to_string()),
            RegisterError::Unreachable(_) => Self::new(StatusCode::BAD_GATEWAY, error.to_string()),
            RegisterError::Engine(error) => error.into(),
        }
    }
}

/// The door's answer to a refusal as one line, for the test that pins the answers of all doors.
pub fn refused(refusal: posthaste_engine::Refusal) -> String {
    let failure = DoorError::from(EngineError::from(refusal));
    format!("{} {}", failure.status.as_u16(), failure.detail)
}
