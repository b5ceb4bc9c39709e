//! The tools of MAIL as agents are offered them, and what they are called with.

use serde_json::{Map, Value, json};

use super::fields::{FieldError, Fields, texts};

/// A call of one of the protocol's own tools.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Asks, answers or interrupts one agent.
    Send {
        /// Which of the three.
        kind: super::MsgType,
        /// Whom.
        target: String,
        /// The heading.
        subject: String,
        /// What is said.
        body: String,
    },
    /// Tells many.
    Broadcast {
        /// The heading.
        subject: String,
        /// What is said.
        body: String,
        /// Whom; everybody if not said.
        targets: Vec<String>,
    },
    /// Ends the task.
    Complete {
        /// What the user is told.
        finish_message: String,
    },
    /// Keeps a broadcast in mind.
    Acknowledge {
        /// A word about it.
        note: Option<String>,
    },
    /// Does not keep a broadcast in mind.
    Ignore {
        /// Why.
        reason: Option<String>,
    },
    /// Ends the turn until a message comes.
    Await {
        /// For what.
        reason: Option<String>,
    },
    /// Asks what there is.
    Help {
        /// A few lines on the protocol.
        summary: bool,
        /// Who the caller is.
        identity: bool,
        /// About these tools.
        tools: Vec<String>,
        /// Everything.
        full: bool,
    },
}

/// The names of the protocol's own tools.
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
    /// Reads a call; nothing if the tool is not one of the protocol's own.
    ///
    /// # Errors
    /// Names the argument that cannot be used.
    pub fn read(tool: &str, args: &Value) -> Result<Option<Self>, FieldError> {
        if !NAMES.contains(&tool) {
            return Ok(None);
        }
        let none = Value::Object(Map::new());
        let fields = Fields::of(if args.is_null() { &none } else { args })
            .map_err(|_| FieldError::new("args", "must be an object"))?;
        let owned = |name: &str| fields.text(name).map(str::to_owned);
        let maybe = |name: &str| Ok::<_, FieldError>(fields.optional_text(name)?.map(str::to_owned));
        let flag =
            |name: &str, usual: bool| Ok::<_, FieldError>(fields.optional_bool(name)?.unwrap_or(usual));
        let list = |name: &str| match fields.get(name) {
            None => Ok(Vec::new()),
            Some(_) => texts(name, fields.list(name)?),
        };
        let send = |kind| {
            Ok::<_, FieldError>(Self::Send {
                kind,
                target: fields.full_text("target")?.to_owned(),
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
            "acknowledge_broadcast" => Self::Acknowledge { note: maybe("note")? },
            "ignore_broadcast" => Self::Ignore { reason: maybe("reason")? },
            "await_message" => Self::Await { reason: maybe("reason")? },
            _ => Self::Help {
                summary: flag("get_summary", true)?,
                identity: flag("get_identity", false)?,
                tools: list("get_tool_help")?,
                full: flag("get_full_protocol", false)?,
            },
        }))
    }
}

/// What one tool does, in a sentence.
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

/// A tool's parameters as a JSON schema.
#[must_use]
pub fn parameters(tool: &str, targets: &[String]) -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let (properties, required): (Value, &[&str]) = match tool {
        "send_request" | "send_response" | "send_interrupt" => {
            let mut target = text("The agent's name, or name@swarm for one elsewhere.");
            if !targets.is_empty() {
                target["enum"] = Value::from(targets.to_vec());
            }
            let fields =
                json!({ "target": target, "subject": text("The heading."), "body": text("What you say.") });
            (fields, &["target", "subject", "body"])
        }
        "send_broadcast" => {
            let list = json!({ "type": "array", "items": { "type": "string" }, "description": "Only these agents; everybody if left out." });
            let fields =
                json!({ "subject": text("The heading."), "body": text("What you say."), "targets": list });
            (fields, &["subject", "body"])
        }
        "task_complete" => (json!({ "finish_message": text("What the user gets.") }), &["finish_message"]),
        "acknowledge_broadcast" => (json!({ "note": text("A word about it.") }), &[]),
        "ignore_broadcast" | "await_message" => (json!({ "reason": text("Why.") }), &[]),
        _ => {
            let flag = |what: &str| json!({ "type": "boolean", "description": what });
            let fields = json!({
                "get_summary": flag("A few lines on the protocol."),
                "get_identity": flag("Who you are."),
                "get_tool_help": { "type": "array", "items": { "type": "string" }, "description": "About these tools." },
                "get_full_protocol": flag("Everything."),
            });
            (fields, &[])
        }
    };
    json!({ "type": "object", "properties": properties, "required": required })
}
