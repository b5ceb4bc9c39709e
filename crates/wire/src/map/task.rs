//! Tasks: their entries, and the params and results of `map/tasks/…`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::{object_or_default, present, some_object};

/// A task's entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: String,
    /// The agent that is responsible for it.
    pub owner: String,
    /// When it was created, in Unix milliseconds.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// A one-line description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A longer description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Value>,
    /// Its metadata.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub meta: Option<Value>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
}

/// The members of a task that clients set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFields {
    /// Its id, when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A one-line description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A longer description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The agent that works on it; null takes it away from the one that has it.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub assignee: Option<Option<String>>,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The params of `map/tasks/create`; some clients write the members of `task` beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateParams {
    /// The task.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskFields>,
}

/// The params of `map/tasks/assign`, `map/tasks/update` and `map/tasks/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParams {
    /// The task.
    pub task_id: String,
    /// The agent that it is assigned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What changes.
    #[serde(flatten)]
    pub changes: TaskFields,
}

/// The result of `map/tasks/create`, `map/tasks/assign`, `map/tasks/update` and `map/tasks/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// The task.
    pub task: Task,
}

/// The params of `map/tasks/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListParams {
    /// The filter.
    #[serde(deserialize_with = "object_or_default")]
    pub filter: TaskFilter,
    /// Page size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// Where the page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFilter {
    /// Tasks of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// A status, or a list of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The result of `map/tasks/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
