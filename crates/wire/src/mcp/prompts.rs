//! Prompts: how they are listed and filled in.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Params of `prompts/get`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PromptParams {
    /// The prompt's name.
    pub name: String,
    /// What to fill in.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
}

/// Result of `prompts/list`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ListPromptsResult {
    /// The prompts.
    pub prompts: Vec<Prompt>,
}

/// A prompt as it is listed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What can be filled in.
    pub arguments: Vec<PromptArgument>,
}

/// Something to fill in.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
}

/// Result of `prompts/get`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PromptResult {
    /// What the prompt is for.
    pub description: String,
    /// One message.
    pub messages: Vec<PromptMessage>,
}

/// A message for the model.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PromptMessage {
    /// In whose name it is said.
    pub role: Role,
    /// What it says.
    pub content: PromptText,
}

/// In whose name a message is said.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
}

/// The text of a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename = "text")]
pub struct PromptText {
    /// The text.
    pub text: String,
}
