//! JSON-RPC 2.0 without the carrier: what a frame of text holds, and how answers are spelled.
//!
//! Payloads stay the JSON text they are: neither side of this module parses or prints them again.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The fault is ours.
pub const INTERNAL_ERROR: i64 = -32603;

/// What JSON allows between values.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// The id of a request, kept as the JSON text it came in, to be echoed exactly.
///
/// Two ids are equal if their texts are: `"a"` and `"\u0061"` are not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// The id `null`, for answers to what has no id that can be read.
    pub fn null() -> Self {
        RequestId("null".into())
    }

    /// The JSON text of the id.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Takes a string, an integer of any size, or null.
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
    /// What kind of error, for programs.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// Whatever else helps.
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Makes an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        ErrorObject { code, message: message.into(), data: None }
    }
}

/// One message of a peer.
#[derive(Clone, Debug)]
pub enum Message {
    /// A call to be answered.
    Request {
        /// To be echoed in the answer.
        id: RequestId,
        /// The method called.
        method: String,
        /// An object or array, if given.
        params: Option<Box<RawValue>>,
    },
    /// A call not to be answered.
    Notification {
        /// The method called.
        method: String,
        /// An object or array, if given.
        params: Option<Box<RawValue>>,
    },
    /// An answer to a call of ours.
    Response {
        /// The id we gave the call; null if the peer could not read it.
        id: RequestId,
        /// What came of it.
        outcome: Result<Box<RawValue>, ErrorObject>,
    },
    /// None of these; to be answered with the error.
    Invalid {
        /// The id to answer with, null if none could be read.
        id: RequestId,
        /// What is wrong.
        error: ErrorObject,
    },
}

/// One value of a frame, and so the form its answer takes.
#[derive(Clone, Debug)]
pub enum Item {
    /// A message by itself.
    Single(Message),
    /// Messages in an array, at least one; their answers go into one array.
    Batch(Vec<Message>),
}

/// Reads a frame: one message or batch, or several with line breaks between them.
///
/// A frame may hold `limit` messages in all; what follows one too many is not read. What is malformed is answered for
/// once, and reading goes on with the next line that begins like a message.
pub fn parse(text: &str, limit: usize) -> Vec<Item> {
    // Nearly every frame is one object, which need not be walked over first to find its end.
    if limit > 0
        && let Some(parts) = whole_object(text)
    {
        return vec![Item::Single(read_message(&parts))];
    }
    let mut items = Vec::new();
    let mut room = limit;
    let mut rest = text.trim_start_matches(BLANK);
    loop {
        let (value, after) = match read_value(rest) {
            Ok(read) => read,
            Err(why) => {
                items.push(Item::Single(invalid(PARSE_ERROR, why)));
                match (room.checked_sub(1), next_message(rest)) {
                    (Some(left), Some(next)) => (room, rest) = (left, next),
                    _ => return items,
                }
                continue;
            }
        };
        rest = after;
        let Some(item) = parse_item(value, &mut room) else {
            items.push(Item::Single(invalid(INVALID_REQUEST, format!("more than {limit} messages at once"))));
            return items;
        };
        items.push(item);
        if rest.is_empty() {
            return items;
        }
    }
}

/// The value that a text begins with, and what follows it on the lines below.
fn read_value(text: &str) -> Result<(&RawValue, &str), &'static str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let Some(Ok(value)) = values.next() else { return Err("not JSON") };
    let after = &text[values.byte_offset()..];
    let rest = after.trim_start_matches(BLANK);
    let gap = &after[..after.len() - rest.len()];
    if !rest.is_empty() && !gap.contains('\n') {
        return Err("more text follows the JSON value");
    }
    Ok((value, rest))
}

/// Where to go on after a malformed text: at the next line that begins like a message. Not if there was a bracket on the
/// way: the line may be one of a batch, and a part of a batch is not carried out.
fn next_message(malformed: &str) -> Option<&str> {
    let mut rest = malformed;
    loop {
        let (line, below) = rest.split_once('\n')?;
        if line.contains('[') {
            return None;
        }
        rest = below.trim_start_matches(BLANK);
        if rest.starts_with(['{', '[']) {
            return Some(rest);
        }
    }
}

/// Spells the answer to a request that went well.
pub fn write_result(id: &RequestId, result: &RawValue) -> String {
    write_result_text(id, result.get())
}

/// The same where the result is text that is known to be JSON.
pub fn write_result_text(id: &RequestId, result: &str) -> String {
    let result = one_line(result);
    let mut out = String::with_capacity(result.len() + id.0.len() + 40);
    for part in [r#"{"jsonrpc":"2.0","id":"#, &id.0, r#","result":"#, &result, "}"] {
        out.push_str(part);
    }
    out
}

/// Spells the answer to a request that did not.
pub fn write_error(id: &RequestId, error: &ErrorObject) -> String {
    let mut out = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":"#, id.0, error.code);
    push_string(&mut out, &error.message);
    push_member(&mut out, "data", error.data.as_deref());
    out.push_str("}}");
    out
}

/// Spells a request of ours; `params` must be an object or array.
pub fn write_request(id: &RequestId, method: &str, params: Option<&RawValue>) -> String {
    write_call(format!(r#"{{"jsonrpc":"2.0","id":{},"method":"#, id.0), method, params)
}

/// Spells a notification; `params` must be an object or array.
pub fn write_notification(method: &str, params: Option<&RawValue>) -> String {
    write_call(r#"{"jsonrpc":"2.0","method":"#.to_owned(), method, params)
}

/// Puts the answers to a batch into one array; there is nothing to send if there are none.
pub fn write_batch<T: AsRef<str>>(answers: &[T]) -> Option<String> {
    let (first, others) = answers.split_first()?;
    let mut out = String::with_capacity(answers.iter().map(|it| it.as_ref().len() + 1).sum::<usize>() + 1);
    out.push('[');
    out.push_str(first.as_ref());
    for answer in others {
        out.push(',');
        out.push_str(answer.as_ref());
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

/// Payloads may come with line breaks, which would end a message where lines are the frames.
/// Inside a string JSON has no raw ones, so each is mere space.
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

/// Reads one value of the frame and takes its messages off `room`, or gives up when that is too small.
fn parse_item(value: &RawValue, room: &mut usize) -> Option<Item> {
    if !value.get().starts_with('[') {
        *room = room.checked_sub(1)?;
        return Some(Item::Single(parse_message(value)));
    }
    // The text is known to be an array, so only `Bounded` itself can fail here.
    let mut array = serde_json::Deserializer::from_str(value.get());
    let values = array.deserialize_seq(Bounded(*room)).ok()?;
    if values.is_empty() {
        *room = room.checked_sub(1)?;
        return Some(Item::Single(invalid(INVALID_REQUEST, "the batch is empty")));
    }
    *room -= values.len();
    Some(Item::Batch(values.into_iter().map(parse_message).collect()))
}

/// Collects the values of an array, but no more than this many.
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

/// The members of any message. Those of other names are ignored; of these none may come twice.
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

/// Keeps a member that is null apart from one that is missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The members of a frame that is one object and nothing else. Whatever is wrong with a frame is found the long way.
fn whole_object(text: &str) -> Option<Parts<'_>> {
    text.trim_start_matches(BLANK).starts_with('{').then(|| serde_json::from_str(text).ok())?
}

fn parse_message(value: &RawValue) -> Message {
    match object::<Parts<'_>>(value) {
        Some(parts) => read_message(&parts),
        None => invalid(INVALID_REQUEST, "not an object that names each member once"),
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

/// Reads an object, and only that: serde would also take an array for the members in order.
fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok())?
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}
