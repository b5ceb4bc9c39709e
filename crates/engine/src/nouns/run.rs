//! Runs: tasks that the server itself executes for a caller, by delivering messages to agents in turn.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Json, Millis, Seq, TaskId};

coded! {
    /// The phase of a run.
    RunPhase {
        /// Messages are delivered.
        Running = "running",
        /// Waits for its caller.
        Paused = "paused",
        /// Ended; its caller may resume it.
        Ended = "ended",
    }
}

/// A task that is run for a caller. The same name may be used in several instances; each is a task of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The task and conversation behind it.
    pub task: TaskId,
    /// The instance, which says for whom it runs.
    pub instance: String,
    /// Its name within the instance.
    pub name: String,
    /// Its phase.
    pub phase: RunPhase,
    /// Messages counted towards its limit since it was last opened.
    pub steps: i64,
    /// Notes written so far.
    pub notes: i64,
    /// State of the component that executes the run.
    pub state: Option<Json>,
    /// Its seq in the event log.
    pub seq: Seq,
}

/// What an agent did with a message of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNote {
    /// Counts the notes of a run from 1.
    pub n: i64,
    /// The note comes before the message with this seq.
    pub before: Seq,
    /// The agent.
    pub agent: AgentId,
    /// When.
    pub at: Millis,
    /// The note, in the format of the component that executes the run.
    pub note: Json,
}

/// A delivery, as far as a run needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Taken {
    /// The recipient.
    pub agent: AgentId,
    /// The message.
    pub message: super::MessageId,
}
