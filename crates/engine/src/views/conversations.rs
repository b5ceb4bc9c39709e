//! Conversations, their participants and their threads.

use super::page_weight::RowBatch;
use super::{Page, View, Viewed, one_more, require_member};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Caller, Conversation, ConversationId, ConversationStatus, Millis, Participant, Seq, Thread,
    ThreadId,
};
use crate::sight::{self, Reader};
use crate::store::{all, one, rows};

/// Which conversations to list. Lists are alternatives; all fields must match.
#[derive(Clone, Debug, Default)]
pub struct ConversationQuery {
    /// Of one of these kinds.
    pub kinds: Vec<String>,
    /// With one of these statuses.
    pub statuses: Vec<ConversationStatus>,
    /// With this current participant.
    pub participant: Option<AgentId>,
    /// Opened from this conversation.
    pub parent: Option<ConversationId>,
    /// Opened after this time.
    pub created_after: Option<Millis>,
    /// Opened before this time.
    pub created_before: Option<Millis>,
    /// The latest first instead of the earliest.
    pub newest_first: bool,
    /// Beyond this seq.
    pub cursor: Option<Seq>,
    /// How many.
    pub limit: usize,
}

/// Statistics of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationStats {
    /// Turns recorded.
    pub turns: i64,
    /// Turns by content type, in the order in which each type first occurred.
    pub by_content_type: Vec<(String, i64)>,
    /// Number of current participants.
    pub participants: i64,
    /// Threads opened.
    pub threads: i64,
}

impl View<'_> {
    /// One conversation.
    ///
    /// # Errors
    /// Refused if there is none that the caller may know of.
    pub fn conversation(&self, caller: &Caller, id: &ConversationId) -> Viewed<Conversation> {
        Ok(self.reader(caller, id)?.0)
    }

    /// Conversations in the order in which they were opened.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn conversations(
        &self,
        caller: &Caller,
        query: &ConversationQuery,
    ) -> Viewed<Page<Conversation, Seq>> {
        require_member(caller)?;
        let limit = self.page(query.limit);
        let mut cursor = query.cursor.unwrap_or(if query.newest_first { Seq::MAX } else { 0 });
        let mut page = self.page_builder(limit);
        'read: loop {
            let batch = self.conversations_from(query, cursor, limit)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for conversation in batch.rows {
                cursor = conversation.seq;
                let wanted = (query.kinds.is_empty() || query.kinds.contains(&conversation.kind))
                    && (query.statuses.is_empty() || query.statuses.contains(&conversation.status))
                    && query
                        .parent
                        .as_ref()
                        .is_none_or(|parent| conversation.parent.as_ref() == Some(parent))
                    && query.created_after.is_none_or(|after| conversation.created_at > after)
                    && query.created_before.is_none_or(|before| conversation.created_at < before);
                if wanted
                    && sight::reads_conversation(self.db, caller, &conversation)?.is_some()
                    && !page.push(conversation)
                {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.finish(|conversation| conversation.seq))
    }

    /// The next candidates, read through the narrowest index that fits.
    fn conversations_from(
        &self,
        query: &ConversationQuery,
        cursor: Seq,
        limit: usize,
    ) -> Viewed<RowBatch<Conversation>> {
        let (beyond, order) = if query.newest_first { ("<", "DESC") } else { (">", "ASC") };
        let columns = rows::CONVERSATION;
        let count = one_more(limit);
        if let Some(agent) = &query.participant {
            let sql = format!(
                "SELECT {columns} FROM participants p JOIN conversations c ON c.id = p.conversation
                 WHERE p.agent = ?1 AND p.left_at IS NULL AND p.conversation_seq {beyond} ?2
                 ORDER BY p.conversation_seq {order} LIMIT ?3"
            );
            return self.read_rows(&sql, (agent, cursor, count), rows::conversation);
        }
        if let Some(parent) = &query.parent {
            let sql = format!(
                "SELECT {columns} FROM conversations c WHERE c.parent = ?1 AND c.seq {beyond} ?2
                 ORDER BY c.seq {order} LIMIT ?3"
            );
            return self.read_rows(&sql, (parent, cursor, count), rows::conversation);
        }
        if query.statuses.is_empty() {
            let sql = format!(
                "SELECT {columns} FROM conversations c WHERE c.seq {beyond} ?1 ORDER BY c.seq {order} LIMIT ?2"
            );
            return self.read_rows(&sql, (cursor, count), rows::conversation);
        }
        let mut parts = Vec::new();
        for status in &query.statuses {
            let sql = format!(
                "SELECT {columns} FROM conversations c WHERE c.status = ?1 AND c.seq {beyond} ?2
                 ORDER BY c.seq {order} LIMIT ?3"
            );
            parts.push(self.read_rows(&sql, (status, cursor, count), rows::conversation)?);
        }
        Ok(RowBatch::merged(parts, query.newest_first, limit, |conversation| conversation.seq))
    }

    /// Current participants, or current and former ones, by name.
    ///
    /// # Errors
    /// Refused if the caller may not know of the conversation.
    pub fn participants(
        &self,
        caller: &Caller,
        id: &ConversationId,
        with_former: bool,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Viewed<Page<Participant, AgentId>> {
        self.reader(caller, id)?;
        let limit = self.page(limit);
        let sql = format!(
            "SELECT {} FROM participants WHERE conversation = ?1 AND agent > ?2 AND (?3 OR left_at IS NULL)
             ORDER BY agent LIMIT ?4",
            rows::PARTICIPANT
        );
        let params = (id, after.map_or("", AgentId::as_str), with_former, one_more(limit));
        let found = self.read_rows(&sql, params, rows::participant)?;
        Ok(self.page_of(found, limit, |part| part.agent.clone()))
    }

    /// The caller's own participation, if it is a current participant.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn own_part(&self, caller: &Caller, id: &ConversationId) -> Viewed<Option<Participant>> {
        if !caller.rights.member {
            return Ok(None);
        }
        Ok(rows::participant_of(self.db, id, &caller.agent)?.filter(|part| part.left_at.is_none()))
    }

    /// The threads of a conversation, or those below one of them, in the order in which they were opened.
    ///
    /// # Errors
    /// Refused if the caller may not know of the conversation, or if it has no such thread to look below.
    pub fn threads(
        &self,
        caller: &Caller,
        id: &ConversationId,
        parent: Option<ThreadId>,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<Thread, Seq>> {
        let (_, reader) = self.reader(caller, id)?;
        if let Some(parent) = parent {
            self.thread(caller, id, parent)?;
        }
        let limit = self.page(limit);
        let sql = format!(
            "SELECT {} FROM threads WHERE conversation = ?1 AND seq > ?2 AND (?3 IS NULL OR parent = ?3)
             ORDER BY seq LIMIT ?4",
            rows::THREAD
        );
        let params = (id, after.max(reader.from()), parent, one_more(limit));
        let found = self.read_rows(&sql, params, rows::thread)?;
        Ok(self.page_of(found, limit, |thread| thread.seq))
    }

    /// One thread of a conversation.
    ///
    /// # Errors
    /// Refused if there is none that the caller may know of.
    pub fn thread(&self, caller: &Caller, id: &ConversationId, thread: ThreadId) -> Viewed<Thread> {
        let (_, reader) = self.reader(caller, id)?;
        rows::thread_by_id(self.db, thread)?
            .filter(|thread| thread.conversation == *id && thread.seq > reader.from())
            .ok_or_else(|| Refusal::NoSuchThread.into())
    }

    /// Statistics of a conversation.
    ///
    /// # Errors
    /// Refused if the caller may not know of the conversation.
    pub fn conversation_stats(&self, caller: &Caller, id: &ConversationId) -> Viewed<ConversationStats> {
        let (conversation, _) = self.reader(caller, id)?;
        let sql = "SELECT content_type, turns FROM turn_types WHERE conversation = ?1";
        let mut types = Vec::new();
        for (content_type, turns) in
            all(self.db, sql, [id], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?
        {
            types.push((self.first_turn_of(conversation.seq, &content_type)?, content_type, turns));
        }
        // In the order in which each type first occurred.
        types.sort_unstable();
        let by_content_type =
            types.into_iter().map(|(_, content_type, turns)| (content_type, turns)).collect();
        Ok(ConversationStats {
            turns: conversation.turn_count,
            by_content_type,
            participants: conversation.participant_count,
            threads: conversation.thread_count,
        })
    }

    /// The conversation, and in which capacity the caller reads it.
    pub(super) fn reader(&self, caller: &Caller, id: &ConversationId) -> Viewed<(Conversation, Reader)> {
        let none = || Refusal::NoSuchConversation { conversation: id.clone() };
        let conversation = rows::conversation_by_id(self.db, id)?.ok_or_else(none)?;
        match sight::reads_conversation(self.db, caller, &conversation)? {
            Some(reader) => Ok((conversation, reader)),
            None if caller.rights.member && self.takes_part(id, &caller.agent)? => {
                Err(Refusal::ParticipantMayNot { conversation: id.clone(), need: "canObserve" }.into())
            }
            None => Err(none().into()),
        }
    }

    fn takes_part(&self, id: &ConversationId, agent: &AgentId) -> Viewed<bool> {
        let sql = "SELECT 1 FROM participants WHERE conversation = ?1 AND agent = ?2 AND left_at IS NULL";
        Ok(one(self.db, sql, (id, agent), |_| Ok(()))?.is_some())
    }
}
