//! A file's message as a message of the engine, and the other way round.

use posthaste_engine::nouns::{
    Address, AgentId, Audience, Body, ConversationId, Json, Message, MessageId, Millis, Priority, Seq,
};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_wire::files::{FileMessage, FileName, Kind, Stamp, Urgency, check_agent};
use serde::Serialize;
use serde_json::{Map, Value};

use posthaste_host::attachments;
use posthaste_host::plain_text;

/// The tag of agents and messages that come in by this door.
pub(super) const VIA: &str = "files";
/// The sender in the file's name where the real sender's name is not valid there.
const SUBSTITUTE_SENDER: &str = "posthaste";

/// The idempotency key of a file: each file becomes a message once.
pub(super) fn key_of(mailbox: &str, file: &str) -> String {
    format!("files:{mailbox}/{file}")
}

/// The file that a key names, if it is one of this mailbox.
pub(super) fn file_of<'a>(mailbox: &str, key: &'a str) -> Option<&'a str> {
    key.strip_prefix("files:")?.strip_prefix(mailbox)?.strip_prefix('/')
}

/// A file as a message to the owner of the mailbox.
pub(super) fn to_message(mailbox: &AgentId, file: &str, message: &FileMessage) -> SendMessage {
    let body = match &message.body {
        Value::String(text) => Body::Text(text.clone()),
        other => Json::new(other.to_string()).map_or_else(|_| Body::Text(other.to_string()), Body::Json),
    };
    let mut kept = message.extra.clone();
    kept.insert("timestamp".to_owned(), message.timestamp.as_str().into());
    kept.insert("file".to_owned(), file.into());
    let text = |field: &str| message.extra.get(field).and_then(Value::as_str);
    // Files have three priorities; `to_file` writes the others as `importance`.
    let priority = match (message.priority.as_str(), text("importance")) {
        ("urgent", Some("high")) | ("high", _) => Priority::HIGH,
        ("low", Some("bulk")) => Priority::BULK,
        ("urgent", _) => Priority::URGENT,
        ("low", _) => Priority::LOW,
        ("normal", _) => Priority::NORMAL,
        (other, _) => {
            kept.insert("priority".to_owned(), other.into());
            Priority::NORMAL
        }
    };
    if message.to != mailbox.as_str() {
        kept.insert("to".to_owned(), message.to.as_str().into());
    }
    let within =
        text("thread_id").and_then(|id| ConversationId::new(id).ok()).map(|conversation| ConversationRef {
            conversation,
            thread: None,
            reply_to: None,
            visibility: None,
            join: JoinMode::NameOnly { kind: "thread".to_owned() },
        });
    let in_reply_to = text("in_reply_to").and_then(|id| id.parse().ok()).map(MessageId);
    SendMessage {
        kind: message.kind.clone(),
        subject: Some(message.subject.clone()),
        body,
        priority,
        ack_required: matches!(message.extra.get("ack_required"), Some(Value::Bool(true)))
            || text("ack_required") == Some("true"),
        within,
        in_reply_to,
        key: Some(key_of(mailbox.as_str(), file)),
        meta: serde_json::to_string(&FileMeta { files: &kept }).ok().and_then(|meta| Json::new(meta).ok()),
        audience: Audience::Parties,
        ..SendMessage::text(vec![Address::Agent(mailbox.clone())], String::new())
    }
}

/// What a message keeps of its file.
#[derive(Serialize)]
struct FileMeta<'a> {
    files: &'a Map<String, Value>,
}

/// The name of a message's file. It depends on the message only, so that writing it again changes nothing. The message's
/// number in the event log fills the decimals below a millisecond.
pub(super) fn file_name(at: Millis, seq: Seq, from: &AgentId) -> String {
    FileName::write(stamp(at, seq), sender(from))
}

fn stamp(at: Millis, seq: Seq) -> Stamp {
    Stamp::nearest(i128::from(at) * 1_000_000 + i128::from(seq.rem_euclid(1_000_000)))
}

fn sender(from: &AgentId) -> &str {
    check_agent(from.as_str()).unwrap_or(SUBSTITUTE_SENDER)
}

/// A message as a file in a mailbox. What has no member among the eight is added as further members, which peers keep.
pub(super) fn to_file(mailbox: &AgentId, message: &Message) -> FileMessage {
    let mut extra = Map::new();
    // Further members of the file that a message came from.
    if let Some(Value::Object(kept)) =
        message.meta.as_ref().and_then(|meta| meta.value().get("files").cloned())
    {
        extra.extend(
            kept.into_iter().filter(|(field, _)| !matches!(field.as_str(), "timestamp" | "file" | "to")),
        );
    }
    let mut add = |field: &str, text: String| extra.insert(field.to_owned(), Value::String(text));
    add("message_id", message.id.to_string());
    if let Some(conversation) = &message.conversation {
        add("thread_id", conversation.to_string());
    }
    if let Some(id) = message.in_reply_to {
        add("in_reply_to", id.to_string());
    }
    if message.ack_required {
        add("ack_required", "true".to_owned());
    }
    let files = attachments::described(message);
    if !files.is_empty() {
        add("attachments", files.join("\n"));
    }
    let kind = Kind::parse(&message.kind).unwrap_or_else(|| {
        if !message.kind.is_empty() {
            add("kind", message.kind.clone());
        }
        Kind::Coordination
    });
    let urgency = match message.priority {
        Priority::URGENT => Urgency::Urgent,
        Priority::HIGH => {
            add("importance", "high".to_owned());
            Urgency::Urgent
        }
        Priority::NORMAL => Urgency::Normal,
        Priority::BULK => {
            add("importance", "bulk".to_owned());
            Urgency::Low
        }
        _ => Urgency::Low,
    };
    if sender(&message.from) != message.from.as_str() {
        add("sender", message.from.to_string());
    }
    FileMessage {
        from: sender(&message.from).to_owned(),
        to: mailbox.to_string(),
        kind: kind.as_str().to_owned(),
        subject: plain_text::heading(message),
        body: Value::String(plain_text::text(message)),
        timestamp: stamp(message.at, message.seq).to_string(),
        read: false,
        priority: urgency.as_str().to_owned(),
        extra,
    }
}
