//! What a tool answers, in the two forms that clients read: a text block and structured content.

use std::borrow::Cow;

use posthaste_wire::mcp::tools::{CallResult, Content, EmbeddedText, Listed};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::errors::DoorError;

/// The answer of a tool, as JSON.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    text: Cow<'static, str>,
    structured: Box<RawValue>,
    /// What is said in words beside the text.
    words: Option<&'static str>,
}

/// The address of the block that says in words that a list is empty. Programs parse the text block as JSON, so the words
/// cannot be there; models read all blocks.
const EMPTY: &str = "posthaste://empty";

impl From<serde_json::Value> for Answer {
    fn from(value: serde_json::Value) -> Self {
        Self::one(&value)
    }
}

impl Answer {
    /// One object.
    pub(super) fn one<T: Serialize>(value: &T) -> Self {
        let structured = raw(value);
        Self { text: structured.get().to_owned().into(), structured, words: None }
    }

    /// A list; the text block is the bare list. An empty list is also said in the sentence `none`.
    pub(super) fn list<T: Serialize>(rows: &[T], none: &'static str) -> Self {
        let result = raw(rows);
        let text = result.get().to_owned().into();
        Self { text, structured: raw(&Listed { result }), words: rows.is_empty().then_some(none) }
    }

    /// A list whose text block has the same form as the structured content.
    pub(super) fn wrapped<T: Serialize>(rows: Vec<T>) -> Self {
        Self::one(&Listed { result: rows })
    }
}

/// The result of a call: the answer, or what went wrong.
pub(super) fn result(tool: &str, ran: Result<Answer, DoorError>) -> CallResult<'static> {
    match ran {
        Ok(Answer { text, structured, words }) => {
            let resource = words.map(|words| Content::Resource {
                resource: EmbeddedText {
                    uri: EMPTY.into(),
                    mime_type: "text/plain".into(),
                    text: words.into(),
                },
            });
            let content = [Content::Text { text }].into_iter().chain(resource).collect();
            CallResult { content, structured_content: structured, is_error: false }
        }
        Err(error) => {
            let text = format!("Error calling tool '{tool}': {}", error.message);
            let structured_content = raw(&error.to_wire());
            CallResult {
                content: vec![Content::Text { text: text.into() }],
                structured_content,
                is_error: true,
            }
        }
    }
}

/// Wire types are always writable as JSON.
fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::dispatch;
    use super::*;

    #[test]
    fn answers_have_a_text_and_a_structured_form() {
        let row = json!({ "b": "a \"quoted\" word\n", "a": [1, null, "ü"] });
        let rows = vec![row.clone(), json!({})];
        let none: [Value; 0] = [];
        for (answer, text, structured, words) in [
            (Answer::one(&row), row.clone(), row.clone(), None),
            (
                Answer::list(&none, "nothing \"here\""),
                json!([]),
                json!({ "result": [] }),
                Some("nothing \"here\""),
            ),
            (Answer::list(&rows, "nothing here"), json!(rows), json!({ "result": rows }), None),
            (Answer::wrapped(rows.clone()), json!({ "result": rows }), json!({ "result": rows }), None),
        ] {
            let written: Value = serde_json::from_str(&dispatch::text(&result("tool", Ok(answer)))).unwrap();
            assert_eq!(written["structuredContent"], structured);
            assert_eq!(written["content"][0], json!({ "type": "text", "text": text.to_string() }));
            assert_eq!(written["content"][1]["resource"]["text"].as_str(), words);
            assert_eq!(written["isError"], false);
        }
    }
}
