//! What the writer remembers of the books from one command to the next, so that a lively conversation is not looked up
//! again for everything that is said in it. That is kept only while commands come that cannot change it otherwise; any
//! other command finds the books complete and nothing remembered. The state of the single-use keys is kept throughout.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use crate::log::Record;
use crate::nouns::{AgentId, Conversation, ConversationId, Participant, Sight, Standing};
use crate::sight;
use crate::store::{Db, SeenKeys, exec, rows};
use crate::usage::Usage;
use crate::verbs::Command;
use crate::verbs::turns::Say;

/// Conversations remembered at a time; beyond these all are forgotten.
const TALKS: usize = 256;

/// What is remembered.
#[derive(Debug, Default)]
pub(crate) struct WriteCache {
    talks: HashMap<ConversationId, CachedConversation>,
    /// Agents known not to have been told to pause.
    awake: HashSet<AgentId>,
    /// The state of the single-use keys, once one was looked up.
    seen_keys: Option<SeenKeys>,
    /// What accounts have stored.
    pub(crate) usage: Usage,
}

/// A conversation in which the last things said were plain turns.
#[derive(Debug)]
pub(crate) struct CachedConversation {
    /// The conversation, with what has been said since it was written down.
    pub(crate) conversation: Conversation,
    /// Those who take part, by name; all of them.
    parts: Vec<Participant>,
    /// Who sees what everyone in the conversation may read.
    sight: Sight,
    /// Turns of each type that the books do not count yet.
    uncounted: Vec<(String, i64)>,
}

impl CachedConversation {
    fn read(db: &Connection, id: &ConversationId) -> rusqlite::Result<Option<Self>> {
        let Some(conversation) = rows::conversation_by_id(Db::new(db), id)? else { return Ok(None) };
        let parts = sight::participants(Db::new(db), id, sight::MAX_LISTED_AGENTS + 1)?;
        if parts.len() > sight::MAX_LISTED_AGENTS {
            return Ok(None);
        }
        let sight = sight::of_open_turn(&conversation, parts.clone());
        Ok(Some(Self { conversation, parts, sight, uncounted: Vec::new() }))
    }

    fn part_of(&self, agent: &AgentId) -> Option<&Participant> {
        let place = self.parts.binary_search_by(|part| part.agent.cmp(agent)).ok()?;
        self.parts.get(place)
    }

    /// Who sees a turn of that author which everyone in the conversation may read.
    pub(crate) fn sight(&self, author: &AgentId) -> Sight {
        match &self.sight {
            Sight::Agents(agents) if agents.binary_search(author).is_err() => {
                Sight::Agents(Sight::list(agents.iter().cloned().chain([author.clone()]).collect()))
            }
            sight => sight.clone(),
        }
    }

    /// Counts a turn; the books follow.
    pub(crate) fn count(&mut self, content_type: &str, now: i64) {
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
    /// Prepares for a command: conversations stay cached only if the command cannot change them otherwise. If it can, the
    /// database is completed and the cache emptied.
    pub(crate) fn prepare_for(&mut self, db: &Connection, record: &Record) -> rusqlite::Result<()> {
        let stays = match &record.command {
            Command::Say(say) => match self.holds(db, record, say) {
                // A row that cannot be decoded is that command's failure, not the file's.
                Err(error) if !matches!(error, rusqlite::Error::SqliteFailure(..)) => false,
                held => held?,
            },
            // These touch messages and deliveries, which are not cached.
            Command::SendMessage(send) => send.within.is_none(),
            Command::RecordDelivered(_)
            | Command::MarkDelivered(_)
            | Command::MarkRead(_)
            | Command::Acknowledge(_) => true,
            _ => false,
        };
        if !stays {
            self.flush_conversations(db)?;
            self.forget_conversations();
        }
        Ok(())
    }

    /// The single-use keys, with the labels that are not in their index yet.
    pub(crate) fn seen_keys(&mut self, db: Db<'_>) -> rusqlite::Result<&mut SeenKeys> {
        let keys = match self.seen_keys.take() {
            Some(keys) => keys,
            None => SeenKeys::read(db)?,
        };
        Ok(self.seen_keys.insert(keys))
    }

    /// The conversation that a turn is for, if the turn is sure to be recorded there by the ordinary rules.
    pub(crate) fn conversation_for(&mut self, say: &Say) -> Option<&mut CachedConversation> {
        say.is_plain().then(|| self.talks.get_mut(&say.conversation)).flatten()
    }

    /// Brings the books up to what is remembered. Comes before each commit.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.flush_conversations(db)?;
        self.usage.flush(db)?;
        self.seen_keys.iter_mut().try_for_each(|keys| keys.flush(db))
    }

    fn flush_conversations(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.talks.values_mut().try_for_each(|talk| talk.flush(db))
    }

    /// Forgets everything, written down or not.
    pub(crate) fn forget(&mut self) {
        self.forget_conversations();
        self.seen_keys = None;
        self.usage.forget();
    }

    fn forget_conversations(&mut self) {
        self.talks.clear();
        self.awake.clear();
    }

    /// Whether everything is remembered that decides about a turn, and nothing speaks against it.
    fn holds(&mut self, db: &Connection, record: &Record, say: &Say) -> rusqlite::Result<bool> {
        let caller = &record.caller;
        if !say.is_plain() || !caller.rights.member {
            return Ok(false);
        }
        if !self.talks.contains_key(&say.conversation) {
            let Some(talk) = CachedConversation::read(db, &say.conversation)? else { return Ok(false) };
            if self.talks.len() >= TALKS {
                self.flush_conversations(db)?;
                self.forget_conversations();
            }
            self.talks.insert(say.conversation.clone(), talk);
        }
        let Some(talk) = self.talks.get(&say.conversation) else { return Ok(false) };
        // The first turn of one that was invited changes its part.
        let may_send = talk
            .part_of(&caller.agent)
            .is_some_and(|part| part.permissions.can_send && part.standing != Standing::Invited);
        if !may_send || talk.conversation.status.is_closed() {
            return Ok(false);
        }
        if !self.awake.contains(&caller.agent) {
            if rows::active_agent(Db::new(db), &caller.agent)?.is_some_and(|agent| agent.is_suspended()) {
                return Ok(false);
            }
            self.awake.insert(caller.agent.clone());
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
