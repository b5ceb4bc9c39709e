//! The headers that MCP 2026-07-28 wants beside a request, taken from the request itself: on standard input and output there
//! are none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The first revision whose requests say in `_meta` which revision they are of.
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Name and value of each header; none for a request of an earlier revision.
pub(super) fn of(line: &Value) -> Vec<(&'static str, String)> {
    let (Some(version), Some(method)) =
        (line.pointer(VERSION).and_then(Value::as_str), line["method"].as_str())
    else {
        return Vec::new();
    };
    let params = &line["params"];
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => params["taskId"].as_str(),
        _ => None,
    };
    let mut headers = vec![("mcp-protocol-version", encoded(version)), ("mcp-method", encoded(method))];
    headers.extend(name.map(|name| ("mcp-name", encoded(name))));
    headers
}

/// A value as a header can carry it.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    match is_plain && !value.starts_with("=?base64?") {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // outside F3: a relayed request of 2026-07-28 has the headers that the revision wants.
    #[test]
    fn a_request_of_the_newest_revision_gets_its_headers() {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        let call = json!({ "method": "tools/call", "params": { "name": "send_message", "_meta": meta } });
        let expected = [
            ("mcp-protocol-version", "2026-07-28".to_owned()),
            ("mcp-method", "tools/call".to_owned()),
            ("mcp-name", "send_message".to_owned()),
        ];
        assert_eq!(of(&call), expected);
        let discover = json!({ "method": "server/discover", "params": { "_meta": meta } });
        assert_eq!(
            of(&discover),
            expected[..1]
                .iter()
                .cloned()
                .chain([("mcp-method", "server/discover".to_owned())])
                .collect::<Vec<_>>()
        );
        let read = json!({ "method": "resources/read", "params": { "uri": "resource://ä", "_meta": meta } });
        assert_eq!(of(&read)[2].1, "=?base64?cmVzb3VyY2U6Ly/DpA==?=");
        assert!(of(&json!({ "method": "tools/list", "params": {} })).is_empty());
    }
}
