//! Refusals and faults as JSON-RPC errors. Programs decide by the word in `data.refusal`.

use posthaste_engine::{EngineError, Fault, Refusal, RefusalClass};
use posthaste_wire::control::RefusalData;
use posthaste_wire::rpc::{ErrorObject, INTERNAL_ERROR, INVALID_PARAMS};
use serde_json::value::to_raw_value;

use posthaste_host::attachments::AttachError;
use posthaste_host::caller::AuthError;

/// The verb was understood and refused.
pub(crate) const REFUSED: i64 = -32000;
/// The token is missing or wrong.
pub(crate) const UNAUTHORIZED: i64 = -32001;
/// The server cannot take this now.
pub(crate) const UNAVAILABLE: i64 = -32002;

pub(super) fn of_engine(error: &EngineError) -> ErrorObject {
    if let EngineError::Refused(refusal @ Refusal::NoSuchAgent { agent, .. }) = error {
        // Which of the agents in a call is missing: the command line registers its own.
        let data = RefusalData { refusal: refusal.word().to_owned(), agent: Some(agent.clone()) };
        return with_data(code_of(refusal), error.to_string(), &data);
    }
    let (code, word) = match error {
        EngineError::Refused(refusal) => (code_of(refusal), refusal.word()),
        EngineError::Failed(fault) if fault.is_disk_full() => (UNAVAILABLE, "disk_full"),
        EngineError::Failed(Fault::Poisoned { .. }) => (UNAVAILABLE, "read_only"),
        EngineError::Failed(Fault::Closing) => (UNAVAILABLE, "closing"),
        EngineError::Failed(_) => (INTERNAL_ERROR, "internal"),
    };
    with_word(code, error.to_string(), word)
}

/// The same for `map_err`, which passes the error by value.
pub(super) fn refused(error: EngineError) -> ErrorObject {
    of_engine(&error)
}

pub(super) fn of_auth(error: &AuthError) -> ErrorObject {
    match error {
        AuthError::Missing | AuthError::Invalid | AuthError::OtherDoor { .. } => {
            with_word(UNAUTHORIZED, error.to_string(), "unauthorized")
        }
        AuthError::Failed(error) => of_engine(error),
    }
}

pub(super) fn of_attachment(error: &AttachError) -> ErrorObject {
    let (code, word) = match error {
        AttachError::TooMany => (INVALID_PARAMS, "bad_params"),
        AttachError::Refused { .. } => (REFUSED, "attachment_refused"),
        AttachError::Missing => (REFUSED, "no_such_attachment"),
        AttachError::Engine(error) => return of_engine(error),
        AttachError::Failed => (INTERNAL_ERROR, "internal"),
    };
    with_word(code, error.to_string(), word)
}

pub(super) fn bad_params(why: impl std::fmt::Display) -> ErrorObject {
    with_word(INVALID_PARAMS, why.to_string(), "bad_params")
}

pub(super) fn denied(why: &str) -> ErrorObject {
    with_word(REFUSED, why.to_owned(), "not_allowed")
}

/// No message that the caller may see has that name.
pub(super) fn no_message(name: &str) -> ErrorObject {
    with_word(REFUSED, format!("there is no message {name}"), Refusal::NoSuchMessage.word())
}

/// The error of a call that named a message: where the message is missing, the text says which.
pub(super) fn of_message(error: &EngineError, name: &str) -> ErrorObject {
    match error {
        EngineError::Refused(Refusal::NoSuchMessage) => no_message(name),
        other => of_engine(other),
    }
}

/// The ids of several messages begin with the given text.
pub(super) fn ambiguous(name: &str, candidates: &[String]) -> ErrorObject {
    let text = match candidates {
        [] => format!("the ids of many messages begin with {name}; give more of it"),
        some => {
            format!("the ids of several messages begin with {name}: {}; give more of it", some.join(", "))
        }
    };
    with_word(INVALID_PARAMS, text, "bad_id")
}

/// The caller exceeds its rate.
pub(super) fn too_often(wait: std::time::Duration) -> ErrorObject {
    let text = format!("too many calls with this token; wait {} ms", wait.as_millis().max(1));
    with_word(UNAVAILABLE, text, "too_many_requests")
}

fn code_of(refusal: &Refusal) -> i64 {
    match refusal {
        // Well-formed parameters that this realm does not accept.
        Refusal::CircularParent { .. }
        | Refusal::NoRecipients
        | Refusal::BadJson { .. }
        | Refusal::BadContentType { .. }
        | Refusal::AlreadyExpired { .. }
        | Refusal::StaleCursor => REFUSED,
        other => match other.class() {
            RefusalClass::Busy => UNAVAILABLE,
            RefusalClass::Invalid => INVALID_PARAMS,
            _ => REFUSED,
        },
    }
}

fn with_word(code: i64, message: String, word: &str) -> ErrorObject {
    with_data(code, message, &RefusalData { refusal: word.to_owned(), agent: None })
}

fn with_data(code: i64, message: String, data: &RefusalData) -> ErrorObject {
    let mut error = ErrorObject::new(code, message);
    error.data = to_raw_value(data).ok();
    error
}

/// The door's answer to a refusal, as one line, for the test that pins the answers of all doors.
pub fn refused_line(refusal: Refusal) -> String {
    let ErrorObject { code, message, data } = of_engine(&refusal.into());
    format!("{code} {} {message}", data.unwrap())
}
