//! Files of messages: as they are sent, listed with a message, and fetched.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// A file to send with a message. Members that are unknown or of another type count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileData {
    /// A plain file name.
    pub name: String,
    /// The bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Its media type; guessed from the name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

impl FileData {
    /// Reads the members of a JSON object.
    #[must_use]
    pub fn from_members(mut given: Map<String, Value>) -> Self {
        let mut text = |member: &str| match given.get_mut(member).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let name = text("name").unwrap_or_default();
        Self { name, data: text("data"), media_type: text("media_type") }
    }
}

impl<'de> Deserialize<'de> for FileData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from_members)
    }
}

/// A file that a message carries, and where it is downloaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLink {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its media type.
    pub media_type: String,
    /// SHA-256 of its bytes, in lower-case hex.
    pub sha256: String,
    /// Its path below the address of the server, or below `/r/REALM` of a realm that is not the default one.
    pub url: String,
}

/// A file in the metadata of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredFile {
    /// Always `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// SHA-256 of its bytes, in lower-case hex.
    pub sha256: String,
    /// Its media type.
    pub media_type: String,
    /// The path by which the sender named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Fetches a file of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachmentParams {
    /// The agent whose mail the message is in; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The id of the message.
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub message: Uuid,
    /// SHA-256 of the file's bytes, in hex.
    pub sha256: String,
}

/// A file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentResult {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// SHA-256 of its bytes, in lower-case hex.
    pub sha256: String,
    /// Its media type.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// The query of a download.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DownloadQuery {
    /// The agent whose mail the message is in; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}
