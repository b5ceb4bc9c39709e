//! Tasks and broadcasts.

use serde::{Deserialize, Serialize};

use super::SentMessage;

/// `send_response`, `send_interrupt` and `send_broadcast`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TaskMessage {
    pub task_id: String,
    pub message_id: i64,
    pub kind: String,
    pub message: SentMessage,
}

/// `send_request`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OpenedTask {
    #[serde(flatten)]
    pub sent: TaskMessage,
    pub opened: bool,
}

/// `task_complete`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TaskEnded {
    #[serde(flatten)]
    pub sent: TaskMessage,
    pub completed: bool,
    pub ended_ts: Option<String>,
}

/// `task_complete` for a task that has ended before.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TaskDuplicate {
    pub task_id: String,
    pub completed: bool,
    pub duplicate: bool,
}

/// `ignore_broadcast`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct IgnoredBroadcast {
    pub message_id: i64,
    pub ignored: bool,
    pub read_at: Option<String>,
}
