//! What the commands of a batch have asked to be written: rows, events, rules. Rows are buffered and inserted many at a time,
//! because sixteen rows in one statement cost about half of sixteen statements.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use rusqlite::Connection;

use super::fulltext::UnindexedTexts;
use crate::limits::Rules;
use crate::nouns::{
    AgentId, Body, DeliveryState, Event, Fact, Message, Millis, RecipientKind, Seq, Turn, TurnVisibility,
};
use crate::store::multi_insert::{Columns, MultiInsert};
use crate::store::{rows, short};

static MESSAGES: LazyLock<MultiInsert> = LazyLock::new(|| {
    let columns = "seq, id, sender, recipients, kind, subject, body, is_json, priority, ack_required, expires_at,
                   correlation, conversation, thread, in_reply_to, task, key, envelope, meta, audience, via, at";
    MultiInsert::new("messages", columns)
});
static DELIVERIES: LazyLock<MultiInsert> = LazyLock::new(|| {
    let columns = "agent, message, recipient_kind, kind, priority, expires_at, state, delivered_at";
    MultiInsert::new("deliveries", columns)
});
static TURNS: LazyLock<MultiInsert> = LazyLock::new(|| {
    let columns = "seq, id, conversation, thread, author, content_type, content, message, in_reply_to, visibility, meta,
                   at, conversation_seq, author_hash, type_hash";
    MultiInsert::new("turns", columns)
});
static EVENTS: LazyLock<MultiInsert> =
    LazyLock::new(|| MultiInsert::new("events", "seq, at, kind, actor, cause, message, conversation, fact"));

/// The delivery of a message to one recipient.
#[derive(Debug)]
pub(crate) struct NewDelivery {
    pub(crate) message: Arc<Message>,
    pub(crate) agent: AgentId,
    pub(crate) kind: RecipientKind,
    pub(crate) state: DeliveryState,
    pub(crate) delivered_at: Option<Millis>,
}

/// A turn, the seq of its conversation, and that of the message it records.
#[derive(Debug)]
pub(crate) struct NewTurn {
    pub(crate) turn: Arc<Turn>,
    pub(crate) conversation_seq: Seq,
    pub(crate) message: Option<Seq>,
}

/// Effects of the batch that are not in the database yet.
#[derive(Debug)]
pub(crate) struct Effects {
    messages: Vec<Arc<Message>>,
    deliveries: Vec<NewDelivery>,
    turns: Vec<NewTurn>,
    events: Vec<Arc<Event>>,
    /// Events at the front of `events` that are in the database.
    written_events: usize,
    /// The seq of the last event.
    last: Seq,
    /// Rules that the command at hand has set.
    rules: Option<Rules>,
    texts: UnindexedTexts,
    restore: Restore,
    /// Whether rows are buffered. Rows of a command that may read them again are written at once.
    buffering: bool,
}

/// What a rollback goes back to.
#[derive(Clone, Copy, Debug)]
struct Restore {
    events: usize,
    last: Seq,
    texts: UnindexedTexts,
}

impl Effects {
    /// Nothing yet, after the event `last`.
    pub(crate) fn after(last: Seq, texts: UnindexedTexts) -> Self {
        Self {
            messages: Vec::new(),
            deliveries: Vec::new(),
            turns: Vec::new(),
            events: Vec::new(),
            written_events: 0,
            last,
            rules: None,
            texts,
            restore: Restore { events: 0, last, texts },
            buffering: false,
        }
    }

    /// The seq of the last event.
    pub(crate) fn last(&self) -> Seq {
        self.last
    }

    /// Prepares for a command: its rows are buffered unless it reads messages, deliveries or turns; then the tables are
    /// completed first.
    pub(crate) fn prepare_for(&mut self, db: &Connection, reads_messages: bool) -> rusqlite::Result<()> {
        self.buffering = !reads_messages;
        if reads_messages { self.flush_rows(db) } else { Ok(()) }
    }

    pub(crate) fn add_message(&mut self, db: &Connection, message: Arc<Message>) -> rusqlite::Result<()> {
        self.messages.push(message);
        self.flush_unless_buffering(db)
    }

    pub(crate) fn add_delivery(&mut self, db: &Connection, delivery: NewDelivery) -> rusqlite::Result<()> {
        self.deliveries.push(delivery);
        self.flush_unless_buffering(db)
    }

    pub(crate) fn add_turn(&mut self, db: &Connection, turn: NewTurn) -> rusqlite::Result<()> {
        self.turns.push(turn);
        self.flush_unless_buffering(db)
    }

    /// Verbs do not read the event log, so events are buffered in any case.
    pub(crate) fn add_event(&mut self, event: Event) {
        self.last = event.seq;
        self.events.push(Arc::new(event));
    }

    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.rules = Some(rules);
    }

    /// The rules that the last command has set.
    pub(crate) fn take_rules(&mut self) -> Option<Rules> {
        self.rules.take()
    }

    /// Counts a text that the full-text index does not have yet.
    pub(crate) fn note_text(&mut self, subject: Option<&str>, body: &str) {
        self.texts.note(subject, body);
    }

    /// Brings the full-text index up to date.
    pub(crate) fn index_texts(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.flush_rows(db)?;
        self.texts.index(db, self.last)
    }

    /// Brings the full-text index up to date if enough is missing. Called after each command, so that the same commands give
    /// the same index, however they were cut into batches.
    pub(crate) fn index_texts_if_due(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.texts.is_due() { self.index_texts(db) } else { Ok(()) }
    }

    /// Writes buffered rows.
    pub(crate) fn flush_rows(&mut self, db: &Connection) -> rusqlite::Result<()> {
        MESSAGES.write(db, &self.messages, |to, message| bind_message(to, message))?;
        DELIVERIES.write(db, &self.deliveries, bind_delivery)?;
        TURNS.write(db, &self.turns, bind_turn)?;
        self.messages.clear();
        self.deliveries.clear();
        self.turns.clear();
        Ok(())
    }

    /// Writes everything. Comes before each commit.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.flush_rows(db)?;
        EVENTS.write(db, &self.events[self.written_events..], |to, event| bind_event(to, event))?;
        self.written_events = self.events.len();
        Ok(())
    }

    /// Everything so far is committed.
    pub(crate) fn committed(&mut self) {
        self.restore = Restore { events: self.events.len(), last: self.last, texts: self.texts };
    }

    /// Forgets everything since the last commit.
    pub(crate) fn roll_back(&mut self) {
        let Restore { events, last, texts } = self.restore;
        self.messages.clear();
        self.deliveries.clear();
        self.turns.clear();
        self.events.truncate(events);
        (self.written_events, self.last, self.texts, self.rules) = (events, last, texts, None);
    }

    /// The events that were committed and not published yet.
    pub(crate) fn take_events(&mut self) -> Vec<Arc<Event>> {
        (self.written_events, self.restore.events) = (0, 0);
        std::mem::take(&mut self.events)
    }

    fn flush_unless_buffering(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.buffering { Ok(()) } else { self.flush_rows(db) }
    }
}

fn bind_message(to: &mut Columns<'_, '_>, message: &Message) -> rusqlite::Result<()> {
    to.put(message.seq)?;
    to.put(message.id)?;
    to.put(&message.from)?;
    // Addresses are plain data: writing them as JSON cannot fail.
    to.put(serde_json::to_string(&message.to).unwrap_or_default())?;
    to.put(&message.kind)?;
    to.put(&message.subject)?;
    to.put(message.body.as_str())?;
    to.put(matches!(message.body, Body::Json(_)))?;
    to.put(message.priority)?;
    to.put(message.ack_required)?;
    to.put(message.expires_at)?;
    to.put(&message.correlation)?;
    to.put(&message.conversation)?;
    to.put(message.thread)?;
    to.put(message.in_reply_to)?;
    to.put(&message.task)?;
    to.put(&message.key)?;
    to.put(&message.envelope)?;
    to.put(&message.meta)?;
    to.put(message.audience)?;
    to.put(&message.via)?;
    to.put(message.at)
}

fn bind_delivery(to: &mut Columns<'_, '_>, delivery: &NewDelivery) -> rusqlite::Result<()> {
    to.put(&delivery.agent)?;
    to.put(delivery.message.seq)?;
    to.put(delivery.kind)?;
    to.put(rows::indexed_kind(&delivery.message.kind))?;
    to.put(delivery.message.priority)?;
    to.put(delivery.message.expires_at)?;
    to.put(delivery.state)?;
    to.put(delivery.delivered_at)
}

fn bind_turn(
    to: &mut Columns<'_, '_>,
    NewTurn { turn, conversation_seq, message }: &NewTurn,
) -> rusqlite::Result<()> {
    let visibility = match &turn.visibility {
        TurnVisibility::All => None,
        other => Some(serde_json::to_string(other).unwrap_or_default()),
    };
    to.put(turn.seq)?;
    to.put(turn.id)?;
    to.put(&turn.conversation)?;
    to.put(turn.thread)?;
    to.put(&turn.author)?;
    to.put(&turn.content_type)?;
    // The turn of a message keeps no copy of the text.
    to.put(message.is_none().then_some(&turn.content))?;
    to.put(message)?;
    to.put(turn.in_reply_to)?;
    to.put(visibility)?;
    to.put(&turn.meta)?;
    to.put(turn.at)?;
    to.put(conversation_seq)?;
    to.put(short(turn.author.as_str()))?;
    to.put(short(&turn.content_type))
}

fn bind_event(to: &mut Columns<'_, '_>, event: &Event) -> rusqlite::Result<()> {
    to.put(event.seq)?;
    to.put(event.at)?;
    to.put(event.fact.kind())?;
    to.put(&event.actor)?;
    to.put(event.cause)?;
    to.put(event.message.as_ref().map(|message| message.seq))?;
    to.put(event.fact.conversation())?;
    to.put(fact_json(&event.fact))
}

fn fact_json(fact: &Fact) -> Cow<'static, str> {
    match fact {
        // The most common fact, which has no data.
        Fact::MessageSent => r#"{"kind":"message.sent"}"#.into(),
        // Facts are plain data without maps or floats: serialising them cannot fail.
        other => serde_json::to_string(other).unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::fact_json;
    use crate::nouns::Fact;

    #[test]
    fn constant_of_the_most_common_fact_is_its_serialised_form() {
        let serialised = serde_json::to_string(&Fact::MessageSent).expect("plain data");
        assert_eq!(fact_json(&Fact::MessageSent), serialised);
    }
}
