//! Tasks: conversations with an owner, contributors and an end.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Json, Millis, Seq, TaskId};

coded! {
    /// Where a task is in its life.
    TaskStatus {
        /// Nobody works on it yet.
        Open = "open",
        /// Somebody does.
        InProgress = "in_progress",
        /// Something is in the way.
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
    /// Its name, which is also its conversation's.
    pub id: TaskId,
    /// What it is, in a line.
    pub title: Option<String>,
    /// What it is, at length.
    pub description: Option<String>,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// Who answers for it; agents of other realms are written in their door's form.
    pub owner: String,
    /// Who works on it now.
    pub assignee: Option<AgentId>,
    /// Everyone who has had a part in it.
    pub contributors: Vec<String>,
    /// What came of it.
    pub result: Option<Json>,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// When it was made.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// Its place in the realm's history.
    pub seq: Seq,
}
