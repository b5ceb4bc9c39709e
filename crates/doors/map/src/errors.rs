//! Refusals and faults as MAP's errors.

use posthaste_engine::nouns::IdError;
use posthaste_engine::{EngineError, Fault, Refusal, RefusalClass};
use posthaste_wire::map::error::{ErrorData, ErrorDetails};
use posthaste_wire::map::{AddressError, FilterError, Switch, codes};
use posthaste_wire::rpc::{ErrorObject, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
use serde_json::value::to_raw_value;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(super) struct DoorError {
    pub(super) code: i64,
    pub(super) message: String,
    /// The engine's name of the refusal, which says more than MAP's codes.
    refusal: Option<&'static str>,
    /// How long to wait before trying again.
    retry_after_ms: Option<u64>,
}

impl DoorError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), refusal: None, retry_after_ms: None }
    }

    pub(super) fn params(why: impl std::fmt::Display) -> Self {
        Self::new(INVALID_PARAMS, why.to_string())
    }

    pub(super) fn no_method(name: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method {name}"))
    }

    pub(super) fn denied(why: impl Into<String>) -> Self {
        Self::new(codes::PERMISSION_DENIED, why)
    }

    /// The session lacks a capability.
    pub(super) fn not_allowed(switch: Switch) -> Self {
        let (group, name) = switch.path();
        let code = if group == "mail" { codes::MAIL_PERMISSION_DENIED } else { codes::PERMISSION_DENIED };
        Self::new(code, format!("not allowed: {group}.{name}"))
    }

    /// The caller calls more often than it may.
    pub(super) fn too_often(wait: std::time::Duration) -> Self {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let why = format!("too many calls with this token; wait {millis} ms");
        Self { retry_after_ms: Some(millis), ..Self::new(codes::RATE_LIMITED, why) }
    }

    pub(super) fn no_agent(id: &str) -> Self {
        Self::new(codes::AGENT_NOT_FOUND, format!("there is no agent {id}"))
    }

    pub(super) fn no_subscription() -> Self {
        Self::new(codes::ADDRESS_NOT_FOUND, "there is no such subscription")
    }

    /// The error member of a response.
    pub(super) fn object(&self) -> ErrorObject {
        let name = codes::name(self.code).or(self.refusal);
        let data = ErrorData {
            category: codes::category(self.code).into(),
            retryable: codes::is_retryable(self.code),
            details: name.map(|name| ErrorDetails { name: name.into() }),
            retry_after_ms: self.retry_after_ms,
        };
        let mut error = ErrorObject::new(self.code, self.message.clone());
        error.data = to_raw_value(&data).ok();
        error
    }
}

impl From<EngineError> for DoorError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Failed(fault) => fault.into(),
        }
    }
}

impl From<Fault> for DoorError {
    fn from(fault: Fault) -> Self {
        let code = match &fault {
            Fault::Closing => codes::RESOURCE_EXHAUSTED,
            Fault::Poisoned { .. }
            | Fault::Database { .. }
            | Fault::NewerDatabase { .. }
            | Fault::UnreleasedDatabase { .. }
            | Fault::Lost { .. }
            | Fault::Locked { .. }
            | Fault::Internal { .. } => INTERNAL_ERROR,
        };
        Self::new(code, fault.to_string())
    }
}

impl From<Refusal> for DoorError {
    fn from(refusal: Refusal) -> Self {
        let code = named_code(&refusal).unwrap_or_else(|| class_code(refusal.class()));
        Self { refusal: Some(refusal.word()), ..Self::new(code, refusal.to_string()) }
    }
}

/// The code of a refusal that MAP names itself.
fn named_code(refusal: &Refusal) -> Option<i64> {
    Some(match refusal {
        Refusal::NoSuchAgent { .. } => codes::AGENT_NOT_FOUND,
        Refusal::AgentExists { .. } | Refusal::LooksTaken { .. } | Refusal::ScopeExists { .. } => {
            codes::AGENT_EXISTS
        }
        Refusal::WrongState { .. } | Refusal::ScopeNotEmpty { .. } => codes::STATE_INVALID,
        Refusal::NoRecipients => codes::ADDRESS_NOT_FOUND,
        Refusal::NoSuchConversation { .. } => codes::CONVERSATION_NOT_FOUND,
        Refusal::ConversationClosed { .. } => codes::CONVERSATION_CLOSED,
        Refusal::NotAParticipant { .. } => codes::NOT_A_PARTICIPANT,
        Refusal::ParticipantMayNot { .. } => codes::MAIL_PERMISSION_DENIED,
        Refusal::AlreadyJoined { .. } => codes::PARTICIPANT_ALREADY_JOINED,
        Refusal::NoSuchParticipant { .. } => codes::PARTICIPANT_NOT_FOUND,
        Refusal::NoSuchTurn => codes::TURN_NOT_FOUND,
        Refusal::NoSuchThread => codes::THREAD_NOT_FOUND,
        Refusal::BadContentType { .. } => codes::INVALID_CONTENT_TYPE,
        Refusal::ThreadTooDeep { .. } => codes::THREAD_NESTING_LIMIT,
        Refusal::NoSuchScope { .. } => codes::SCOPE_NOT_FOUND,
        Refusal::NoSuchTask { .. } => codes::TASK_NOT_FOUND,
        Refusal::TaskExists { .. } | Refusal::TaskEnded { .. } => codes::TASK_CONFLICT,
        Refusal::NoSuchPeer { .. } => codes::FEDERATION_SYSTEM_NOT_FOUND,
        // MAP has no codes for reservations and tokens, so the id is an invalid parameter.
        Refusal::NoSuchReservation | Refusal::NoSuchToken => INVALID_PARAMS,
        // Not the caller's quota: the operator has to free space, and a retry may succeed.
        Refusal::DiskNearlyFull { .. } => codes::RESOURCE_EXHAUSTED,
        _ => return None,
    })
}

/// The code of every other refusal. MAP has no general code for a conflict.
fn class_code(class: RefusalClass) -> i64 {
    match class {
        RefusalClass::NotFound => codes::ADDRESS_NOT_FOUND,
        RefusalClass::Forbidden => codes::PERMISSION_DENIED,
        RefusalClass::Conflict | RefusalClass::Invalid => INVALID_PARAMS,
        RefusalClass::OverLimit
        | RefusalClass::TooLarge
        | RefusalClass::RateLimited
        | RefusalClass::StorageFull => codes::QUOTA_EXCEEDED,
        RefusalClass::Busy => codes::RESOURCE_EXHAUSTED,
    }
}

impl From<IdError> for DoorError {
    fn from(error: IdError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<ErrorObject> for DoorError {
    fn from(error: ErrorObject) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<AddressError> for DoorError {
    fn from(error: AddressError) -> Self {
        Self::params(error)
    }
}

impl From<FilterError> for DoorError {
    fn from(error: FilterError) -> Self {
        Self::params(error)
    }
}

/// The error of a refusal as one line, for the test that pins the errors of all doors.
pub fn refused(refusal: Refusal) -> String {
    let ErrorObject { code, message, data } = DoorError::from(EngineError::from(refusal)).object();
    format!("{code} {} {message}", data.unwrap())
}
