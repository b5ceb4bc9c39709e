//! A JSON schema of all methods, generated from the table and the wire types.

use posthaste_wire::control as wire;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use super::table::METHODS;

/// A path that answers GET requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpPath {
    pub(super) path: &'static str,
    /// What it answers, in a sentence.
    pub(super) about: &'static str,
    /// The type of the body, or of each line of it; `None` for other bytes than JSON.
    pub(super) body: Option<fn(&mut SchemaGenerator) -> Schema>,
}

/// The paths beside the methods.
pub(super) const PATHS: &[HttpPath] = &[
    HttpPath {
        path: wire::STATUS_PATH,
        about: "The server's figures, limits and rules. It needs a token with the role `user` or `admin`.",
        body: Some(|generator| generator.subschema_for::<wire::Status>()),
    },
    HttpPath {
        path: wire::EXPORT_PATH,
        about: "A realm as lines of JSON. For administrators.",
        body: Some(|generator| generator.subschema_for::<wire::ExportLine>()),
    },
    HttpPath {
        path: wire::BACKUP_PATH,
        about: "A backup as a tar file. For administrators; `?all=true`, every realm, for the operator.",
        body: None,
    },
    HttpPath {
        path: "/x-posthaste/attachments/{message}/{sha256}",
        about: "The bytes of a file of a message. `?agent=NAME` says in whose mail the message is.",
        body: None,
    },
];

/// The document: an object with one member per method, which has the members `params` and `result`.
#[derive(Serialize)]
struct Document {
    #[serde(rename = "$schema")]
    dialect: &'static str,
    title: &'static str,
    description: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Map<String, Value>,
    #[serde(rename = "$defs")]
    definitions: Map<String, Value>,
}

#[derive(Serialize)]
struct MethodSchema {
    description: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    properties: CallSchema,
}

#[derive(Serialize)]
struct CallSchema {
    params: Schema,
    result: Schema,
}

/// The JSON schema of all methods.
#[must_use]
pub fn schema() -> Value {
    let mut params = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut results = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let methods = METHODS.iter().map(|method| {
        let schema = MethodSchema {
            description: method.about,
            kind: "object",
            properties: CallSchema {
                params: (method.params)(&mut params),
                result: (method.result)(&mut results),
            },
        };
        (format!("{}{}", wire::PREFIX, method.name), to_value(&schema))
    });
    let properties = methods.collect();
    for body in PATHS.iter().filter_map(|path| path.body) {
        body(&mut results);
    }
    results.subschema_for::<wire::RefusalData>();
    results.subschema_for::<wire::HttpError>();
    let mut definitions = params.take_definitions(true);
    definitions.extend(results.take_definitions(true));
    definitions.sort_keys();
    to_value(&Document {
        dialect: "https://json-schema.org/draft/2020-12/schema",
        title: "posthaste's own methods",
        description: "Each member is a method of POST /x-posthaste/rpc (JSON-RPC 2.0), with its params and its \
                      result. The data of errors are a RefusalData.",
        kind: "object",
        properties,
        definitions,
    })
}

/// Plain data with text keys: writing it as JSON cannot fail.
fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_params_and_results_with_one_name_are_the_same() {
        let mut params = SchemaSettings::draft2020_12().for_deserialize().into_generator();
        let mut results = SchemaSettings::draft2020_12().for_serialize().into_generator();
        for method in METHODS {
            (method.params)(&mut params);
            (method.result)(&mut results);
        }
        for (name, schema) in params.definitions() {
            assert!(results.definitions().get(name).is_none_or(|other| other == schema), "{name}");
        }
    }

    #[test]
    fn every_reference_leads_to_a_definition() {
        let schema = schema();
        let text = schema.to_string();
        for part in text.split("\"#/$defs/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{name}");
        }
        assert_eq!(
            schema["properties"].as_object().unwrap().len(),
            METHODS.len(),
            "two methods have one name"
        );
    }
}
