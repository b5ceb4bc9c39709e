//! The event log: replayed from any seq, filtered, and never more than the caller may see.

use std::sync::Arc;

use rusqlite::Row;

use super::page_weight::Weigh;
use super::{View, Viewed, require_member};
use crate::error::Refusal;
use crate::hub::Filter;
use crate::nouns::{Caller, ConversationId, Event, Fact, Millis, Seq, Sight};
use crate::sight;
use crate::store::{Db, one, rows};

/// Events that one backward replay reads before it returns a cursor: fewer than a replay, because a user waits for it.
const MAX_EVENTS_READ_BACK: usize = 2_000;

/// A part of the event log.
#[derive(Debug)]
pub struct Replay {
    /// The events, in order.
    pub events: Vec<Arc<Event>>,
    /// The seq to continue from.
    pub cursor: Seq,
    /// Whether there is more.
    pub more: bool,
}

impl View<'_> {
    /// Events after a seq that match and that the caller may see.
    ///
    /// # Errors
    /// Refused for strangers, and for a seq that the event log has not reached.
    pub fn events(&self, caller: &Caller, after: Seq, filter: &Filter, limit: usize) -> Viewed<Replay> {
        self.events_for_any(std::slice::from_ref(caller), after, filter, limit)
    }

    /// Events after a seq that match and that at least one of the callers may see.
    ///
    /// # Errors
    /// Refused for strangers, and for a seq that the event log has not reached.
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
        let mut read = 0;
        while replay.cursor < head {
            for stored in self.stored_after(replay.cursor, 256)? {
                let full = replay.events.len() == limit
                    || read == self.limits.replay_rows
                    || (read > 0 && self.budget.is_half_spent());
                if full || !self.append(&mut replay, stored, callers, filter)? {
                    replay.more = true;
                    return Ok(replay);
                }
                read += 1;
            }
        }
        Ok(replay)
    }

    /// Events before a seq that match and that the caller may see: the latest of them, in order. The cursor is the
    /// smallest seq that was read; there may be more events without a match than one call reads.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn earlier(&self, caller: &Caller, before: Seq, filter: &Filter, limit: usize) -> Viewed<Replay> {
        require_member(caller)?;
        let limit = self.page(limit);
        let mut replay =
            Replay { events: Vec::new(), cursor: before.clamp(1, self.head()? + 1), more: false };
        let mut read = 0;
        'back: while replay.cursor > 1 {
            for stored in self.stored_before(replay.cursor, 256)? {
                let full = replay.events.len() == limit
                    || read == MAX_EVENTS_READ_BACK
                    || (read > 0 && self.budget.is_half_spent());
                if full || !self.append(&mut replay, stored, std::slice::from_ref(caller), filter)? {
                    replay.more = true;
                    break 'back;
                }
                read += 1;
            }
        }
        replay.events.reverse();
        Ok(replay)
    }

    /// Appends an event to a replay if it matches and is visible, and advances the cursor; false if there is no room.
    fn append(
        &self,
        replay: &mut Replay,
        stored: StoredEvent,
        callers: &[Caller],
        filter: &Filter,
    ) -> Viewed<bool> {
        self.budget.checkpoint()?;
        let StoredEvent { event, bytes } = stored;
        let wanted =
            filter.matches(&event, Some(self)) && sight::any_sees(self.db, callers, &event, self.now)?;
        if wanted && !replay.events.is_empty() && !self.budget.has_room(bytes) {
            return Ok(false);
        }
        replay.cursor = event.seq;
        if wanted {
            self.budget.add_bytes(bytes);
            replay.events.push(event);
        }
        Ok(true)
    }

    /// The events of a conversation or task other than its turns: opened, joined, assigned, status changed, ended.
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
        let stored = self.read_rows(sql, (id, after, limit), |row| stored_event(self.db, row))?;
        let mut seen = Vec::new();
        for StoredEvent { event, bytes } in stored.rows {
            if sight::sees_event(self.db, caller, &event, self.now)? {
                self.budget.add_bytes(bytes);
                seen.push(event);
            }
        }
        Ok(seen)
    }

    /// The last seq of the event log.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn head(&self) -> Viewed<Seq> {
        Ok(head(self.db)?)
    }

    /// The id of this event log. A restored or new database has another, so that a cursor of the old log can be
    /// detected.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn history(&self) -> Viewed<String> {
        let name = one(self.db, "SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0))?;
        Ok(name.unwrap_or_default())
    }

    /// When the event with a seq happened; `None` if the event log has not reached it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn time_of(&self, seq: Seq) -> Viewed<Option<Millis>> {
        Ok(one(self.db, "SELECT at FROM events WHERE seq = ?1", [seq], |row| row.get(0))?)
    }

    /// The last seq at or before a time. Times never decrease along the event log, so a binary search finds it.
    ///
    /// # Errors
    /// When the database cannot be read.
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

    /// The events before a seq, the latest first, regardless of visibility.
    fn stored_before(&self, before: Seq, limit: usize) -> Viewed<Vec<StoredEvent>> {
        let sql = "SELECT seq, at, actor, cause, message, fact FROM events WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Ok(self.read_rows(sql, (before, limit), |row| stored_event(self.db, row))?.rows)
    }

    /// The events after a seq, regardless of visibility.
    fn stored_after(&self, after: Seq, limit: usize) -> Viewed<Vec<StoredEvent>> {
        let sql =
            "SELECT seq, at, actor, cause, message, fact FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Ok(self.read_rows(sql, (after, limit), |row| stored_event(self.db, row))?.rows)
    }

    /// The events after a seq, regardless of visibility: up to `limit`, or a page's bytes.
    pub(crate) fn all_events_after(&self, after: Seq, limit: usize) -> Viewed<Vec<Arc<Event>>> {
        Ok(self.stored_after(after, limit)?.into_iter().map(|stored| stored.event).collect())
    }
}

/// An event, and its bytes in an answer.
struct StoredEvent {
    event: Arc<Event>,
    bytes: usize,
}

impl Weigh for StoredEvent {
    fn weight(&self) -> usize {
        self.bytes
    }
}

pub(crate) fn head(db: Db<'_>) -> rusqlite::Result<Seq> {
    Ok(one(db, "SELECT max(seq) FROM events", [], |row| row.get::<_, Option<Seq>>(0))?.flatten().unwrap_or(0))
}

fn stored_event(db: Db<'_>, row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
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
        // Visibility of past events is decided by the current state, so the database is queried each time.
        sight: Sight::Ask,
        reached: None,
    };
    Ok(StoredEvent { event: Arc::new(event), bytes })
}
