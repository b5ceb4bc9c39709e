//! MAILInterswarmMessage: a payload on its way from one swarm to another.

use serde_json::{Map, Value, json};

use super::fields::{FieldError, Fields, texts};
use super::message::{MsgType, Payload};
use super::owner::Owner;

/// The wrapper around a payload between swarms.
#[derive(Clone, Debug, PartialEq)]
pub struct Interswarm {
    /// The sender's name for it.
    pub message_id: String,
    /// Where it comes from.
    pub source_swarm: String,
    /// Where it goes.
    pub target_swarm: String,
    /// When it was sent.
    pub timestamp: String,
    /// What kind of message it is; never one that ends a task.
    pub msg_type: MsgType,
    /// What it carries.
    pub payload: Payload,
    /// The instance that the task belongs to.
    pub task_owner: Owner,
    /// Every instance that has had a part in the task.
    pub task_contributors: Vec<Owner>,
    /// What the reference repeats here of the bearer token.
    pub auth_token: Option<String>,
    /// Whatever else.
    pub metadata: Option<Map<String, Value>>,
}

const KNOWN: [&str; 10] = [
    "message_id",
    "source_swarm",
    "target_swarm",
    "timestamp",
    "payload",
    "msg_type",
    "task_owner",
    "task_contributors",
    "auth_token",
    "metadata",
];

impl Interswarm {
    /// Reads a wrapper.
    ///
    /// # Errors
    /// Names the field that is not as the schema wants it.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::of(value)?.only(&KNOWN)?;
        let word = fields.text("msg_type")?;
        let msg_type =
            MsgType::from_word(word).filter(|kind| *kind != MsgType::BroadcastComplete).ok_or_else(|| {
                FieldError::new("msg_type", "must be request, response, broadcast or interrupt")
            })?;
        let owner = |name: &str, text: &str| {
            Owner::parse(text).ok_or_else(|| FieldError::new(name, "must have the form role:id@swarm"))
        };
        let contributors = texts("task_contributors", fields.list("task_contributors")?)?;
        let read = |(at, text): (usize, &String)| owner(&format!("task_contributors[{at}]"), text);
        let task_contributors: Vec<Owner> =
            contributors.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let task_owner = owner("task_owner", fields.full_text("task_owner")?)?;
        // The schema allows none at all, and whoever lists some must not leave the owner out.
        if !task_contributors.is_empty() && !task_contributors.contains(&task_owner) {
            return Err(FieldError::new("task_contributors", "must include the task_owner"));
        }
        let payload = fields.required("payload")?;
        Ok(Self {
            message_id: fields.full_text("message_id")?.to_owned(),
            source_swarm: fields.full_text("source_swarm")?.to_owned(),
            target_swarm: fields.full_text("target_swarm")?.to_owned(),
            timestamp: fields.moment("timestamp")?.to_owned(),
            msg_type,
            payload: Payload::read(msg_type, payload).map_err(|error| error.within("payload"))?,
            task_owner,
            task_contributors,
            auth_token: fields.optional_text("auth_token")?.map(str::to_owned),
            metadata: fields.optional_object("metadata")?.cloned(),
        })
    }

    /// As JSON. `auth_token` and `metadata` are always written, because the reference demands them.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "message_id": self.message_id,
            "source_swarm": self.source_swarm,
            "target_swarm": self.target_swarm,
            "timestamp": self.timestamp,
            "payload": self.payload.to_json(self.msg_type),
            "msg_type": self.msg_type.as_str(),
            "auth_token": self.auth_token.as_deref().unwrap_or_default(),
            "task_owner": self.task_owner.to_string(),
            "task_contributors": self.task_contributors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "metadata": self.metadata.clone().unwrap_or_default(),
        })
    }
}
