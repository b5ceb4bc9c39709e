//! Runs: what they are at, what was sent in them, and what each agent did. For those who may read the task's
//! conversation.

use std::sync::Arc;

use super::weigh::Stretch;
use super::{View, Viewed, one_more, require_admin};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Caller, DeliveryState, Message, Peer, RealmName, Run, RunNote, Seq, Task, TaskId,
};
use crate::sight;
use crate::store::{all, one, rows};
use crate::verbs::runs::FORGOTTEN;

/// A letter of a run, and how it stands with those who get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMessageRow {
    /// The letter.
    pub message: Arc<Message>,
    /// Each recipient, how far it has come, and whether the recipient remembers it.
    pub copies: Vec<(AgentId, DeliveryState, bool)>,
}

/// What happened in a run, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRecord {
    /// The letters, in the order they were sent.
    pub letters: Vec<RunMessageRow>,
    /// What was done, in order; each note comes before the letter at its place.
    pub notes: Vec<RunNote>,
    /// Whether there is more than fits a page.
    pub more: bool,
}

const RUN: &str = "task, instance, name, phase, steps, notes, state, seq";

impl View<'_> {
    /// A run and its task, by the name it has in an instance.
    ///
    /// # Errors
    /// Refused for those who may not read its conversation, as if there were none.
    pub fn run(&self, caller: &Caller, instance: &str, name: &str) -> Viewed<Option<(Run, Task)>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE instance = ?1 AND name = ?2");
        let Some(run) = one(self.db, &sql, (instance, name), rows::run)? else { return Ok(None) };
        self.with_task(caller, run)
    }

    /// A run and its task, by the task's own name.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn run_of_task(&self, caller: &Caller, task: &TaskId) -> Viewed<Option<(Run, Task)>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE task = ?1");
        let Some(run) = one(self.db, &sql, [task], rows::run)? else { return Ok(None) };
        self.with_task(caller, run)
    }

    /// An instance's runs, by name.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn runs(
        &self,
        caller: &Caller,
        instance: &str,
        after: &str,
        limit: usize,
    ) -> Viewed<Vec<(Run, Task)>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE instance = ?1 AND name > ?2 ORDER BY name LIMIT ?3");
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let found = self.stretch_of(&sql, (instance, after, limit), rows::run)?;
        let found = found.rows.into_iter().map(|run| self.bring(run));
        found.filter_map(|run| self.with_task(caller, run).transpose()).collect()
    }

    /// The runs that go on, in the order they were opened.
    ///
    /// # Errors
    /// Refused for anybody but those who run the office.
    pub fn live_runs(&self, caller: &Caller, after: Seq, limit: usize) -> Viewed<Vec<Run>> {
        require_admin(caller)?;
        let sql =
            format!("SELECT {RUN} FROM runs WHERE phase = 'running' AND seq > ?1 ORDER BY seq LIMIT ?2");
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        Ok(self.stretch_of(&sql, (after, limit), rows::run)?.rows)
    }

    /// What happened in a run from a place on.
    ///
    /// # Errors
    /// Refused for those who may not read its conversation.
    pub fn run_record(&self, caller: &Caller, task: &TaskId, from: Seq, limit: usize) -> Viewed<RunRecord> {
        let conversation = rows::conversation_by_id(self.db, task)?;
        let reads = match &conversation {
            Some(conversation) => sight::reads_conversation(self.db, caller, conversation)?.is_some(),
            None => false,
        };
        if !reads {
            return Err(Refusal::NoSuchTask { task: task.clone() }.into());
        }
        let limit = self.page(limit);
        // Every sender may write a run's name on a letter. Those that the run wrote belong to it, those that name it as their
        // task, and those between agents that take part.
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.conversation = ?1 AND m.seq >= ?2
                 AND (m.task = ?1 OR (
                     EXISTS(SELECT 1 FROM participants WHERE conversation = ?1 AND agent = m.sender)
                     AND NOT EXISTS(SELECT 1 FROM deliveries d WHERE d.message = m.seq AND NOT EXISTS(
                         SELECT 1 FROM participants WHERE conversation = ?1 AND agent = d.agent))))
             ORDER BY m.seq LIMIT ?3",
            rows::MESSAGE
        );
        let Stretch { rows: mut messages, cut } =
            self.stretch_of(&sql, (task, from, one_more(limit)), rows::message)?;
        let more = messages.len() > limit || cut;
        messages.truncate(limit);
        let end = if more { messages.last().map_or(Seq::MAX, |message| message.seq) } else { Seq::MAX };
        let mut letters = Vec::with_capacity(messages.len());
        for message in messages {
            let sql = "SELECT agent, state, note FROM deliveries WHERE message = ?1 ORDER BY agent";
            let copies = all(self.db, sql, [message.seq], |row| {
                let note: Option<String> = row.get(2)?;
                Ok((row.get(0)?, row.get(1)?, note.as_deref() != Some(FORGOTTEN)))
            })?;
            letters.push(RunMessageRow { message: Arc::new(self.bring(message)), copies });
        }
        let sql = "SELECT n, place, agent, at, note FROM run_notes WHERE task = ?1 AND place >= ?2 AND place <= ?3 ORDER BY n";
        let notes: Vec<RunNote> = all(self.db, sql, (task, from, end), |row| {
            Ok(RunNote {
                n: row.get(0)?,
                place: row.get(1)?,
                agent: row.get(2)?,
                at: row.get(3)?,
                note: row.get(4)?,
            })
        })?;
        for note in &notes {
            self.budget.bring(note.note.as_str().len());
        }
        Ok(RunRecord { letters, notes, more })
    }

    /// How many instances of a sort there are, by the start of their names.
    ///
    /// # Errors
    /// Refused for anybody but those who run the office.
    pub fn instances(&self, caller: &Caller, prefix: &str) -> Viewed<i64> {
        require_admin(caller)?;
        // Skips from one instance to the next, so that it does not walk through all their runs.
        let sql = "WITH RECURSIVE each(instance) AS (
                       SELECT min(instance) FROM runs WHERE instance >= ?1
                       UNION ALL SELECT (SELECT min(r.instance) FROM runs r WHERE r.instance > each.instance) FROM each
                       WHERE each.instance IS NOT NULL)
                   SELECT count(*) FROM each WHERE instance >= ?1 AND instance < ?1 || char(0x10FFFF)";
        Ok(one(self.db, sql, [prefix], |row| row.get(0))?.unwrap_or(0))
    }

    /// Letters that wait for one neighbour, oldest first.
    ///
    /// # Errors
    /// Refused for anybody but those who run the office.
    pub fn outbound_to(
        &self,
        caller: &Caller,
        peer: &RealmName,
        limit: usize,
    ) -> Viewed<Vec<(Arc<Message>, AgentId)>> {
        require_admin(caller)?;
        let sql = format!(
            "SELECT {}, o.agent FROM outbound o JOIN messages m ON m.seq = o.message WHERE o.peer = ?1
             ORDER BY o.message, o.agent LIMIT ?2",
            rows::MESSAGE
        );
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let found = self.stretch_of(&sql, (peer, limit), |row| {
            Ok((Arc::new(rows::message(row)?), row.get(rows::MESSAGE_COLUMNS)?))
        })?;
        Ok(found.rows)
    }

    /// The neighbours for which letters wait.
    ///
    /// # Errors
    /// Refused for anybody but those who run the office.
    pub fn awaited_peers(&self, caller: &Caller) -> Viewed<Vec<Peer>> {
        require_admin(caller)?;
        let sql = format!(
            "SELECT {} FROM peers WHERE EXISTS(SELECT 1 FROM outbound o WHERE o.peer = peers.name) ORDER BY name LIMIT 1000",
            rows::PEER
        );
        Ok(all(self.db, &sql, [], rows::peer)?)
    }

    fn with_task(&self, caller: &Caller, run: Run) -> Viewed<Option<(Run, Task)>> {
        let Some(task) = rows::task_by_id(self.db, &run.task)? else { return Ok(None) };
        Ok(if self.sees_task(caller, &task)? { Some((run, task)) } else { None })
    }
}
