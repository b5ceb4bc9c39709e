//! Errors of tools: words that an agent can act on, and a code that it can branch on. Refusals are mapped here only.

use posthaste_engine::names::edit_distance;
use posthaste_engine::{EngineError, Fault, Refusal, RefusalClass};
use posthaste_wire::mcp::errors::{NearestNames, ToolError, ToolFailure};

/// Why a tool did not do what was asked.
#[derive(Clone, Debug)]
pub(super) struct DoorError {
    pub(super) code: &'static str,
    pub(super) message: String,
    /// Names that may have been meant.
    nearest: Option<Vec<String>>,
}

impl DoorError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), nearest: None }
    }

    /// Adds the names that may have been meant.
    pub(super) fn with_nearest(mut self, names: &[&str]) -> Self {
        self.nearest = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// Whether something that was named is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.code.ends_with("_NOT_FOUND")
    }

    /// The structured part of the answer.
    pub(super) fn to_wire(&self) -> ToolFailure {
        let data = self.nearest.clone().map(|nearest| NearestNames { nearest });
        ToolFailure { error: ToolError { code: self.code.to_owned(), message: self.message.clone(), data } }
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
        // The cause is in the log; the caller is told what it can do.
        match fault {
            Fault::Poisoned { .. } => Self::new(
                "READ_ONLY",
                "the server takes no writes since one failed; what was acknowledged is safe. Tell the operator",
            ),
            Fault::Closing => Self::new("CLOSING", "the server is closing; try again in a moment"),
            Fault::Database { .. }
            | Fault::Lost { .. }
            | Fault::NewerDatabase { .. }
            | Fault::UnreleasedDatabase { .. }
            | Fault::Locked { .. }
            | Fault::Internal { .. } => {
                tracing::error!(%fault, "a tool failed");
                Self::new("OFFICE_FAILED", "the server failed on this call; its log says why")
            }
        }
    }
}

impl From<Refusal> for DoorError {
    fn from(refusal: Refusal) -> Self {
        let code = named_code(&refusal).unwrap_or_else(|| class_code(refusal.class()));
        let message = match &refusal {
            Refusal::NoSuchAgent { agent, near } => {
                let near: Vec<&str> = near.iter().map(|name| name.as_str()).collect();
                return unknown_agent(agent, &near);
            }
            Refusal::AgentExists { agent } => format!(
                "the name '{agent}' belongs to another agent; pass its registration_token to go on as it, or choose another name"
            ),
            Refusal::ConsentPending { agent } => format!(
                "'{agent}' takes mail from approved contacts only. A contact request is waiting for it now; \
                 once it calls respond_contact(accept=true), send again"
            ),
            Refusal::ConsentBlocked { agent } => {
                format!("'{agent}' takes no mail from you: its contact policy or a block stands in the way")
            }
            Refusal::NoRecipients => {
                "the message has no recipients; name at least one registered agent in 'to'".to_owned()
            }
            Refusal::NoSuchMessage => {
                "there is no such message in this agent's mail; fetch_inbox lists the ids".to_owned()
            }
            Refusal::BadPath { path, why } => format!(
                "'{path}' cannot be reserved: {why}. Give paths relative to the project's root, such as src/app.py or docs/**"
            ),
            Refusal::TooLarge { what, got, limit } => format!(
                "{what} is too large: {got} bytes, at most {limit}. Put long content into a file and attach it, or send it in parts"
            ),
            Refusal::NoSuchPeer { peer } => format!("project '{peer}' not found"),
            other => other.to_string(),
        };
        Self::new(code, message)
    }
}

/// The code of a refusal that has one of its own.
fn named_code(refusal: &Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::NoSuchAgent { .. } => "AGENT_NOT_FOUND",
        Refusal::NoSuchContact { .. } => "CONTACT_NOT_FOUND",
        Refusal::NoSuchMessage => "MESSAGE_NOT_FOUND",
        Refusal::NoSuchConversation { .. } | Refusal::NoSuchThread => "THREAD_NOT_FOUND",
        Refusal::NoSuchTurn => "TURN_NOT_FOUND",
        Refusal::NoSuchScope { .. } => "SCOPE_NOT_FOUND",
        Refusal::NoSuchTask { .. } => "TASK_NOT_FOUND",
        Refusal::NoSuchReservation => "RESERVATION_NOT_FOUND",
        Refusal::NoSuchPeer { .. } => "PROJECT_NOT_FOUND",
        Refusal::NoSuchToken => "AUTHENTICATION_REQUIRED",
        Refusal::NotAParticipant { .. } | Refusal::NoSuchParticipant { .. } => "NOT_A_PARTICIPANT",
        Refusal::ConsentPending { .. } => "CONTACT_REQUIRED",
        Refusal::ConsentBlocked { .. } => "CONTACT_BLOCKED",
        Refusal::AgentExists { .. } | Refusal::LooksTaken { .. } => "NAME_TAKEN",
        Refusal::WrongState { .. } => "AGENT_RETIRED",
        Refusal::KeyReused { .. } => "KEY_REUSED",
        Refusal::ConversationExists { .. } => "THREAD_EXISTS",
        Refusal::ConversationClosed { .. } => "THREAD_CLOSED",
        Refusal::AlreadyJoined { .. } => "ALREADY_JOINED",
        Refusal::TaskExists { .. } => "TASK_EXISTS",
        Refusal::TaskEnded { .. } => "TASK_ENDED",
        Refusal::ReservationExists { .. } => "RESERVATION_EXISTS",
        Refusal::NoRecipients => "NO_RECIPIENTS",
        Refusal::BadPath { .. } => "INVALID_PATH",
        Refusal::BadId(_) | Refusal::BadName { .. } => "INVALID_NAME",
        Refusal::BadValue { field: "paths", .. } => "EMPTY_PATHS",
        Refusal::BadQuery { .. } => "INVALID_QUERY",
        Refusal::StaleCursor => "INVALID_CURSOR",
        Refusal::TooMuchWork { .. } => "TOO_MUCH_WORK",
        Refusal::DiskNearlyFull { .. } => "DISK_NEARLY_FULL",
        Refusal::TooCostly { .. } => "TOO_COSTLY",
        _ => return None,
    })
}

/// The code of every other refusal.
fn class_code(class: RefusalClass) -> &'static str {
    match class {
        RefusalClass::NotFound => "NOT_FOUND",
        RefusalClass::Forbidden => "NOT_ALLOWED",
        RefusalClass::Conflict | RefusalClass::Invalid => "INVALID_ARGUMENT",
        RefusalClass::OverLimit => "TOO_MANY",
        RefusalClass::TooLarge => "TOO_LARGE",
        RefusalClass::RateLimited => "TOO_MANY_REQUESTS",
        RefusalClass::StorageFull => "QUOTA_EXCEEDED",
        RefusalClass::Busy => "BUSY",
    }
}

/// The error of a name that no agent has.
pub(super) fn unknown_agent(name: &str, near: &[&str]) -> DoorError {
    let hint = if near.is_empty() {
        "; register_agent makes one, list_agents shows who is there".to_owned()
    } else {
        did_you_mean(near)
    };
    DoorError::new("AGENT_NOT_FOUND", format!("agent '{name}' not found{hint}")).with_nearest(near)
}

/// `; did you mean a, b?`, or nothing.
pub(super) fn did_you_mean(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

/// Up to three names that a misspelled one could have meant, the nearest first.
pub(super) fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = typed.to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .filter(|name| name.len() <= 512 && wanted.len() <= 512)
        .filter_map(|name| {
            let candidate = name.to_lowercase();
            let far = edit_distance(&wanted, &candidate);
            // A third of the characters differ at most, or one name begins with the other.
            let near = far <= candidate.chars().count().max(wanted.chars().count()).div_ceil(3)
                || (wanted.len() > 3 && (candidate.starts_with(&wanted) || wanted.starts_with(&candidate)));
            near.then_some((far, name))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// What the door answers to a refusal, as one line, for the test that pins the answers of all doors.
pub fn refused(refusal: Refusal) -> String {
    super::dispatch::text(&DoorError::from(EngineError::from(refusal)).to_wire().error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_find_the_nearest() {
        let names = ["BlueLake", "GreenHarbor", "worker_42"];
        for (typed, found) in [
            ("BlueLak", vec!["BlueLake"]),
            ("bluelake", vec!["BlueLake"]),
            ("GrenHarbour", vec!["GreenHarbor"]),
            ("worker", vec!["worker_42"]),
            ("Zebra", vec![]),
        ] {
            assert_eq!(nearest(typed, names.into_iter()), found, "{typed}");
        }
    }
}
