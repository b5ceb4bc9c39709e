//! Identities and messages as this door shows them.

use posthaste_engine::nouns::{Address, Agent, Body, DeliveryState, Json, Message, Millis, Priority};
use posthaste_engine::views::InboxMessage;
use posthaste_wire::airc::{
    ContentPayload, Delivery, Envelope, FlatMessage, Identity, MailboxPayload, PROTOCOL_VERSION, PreviousKey,
    UnsignedEnvelope, UnsignedMembers,
};
use posthaste_wire::time::to_rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::VIA;
use super::stored_keys::StoredKeys;
use posthaste_host::attachments;
use posthaste_host::plain_text;

/// An identity. The keys are public, tokens never are.
pub(super) fn identity(agent: &Agent, registry: &str) -> Identity {
    let keys = StoredKeys::of(agent);
    let created = to_rfc3339(agent.created_at);
    let status = match agent.state.as_str() {
        Agent::REVOKED => "revoked",
        Agent::SUSPENDED => "suspended",
        _ => "active",
    };
    let former = keys.former.into_iter().map(|key| PreviousKey {
        public_key: Some(key.public_key),
        valid_until: Some(to_rfc3339(key.until)),
    });
    Identity {
        handle: agent.id.to_string(),
        username: agent.id.to_string(),
        display_name: agent.name.clone(),
        public_key: keys.public_key.clone(),
        public_key_camel: keys.public_key,
        recovery_key: keys.recovery_key,
        capabilities: capabilities(agent),
        registry: registry.to_owned(),
        status: status.into(),
        created_at: created.clone(),
        created_at_camel: created,
        updated_at: to_rfc3339(agent.updated_at),
        key_rotated_at: keys.rotated_at.map(to_rfc3339),
        revoked_at: keys.revoked.map(|revoked| to_rfc3339(revoked.revoked_at)),
        previous_keys: former.collect(),
    }
}

/// What an agent understands; an empty list if it has not said.
pub(super) fn capabilities(agent: &Agent) -> Value {
    agent.capabilities.as_ref().map_or_else(|| Value::Array(Vec::new()), Json::value)
}

/// What an unsigned message said beyond its text, as it is kept in the message's metadata.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct UnsignedMeta {
    #[serde(default)]
    pub(super) airc: UnsignedMembers,
}

impl UnsignedMeta {
    fn of(message: &Message) -> UnsignedMembers {
        let kept = message.meta.as_ref().and_then(|meta| serde_json::from_str::<Self>(meta.as_str()).ok());
        kept.unwrap_or_default().airc
    }
}

/// A message as its recipient may verify it: the envelope verbatim, with what the registry knows under `delivery`.
pub(super) fn enveloped(received: &InboxMessage) -> Option<Box<RawValue>> {
    let message = &received.message;
    let mut delivery = Delivery {
        seq: message.seq,
        received_at: to_rfc3339(message.at),
        read: is_read(received),
        acked: received.delivery.state == DeliveryState::Acked,
        to: received.delivery.agent.to_string(),
        id: id_of(message),
        door: None,
        priority: None,
        ack_required: None,
        subject: None,
        in_reply_to: None,
        attachments: Vec::new(),
    };
    if is_foreign(message) {
        add_header(&mut delivery, message);
    }
    match &message.envelope {
        Some(envelope) => {
            let delivery = serde_json::to_string(&delivery).ok()?;
            RawValue::from_string(Envelope::with_delivery(envelope, &delivery)).ok()
        }
        None => {
            let envelope = UnsignedEnvelope { delivery: Some(delivery), ..unsigned(message) };
            serde_json::value::to_raw_value(&envelope).ok()
        }
    }
}

fn is_read(received: &InboxMessage) -> bool {
    matches!(received.delivery.state, DeliveryState::Read | DeliveryState::Acked)
}

/// Adds what a message of another door says besides its body: its payload may be of a form that has no member for it.
fn add_header(delivery: &mut Delivery, message: &Message) {
    delivery.door = Some(message.via.clone());
    delivery.priority = Some(priority(message.priority).into());
    delivery.ack_required = Some(message.ack_required);
    delivery.subject = Some(plain_text::heading(message)).filter(|subject| !subject.is_empty());
    delivery.in_reply_to = message.in_reply_to.map(|answered| answered.to_string());
    delivery.attachments = files(message);
}

/// The files that a message carries. They are downloaded at this door, since its tokens are refused by the others.
fn files(message: &Message) -> Vec<Value> {
    attachments::shown_below(message, &format!("/messages/{}/attachments", message.id))
}

/// A message as Safe Mode's clients read it. Clients take any payload for structured content, so plain text has none
/// unless its sender gave one.
pub(super) fn flat(received: &InboxMessage) -> FlatMessage {
    let message = &received.message;
    let shown = Shown::of(message);
    let payload = shown.payload.filter(|_| !is_plain(message));
    let text = text_of(message, shown.body.as_ref(), payload.as_ref());
    let created = to_rfc3339(message.at);
    FlatMessage {
        id: text_or(shown.id, || message.id.to_string()),
        from: message.from.to_string(),
        to: shown.to.as_ref().and_then(Value::as_str).map_or("", plain).to_owned(),
        text: text.clone(),
        body: text,
        kind: type_of(message).unwrap_or_else(|| "text".to_owned()),
        payload,
        thread_id: shown.thread_id,
        reply_to: shown.reply_to,
        timestamp: message.at / 1_000,
        created_at: created.clone(),
        created_at_camel: created,
        seq: message.seq,
        read: is_read(received),
        signature: shown.signature,
        attachments: files(message),
    }
}

/// The members of an envelope that Safe Mode shows, as its sender wrote them.
#[derive(Debug, Default, Deserialize)]
struct Shown {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    to: Option<Value>,
    #[serde(default)]
    thread_id: Option<Value>,
    #[serde(default)]
    reply_to: Option<Value>,
    #[serde(default)]
    body: Option<Value>,
    #[serde(default)]
    payload: Option<Value>,
    #[serde(default)]
    signature: Option<Value>,
}

impl Shown {
    fn of(message: &Message) -> Self {
        let kept = message.envelope.as_ref().and_then(|text| serde_json::from_str(text).ok());
        kept.unwrap_or_else(|| {
            let made = unsigned(message);
            Self {
                id: Some(made.id.into()),
                to: Some(made.to.into()),
                thread_id: made.thread_id.map(Value::from),
                reply_to: made.reply_to.map(Value::from),
                body: made.body.map(Value::from),
                payload: Some(made.payload),
                signature: None,
            }
        })
    }
}

/// The sender's id for a message, or the server's.
pub(super) fn id_of(message: &Message) -> String {
    #[derive(Deserialize)]
    struct WithId {
        #[serde(default)]
        id: Option<Value>,
    }
    let ours = || message.id.to_string();
    match &message.envelope {
        Some(text) => text_or(serde_json::from_str(text).ok().and_then(|one: WithId| one.id), ours),
        None => UnsignedMeta::of(message).id.unwrap_or_else(ours),
    }
}

fn text_or(value: Option<Value>, other: impl FnOnce() -> String) -> String {
    match value {
        Some(Value::String(text)) => text,
        _ => other(),
    }
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

/// Whether a message came by another door.
fn is_foreign(message: &Message) -> bool {
    message.via != VIA && message.envelope.is_none()
}

/// Messages of other doors that have more than a text are shown as mailbox entries.
fn is_mail(message: &Message) -> bool {
    message.subject.is_some()
        || message.ack_required
        || message.expires_at.is_some()
        || message.priority != Priority::NORMAL
}

/// Whether a message is a text and nothing else, so that its payload would be of this door's making.
fn is_plain(message: &Message) -> bool {
    message.envelope.is_none()
        && matches!(message.body, Body::Text(_))
        && !(is_foreign(message) && is_mail(message))
        && UnsignedMeta::of(message).payload.is_none()
}

/// An envelope for a message that came without one: in Safe Mode, or by another door.
fn unsigned(message: &Message) -> UnsignedEnvelope {
    let said = UnsignedMeta::of(message);
    UnsignedEnvelope {
        v: PROTOCOL_VERSION.into(),
        id: said.id.unwrap_or_else(|| message.id.to_string()),
        from: message.from.to_string(),
        to: said.to.unwrap_or_else(|| target(message)),
        timestamp: message.at / 1_000,
        thread_id: said.thread_id.or_else(|| message.conversation.as_ref().map(ToString::to_string)),
        reply_to: said.reply_to,
        body: match &message.body {
            Body::Text(text) => Some(text.clone()),
            Body::Json(json) => plain_text::spoken(&json.value()).map(str::to_owned),
        },
        payload: said.payload.unwrap_or_else(|| payload(message)),
        delivery: None,
    }
}

fn payload(message: &Message) -> Value {
    let said = match &message.body {
        Body::Text(text) => Value::from(text.as_str()),
        Body::Json(json) => json.value(),
    };
    // A payload of the sender's own with a type is carried untouched, as one of this door would be.
    let typed = said.get("type").is_some_and(Value::is_string);
    let prose = plain_text::spoken(&said).is_some();
    if is_mail(message) && (prose || !typed) {
        return to_value(&mailbox(message));
    }
    if typed {
        return said;
    }
    let kind = if message.kind.is_empty() { "text".to_owned() } else { message.kind.clone() };
    to_value(&ContentPayload { kind: kind.into(), content: said })
}

/// A value of one of wire's types, which always serialize.
fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn mailbox(message: &Message) -> MailboxPayload {
    let subject = Some(plain_text::heading(message)).filter(|subject| !subject.is_empty());
    MailboxPayload {
        kind: MailboxPayload::KIND.into(),
        message_id: message.id.to_string(),
        subject: subject.unwrap_or_else(|| "(no subject)".to_owned()),
        body_md: plain_text::text(message),
        ack_required: message.ack_required,
        priority: priority(message.priority).into(),
        foreign_kind: Some(message.kind.clone()).filter(|kind| !kind.is_empty()),
        expires_ts: message.expires_at.map(to_rfc3339),
        thread_id: message.conversation.as_ref().map(ToString::to_string),
    }
}

fn priority(priority: Priority) -> &'static str {
    match priority.tier() {
        1 => "urgent",
        2 => "high",
        3 => "normal",
        _ => "low",
    }
}

/// `to` of a message that was not addressed in this protocol.
fn target(message: &Message) -> String {
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

fn text_of(message: &Message, body: Option<&Value>, payload: Option<&Value>) -> String {
    let member = |name: &str| payload.and_then(|payload| payload[name].as_str());
    let found = body
        .and_then(Value::as_str)
        .or_else(|| member("content"))
        .or_else(|| member("text"))
        .or_else(|| member("body_md"));
    match (found, &message.body) {
        (Some(text), _) => text.to_owned(),
        (None, Body::Text(text)) => text.clone(),
        (None, Body::Json(json)) => json.as_str().to_owned(),
    }
}

/// A time of the database as the protocol writes it.
pub(super) fn moment(at: Millis) -> String {
    to_rfc3339(at)
}
