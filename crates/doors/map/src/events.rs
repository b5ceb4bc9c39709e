//! The engine's history as MAP's events, in either vocabulary. The form that most listeners get is made once and shared.

use std::sync::Arc;

use posthaste_engine::nouns::{
    AgentId, AgentKind, Audience, Caller, ConversationId, DeliveryState, Event, Fact, Json, Message, Reached,
    RecipientKind, Scope, Turn,
};
use posthaste_engine::views::{View, Viewed};
use posthaste_wire::map::{EventId, EventName};
use serde_json::{Map, Value, json};

use super::session::POLICY;
use super::to_wire::{self, OWN, push_text};
use super::{MAX_RECEIPTS, overrides};

/// What an event is to MAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// One of its own.
    As(EventName),
    /// Something MAP has no word for; only for those who name it.
    Extension(String),
    /// Nothing: bookkeeping of this door.
    Hidden,
}

/// How one listener gets events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) draft: bool,
    pub(super) history: u16,
    /// Whether messages come with what they say.
    pub(super) payloads: bool,
    /// Whether the listener may observe: others are not told how a message fared with its other recipients.
    pub(super) observes: bool,
}

pub(super) fn seen(event: &Event) -> Seen {
    let participant =
        |sort: &AgentKind| matches!(sort, AgentKind::Client | AgentKind::Gateway | AgentKind::System);
    Seen::As(match &event.fact {
        // Participants have their own events; their entries in the address book are this door's affair.
        Fact::AgentRegistered { sort, .. } | Fact::AgentUnregistered { sort, .. } if participant(sort) => {
            return Seen::Hidden;
        }
        Fact::AgentRegistered { .. } => EventName::AgentRegistered,
        Fact::AgentUnregistered { .. } => EventName::AgentUnregistered,
        Fact::AgentState { .. } => EventName::AgentState,
        Fact::AgentOrphaned { .. } => EventName::AgentOrphaned,
        Fact::AgentUpdated { changes, .. } => update_name(changes),
        Fact::MessageSent => EventName::MessageSent,
        Fact::MessageDelivered { .. } => EventName::MessageDelivered,
        Fact::MessageAcked { .. } => EventName::MessageAcked,
        Fact::MessageExpired { .. } => EventName::MessageExpired,
        Fact::MessageFailed { .. } => EventName::MessageFailed,
        Fact::ConversationCreated { .. } => EventName::MailCreated,
        Fact::ConversationClosed { .. } => EventName::MailClosed,
        Fact::ConversationReopened { .. } => EventName::MailReopened,
        Fact::ParticipantJoined { .. } => EventName::MailJoined,
        Fact::ParticipantLeft { .. } => EventName::MailLeft,
        Fact::TurnAdded { .. } => EventName::MailTurn,
        Fact::ThreadCreated { .. } => EventName::MailThread,
        Fact::SummaryGenerated { .. } => EventName::MailSummary,
        Fact::ScopeCreated { .. } => EventName::ScopeCreated,
        Fact::ScopeDeleted { .. } => EventName::ScopeDeleted,
        Fact::ScopeJoined { .. } => EventName::ScopeJoined,
        Fact::ScopeLeft { .. } => EventName::ScopeLeft,
        Fact::TaskCreated { .. } => EventName::TaskCreated,
        Fact::TaskAssigned { .. } => EventName::TaskAssigned,
        Fact::TaskStatusChanged { .. } => EventName::TaskStatus,
        Fact::TaskCompleted { .. } => EventName::TaskCompleted,
        Fact::Announced { word, .. } => match EventName::parse(word) {
            Some(name) => name,
            None => return Seen::Extension(format!("x-posthaste.{word}")),
        },
        Fact::MessageRead { .. }
        | Fact::ReservationMade { .. }
        | Fact::ReservationRenewed { .. }
        | Fact::ReservationReleased { .. }
        | Fact::ReservationExpired { .. }
        | Fact::ReservationConflict { .. }
        | Fact::ContactChanged { .. }
        | Fact::TokenCreated { .. }
        | Fact::TokenRevoked { .. }
        | Fact::PeerChanged { .. }
        | Fact::PeerRemoved { .. }
        | Fact::RulesChanged => return Seen::Extension(format!("x-posthaste.{}", event.fact.kind())),
    })
}

/// A change of an agent's entry goes by what changed.
fn update_name(changes: &Json) -> EventName {
    let text = changes.as_str();
    if text.contains("\"bounds\"") && changes.value().get("bounds").is_some() {
        return EventName::AgentPermissions;
    }
    let environment = || changes.value().pointer("/meta/map:environment").is_some();
    if text.contains("map:environment") && environment() {
        return EventName::AgentEnvironment;
    }
    EventName::AgentUpdated
}

/// The id of an event.
pub(super) fn id(event: &Event, history: u16) -> EventId {
    EventId { at: event.at, log_tag: history, seq: event.seq }
}

/// What an event does not know itself and its form may tell.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// When the cause happened.
    pub(super) cause_at: Option<i64>,
    /// How a letter stands with those it is for, as far as the listener may know.
    pub(super) receipts: Option<Vec<Reached>>,
}

impl Known {
    /// Whether the books have to be asked.
    pub(super) fn is_wanted(event: &Event, form: Form) -> bool {
        let cause = event.cause.is_some() && event.message.is_none();
        cause || (form.draft && event.fact == Fact::MessageSent && event.reached.is_none())
    }

    /// What the books say.
    pub(super) fn read(view: &View<'_>, callers: &[Caller], event: &Event, form: Form) -> Viewed<Self> {
        let mut known = Self::default();
        match (&event.message, event.cause) {
            (None, Some(cause)) => known.cause_at = view.time_of(cause)?,
            (Some(message), _) if Self::is_wanted(event, form) => {
                // A letter that is not there for the listener any more has no recipients for it either.
                let letter = callers.iter().find_map(|caller| view.message_at(caller, message.seq).ok());
                let copies = letter.map_or(Vec::new(), |letter| letter.deliveries);
                let open = copies.into_iter().filter(|copy| copy.copy != RecipientKind::Bcc);
                known.receipts = Some(open.map(|copy| (copy.agent, copy.state)).collect());
            }
            _ => {}
        }
        Ok(known)
    }
}

/// The members of an envelope that are the same for every listener of one form, from `eventId` to `event`.
pub(super) fn members(event: &Event, form: Form, known: &Known) -> Arc<str> {
    // What was looked up for one listener is not for all.
    let receipts = form.draft && event.fact == Fact::MessageSent;
    if !form.payloads || known.receipts.is_some() || (receipts && !form.observes) {
        return Arc::from(write(event, form, known, true));
    }
    let slot = if form.draft { 1 } else { 0 };
    event.render(slot, |event| write(event, form, known, true))
}

/// The same for whoever asked a question: `client.request()` takes the first delivery with its correlation for the
/// answer, so the delivery of the question itself must not carry it.
pub(super) fn members_for_asker(event: &Event, form: Form, known: &Known) -> Arc<str> {
    let question = matches!(event.fact, Fact::MessageDelivered { .. })
        && event.message.as_deref().is_some_and(to_wire::is_question);
    if question {
        return Arc::from(write(event, form, known, false));
    }
    members(event, form, known)
}

fn write(event: &Event, form: Form, known: &Known, correlation: bool) -> String {
    let own_id = id(event, form.history).ulid();
    let cause = event.cause.and_then(|seq| {
        let at = known.cause_at.or_else(|| event.message.as_ref().map(|message| message.at))?;
        Some(EventId { at, log_tag: form.history, seq }.ulid())
    });
    let kind = match seen(event) {
        Seen::As(name) => if form.draft { name.draft() } else { name.sdk() }.to_owned(),
        Seen::Extension(name) => name,
        Seen::Hidden => "x-posthaste.hidden".to_owned(),
    };
    let mut out = String::with_capacity(512);
    out.push_str(&format!(r#""eventId":"{own_id}","timestamp":{},"#, event.at));
    if let Some(cause) = &cause {
        out.push_str(&format!(r#""causedBy":["{cause}"],"#));
    }
    out.push_str(&format!(r#""event":{{"id":"{own_id}","type":"{kind}","timestamp":{},"source":"#, event.at));
    push_text(&mut out, event.source().as_str());
    if form.draft {
        push_draft_members(&mut out, event, form, known);
    }
    out.push_str(r#","data":"#);
    push_data(&mut out, event, form.payloads, correlation);
    if let Some(cause) = &cause {
        out.push_str(&format!(r#","causedBy":["{cause}"]"#));
    }
    out.push('}');
    out
}

fn push_data(out: &mut String, event: &Event, payloads: bool, correlation: bool) {
    match (&event.fact, &event.message, &event.turn) {
        (Fact::TurnAdded { conversation }, _, Some(turn)) => {
            out.push('{');
            push_turn_members(out, conversation, turn);
            out.push('}');
        }
        (fact, Some(message), _) => push_message_data(out, fact, message, payloads, correlation),
        (fact, None, _) => out.push_str(&data(event, fact).to_string()),
    }
}

fn push_turn_members(out: &mut String, conversation: &ConversationId, turn: &Turn) {
    out.push_str(r#""conversationId":"#);
    push_text(out, conversation.as_str());
    out.push_str(r#","turn":"#);
    to_wire::push_turn(out, turn);
}

fn push_message_data(out: &mut String, fact: &Fact, message: &Message, payloads: bool, correlation: bool) {
    out.push_str(&format!(r#"{{"messageId":"{}","from":"#, message.id));
    push_text(out, message.from.as_str());
    let with = |out: &mut String, name: &str, text: &str| {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        push_text(out, text);
    };
    match fact {
        Fact::MessageDelivered { agent } | Fact::MessageAcked { agent, .. } => {
            // A list in the SDK, although each has an event of its own.
            out.push_str(r#","deliveredTo":["#);
            push_text(out, agent.as_str());
            out.push(']');
            with(out, "agentId", agent.as_str());
        }
        Fact::MessageExpired { agent } => {
            with(out, "to", agent.as_str());
            with(out, "reason", "expired");
        }
        Fact::MessageFailed { agent, reason } => {
            with(out, "to", agent.as_str());
            with(out, "reason", reason);
        }
        _ => {
            out.push_str(r#","to":"#);
            to_wire::push_to(out, message);
        }
    }
    out.push_str(&format!(r#","timestamp":{}"#, message.at));
    with(out, "priority", to_wire::priority(message.priority));
    if let Some(id) = message.correlation.as_ref().filter(|_| correlation) {
        with(out, "correlationId", id);
    }
    if payloads {
        to_wire::push_payload(out, message);
        out.push_str(r#","message":"#);
        out.push_str(&to_wire::message(message));
    }
    out.push('}');
}

/// What happened, in the SDK's members; where other servers wrote the thing itself, that comes along.
fn data(event: &Event, fact: &Fact) -> Value {
    match fact {
        Fact::AgentRegistered { agent, name, role, owner, state, entry, .. } => {
            let entry = match entry {
                Some(entry) => serde_json::to_value(to_wire::agent(entry)).unwrap_or_default(),
                None => {
                    let mut entry = json!({ "id": agent, "ownerId": owner, "state": state });
                    to_wire::put(&mut entry, "name", name.clone());
                    to_wire::put(&mut entry, "role", role.clone());
                    entry
                }
            };
            let mut data = json!({ "agentId": agent, "ownerId": owner, "agent": entry });
            to_wire::put(&mut data, "name", name.clone());
            to_wire::put(&mut data, "role", role.clone());
            data
        }
        Fact::AgentOrphaned { agent, previous } => json!({ "agentId": agent, "previousOwner": previous }),
        // The one whose reason is not optional.
        Fact::AgentUnregistered { agent, reason, .. } => {
            json!({ "agentId": agent, "reason": reason.as_deref().unwrap_or("unregistered") })
        }
        Fact::AgentState { agent, previous, current } => {
            json!({ "agentId": agent, "previousState": previous, "newState": current })
        }
        Fact::AgentUpdated { agent, changes } if update_name(changes) == EventName::AgentPermissions => {
            permissions_data(event, agent, changes)
        }
        Fact::AgentUpdated { agent, changes } => {
            json!({ "agentId": agent, "changes": changes_to_wire(changes), "updatedBy": event.actor })
        }
        Fact::ConversationCreated { conversation } => {
            let mut data = json!({
                "conversationId": conversation.id,
                "type": conversation.kind,
                "createdBy": conversation.created_by,
            });
            if let Some(subject) = &conversation.subject {
                data["subject"] = subject.as_str().into();
            }
            data
        }
        Fact::ConversationClosed { conversation, by, reason } => {
            with_reason(json!({ "conversationId": conversation, "closedBy": by }), reason.as_deref())
        }
        Fact::ConversationReopened { conversation, by } => {
            json!({ "conversationId": conversation, "reopenedBy": by })
        }
        Fact::ParticipantJoined { participant } => {
            let conversation = &participant.conversation;
            json!({ "conversationId": conversation, "participant": to_wire::participant(participant) })
        }
        Fact::ParticipantLeft { conversation, agent, reason } => {
            with_reason(json!({ "conversationId": conversation, "participantId": agent }), reason.as_deref())
        }
        Fact::ThreadCreated { thread } => {
            json!({ "conversationId": thread.conversation, "thread": to_wire::thread(thread) })
        }
        Fact::SummaryGenerated { conversation, text } => {
            json!({ "conversationId": conversation, "summary": text })
        }
        Fact::ScopeCreated { scope } => scope_data(scope),
        Fact::ScopeDeleted { scope, name } => {
            let mut data = json!({ "scopeId": scope });
            to_wire::put(&mut data, "name", name.clone());
            data
        }
        Fact::ScopeJoined { scope, agent } | Fact::ScopeLeft { scope, agent } => {
            json!({ "scopeId": scope, "agentId": agent })
        }
        Fact::TaskCreated { task } => json!({ "taskId": task.id, "task": to_wire::task(task) }),
        Fact::TaskAssigned { task, agent } => json!({ "taskId": task, "agentId": agent }),
        Fact::TaskStatusChanged { task, previous, current } => {
            json!({ "taskId": task, "previous": previous.as_str(), "current": current.as_str() })
        }
        Fact::TaskCompleted { task, result } => {
            let mut data = json!({ "taskId": task });
            if let Some(result) = result {
                data["result"] = result.value();
            }
            data
        }
        Fact::Announced { data, .. } => data.value(),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// A reason that was given.
fn with_reason(mut data: Value, reason: Option<&str>) -> Value {
    if let Some(reason) = reason {
        data["reason"] = reason.into();
    }
    data
}

fn scope_data(scope: &Scope) -> Value {
    let mut data = json!({ "scopeId": scope.id, "scope": to_wire::scope(scope) });
    to_wire::put(&mut data, "name", scope.name.clone());
    data
}

/// What an agent is kept to from now on. Older lines of history know only what changed.
fn permissions_data(event: &Event, agent: &AgentId, changes: &Json) -> Value {
    let changes = changes.value();
    let bounds = |name: &str| {
        let bounds = changes.get(name).cloned().map(serde_json::from_value);
        bounds.and_then(Result::ok).and_then(|bounds| serde_json::to_value(overrides::to_wire(&bounds)).ok())
    };
    let changed = bounds("bounds").unwrap_or_else(|| json!({}));
    let effective = bounds("bounds_in_force").unwrap_or_else(|| changed.clone());
    json!({
        "agentId": agent,
        "changes": changed,
        "effectivePermissions": effective,
        "updatedBy": event.actor,
    })
}

/// The fields of an agent's entry that changed, under MAP's names.
fn changes_to_wire(changes: &Json) -> Value {
    let Value::Object(given) = changes.value() else { return json!({}) };
    let mut out = Map::new();
    for (name, value) in given {
        match name.as_str() {
            "meta" => {
                let Value::Object(meta) = value else { continue };
                let mut metadata = Map::new();
                for (name, value) in meta {
                    match name.strip_prefix(OWN) {
                        Some("principal" | POLICY) => {}
                        Some(own) => drop(out.insert(own.to_owned(), value)),
                        None => drop(metadata.insert(name, value)),
                    }
                }
                if !metadata.is_empty() {
                    out.insert("metadata".to_owned(), Value::Object(metadata));
                }
            }
            "owner" => drop(out.insert("ownerId".to_owned(), value)),
            _ => drop(out.insert(name, value)),
        }
    }
    Value::Object(out)
}

/// How a letter stands with each it is for. How it fared with them is their sender's affair, unless that is to be told.
fn push_receipts(out: &mut String, message: &Message, event: &Event, known: &Known, told: bool) {
    let is_live = known.receipts.is_none();
    let reached = known.receipts.as_deref().or(event.reached.as_deref());
    let semantic = to_wire::semantic(message);
    out.push_str(r#","receipts":["#);
    for (index, (agent, state)) in reached.unwrap_or_default().iter().take(MAX_RECEIPTS).enumerate() {
        if index > 0 {
            out.push(',');
        }
        let status = match state {
            _ if !told => DeliveryState::Queued,
            // The sender asked for the queue; that the recipient has the message is another event.
            DeliveryState::Delivered if is_live && semantic == "queue" => DeliveryState::Queued,
            DeliveryState::Read | DeliveryState::Acked => DeliveryState::Delivered,
            DeliveryState::Expired => DeliveryState::Failed,
            other => *other,
        };
        to_wire::push_receipt(out, agent.as_str(), status.as_str(), &semantic, message.at);
    }
    out.push(']');
}

/// What the draft has on the event itself.
fn push_draft_members(out: &mut String, event: &Event, form: Form, known: &Known) {
    let members = match (&event.fact, &event.message) {
        (Fact::MessageSent, Some(message)) => {
            out.push_str(r#","envelope":"#);
            out.push_str(&to_wire::envelope(message, form.payloads));
            // What was looked up is what this listener may know.
            let told = message.audience == Audience::Observers && (form.observes || known.receipts.is_some());
            push_receipts(out, message, event, known, told);
            return;
        }
        (Fact::MessageDelivered { agent } | Fact::MessageAcked { agent, .. }, Some(message)) => {
            json!({ "messageId": message.id.to_string(), "agentId": agent })
        }
        (Fact::MessageFailed { agent, reason }, Some(message)) => json!({
            "messageId": message.id.to_string(), "agentId": agent, "error": { "code": 2003, "message": reason },
        }),
        (Fact::MessageExpired { agent }, Some(message)) => json!({
            "messageId": message.id.to_string(), "agentId": agent, "error": { "code": 2003, "message": "expired" },
        }),
        (Fact::AgentState { agent, previous, current }, _) => {
            json!({ "agentId": agent, "previous": previous, "current": current })
        }
        (Fact::TurnAdded { conversation }, _) => {
            let Some(turn) = &event.turn else { return };
            out.push(',');
            push_turn_members(out, conversation, turn);
            return;
        }
        (fact, None) => data(event, fact),
        _ => return,
    };
    let Value::Object(members) = members else { return };
    for (name, value) in members {
        // What an event has by itself keeps its meaning: what sort of conversation it is stays in the data.
        if !matches!(name.as_str(), "id" | "type" | "timestamp" | "source" | "data" | "causedBy") {
            out.push(',');
            push_text(out, &name);
            out.push(':');
            out.push_str(&value.to_string());
        }
    }
}
