//! Tasks: conversations with an owner, contributors and a result.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Json, Millis, Seq, TaskId};

coded! {
    /// The status of a task.
    TaskStatus {
        /// Not started.
        Open = "open",
        /// In progress.
        InProgress = "in_progress",
        /// Blocked.
        Blocked = "blocked",
        /// Done.
        Completed = "completed",
        /// Given up.
        Failed = "failed",
    }
}

impl TaskStatus {
    /// Whether the task has ended.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, which is also its conversation's.
    pub id: TaskId,
    /// A one-line description.
    pub title: Option<String>,
    /// A longer description.
    pub description: Option<String>,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// Who is responsible for it; agents of other realms are written in their door's format.
    pub owner: String,
    /// The agent that works on it now.
    pub assignee: Option<AgentId>,
    /// All agents that have contributed to it.
    pub contributors: Vec<String>,
    /// The result.
    pub result: Option<Json>,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// When it was made.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// Its seq in the event log.
    pub seq: Seq,
}
