//! MAILInterswarmMessage: a payload sent from one swarm to another.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::fields::{FieldError, Fields, deserialize_by_read, texts};
use super::message::{MsgType, Payload, PayloadForm};
use super::owner::Owner;

/// A message between swarms.
#[derive(Clone, Debug, PartialEq)]
pub struct Interswarm {
    /// Message id, chosen by the sending swarm.
    pub message_id: String,
    /// The sending swarm.
    pub source_swarm: String,
    /// The receiving swarm.
    pub target_swarm: String,
    /// Sending time, as RFC 3339.
    pub timestamp: String,
    /// The message type; never `BroadcastComplete`.
    pub msg_type: MsgType,
    /// The payload.
    pub payload: Payload,
    /// The instance that owns the task.
    pub task_owner: Owner,
    /// All instances that contributed to the task.
    pub task_contributors: Vec<Owner>,
    /// The bearer token, which the reference implementation repeats in the body.
    pub auth_token: Option<String>,
    /// Additional metadata.
    pub metadata: Option<Map<String, Value>>,
}

const KNOWN_FIELDS: [&str; 10] = [
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
    /// Parses the message.
    ///
    /// # Errors
    /// Names the field that violates the schema.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::new(value)?.only(&KNOWN_FIELDS)?;
        let msg_type = MsgType::parse(fields.text("msg_type")?)
            .filter(|kind| *kind != MsgType::BroadcastComplete)
            .ok_or_else(|| {
                FieldError::new("msg_type", "must be request, response, broadcast or interrupt")
            })?;
        let owner = |name: &str, text: &str| {
            Owner::parse(text).ok_or_else(|| FieldError::new(name, "must have the form role:id@swarm"))
        };
        let contributors = texts("task_contributors", fields.list("task_contributors")?)?;
        let read = |(at, text): (usize, &String)| owner(&format!("task_contributors[{at}]"), text);
        let task_contributors: Vec<Owner> =
            contributors.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let task_owner = owner("task_owner", fields.non_empty_text("task_owner")?)?;
        // The schema allows an empty list; a list with entries must include the owner.
        if !task_contributors.is_empty() && !task_contributors.contains(&task_owner) {
            return Err(FieldError::new("task_contributors", "must include the task_owner"));
        }
        let payload = fields.required("payload")?;
        Ok(Self {
            message_id: fields.non_empty_text("message_id")?.to_owned(),
            source_swarm: fields.non_empty_text("source_swarm")?.to_owned(),
            target_swarm: fields.non_empty_text("target_swarm")?.to_owned(),
            timestamp: fields.timestamp("timestamp")?.to_owned(),
            msg_type,
            payload: Payload::read(msg_type, payload).map_err(|error| error.within("payload"))?,
            task_owner,
            task_contributors,
            auth_token: fields.optional_text("auth_token")?.map(str::to_owned),
            metadata: fields.optional_object("metadata")?.cloned(),
        })
    }
}

/// Writes `auth_token` and `metadata` always, because the reference requires them.
impl Serialize for Interswarm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            message_id: &'a str,
            source_swarm: &'a str,
            target_swarm: &'a str,
            timestamp: &'a str,
            payload: PayloadForm<'a>,
            msg_type: MsgType,
            auth_token: &'a str,
            task_owner: &'a Owner,
            task_contributors: &'a [Owner],
            metadata: &'a Map<String, Value>,
        }
        let none = Map::new();
        let form = Form {
            message_id: &self.message_id,
            source_swarm: &self.source_swarm,
            target_swarm: &self.target_swarm,
            timestamp: &self.timestamp,
            payload: self.payload.form(self.msg_type),
            msg_type: self.msg_type,
            auth_token: self.auth_token.as_deref().unwrap_or_default(),
            task_owner: &self.task_owner,
            task_contributors: &self.task_contributors,
            metadata: self.metadata.as_ref().unwrap_or(&none),
        };
        form.serialize(serializer)
    }
}

/// `POST /interswarm/forward` and `POST /interswarm/back`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterswarmRequest {
    /// The message.
    pub message: Interswarm,
}

impl InterswarmRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// Names the field that violates the schema.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let message = value.get("message").filter(|message| !message.is_null());
        let message = message.ok_or_else(|| FieldError::new("message", "is required"))?;
        let message = Interswarm::read(message).map_err(|error| error.within("message"))?;
        Ok(Self { message })
    }
}

deserialize_by_read!(Interswarm, InterswarmRequest);
