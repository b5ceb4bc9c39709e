//! Request bodies of clients. Unknown fields are ignored; `null` and empty text in optional fields count as absent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::{FieldError, Fields, deserialize_by_read, is_uuid, text, texts};
use super::message::MsgType;

/// How a task is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeFrom {
    /// With another message from the user.
    UserResponse,
    /// With the result of a breakpoint tool.
    BreakpointToolCall,
}

/// `POST /message`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageRequest {
    /// The user's message; may be empty only with a breakpoint tool result.
    pub body: String,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The task it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The agent that receives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<String>,
    /// Whether the response lists events.
    pub show_events: bool,
    /// Whether the response is an event stream.
    pub stream: bool,
    /// How the task is resumed, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<ResumeFrom>,
    /// The message type.
    pub msg_type: MsgType,
    /// Options of the run.
    pub kwargs: Map<String, Value>,
}

impl MessageRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::new(value)?;
        let resume_from = match optional(fields, "resume_from")? {
            None => None,
            Some("user_response") => Some(ResumeFrom::UserResponse),
            Some("breakpoint_tool_call") => Some(ResumeFrom::BreakpointToolCall),
            Some(_) => {
                return Err(FieldError::new("resume_from", "must be user_response or breakpoint_tool_call"));
            }
        };
        let body = match fields.any(&["body", "message"]) {
            Some((name, value)) => text(name, value)?,
            None => "",
        };
        if body.is_empty() && resume_from != Some(ResumeFrom::BreakpointToolCall) {
            return Err(FieldError::new("body", "is required and must not be empty"));
        }
        let task_id = task_id(fields)?;
        if resume_from.is_some() && task_id.is_none() {
            return Err(FieldError::new("task_id", "is required with `resume_from`"));
        }
        let msg_type = match optional(fields, "msg_type")? {
            None => MsgType::Request,
            Some(text) => match MsgType::parse(text) {
                Some(kind @ (MsgType::Request | MsgType::Broadcast)) => kind,
                Some(_) => return Err(FieldError::new("msg_type", "of a user must be request or broadcast")),
                None => return Err(FieldError::new("msg_type", "must be request or broadcast")),
            },
        };
        Ok(Self {
            body: body.to_owned(),
            subject: optional(fields, "subject")?.map(str::to_owned),
            task_id,
            entrypoint: optional(fields, "entrypoint")?.map(str::to_owned),
            show_events: fields.optional_bool("show_events")?.unwrap_or(false),
            stream: fields.optional_bool("stream")?.unwrap_or(false),
            resume_from,
            msg_type,
            kwargs: fields.optional_object("kwargs")?.cloned().unwrap_or_default(),
        })
    }

    /// `kwargs.max_steps`: maximum number of messages of the task.
    ///
    /// # Errors
    /// If it is not a whole number of at least 1.
    pub fn max_steps(&self) -> Result<Option<i64>, FieldError> {
        match self.kwargs.get("max_steps") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64() {
                Some(steps) if steps >= 1 => Ok(Some(steps)),
                _ => Err(FieldError::new("kwargs.max_steps", "must be a whole number of at least 1")),
            },
        }
    }

    /// `kwargs.timeout`: time limit of the task, in seconds.
    ///
    /// # Errors
    /// If it is not a positive number.
    pub fn timeout(&self) -> Result<Option<f64>, FieldError> {
        match self.kwargs.get("timeout") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(Some(seconds)),
                _ => Err(FieldError::new("kwargs.timeout", "must be a positive number of seconds")),
            },
        }
    }

    /// `kwargs.breakpoint_tool_call_result` as pairs of optional call id and content.
    ///
    /// # Errors
    /// If it is missing, or an entry is not a result.
    pub fn breakpoint_results(&self) -> Result<Vec<(Option<String>, String)>, FieldError> {
        const NAME: &str = "kwargs.breakpoint_tool_call_result";
        let given = self.kwargs.get("breakpoint_tool_call_result").filter(|value| !value.is_null());
        let Some(given) = given else { return Err(FieldError::new(NAME, "is required")) };
        // A string is either encoded JSON or the plain result.
        let parsed = given.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let parsed = parsed.filter(|value| value.is_object() || value.is_array());
        match parsed.as_ref().unwrap_or(given) {
            Value::Array(list) if !list.is_empty() => {
                list.iter().enumerate().map(|(at, one)| result(&format!("{NAME}[{at}]"), one)).collect()
            }
            Value::Array(_) => Err(FieldError::new(NAME, "must hold at least one result")),
            object @ Value::Object(_) => Ok(vec![result(NAME, object)?]),
            Value::String(text) => Ok(vec![(None, text.clone())]),
            other => Ok(vec![(None, other.to_string())]),
        }
    }
}

fn result(name: &str, value: &Value) -> Result<(Option<String>, String), FieldError> {
    let fields = Fields::new(value).map_err(|_| FieldError::new(name, "must be an object with `content`"))?;
    let content = match fields.required("content").map_err(|error| error.within(name))? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let call = fields.optional_text("call_id").map_err(|error| error.within(name))?;
    Ok((call.map(str::to_owned), content))
}

/// `POST /swarms` and `POST /swarms/register`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisterRequest {
    /// The swarm's name.
    pub name: String,
    /// Base URL of the swarm.
    pub base_url: String,
    /// Bearer token for requests to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<String>,
    /// Whether the registration ends when the server stops.
    pub volatile: bool,
    /// Additional metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl RegisterRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::new(value)?;
        let name = match fields.any(&["name", "swarm_name"]) {
            Some((field, value)) => text(field, value)?,
            None => return Err(FieldError::new("name", "is required")),
        };
        if name.is_empty() {
            return Err(FieldError::new("name", "must not be empty"));
        }
        Ok(Self {
            name: name.to_owned(),
            base_url: fields.non_empty_text("base_url")?.to_owned(),
            auth_token: optional(fields, "auth_token")?.map(str::to_owned),
            volatile: fields.optional_bool("volatile")?.unwrap_or(true),
            metadata: fields.optional_object("metadata")?.cloned(),
        })
    }
}

/// `POST /swarms/load`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRequest {
    /// A swarm definition as JSON text.
    pub json: String,
}

impl LoadRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        Ok(Self { json: Fields::new(value)?.non_empty_text("json")?.to_owned() })
    }
}

/// `POST /interswarm/message`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectRequest {
    /// The caller's token for the other swarm.
    pub user_token: String,
    /// The body of the message.
    pub body: String,
    /// The recipients, each `agent@swarm`.
    pub targets: Vec<String>,
    /// The subject.
    pub subject: String,
    /// A request to one recipient, or a broadcast to several.
    pub msg_type: MsgType,
    /// Hints for routing.
    pub routing_info: Map<String, Value>,
    /// Whether the response is an event stream.
    pub stream: bool,
    /// Whether the stream omits pings.
    pub ignore_stream_pings: bool,
    /// The task it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

impl DirectRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let given = value.get("user_token").filter(|token| !token.is_null() && **token != "");
        if given.is_none() {
            return Err(FieldError::new("user_token", "is required"));
        }
        let fields = Fields::new(value)?;
        let user_token = fields.text("user_token")?.to_owned();
        let body = match fields.any(&["body", "message"]) {
            Some((name, value)) => text(name, value)?,
            None => return Err(FieldError::new("body", "is required")),
        };
        if body.is_empty() {
            return Err(FieldError::new("body", "must not be empty"));
        }
        let targets = match (fields.get("targets"), fields.get("target_agent")) {
            (Some(_), _) => texts("targets", fields.list("targets")?)?,
            (None, Some(target)) => vec![text("target_agent", target)?.to_owned()],
            (None, None) => return Err(FieldError::new("targets", "is required")),
        };
        if targets.is_empty() || targets.iter().any(String::is_empty) {
            return Err(FieldError::new("targets", "must name at least one agent"));
        }
        let msg_type = match optional(fields, "msg_type")? {
            None | Some("request") => MsgType::Request,
            Some("broadcast") => MsgType::Broadcast,
            Some(_) => return Err(FieldError::new("msg_type", "must be request or broadcast")),
        };
        if msg_type == MsgType::Request && targets.len() != 1 {
            return Err(FieldError::new("targets", "of a request must be exactly one agent"));
        }
        let stream = fields.optional_bool("stream")?.unwrap_or(false);
        let ignore_stream_pings = fields.optional_bool("ignore_stream_pings")?.unwrap_or(false);
        let mut routing_info = fields.optional_object("routing_info")?.cloned().unwrap_or_default();
        if stream {
            routing_info.insert("stream".into(), Value::Bool(true));
        }
        if ignore_stream_pings {
            routing_info.insert("ignore_stream_pings".into(), Value::Bool(true));
        }
        Ok(Self {
            user_token,
            body: body.to_owned(),
            targets,
            subject: optional(fields, "subject")?.unwrap_or("Interswarm Message").to_owned(),
            msg_type,
            task_id: task_id(fields)?,
            routing_info,
            stream,
            ignore_stream_pings,
        })
    }
}

/// `POST /task/cancel`, and the body that the reference's client sends with `GET /task`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRef {
    /// The task.
    pub task_id: String,
}

impl TaskRef {
    /// Parses the body. A `task_id` that is no text counts as absent.
    ///
    /// # Errors
    /// Names the missing field.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        match value.get("task_id").and_then(Value::as_str) {
            Some(id) => Ok(Self { task_id: id.to_owned() }),
            None => Err(FieldError::new("task_id", "is required")),
        }
    }
}

/// `POST /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthRequest {
    /// The word that `GET /health` answers while the server is healthy.
    pub status: String,
}

impl HealthRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// If `status` is not a word of 1 to 64 bytes.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        match value.get("status").and_then(Value::as_str) {
            Some(word) if !word.is_empty() && word.len() <= 64 && !word.chars().any(char::is_control) => {
                Ok(Self { status: word.to_owned() })
            }
            _ => Err(FieldError::new("status", "is required: a word of 1 to 64 bytes")),
        }
    }
}

deserialize_by_read!(MessageRequest, RegisterRequest, LoadRequest, DirectRequest, TaskRef, HealthRequest);

/// An optional text field; empty counts as absent.
fn optional<'a>(fields: Fields<'a>, name: &str) -> Result<Option<&'a str>, FieldError> {
    Ok(fields.optional_text(name)?.filter(|text| !text.is_empty()))
}

/// The task id. It must be a UUID, because interswarm messages require one.
fn task_id(fields: Fields<'_>) -> Result<Option<String>, FieldError> {
    match optional(fields, "task_id")? {
        Some(id) if !is_uuid(id) => Err(FieldError::new("task_id", "must be a UUID")),
        other => Ok(other.map(str::to_lowercase)),
    }
}
