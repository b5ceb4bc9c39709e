//! A file's message as a letter of the engine, and a letter as a file.

use posthaste_engine::nouns::{
    Address, AgentId, Audience, Body, ConversationId, Json, Message, MessageId, Millis, Priority, Seq,
};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_wire::files::{FileMessage, FileName, Kind, Stamp, Urgency, check_agent};
use serde_json::{Map, Value, json};

use posthaste_host::attachments;
use posthaste_host::plain_text;

/// The tag of what comes in this way.
pub(super) const VIA: &str = "files";
/// Who is named as the sender of a letter whose sender's name cannot stand in a file's.
const CARRIER: &str = "posthaste";

/// The name under which the sender of a file is known to have sent it: each file becomes a letter once.
pub(super) fn key_of(mailbox: &str, file: &str) -> String {
    format!("files:{mailbox}/{file}")
}

/// The file that a key names, if it is one of this mailbox.
pub(super) fn file_of<'a>(mailbox: &str, key: &'a str) -> Option<&'a str> {
    key.strip_prefix("files:")?.strip_prefix(mailbox)?.strip_prefix('/')
}

/// A file as a letter to the owner of the mailbox.
pub(super) fn letter(mailbox: &AgentId, file: &str, message: &FileMessage) -> SendMessage {
    let body = match &message.body {
        Value::String(text) => Body::Text(text.clone()),
        other => Json::new(other.to_string()).map_or_else(|_| Body::Text(other.to_string()), Body::Json),
    };
    let mut kept = message.extra.clone();
    kept.insert("timestamp".to_owned(), json!(message.timestamp));
    kept.insert("file".to_owned(), json!(file));
    let text = |field: &str| message.extra.get(field).and_then(Value::as_str);
    // What the three words cannot say we add when we write a file, so it is understood when one is read.
    let priority = match (message.priority.as_str(), text("importance")) {
        ("urgent", Some("high")) | ("high", _) => Priority::HIGH,
        ("low", Some("bulk")) => Priority::BULK,
        ("urgent", _) => Priority::URGENT,
        ("low", _) => Priority::LOW,
        ("normal", _) => Priority::NORMAL,
        (other, _) => {
            kept.insert("priority".to_owned(), json!(other));
            Priority::NORMAL
        }
    };
    if message.to != mailbox.as_str() {
        kept.insert("to".to_owned(), json!(message.to));
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
        meta: Json::new(json!({ "files": kept }).to_string()).ok(),
        audience: Audience::Parties,
        ..SendMessage::text(vec![Address::Agent(mailbox.clone())], String::new())
    }
}

/// The name of a letter's file: the same whenever it is asked for, so that writing it again changes nothing. The place in
/// the history stands in the decimals that the clock leaves open.
pub(super) fn name(at: Millis, seq: Seq, from: &AgentId) -> String {
    FileName::write(stamp(at, seq), sender(from))
}

fn stamp(at: Millis, seq: Seq) -> Stamp {
    Stamp::nearest(i128::from(at) * 1_000_000 + i128::from(seq.rem_euclid(1_000_000)))
}

fn sender(from: &AgentId) -> &str {
    check_agent(from.as_str()).unwrap_or(CARRIER)
}

/// A letter as a file in a mailbox. Whatever the eight fields cannot say is added as text, which every peer carries along.
pub(super) fn file(mailbox: &AgentId, message: &Message) -> FileMessage {
    let mut extra = Map::new();
    // What came in by a file comes out by a file.
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
