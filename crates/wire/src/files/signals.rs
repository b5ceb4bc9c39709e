//! Hooks (an agent's assigned work) and nudges (the latest signal to an agent), kept next to the mail directory. Field
//! names are parsed in snake case and camel case; only nudges are written.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::text;

/// Directory of hooks, next to the mail directory.
pub const HOOKS_DIR: &str = "hooks";
/// Directory of nudges, next to the mail directory.
pub const NUDGES_DIR: &str = "nudge";
/// File with an agent's latest nudge.
pub const LATEST_NUDGE_FILE: &str = "latest.json";

/// The nudge types that peers support.
pub const NUDGE_TYPES: [&str; 6] =
    ["health_check", "stall_warning", "priority_change", "abort", "sync_request", "nudge_response"];

/// The work assigned to an agent. Serialized as in responses, which is not the form of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    /// The agent.
    pub agent: String,
    /// `empty`, `pending`, `active` or `completed`.
    pub status: String,
    /// Id of the work item, if there is one.
    #[serde(rename = "bead_id")]
    pub bead: Option<String>,
    /// Title of the work item.
    pub title: Option<String>,
    /// Time of the assignment, as written in the file.
    pub assigned_at: Option<String>,
    /// Time of the agent's last activity, as written in the file.
    pub last_activity: Option<String>,
}

impl Hook {
    /// Parses a hook file; `None` if it is invalid, which peers treat as no hook.
    #[must_use]
    pub fn parse(bytes: &[u8], agent: &str) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return None };
        let work = either(&fields, "work_item", "workItem").and_then(Value::as_object);
        let work_field = |snake, camel| work.and_then(|work| text_of(work, snake, camel));
        Some(Self {
            agent: text_of(&fields, "agent_id", "agentId").unwrap_or_else(|| agent.to_owned()),
            status: text_of(&fields, "status", "status")?,
            bead: work_field("bead_id", "beadId"),
            title: work_field("title", "title"),
            assigned_at: work_field("assigned_at", "assignedAt"),
            last_activity: text_of(&fields, "last_activity", "lastActivity"),
        })
    }

    /// The hook as JSON, for API responses.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A signal to an agent; it replaces the previous one. Files of other writers are parsed with [`Nudge::parse`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nudge {
    /// The sender.
    pub from: String,
    /// The type; one of [`NUDGE_TYPES`] in files that we write.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    pub message: String,
    /// The sending time, as written in the file.
    pub timestamp: String,
    /// Whether the sender requests a response.
    pub requires_response: bool,
}

impl Nudge {
    /// Parses a nudge file; `None` if it is invalid.
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

    /// The nudge as a JSON object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The exact text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::canonical(&self.to_value())
    }
}

/// A nudge and the agent that it was sent to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentNudge {
    /// The nudge.
    #[serde(flatten)]
    pub nudge: Nudge,
    /// The agent.
    pub to: String,
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
    fn hooks_parse_in_snake_and_camel_case() {
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
    fn nudge_round_trips() {
        let nudge = Nudge {
            from: "witness".into(),
            kind: "health_check".into(),
            message: "still there?".into(),
            timestamp: "2026-03-05T10:30:00Z".into(),
            requires_response: true,
        };
        assert_eq!(Nudge::parse(nudge.to_text().as_bytes()), Some(nudge));
    }

    #[test]
    fn hooks_and_nudges_are_shown_with_their_members_in_order() {
        let hook = r#"{"agent":"p","status":"pending","bead_id":"gt-1","title":null,"assigned_at":null,"last_activity":null}"#;
        let nudge = r#"{"from":"w","type":"abort","message":"stop","timestamp":"t","requires_response":false,"to":"p"}"#;
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Hook>(hook).unwrap()).unwrap(), hook);
        assert_eq!(serde_json::to_string(&serde_json::from_str::<SentNudge>(nudge).unwrap()).unwrap(), nudge);
    }
}
