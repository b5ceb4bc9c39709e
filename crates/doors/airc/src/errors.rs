//! Refusals as AIRC says them: a status, a code in `error`, a sentence in `message`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::Agent;
use posthaste_engine::{EngineError, Fault, Refusal, RefusalClass};
use posthaste_wire::airc::{EnvelopeError, ErrorBody, ErrorDetails, FieldsError, HandleError};
use posthaste_wire::signing::SigningError;

use posthaste_host::http::errors::status_of;
use posthaste_host::http::rate::Turn;

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct DoorError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: ErrorDetails,
    turn: Option<Turn>,
}

pub(super) type Answer<T = Response> = Result<T, DoorError>;

impl DoorError {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (message, details) = (message.into(), ErrorDetails::default());
        Self(Box::new(Parts { status, code, message, details, turn: None }))
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "bad_request", message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "unauthorized", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "forbidden", message)
    }

    pub(super) fn no_identity(handle: &str) -> Self {
        Self::new(404, "identity_not_found", format!("there is no identity {handle}"))
    }

    pub(super) fn too_often(turn: Turn, what: &str) -> Self {
        let seconds = turn.wait_seconds().unwrap_or(1).max(1);
        let mut error = Self::new(429, "rate_limited", format!("too many {what}; try again in {seconds} s"))
            .retry_after(seconds);
        error.0.turn = Some(turn);
        error
    }

    /// Names the member of the request that is invalid.
    pub(super) fn with_field(mut self, field: &'static str) -> Self {
        self.0.details.field = Some(field.into());
        self
    }

    fn retry_after(mut self, seconds: u64) -> Self {
        self.0.details.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for DoorError {
    fn into_response(self) -> Response {
        let Parts { status, code, message, details, turn } = *self.0;
        let body = ErrorBody { success: false, error: code.into(), code: code.into(), message, details };
        let mut response = (status, Json(body)).into_response();
        if let Some(turn) = turn {
            turn.write(response.headers_mut());
        }
        response
    }
}

impl From<HandleError> for DoorError {
    fn from(error: HandleError) -> Self {
        Self::new(400, "invalid_handle", error.to_string())
    }
}

impl From<FieldsError> for DoorError {
    fn from(error: FieldsError) -> Self {
        match error {
            FieldsError::Json(why) => Self::new(400, "invalid_json", why),
            FieldsError::NotAString(_) => Self::bad(error.to_string()),
        }
    }
}

impl From<EnvelopeError> for DoorError {
    fn from(error: EnvelopeError) -> Self {
        let (code, field) = match &error {
            EnvelopeError::Canonical(_) => ("invalid_envelope", None),
            EnvelopeError::Field { field, .. } => ("invalid_envelope", Some(*field)),
            EnvelopeError::Payload(payload) => ("invalid_payload", Some(payload.field)),
        };
        let refused = Self::new(400, code, error.to_string());
        match field {
            Some(field) => refused.with_field(field),
            None => refused,
        }
    }
}

impl From<SigningError> for DoorError {
    fn from(error: SigningError) -> Self {
        Self::new(401, "invalid_signature", error.to_string())
    }
}

impl From<EngineError> for DoorError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(refusal) => of_refusal(&refusal),
            EngineError::Failed(fault) => of_fault(&fault),
        }
    }
}

fn of_fault(fault: &Fault) -> DoorError {
    let (status, code) = match fault {
        Fault::Poisoned { .. } => (503, "read_only"),
        Fault::Closing => (503, "closing"),
        Fault::Database { .. }
        | Fault::Lost { .. }
        | Fault::NewerDatabase { .. }
        | Fault::UnreleasedDatabase { .. }
        | Fault::Locked { .. }
        | Fault::Internal { .. } => (500, "internal_error"),
    };
    DoorError::new(status, code, fault.to_string())
}

fn of_refusal(refusal: &Refusal) -> DoorError {
    let coded = |status, code| DoorError::new(status, code, refusal.to_string());
    match refusal {
        Refusal::NoSuchAgent { agent, .. } => DoorError::no_identity(agent),
        Refusal::NoSuchPeer { peer } => DoorError::no_identity(peer),
        Refusal::NoRecipients => coded(404, "identity_not_found"),
        Refusal::AgentExists { .. } | Refusal::LooksTaken { .. } => coded(409, "handle_taken"),
        Refusal::BadName { .. } => coded(400, "invalid_handle"),
        Refusal::WrongState { state, .. } if state == Agent::SUSPENDED => coded(403, "identity_suspended"),
        Refusal::ConsentPending { agent } => {
            let message = format!("{agent} has not accepted your messages; a request is pending");
            let mut error = DoorError::new(403, "consent_required", message);
            error.0.details.pending_consent = Some(true);
            error.0.details.state = Some("pending".into());
            error
        }
        Refusal::ConsentBlocked { .. } => coded(403, "consent_blocked"),
        Refusal::PrivacyMismatch => coded(403, "privacy_mismatch"),
        Refusal::TooManyRequests { .. } => coded(429, "recipient_over_capacity").retry_after(3600),
        Refusal::NoSuchContact { from, .. } => {
            DoorError::new(404, "consent_not_found", format!("{from} has not asked for consent"))
        }
        Refusal::TooMany { .. } | Refusal::TooManyParticipants { .. } => coded(400, "too_many"),
        Refusal::TooManyReservations { .. } => coded(409, "reservation_limit"),
        Refusal::TooMuchWork { .. } => coded(400, "too_much_work"),
        Refusal::DiskNearlyFull { .. } => coded(507, "disk_nearly_full"),
        Refusal::KeyReused { key } => of_reused_key(key),
        Refusal::NoSuchMessage => coded(404, "message_not_found"),
        Refusal::NoSuchReservation => coded(404, "reservation_not_found"),
        Refusal::ReservationExists { .. } => coded(409, "reservation_exists"),
        Refusal::BadPath { .. } => coded(400, "invalid_payload").with_field("paths"),
        Refusal::AlreadyExpired { .. } => coded(400, "invalid_payload").with_field("expires_ts"),
        // Only a token that is to be renewed is looked up by its secret.
        Refusal::NoSuchToken => coded(401, "unauthorized"),
        Refusal::StaleCursor => coded(400, "invalid_cursor"),
        Refusal::Busy => coded(503, "busy").retry_after(1),
        _ => {
            let class = refusal.class();
            coded(status_of(class).as_u16(), class_code(class))
        }
    }
}

/// The code of a refusal that AIRC does not name itself.
fn class_code(class: RefusalClass) -> &'static str {
    match class {
        RefusalClass::NotFound => "not_found",
        RefusalClass::Forbidden => "forbidden",
        RefusalClass::Conflict => "conflict",
        RefusalClass::Invalid | RefusalClass::OverLimit => "bad_request",
        RefusalClass::TooLarge => "payload_too_large",
        RefusalClass::RateLimited => "rate_limited",
        RefusalClass::StorageFull => "quota_exceeded",
        RefusalClass::Busy => "too_costly",
    }
}

/// Which of a message's single-use keys was used before.
fn of_reused_key(label: &str) -> DoorError {
    let (code, what) = match label.split_once(':') {
        Some(("id", _)) => ("duplicate_message", "a message with this id was sent before"),
        Some(("nonce", _)) => ("replay_detected", "this nonce was used before"),
        Some(("mail", _)) => ("duplicate_message_id", "this message_id stands for another mail of yours"),
        Some(("rsv", _)) => {
            ("reservation_exists", "this reservation_id stands for another reservation of yours")
        }
        _ => ("replay_detected", "this was used before"),
    };
    DoorError::new(409, code, what)
}

/// What the door answers to a refusal, as one line, for the test that pins the answers of all doors.
pub fn refused(refusal: Refusal) -> String {
    let DoorError(parts) = DoorError::from(EngineError::from(refusal));
    let details = serde_json::to_string(&parts.details).unwrap_or_default();
    format!("{} {} {details} {}", parts.status.as_u16(), parts.code, parts.message)
}
