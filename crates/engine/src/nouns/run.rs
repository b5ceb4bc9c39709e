//! Runs: tasks that the office itself moves along, on behalf of somebody, by handing letters to agents in turn.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Json, Millis, Seq, TaskId};

coded! {
    /// Where a run is in its life.
    RunPhase {
        /// Letters are handed out.
        Running = "running",
        /// Waits for whoever it is run for.
        Paused = "paused",
        /// Over; whoever it is run for may let it go on.
        Ended = "ended",
    }
}

/// A task that is run for somebody. The same name may be used in several instances; each is a task of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The task and conversation behind it.
    pub task: TaskId,
    /// On whose behalf it runs.
    pub instance: String,
    /// What it is called there.
    pub name: String,
    /// Where it is in its life.
    pub phase: RunPhase,
    /// Letters counted towards its limit since it was last opened.
    pub steps: i64,
    /// Notes written so far.
    pub notes: i64,
    /// Whatever the one who moves it along wants back.
    pub state: Option<Json>,
    /// Its place in the realm's history.
    pub seq: Seq,
}

/// What an agent did when it had a letter in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNote {
    /// Counts the notes of a run from 1.
    pub n: i64,
    /// Comes before whatever has this place in the history.
    pub place: Seq,
    /// Who.
    pub agent: AgentId,
    /// When.
    pub at: Millis,
    /// What, in the words of the one who moves the run along.
    pub note: Json,
}

/// A letter's copy, as far as a run needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Taken {
    /// Who has it in hand.
    pub agent: AgentId,
    /// The letter.
    pub message: super::MessageId,
}
