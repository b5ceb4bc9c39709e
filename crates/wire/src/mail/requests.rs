//! What clients post. Unknown fields are ignored, `null` and empty text in optional fields mean "as usual".

use serde_json::{Map, Value};

use super::fields::{FieldError, Fields, is_uuid, text, texts};
use super::message::MsgType;

/// From where a task goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// With another message of the user.
    UserResponse,
    /// With the result of a tool that the user was asked for.
    BreakpointToolCall,
}

/// `POST /message`.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRequest {
    /// What the user says; empty only where a tool's result takes its place.
    pub body: String,
    /// Its heading.
    pub subject: Option<String>,
    /// The task it belongs to.
    pub task_id: Option<String>,
    /// The agent it goes to.
    pub entrypoint: Option<String>,
    /// Whether the answer lists events.
    pub show_events: bool,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// From where the task goes on.
    pub resume_from: Option<ResumeFrom>,
    /// What kind of message it is.
    pub msg_type: MsgType,
    /// What steers the run.
    pub kwargs: Map<String, Value>,
}

impl MessageRequest {
    /// Reads the body.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::of(value)?;
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
            Some(word) => match MsgType::from_word(word) {
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

    /// `kwargs.max_steps`: how many messages the task may take.
    ///
    /// # Errors
    /// If it is not a whole number.
    pub fn max_steps(&self) -> Result<Option<i64>, FieldError> {
        match self.kwargs.get("max_steps") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64() {
                Some(steps) if steps >= 1 => Ok(Some(steps)),
                _ => Err(FieldError::new("kwargs.max_steps", "must be a whole number of at least 1")),
            },
        }
    }

    /// `kwargs.timeout`: how many seconds the task may take.
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

    /// `kwargs.breakpoint_tool_call_result` as pairs of call id, if given, and content.
    ///
    /// # Errors
    /// If there is none, or a list in it is not one of results.
    pub fn breakpoint_results(&self) -> Result<Vec<(Option<String>, String)>, FieldError> {
        const NAME: &str = "kwargs.breakpoint_tool_call_result";
        let given = self.kwargs.get("breakpoint_tool_call_result").filter(|value| !value.is_null());
        let Some(given) = given else { return Err(FieldError::new(NAME, "is required")) };
        // Text may be JSON written down, or plain words.
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
    let fields = Fields::of(value).map_err(|_| FieldError::new(name, "must be an object with `content`"))?;
    let content = match fields.required("content").map_err(|error| error.within(name))? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let call = fields.optional_text("call_id").map_err(|error| error.within(name))?;
    Ok((call.map(str::to_owned), content))
}

/// `POST /swarms` and `POST /swarms/register`.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterRequest {
    /// The swarm's name.
    pub name: String,
    /// Where it is.
    pub base_url: String,
    /// The token to show there.
    pub auth_token: Option<String>,
    /// Whether it is forgotten when the server stops.
    pub volatile: bool,
    /// Whatever else.
    pub metadata: Option<Map<String, Value>>,
}

impl RegisterRequest {
    /// Reads the body.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::of(value)?;
        let name = match fields.any(&["name", "swarm_name"]) {
            Some((field, value)) => text(field, value)?,
            None => return Err(FieldError::new("name", "is required")),
        };
        if name.is_empty() {
            return Err(FieldError::new("name", "must not be empty"));
        }
        Ok(Self {
            name: name.to_owned(),
            base_url: fields.full_text("base_url")?.to_owned(),
            auth_token: optional(fields, "auth_token")?.map(str::to_owned),
            volatile: fields.optional_bool("volatile")?.unwrap_or(true),
            metadata: fields.optional_object("metadata")?.cloned(),
        })
    }
}

/// `POST /swarms/load`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadRequest {
    /// A swarm, written down as JSON.
    pub json: String,
}

impl LoadRequest {
    /// Reads the body.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        Ok(Self { json: Fields::of(value)?.full_text("json")?.to_owned() })
    }
}

/// `POST /interswarm/message`.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectRequest {
    /// The caller's token at the other swarm.
    pub user_token: String,
    /// What is said.
    pub body: String,
    /// To whom, each `agent@swarm`.
    pub targets: Vec<String>,
    /// Its heading.
    pub subject: String,
    /// A request to one, or a broadcast to several.
    pub msg_type: MsgType,
    /// The task it belongs to.
    pub task_id: Option<String>,
    /// Hints for those who carry it.
    pub routing_info: Map<String, Value>,
    /// Whether events are wanted.
    pub stream: bool,
    /// Whether pings are left out of them.
    pub ignore_stream_pings: bool,
}

impl DirectRequest {
    /// Reads the body.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::of(value)?;
        let user_token = fields.full_text("user_token")?.to_owned();
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

/// An optional text, where empty means absent.
fn optional<'a>(fields: Fields<'a>, name: &str) -> Result<Option<&'a str>, FieldError> {
    Ok(fields.optional_text(name)?.filter(|text| !text.is_empty()))
}

/// A task's id: messages between swarms must carry a UUID, so nothing else is taken here either.
fn task_id(fields: Fields<'_>) -> Result<Option<String>, FieldError> {
    match optional(fields, "task_id")? {
        Some(id) if !is_uuid(id) => Err(FieldError::new("task_id", "must be a UUID")),
        other => Ok(other.map(str::to_lowercase)),
    }
}
