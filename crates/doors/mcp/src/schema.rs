//! A tool's arguments as a JSON schema: generated from the struct, and reduced to what all vendors take.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// A struct of arguments as `tools/list` shows it.
pub(super) struct Published {
    /// What the tool is for: the struct's doc comment.
    pub(super) description: String,
    pub(super) schema: Map<String, Value>,
}

/// Generates the schema of a struct of arguments.
pub(super) fn of<A: JsonSchema>() -> Published {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generated = settings.into_generator().into_root_schema_for::<A>().to_value();
    let description = generated["description"].as_str().unwrap_or_default().replace('\n', " ");
    let mut schema = object(&generated);
    schema.remove("description");
    Published { description, schema }
}

/// The members of a schema that are published, in the order in which they are: no title, no format, no references, and no
/// null, which counts as left out.
fn reduce(generated: &Value) -> Value {
    let mut shape = object(generated);
    for name in ["enum", "items", "default", "description"] {
        let value = match (name, &generated[name]) {
            (_, Value::Null) => continue,
            // What an element is for is said of the list.
            ("items", items) => Value::Object(object(items)),
            ("default", Value::Array(items)) if items.is_empty() => continue,
            ("enum", Value::Array(words)) => words.iter().filter(|word| !word.is_null()).cloned().collect(),
            ("description", Value::String(text)) => Value::from(text.replace('\n', " ")),
            (_, value) => value.clone(),
        };
        shape.insert(name.to_owned(), value);
    }
    Value::Object(shape)
}

/// The type of a schema, with its properties if it is an object of known members.
fn object(generated: &Value) -> Map<String, Value> {
    let mut shape = Map::new();
    let kind = match &generated["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    let is_object = kind == "object";
    shape.insert("type".to_owned(), kind);
    match &generated["properties"] {
        Value::Object(properties) => {
            let properties = properties.iter().map(|(name, shape)| (name.clone(), reduce(shape)));
            shape.insert("properties".to_owned(), properties.collect());
        }
        _ if is_object && generated.get("additionalProperties").is_none() => {
            shape.insert("properties".to_owned(), Value::Object(Map::new()));
        }
        _ => {}
    }
    if let Some(required) = generated["required"].as_array().filter(|names| !names.is_empty()) {
        shape.insert("required".to_owned(), required.clone().into());
    }
    shape
}
