//! What the office's own methods answer.

use posthaste_engine::nouns::{
    Agent, Body, Conflict, Contact, Conversation, Delivery, Event, Message, Reservation, Token, Turn,
};
use posthaste_engine::verbs::mail::SendReceipt;
use posthaste_engine::views::{Hit, InboxMessage};
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use posthaste_host::attachments;

pub(super) fn agent(agent: &Agent) -> Value {
    json!({
        "id": agent.id,
        "kind": agent.kind,
        "name": agent.name,
        "role": agent.role,
        "parent": agent.parent,
        "owner": agent.owner,
        "state": agent.state,
        // None for a mailbox whose holder has not come yet.
        "door": (!agent.via.is_empty()).then_some(&agent.via),
        "scopes": agent.scopes,
        "created_at": to_rfc3339(agent.created_at),
        "updated_at": to_rfc3339(agent.updated_at),
    })
}

pub(super) fn sent(sent: &SendReceipt) -> Value {
    let receipts: Vec<Value> = sent
        .receipts
        .iter()
        .map(|receipt| json!({ "agent": receipt.agent, "copy": receipt.copy, "state": receipt.state.as_str() }))
        .collect();
    json!({
        "id": sent.message.id,
        "seq": sent.message.seq,
        "at": to_rfc3339(sent.message.at),
        "receipts": receipts,
        "repeated": sent.repeated,
    })
}

pub(super) fn letter(letter: &InboxMessage) -> Value {
    let mut value = message(&letter.message);
    value["delivery"] = delivery(&letter.delivery);
    value
}

pub(super) fn message(message: &Message) -> Value {
    let body = match &message.body {
        Body::Text(text) => Value::String(text.clone()),
        Body::Json(json) => json.value(),
    };
    json!({
        "id": message.id,
        "seq": message.seq,
        "from": message.from,
        "to": message.to,
        "kind": message.kind,
        "subject": message.subject,
        "body": body,
        "priority": message.priority,
        "ack_required": message.ack_required,
        "expires_at": message.expires_at.map(to_rfc3339),
        "conversation": message.conversation,
        "in_reply_to": message.in_reply_to,
        "key": message.key,
        "door": message.via,
        "at": to_rfc3339(message.at),
        "attachments": attachments::shown(message),
    })
}

pub(super) fn delivery(delivery: &Delivery) -> Value {
    json!({
        "agent": delivery.agent,
        "copy": delivery.copy,
        "state": delivery.state.as_str(),
        "delivered_at": delivery.delivered_at.map(to_rfc3339),
        "read_at": delivery.read_at.map(to_rfc3339),
        "acked_at": delivery.acked_at.map(to_rfc3339),
        "note": delivery.note,
    })
}

pub(super) fn hit(hit: &Hit) -> Value {
    let (from, subject, conversation) = match (&hit.message, &hit.turn) {
        (Some(message), _) => {
            (Some(&message.from), message.subject.as_deref(), message.conversation.as_ref())
        }
        (None, Some(turn)) => (Some(&turn.author), None, Some(&turn.conversation)),
        (None, None) => (None, None, None),
    };
    json!({
        "seq": hit.seq,
        "message": hit.message.as_ref().map(|message| message.id),
        "turn": hit.turn.as_ref().map(|turn| turn.id),
        "from": from,
        "subject": subject,
        "conversation": conversation,
        "snippet": hit.snippet,
    })
}

pub(super) fn token(token: &Token) -> Value {
    json!({
        "id": token.id,
        "role": token.role,
        "name": token.name,
        "door": token.door,
        "observe": token.observe,
        "created_at": to_rfc3339(token.created_at),
        "expires_at": token.expires_at.map(to_rfc3339),
        "revoked_at": token.revoked_at.map(to_rfc3339),
    })
}

pub(super) fn conversation(conversation: &Conversation) -> Value {
    json!({
        "id": conversation.id,
        "kind": conversation.kind,
        "status": conversation.status,
        "subject": conversation.subject,
        "created_by": conversation.created_by,
        "participants": conversation.participant_count,
        "turns": conversation.turn_count,
        "threads": conversation.thread_count,
        "created_at": to_rfc3339(conversation.created_at),
        "updated_at": to_rfc3339(conversation.updated_at),
        "closed_at": conversation.closed_at.map(to_rfc3339),
        "seq": conversation.seq,
    })
}

pub(super) fn turn(turn: &Turn) -> Value {
    json!({
        "turn": turn.id,
        "seq": turn.seq,
        "from": turn.author,
        "content_type": turn.content_type,
        "body": turn.content.value(),
        "thread": turn.thread,
        "at": to_rfc3339(turn.at),
    })
}

/// A line of history. Facts have one spelling everywhere: that of the books.
pub(super) fn event(event: &Event) -> Value {
    json!({
        "seq": event.seq,
        "at": to_rfc3339(event.at),
        "kind": event.fact.kind(),
        "actor": event.actor,
        "cause": event.cause,
        "fact": serde_json::to_value(&event.fact).unwrap_or_default(),
        "message": event.message.as_deref().map(message),
        "turn": event.turn.as_deref().map(turn),
    })
}

pub(super) fn reservation(held: &Reservation) -> Value {
    json!({
        "id": held.seq,
        "key": held.key,
        "owner": held.owner,
        "scope": held.scope,
        "paths": held.paths,
        "exclusive": held.exclusive,
        "reason": held.reason,
        "status": held.status,
        "issued_at": to_rfc3339(held.issued_at),
        "expires_at": to_rfc3339(held.expires_at),
        "released_at": held.released_at.map(to_rfc3339),
    })
}

pub(super) fn conflict(conflict: &Conflict) -> Value {
    json!({
        "path": conflict.path,
        "held_path": conflict.held_path,
        "holder": conflict.holder,
        "reservation": conflict.reservation,
        "exclusive": conflict.exclusive,
        "expires_at": to_rfc3339(conflict.expires_at),
    })
}

pub(super) fn contact(contact: &Contact) -> Value {
    json!({
        "from": contact.from,
        "to": contact.to,
        "state": contact.state,
        "reason": contact.reason,
        "expires_at": contact.expires_at.map(to_rfc3339),
        "created_at": to_rfc3339(contact.created_at),
        "updated_at": to_rfc3339(contact.updated_at),
    })
}
