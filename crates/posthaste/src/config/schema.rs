//! `posthaste config --schema`: a JSON schema of posthaste.toml.

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::table::{Definition, definitions};
use super::value::Accepts;

/// The schema of the file: an object with a property for each setting, and no others.
#[derive(Debug, Serialize)]
pub struct Schema {
    #[serde(rename = "$schema")]
    dialect: &'static str,
    title: &'static str,
    description: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "additionalProperties")]
    other_properties: bool,
    #[serde(serialize_with = "by_name")]
    properties: &'static [Definition],
}

#[derive(Serialize)]
struct Property<'a> {
    description: &'a str,
    #[serde(flatten)]
    accepts: &'a Accepts,
    #[serde(skip_serializing_if = "Json::is_null")]
    default: &'a Json,
}

/// The schema of posthaste.toml.
pub fn schema() -> Schema {
    Schema {
        dialect: "https://json-schema.org/draft/2020-12/schema",
        title: "posthaste.toml",
        description: "Settings of a posthaste server. Flags and environment variables win over the file.",
        kind: "object",
        other_properties: false,
        properties: definitions(),
    }
}

fn by_name<S: Serializer>(all: &&'static [Definition], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|setting| {
        let Definition { name, about, accepts, default, .. } = setting;
        (name, Property { description: about, accepts, default })
    }))
}
