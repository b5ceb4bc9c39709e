//! A validator for the part of JSON Schema that MAIL's documents use. An unknown keyword is an error.

use serde_json::Value;

/// A document whose references begin with `#/`.
pub(crate) struct Document(pub(crate) Value);

impl Document {
    /// The schema of an answer, or null if the document does not name it.
    pub(crate) fn answer(&self, method: &str, path: &str, status: u16) -> &Value {
        let answer = &self.0["paths"][path][method]["responses"][status.to_string()];
        &answer["content"]["application/json"]["schema"]
    }

    /// Panics with the path at which a value violates its schema.
    pub(crate) fn check(&self, value: &Value, schema: &Value, what: &str) {
        if let Err(why) = self.validate(value, schema) {
            panic!("{what}: {why} in {value}");
        }
    }

    fn validate(&self, value: &Value, schema: &Value) -> Result<(), String> {
        let Some(keywords) = schema.as_object() else { return Err(format!("no schema: {schema}")) };
        for (keyword, said) in keywords {
            self.keyword(value, schema, keyword, said).map_err(|why| match why.starts_with('`') {
                true => why,
                false => format!("{why} (`{keyword}`)"),
            })?;
        }
        Ok(())
    }

    fn keyword(&self, value: &Value, schema: &Value, keyword: &str, said: &Value) -> Result<(), String> {
        let all = |schemas: &Value| -> Vec<Result<(), String>> {
            schemas.as_array().into_iter().flatten().map(|one| self.validate(value, one)).collect()
        };
        match keyword {
            "$ref" => {
                let pointer = said.as_str().and_then(|text| text.strip_prefix('#')).unwrap_or_default();
                let target = self.0.pointer(pointer).ok_or_else(|| format!("{said} leads nowhere"))?;
                self.validate(value, target)
            }
            "type" => {
                let types = said.as_array().cloned().unwrap_or_else(|| vec![said.clone()]);
                let fits = types.iter().any(|one| is_of(value, one.as_str().unwrap_or_default()));
                fits.then_some(()).ok_or_else(|| format!("is not of type {said}"))
            }
            "properties" => {
                for (name, schema) in said.as_object().into_iter().flatten() {
                    if let Some(member) = value.get(name) {
                        self.validate(member, schema).map_err(|why| format!("`{name}` {why}"))?;
                    }
                }
                Ok(())
            }
            "required" => {
                let missing = said
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|name| value.get(name.as_str().unwrap()).is_none());
                missing.filter(|_| value.is_object()).map_or(Ok(()), |name| Err(format!("lacks {name}")))
            }
            "additionalProperties" if said == &Value::Bool(false) => {
                let known = &schema["properties"];
                let extra =
                    value.as_object().into_iter().flatten().find(|(name, _)| known.get(name).is_none());
                extra.map_or(Ok(()), |(name, _)| Err(format!("has a member {name:?} too many")))
            }
            "items" => value.as_array().into_iter().flatten().try_for_each(|one| self.validate(one, said)),
            "minItems" => (value.as_array().map_or(u64::MAX, |list| list.len() as u64)
                >= said.as_u64().unwrap())
            .then_some(())
            .ok_or_else(|| "has too few items".to_owned()),
            "minLength" => (value.as_str().map_or(u64::MAX, |text| text.chars().count() as u64)
                >= said.as_u64().unwrap())
            .then_some(())
            .ok_or_else(|| "is too short".to_owned()),
            "enum" => said
                .as_array()
                .unwrap()
                .contains(value)
                .then_some(())
                .ok_or_else(|| format!("is none of {said}")),
            "const" => (value == said).then_some(()).ok_or_else(|| format!("is not {said}")),
            "format" => match (said.as_str().unwrap(), value.as_str()) {
                (_, None) => Ok(()),
                ("uuid", Some(text)) => {
                    uuid::Uuid::try_parse(text).map(drop).map_err(|error| error.to_string())
                }
                ("date-time", Some(text)) => {
                    posthaste_wire::time::parse_rfc3339(text).map(drop).map_err(|error| error.to_string())
                }
                (other, _) => Err(format!("`{other}` is a format that the test does not know")),
            },
            "allOf" => all(said).into_iter().collect(),
            "anyOf" => all(said)
                .iter()
                .any(Result::is_ok)
                .then_some(())
                .ok_or_else(|| "fits no alternative".to_owned()),
            "oneOf" => match all(said).iter().filter(|one| one.is_ok()).count() {
                1 => Ok(()),
                fits => Err(format!("fits {fits} alternatives")),
            },
            "if" => match self.validate(value, said) {
                Ok(()) => schema.get("then").map_or(Ok(()), |then| self.validate(value, then)),
                Err(_) => schema.get("else").map_or(Ok(()), |other| self.validate(value, other)),
            },
            "additionalProperties" | "then" | "else" | "title" | "description" | "default" | "nullable" => {
                Ok(())
            }
            other => Err(format!("`{other}` is a keyword that the test does not know")),
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("{other} is no type"),
    }
}
