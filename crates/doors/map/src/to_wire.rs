//! Nouns as MAP writes them.

use std::fmt::Write as _;

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{
    Address, AgentKind, Body, Conversation, Json, Message, Participant, Priority, Thread, ThreadId, Turn,
    TurnId, TurnSource, TurnVisibility,
};
use posthaste_wire::Id;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::VIA;
pub(super) use super::nouns::{OWN, agent, metadata, own_member, scope, task};
use posthaste_host::attachments;

/// Puts a member in if there is something to say.
pub(super) fn put(object: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[name] = value.into();
    }
}

pub(super) fn turn_id(id: TurnId) -> String {
    Id(id.0.as_u128()).prefixed("turn-").to_string()
}

pub(super) fn thread_id(id: ThreadId) -> String {
    Id(id.0.as_u128()).prefixed("thread-").to_string()
}

pub(super) fn conversation(conversation: &Conversation) -> Value {
    let mut out = json!({
        "id": conversation.id,
        "type": conversation.kind,
        "status": conversation.status.as_str(),
        "participantCount": conversation.participant_count,
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
        "createdBy": conversation.created_by,
        "metadata": conversation.meta.as_ref().map_or_else(|| json!({}), Json::value),
    });
    put(&mut out, "subject", conversation.subject.clone());
    put(&mut out, "parentConversationId", conversation.parent.as_ref().map(ToString::to_string));
    put(&mut out, "parentTurnId", conversation.parent_turn.map(turn_id));
    put(&mut out, "closedAt", conversation.closed_at);
    out
}

pub(super) fn participant(participant: &Participant) -> Value {
    let kind = match participant.kind {
        AgentKind::Agent => "agent",
        AgentKind::User | AgentKind::Admin | AgentKind::Client => "user",
        AgentKind::Gateway | AgentKind::System => "system",
    };
    let may = &participant.permissions;
    let mut out = json!({
        "id": participant.agent,
        "conversationId": participant.conversation,
        "type": kind,
        "role": participant.role,
        "joinedAt": participant.joined_at,
        "permissions": {
            "canSend": may.can_send,
            "canObserve": may.can_observe,
            "canInvite": may.can_invite,
            "canRemove": may.can_remove,
            "canCreateThreads": may.can_create_threads,
            "historyAccess": may.history.as_str(),
            "canSeeInternal": may.can_see_internal,
        },
    });
    put(&mut out, "leftAt", participant.left_at);
    out
}

/// A turn as text: its content is not parsed again.
pub(super) fn turn(turn: &Turn) -> String {
    let mut out = String::with_capacity(384 + turn.content.as_str().len());
    push_turn(&mut out, turn);
    out
}

/// Appends a turn.
pub(super) fn push_turn(out: &mut String, turn: &Turn) {
    out.push_str(r#"{"id":""#);
    push_shown(out, Id(turn.id.0.as_u128()).prefixed("turn-"));
    out.push_str(r#"","conversationId":"#);
    push_text(out, turn.conversation.as_str());
    out.push_str(r#","participant":"#);
    push_text(out, turn.author.as_str());
    out.push_str(r#","timestamp":"#);
    push_shown(out, turn.at);
    out.push_str(r#","contentType":"#);
    push_text(out, &turn.content_type);
    out.push_str(r#","content":"#);
    out.push_str(turn.content.as_str());
    if let Some(thread) = turn.thread {
        out.push_str(r#","threadId":""#);
        out.push_str(&thread_id(thread));
        out.push('"');
    }
    if let Some(answered) = turn.in_reply_to {
        out.push_str(r#","inReplyTo":""#);
        out.push_str(&turn_id(answered));
        out.push('"');
    }
    out.push_str(r#","source":"#);
    match turn.source {
        TurnSource::Explicit => out.push_str(r#"{"type":"explicit","method":"mail/turn"}"#),
        TurnSource::Intercepted(message) => {
            out.push_str(r#"{"type":"intercepted","messageId":""#);
            out.push_str(&message.to_string());
            out.push_str("\"}");
        }
    }
    out.push_str(r#","visibility":"#);
    match &turn.visibility {
        TurnVisibility::All => out.push_str(r#"{"type":"all"}"#),
        TurnVisibility::Private => out.push_str(r#"{"type":"private"}"#),
        TurnVisibility::Internal => out.push_str(r#"{"type":"internal"}"#),
        TurnVisibility::Agents(ids) => {
            out.push_str(&json!({ "type": "participants", "ids": ids }).to_string());
        }
        TurnVisibility::Roles(roles) => {
            out.push_str(&json!({ "type": "role", "roles": roles }).to_string());
        }
    }
    out.push_str(r#","status":"complete""#);
    if let Some(meta) = &turn.meta {
        out.push_str(r#","metadata":"#);
        out.push_str(meta.as_str());
    }
    out.push('}');
}

pub(super) fn turns(turns: &[Turn]) -> String {
    let mut out = String::from("[");
    for (index, one) in turns.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_turn(&mut out, one);
    }
    out.push(']');
    out
}

pub(super) fn thread(thread: &Thread) -> Value {
    let mut out = json!({
        "id": thread_id(thread.id),
        "conversationId": thread.conversation,
        "rootTurnId": turn_id(thread.root),
        "turnCount": thread.turn_count,
        "participantCount": thread.participant_count,
        "createdAt": thread.created_at,
        "updatedAt": thread.updated_at,
        "createdBy": thread.created_by,
    });
    put(&mut out, "parentThreadId", thread.parent.map(thread_id));
    put(&mut out, "subject", thread.subject.clone());
    out
}

/// What MAP wants back of a message beside what the engine knows, as this door keeps it in the message's meta.
#[derive(Debug, Deserialize)]
struct Kept<'a> {
    #[serde(borrow)]
    map: Envelope<'a>,
}

#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    to: Option<&'a RawValue>,
    #[serde(borrow, default)]
    meta: Option<&'a RawValue>,
    #[serde(default)]
    from: Option<String>,
}

/// The meta of a message that came by this door: `to` and `meta` as the sender wrote them.
pub(super) fn keep(
    to: Option<&RawValue>,
    meta: Option<&RawValue>,
    from: Option<&str>,
) -> Result<Option<Json>, Refusal> {
    if to.is_none() && meta.is_none() && from.is_none() {
        return Ok(None);
    }
    for (field, value) in [("to", to), ("meta", meta)] {
        value.map(Json::from_raw).transpose().map_err(|why| Refusal::BadJson { field, why })?;
    }
    let mut text = String::from(r#"{"map":{"#);
    let mut first = true;
    let mut member = |text: &mut String, name: &str, value: &str| {
        if !std::mem::take(&mut first) {
            text.push(',');
        }
        text.push('"');
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    };
    if let Some(to) = to {
        member(&mut text, "to", to.get());
    }
    if let Some(meta) = meta {
        member(&mut text, "meta", meta.get());
    }
    if let Some(from) = from {
        member(&mut text, "from", &Value::from(from).to_string());
    }
    text.push_str("}}");
    Ok(Some(Json::from_checked(&text)))
}

/// How a question that waits for an answer is told apart.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Expectation {
    expects_response: Option<bool>,
    is_result: Option<bool>,
}

/// Whether a message asks for an answer and is not one itself.
pub(super) fn is_question(message: &Message) -> bool {
    let Some(meta) = message.meta.as_ref().filter(|_| message.via == VIA) else { return false };
    // Most messages expect nothing; parsing is for those that may.
    if !meta.as_str().contains("expectsResponse") {
        return false;
    }
    let Ok(kept) = serde_json::from_str::<Kept<'_>>(meta.as_str()) else { return false };
    let said: Expectation =
        kept.map.meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    said.expects_response == Some(true) && said.is_result != Some(true)
}

/// What the usual way of delivering is called: at once where that can be, else kept. The draft has four words for ways,
/// and this is the one that means it.
pub(super) fn usual_semantic(draft: bool) -> &'static str {
    if draft { "inject" } else { "fire-and-forget" }
}

/// What the sender called the way of delivering a message, for the draft's events; what came by other doors is kept until
/// it is fetched.
pub(super) fn semantic(message: &Message) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Way {
        delivery: Option<Value>,
    }
    if message.via != VIA {
        return "queue".to_owned();
    }
    let said = kept(message).and_then(|kept| kept.meta);
    let said: Way = said.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    match said.delivery {
        Some(Value::String(way)) => way,
        _ => usual_semantic(true).to_owned(),
    }
}

/// A message as text: payload and meta are what the sender wrote, byte for byte.
pub(super) fn message(message: &Message) -> String {
    envelope(message, true)
}

/// The same, without what it says for those who want no payloads.
pub(super) fn envelope(message: &Message, payload: bool) -> String {
    let body = if payload { message.body.as_str() } else { "" };
    let mut out =
        String::with_capacity(256 + body.len() + message.meta.as_ref().map_or(0, |m| m.as_str().len()));
    let kept = kept(message);
    out.push_str(r#"{"id":""#);
    push_shown(&mut out, message.id);
    out.push_str(r#"","from":"#);
    let from = kept.as_ref().and_then(|kept| kept.from.as_deref());
    push_text(&mut out, from.unwrap_or(message.from.as_str()));
    out.push_str(r#","to":"#);
    push_kept_to(&mut out, message, kept.as_ref());
    out.push_str(r#","timestamp":"#);
    out.push_str(&message.at.to_string());
    if payload {
        push_payload(&mut out, message);
    }
    match kept.as_ref().and_then(|kept| kept.meta) {
        Some(meta) => {
            out.push_str(r#","meta":"#);
            out.push_str(meta.get());
        }
        None if message.via == VIA => {}
        None => {
            out.push_str(r#","meta":"#);
            out.push_str(&foreign_meta(message).to_string());
        }
    }
    out.push('}');
    out
}

/// What this door kept of a message.
fn kept(message: &Message) -> Option<Envelope<'_>> {
    let meta = message.meta.as_ref().filter(|_| message.via == VIA)?;
    serde_json::from_str(meta.as_str()).ok().map(|Kept { map }| map)
}

/// Whom a message is for, as its sender wrote it.
pub(super) fn push_to(out: &mut String, message: &Message) {
    push_kept_to(out, message, kept(message).as_ref());
}

fn push_kept_to(out: &mut String, message: &Message, kept: Option<&Envelope<'_>>) {
    match kept.and_then(|kept| kept.to) {
        Some(to) => out.push_str(to.get()),
        None => out.push_str(&addresses(&message.to).to_string()),
    }
}

/// The payload: JSON as it came. Prose, which comes by other doors, becomes an object with a subject and a body.
pub(super) fn push_payload(out: &mut String, message: &Message) {
    match &message.body {
        Body::Json(json) => {
            out.push_str(r#","payload":"#);
            out.push_str(json.as_str());
        }
        Body::Text(text) if text.is_empty() && message.via == VIA => {}
        Body::Text(text) => {
            let mut payload = json!({ "body": text });
            put(&mut payload, "subject", message.subject.clone());
            if !message.kind.is_empty() {
                payload["type"] = message.kind.as_str().into();
            }
            out.push_str(r#","payload":"#);
            out.push_str(&payload.to_string());
        }
    }
}

/// The meta of a message of another door, in MAP's words; what that door keeps comes along as it is.
fn foreign_meta(message: &Message) -> Value {
    let mut meta = json!({ "priority": priority(message.priority) });
    put(&mut meta, "correlationId", message.correlation.clone());
    if message.ack_required {
        meta["requireAck"] = true.into();
    }
    if let Some(conversation) = &message.conversation {
        meta["mail"] = json!({ "conversationId": conversation });
    }
    put(&mut meta, "_meta", message.meta.as_ref().map(Json::value));
    let files = attachments::shown(message);
    if !files.is_empty() {
        meta["_meta"]["attachments"] = files.into();
    }
    meta
}

pub(super) fn priority(priority: Priority) -> &'static str {
    match priority.tier() {
        1 => "urgent",
        2 => "high",
        3 => "normal",
        _ => "low",
    }
}

/// Addresses in the engine's words, as MAP writes them.
fn addresses(to: &[Address]) -> Value {
    let names: Option<Vec<&str>> = to
        .iter()
        .map(|address| match address {
            Address::Agent(id) => Some(id.as_str()),
            _ => None,
        })
        .collect();
    match (names, to) {
        (Some(names), _) if names.len() == 1 => json!({ "agent": names[0] }),
        (Some(names), _) => json!({ "agents": names }),
        (None, [one]) => address(one),
        (None, many) => Value::Array(many.iter().map(address).collect()),
    }
}

fn address(address: &Address) -> Value {
    let with_depth = |name: &str, depth: &Option<u32>| {
        let mut out = json!({ name: true });
        put(&mut out, "depth", *depth);
        out
    };
    match address {
        Address::Agent(id) => json!({ "agent": id }),
        Address::Scope(id) => json!({ "scope": id }),
        Address::Role { role, within } => {
            let mut out = json!({ "role": role });
            put(&mut out, "within", within.as_ref().map(ToString::to_string));
            out
        }
        Address::Parent => json!({ "parent": true }),
        Address::Children { depth } => with_depth("children", depth),
        Address::Siblings => json!({ "siblings": true }),
        Address::Ancestors { depth } => with_depth("ancestors", depth),
        Address::Descendants { depth } => with_depth("descendants", depth),
        Address::Kind(AgentKind::Client) => json!({ "participants": "clients" }),
        Address::Kind(_) => json!({ "participants": "agents" }),
        Address::All | Address::Contacts | Address::Public => json!({ "broadcast": true }),
        Address::Remote { agent, realm } => json!({ "system": realm, "agent": agent }),
    }
}

/// How a message fared with one recipient, as text.
pub(super) fn push_receipt(out: &mut String, agent: &str, status: &str, semantic: &str, at: i64) {
    out.push_str(r#"{"agentId":"#);
    push_text(out, agent);
    out.push_str(r#","status":"#);
    push_text(out, status);
    out.push_str(r#","semantic":"#);
    push_text(out, semantic);
    out.push_str(r#","timestamp":"#);
    push_shown(out, at);
    out.push('}');
}

/// Appends what is shown without anything that JSON would escape: numbers and ids.
pub(super) fn push_shown(out: &mut String, shown: impl std::fmt::Display) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{shown}");
}

/// Appends a JSON string.
pub(super) fn push_text(out: &mut String, text: &str) {
    let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// Text that is known to be JSON.
pub(super) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
