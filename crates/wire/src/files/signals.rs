//! The neighbours of mail in the same state directory: hooks (what an agent is to work on) and nudges (the latest signal
//! to an agent). Both are read in both spellings of their fields; only nudges are written.

use serde_json::{Map, Value, json};

use super::text;

/// The directory of hooks, beside the mail directory.
pub const HOOKS: &str = "hooks";
/// The directory of nudges, beside the mail directory.
pub const NUDGES: &str = "nudge";
/// The file that holds an agent's latest nudge.
pub const LATEST: &str = "latest.json";

/// The types of nudges that the peers know.
pub const NUDGE_TYPES: [&str; 6] =
    ["health_check", "stall_warning", "priority_change", "abort", "sync_request", "nudge_response"];

/// What an agent is to work on.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// Whose hook.
    pub agent: String,
    /// `empty`, `pending`, `active` or `completed`.
    pub status: String,
    /// The work, if there is some.
    pub bead: Option<String>,
    /// What the work is called.
    pub title: Option<String>,
    /// When it was assigned, as written.
    pub assigned_at: Option<String>,
    /// When the agent last did something, as written.
    pub last_activity: Option<String>,
}

impl Hook {
    /// Reads a hook file; nothing if it is none, which peers count as no hook.
    #[must_use]
    pub fn parse(bytes: &[u8], agent: &str) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return None };
        let work = either(&fields, "work_item", "workItem").and_then(Value::as_object);
        let of_work = |snake, camel| work.and_then(|work| text_of(work, snake, camel));
        Some(Self {
            agent: text_of(&fields, "agent_id", "agentId").unwrap_or_else(|| agent.to_owned()),
            status: text_of(&fields, "status", "status")?,
            bead: of_work("bead_id", "beadId"),
            title: of_work("title", "title"),
            assigned_at: of_work("assigned_at", "assignedAt"),
            last_activity: text_of(&fields, "last_activity", "lastActivity"),
        })
    }

    /// As programs read it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "agent": self.agent, "status": self.status, "bead_id": self.bead, "title": self.title,
            "assigned_at": self.assigned_at, "last_activity": self.last_activity,
        })
    }
}

/// A signal to an agent; a later one takes its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Nudge {
    /// Who nudges.
    pub from: String,
    /// One of [`NUDGE_TYPES`] when we write it.
    pub kind: String,
    /// What it says.
    pub message: String,
    /// When, as written.
    pub timestamp: String,
    /// Whether an answer is asked for.
    pub requires_response: bool,
}

impl Nudge {
    /// Reads a nudge file.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return None };
        Some(Self {
            from: text_of(&fields, "from", "from")?,
            kind: text_of(&fields, "type", "type").unwrap_or_default(),
            message: text_of(&fields, "message", "payload").unwrap_or_default(),
            timestamp: text_of(&fields, "timestamp", "timestamp").unwrap_or_default(),
            requires_response: either(&fields, "requires_response", "requiresResponse")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        })
    }

    /// As one object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "from": self.from, "type": self.kind, "message": self.message, "timestamp": self.timestamp,
            "requires_response": self.requires_response,
        })
    }

    /// The file's exact text.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::canonical(&self.to_value())
    }
}

fn either<'a>(fields: &'a Map<String, Value>, snake: &str, camel: &str) -> Option<&'a Value> {
    fields.get(snake).or_else(|| fields.get(camel))
}

fn text_of(fields: &Map<String, Value>, snake: &str, camel: &str) -> Option<String> {
    either(fields, snake, camel).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_read_in_both_spellings() {
        let snake = br#"{"agent_id":"p","status":"pending","work_item":{"bead_id":"gt-1","title":"t","assigned_at":"a"},"last_activity":"l"}"#;
        let camel = br#"{"agentId":"p","status":"pending","workItem":{"beadId":"gt-1","title":"t","assignedAt":"a"},"lastActivity":"l"}"#;
        let hook = Hook::parse(snake, "p").unwrap();
        assert_eq!(Some(&hook), Hook::parse(camel, "p").as_ref());
        assert_eq!((hook.bead.as_deref(), hook.status.as_str()), (Some("gt-1"), "pending"));
        let empty = Hook::parse(br#"{"status":"empty","work_item":null}"#, "q").unwrap();
        assert_eq!((empty.agent.as_str(), empty.bead), ("q", None));
        for broken in [&b"{"[..], b"[]", b"{}"] {
            assert_eq!(Hook::parse(broken, "p"), None);
        }
    }

    #[test]
    fn a_nudge_is_read_as_it_was_written() {
        let nudge = Nudge {
            from: "witness".into(),
            kind: "health_check".into(),
            message: "still there?".into(),
            timestamp: "2026-03-05T10:30:00Z".into(),
            requires_response: true,
        };
        assert_eq!(Nudge::parse(nudge.to_text().as_bytes()), Some(nudge));
    }
}
