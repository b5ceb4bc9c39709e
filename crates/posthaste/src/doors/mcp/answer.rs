//! What a tool answers, in the two forms that clients read: a text block and structured content.

use serde_json::{Value, json};

use super::errors::Problem;

/// The answer of a tool.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// One object.
    One(Value),
    /// A list; the text block is the bare list, and there is none for an empty one.
    List(Vec<Value>),
    /// A list whose text block has the same form as the structured content.
    Wrapped(Vec<Value>),
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self::One(value)
    }
}

/// The text blocks and the structured content.
pub(super) struct Forms {
    pub(super) text: Option<String>,
    pub(super) structured: Value,
    pub(super) is_error: bool,
}

impl Answer {
    pub(super) fn forms(self) -> Forms {
        match self {
            Self::One(value) => Forms { text: Some(value.to_string()), structured: value, is_error: false },
            Self::List(rows) if rows.is_empty() => {
                Forms { text: None, structured: json!({ "result": [] }), is_error: false }
            }
            Self::List(rows) => {
                let rows = Value::Array(rows);
                Forms { text: Some(rows.to_string()), structured: json!({ "result": rows }), is_error: false }
            }
            Self::Wrapped(rows) => Self::One(json!({ "result": rows })).forms(),
        }
    }
}

/// An answer that says what went wrong.
pub(super) fn failure(tool: &str, problem: &Problem) -> Forms {
    let text = format!("Error calling tool '{tool}': {}", problem.message);
    Forms { text: Some(text), structured: problem.value(), is_error: true }
}

impl Forms {
    /// The result of `tools/call` as text, written once.
    pub(super) fn write(&self) -> String {
        let mut out = String::from(r#"{"content":["#);
        if let Some(text) = &self.text {
            out.push_str(r#"{"type":"text","text":"#);
            // A string is always writable as JSON.
            out.push_str(&serde_json::to_string(text).unwrap_or_default());
            out.push('}');
        }
        out.push_str(r#"],"structuredContent":"#);
        out.push_str(&self.structured.to_string());
        out.push_str(if self.is_error { r#","isError":true}"# } else { r#","isError":false}"# });
        out
    }
}
