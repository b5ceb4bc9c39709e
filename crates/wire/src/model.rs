//! Chat completions, as OpenAI and many other servers of language models speak them: requests with tools, and answers
//! whole or in pieces.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The event that ends a stream.
pub const DONE: &str = "[DONE]";

/// `POST /chat/completions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// Whether it may choose among them.
    pub tool_choice: ToolChoice,
    /// Whether the answer is an event stream.
    pub stream: bool,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text; null beside tool calls.
    pub content: Option<String>,
    /// The calls that the model made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a `tool` message is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl ChatMessage {
    /// A message that is only text.
    #[must_use]
    pub fn text(role: &str, content: impl Into<String>) -> Self {
        let (role, content) = (role.to_owned(), Some(content.into()));
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None }
    }

    /// The calls of the model.
    #[must_use]
    pub fn calls(tool_calls: Vec<ToolCall>) -> Self {
        Self { role: "assistant".to_owned(), content: None, tool_calls, tool_call_id: None }
    }

    /// The result of a call.
    #[must_use]
    pub fn result(call_id: &str, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.to_owned()), ..Self::text("tool", content) }
    }
}

/// A call in the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is called.
    pub function: CalledFunction,
}

impl ToolCall {
    /// A call of a function; `arguments` is JSON as text.
    #[must_use]
    pub fn new(id: &str, name: &str, arguments: String) -> Self {
        let function = CalledFunction { name: name.to_owned(), arguments };
        Self { id: id.to_owned(), kind: "function".to_owned(), function }
    }
}

/// The function of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledFunction {
    /// Its name.
    pub name: String,
    /// Its arguments: JSON as text.
    pub arguments: String,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The function.
    pub function: Function,
}

impl Tool {
    /// A function with its description and the JSON schema of its parameters.
    #[must_use]
    pub fn function(name: &str, description: &str, parameters: Value) -> Self {
        let function = Function { name: name.to_owned(), description: description.to_owned(), parameters };
        Self { kind: "function".to_owned(), function }
    }
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON schema of its parameters.
    pub parameters: Value,
}

/// Which tool the model calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolChoice {
    /// `auto`: the model chooses.
    Mode(String),
    /// The model has to call this one.
    Tool {
        /// Always `function`.
        #[serde(rename = "type")]
        kind: String,
        /// The function.
        function: ChosenFunction,
    },
}

impl ToolChoice {
    /// The model chooses.
    #[must_use]
    pub fn auto() -> Self {
        Self::Mode("auto".to_owned())
    }

    /// The model has to call this function.
    #[must_use]
    pub fn function(name: &str) -> Self {
        Self::Tool { kind: "function".to_owned(), function: ChosenFunction { name: name.to_owned() } }
    }
}

/// The function that the model has to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenFunction {
    /// Its name.
    pub name: String,
}

/// An answer, or one event of a stream. Servers differ, so it is read leniently: members of another type count as absent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Completion {
    /// The first is used.
    #[serde(deserialize_with = "lenient")]
    pub choices: Vec<Choice>,
    /// Why there is no answer.
    pub error: Option<Value>,
}

impl Completion {
    /// Reads an answer or an event.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn read(json: &[u8]) -> serde_json::Result<Self> {
        let value: Value = serde_json::from_slice(json)?;
        Ok(if value.is_object() {
            serde_json::from_value(value).unwrap_or_default()
        } else {
            Self::default()
        })
    }

    /// The first choice.
    #[must_use]
    pub fn into_first(self) -> Choice {
        self.choices.into_iter().next().unwrap_or_default()
    }
}

/// One of several answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// A whole answer.
    #[serde(deserialize_with = "lenient")]
    pub message: Piece,
    /// A piece of a streamed answer.
    #[serde(deserialize_with = "lenient")]
    pub delta: Piece,
}

/// An answer or a piece of one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Piece {
    /// Text.
    #[serde(deserialize_with = "lenient")]
    pub content: String,
    /// Calls, or pieces of calls.
    #[serde(deserialize_with = "lenient")]
    pub tool_calls: Vec<CallPiece>,
}

/// A call, or a piece of one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CallPiece {
    /// The position of the call in the answer, which pieces of one call share.
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// The call's id.
    #[serde(deserialize_with = "lenient")]
    pub id: String,
    /// What is called.
    #[serde(deserialize_with = "lenient")]
    pub function: FunctionPiece,
}

/// The function of a call, or a piece of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FunctionPiece {
    /// Its name.
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    /// Its arguments: JSON as text.
    #[serde(deserialize_with = "lenient")]
    pub arguments: String,
}

/// A value of the right type, or the default.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
