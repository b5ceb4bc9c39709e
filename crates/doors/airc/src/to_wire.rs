//! Identities and letters as this door shows them.

use posthaste_engine::nouns::{Address, Agent, Body, DeliveryState, Json as Kept, Message, Millis, Priority};
use posthaste_engine::views::InboxMessage;
use posthaste_wire::airc::{Envelope, PROTOCOL_VERSION};
use posthaste_wire::time::to_rfc3339;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::VIA;
use posthaste_host::attachments;
use posthaste_host::plain_text;

/// An identity. The keys are public, tokens never are.
pub(super) fn identity(agent: &Agent, registry: &str) -> Value {
    let keys = agent.keys.as_ref().map_or(Value::Null, Kept::value);
    let created = to_rfc3339(agent.created_at);
    let moment = |name: &str| keys[name].as_i64().map(to_rfc3339);
    let status = match agent.state.as_str() {
        Agent::REVOKED => "revoked",
        Agent::SUSPENDED => "suspended",
        _ => "active",
    };
    let former: Vec<Value> = keys["former"].as_array().into_iter().flatten().map(former_key).collect();
    json!({
        "handle": agent.id,
        "username": agent.id,
        "display_name": agent.name,
        "public_key": keys["public_key"],
        "publicKey": keys["public_key"],
        "recovery_key": keys["recovery_key"],
        "capabilities": agent.capabilities.as_ref().map_or_else(|| json!([]), Kept::value),
        "registry": registry,
        "status": status,
        "created_at": created,
        "createdAt": created,
        "updated_at": to_rfc3339(agent.updated_at),
        "key_rotated_at": moment("rotated_at"),
        "revoked_at": moment("revoked_at"),
        "previous_keys": former,
    })
}

fn former_key(key: &Value) -> Value {
    json!({ "public_key": key["public_key"], "valid_until": key["until"].as_i64().map(to_rfc3339) })
}

/// A letter as its recipient may verify it: the envelope verbatim, with what the registry knows under `delivery`.
pub(super) fn enveloped(letter: &InboxMessage) -> Option<Box<RawValue>> {
    let mut delivery = json!({
        "seq": letter.message.seq,
        "received_at": to_rfc3339(letter.message.at),
        "read": matches!(letter.delivery.state, DeliveryState::Read | DeliveryState::Acked),
        "acked": letter.delivery.state == DeliveryState::Acked,
        "to": letter.delivery.agent,
        "id": id_of(&letter.message),
    });
    if is_foreign(&letter.message) {
        put_outside(&mut delivery, &letter.message);
    }
    let text = match &letter.message.envelope {
        Some(envelope) => Envelope::with_delivery(envelope, &delivery.to_string()),
        None => {
            let mut made = stand_in(&letter.message);
            made.insert("delivery".to_owned(), delivery);
            Value::Object(made).to_string()
        }
    };
    RawValue::from_string(text).ok()
}

/// What a letter of another door says on its outside: its payload may be of a form that has no place for it.
fn put_outside(delivery: &mut Value, message: &Message) {
    delivery["door"] = json!(message.via);
    delivery["priority"] = json!(priority(message.priority));
    delivery["ack_required"] = json!(message.ack_required);
    let subject = plain_text::heading(message);
    if !subject.is_empty() {
        delivery["subject"] = json!(subject);
    }
    if let Some(answered) = message.in_reply_to {
        delivery["in_reply_to"] = json!(answered);
    }
    let files = files(message);
    if !files.is_empty() {
        delivery["attachments"] = files.into();
    }
}

/// The files that a message carries. They are downloaded at this door, since its tokens open no other.
fn files(message: &Message) -> Vec<Value> {
    attachments::shown_below(message, &format!("/messages/{}/attachments", message.id))
}

/// A letter as Safe Mode's clients read it. Clients take any payload for something structured, so a plain text has none
/// unless its sender gave one.
pub(super) fn flat(letter: &InboxMessage) -> Value {
    let message = &letter.message;
    let envelope = envelope_of(message);
    let payload = envelope.get("payload").filter(|_| !is_plain(message)).cloned().unwrap_or(Value::Null);
    let created = to_rfc3339(message.at);
    let mut flat = json!({
        "id": id_of(message),
        "from": message.from,
        "to": envelope.get("to").and_then(Value::as_str).map_or("", |to| plain(to)),
        "text": text_of(message, &envelope, &payload),
        "body": text_of(message, &envelope, &payload),
        "type": type_of(message).unwrap_or_else(|| "text".to_owned()),
        "payload": payload,
        "thread_id": envelope.get("thread_id"),
        "reply_to": envelope.get("reply_to"),
        "timestamp": message.at / 1_000,
        "created_at": created,
        "createdAt": created,
        "seq": message.seq,
        "read": matches!(letter.delivery.state, DeliveryState::Read | DeliveryState::Acked),
        "signature": envelope.get("signature"),
    });
    let files = files(message);
    if !files.is_empty() {
        flat["attachments"] = files.into();
    }
    flat
}

/// The sender's name for a letter, or ours.
pub(super) fn id_of(message: &Message) -> String {
    let envelope = envelope_of(message);
    envelope.get("id").and_then(Value::as_str).map_or_else(|| message.id.to_string(), str::to_owned)
}

/// `payload.type` as a recipient sees it; nothing for an envelope without payload.
pub(super) fn type_of(message: &Message) -> Option<String> {
    if is_foreign(message) {
        return payload(message)["type"].as_str().map(str::to_owned);
    }
    match (message.kind.is_empty(), &message.envelope) {
        (false, _) => Some(message.kind.clone()),
        (true, Some(_)) => None,
        (true, None) => Some("text".to_owned()),
    }
}

/// Whether a letter came by another door.
fn is_foreign(message: &Message) -> bool {
    message.via != VIA && message.envelope.is_none()
}

/// Letters of other doors that are more than a line are shown as mailbox entries.
fn is_mail(message: &Message) -> bool {
    message.subject.is_some()
        || message.ack_required
        || message.expires_at.is_some()
        || message.priority != Priority::NORMAL
}

/// Whether a letter is a text and nothing else, so that its payload would be of this door's making.
fn is_plain(message: &Message) -> bool {
    let given = || message.meta.as_ref().is_some_and(|meta| meta.value()["airc"].get("payload").is_some());
    message.envelope.is_none()
        && matches!(message.body, Body::Text(_))
        && !(is_foreign(message) && is_mail(message))
        && !given()
}

fn envelope_of(message: &Message) -> Map<String, Value> {
    let kept = message.envelope.as_ref().and_then(|text| serde_json::from_str(text).ok());
    kept.unwrap_or_else(|| stand_in(message))
}

/// An envelope for a letter that came without one: from Safe Mode, or by another door.
fn stand_in(message: &Message) -> Map<String, Value> {
    let said = message.meta.as_ref().map_or(Value::Null, Kept::value);
    let said = said.get("airc").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut made = Map::new();
    let mut put = |name: &str, value: Value| drop(made.insert(name.to_owned(), value));
    put("v", json!(PROTOCOL_VERSION));
    put("id", said.get("id").cloned().unwrap_or_else(|| json!(message.id)));
    put("from", json!(message.from));
    put("to", said.get("to").cloned().unwrap_or_else(|| json!(aimed(message))));
    put("timestamp", json!(message.at / 1_000));
    let thread = said.get("thread_id").cloned().or_else(|| message.conversation.as_ref().map(|id| json!(id)));
    if let Some(thread) = thread {
        put("thread_id", thread);
    }
    if let Some(answered) = said.get("reply_to") {
        put("reply_to", answered.clone());
    }
    match &message.body {
        Body::Text(text) => put("body", json!(text)),
        Body::Json(json) => {
            if let Some(text) = plain_text::spoken(&json.value()) {
                put("body", json!(text));
            }
        }
    }
    put("payload", said.get("payload").cloned().unwrap_or_else(|| payload(message)));
    made
}

fn payload(message: &Message) -> Value {
    let said = match &message.body {
        Body::Text(text) => json!(text),
        Body::Json(json) => json.value(),
    };
    // A payload of the sender's own with a type is carried untouched, as one of this door would be.
    let typed = said.get("type").is_some_and(Value::is_string);
    let prose = plain_text::spoken(&said).is_some();
    if is_mail(message) && (prose || !typed) {
        let subject = Some(plain_text::heading(message)).filter(|subject| !subject.is_empty());
        let mut mail = json!({
            "type": "context:mailbox",
            "message_id": message.id,
            "subject": subject.as_deref().unwrap_or("(no subject)"),
            "body_md": plain_text::text(message),
            "ack_required": message.ack_required,
            "priority": priority(message.priority),
        });
        if !message.kind.is_empty() {
            mail["kind"] = json!(message.kind);
        }
        if let Some(expires) = message.expires_at {
            mail["expires_ts"] = json!(to_rfc3339(expires));
        }
        if let Some(thread) = &message.conversation {
            mail["thread_id"] = json!(thread);
        }
        return mail;
    }
    if typed {
        return said;
    }
    json!({ "type": if message.kind.is_empty() { "text" } else { &message.kind }, "content": said })
}

fn priority(priority: Priority) -> &'static str {
    match priority.tier() {
        1 => "urgent",
        2 => "high",
        3 => "normal",
        _ => "low",
    }
}

/// `to` in one word.
fn aimed(message: &Message) -> String {
    match message.to.first() {
        Some(Address::Agent(agent)) => agent.to_string(),
        Some(Address::Contacts) => "@contacts".to_owned(),
        Some(Address::Remote { agent, realm }) => format!("{agent}@{realm}"),
        _ => "@public".to_owned(),
    }
}

/// A handle without `@`; broadcast targets keep theirs.
fn plain(to: &str) -> &str {
    match to.trim() {
        target @ ("@contacts" | "@public") => target,
        other => other.trim_start_matches('@'),
    }
}

fn text_of(message: &Message, envelope: &Map<String, Value>, payload: &Value) -> Value {
    let member = |name: &str| payload[name].as_str().map(str::to_owned);
    let body = envelope.get("body").and_then(Value::as_str).map(str::to_owned);
    let found = body.or_else(|| member("content")).or_else(|| member("text")).or_else(|| member("body_md"));
    match (found, &message.body) {
        (Some(text), _) => json!(text),
        (None, Body::Text(text)) => json!(text),
        (None, Body::Json(json)) => json!(json.as_str()),
    }
}

/// A moment of the books in whole seconds and in words.
pub(super) fn moment(at: Millis) -> Value {
    json!(to_rfc3339(at))
}
