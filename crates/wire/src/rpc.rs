//! JSON-RPC 2.0, independent of transport: parses frames of text and writes requests and responses.
//!
//! Params and results are kept as raw JSON text; this module neither parses nor reformats them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid for the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed internally.
pub const INTERNAL_ERROR: i64 = -32603;

/// White space as JSON defines it.
const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The id of a request, kept as its JSON text so that the response echoes it exactly.
///
/// Ids are compared as texts: `"a"` and `"\u0061"` are different.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// The id `null`, for responses to messages without a readable id.
    pub fn null() -> Self {
        RequestId("null".into())
    }

    /// The JSON text of the id.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Accepts a string, an integer of any size, or null.
    fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let integer = || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        (text == "null" || text.starts_with('"') || integer()).then(|| RequestId(text.into()))
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        RequestId(number.to_string().into())
    }
}

/// The error member of a response.
#[derive(Clone, Debug, Deserialize)]
pub struct ErrorObject {
    /// The error code.
    pub code: i64,
    /// A description for people.
    pub message: String,
    /// Optional details, in a form that depends on the error.
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        ErrorObject { code, message: message.into(), data: None }
    }
}

/// One message from a peer.
#[derive(Clone, Debug)]
pub enum Message {
    /// A call that expects a response.
    Request {
        /// The id to echo in the response.
        id: RequestId,
        /// The method name.
        method: String,
        /// An object or array, if given.
        params: Option<Box<RawValue>>,
    },
    /// A call without a response.
    Notification {
        /// The method name.
        method: String,
        /// An object or array, if given.
        params: Option<Box<RawValue>>,
    },
    /// A response to a request of ours.
    Response {
        /// The id of our request; null if the peer could not read it.
        id: RequestId,
        /// The result or error.
        outcome: Result<Box<RawValue>, ErrorObject>,
    },
    /// An invalid message; the response is the error.
    Invalid {
        /// The id for the response; null if none could be read.
        id: RequestId,
        /// The error.
        error: ErrorObject,
    },
}

/// One JSON value of a frame; the response has the same form.
#[derive(Clone, Debug)]
pub enum Item {
    /// A single message.
    Single(Message),
    /// A non-empty array of messages; their responses form one array.
    Batch(Vec<Message>),
}

/// Parses a frame: one message or batch, or several separated by line breaks.
///
/// A frame may contain at most `limit` messages in total; parsing stops after that. Each malformed part yields one
/// invalid message, and parsing continues with the next line that starts like a message.
pub fn parse(text: &str, limit: usize) -> Vec<Item> {
    // Fast path: nearly every frame is one object, which can be parsed without finding its end first.
    if limit > 0
        && let Some(parts) = whole_object(text)
    {
        return vec![Item::Single(read_message(&parts))];
    }
    let mut items = Vec::new();
    let mut remaining = limit;
    let mut rest = text.trim_start_matches(WHITE_SPACE);
    loop {
        let (value, after) = match read_value(rest) {
            Ok(read) => read,
            Err(why) => {
                items.push(Item::Single(invalid(PARSE_ERROR, why)));
                match (remaining.checked_sub(1), next_message(rest)) {
                    (Some(left), Some(next)) => (remaining, rest) = (left, next),
                    _ => return items,
                }
                continue;
            }
        };
        rest = after;
        let Some(item) = parse_item(value, &mut remaining) else {
            items.push(Item::Single(invalid(INVALID_REQUEST, format!("more than {limit} messages at once"))));
            return items;
        };
        items.push(item);
        if rest.is_empty() {
            return items;
        }
    }
}

/// Parses the JSON value at the start of a text; returns it and the text from the next non-empty line on.
fn read_value(text: &str) -> Result<(&RawValue, &str), &'static str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let Some(Ok(value)) = values.next() else { return Err("not JSON") };
    let after = &text[values.byte_offset()..];
    let rest = after.trim_start_matches(WHITE_SPACE);
    let gap = &after[..after.len() - rest.len()];
    if !rest.is_empty() && !gap.contains('\n') {
        return Err("more text follows the JSON value");
    }
    Ok((value, rest))
}

/// The text from the next line that starts like a message. `None` if a `[` comes before it: the line may be inside a
/// batch, and parts of a malformed batch must not be executed.
fn next_message(malformed: &str) -> Option<&str> {
    let mut rest = malformed;
    loop {
        let (line, next_lines) = rest.split_once('\n')?;
        if line.contains('[') {
            return None;
        }
        rest = next_lines.trim_start_matches(WHITE_SPACE);
        if rest.starts_with(['{', '[']) {
            return Some(rest);
        }
    }
}

/// Writes a successful response.
pub fn write_result(id: &RequestId, result: &RawValue) -> String {
    write_result_text(id, result.get())
}

/// Like [`write_result`], for a result given as text that must be valid JSON.
pub fn write_result_text(id: &RequestId, result: &str) -> String {
    let result = one_line(result);
    let mut out = String::with_capacity(result.len() + id.0.len() + 40);
    for part in [r#"{"jsonrpc":"2.0","id":"#, &id.0, r#","result":"#, &result, "}"] {
        out.push_str(part);
    }
    out
}

/// Writes an error response.
pub fn write_error(id: &RequestId, error: &ErrorObject) -> String {
    let mut out = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":"#, id.0, error.code);
    push_string(&mut out, &error.message);
    push_member(&mut out, "data", error.data.as_deref());
    out.push_str("}}");
    out
}

/// Writes a request; `params` must be an object or array.
pub fn write_request(id: &RequestId, method: &str, params: Option<&RawValue>) -> String {
    write_call(format!(r#"{{"jsonrpc":"2.0","id":{},"method":"#, id.0), method, params)
}

/// Writes a notification; `params` must be an object or array.
pub fn write_notification(method: &str, params: Option<&RawValue>) -> String {
    write_call(r#"{"jsonrpc":"2.0","method":"#.to_owned(), method, params)
}

/// A notification with typed params, to be serialised in one pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notification<'a, P> {
    /// Always `2.0`.
    #[serde(borrow)]
    pub jsonrpc: Cow<'a, str>,
    /// The method name.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// The params.
    pub params: P,
}

impl<'a, P> Notification<'a, P> {
    /// A notification of a method.
    pub fn new(method: &'a str, params: P) -> Self {
        Notification { jsonrpc: "2.0".into(), method: method.into(), params }
    }
}

/// Writes the responses to a batch as one array; `None` if there are no responses.
pub fn write_batch<T: AsRef<str>>(responses: &[T]) -> Option<String> {
    let (first, others) = responses.split_first()?;
    let mut out = String::with_capacity(
        responses.iter().map(|response| response.as_ref().len() + 1).sum::<usize>() + 1,
    );
    out.push('[');
    out.push_str(first.as_ref());
    for response in others {
        out.push(',');
        out.push_str(response.as_ref());
    }
    out.push(']');
    Some(out)
}

fn write_call(mut out: String, method: &str, params: Option<&RawValue>) -> String {
    push_string(&mut out, method);
    push_member(&mut out, "params", params);
    out.push('}');
    out
}

fn push_string(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

fn push_member(out: &mut String, name: &str, value: Option<&RawValue>) {
    if let Some(value) = value {
        out.extend([",\"", name, "\":"]);
        out.push_str(&one_line(value.get()));
    }
}

/// Replaces line breaks by spaces, because some transports frame messages by lines. Strings cannot contain raw line
/// breaks in JSON, so the value does not change.
fn one_line(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    if bytes.contains(&b'\n') || bytes.contains(&b'\r') {
        json.replace(['\n', '\r'], " ").into()
    } else {
        json.into()
    }
}

fn invalid(code: i64, message: impl Into<String>) -> Message {
    Message::Invalid { id: RequestId::null(), error: ErrorObject::new(code, message) }
}

/// Parses one value of the frame and subtracts its messages from `remaining`; `None` if there are more than that.
fn parse_item(value: &RawValue, remaining: &mut usize) -> Option<Item> {
    if !value.get().starts_with('[') {
        *remaining = remaining.checked_sub(1)?;
        return Some(Item::Single(parse_message(value)));
    }
    // The text is valid JSON and an array, so only the limit of `Bounded` can fail here.
    let mut array = serde_json::Deserializer::from_str(value.get());
    let values = array.deserialize_seq(Bounded(*remaining)).ok()?;
    if values.is_empty() {
        *remaining = remaining.checked_sub(1)?;
        return Some(Item::Single(invalid(INVALID_REQUEST, "the batch is empty")));
    }
    *remaining -= values.len();
    Some(Item::Batch(values.into_iter().map(parse_message).collect()))
}

/// Collects the values of an array; fails if there are more than the given number.
struct Bounded(usize);

impl<'de> Visitor<'de> for Bounded {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} messages", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            if values.len() == self.0 {
                return Err(serde::de::Error::invalid_length(self.0 + 1, &self));
            }
            values.push(value);
        }
        Ok(values)
    }
}

/// The members of a message. Unknown members are ignored; duplicates of these are refused.
#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Deserializes a null member as `Some`, to distinguish it from a missing one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The members of a frame that is exactly one object. Errors are left to the general path of [`parse`].
fn whole_object(text: &str) -> Option<Parts<'_>> {
    text.trim_start_matches(WHITE_SPACE).starts_with('{').then(|| serde_json::from_str(text).ok())?
}

fn parse_message(value: &RawValue) -> Message {
    match object::<Parts<'_>>(value) {
        Some(parts) => read_message(&parts),
        None => invalid(INVALID_REQUEST, "not an object, or a member occurs twice"),
    }
}

fn read_message(parts: &Parts<'_>) -> Message {
    let id = match parts.id.map(RequestId::from_raw) {
        Some(None) => return invalid(INVALID_REQUEST, "the id is not a string, an integer or null"),
        Some(id) => id,
        None => None,
    };
    classify(parts, id.clone()).unwrap_or_else(|message| Message::Invalid {
        id: id.unwrap_or_else(RequestId::null),
        error: ErrorObject::new(INVALID_REQUEST, message),
    })
}

fn classify(parts: &Parts<'_>, id: Option<RequestId>) -> Result<Message, &'static str> {
    if parts.jsonrpc.and_then(string).as_deref() != Some("2.0") {
        return Err("jsonrpc is not \"2.0\"");
    }
    match (parts.method, parts.result, parts.error) {
        (Some(method), None, None) => {
            let method = string(method).ok_or("the method is not a string")?;
            if parts.params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
                return Err("the params are not an object or array");
            }
            let params = parts.params.map(ToOwned::to_owned);
            Ok(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            })
        }
        (None, Some(result), None) => {
            let id = id.ok_or("the response has no id")?;
            Ok(Message::Response { id, outcome: Ok(result.to_owned()) })
        }
        (None, None, Some(error)) => {
            let id = id.ok_or("the response has no id")?;
            let error = object(error).ok_or("the error is not an error object")?;
            Ok(Message::Response { id, outcome: Err(error) })
        }
        _ => Err("a message has one of method, result and error"),
    }
}

/// Deserializes an object only; serde would also accept an array of the members in order.
fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok())?
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}
