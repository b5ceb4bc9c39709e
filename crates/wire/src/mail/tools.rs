//! The protocol's tools for agents: names, descriptions, parameter schemas, and parsing of calls.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fields::{FieldError, Fields, texts};

/// A call of one of the protocol's tools.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Sends a request, response or interrupt to one agent.
    Send {
        /// The message type.
        kind: super::MsgType,
        /// The recipient.
        target: String,
        /// The subject.
        subject: String,
        /// The body.
        body: String,
    },
    /// Sends a message to several agents.
    Broadcast {
        /// The subject.
        subject: String,
        /// The body.
        body: String,
        /// The recipients; all agents if empty.
        targets: Vec<String>,
    },
    /// Ends the task.
    Complete {
        /// The result for the user.
        finish_message: String,
    },
    /// Keeps a broadcast in the agent's context without a response.
    Acknowledge {
        /// An optional note.
        note: Option<String>,
    },
    /// Drops a broadcast from the agent's context.
    Ignore {
        /// An optional reason.
        reason: Option<String>,
    },
    /// Ends the turn until a message arrives.
    Await {
        /// An optional reason.
        reason: Option<String>,
    },
    /// Requests information about the protocol.
    Help {
        /// Include a summary of the protocol.
        summary: bool,
        /// Include the caller's identity.
        identity: bool,
        /// Include help on these tools.
        tools: Vec<String>,
        /// Include the full protocol.
        full: bool,
    },
}

/// The names of the protocol's tools.
pub const NAMES: [&str; 9] = [
    "send_request",
    "send_response",
    "send_interrupt",
    "send_broadcast",
    "task_complete",
    "acknowledge_broadcast",
    "ignore_broadcast",
    "await_message",
    "help",
];

impl Call {
    /// Parses a call; `None` if the tool is not one of the protocol's.
    ///
    /// # Errors
    /// Names the invalid argument.
    pub fn read(tool: &str, args: &Value) -> Result<Option<Self>, FieldError> {
        if !NAMES.contains(&tool) {
            return Ok(None);
        }
        let no_args = Value::Object(Map::new());
        let fields = Fields::new(if args.is_null() { &no_args } else { args })
            .map_err(|_| FieldError::new("args", "must be an object"))?;
        let owned = |name: &str| fields.text(name).map(str::to_owned);
        let optional = |name: &str| Ok::<_, FieldError>(fields.optional_text(name)?.map(str::to_owned));
        let flag =
            |name: &str, default: bool| Ok::<_, FieldError>(fields.optional_bool(name)?.unwrap_or(default));
        let list = |name: &str| match fields.get(name) {
            None => Ok(Vec::new()),
            Some(_) => texts(name, fields.list(name)?),
        };
        let send = |kind| {
            Ok::<_, FieldError>(Self::Send {
                kind,
                target: fields.non_empty_text("target")?.to_owned(),
                subject: owned("subject")?,
                body: owned("body")?,
            })
        };
        Ok(Some(match tool {
            "send_request" => send(super::MsgType::Request)?,
            "send_response" => send(super::MsgType::Response)?,
            "send_interrupt" => send(super::MsgType::Interrupt)?,
            "send_broadcast" => Self::Broadcast {
                subject: owned("subject")?,
                body: owned("body")?,
                targets: list("targets")?,
            },
            "task_complete" => Self::Complete { finish_message: owned("finish_message")? },
            "acknowledge_broadcast" => Self::Acknowledge { note: optional("note")? },
            "ignore_broadcast" => Self::Ignore { reason: optional("reason")? },
            "await_message" => Self::Await { reason: optional("reason")? },
            _ => Self::Help {
                summary: flag("get_summary", true)?,
                identity: flag("get_identity", false)?,
                tools: list("get_tool_help")?,
                full: flag("get_full_protocol", false)?,
            },
        }))
    }
}

/// The arguments of `send_request`, `send_response` and `send_interrupt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendArgs {
    /// The recipient.
    pub target: String,
    /// The subject.
    pub subject: String,
    /// The body.
    pub body: String,
}

/// The arguments of `task_complete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteArgs {
    /// The result for the user.
    pub finish_message: String,
}

/// The arguments of tools that need none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoArgs {}

/// A call that the user is asked to answer, in the form that the reference's clients expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The arguments: JSON as text.
    pub arguments: String,
    /// The call's id.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Always `function_call`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of this object.
    pub id: String,
    /// Always `completed`.
    pub status: String,
}

/// The description of a tool, for agents.
#[must_use]
pub fn description(tool: &str) -> &'static str {
    match tool {
        "send_request" => "Ask another agent for something. Its answer comes to you as a new message.",
        "send_response" => "Answer a request of another agent.",
        "send_interrupt" => "Interrupt another agent: it gets this before its other messages.",
        "send_broadcast" => "Tell all agents of the swarm something.",
        "task_complete" => "End the task. The finish message is what the user gets.",
        "acknowledge_broadcast" => "Keep a broadcast in mind without answering it.",
        "ignore_broadcast" => "Neither answer a broadcast nor keep it in mind.",
        "await_message" => "End your turn; you are called again when a message comes.",
        "help" => "Ask who you are and how the protocol works.",
        _ => "",
    }
}

/// The JSON schema of parameters that a tool does not have.
#[must_use]
pub fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// The parameters of a tool as a JSON schema; `targets`, if not empty, restricts the recipients.
#[must_use]
pub fn parameters(tool: &str, targets: &[String]) -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let (properties, required): (Value, &[&str]) = match tool {
        "send_request" | "send_response" | "send_interrupt" => {
            let mut target = text("The agent's name, or name@swarm for an agent of another swarm.");
            if !targets.is_empty() {
                target["enum"] = Value::from(targets.to_vec());
            }
            let fields = json!({ "target": target, "subject": text("The subject."), "body": text("The message text.") });
            (fields, &["target", "subject", "body"])
        }
        "send_broadcast" => {
            let list = json!({ "type": "array", "items": { "type": "string" }, "description": "Only these agents; all agents if left out." });
            let fields = json!({ "subject": text("The subject."), "body": text("The message text."), "targets": list });
            (fields, &["subject", "body"])
        }
        "task_complete" => (json!({ "finish_message": text("What the user gets.") }), &["finish_message"]),
        "acknowledge_broadcast" => (json!({ "note": text("A short note.") }), &[]),
        "ignore_broadcast" | "await_message" => (json!({ "reason": text("The reason.") }), &[]),
        _ => {
            let flag = |what: &str| json!({ "type": "boolean", "description": what });
            let fields = json!({
                "get_summary": flag("A summary of the protocol."),
                "get_identity": flag("Your identity."),
                "get_tool_help": { "type": "array", "items": { "type": "string" }, "description": "Help on these tools." },
                "get_full_protocol": flag("The full protocol."),
            });
            (fields, &[])
        }
    };
    json!({ "type": "object", "properties": properties, "required": required })
}
