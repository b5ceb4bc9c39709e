//! HTTP headers of the protocol, and how those that repeat a part of the request carry it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::methods;

/// Names a session.
pub const SESSION: &str = "mcp-session-id";
/// Names the revision.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Repeats the method, from 2026-07-28 on.
pub const METHOD: &str = "mcp-method";
/// Repeats what the request is about, from 2026-07-28 on.
pub const NAME: &str = "mcp-name";
/// The event after which a stream goes on.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// How a value begins and ends that is carried in base64.
const BASE64: (&str, &str) = ("=?base64?", "?=");

/// The members of params that a request can be about.
#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    name: Option<serde_json::Value>,
    #[serde(default)]
    uri: Option<serde_json::Value>,
    #[serde(default, rename = "taskId")]
    task_id: Option<serde_json::Value>,
}

/// What [`NAME`] repeats of a request: the name of a tool or prompt, or the address of a resource.
#[must_use]
pub fn subject(method: &str, params: Option<&RawValue>) -> Option<String> {
    let subject: Subject = serde_json::from_str(params?.get()).ok()?;
    let value = match method {
        methods::TOOLS_CALL | methods::PROMPTS_GET => subject.name,
        methods::RESOURCES_READ | methods::SUBSCRIBE | methods::UNSUBSCRIBE => subject.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => subject.task_id,
        _ => None,
    };
    value.and_then(|value| value.as_str().map(str::to_owned))
}

/// A value as a header can carry it.
#[must_use]
pub fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    match is_plain && !value.starts_with(BASE64.0) {
        true => value.to_owned(),
        false => format!("{}{}{}", BASE64.0, STANDARD.encode(value), BASE64.1),
    }
}

/// The value that a header carries; `None` if it says that it is base64 and is not.
#[must_use]
pub fn decode(header: &str) -> Option<String> {
    match header.strip_prefix(BASE64.0).and_then(|rest| rest.strip_suffix(BASE64.1)) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(header.to_owned()),
    }
}
