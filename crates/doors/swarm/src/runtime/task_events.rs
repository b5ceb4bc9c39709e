//! The events of a task, made from its messages and notes: the same for live streams, resumed streams and lists.

use posthaste_engine::nouns::{AgentId, Caller, Message, Seq, TaskId};
use posthaste_engine::views::{RunMessageRow, RunRecord};
use posthaste_engine::{Engine, EngineError};
use posthaste_wire::mail::events::{self, MessageSent, TaskEnded};
use posthaste_wire::mail::tasks::EventData;
use posthaste_wire::mail::{AddressType, MailMessage, MsgType, subjects};
use posthaste_wire::time::to_rfc3339;
use serde::Serialize;

use super::messages::{MessageMeta, to_mail};
use super::run_state::Note;

/// Messages per read of the database.
const MESSAGE_PAGE: usize = 500;

/// One event of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskEvent {
    /// Its position; later events have larger ones.
    pub(crate) cursor: Cursor,
    pub(crate) name: String,
    pub(crate) data: EventData,
    /// The result of the task, if the event is its end.
    pub(crate) response: Option<String>,
}

/// A position among the events of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    /// The seq; notes come before the message with their seq.
    place: Seq,
    is_message: bool,
    n: i64,
    i: usize,
}

impl Cursor {
    /// Before all events from a seq on.
    pub(crate) fn before(place: Seq) -> Self {
        Self { place, is_message: false, n: 0, i: 0 }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let place = parts.next()?.parse().ok()?;
        let is_message = match parts.next()? {
            "n" => false,
            "m" => true,
            _ => return None,
        };
        let cursor =
            Self { place, is_message, n: parts.next()?.parse().ok()?, i: parts.next()?.parse().ok()? };
        parts.next().is_none().then_some(cursor)
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}.{}", self.place, if self.is_message { 'm' } else { 'n' }, self.n, self.i)
    }
}

/// Reads a task's events after a position. The second is true if there are more.
pub(crate) async fn read(
    engine: &Engine,
    caller: &Caller,
    task: &TaskId,
    task_id: &str,
    after: Cursor,
) -> Result<(Vec<TaskEvent>, bool), EngineError> {
    let (caller, task) = (caller.clone(), task.clone());
    let record = engine.read(move |view| view.run_record(&caller, &task, after.place, MESSAGE_PAGE)).await?;
    let more = record.more;
    let mut found = render(&record, task_id, engine.realm().as_str());
    found.retain(|event| event.cursor > after);
    Ok((found, more))
}

/// Reads all of a task's events.
pub(crate) async fn read_all(
    engine: &Engine,
    caller: &Caller,
    task: &TaskId,
    task_id: &str,
) -> Result<Vec<TaskEvent>, EngineError> {
    let mut all: Vec<TaskEvent> = Vec::new();
    loop {
        let after = all.last().map_or(Cursor::default(), |event| event.cursor);
        let (mut found, more) = read(engine, caller, task, task_id, after).await?;
        all.append(&mut found);
        if !more {
            return Ok(all);
        }
    }
}

fn render(record: &RunRecord, task_id: &str, swarm: &str) -> Vec<TaskEvent> {
    let mut out = Vec::new();
    let mut notes = record.notes.iter().peekable();
    for row in &record.messages {
        while let Some(note) = notes.next_if(|note| note.before <= row.message.seq) {
            note_events(&mut out, note, task_id);
        }
        message_events(&mut out, row, task_id, swarm);
    }
    if !record.more {
        notes.for_each(|note| note_events(&mut out, note, task_id));
    }
    out
}

fn note_events(out: &mut Vec<TaskEvent>, note: &posthaste_engine::nouns::RunNote, task_id: &str) {
    let at = to_rfc3339(note.at);
    for (i, (name, description, details)) in Note::read(&note.note).events.into_iter().enumerate() {
        let cursor = Cursor { place: note.before, is_message: false, n: note.n, i: i + 1 };
        let (timestamp, task_id) = (at.clone(), task_id.to_owned());
        let data = EventData { timestamp, description, task_id, extra_data: details };
        out.push(TaskEvent { cursor, name, data, response: None });
    }
}

fn message_events(out: &mut Vec<TaskEvent>, row: &RunMessageRow, task_id: &str, swarm: &str) {
    let message: &Message = &row.message;
    let at = to_rfc3339(message.at);
    let mail = to_mail(message, task_id, swarm);
    let kind = mail.msg_type.as_str();
    let sender = &mail.message.sender.address;
    let mut i = 0;
    let mut event = |name: &str, description: String| {
        i += 1;
        let cursor = Cursor { place: message.seq, is_message: true, n: 0, i };
        let (timestamp, task_id) = (at.clone(), task_id.to_owned());
        let data = EventData { timestamp, description, task_id, extra_data: serde_json::Value::Null };
        TaskEvent { cursor, name: name.to_owned(), data, response: None }
    };
    let sent = |notice: Option<bool>| MessageSent { full_message: MailMessage::clone(&mail), notice };
    let (local, remote): (Vec<&AgentId>, Vec<&AgentId>) =
        row.deliveries.iter().map(|(agent, _, _)| agent).partition(|agent| !agent.as_str().contains('@'));
    for agent in local {
        let description = format!("{kind} from {sender} to {agent}");
        out.push(event(events::NEW_MESSAGE, description).with(sent(None)));
    }
    if !remote.is_empty() {
        let to = remote.iter().map(|agent| agent.as_str()).collect::<Vec<_>>().join(", ");
        let notice = MessageMeta::of(message).notice;
        let description = format!("{kind} from {sender} to {to}");
        out.push(event(events::INTERSWARM_SENT, description).with(sent(Some(notice))));
    }
    let first = mail.message.recipients.first().map(|one| one.address_type);
    let to_user = matches!(first, Some(AddressType::User | AddressType::Admin));
    if mail.msg_type == MsgType::BroadcastComplete || to_user {
        out.push(event(events::NEW_MESSAGE, format!("{kind} from {sender}")).with(sent(None)));
        let subject = mail.message.subject.clone();
        let name = if is_error(&subject) { events::TASK_ERROR } else { events::TASK_COMPLETE };
        let end = event(name, "the task has ended".to_owned()).with(TaskEnded { subject });
        out.push(TaskEvent { response: Some(mail.message.body.clone()), ..end });
    }
}

impl TaskEvent {
    fn with(mut self, details: impl Serialize) -> Self {
        self.data.extra_data = serde_json::to_value(details).unwrap_or_default();
        self
    }
}

/// Whether the subject is that of a task that failed.
pub(crate) fn is_error(subject: &str) -> bool {
    matches!(
        subject,
        subjects::TASK_ERROR | subjects::TASK_TIMEOUT | subjects::AGENT_ERROR | subjects::CANCELLED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back_and_keep_their_order() {
        let note = Cursor { place: 7, is_message: false, n: 3, i: 1 };
        let message = Cursor { place: 7, is_message: true, n: 0, i: 2 };
        assert!(Cursor::before(7) < note && note < message && message < Cursor::before(8));
        for cursor in [note, message] {
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
        for bad in ["", "7", "7.x.1.1", "7.m.1", "7.m.1.1.1", "-.m.1.1"] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }
}
