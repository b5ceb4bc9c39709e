//! Tools: how they are listed, called, and how they answer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Params of `tools/call`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CallParams {
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
}

/// Result of `tools/list`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ListToolsResult<T = Tool> {
    /// The tools.
    pub tools: Vec<T>,
}

/// A tool as it is listed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its arguments as a JSON schema.
    pub input_schema: Map<String, Value>,
    /// What it does to the world.
    pub annotations: ToolAnnotations,
}

/// What a tool does to the world. Clients decide by it whether to ask their user first.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only_hint: bool,
    /// It may take away something that was there. Absent for tools that only read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// The same call again changes nothing more. Absent for tools that only read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches agents on other machines.
    pub open_world_hint: bool,
}

/// Result of `tools/call`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult<'a> {
    /// What models read.
    #[serde(borrow)]
    pub content: Vec<Content<'a>>,
    /// What programs read.
    pub structured_content: Box<RawValue>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A block of content.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content<'a> {
    /// Text.
    Text {
        /// The text.
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// A resource with its content.
    Resource {
        /// The resource.
        #[serde(borrow)]
        resource: EmbeddedText<'a>,
    },
}

/// A resource whose text is part of a result.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedText<'a> {
    /// Its address.
    #[serde(borrow)]
    pub uri: Cow<'a, str>,
    /// Its media type.
    #[serde(borrow)]
    pub mime_type: Cow<'a, str>,
    /// Its text.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// A file with its bytes, in the `attachments` of a call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SentFile {
    /// Its name.
    pub name: String,
    /// Its media type; the server goes by the name without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its bytes in base64.
    pub data: String,
}

/// The structured content of a tool that answers with a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Listed<R> {
    /// The rows.
    pub result: R,
}
