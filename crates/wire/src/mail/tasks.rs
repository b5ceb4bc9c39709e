//! Tasks as callers see them: their records, their events, and what they end with.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::message::MailMessage;

/// `GET /task`, and one entry of `GET /tasks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The task's id.
    pub task_id: String,
    /// Its title.
    pub title: Option<String>,
    /// The instance that owns it, `role:id@swarm`.
    pub task_owner: String,
    /// All instances that contributed to it.
    pub task_contributors: Vec<String>,
    /// When it began, as RFC 3339.
    pub start_time: String,
    /// Whether its agents are at work.
    pub is_running: bool,
    /// Whether it has ended.
    pub completed: bool,
    /// Whether it waits for its owner.
    pub paused: bool,
    /// Other swarms that contributed.
    pub remote_swarms: Vec<String>,
    /// Always empty; the reference lists its queue here.
    pub task_message_queue: Vec<Value>,
    /// What happened so far.
    pub events: Vec<EventRecord>,
}

/// `GET /tasks`: an object whose members are the tasks' ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskList(
    /// The tasks, by id.
    pub Vec<TaskRecord>,
);

impl Serialize for TaskList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for task in &self.0 {
            map.serialize_entry(&task.task_id, task)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TaskList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        let tasks = map.into_iter().map(|(_, task)| serde_json::from_value(task));
        tasks.collect::<Result<_, _>>().map(Self).map_err(serde::de::Error::custom)
    }
}

/// An event in a list, with the members that the reference's client has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// The event's name; see [`super::events`].
    pub event: String,
    /// What happened.
    pub data: EventData,
    /// The id by which a stream resumes after this event.
    pub id: String,
    /// Always null.
    pub retry: Option<u64>,
    /// Always null.
    pub comment: Option<String>,
    /// The line break of the event stream.
    #[serde(rename = "_sep")]
    pub line_break: String,
}

impl EventRecord {
    /// An event.
    #[must_use]
    pub fn new(event: String, data: EventData, id: String) -> Self {
        Self { event, data, id, retry: None, comment: None, line_break: "\r\n".to_owned() }
    }
}

/// The data of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventData {
    /// When it happened, as RFC 3339.
    pub timestamp: String,
    /// What happened, for people.
    pub description: String,
    /// The task.
    pub task_id: String,
    /// What the event's name implies; see [`super::events`].
    pub extra_data: Value,
}

/// The data of the event that ends a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// When the task ended, as RFC 3339.
    pub timestamp: String,
    /// The task.
    pub task_id: String,
    /// What the task ended with.
    pub response: String,
}

/// The data of a ping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// The current time, as RFC 3339.
    pub timestamp: String,
    /// The task.
    pub task_id: String,
}

/// `POST /message` without a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageAnswer {
    /// What the task ended with.
    pub response: String,
    /// What happened, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventRecord>>,
}

/// `POST /interswarm/message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectAnswer {
    /// The message that ended the task.
    pub response: MailMessage,
    /// What happened, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<DirectEvents>,
}

/// Events of a direct message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DirectEvents {
    /// Of a task of this server.
    Own(Vec<EventRecord>),
    /// As another server listed them.
    Foreign(Vec<Value>),
}

/// What a peer answered to a direct message, with the events unread.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerDirectAnswer {
    /// The message, still to be parsed. Wrappers that some servers add around it are gone.
    pub response: Value,
    /// The events, if there are any.
    pub events: Option<Vec<Value>>,
}

impl PeerDirectAnswer {
    /// Reads the body of an answer.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn read(body: &[u8]) -> serde_json::Result<Self> {
        let mut value: Value = serde_json::from_slice(body)?;
        let events = match value.get_mut("events").map(Value::take) {
            Some(Value::Array(events)) => Some(events),
            _ => None,
        };
        let mut response = value.get_mut("response").map(Value::take).unwrap_or_default();
        while let Some(inner) = response.get_mut("response") {
            response = inner.take();
        }
        Ok(Self { response, events })
    }
}

/// `POST /task/cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAnswer {
    /// Always `cancelled`.
    pub status: String,
    /// The task.
    pub task_id: String,
}
