//! What the writer caches between commands: conversations that are being talked in, single-use keys, and what accounts have
//! stored. Without the cached conversations every turn reads its conversation and participants and writes its counters, which
//! costs the server 1.7 times the CPU.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use crate::log::Record;
use crate::nouns::{AgentId, Conversation, ConversationId, Millis, Participant, Sight, Standing};
use crate::sight;
use crate::store::{Db, SeenKeys, exec, rows};
use crate::usage::Usage;
use crate::verbs::Command;
use crate::verbs::turns::Say;

/// Conversations cached at a time; when there are more, all are dropped.
const MAX_CONVERSATIONS: usize = 256;

/// The writer's cache.
#[derive(Debug, Default)]
pub(crate) struct WriteCache {
    conversations: HashMap<ConversationId, CachedConversation>,
    /// Agents known not to be suspended.
    not_suspended: HashSet<AgentId>,
    /// The state of the single-use keys, once one was looked up.
    seen_keys: Option<SeenKeys>,
    /// What accounts have stored.
    pub(crate) usage: Usage,
}

/// A conversation whose latest turns were plain.
#[derive(Debug)]
pub(crate) struct CachedConversation {
    /// The conversation, counting turns that the database does not count yet.
    pub(crate) conversation: Conversation,
    /// All participants, by name.
    participants: Vec<Participant>,
    /// Who sees a turn that every participant may read.
    sight: Sight,
    /// Turns of each content type that the database does not count yet.
    uncounted: Vec<(String, i64)>,
}

impl CachedConversation {
    fn read(db: Db<'_>, id: &ConversationId) -> rusqlite::Result<Option<Self>> {
        let Some(conversation) = rows::conversation_by_id(db, id)? else { return Ok(None) };
        let participants = sight::participants(db, id, sight::MAX_LISTED_AGENTS + 1)?;
        if participants.len() > sight::MAX_LISTED_AGENTS {
            return Ok(None);
        }
        let sight = sight::of_open_turn(&conversation, participants.clone());
        Ok(Some(Self { conversation, participants, sight, uncounted: Vec::new() }))
    }

    fn participant(&self, agent: &AgentId) -> Option<&Participant> {
        let index = self.participants.binary_search_by(|participant| participant.agent.cmp(agent)).ok()?;
        self.participants.get(index)
    }

    /// Who sees a turn of this author that every participant may read.
    pub(crate) fn sight(&self, author: &AgentId) -> Sight {
        match &self.sight {
            Sight::Agents(agents) if agents.binary_search(author).is_err() => {
                Sight::Agents(Sight::list(agents.iter().cloned().chain([author.clone()]).collect()))
            }
            sight => sight.clone(),
        }
    }

    /// Counts a turn. The database gets the counts with the next flush.
    pub(crate) fn count(&mut self, content_type: &str, now: Millis) {
        self.conversation.turn_count += 1;
        self.conversation.updated_at = now;
        match self.uncounted.iter_mut().find(|(known, _)| known == content_type) {
            Some((_, turns)) => *turns += 1,
            None => self.uncounted.push((content_type.to_owned(), 1)),
        }
    }

    fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.uncounted.is_empty() {
            return Ok(());
        }
        for (content_type, turns) in self.uncounted.drain(..) {
            let sql = "INSERT INTO turn_types(conversation, content_type, turns) VALUES(?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET turns = turns + ?3";
            exec(db, sql, (&self.conversation.id, content_type, turns))?;
        }
        let sql = "UPDATE conversations SET turn_count = ?2, updated_at = ?3 WHERE id = ?1";
        let Conversation { id, turn_count, updated_at, .. } = &self.conversation;
        exec(db, sql, (id, turn_count, updated_at)).map(drop)
    }
}

impl WriteCache {
    /// Prepares for a command: conversations stay cached only if the command cannot change them by another way.
    pub(crate) fn prepare_for(&mut self, db: &Connection, record: &Record) -> rusqlite::Result<()> {
        let stays = match &record.command {
            Command::Say(say) => match self.can_record(db, record, say) {
                // A row that cannot be decoded is that command's failure, not the file's.
                Err(error) if !matches!(error, rusqlite::Error::SqliteFailure(..)) => false,
                cached => cached?,
            },
            // These touch messages and deliveries, which are not cached.
            Command::SendMessage(send) => send.within.is_none(),
            Command::RecordDelivered(_)
            | Command::MarkDelivered(_)
            | Command::MarkRead(_)
            | Command::Acknowledge(_) => true,
            _ => false,
        };
        if stays { Ok(()) } else { self.drop_conversations(db) }
    }

    /// The single-use keys, with the labels that are not in their index yet.
    pub(crate) fn seen_keys(&mut self, db: Db<'_>) -> rusqlite::Result<&mut SeenKeys> {
        let keys = match self.seen_keys.take() {
            Some(keys) => keys,
            None => SeenKeys::read(db)?,
        };
        Ok(self.seen_keys.insert(keys))
    }

    /// The conversation that a turn is for, if the turn can be recorded from the cache alone.
    pub(crate) fn conversation_for(&mut self, say: &Say) -> Option<&mut CachedConversation> {
        say.is_plain().then(|| self.conversations.get_mut(&say.conversation)).flatten()
    }

    /// Writes what only the cache has. Comes before each commit.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.flush_conversations(db)?;
        self.usage.flush(db)?;
        self.seen_keys.iter_mut().try_for_each(|keys| keys.flush(db))
    }

    /// Completes the database and forgets all conversations: the command at hand changes them by another way.
    pub(crate) fn drop_conversations(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.flush_conversations(db)?;
        self.conversations.clear();
        self.not_suspended.clear();
        Ok(())
    }

    fn flush_conversations(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.conversations.values_mut().try_for_each(|cached| cached.flush(db))
    }

    /// Whether everything that decides about a turn is cached, and the turn is allowed.
    fn can_record(&mut self, db: &Connection, record: &Record, say: &Say) -> rusqlite::Result<bool> {
        let caller = &record.caller;
        if !say.is_plain() || !caller.rights.member {
            return Ok(false);
        }
        if !self.conversations.contains_key(&say.conversation) {
            let Some(cached) = CachedConversation::read(Db::new(db), &say.conversation)? else {
                return Ok(false);
            };
            if self.conversations.len() >= MAX_CONVERSATIONS {
                self.drop_conversations(db)?;
            }
            self.conversations.insert(say.conversation.clone(), cached);
        }
        let Some(cached) = self.conversations.get(&say.conversation) else { return Ok(false) };
        // The first turn of an invited participant changes its standing.
        let may_send = cached.participant(&caller.agent).is_some_and(|participant| {
            participant.permissions.can_send && participant.standing != Standing::Invited
        });
        if !may_send || cached.conversation.status.is_closed() {
            return Ok(false);
        }
        if !self.not_suspended.contains(&caller.agent) {
            if rows::active_agent(Db::new(db), &caller.agent)?.is_some_and(|agent| agent.is_suspended()) {
                return Ok(false);
            }
            self.not_suspended.insert(caller.agent.clone());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nouns::Caller;
    use crate::store::{SeenLabel, label_hash, open_writer};
    use crate::verbs::{Verb, office::Sweep};

    #[test]
    fn the_state_of_single_use_keys_is_written_once_for_a_batch() {
        let directory = tempfile::tempdir().unwrap();
        let db = open_writer(&directory.path().join("db.db")).unwrap();
        db.execute_batch("BEGIN").unwrap();
        let mut cache = WriteCache::default();
        let keys = cache.seen_keys(Db::new(&db)).unwrap();
        // Enough that the first are moved into the index.
        for n in 0..10_000 {
            let (label, sender) = (format!("id:{n}"), AgentId::new("ann").unwrap());
            let used = SeenLabel { sender, seq: n, digest: None, expires_at: None };
            keys.add_label(&db, label_hash(&label), &label, &used).unwrap();
        }
        let before = db.total_changes();
        let other = Record::new(Caller::office(), Sweep {}.into_command());
        cache.prepare_for(&db, &other).unwrap();
        assert_eq!(db.total_changes(), before);
        cache.flush(&db).unwrap();
        assert_eq!(db.total_changes(), before + 2, "`keys_indexed` and `keys_cursor`");
    }
}
