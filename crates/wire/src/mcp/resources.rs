//! Resources: how they are listed and read.

use serde::{Deserialize, Serialize};

/// Params of `resources/read`, `resources/subscribe` and `resources/unsubscribe`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ResourceParams {
    /// The resource's address.
    pub uri: String,
}

/// Result of `resources/list`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ListResourcesResult {
    /// The resources with one address.
    pub resources: Vec<Resource>,
}

/// A resource as it is listed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its short name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type.
    pub mime_type: String,
}

/// Result of `resources/templates/list`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTemplatesResult {
    /// The resources with a part of the address to fill in.
    pub resource_templates: Vec<ResourceTemplate>,
}

/// A resource template as it is listed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// Its address with names in braces.
    pub uri_template: String,
    /// Its short name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type.
    pub mime_type: String,
}

/// Result of `resources/read`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReadResult {
    /// One element.
    pub contents: Vec<Contents>,
}

/// What is at an address.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// The address.
    pub uri: String,
    /// The media type.
    pub mime_type: String,
    /// Text or bytes.
    #[serde(flatten)]
    pub data: ContentsData,
}

/// Text, or bytes in base64.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ContentsData {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}
