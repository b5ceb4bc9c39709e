//! The headers that MCP 2026-07-28 wants beside a request, taken from the request itself: on standard input and output there
//! are none.

use posthaste_wire::mcp::headers::{METHOD, NAME, PROTOCOL_VERSION, encode, subject};
use posthaste_wire::mcp::meta::AnyParams;
use serde_json::Value;
use serde_json::value::to_raw_value;

/// Name and value of each header; none for a request of an earlier revision.
pub(super) fn of(call: &Value) -> Vec<(&'static str, String)> {
    let (Some(method), true) = (call["method"].as_str(), call["params"]["_meta"].is_object()) else {
        return Vec::new();
    };
    let params = to_raw_value(&call["params"]).ok();
    let meta = AnyParams::read(params.as_deref());
    let Some(version) = meta.revision() else { return Vec::new() };
    let mut headers = vec![(PROTOCOL_VERSION, encode(version)), (METHOD, encode(method))];
    headers.extend(subject(method, params.as_deref()).map(|subject| (NAME, encode(&subject))));
    headers
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
