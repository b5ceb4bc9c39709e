//! The mode of a draft client: full MAP, or the subset that fits ACP's extension methods.

use serde_json::Value;

/// The mode of a draft session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Full MAP.
    Full,
    /// The subset that fits ACP's extension methods.
    AcpCompat,
}

impl Mode {
    /// The name of the mode on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::AcpCompat => "acp-compat",
        }
    }
}

/// The mode that the parameters of `map/initialize` request. The protocol draft specifies this function in JavaScript; the
/// order of its checks matters.
#[must_use]
pub fn detect_mode(params: &Value) -> Mode {
    let mode = params.get("mode").filter(|mode| truthy(mode));
    if mode.and_then(Value::as_str) == Some("acp-compat") {
        return Mode::AcpCompat;
    }
    if !params.pointer("/capabilities/streaming").is_some_and(truthy) {
        return Mode::AcpCompat;
    }
    if mode.is_none() && params.get("clientCapabilities").is_some_and(truthy) {
        return Mode::AcpCompat;
    }
    Mode::Full
}

/// JavaScript truthiness.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn detect_mode_follows_the_drafts_function() {
        for (params, mode) in [
            (json!({ "mode": "acp-compat", "capabilities": { "streaming": true } }), Mode::AcpCompat),
            (json!({ "mode": "full" }), Mode::AcpCompat),
            (json!({ "mode": "full", "capabilities": {} }), Mode::AcpCompat),
            (json!({ "mode": "full", "capabilities": { "streaming": false } }), Mode::AcpCompat),
            (json!({ "capabilities": { "streaming": true }, "clientCapabilities": {} }), Mode::AcpCompat),
            (
                json!({ "mode": "full", "capabilities": { "streaming": true }, "clientCapabilities": {} }),
                Mode::Full,
            ),
            (json!({ "capabilities": { "streaming": true } }), Mode::Full),
            (json!({ "mode": "full", "capabilities": { "streaming": true } }), Mode::Full),
            (json!({}), Mode::AcpCompat),
            (json!(null), Mode::AcpCompat),
        ] {
            assert_eq!(detect_mode(&params), mode, "{params}");
        }
    }
}
