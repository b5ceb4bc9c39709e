//! The contents of a message file.
//!
//! Written are eight fields: `body`, `from`, `priority`, `read`, `subject`, `timestamp`, `to`, `type`. Parsed are also
//! files without some of them, and the variant of the peers' tests (`from`, `to`, `channel`, `payload`, `timestamp`,
//! `durable`), which has no `read`, `type` and `subject`.

use serde_json::{Map, Value};

use super::name::FileName;
use super::text;

/// Longest subject derived from a body, in characters.
const MAX_DERIVED_SUBJECT_CHARS: usize = 80;

macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $name_on_disk:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $variant),+ }

        impl $name {
            /// The names of all values, as written in files.
            pub const NAMES: &'static [&'static str] = &[$($name_on_disk),+];

            /// The name of the value, as written in files.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name_on_disk),+ }
            }

            /// Parses a name, case-sensitively.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($name_on_disk => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

string_enum! {
    /// The type of a message.
    Kind {
        /// New work, assigned through a hook.
        WorkAssignment = "work_assignment",
        /// Work was completed.
        CompletionReport = "completion_report",
        /// The result of a merge.
        MergeNotification = "merge_notification",
        /// An agent is stuck.
        HealthEscalation = "health_escalation",
        /// Anything else.
        Coordination = "coordination",
    }
}

string_enum! {
    /// The priority of a message.
    Urgency {
        /// To be handled immediately.
        Urgent = "urgent",
        /// To be handled in order.
        Normal = "normal",
        /// To be handled when idle.
        Low = "low",
    }
}

/// The contents of a message file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileMessage {
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The type; one of [`Kind`] in files that we write.
    pub kind: String,
    /// The subject.
    pub subject: String,
    /// The body; a string in files that we write.
    pub body: Value,
    /// The sending time, as written in the file.
    pub timestamp: String,
    /// Whether the recipient has read it.
    pub read: bool,
    /// The priority; one of [`Urgency`] in files that we write.
    pub priority: String,
    /// All other fields of the file.
    pub extra: Map<String, Value>,
}

/// Why a file is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAMessage {
    /// The text is not JSON; the file may be incomplete, because its sender is still writing it.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// The sender is missing.
    #[error("no `from`")]
    NoSender,
}

impl FileMessage {
    /// Parses a file. The mailbox and file name replace a missing recipient and timestamp.
    ///
    /// # Errors
    /// Says why the file is not a message.
    pub fn parse(bytes: &[u8], mailbox: &str, name: &str) -> Result<Self, NotAMessage> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| NotAMessage::NotJson(error.to_string()))?;
        let Value::Object(mut fields) = value else { return Err(NotAMessage::NotAnObject) };
        let read = is_read(&fields);
        fields.remove("read");
        let mut text = |field: &str| match fields.get(field) {
            Some(Value::String(_)) => match fields.remove(field) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
            _ => None,
        };
        let from = text("from").filter(|from| !from.is_empty()).ok_or(NotAMessage::NoSender)?;
        let to = text("to").unwrap_or_else(|| mailbox.to_owned());
        let kind = text("type").unwrap_or_else(|| Kind::Coordination.as_str().to_owned());
        let priority = text("priority").unwrap_or_else(|| Urgency::Normal.as_str().to_owned());
        let subject = text("subject");
        let stamp = || FileName::parse(name).map(|name| name.stamp.to_string());
        let timestamp = text("timestamp").or_else(stamp).unwrap_or_default();
        let body =
            fields.remove("body").or_else(|| fields.remove("payload")).unwrap_or_else(|| Value::from(""));
        let subject = subject.unwrap_or_else(|| derived_subject(&body));
        Ok(Self { from, to, kind, subject, body, timestamp, read, priority, extra: fields })
    }

    /// The body as text.
    #[must_use]
    pub fn body_text(&self) -> String {
        as_text(&self.body)
    }

    /// The message as a JSON object, including the other fields.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = self.extra.clone();
        let fields = [
            ("from", self.from.as_str().into()),
            ("to", self.to.as_str().into()),
            ("type", self.kind.as_str().into()),
            ("subject", self.subject.as_str().into()),
            ("body", self.body.clone()),
            ("timestamp", self.timestamp.as_str().into()),
            ("read", self.read.into()),
            ("priority", self.priority.as_str().into()),
        ];
        object.extend(fields.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(object)
    }

    /// The exact text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::canonical(&self.to_value())
    }
}

/// Whether `read` is set. Peers test for truthiness, so 1 and non-empty strings count as set.
pub(super) fn is_read(fields: &Map<String, Value>) -> bool {
    match fields.get("read") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(read)) => *read,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

fn as_text(body: &Value) -> String {
    match body {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The subject of a message without one: the upper-case word before the body's first colon, such as `STALL_ALERT`,
/// else the first line, truncated.
fn derived_subject(body: &Value) -> String {
    let text = as_text(body);
    let line = text.lines().next().unwrap_or_default().trim();
    let word = line.split(':').next().unwrap_or_default();
    let is_upper_case =
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    match is_upper_case {
        true => word.to_owned(),
        false => line.chars().take(MAX_DERIVED_SUBJECT_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "2026-03-05T10-30-00Z-mayor-a1b2c.json";

    fn parse(text: &str) -> Result<FileMessage, NotAMessage> {
        FileMessage::parse(text.as_bytes(), "polecat-alpha", NAME)
    }

    #[test]
    fn message_round_trips_byte_for_byte() {
        let text = "{\n  \"body\": \"Implement it.\",\n  \"from\": \"mayor-a1b2c\",\n  \"priority\": \"normal\",\n  \"read\": false,\n  \"subject\": \"Bead gt-abc12\",\n  \"timestamp\": \"2026-03-05T10:30:00Z\",\n  \"to\": \"polecat-alpha\",\n  \"type\": \"work_assignment\",\n  \"x\": {\n    \"a\": 1,\n    \"b\": [\n      true\n    ]\n  }\n}\n";
        assert_eq!(parse(text).unwrap().to_text(), text);
    }

    #[test]
    fn variant_of_the_peers_tests_is_parsed() {
        let message = parse(
            r#"{"from":"witness-01","to":"mayor","channel":"mail","payload":"STALL_ALERT: polecat-2 since 10:00","timestamp":"2026-03-06T09:15:00.000Z","durable":true}"#,
        )
        .unwrap();
        assert_eq!((message.subject.as_str(), message.read), ("STALL_ALERT", false));
        assert_eq!((message.kind.as_str(), message.priority.as_str()), ("coordination", "normal"));
        assert_eq!(message.body_text(), "STALL_ALERT: polecat-2 since 10:00");
        assert!(message.extra.contains_key("channel") && message.extra.contains_key("durable"));
    }

    #[test]
    fn missing_fields_get_defaults() {
        let message = parse(r#"{"from":"a","body":{"n":1}}"#).unwrap();
        assert_eq!(message.to, "polecat-alpha");
        assert_eq!(message.timestamp, "2026-03-05T10:30:00.000000000Z");
        assert_eq!(message.body_text(), r#"{"n":1}"#);
    }

    #[test]
    fn invalid_message_reports_the_reason() {
        assert_eq!(parse("[]"), Err(NotAMessage::NotAnObject));
        assert_eq!(parse("{}"), Err(NotAMessage::NoSender));
        assert_eq!(parse(r#"{"from":7}"#), Err(NotAMessage::NoSender));
        for broken in ["", "{\"from\":", "not json", &"[".repeat(100_000)] {
            assert!(matches!(parse(broken), Err(NotAMessage::NotJson(_))));
        }
        assert!(FileMessage::parse(b"{\"from\":\"\xff\"}", "m", NAME).is_err());
    }
}
