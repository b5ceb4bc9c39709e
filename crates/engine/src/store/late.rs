//! Rows that are written many at a time: letters, the copies of their recipients, and turns. Those of commands that read
//! none of them wait for each other, and are in the books before anything that reads them, and before the commit.

use std::sync::{Arc, LazyLock};

use rusqlite::Connection;

use super::many::{Columns, Insert};
use super::{rows, short};
use crate::nouns::{AgentId, Body, DeliveryState, Message, Millis, RecipientKind, Seq, Turn, TurnVisibility};

static LETTERS: LazyLock<Insert> = LazyLock::new(|| {
    let columns = "seq, id, sender, recipients, kind, subject, body, is_json, priority, ack_required, expires_at,
                   correlation, conversation, thread, in_reply_to, task, key, envelope, meta, audience, via, at";
    Insert::new("messages", columns)
});
static COPIES: LazyLock<Insert> = LazyLock::new(|| {
    let columns = "agent, message, recipient_kind, kind, priority, expires_at, state, delivered_at";
    Insert::new("deliveries", columns)
});
static TURNS: LazyLock<Insert> = LazyLock::new(|| {
    let columns = "seq, id, conversation, thread, author, content_type, content, message, in_reply_to, visibility, meta,
                   at, conversation_seq, author_hash, type_hash";
    Insert::new("turns", columns)
});

/// A letter for one recipient.
#[derive(Debug)]
pub(crate) struct LateCopy {
    pub(crate) letter: Arc<Message>,
    pub(crate) agent: AgentId,
    pub(crate) copy: RecipientKind,
    pub(crate) state: DeliveryState,
    pub(crate) delivered_at: Option<Millis>,
}

/// A turn, the place where its conversation began, and that of the letter it records.
#[derive(Debug)]
pub(crate) struct LateTurn {
    pub(crate) turn: Arc<Turn>,
    pub(crate) talk: Seq,
    pub(crate) letter: Option<Seq>,
}

/// Rows that are not in the books yet.
#[derive(Debug, Default)]
pub(crate) struct LateRows {
    letters: Vec<Arc<Message>>,
    copies: Vec<LateCopy>,
    turns: Vec<LateTurn>,
    /// Whether rows may wait. If not, each is written as it comes.
    open: bool,
    /// Changes to the books that were rows of earlier commands and not of the one at hand.
    changes: u64,
}

impl LateRows {
    /// From now on rows may wait.
    pub(crate) fn open(&mut self) {
        self.open = true;
    }

    /// Writes what waits. From now on rows are written as they come.
    pub(crate) fn close(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.open = false;
        self.write_down(db)
    }

    /// Forgets what waits. From now on rows are written as they come.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Writes what waits.
    pub(crate) fn write_down(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let before = db.total_changes();
        self.write(db)?;
        self.changes += db.total_changes() - before;
        Ok(())
    }

    /// How many changes to the books were rows that had waited.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        LETTERS.write(db, &self.letters, |to, letter| bind_letter(to, letter))?;
        COPIES.write(db, &self.copies, bind_copy)?;
        TURNS.write(db, &self.turns, bind_turn)?;
        self.letters.clear();
        self.copies.clear();
        self.turns.clear();
        Ok(())
    }

    pub(crate) fn add_letter(&mut self, db: &Connection, letter: Arc<Message>) -> rusqlite::Result<()> {
        self.letters.push(letter);
        self.write_unless_open(db)
    }

    pub(crate) fn add_copy(&mut self, db: &Connection, copy: LateCopy) -> rusqlite::Result<()> {
        self.copies.push(copy);
        self.write_unless_open(db)
    }

    pub(crate) fn add_turn(&mut self, db: &Connection, turn: LateTurn) -> rusqlite::Result<()> {
        self.turns.push(turn);
        self.write_unless_open(db)
    }

    fn write_unless_open(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.open { Ok(()) } else { self.write(db) }
    }
}

fn bind_letter(to: &mut Columns<'_, '_>, letter: &Message) -> rusqlite::Result<()> {
    to.put(letter.seq)?;
    to.put(letter.id)?;
    to.put(&letter.from)?;
    // Addresses are plain data: writing them as JSON cannot fail.
    to.put(serde_json::to_string(&letter.to).unwrap_or_default())?;
    to.put(&letter.kind)?;
    to.put(&letter.subject)?;
    to.put(letter.body.as_str())?;
    to.put(matches!(letter.body, Body::Json(_)))?;
    to.put(letter.priority)?;
    to.put(letter.ack_required)?;
    to.put(letter.expires_at)?;
    to.put(&letter.correlation)?;
    to.put(&letter.conversation)?;
    to.put(letter.thread)?;
    to.put(letter.in_reply_to)?;
    to.put(&letter.task)?;
    to.put(&letter.key)?;
    to.put(&letter.envelope)?;
    to.put(&letter.meta)?;
    to.put(letter.audience)?;
    to.put(&letter.via)?;
    to.put(letter.at)
}

fn bind_copy(to: &mut Columns<'_, '_>, copy: &LateCopy) -> rusqlite::Result<()> {
    to.put(&copy.agent)?;
    to.put(copy.letter.seq)?;
    to.put(copy.copy)?;
    to.put(rows::indexed_kind(&copy.letter.kind))?;
    to.put(copy.letter.priority)?;
    to.put(copy.letter.expires_at)?;
    to.put(copy.state)?;
    to.put(copy.delivered_at)
}

fn bind_turn(to: &mut Columns<'_, '_>, LateTurn { turn, talk, letter }: &LateTurn) -> rusqlite::Result<()> {
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
    // A letter's turn keeps no copy of the text.
    to.put(letter.is_none().then_some(&turn.content))?;
    to.put(letter)?;
    to.put(turn.in_reply_to)?;
    to.put(visibility)?;
    to.put(&turn.meta)?;
    to.put(turn.at)?;
    to.put(talk)?;
    to.put(short(turn.author.as_str()))?;
    to.put(short(&turn.content_type))
}
