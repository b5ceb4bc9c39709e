//! What a tool answers, in the two forms that clients read: a text block and structured content.

use serde_json::{Value, json};

use super::errors::Problem;

/// The answer of a tool.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// One object.
    One(Value),
    /// A list; the text block is the bare list. An empty list is also said in this sentence.
    List(Vec<Value>, &'static str),
    /// A list whose text block has the same form as the structured content.
    Wrapped(Vec<Value>),
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self::One(value)
    }
}

/// The address of the block that says in words that a list is empty. Programs parse the text block as JSON, so the words
/// cannot be there; models read all blocks.
pub(super) const EMPTY: &str = "posthaste://empty";

/// The content blocks and the structured content.
pub(super) struct Forms {
    pub(super) text: String,
    /// What is said in words beside the text.
    pub(super) words: Option<&'static str>,
    pub(super) structured: Value,
    pub(super) is_error: bool,
}

impl Answer {
    pub(super) fn forms(self) -> Forms {
        match self {
            Self::One(value) => {
                Forms { text: value.to_string(), words: None, structured: value, is_error: false }
            }
            Self::List(rows, none) => {
                let words = rows.is_empty().then_some(none);
                let rows = Value::Array(rows);
                Forms {
                    text: rows.to_string(),
                    words,
                    structured: json!({ "result": rows }),
                    is_error: false,
                }
            }
            Self::Wrapped(rows) => Self::One(json!({ "result": rows })).forms(),
        }
    }

    /// The result of `tools/call` as text. What both forms have in common is spelled once.
    pub(super) fn write(&self) -> String {
        match self {
            Self::One(value) => {
                let text = value.to_string();
                write(&text, None, &text, false)
            }
            Self::List(rows, none) => {
                let (text, words) = (spelled(rows), rows.is_empty().then_some(*none));
                write(&text, words, &format!(r#"{{"result":{text}}}"#), false)
            }
            Self::Wrapped(rows) => {
                let text = format!(r#"{{"result":{}}}"#, spelled(rows));
                write(&text, None, &text, false)
            }
        }
    }
}

/// An answer that says what went wrong.
pub(super) fn failure(tool: &str, problem: &Problem) -> Forms {
    let text = format!("Error calling tool '{tool}': {}", problem.message);
    Forms { text, words: None, structured: problem.value(), is_error: true }
}

/// The same as text.
pub(super) fn write_failure(tool: &str, problem: &Problem) -> String {
    let Forms { text, words, structured, is_error } = failure(tool, problem);
    write(&text, words, &structured.to_string(), is_error)
}

fn write(text: &str, words: Option<&str>, structured: &str, is_error: bool) -> String {
    // Quotes are escaped in the text block.
    let room = structured.len() + text.len() + text.len() / 8 + 96;
    let mut out = String::with_capacity(room);
    out.push_str(r#"{"content":[{"type":"text","text":"#);
    out.push_str(&spelled(text));
    out.push('}');
    if let Some(words) = words {
        let block = json!({ "type": "resource", "resource": { "uri": EMPTY, "mimeType": "text/plain", "text": words } });
        out.push(',');
        out.push_str(&block.to_string());
    }
    out.push_str(r#"],"structuredContent":"#);
    out.push_str(structured);
    out.push_str(if is_error { r#","isError":true}"# } else { r#","isError":false}"# });
    out
}

/// Texts and values are always writable as JSON.
fn spelled<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written directly has the forms that rmcp is given.
    #[test]
    fn both_ways_give_the_same_forms() {
        let row = json!({ "b": "a \"quoted\" word\n", "a": [1, null, "ü"] });
        let rows = vec![row.clone(), json!({})];
        for answer in [
            Answer::One(row.clone()),
            Answer::List(Vec::new(), "nothing \"here\""),
            Answer::List(rows.clone(), "nothing here"),
            Answer::Wrapped(rows),
            Answer::Wrapped(Vec::new()),
        ] {
            let written: Value = serde_json::from_str(&answer.write()).unwrap();
            let forms = answer.forms();
            assert_eq!(written["structuredContent"], forms.structured);
            assert_eq!(written["content"][0], json!({ "type": "text", "text": forms.text }));
            assert_eq!(written["content"][1]["resource"]["text"].as_str(), forms.words);
            assert_eq!(written["isError"], forms.is_error);
        }
    }
}
