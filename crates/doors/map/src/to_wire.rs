//! Messages, conversations, turns and receipts as MAP writes them.

use std::borrow::Cow;

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{
    Address, AgentId, AgentKind, Body, Conversation, DeliveryState, Json, Message, Participant, Priority,
    Thread, ThreadId, Turn, TurnId, TurnSource, TurnVisibility,
};
use posthaste_wire::Id;
use posthaste_wire::map::message::{Expectation, ForeignMeta, MailRef, SendMeta, TextPayload, To};
use posthaste_wire::map::{conversation as mail, message as wire, turn as turns};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::VIA;
use posthaste_host::attachments;

pub(super) fn turn_id(id: TurnId) -> String {
    Id(id.0.as_u128()).prefixed("turn-").to_string()
}

pub(super) fn thread_id(id: ThreadId) -> String {
    Id(id.0.as_u128()).prefixed("thread-").to_string()
}

/// A value as JSON text. Wire types have string keys only, so that serializing them cannot fail.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The same as a JSON value that is written verbatim.
pub(super) fn to_raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// JSON of the engine, to be written verbatim. Damaged text becomes a JSON string.
fn verbatim(json: &Json) -> Cow<'_, RawValue> {
    match serde_json::from_str(json.as_str()) {
        Ok(raw) => Cow::Borrowed(raw),
        Err(_) => Cow::Owned(to_raw(&json.value())),
    }
}

pub(super) fn conversation(conversation: &Conversation) -> mail::Conversation {
    mail::Conversation {
        id: conversation.id.to_string(),
        kind: conversation.kind.clone(),
        status: conversation.status.as_str().to_owned(),
        participant_count: conversation.participant_count,
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
        created_by: conversation.created_by.to_string(),
        metadata: conversation.meta.as_ref().map_or_else(|| Value::Object(Map::new()), Json::value),
        subject: conversation.subject.clone(),
        parent_conversation_id: conversation.parent.as_ref().map(ToString::to_string),
        parent_turn_id: conversation.parent_turn.map(turn_id),
        closed_at: conversation.closed_at,
    }
}

pub(super) fn participant(participant: &Participant) -> mail::Participant {
    let kind = match participant.kind {
        AgentKind::Agent => "agent",
        AgentKind::User | AgentKind::Admin | AgentKind::Client => "user",
        AgentKind::Gateway | AgentKind::System => "system",
    };
    let may = &participant.permissions;
    mail::Participant {
        id: participant.agent.to_string(),
        conversation_id: participant.conversation.to_string(),
        kind: kind.into(),
        role: participant.role.clone(),
        joined_at: participant.joined_at,
        permissions: mail::Permissions {
            can_send: may.can_send,
            can_observe: may.can_observe,
            can_invite: may.can_invite,
            can_remove: may.can_remove,
            can_create_threads: may.can_create_threads,
            history_access: may.history.as_str().into(),
            can_see_internal: may.can_see_internal,
        },
        left_at: participant.left_at,
    }
}

/// A turn; its content is written verbatim.
pub(super) fn turn(turn: &Turn) -> turns::Turn<'_> {
    turns::Turn {
        id: turn_id(turn.id).into(),
        conversation_id: turn.conversation.as_str().into(),
        participant: turn.author.as_str().into(),
        timestamp: turn.at,
        content_type: turn.content_type.as_str().into(),
        content: verbatim(&turn.content),
        thread_id: turn.thread.map(thread_id),
        in_reply_to: turn.in_reply_to.map(turn_id),
        source: match turn.source {
            TurnSource::Explicit => turns::TurnSource::Explicit { method: "mail/turn".into() },
            TurnSource::Intercepted(message) => {
                turns::TurnSource::Intercepted { message_id: message.to_string().into() }
            }
        },
        visibility: match &turn.visibility {
            TurnVisibility::All => turns::TurnVisibility::All,
            TurnVisibility::Private => turns::TurnVisibility::Private,
            TurnVisibility::Internal => turns::TurnVisibility::Internal,
            TurnVisibility::Agents(ids) => {
                turns::TurnVisibility::Participants { ids: ids.iter().map(|id| id.as_str().into()).collect() }
            }
            TurnVisibility::Roles(roles) => {
                turns::TurnVisibility::Role { roles: roles.iter().map(|role| role.as_str().into()).collect() }
            }
        },
        status: "complete".into(),
        metadata: turn.meta.as_ref().map(verbatim),
    }
}

pub(super) fn turns(all: &[Turn]) -> Vec<turns::Turn<'_>> {
    all.iter().map(turn).collect()
}

pub(super) fn thread(thread: &Thread) -> turns::Thread {
    turns::Thread {
        id: thread_id(thread.id),
        conversation_id: thread.conversation.to_string(),
        root_turn_id: turn_id(thread.root),
        turn_count: thread.turn_count,
        participant_count: thread.participant_count,
        created_at: thread.created_at,
        updated_at: thread.updated_at,
        created_by: thread.created_by.to_string(),
        parent_thread_id: thread.parent.map(thread_id),
        subject: thread.subject.clone(),
    }
}

/// The meta under which this door stores a message: members that the engine has no field for.
#[derive(Debug, Serialize, Deserialize)]
struct StoredMeta<'a> {
    #[serde(borrow)]
    map: StoredEnvelope<'a>,
}

/// `to` and `meta` as the sender wrote them, and the sender of a message from another system.
#[derive(Debug, Serialize, Deserialize)]
struct StoredEnvelope<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    to: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    from: Option<Cow<'a, str>>,
}

/// The meta that the engine stores with a message from this door.
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
    let stored = StoredMeta { map: StoredEnvelope { to, meta, from: from.map(Cow::Borrowed) } };
    Ok(Some(Json::from_checked(&text(&stored))))
}

/// What this door stored with a message.
fn stored(message: &Message) -> Option<StoredEnvelope<'_>> {
    let meta = message.meta.as_ref().filter(|_| message.via == VIA)?;
    serde_json::from_str(meta.as_str()).ok().map(|StoredMeta { map }| map)
}

/// The sender's meta, as far as `T` reads it.
fn sender_meta<'a, T: Deserialize<'a> + Default>(message: &'a Message) -> T {
    let meta = stored(message).and_then(|stored| stored.meta);
    meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default()
}

/// Whether a message asks for an answer and is not one itself.
pub(super) fn is_question(message: &Message) -> bool {
    // Nearly all messages expect no answer, and this avoids parsing their meta.
    if !message.meta.as_ref().is_some_and(|meta| meta.as_str().contains("expectsResponse")) {
        return false;
    }
    let meta: Expectation = sender_meta(message);
    meta.expects_response == Some(true) && meta.is_result != Some(true)
}

/// The name of the usual way of delivery: at once if the recipient is connected, else stored for it. Of the draft's four
/// ways, `inject` means that.
pub(super) fn usual_semantic(draft: bool) -> &'static str {
    if draft { "inject" } else { "fire-and-forget" }
}

/// The way of delivery that the sender named, for the draft's events. Messages of other doors are stored until their
/// recipients fetch them.
pub(super) fn semantic(message: &Message) -> String {
    if message.via != VIA {
        return "queue".to_owned();
    }
    match sender_meta::<SendMeta>(message).delivery {
        Some(Value::String(way)) => way,
        _ => usual_semantic(true).to_owned(),
    }
}

/// A message, with payload and meta as the sender wrote them; without its payload for subscribers that want none.
pub(super) fn message(message: &Message, with_payload: bool) -> wire::Message<'_> {
    let stored = stored(message);
    let (to, meta, from) = match stored {
        Some(StoredEnvelope { to, meta, from }) => (to, meta, from),
        None => (None, None, None),
    };
    wire::Message {
        id: message.id.to_string().into(),
        from: from.unwrap_or(Cow::Borrowed(message.from.as_str())),
        to: to.map_or_else(|| Cow::Owned(to_raw(&addresses(&message.to))), Cow::Borrowed),
        timestamp: message.at,
        payload: if with_payload { payload(message) } else { None },
        meta: match meta {
            Some(meta) => Some(Cow::Borrowed(meta)),
            None if message.via == VIA => None,
            None => Some(Cow::Owned(to_raw(&foreign_meta(message)))),
        },
    }
}

/// The payload of a message. JSON is written verbatim. Text, which only other doors accept, becomes an object with a
/// subject and a body.
pub(super) fn payload(message: &Message) -> Option<Cow<'_, RawValue>> {
    match &message.body {
        Body::Json(json) => Some(verbatim(json)),
        Body::Text(text) if text.is_empty() && message.via == VIA => None,
        Body::Text(text) => Some(Cow::Owned(to_raw(&TextPayload {
            body: text.into(),
            subject: message.subject.as_deref().map(Cow::Borrowed),
            kind: Some(message.kind.as_str()).filter(|kind| !kind.is_empty()).map(Cow::Borrowed),
        }))),
    }
}

/// The meta of a message from another door. What that door stored is in its `_meta`.
fn foreign_meta(message: &Message) -> ForeignMeta<'_> {
    let mut other = message.meta.as_ref().map(Json::value);
    let files = attachments::shown(message);
    if !files.is_empty()
        && let Value::Object(members) = other.get_or_insert_with(|| Value::Object(Map::new()))
    {
        members.insert("attachments".to_owned(), files.into());
    }
    ForeignMeta {
        priority: priority(message.priority).into(),
        correlation_id: message.correlation.as_deref().map(Cow::Borrowed),
        require_ack: message.ack_required.then_some(true),
        mail: message.conversation.as_ref().map(|id| MailRef { conversation_id: id.as_str().into() }),
        other,
    }
}

pub(super) fn priority(priority: Priority) -> &'static str {
    match priority.tier() {
        1 => "urgent",
        2 => "high",
        3 => "normal",
        _ => "low",
    }
}

/// The engine's addresses as MAP writes them.
fn addresses(to: &[Address]) -> To {
    let agents: Option<Vec<String>> = to
        .iter()
        .map(|address| match address {
            Address::Agent(id) => Some(id.to_string()),
            _ => None,
        })
        .collect();
    match (agents, to) {
        (_, [one]) => address(one),
        (Some(agents), _) => To::Agents { agents },
        (None, several) => To::List(several.iter().map(address).collect()),
    }
}

fn address(address: &Address) -> To {
    match address {
        Address::Agent(id) => To::Agent { agent: id.to_string() },
        Address::Scope(id) => To::Scope { scope: id.to_string() },
        Address::Role { role, within } => {
            To::Role { role: role.clone(), within: within.as_ref().map(ToString::to_string) }
        }
        Address::Parent => To::Parent { parent: true },
        Address::Children { depth } => To::Children { children: true, depth: *depth },
        Address::Siblings => To::Siblings { siblings: true },
        Address::Ancestors { depth } => To::Ancestors { ancestors: true, depth: *depth },
        Address::Descendants { depth } => To::Descendants { descendants: true, depth: *depth },
        Address::Kind(AgentKind::Client) => To::Participants { participants: "clients".into() },
        Address::Kind(_) => To::Participants { participants: "agents".into() },
        Address::All | Address::Contacts | Address::Public => To::Broadcast { broadcast: true },
        Address::Remote { agent, realm } => {
            To::Remote { system: realm.to_string(), agent: agent.to_string() }
        }
    }
}

/// The state of a message's delivery to a local recipient.
pub(super) fn receipt<'a>(
    agent: &'a AgentId,
    state: DeliveryState,
    semantic: &'a str,
    at: i64,
) -> wire::Receipt<'a> {
    wire::Receipt {
        agent_id: agent.as_str().into(),
        status: state.as_str().into(),
        semantic: semantic.into(),
        timestamp: at,
        error: None,
    }
}
