//! Runs: their state, their messages, and what each agent did. For callers that may read the task's conversation.

use std::sync::Arc;

use super::page_weight::RowBatch;
use super::{View, Viewed, one_more, require_admin};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Caller, DeliveryState, Message, Peer, RealmName, Run, RunNote, Seq, Task, TaskId,
};
use crate::sight;
use crate::store::{all, one, rows};
use crate::verbs::runs::FORGOTTEN;

/// A message of a run, and its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMessageRow {
    /// The message.
    pub message: Arc<Message>,
    /// Each recipient, the state of its delivery, and whether the recipient still remembers the message.
    pub deliveries: Vec<(AgentId, DeliveryState, bool)>,
}

/// The messages and notes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRecord {
    /// The messages, in the order in which they were sent.
    pub messages: Vec<RunMessageRow>,
    /// The notes, in order; each comes before the message with its seq.
    pub notes: Vec<RunNote>,
    /// Whether there is more than fits a page.
    pub more: bool,
}

const RUN: &str = "task, instance, name, phase, steps, notes, state, seq";

impl View<'_> {
    /// A run and its task, by the name it has in an instance.
    ///
    /// # Errors
    /// Refused for callers that may not read its conversation, as if there were none.
    pub fn run(&self, caller: &Caller, instance: &str, name: &str) -> Viewed<Option<(Run, Task)>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE instance = ?1 AND name = ?2");
        let Some(run) = one(self.db, &sql, (instance, name), rows::run)? else { return Ok(None) };
        self.with_task(caller, run)
    }

    /// A run and its task, by the task's id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run_of_task(&self, caller: &Caller, task: &TaskId) -> Viewed<Option<(Run, Task)>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE task = ?1");
        let Some(run) = one(self.db, &sql, [task], rows::run)? else { return Ok(None) };
        self.with_task(caller, run)
    }

    /// An instance's runs, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn runs(
        &self,
        caller: &Caller,
        instance: &str,
        after: &str,
        limit: usize,
    ) -> Viewed<Vec<(Run, Task)>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE instance = ?1 AND name > ?2 ORDER BY name LIMIT ?3");
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let found = self.read_rows(&sql, (instance, after, limit), rows::run)?;
        let found = found.rows.into_iter().map(|run| self.counted(run));
        found.filter_map(|run| self.with_task(caller, run).transpose()).collect()
    }

    /// The running runs, in the order in which they were opened.
    ///
    /// # Errors
    /// Refused for callers other than administrators.
    pub fn live_runs(&self, caller: &Caller, after: Seq, limit: usize) -> Viewed<Vec<Run>> {
        require_admin(caller)?;
        let sql =
            format!("SELECT {RUN} FROM runs WHERE phase = 'running' AND seq > ?1 ORDER BY seq LIMIT ?2");
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        Ok(self.read_rows(&sql, (after, limit), rows::run)?.rows)
    }

    /// What happened in a run, from a seq on.
    ///
    /// # Errors
    /// Refused for callers that may not read its conversation.
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
        // Every sender may put a run's conversation on a message. Only these belong to the run: messages that name it
        // as their task, which includes its own, and messages between its participants.
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.conversation = ?1 AND m.seq >= ?2
                 AND (m.task = ?1 OR (
                     EXISTS(SELECT 1 FROM participants WHERE conversation = ?1 AND agent = m.sender)
                     AND NOT EXISTS(SELECT 1 FROM deliveries d WHERE d.message = m.seq AND NOT EXISTS(
                         SELECT 1 FROM participants WHERE conversation = ?1 AND agent = d.agent))))
             ORDER BY m.seq LIMIT ?3",
            rows::MESSAGE
        );
        let RowBatch { rows: mut found, cut } =
            self.read_rows(&sql, (task, from, one_more(limit)), rows::message)?;
        let more = found.len() > limit || cut;
        found.truncate(limit);
        let end = if more { found.last().map_or(Seq::MAX, |message| message.seq) } else { Seq::MAX };
        let mut messages = Vec::with_capacity(found.len());
        for message in found {
            let sql = "SELECT agent, state, note FROM deliveries WHERE message = ?1 ORDER BY agent";
            let deliveries = all(self.db, sql, [message.seq], |row| {
                let note: Option<String> = row.get(2)?;
                Ok((row.get(0)?, row.get(1)?, note.as_deref() != Some(FORGOTTEN)))
            })?;
            messages.push(RunMessageRow { message: Arc::new(self.counted(message)), deliveries });
        }
        let sql = "SELECT n, place, agent, at, note FROM run_notes WHERE task = ?1 AND place >= ?2 AND place <= ?3 ORDER BY n";
        let notes: Vec<RunNote> = all(self.db, sql, (task, from, end), |row| {
            Ok(RunNote {
                n: row.get(0)?,
                before: row.get(1)?,
                agent: row.get(2)?,
                at: row.get(3)?,
                note: row.get(4)?,
            })
        })?;
        for note in &notes {
            self.budget.add_bytes(note.note.as_str().len());
        }
        Ok(RunRecord { messages, notes, more })
    }

    /// Number of instances whose names start with a prefix.
    ///
    /// # Errors
    /// Refused for callers other than administrators.
    pub fn instances(&self, caller: &Caller, prefix: &str) -> Viewed<i64> {
        require_admin(caller)?;
        // Skips from one instance to the next, so that it does not read all their runs.
        let sql = "WITH RECURSIVE each(instance) AS (
                       SELECT min(instance) FROM runs WHERE instance >= ?1
                       UNION ALL SELECT (SELECT min(r.instance) FROM runs r WHERE r.instance > each.instance) FROM each
                       WHERE each.instance IS NOT NULL)
                   SELECT count(*) FROM each WHERE instance >= ?1 AND instance < ?1 || char(0x10FFFF)";
        Ok(one(self.db, sql, [prefix], |row| row.get(0))?.unwrap_or(0))
    }

    /// Messages that wait for one peer, oldest first.
    ///
    /// # Errors
    /// Refused for callers other than administrators.
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
        let found = self.read_rows(&sql, (peer, limit), |row| {
            Ok((Arc::new(rows::message(row)?), row.get(rows::MESSAGE_COLUMNS)?))
        })?;
        Ok(found.rows)
    }

    /// The peers for which messages wait.
    ///
    /// # Errors
    /// Refused for callers other than administrators.
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
