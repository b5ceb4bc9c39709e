//! The engine's nouns as results.

use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::{
    Agent, AgentKind, Body, Conflict, Contact, ContactPolicy, ContactState, Conversation, ConversationStatus,
    Delivery, DeliveryState, Event, Message, RecipientKind, Reservation, ReservationStatus, Token, TokenRole,
    Turn,
};
use posthaste_engine::verbs::mail::SendReceipt;
use posthaste_engine::views::{Hit, InboxMessage};
use posthaste_host::attachments;
use posthaste_wire::control as wire;
use posthaste_wire::time::to_rfc3339;
use serde_json::Value;

/// Texts of ids and names.
fn text(name: &impl ToString) -> String {
    name.to_string()
}

fn texts<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(text).collect()
}

/// An id or name that may be absent.
pub(super) fn optional(name: Option<&impl ToString>) -> Option<String> {
    name.map(text)
}

pub(super) fn agent(agent: &Agent) -> wire::Agent {
    wire::Agent {
        id: text(&agent.id),
        kind: agent_kind(agent.kind),
        name: agent.name.clone(),
        role: agent.role.clone(),
        parent: optional(agent.parent.as_ref()),
        owner: optional(agent.owner.as_ref()),
        state: agent.state.clone(),
        door: (!agent.via.is_empty()).then(|| agent.via.clone()),
        scopes: texts(&agent.scopes),
        created_at: to_rfc3339(agent.created_at),
        updated_at: to_rfc3339(agent.updated_at),
    }
}

fn agent_kind(kind: AgentKind) -> wire::AgentKind {
    match kind {
        AgentKind::Agent => wire::AgentKind::Agent,
        AgentKind::User => wire::AgentKind::User,
        AgentKind::Admin => wire::AgentKind::Admin,
        AgentKind::Client => wire::AgentKind::Client,
        AgentKind::Gateway => wire::AgentKind::Gateway,
        AgentKind::System => wire::AgentKind::System,
    }
}

pub(super) fn contact_policy(policy: ContactPolicy) -> wire::ContactPolicy {
    match policy {
        ContactPolicy::Open => wire::ContactPolicy::Open,
        ContactPolicy::Contacts => wire::ContactPolicy::Contacts,
        ContactPolicy::Closed => wire::ContactPolicy::Closed,
    }
}

pub(super) fn sent(sent: &SendReceipt) -> wire::SendResult {
    let receipts = sent.receipts.iter().map(|receipt| wire::Receipt {
        agent: text(&receipt.agent),
        copy: recipient_kind(receipt.copy),
        state: delivery_state(receipt.state),
    });
    wire::SendResult {
        id: text(&sent.message.id),
        seq: sent.message.seq,
        at: to_rfc3339(sent.message.at),
        receipts: receipts.collect(),
        repeated: sent.repeated,
    }
}

fn recipient_kind(kind: RecipientKind) -> wire::RecipientKind {
    match kind {
        RecipientKind::To => wire::RecipientKind::To,
        RecipientKind::Cc => wire::RecipientKind::Cc,
        RecipientKind::Bcc => wire::RecipientKind::Bcc,
    }
}

fn delivery_state(state: DeliveryState) -> wire::DeliveryState {
    match state {
        DeliveryState::Queued => wire::DeliveryState::Queued,
        DeliveryState::Delivered => wire::DeliveryState::Delivered,
        DeliveryState::Read => wire::DeliveryState::Read,
        DeliveryState::Acked => wire::DeliveryState::Acked,
        DeliveryState::Expired => wire::DeliveryState::Expired,
        DeliveryState::Failed => wire::DeliveryState::Failed,
    }
}

pub(super) fn inbox_message(found: &InboxMessage) -> wire::InboxMessage {
    wire::InboxMessage { message: message(&found.message), delivery: delivery(&found.delivery) }
}

pub(super) fn message(message: &Message) -> wire::Message {
    let to = message.to.iter().map(|address| serde_json::to_value(address).unwrap_or_default());
    wire::Message {
        id: text(&message.id),
        seq: message.seq,
        from: text(&message.from),
        to: to.collect(),
        kind: message.kind.clone(),
        subject: message.subject.clone(),
        body: match &message.body {
            Body::Text(text) => Value::String(text.clone()),
            Body::Json(json) => json.value(),
        },
        priority: message.priority.tier(),
        ack_required: message.ack_required,
        expires_at: message.expires_at.map(to_rfc3339),
        conversation: optional(message.conversation.as_ref()),
        in_reply_to: optional(message.in_reply_to.as_ref()),
        key: message.key.clone(),
        door: message.via.clone(),
        at: to_rfc3339(message.at),
        attachments: attachments::links(message),
    }
}

pub(super) fn delivery(delivery: &Delivery) -> wire::Delivery {
    wire::Delivery {
        agent: text(&delivery.agent),
        copy: recipient_kind(delivery.copy),
        state: delivery_state(delivery.state),
        delivered_at: delivery.delivered_at.map(to_rfc3339),
        read_at: delivery.read_at.map(to_rfc3339),
        acked_at: delivery.acked_at.map(to_rfc3339),
        note: delivery.note.clone(),
    }
}

pub(super) fn hit(hit: &Hit) -> wire::Hit {
    let (from, subject, conversation) = match (&hit.message, &hit.turn) {
        (Some(message), _) => (Some(&message.from), message.subject.clone(), message.conversation.as_ref()),
        (None, Some(turn)) => (Some(&turn.author), None, Some(&turn.conversation)),
        (None, None) => (None, None, None),
    };
    wire::Hit {
        seq: hit.seq,
        message: hit.message.as_ref().map(|message| text(&message.id)),
        turn: hit.turn.as_ref().map(|turn| text(&turn.id)),
        from: optional(from),
        subject,
        conversation: optional(conversation),
        snippet: hit.snippet.clone(),
    }
}

pub(super) fn token(token: &Token) -> wire::Token {
    wire::Token {
        id: token.id.clone(),
        role: token_role(token.role),
        name: token.name.clone(),
        door: token.door.clone(),
        observe: token.observe,
        created_at: to_rfc3339(token.created_at),
        expires_at: token.expires_at.map(to_rfc3339),
        revoked_at: token.revoked_at.map(to_rfc3339),
    }
}

pub(super) fn token_role(role: TokenRole) -> wire::TokenRole {
    match role {
        TokenRole::Admin => wire::TokenRole::Admin,
        TokenRole::User => wire::TokenRole::User,
        TokenRole::Agent => wire::TokenRole::Agent,
    }
}

pub(super) fn conversation(conversation: &Conversation) -> wire::Conversation {
    wire::Conversation {
        id: text(&conversation.id),
        kind: conversation.kind.clone(),
        status: match conversation.status {
            ConversationStatus::Active => wire::ConversationStatus::Active,
            ConversationStatus::Paused => wire::ConversationStatus::Paused,
            ConversationStatus::Completed => wire::ConversationStatus::Completed,
            ConversationStatus::Failed => wire::ConversationStatus::Failed,
            ConversationStatus::Archived => wire::ConversationStatus::Archived,
        },
        subject: conversation.subject.clone(),
        created_by: text(&conversation.created_by),
        participants: conversation.participant_count,
        turns: conversation.turn_count,
        threads: conversation.thread_count,
        created_at: to_rfc3339(conversation.created_at),
        updated_at: to_rfc3339(conversation.updated_at),
        closed_at: conversation.closed_at.map(to_rfc3339),
        seq: conversation.seq,
    }
}

pub(super) fn turn(turn: &Turn) -> wire::Turn {
    wire::Turn {
        turn: text(&turn.id),
        seq: turn.seq,
        from: text(&turn.author),
        content_type: turn.content_type.clone(),
        body: turn.content.value(),
        thread: optional(turn.thread.as_ref()),
        at: to_rfc3339(turn.at),
    }
}

/// An event. Its fact has the form that the database stores.
pub(super) fn event(event: &Event) -> wire::Event {
    wire::Event {
        seq: event.seq,
        at: to_rfc3339(event.at),
        kind: event.fact.kind().to_owned(),
        actor: text(&event.actor),
        cause: event.cause,
        fact: serde_json::to_value(&event.fact).unwrap_or_default(),
        message: event.message.as_deref().map(message),
        turn: event.turn.as_deref().map(turn),
    }
}

pub(super) fn reservation(held: &Reservation) -> wire::Reservation {
    wire::Reservation {
        id: held.seq,
        key: held.key.clone(),
        owner: text(&held.owner),
        scope: held.scope.clone(),
        paths: held.paths.clone(),
        exclusive: held.exclusive,
        reason: held.reason.clone(),
        status: match held.status {
            ReservationStatus::Active => wire::ReservationStatus::Active,
            ReservationStatus::Released => wire::ReservationStatus::Released,
            ReservationStatus::Expired => wire::ReservationStatus::Expired,
        },
        issued_at: to_rfc3339(held.issued_at),
        expires_at: to_rfc3339(held.expires_at),
        released_at: held.released_at.map(to_rfc3339),
    }
}

pub(super) fn conflict(conflict: &Conflict) -> wire::Conflict {
    wire::Conflict {
        path: conflict.path.clone(),
        held_path: conflict.held_path.clone(),
        holder: text(&conflict.holder),
        reservation: conflict.reservation,
        exclusive: conflict.exclusive,
        expires_at: to_rfc3339(conflict.expires_at),
    }
}

pub(super) fn contact(contact: &Contact) -> wire::Contact {
    wire::Contact {
        from: text(&contact.from),
        to: text(&contact.to),
        state: match contact.state {
            ContactState::Pending => wire::ContactState::Pending,
            ContactState::Accepted => wire::ContactState::Accepted,
            ContactState::Blocked => wire::ContactState::Blocked,
        },
        reason: contact.reason.clone(),
        expires_at: contact.expires_at.map(to_rfc3339),
        created_at: to_rfc3339(contact.created_at),
        updated_at: to_rfc3339(contact.updated_at),
    }
}

/// The limits of the process and of the realm.
pub(super) fn limits(limits: &Limits, rules: Rules) -> wire::Limits {
    let number = |size: usize| size as u64;
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    wire::Limits {
        message_bytes: number(limits.message_bytes),
        addresses: number(limits.addresses),
        text_bytes: number(limits.text_bytes),
        entry_bytes: number(limits.entry_bytes),
        queue_commands: number(limits.queue_commands),
        queue_bytes: number(limits.queue_bytes),
        share_commands: number(limits.share_commands),
        batch_commands: number(limits.batch_commands),
        batch_open_ms: millis(limits.batch_open),
        page: number(limits.page),
        page_bytes: number(limits.page_bytes),
        answer_bytes: number(limits.answer_bytes),
        read_cpu_ms: millis(limits.read_cpu),
        share_readers: number(limits.share_readers),
        share_patterns: number(limits.share_patterns),
        share_broad: number(limits.share_broad),
        search_phrases: number(limits.search_phrases),
        search_rows: number(limits.search_rows),
        replay_rows: number(limits.replay_rows),
        live_events: number(limits.live_events),
        slot_messages: number(limits.mailbox_messages),
        slot_bytes: number(limits.mailbox_bytes),
        slots_bytes: number(limits.all_mailboxes_bytes),
        open_realms: number(limits.open_realms),
        rules: self::rules(rules),
    }
}

/// A realm's rules. Without `..`, so that a rule that is added to the engine must be added here.
pub(super) fn rules(rules: Rules) -> wire::Rules {
    let Rules {
        thread_depth,
        reservations_per_scope,
        reservation_days,
        paths_per_reservation,
        path_bytes,
        path_wildcards,
        paths_per_scope,
        paths_per_agent,
        glob_steps,
        conflicts,
        recipients,
        groups,
        agents_per_owner,
        scopes_per_owner,
        scopes_per_agent,
        changes_per_command,
        bounds_names,
        participants,
        pending_contacts,
        mail_bytes_per_sender,
        mail_bytes_per_realm,
        sweep_rows,
        reach,
    } = rules;
    let reach = reach.into_iter().map(|(agent, reached)| (text(&agent), reached.iter().map(text).collect()));
    wire::Rules {
        thread_depth,
        reservations_per_scope,
        reservation_days,
        paths_per_reservation,
        path_bytes,
        path_wildcards,
        paths_per_scope,
        paths_per_agent,
        glob_steps,
        conflicts,
        recipients,
        groups,
        agents_per_owner,
        scopes_per_owner,
        scopes_per_agent,
        changes_per_command,
        bounds_names,
        participants,
        pending_contacts,
        mail_bytes_per_sender,
        mail_bytes_per_realm,
        sweep_rows,
        reach: reach.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_names_order_and_values() {
        let engine = serde_json::to_string(&Rules::default()).unwrap();
        assert_eq!(serde_json::to_string(&rules(Rules::default())).unwrap(), engine);
    }
}
