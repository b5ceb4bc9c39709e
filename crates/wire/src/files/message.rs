//! The eight fields of a message, read in three dialects, written in one.
//!
//! The written one: `body`, `from`, `priority`, `read`, `subject`, `timestamp`, `to`, `type`. Also read: the peers' test
//! dialect (`from`, `to`, `channel`, `payload`, `timestamp`, `durable`), which has no flag, no kind and no heading, and
//! files that leave some of the eight out.

use serde_json::{Map, Value, json};

use super::name::FileName;
use super::text;

/// The longest heading made from a body.
const LONGEST_HEADING: usize = 80;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $variant),+ }

        impl $name {
            /// Every word, as written.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word, exactly.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// What a message is about.
    Kind {
        /// New work, assigned through a hook.
        WorkAssignment = "work_assignment",
        /// Work that is done.
        CompletionReport = "completion_report",
        /// How a merge went.
        MergeNotification = "merge_notification",
        /// Somebody is stuck.
        HealthEscalation = "health_escalation",
        /// Anything else.
        Coordination = "coordination",
    }
}

words! {
    /// How pressing a message is.
    Urgency {
        /// Now.
        Urgent = "urgent",
        /// In turn.
        Normal = "normal",
        /// When there is time.
        Low = "low",
    }
}

/// A message as it stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileMessage {
    /// Who sent it, as the file says.
    pub from: String,
    /// For whom it is.
    pub to: String,
    /// Its type; one of [`Kind`] when we write it.
    pub kind: String,
    /// Its heading.
    pub subject: String,
    /// What it says: a text when we write it.
    pub body: Value,
    /// When it was written, as the file says.
    pub timestamp: String,
    /// Whether the recipient has dealt with it.
    pub read: bool,
    /// How pressing it is; one of [`Urgency`] when we write it.
    pub priority: String,
    /// Whatever else stands in the file.
    pub extra: Map<String, Value>,
}

/// Why a file is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAMessage {
    /// The text cannot be read as JSON; it may still be on its way.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// Nobody is named as its sender.
    #[error("no `from`")]
    NoSender,
}

impl FileMessage {
    /// Reads a file's bytes. The mailbox and the name stand in for what the file leaves out.
    ///
    /// # Errors
    /// Says why this is not a message.
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
        let body = fields.remove("body").or_else(|| fields.remove("payload")).unwrap_or(json!(""));
        let subject = subject.unwrap_or_else(|| heading(&body));
        Ok(Self { from, to, kind, subject, body, timestamp, read, priority, extra: fields })
    }

    /// What it says, as text.
    #[must_use]
    pub fn body_text(&self) -> String {
        as_text(&self.body)
    }

    /// All of it as one object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = self.extra.clone();
        let fields = [
            ("from", json!(self.from)),
            ("to", json!(self.to)),
            ("type", json!(self.kind)),
            ("subject", json!(self.subject)),
            ("body", self.body.clone()),
            ("timestamp", json!(self.timestamp)),
            ("read", json!(self.read)),
            ("priority", json!(self.priority)),
        ];
        object.extend(fields.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(object)
    }

    /// The file's exact text.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::canonical(&self.to_value())
    }
}

/// Whether the flag is set. Peers ask whether it is true in their language's sense, so a 1 or a word is.
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

/// A heading for a body that came without one: the word before its colon if it is spelled in capitals, like
/// `STALL_ALERT`, else the first line, cut short.
fn heading(body: &Value) -> String {
    let text = as_text(body);
    let line = text.lines().next().unwrap_or_default().trim();
    let word = line.split(':').next().unwrap_or_default();
    let shouted =
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    match shouted {
        true => word.to_owned(),
        false => line.chars().take(LONGEST_HEADING).collect(),
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
    fn the_eight_fields_are_read_and_written_byte_for_byte() {
        let text = "{\n  \"body\": \"Implement it.\",\n  \"from\": \"mayor-a1b2c\",\n  \"priority\": \"normal\",\n  \"read\": false,\n  \"subject\": \"Bead gt-abc12\",\n  \"timestamp\": \"2026-03-05T10:30:00Z\",\n  \"to\": \"polecat-alpha\",\n  \"type\": \"work_assignment\",\n  \"x\": {\n    \"a\": 1,\n    \"b\": [\n      true\n    ]\n  }\n}\n";
        assert_eq!(parse(text).unwrap().to_text(), text);
    }

    #[test]
    fn the_test_dialect_is_read() {
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
    fn what_is_left_out_is_filled_in() {
        let message = parse(r#"{"from":"a","body":{"n":1}}"#).unwrap();
        assert_eq!(message.to, "polecat-alpha");
        assert_eq!(message.timestamp, "2026-03-05T10:30:00.000000000Z");
        assert_eq!(message.body_text(), r#"{"n":1}"#);
    }

    #[test]
    fn what_is_no_message_says_why() {
        assert_eq!(parse("[]"), Err(NotAMessage::NotAnObject));
        assert_eq!(parse("{}"), Err(NotAMessage::NoSender));
        assert_eq!(parse(r#"{"from":7}"#), Err(NotAMessage::NoSender));
        for broken in ["", "{\"from\":", "not json", &"[".repeat(100_000)] {
            assert!(matches!(parse(broken), Err(NotAMessage::NotJson(_))));
        }
        assert!(FileMessage::parse(b"{\"from\":\"\xff\"}", "m", NAME).is_err());
    }
}
