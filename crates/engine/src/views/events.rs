//! The history: replayed from any point, filtered, and never more than the caller may see.

use std::sync::Arc;

use rusqlite::Row;

use super::weigh::Weigh;
use super::{View, Viewed, require_member};
use crate::error::Refusal;
use crate::hub::Filter;
use crate::nouns::{Caller, ConversationId, Event, Fact, Millis, Seq, Sight};
use crate::sight;
use crate::store::{Db, one, rows};

/// Events that one look back goes through before it hands back a cursor: less than a replay, because somebody waits.
const LOOK_BACK: usize = 2_000;

/// A stretch of history.
#[derive(Debug)]
pub struct Replay {
    /// The events, in order.
    pub events: Vec<Arc<Event>>,
    /// Where to go on.
    pub cursor: Seq,
    /// Whether there is more.
    pub more: bool,
}

impl View<'_> {
    /// Events after a place that match and that the caller may see.
    ///
    /// # Errors
    /// Refused for strangers, and for a place that this history has not reached.
    pub fn events(&self, caller: &Caller, after: Seq, filter: &Filter, limit: usize) -> Viewed<Replay> {
        self.events_for_any(std::slice::from_ref(caller), after, filter, limit)
    }

    /// Events after a place that match and that one of the callers may see.
    ///
    /// # Errors
    /// Refused for strangers, and for a place that this history has not reached.
    pub fn events_for_any(
        &self,
        callers: &[Caller],
        after: Seq,
        filter: &Filter,
        limit: usize,
    ) -> Viewed<Replay> {
        callers.iter().try_for_each(require_member)?;
        let head = self.head()?;
        if after > head || after < 0 {
            return Err(Refusal::StaleCursor.into());
        }
        let limit = self.page(limit);
        let mut replay = Replay { events: Vec::new(), cursor: after, more: false };
        let mut looked_at = 0;
        while replay.cursor < head {
            for line in self.lines(replay.cursor, 256)? {
                let full = replay.events.len() == limit
                    || looked_at == self.limits.replay_rows
                    || (looked_at > 0 && self.budget.is_half_spent());
                if full || !self.put(&mut replay, line, callers, filter)? {
                    replay.more = true;
                    return Ok(replay);
                }
                looked_at += 1;
            }
        }
        Ok(replay)
    }

    /// Events before a place that match and that the caller may see: the latest of them, in order. The cursor is the
    /// earliest place looked at; a stretch without a match may be longer than one call looks back.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn earlier(&self, caller: &Caller, before: Seq, filter: &Filter, limit: usize) -> Viewed<Replay> {
        require_member(caller)?;
        let limit = self.page(limit);
        let mut replay =
            Replay { events: Vec::new(), cursor: before.clamp(1, self.head()? + 1), more: false };
        let mut looked_at = 0;
        'back: while replay.cursor > 1 {
            for line in self.lines_back(replay.cursor, 256)? {
                let full = replay.events.len() == limit
                    || looked_at == LOOK_BACK
                    || (looked_at > 0 && self.budget.is_half_spent());
                if full || !self.put(&mut replay, line, std::slice::from_ref(caller), filter)? {
                    replay.more = true;
                    break 'back;
                }
                looked_at += 1;
            }
        }
        replay.events.reverse();
        Ok(replay)
    }

    /// Puts a line that is wanted and may be seen into a replay, and moves its cursor on; false if there is no room for it.
    fn put(&self, replay: &mut Replay, line: Line, callers: &[Caller], filter: &Filter) -> Viewed<bool> {
        self.budget.checkpoint()?;
        let Line { event, bytes } = line;
        let wanted =
            filter.matches(&event, Some(self)) && sight::any_sees(self.db, callers, &event, self.now)?;
        if wanted && !replay.events.is_empty() && !self.budget.has_room(bytes) {
            return Ok(false);
        }
        replay.cursor = event.seq;
        if wanted {
            self.budget.bring(bytes);
            replay.events.push(event);
        }
        Ok(true)
    }

    /// What happened to a conversation or task besides what was said in it: opened, joined, assigned, moved on, ended.
    ///
    /// # Errors
    /// Refused if the caller may not know of the conversation.
    pub fn course(
        &self,
        caller: &Caller,
        id: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Vec<Arc<Event>>> {
        self.reader(caller, id)?;
        let sql = "SELECT seq, at, actor, cause, message, fact FROM events INDEXED BY events_of_conversations
                   WHERE conversation = ?1 AND kind <> 'turn.added' AND seq > ?2 ORDER BY seq LIMIT ?3";
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let lines = self.stretch_of(sql, (id, after, limit), |row| line(self.db, row))?;
        let mut seen = Vec::new();
        for Line { event, bytes } in lines.rows {
            if sight::sees_event(self.db, caller, &event, self.now)? {
                self.budget.bring(bytes);
                seen.push(event);
            }
        }
        Ok(seen)
    }

    /// The last place of the history.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn head(&self) -> Viewed<Seq> {
        Ok(head(self.db)?)
    }

    /// The name of this history. Restored or new books have another, so that a cursor of the old one can be told.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn history(&self) -> Viewed<String> {
        let name = one(self.db, "SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0))?;
        Ok(name.unwrap_or_default())
    }

    /// When the event at a place happened; nothing if the history has not come that far.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn time_of(&self, seq: Seq) -> Viewed<Option<Millis>> {
        Ok(one(self.db, "SELECT at FROM events WHERE seq = ?1", [seq], |row| row.get(0))?)
    }

    /// The last place at or before a time. Time never runs backwards along the history, so halving finds it.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn last_seq_at(&self, time: Millis) -> Viewed<Seq> {
        let (mut low, mut high) = (0, self.head()?);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            match self.time_of(middle)? {
                Some(at) if at <= time => low = middle,
                _ => high = middle - 1,
            }
        }
        Ok(low)
    }

    /// The events before a place, the latest first, no matter who may see them.
    fn lines_back(&self, before: Seq, limit: usize) -> Viewed<Vec<Line>> {
        let sql = "SELECT seq, at, actor, cause, message, fact FROM events WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Ok(self.stretch_of(sql, (before, limit), |row| line(self.db, row))?.rows)
    }

    /// The next events after a place, no matter who may see them.
    fn lines(&self, after: Seq, limit: usize) -> Viewed<Vec<Line>> {
        let sql =
            "SELECT seq, at, actor, cause, message, fact FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Ok(self.stretch_of(sql, (after, limit), |row| line(self.db, row))?.rows)
    }

    /// The next events after a place, no matter who may see them: as many as asked for, or a page's bytes.
    pub(crate) fn stretch(&self, after: Seq, limit: usize) -> Viewed<Vec<Arc<Event>>> {
        Ok(self.lines(after, limit)?.into_iter().map(|line| line.event).collect())
    }
}

/// An event, and how many bytes it takes in an answer.
struct Line {
    event: Arc<Event>,
    bytes: usize,
}

impl Weigh for Line {
    fn weight(&self) -> usize {
        self.bytes
    }
}

pub(crate) fn head(db: Db<'_>) -> rusqlite::Result<Seq> {
    Ok(one(db, "SELECT max(seq) FROM events", [], |row| row.get::<_, Option<Seq>>(0))?.flatten().unwrap_or(0))
}

fn line(db: Db<'_>, row: &Row<'_>) -> rusqlite::Result<Line> {
    let seq: Seq = row.get(0)?;
    let text = row.get_ref(5)?.as_str()?;
    let fact: Fact = serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, Box::new(error))
    })?;
    let message = match row.get::<_, Option<Seq>>(4)? {
        Some(message) => rows::message_at(db, message)?.map(Arc::new),
        None => None,
    };
    let turn = match &fact {
        Fact::TurnAdded { .. } => rows::turn_at(db, seq)?.map(Arc::new),
        _ => None,
    };
    let bytes =
        text.len() + message.as_deref().map_or(0, Weigh::weight) + turn.as_deref().map_or(0, Weigh::weight);
    let event = Event {
        seq,
        at: row.get(1)?,
        actor: row.get(2)?,
        cause: row.get(3)?,
        fact,
        message,
        turn,
        // Who may see a line of history depends on today, so the books are asked each time.
        sight: Sight::Ask,
        reached: None,
        rendered: Default::default(),
    };
    Ok(Line { event: Arc::new(event), bytes })
}
