//! The parts of every list: badges, names, the row of a message.

use maud::{Markup, html};
use posthaste_engine::nouns::{
    AgentId, ConversationId, Delivery, DeliveryState, Message, Millis, Priority, TaskStatus,
};

use super::query::encoded;
use super::text;
use super::visitor::Visitor;

/// A message without an acknowledgement is overdue after this time.
pub(super) const OVERDUE: Millis = 60 * 60 * 1_000;

/// A door's initial and tint; the same in lists, lanes and plots.
pub(super) fn door(via: &str) -> Markup {
    let (class, initial) = door_sign(via);
    html! { span class={"door " (class)} title={"came in by " (via)} { (initial) } }
}

/// The class and initial of a door.
pub(super) fn door_sign(via: &str) -> (&'static str, &'static str) {
    match via {
        "map" => ("d-map", "M"),
        "swarm" => ("d-swarm", "S"),
        "airc" => ("d-airc", "A"),
        "mcp" => ("d-mcp", "C"),
        "files" => ("d-files", "F"),
        "web" => ("d-web", "W"),
        "cli" => ("d-cli", "›"),
        _ => ("d-other", "·"),
    }
}

/// Every door that has a sign, for legends.
pub(super) const DOORS: [&str; 7] = ["map", "swarm", "airc", "mcp", "files", "web", "cli"];

pub(super) fn legend(shown: &[&str]) -> Markup {
    html! { span.legend { @for via in shown { span { (door(via)) " " (via) } } } }
}

/// An agent's name, leading to its page.
pub(super) fn agent(visitor: &Visitor, id: &AgentId) -> Markup {
    html! { a.agent href=(visitor.to(&format!("/agents/{}", encoded(id.as_str())))) { (id) } }
}

pub(super) fn conversation(visitor: &Visitor, id: &ConversationId) -> Markup {
    html! {
        a.thread href=(visitor.to(&format!("/conversations/{}", encoded(id.as_str())))) title=(id) {
            "#" (text::cut(id.as_str(), 18))
        }
    }
}

/// A word with a colour class, or none.
pub(super) fn chip(class: &str, text: &str) -> Markup {
    html! { span class={"chip " (class)} { (text) } }
}

pub(super) fn task_state(status: TaskStatus) -> Markup {
    let class = match status {
        TaskStatus::Open => "",
        TaskStatus::InProgress => "accent",
        TaskStatus::Blocked => "warn",
        TaskStatus::Completed => "ok",
        TaskStatus::Failed => "danger",
    };
    chip(class, status.as_str().replace('_', " ").as_str())
}

/// The state of the acknowledgement that the sender asked for.
pub(super) fn ack(now: Millis, message: &Message, delivery: Option<&Delivery>) -> Markup {
    html! {
        @if let Some(delivery) = delivery {
            @match delivery.state {
                DeliveryState::Acked => { (chip("ok", "acked")) }
                DeliveryState::Expired => { (chip("danger", "expired")) }
                DeliveryState::Failed => { (chip("danger", "failed")) }
                _ if message.ack_required && now - message.at > OVERDUE => { (chip("danger", "ack overdue")) }
                _ if message.ack_required => { (chip("warn", "ack asked")) }
                _ => {}
            }
        } @else if message.ack_required { (chip("", "asks for ack")) }
    }
}

/// Whether a message is signed. One with an invalid signature never looks like one without.
pub(super) fn seal(message: &Message) -> Markup {
    let failed = message.meta.as_ref().is_some_and(|meta| {
        let meta = meta.value();
        ["verified", "signature_valid"]
            .iter()
            .any(|name| meta.get(name).and_then(|v| v.as_bool()) == Some(false))
    });
    html! {
        @if failed { span.seal.broken title="The signature does not fit the message" { "✗ signature" } }
        @else if message.envelope.is_some() { span.seal title="Signed; checked when it came in" { "✓" } }
    }
}

pub(super) fn priority_class(priority: Priority) -> &'static str {
    match priority {
        Priority::URGENT => "p1",
        Priority::HIGH => "p2",
        Priority::LOW | Priority::BULK => "p4",
        _ => "",
    }
}

pub(super) fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::URGENT => "urgent",
        Priority::HIGH => "high",
        Priority::LOW => "low",
        Priority::BULK => "bulk",
        _ => "normal",
    }
}

/// One message on one line. It opens in the drawer, under an address that can be shared.
pub(super) fn message(visitor: &Visitor, message: &Message, delivery: Option<&Delivery>) -> Markup {
    let unread = delivery.is_some_and(|delivery| delivery.state.is_unread());
    let mut class = format!("row message {}", priority_class(message.priority));
    if unread {
        class.push_str(" unread");
    }
    let address = visitor.here_with("message", Some(&message.id.to_string()));
    html! {
        li class=(class) data-id=(message.id) {
            a.open href=(address) data-drawer="" {
                span.who { span.from { (message.from) } span.arrow { "→" } span.to { (text::addresses(&message.to)) } }
                span.what {
                    (seal(message))
                    span.subject { (text::heading(message)) }
                    span.first { (text::first_line(&message.body)) }
                }
            }
            span.tail {
                (ack(visitor.now, message, delivery))
                @if let Some(id) = &message.conversation { (conversation(visitor, id)) }
                (door(&message.via))
                (text::ago(visitor.now, message.at))
            }
        }
    }
}
