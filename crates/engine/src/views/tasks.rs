//! Tasks, as far as the caller may see their conversations.

use super::page_weight::RowBatch;
use super::{Page, View, Viewed, one_more, require_member};
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, Seq, Task, TaskId, TaskStatus};
use crate::sight;
use crate::store::rows;

/// Which tasks to list. Lists are alternatives; all fields must match.
#[derive(Clone, Debug, Default)]
pub struct TaskQuery {
    /// In one of these states.
    pub statuses: Vec<TaskStatus>,
    /// Assigned to this agent.
    pub assignee: Option<AgentId>,
    /// Owned by this agent.
    pub owner: Option<String>,
    /// After this seq; with `newest_first`, before it.
    pub after: Seq,
    /// The latest first instead of the earliest.
    pub newest_first: bool,
    /// How many.
    pub limit: usize,
}

impl View<'_> {
    /// One task.
    ///
    /// # Errors
    /// Refused if there is none that the caller may know of.
    pub fn task(&self, caller: &Caller, id: &TaskId) -> Viewed<Task> {
        let task = rows::task_by_id(self.db, id)?;
        match task {
            Some(task) if self.sees_task(caller, &task)? => Ok(task),
            _ => Err(Refusal::NoSuchTask { task: id.clone() }.into()),
        }
    }

    /// Tasks in the order in which they were created.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn tasks(&self, caller: &Caller, query: &TaskQuery) -> Viewed<Page<Task, Seq>> {
        require_member(caller)?;
        let limit = self.page(query.limit);
        let mut after = if query.newest_first && query.after == 0 { Seq::MAX } else { query.after };
        let mut page = self.page_builder(limit);
        'read: loop {
            let batch = self.tasks_after(query, after, limit)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for mut task in batch.rows {
                after = task.seq;
                let wanted = (query.statuses.is_empty() || query.statuses.contains(&task.status))
                    && query.owner.as_ref().is_none_or(|owner| task.owner == *owner);
                if !wanted || !self.sees_task(caller, &task)? {
                    continue;
                }
                task.contributors = rows::contributors_of(self.db, &task.id)?;
                if !page.push(task) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.finish(|task| task.seq))
    }

    fn tasks_after(&self, query: &TaskQuery, after: Seq, limit: usize) -> Viewed<RowBatch<Task>> {
        let columns = rows::TASK;
        let count = one_more(limit);
        let (beyond, order) = if query.newest_first { ("<", "DESC") } else { (">", "ASC") };
        if let Some(assignee) = &query.assignee {
            let sql = format!(
                "SELECT {columns} FROM tasks WHERE assignee = ?1 AND seq {beyond} ?2 ORDER BY seq {order} LIMIT ?3"
            );
            return self.read_rows(&sql, (assignee, after, count), rows::task);
        }
        if query.statuses.is_empty() {
            let sql =
                format!("SELECT {columns} FROM tasks WHERE seq {beyond} ?1 ORDER BY seq {order} LIMIT ?2");
            return self.read_rows(&sql, (after, count), rows::task);
        }
        let mut parts = Vec::new();
        for status in &query.statuses {
            let sql = format!(
                "SELECT {columns} FROM tasks WHERE status = ?1 AND seq {beyond} ?2 ORDER BY seq {order} LIMIT ?3"
            );
            parts.push(self.read_rows(&sql, (status, after, count), rows::task)?);
        }
        Ok(RowBatch::merged(parts, query.newest_first, limit, |task| task.seq))
    }

    pub(super) fn sees_task(&self, caller: &Caller, task: &Task) -> Viewed<bool> {
        let conversation = rows::conversation_by_id(self.db, &task.id)?;
        match conversation {
            Some(conversation) => Ok(sight::reads_conversation(self.db, caller, &conversation)?.is_some()),
            None => Ok(caller.rights.admin),
        }
    }
}
