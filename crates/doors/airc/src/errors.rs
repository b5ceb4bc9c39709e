//! Refusals as AIRC says them: a status, a code in `error`, a sentence in `message`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::Agent;
use posthaste_engine::{EngineError, Fault, Refusal, RefusalClass};
use posthaste_wire::airc::{EnvelopeError, HandleError};
use posthaste_wire::signing::SigningError;
use serde_json::{Map, Value, json};

use posthaste_host::http::errors::status_of;
use posthaste_host::http::rate::Turn;

/// Why a request is not carried out.
#[derive(Debug)]
pub(super) struct Trouble(Box<Said>);

#[derive(Debug)]
struct Said {
    status: StatusCode,
    code: &'static str,
    message: String,
    more: Map<String, Value>,
    turn: Option<Turn>,
}

pub(super) type Answer<T = Response> = Result<T, Trouble>;

impl Trouble {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self(Box::new(Said { status, code, message: message.into(), more: Map::new(), turn: None }))
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

    pub(super) fn nobody(handle: &str) -> Self {
        Self::new(404, "identity_not_found", format!("there is no identity {handle}"))
    }

    pub(super) fn too_often(turn: Turn, what: &str) -> Self {
        let seconds = turn.wait_seconds().unwrap_or(1).max(1);
        let mut trouble =
            Self::new(429, "rate_limited", format!("too many {what}; try again in {seconds} s"))
                .with("retry_after", json!(seconds));
        trouble.0.turn = Some(turn);
        trouble
    }

    /// One more member of the answer.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.0.more.insert(name.to_owned(), value);
        self
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        // `code` beside `error`, because clients of both drafts look for it.
        let Said { status, code, message, more, turn } = *self.0;
        let mut body = json!({ "success": false, "error": code, "code": code, "message": message });
        if let Value::Object(members) = &mut body {
            members.extend(more);
        }
        let mut response = (status, Json(body)).into_response();
        if let Some(turn) = turn {
            turn.write(response.headers_mut());
        }
        response
    }
}

impl From<HandleError> for Trouble {
    fn from(error: HandleError) -> Self {
        Self::new(400, "invalid_handle", error.to_string())
    }
}

impl From<EnvelopeError> for Trouble {
    fn from(error: EnvelopeError) -> Self {
        let code = match &error {
            EnvelopeError::Canonical(_) | EnvelopeError::Field { .. } => "invalid_envelope",
            EnvelopeError::Payload(_) => "invalid_payload",
        };
        let field = match &error {
            EnvelopeError::Canonical(_) => None,
            EnvelopeError::Field { field, .. } => Some(*field),
            EnvelopeError::Payload(payload) => Some(payload.field),
        };
        let trouble = Self::new(400, code, error.to_string());
        match field {
            Some(field) => trouble.with("field", json!(field)),
            None => trouble,
        }
    }
}

impl From<SigningError> for Trouble {
    fn from(error: SigningError) -> Self {
        Self::new(401, "invalid_signature", error.to_string())
    }
}

impl From<EngineError> for Trouble {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(refusal) => of_refusal(&refusal),
            EngineError::Failed(fault) => of_fault(&fault),
        }
    }
}

fn of_fault(fault: &Fault) -> Trouble {
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
    Trouble::new(status, code, fault.to_string())
}

fn of_refusal(refusal: &Refusal) -> Trouble {
    let said = |status, code| Trouble::new(status, code, refusal.to_string());
    match refusal {
        Refusal::NoSuchAgent { agent, .. } => Trouble::nobody(agent),
        Refusal::NoSuchPeer { peer } => Trouble::nobody(peer),
        Refusal::NoRecipients => said(404, "identity_not_found"),
        Refusal::AgentExists { .. } | Refusal::LooksTaken { .. } => said(409, "handle_taken"),
        Refusal::BadName { .. } => said(400, "invalid_handle"),
        Refusal::WrongState { state, .. } if state == Agent::SUSPENDED => said(403, "identity_suspended"),
        Refusal::ConsentPending { agent } => {
            let message = format!("{agent} has not accepted your messages; a request is pending");
            Trouble::new(403, "consent_required", message)
                .with("pendingConsent", json!(true))
                .with("state", json!("pending"))
        }
        Refusal::ConsentBlocked { .. } => said(403, "consent_blocked"),
        Refusal::PrivacyMismatch => said(403, "privacy_mismatch"),
        Refusal::TooManyRequests { .. } => {
            said(429, "recipient_over_capacity").with("retry_after", json!(3600))
        }
        Refusal::NoSuchContact { from, .. } => {
            Trouble::new(404, "consent_not_found", format!("{from} has not asked for consent"))
        }
        Refusal::TooMany { .. } | Refusal::TooManyParticipants { .. } => said(400, "too_many"),
        Refusal::TooManyReservations { .. } => said(409, "reservation_limit"),
        Refusal::TooMuchWork { .. } => said(400, "too_much_work"),
        Refusal::DiskNearlyFull { .. } => said(507, "disk_nearly_full"),
        Refusal::KeyReused { key } => of_mark(key),
        Refusal::NoSuchMessage => said(404, "message_not_found"),
        Refusal::NoSuchReservation => said(404, "reservation_not_found"),
        Refusal::ReservationExists { .. } => said(409, "reservation_exists"),
        Refusal::BadPath { .. } => said(400, "invalid_payload").with("field", json!("paths")),
        Refusal::AlreadyExpired { .. } => said(400, "invalid_payload").with("field", json!("expires_ts")),
        // Only a token that is to be renewed is looked up by its secret.
        Refusal::NoSuchToken => said(401, "unauthorized"),
        Refusal::StaleCursor => said(400, "invalid_cursor"),
        Refusal::Busy => said(503, "busy").with("retry_after", json!(1)),
        _ => {
            let class = refusal.class();
            said(status_of(class).as_u16(), class_code(class))
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

/// Which of a letter's names had come before.
fn of_mark(label: &str) -> Trouble {
    let (code, what) = match label.split_once(':') {
        Some(("id", _)) => ("duplicate_message", "a message with this id was sent before"),
        Some(("nonce", _)) => ("replay_detected", "this nonce was used before"),
        Some(("mail", _)) => ("duplicate_message_id", "this message_id stands for another mail of yours"),
        Some(("rsv", _)) => {
            ("reservation_exists", "this reservation_id stands for another reservation of yours")
        }
        _ => ("replay_detected", "this was used before"),
    };
    Trouble::new(409, code, what)
}

/// What the door answers to a refusal, as one line, for the test that pins the answers of all doors.
pub fn refused(refusal: Refusal) -> String {
    let Trouble(said) = Trouble::from(EngineError::from(refusal));
    format!("{} {} {} {}", said.status.as_u16(), said.code, Value::Object(said.more), said.message)
}
