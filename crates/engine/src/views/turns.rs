//! The turns of a conversation, in order, as far as the reader may read them.

use super::page_weight::RowBatch;
use super::{Page, View, Viewed, one_more};
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, ConversationId, Millis, Seq, ThreadId, Turn, TurnId};
use crate::sight::Reader;
use crate::store::{one, rows, short};

/// Which turns to list. Lists are alternatives; all fields must match.
#[derive(Clone, Debug, Default)]
pub struct TurnQuery {
    /// In this thread.
    pub thread: Option<ThreadId>,
    /// With one of these content types.
    pub content_types: Vec<String>,
    /// By this author.
    pub author: Option<AgentId>,
    /// After this turn.
    pub after: Option<TurnId>,
    /// Before this turn.
    pub before: Option<TurnId>,
    /// Recorded after this time.
    pub after_time: Option<Millis>,
    /// Recorded before this time.
    pub before_time: Option<Millis>,
    /// The latest first instead of the earliest.
    pub newest_first: bool,
    /// How many.
    pub limit: usize,
}

impl View<'_> {
    /// The turns of a conversation.
    ///
    /// # Errors
    /// Refused if the caller may not read the conversation or its earlier turns, or names a turn that it may not read.
    pub fn turns(
        &self,
        caller: &Caller,
        id: &ConversationId,
        query: &TurnQuery,
    ) -> Viewed<Page<Turn, TurnId>> {
        let (conversation, reader) = self.history_reader(caller, id)?;
        let limit = self.page(query.limit);
        let (mut low, mut high) = self.turn_bounds(id, &reader, query)?;
        let mut page = self.page_builder(limit);
        // Turns that the reader may not read are skipped, so one page may take several reads.
        'read: loop {
            let batch = self.turns_between(conversation, query, (low, high), limit)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for turn in batch.rows {
                *(if query.newest_first { &mut high } else { &mut low }) = turn.seq;
                if reader.reads(&turn) && !page.push(turn) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.finish(|turn| turn.id))
    }

    /// Number of turns within the query that the caller may read.
    ///
    /// # Errors
    /// As for [`View::turns`].
    pub fn count_turns(&self, caller: &Caller, id: &ConversationId, query: &TurnQuery) -> Viewed<i64> {
        let (conversation, reader) = self.history_reader(caller, id)?;
        let bounds = self.turn_bounds(id, &reader, query)?;
        let unfiltered = query.thread.is_none() && query.content_types.is_empty() && query.author.is_none();
        if unfiltered && (matches!(reader, Reader::Overseer) || !self.has_restricted_turns(conversation)?) {
            let sql = "SELECT count(*) FROM turns INDEXED BY turns_by_conversation
                       WHERE conversation_seq = ?1 AND seq > ?2 AND seq < ?3";
            let count = one(self.db, sql, (conversation, bounds.0, bounds.1), |row| row.get(0))?;
            return Ok(count.unwrap_or(0));
        }
        let (mut low, mut readable) = (bounds.0, 0);
        let query = TurnQuery { newest_first: false, ..query.clone() };
        loop {
            let batch = self.turns_between(conversation, &query, (low, bounds.1), self.limits.page)?;
            low = batch.rows.last().map_or(low, |turn| turn.seq);
            readable += batch.rows.iter().filter(|turn| reader.reads(turn)).count();
            if batch.rows.len() <= self.limits.page && !batch.cut {
                return Ok(i64::try_from(readable).unwrap_or(i64::MAX));
            }
        }
    }

    /// One turn.
    ///
    /// # Errors
    /// Refused if there is none that the caller may read.
    pub fn turn(&self, caller: &Caller, id: &ConversationId, turn: TurnId) -> Viewed<Turn> {
        let (_, reader) = self.reader(caller, id)?;
        self.turn_of(id, &reader, turn).map(|turn| self.counted(turn))
    }

    fn turn_of(&self, id: &ConversationId, reader: &Reader, turn: TurnId) -> Viewed<Turn> {
        rows::turn_by_id(self.db, turn)?
            .filter(|turn| turn.conversation == *id && reader.reads(turn))
            .ok_or_else(|| Refusal::NoSuchTurn.into())
    }

    /// The seq of a conversation, and in which capacity the caller reads its earlier turns; refused if it may not.
    pub(super) fn history_reader(&self, caller: &Caller, id: &ConversationId) -> Viewed<(Seq, Reader)> {
        let (conversation, reader) = self.reader(caller, id)?;
        if reader.from() == Seq::MAX {
            return Err(Refusal::ParticipantMayNot { conversation: id.clone(), need: "historyAccess" }.into());
        }
        Ok((conversation.seq, reader))
    }

    /// The first turn of a content type in the conversation with this seq.
    pub(super) fn first_turn_of(&self, conversation: Seq, content_type: &str) -> Viewed<Option<Seq>> {
        let sql = "SELECT seq FROM turns INDEXED BY turns_by_content_type
                   WHERE conversation_seq = ?1 AND type_hash = ?2 AND content_type = ?3 ORDER BY seq LIMIT 1";
        Ok(one(self.db, sql, (conversation, short(content_type), content_type), |row| row.get(0))?)
    }

    fn turn_bounds(&self, id: &ConversationId, reader: &Reader, query: &TurnQuery) -> Viewed<(Seq, Seq)> {
        self.check_thread(id, query.thread)?;
        // A turn that the reader may not read is treated as absent, or a query relative to it would reveal that it
        // exists.
        let seq_of = |turn: TurnId| -> Viewed<Seq> { Ok(self.turn_of(id, reader, turn)?.seq) };
        let mut low = reader.from();
        let mut high = Seq::MAX;
        if let Some(turn) = query.after {
            low = low.max(seq_of(turn)?);
        }
        if let Some(turn) = query.before {
            high = seq_of(turn)?;
        }
        if let Some(time) = query.after_time {
            low = low.max(self.last_seq_at(time)?);
        }
        if let Some(time) = query.before_time {
            high = high.min(self.last_seq_at(time.saturating_sub(1))?.saturating_add(1));
        }
        Ok((low, high))
    }

    /// Refuses a thread that does not belong to the conversation.
    pub(super) fn check_thread(&self, id: &ConversationId, thread: Option<ThreadId>) -> Viewed<()> {
        let Some(thread) = thread else { return Ok(()) };
        match rows::thread_by_id(self.db, thread)? {
            Some(thread) if thread.conversation == *id => Ok(()),
            _ => Err(Refusal::NoSuchThread.into()),
        }
    }

    /// Turns between two seqs, read through the narrowest index that fits.
    fn turns_between(
        &self,
        conversation: Seq,
        query: &TurnQuery,
        (low, high): (Seq, Seq),
        limit: usize,
    ) -> Viewed<RowBatch<Turn>> {
        let order = if query.newest_first { "DESC" } else { "ASC" };
        let types: Vec<Option<&str>> = match query.content_types.as_slice() {
            [] => vec![None],
            some => some.iter().map(|word| Some(word.as_str())).collect(),
        };
        // The named index decides the cost. There is one for each combination of filters.
        let index = match (query.thread, &query.author, query.content_types.is_empty()) {
            (Some(_), None, true) => "turns_by_thread",
            (Some(_), Some(_), true) => "turns_by_thread_and_author",
            (Some(_), None, false) => "turns_by_thread_and_type",
            (Some(_), Some(_), false) => "turns_by_thread_author_and_type",
            (None, None, true) => "turns_by_conversation",
            (None, Some(_), true) => "turns_by_author",
            (None, None, false) => "turns_by_content_type",
            (None, Some(_), false) => "turns_by_author_and_type",
        };
        let mut conditions = String::from("t.conversation_seq = ?1 AND t.seq > ?2 AND t.seq < ?3");
        conditions.push_str(if query.thread.is_some() { " AND t.thread = ?5" } else { " AND ?5 IS NULL" });
        conditions.push_str(match query.author {
            Some(_) => " AND t.author_hash = ?6 AND t.author = ?7",
            None => " AND ?6 IS NULL AND ?7 IS NULL",
        });
        conditions.push_str(match query.content_types.is_empty() {
            true => " AND ?8 IS NULL AND ?9 IS NULL",
            false => " AND t.type_hash = ?8 AND t.content_type = ?9",
        });
        let sql = format!(
            "SELECT {} FROM turns t INDEXED BY {index} LEFT JOIN messages m ON m.seq = t.message
             WHERE {conditions} ORDER BY t.seq {order} LIMIT ?4",
            rows::TURN
        );
        let mut parts = Vec::new();
        let author = &query.author;
        let author_hash = author.as_ref().map(|author| short(author.as_str()));
        for content_type in types {
            let type_hash = content_type.map(short);
            let (count, thread) = (one_more(limit), query.thread);
            let params =
                (conversation, low, high, count, thread, author_hash, author, type_hash, content_type);
            parts.push(self.read_rows(&sql, params, rows::turn)?);
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => Ok(RowBatch::merged(parts, query.newest_first, limit, |turn| turn.seq)),
        }
    }
}
