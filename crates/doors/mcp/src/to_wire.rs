//! The engine's projects, agents, messages and reservations as the tools show them.

use posthaste_engine::nouns::{
    Agent, AgentSet, Conflict, ContactPolicy, Delivery, Message, Millis, Priority, RecipientKind,
    Reservation, Seq,
};
use posthaste_engine::presence::Presence;
use posthaste_engine::verbs::mail::SendReceipt;
use posthaste_engine::views::{InboxMessage, Tracked, View, Viewed};
use posthaste_wire::mcp::answers::{self, ConflictsByPath};
use posthaste_wire::time::{parse_timestamp, to_rfc3339};
use serde_json::Value;

use super::errors::DoorError;
use posthaste_host::projects::Project;

/// A number for a name, the same each time. Below 2⁵³, so that every client can count with it.
pub(super) fn number(words: &[&str]) -> i64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in words.join("\n").bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The upper half stirs the lower.
    ((hash ^ (hash >> 32)) & ((1 << 53) - 1)) as i64
}

/// A moment as these clients write it, with microseconds and an offset.
pub(super) fn time(at: Millis) -> String {
    moment(at, 0)
}

/// The moment of an event. Its seq fills the microseconds, so that of several events in one millisecond each has a time of
/// its own and `since_ts` misses none.
pub(super) fn event_time(at: Millis, seq: Seq) -> String {
    moment(at, seq.rem_euclid(1000))
}

fn moment(at: Millis, micros: i64) -> String {
    let text = to_rfc3339(at);
    format!("{}{micros:03}+00:00", text.trim_end_matches('Z'))
}

/// A `since_ts` as it is given: the millisecond, and the microseconds if the text goes that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since {
    at: Millis,
    micros: Option<i64>,
}

impl Since {
    pub(super) fn parse(text: &str) -> Result<Self, DoorError> {
        let at = parse_timestamp(text).map_err(|why| {
            DoorError::new("INVALID_TIMESTAMP", format!("since_ts: {why}; such as 2026-11-15T18:43:52+00:00"))
        })?;
        let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
        let digits: String = fraction.chars().take_while(char::is_ascii_digit).collect();
        let micros = digits.get(3..6).and_then(|micros| micros.parse().ok());
        Ok(Self { at, micros })
    }

    /// The last seq of the event log that is not after it.
    pub(super) fn seq(self, view: &View<'_>) -> Viewed<Seq> {
        let last = view.last_seq_at(self.at)?;
        let Some(micros) = self.micros else { return Ok(last) };
        let first = view.last_seq_at(self.at.saturating_sub(1))? + 1;
        let meant = first + (micros - first).rem_euclid(1000);
        Ok(if meant <= last { meant } else { last })
    }
}

/// A project without the realm it is in.
pub(super) fn project(project: &Project) -> answers::Project {
    answers::Project {
        id: project_number(project),
        slug: project.realm().to_string(),
        human_key: project.human_key.clone(),
        created_at: time(project.created_at),
    }
}

fn project_number(project: &Project) -> i64 {
    number(&["project", project.realm().as_str()])
}

fn agent_number(project: &Project, agent: &str) -> i64 {
    number(&[project.realm().as_str(), agent])
}

/// What an agent said of itself when it registered.
pub(super) fn said(agent: &Agent, member: &str) -> Option<String> {
    let meta = agent.meta.as_ref()?.value();
    meta.get(member).and_then(Value::as_str).map(str::to_owned)
}

/// An agent, with its last sign of life.
pub(super) fn profile(project: &Project, agent: &Agent, seen: Option<&Presence>) -> answers::Profile {
    let last = seen.map_or(agent.updated_at, |seen| seen.seen_at.max(agent.updated_at));
    answers::Profile {
        id: agent_number(project, agent.id.as_str()),
        name: agent.id.to_string(),
        program: said(agent, "program").unwrap_or_default(),
        model: said(agent, "model").unwrap_or_default(),
        task_description: agent.description.clone().unwrap_or_default(),
        inception_ts: time(agent.created_at),
        last_active_ts: time(last),
        project_id: project_number(project),
        attachments_policy: said(agent, "attachments_policy").unwrap_or_else(|| "auto".to_owned()),
    }
}

/// The policy's word at this door.
pub(super) fn policy(agent: &Agent) -> &'static str {
    let senders = agent.bounds.as_ref().and_then(|bounds| bounds.takes_from_agents.as_ref());
    if senders == Some(&AgentSet::Empty) {
        return "block_all";
    }
    match agent.contact_policy {
        ContactPolicy::Open if said(agent, "contact_policy").as_deref() == Some("auto") => "auto",
        ContactPolicy::Open => "open",
        ContactPolicy::Contacts => "contacts_only",
        ContactPolicy::Closed => "block_all",
    }
}

pub(super) fn importance(priority: Priority) -> &'static str {
    match priority {
        Priority::URGENT => "urgent",
        Priority::HIGH => "high",
        Priority::NORMAL => "normal",
        _ => "low",
    }
}

pub(super) use posthaste_host::plain_text::{heading as subject, text as body};

/// What this door keeps in a message's meta: its topic and what is attached.
pub(super) fn extras(message: &Message) -> (Option<String>, Vec<Value>) {
    let meta = message.meta.as_ref().filter(|meta| {
        let text = meta.as_str();
        text.contains("\"topic\"") || text.contains("\"attachments\"")
    });
    let Some(mut meta) = meta.map(|meta| meta.value()) else { return (None, Vec::new()) };
    let mut take = |name| meta.get_mut(name).map_or(Value::Null, Value::take);
    let topic = match take("topic") {
        Value::String(topic) => Some(topic),
        _ => None,
    };
    let attachments = match take("attachments") {
        Value::Array(attachments) => attachments,
        _ => Vec::new(),
    };
    (topic, attachments)
}

fn message(project: &Project, message: &Message, with_body: bool) -> answers::Message {
    let (topic, attachments) = extras(message);
    answers::Message {
        id: message.seq,
        project_id: project_number(project),
        sender_id: agent_number(project, message.from.as_str()),
        thread_id: message.conversation.as_ref().map(ToString::to_string),
        topic,
        subject: subject(message),
        importance: importance(message.priority).to_owned(),
        ack_required: message.ack_required,
        created_ts: event_time(message.at, message.seq),
        attachments,
        from: message.from.to_string(),
        body_md: with_body.then(|| body(message)),
    }
}

/// A message as its recipient sees it.
pub(super) fn received(project: &Project, found: &InboxMessage, with_body: bool) -> answers::InboxMessage {
    answers::InboxMessage {
        message: message(project, &found.message, with_body),
        kind: found.delivery.copy.as_str().to_owned(),
        read_at: found.delivery.read_at.map(time),
        acknowledged_at: found.delivery.acked_at.map(time),
    }
}

/// Messages as their recipient sees them.
pub(super) fn inbox(
    project: &Project,
    found: &[InboxMessage],
    with_bodies: bool,
) -> Vec<answers::InboxMessage> {
    found.iter().map(|found| received(project, found, with_bodies)).collect()
}

/// A message as its sender sees it.
pub(super) fn sent(project: &Project, sent: &SendReceipt) -> answers::SentMessage {
    let names = |copy| {
        let receipts = sent.receipts.iter().filter(move |receipt| receipt.copy == copy);
        receipts.map(|receipt| receipt.agent.to_string()).collect()
    };
    answers::SentMessage {
        message: message(project, &sent.message, true),
        to: names(RecipientKind::To),
        cc: names(RecipientKind::Cc),
        bcc: names(RecipientKind::Bcc),
    }
}

/// A message with its recipients, as far as the caller may know, and those that have acknowledged it.
pub(super) fn tracked(project: &Project, tracked: &Tracked, with_body: bool) -> answers::TrackedMessage {
    let names = |copy| {
        let deliveries = tracked.deliveries.iter().filter(move |delivery| delivery.copy == copy);
        deliveries.map(|delivery| delivery.agent.to_string()).collect()
    };
    let acknowledgement = |delivery: &Delivery| {
        Some(answers::Acknowledgement {
            agent: delivery.agent.to_string(),
            acknowledged_at: time(delivery.acked_at?),
            response: delivery.note.clone(),
        })
    };
    let acknowledgements = tracked.message.ack_required;
    answers::TrackedMessage {
        sent: answers::SentMessage {
            message: message(project, &tracked.message, with_body),
            to: names(RecipientKind::To),
            cc: names(RecipientKind::Cc),
            bcc: names(RecipientKind::Bcc),
        },
        acknowledgements: acknowledgements
            .then(|| tracked.deliveries.iter().filter_map(acknowledgement).collect()),
    }
}

/// A reservation that was granted.
pub(super) fn granted(reservation: &Reservation) -> answers::GrantedReservation {
    answers::GrantedReservation {
        id: reservation.seq,
        path_pattern: reservation.paths.join(" "),
        exclusive: reservation.exclusive,
        reason: reservation.reason.clone().unwrap_or_default(),
        expires_ts: time(reservation.expires_at),
    }
}

/// Overlaps, path by path.
pub(super) fn conflicts<'c>(found: impl Iterator<Item = &'c Conflict>) -> Vec<ConflictsByPath> {
    let mut paths: Vec<ConflictsByPath> = Vec::new();
    for conflict in found {
        let holder = answers::Holder {
            agent: conflict.holder.to_string(),
            path_pattern: conflict.held_path.clone(),
            exclusive: conflict.exclusive,
            expires_ts: time(conflict.expires_at),
            file_reservation_id: conflict.reservation,
        };
        match paths.iter_mut().find(|known| known.path == conflict.path) {
            Some(known) => known.holders.push(holder),
            None => paths.push(ConflictsByPath { path: conflict.path.clone(), holders: vec![holder] }),
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_small_enough_for_every_client_and_stay_the_same() {
        let of = |name: &str| number(&["main", name]);
        assert_eq!(of("BlueLake"), of("BlueLake"));
        assert_ne!(of("BlueLake"), of("GreenHarbor"));
        for name in 0..1000 {
            assert!((0..1 << 53).contains(&of(&name.to_string())));
        }
    }

    #[test]
    fn a_moment_carries_its_seq() {
        assert_eq!(event_time(1_763_232_232_752, 12_963), "2025-11-15T18:43:52.752963+00:00");
        assert_eq!(time(0), "1970-01-01T00:00:00.000000+00:00");
        let since = Since::parse("2025-11-15T18:43:52.752963+00:00").unwrap();
        assert_eq!(since, Since { at: 1_763_232_232_752, micros: Some(963) });
        assert_eq!(Since::parse("2999-01-01T00:00:00Z").unwrap().micros, None);
        assert_eq!(Since::parse("2025-11-15T18:43:52.752Z").unwrap().micros, None);
        assert!(Since::parse("yesterday").is_err());
    }
}
