//! What the office's own methods answer.

use posthaste_engine::nouns::{Agent, Body, Conflict, Delivery, Message, Reservation, Token};
use posthaste_engine::verbs::mail::Sent;
use posthaste_engine::views::{Hit, Letter};
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

pub(super) fn agent(agent: &Agent) -> Value {
    json!({
        "id": agent.id,
        "kind": agent.kind,
        "name": agent.name,
        "role": agent.role,
        "parent": agent.parent,
        "owner": agent.owner,
        "state": agent.state,
        "door": agent.via,
        "scopes": agent.scopes,
        "created_at": to_rfc3339(agent.created_at),
        "updated_at": to_rfc3339(agent.updated_at),
    })
}

pub(super) fn sent(sent: &Sent) -> Value {
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

pub(super) fn letter(letter: &Letter) -> Value {
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

pub(super) fn reservation(held: &Reservation) -> Value {
    json!({
        "number": held.seq,
        "key": held.key,
        "owner": held.owner,
        "scope": held.scope,
        "paths": held.paths,
        "exclusive": held.exclusive,
        "reason": held.reason,
        "status": held.status,
        "expires_at": to_rfc3339(held.expires_at),
    })
}

pub(super) fn conflict(conflict: &Conflict) -> Value {
    json!({
        "path": conflict.path,
        "held_path": conflict.held_path,
        "holder": conflict.holder,
        "key": conflict.key,
        "exclusive": conflict.exclusive,
        "expires_at": to_rfc3339(conflict.expires_at),
    })
}

pub(super) fn token(token: &Token) -> Value {
    json!({
        "id": token.id,
        "role": token.role,
        "name": token.name,
        "created_at": to_rfc3339(token.created_at),
        "expires_at": token.expires_at.map(to_rfc3339),
        "revoked_at": token.revoked_at.map(to_rfc3339),
    })
}
