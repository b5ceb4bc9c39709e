//! Spelling projects, agents, messages and reservations the way the tools have them.

use posthaste_engine::nouns::{
    Agent, Conflict, ContactPolicy, Delivery, Message, Millis, Priority, RecipientKind, Reservation, Seq,
};
use posthaste_engine::presence::Presence;
use posthaste_engine::verbs::mail::SendReceipt;
use posthaste_engine::views::{InboxMessage, Tracked, View, Viewed};
use posthaste_wire::time::{parse_timestamp, to_rfc3339};
use serde_json::{Map, Value, json};

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

/// The moment of something in the history. Its place fills the microseconds, so that of several things in one
/// millisecond each has a time of its own and `since_ts` misses none.
pub(super) fn placed(at: Millis, seq: Seq) -> String {
    moment(at, seq.rem_euclid(1000))
}

fn moment(at: Millis, micros: i64) -> String {
    let text = to_rfc3339(at);
    format!("{}{micros:03}+00:00", text.trim_end_matches('Z'))
}

/// A `since_ts` as it is given: the millisecond, and the place within it if the text goes that far.
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

    /// The last place of the history that is not after it.
    pub(super) fn place(self, view: &View<'_>) -> Viewed<Seq> {
        let last = view.last_seq_at(self.at)?;
        let Some(micros) = self.micros else { return Ok(last) };
        let first = view.last_seq_at(self.at.saturating_sub(1))? + 1;
        let meant = first + (micros - first).rem_euclid(1000);
        Ok(if meant <= last { meant } else { last })
    }
}

pub(super) fn project(project: &Project) -> Value {
    json!({
        "id": project_number(project),
        "slug": project.realm().as_str(),
        "human_key": project.human_key,
        "created_at": time(project.created_at),
    })
}

pub(super) fn project_number(project: &Project) -> i64 {
    number(&["project", project.realm().as_str()])
}

fn agent_number(project: &Project, agent: &str) -> i64 {
    number(&[project.realm().as_str(), agent])
}

/// What an agent said of itself when it registered.
pub(super) fn said(agent: &Agent, member: &str) -> Value {
    agent
        .meta
        .as_ref()
        .map(|meta| meta.value())
        .and_then(|meta| meta.get(member).cloned())
        .unwrap_or(Value::Null)
}

pub(super) fn profile(project: &Project, agent: &Agent, seen: Option<&Presence>) -> Value {
    let last = seen.map_or(agent.updated_at, |seen| seen.seen_at.max(agent.updated_at));
    let text = |value: Value| if value.is_string() { value } else { Value::from("") };
    json!({
        "id": agent_number(project, agent.id.as_str()),
        "name": agent.id,
        "program": text(said(agent, "program")),
        "model": text(said(agent, "model")),
        "task_description": agent.description.as_deref().unwrap_or_default(),
        "inception_ts": time(agent.created_at),
        "last_active_ts": time(last),
        "project_id": project_number(project),
        "attachments_policy": said(agent, "attachments_policy").as_str().unwrap_or("auto"),
    })
}

/// The policy's word at this door.
pub(super) fn policy(agent: &Agent) -> &'static str {
    let nobody = agent.bounds.as_ref().and_then(|bounds| bounds.takes_from_agents.as_ref());
    if nobody == Some(&posthaste_engine::nouns::AgentSet::Empty) {
        return "block_all";
    }
    match agent.contact_policy {
        ContactPolicy::Open if said(agent, "contact_policy") == "auto" => "auto",
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

pub(super) fn priority(importance: &str) -> Priority {
    match importance {
        "urgent" => Priority::URGENT,
        "high" => Priority::HIGH,
        "low" => Priority::LOW,
        _ => Priority::NORMAL,
    }
}

pub(super) use posthaste_host::plain_text::{heading as subject, text as body};

/// What this door keeps in a letter's meta: its topic and what is attached.
pub(super) fn extras(message: &Message) -> (Value, Value) {
    let meta = message.meta.as_ref().filter(|meta| {
        let text = meta.as_str();
        text.contains("\"topic\"") || text.contains("\"attachments\"")
    });
    let mut meta = meta.map_or(Value::Null, |meta| meta.value());
    let mut take = |name| meta.get_mut(name).map_or(Value::Null, Value::take);
    let (topic, attachments) = (take("topic"), take("attachments"));
    let topic = if topic.is_string() { topic } else { Value::Null };
    (topic, if attachments.is_array() { attachments } else { json!([]) })
}

pub(super) fn message(project: &Project, message: &Message, with_body: bool) -> Map<String, Value> {
    let (topic, attachments) = extras(message);
    let mut row = Map::with_capacity(16);
    let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    put("id", message.seq.into());
    put("project_id", project_number(project).into());
    put("sender_id", agent_number(project, message.from.as_str()).into());
    put("thread_id", json!(message.conversation));
    put("topic", topic);
    put("subject", subject(message).into());
    put("importance", importance(message.priority).into());
    put("ack_required", message.ack_required.into());
    put("created_ts", placed(message.at, message.seq).into());
    put("attachments", attachments);
    put("from", message.from.as_str().into());
    if with_body {
        put("body_md", body(message).into());
    }
    row
}

/// A letter in an inbox.
pub(super) fn letter(project: &Project, letter: &InboxMessage, with_body: bool) -> Value {
    let mut row = message(project, &letter.message, with_body);
    row.insert("kind".to_owned(), letter.delivery.copy.as_str().into());
    if let Some(at) = letter.delivery.read_at {
        row.insert("read_at".to_owned(), time(at).into());
    }
    if let Some(at) = letter.delivery.acked_at {
        row.insert("acknowledged_at".to_owned(), time(at).into());
    }
    Value::Object(row)
}

/// A letter as its sender sees it.
pub(super) fn sent(project: &Project, sent: &SendReceipt) -> Value {
    let mut row = message(project, &sent.message, true);
    for (name, copy) in [("to", RecipientKind::To), ("cc", RecipientKind::Cc), ("bcc", RecipientKind::Bcc)] {
        let names =
            sent.receipts.iter().filter(|receipt| receipt.copy == copy).map(|receipt| receipt.agent.as_str());
        row.insert(name.to_owned(), names.collect());
    }
    Value::Object(row)
}

/// A letter with those it went to, as far as the caller may know, and with those who have acknowledged it.
pub(super) fn tracked(project: &Project, tracked: &Tracked, with_body: bool) -> Value {
    let mut row = message(project, &tracked.message, with_body);
    for (name, copy) in [("to", RecipientKind::To), ("cc", RecipientKind::Cc), ("bcc", RecipientKind::Bcc)] {
        let names: Value = of_copy(&tracked.deliveries, copy).collect();
        row.insert(name.to_owned(), names);
    }
    if tracked.message.ack_required {
        let acked = tracked.deliveries.iter().filter_map(|delivery| Some((delivery, delivery.acked_at?)));
        let acked = acked.map(|(delivery, at)| {
            json!({ "agent": delivery.agent, "acknowledged_at": time(at), "response": delivery.note })
        });
        row.insert("acknowledgements".to_owned(), acked.collect());
    }
    Value::Object(row)
}

fn of_copy(deliveries: &[Delivery], copy: RecipientKind) -> impl Iterator<Item = &str> {
    deliveries.iter().filter(move |delivery| delivery.copy == copy).map(|delivery| delivery.agent.as_str())
}

pub(super) fn granted(reservation: &Reservation) -> Value {
    json!({
        "id": reservation.seq,
        "path_pattern": reservation.paths.join(" "),
        "exclusive": reservation.exclusive,
        "reason": reservation.reason.as_deref().unwrap_or_default(),
        "expires_ts": time(reservation.expires_at),
    })
}

/// Overlaps, path by path.
pub(super) fn conflicts<'c>(found: impl Iterator<Item = &'c Conflict>) -> Vec<Value> {
    let mut paths: Vec<(&str, Vec<Value>)> = Vec::new();
    for conflict in found {
        let holder = json!({
            "agent": conflict.holder,
            "path_pattern": conflict.held_path,
            "exclusive": conflict.exclusive,
            "expires_ts": time(conflict.expires_at),
            "file_reservation_id": conflict.reservation,
        });
        match paths.iter_mut().find(|(path, _)| *path == conflict.path) {
            Some((_, holders)) => holders.push(holder),
            None => paths.push((&conflict.path, vec![holder])),
        }
    }
    paths.into_iter().map(|(path, holders)| json!({ "path": path, "holders": holders })).collect()
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
    fn a_moment_carries_its_place() {
        assert_eq!(placed(1_763_232_232_752, 12_963), "2025-11-15T18:43:52.752963+00:00");
        assert_eq!(time(0), "1970-01-01T00:00:00.000000+00:00");
        let since = Since::parse("2025-11-15T18:43:52.752963+00:00").unwrap();
        assert_eq!(since, Since { at: 1_763_232_232_752, micros: Some(963) });
        assert_eq!(Since::parse("2999-01-01T00:00:00Z").unwrap().micros, None);
        assert_eq!(Since::parse("2025-11-15T18:43:52.752Z").unwrap().micros, None);
        assert!(Since::parse("yesterday").is_err());
    }
}
