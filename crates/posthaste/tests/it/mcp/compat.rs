//! What real MCP clients stumbled over: results without words, arguments that strict modes fill in, and the way out of a 401.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

const APP: &str = "/srv/app";

// Outside, 4: Gemini CLI shows its model the content of a result and nothing else.
#[tokio::test]
async fn an_empty_list_is_said_in_words() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake"]).await;
    let cases = [
        ("fetch_inbox", json!({}), "The inbox is empty."),
        ("fetch_inbox", json!({ "unread_only": true }), "No messages match."),
        ("fetch_inbox", json!({ "after_id": 3 }), "No messages match."),
        ("list_contacts", json!({}), "No contacts and no requests."),
        ("list_conversations", json!({}), "No conversations."),
        ("list_agents", json!({ "after": "zzz", "agent_name": null }), "No agents that you can see."),
    ];
    for (tool, more, words) in cases {
        let mut given = json!({ "project_key": APP, "agent_name": "BlueLake" });
        for (name, value) in more.as_object().unwrap() {
            given[name] = value.clone();
        }
        if tool == "list_agents" {
            given.as_object_mut().unwrap().remove("agent_name");
        }
        let result = mcp.result(tool, given.clone()).await;
        // Programs parse the text, models read everything.
        assert_eq!(result["content"][0], json!({ "type": "text", "text": "[]" }), "{tool}: {result}");
        assert_eq!(result["content"][1]["resource"]["text"], words, "{tool}: {result}");
        assert_eq!(result["structuredContent"], json!({ "result": [] }), "{tool}");
        // The same in the revision without sessions.
        let modern = modern(&mcp, "tools/call", json!({ "name": tool, "arguments": given })).await;
        assert_eq!(modern["result"]["content"], result["content"], "{tool}: {modern}");
    }
    assert_eq!(office.close(), Some(0));
}

/// A request of the revision without sessions.
async fn modern(mcp: &Mcp, method: &str, mut params: Value) -> Value {
    let named =
        params.get("name").or(params.get("uri")).and_then(Value::as_str).unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
    let request = mcp.request(Method::POST);
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    let answer = request.header("mcp-name", named).body(body.to_string()).send().await.unwrap();
    let text = answer.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

// F13 and outside, 2.
#[tokio::test]
async fn an_unknown_resource_is_named_in_the_error() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    for uri in ["test://nowhere", "resource://inbox/none?project=/none"] {
        let plain = mcp.method("resources/read", json!({ "uri": uri })).await;
        let modern = modern(&mcp, "resources/read", json!({ "uri": uri })).await;
        for answer in [plain, modern] {
            assert_eq!(answer["error"]["data"], json!({ "uri": uri }), "{answer}");
        }
    }
    assert_eq!(office.close(), Some(0));
}

// F18: clients in strict mode give every argument, and fill those they do not need with "", [] or 0.
#[tokio::test]
async fn arguments_that_strict_modes_fill_in_mean_nothing() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox"]).await;
    let given = json!({
        "project_key": APP, "sender_name": "BlueLake", "to": ["GreenFox"], "subject": "s", "body_md": "b",
        "cc": [], "bcc": [], "attachments": [], "attachment_paths": [], "convert_images": false, "importance": "",
        "ack_required": "", "thread_id": "", "broadcast": false, "topic": "", "auto_contact_if_blocked": false,
        "sender_token": "",
    });
    let sent = mcp.call("send_message", given).await;
    assert_eq!(sent["deliveries"][0]["payload"]["importance"], "normal");
    let id = sent["deliveries"][0]["payload"]["id"].clone();
    let given = json!({
        "project_key": APP, "message_id": id, "sender_name": "GreenFox", "body_md": "yes", "to": [], "cc": [],
        "bcc": [], "attachments": [], "subject_prefix": "", "sender_token": "",
    });
    let reply = mcp.call("reply_message", given).await;
    assert_eq!((&reply["to"], &reply["subject"]), (&json!(["BlueLake"]), &json!("s")));
    // An id of 0 is none.
    let agent = |more: Value| {
        let mut given = json!({ "project_key": APP, "agent_name": "GreenFox" });
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        given
    };
    let opened =
        agent(json!({ "participants": ["BlueLake"], "kind": "", "conversation_id": "", "subject": "" }));
    assert_eq!(mcp.call("open_conversation", opened).await["kind"], "multi-agent");
    let listed = mcp.call("list_conversations", agent(json!({ "before": 0 }))).await;
    assert!(!listed.as_array().unwrap().is_empty(), "{listed}");
    let asked = agent(json!({ "target": "BlueLake", "subject": "s", "body": "b", "task_id": "" }));
    let task = mcp.call("send_request", asked).await["task_id"].clone();
    let told = agent(json!({ "subject": "s", "body": "b", "task_id": task, "targets": [] }));
    mcp.call("send_broadcast", told).await;
    let heard = json!({ "project_key": APP, "agent_name": "BlueLake", "note": "", "message_id": 0 });
    assert_eq!(mcp.call("acknowledge_broadcast", heard).await["acknowledged"], true);
    // What must be given must not be empty.
    let empty =
        json!({ "project_key": APP, "sender_name": "BlueLake", "to": [], "subject": "s", "body_md": "b" });
    assert_eq!(mcp.fails("send_message", empty).await.0, "NO_RECIPIENTS");
    assert_eq!(office.close(), Some(0));
}

// F7: after a 401, clients that know OAuth register at /register, which is AIRC's.
#[tokio::test]
async fn a_client_without_a_good_token_reads_what_to_send() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let http = reqwest::Client::new();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for (token, challenge) in [(None, "Bearer"), (Some("pht_wrong"), r#"Bearer error="invalid_token""#)] {
        let refused = Mcp::at(&format!("{}/mcp", office.url()), token).post(&ping).await;
        assert_eq!(refused.status().as_u16(), 401);
        assert_eq!(refused.headers()["www-authenticate"].to_str().unwrap(), challenge);
        assert!(refused.text().await.unwrap().contains("`posthaste token create` makes"));
    }
    let client = json!({
        "client_name": "mcp-remote", "redirect_uris": ["http://127.0.0.1:3334/oauth/callback"],
        "grant_types": ["authorization_code"], "response_types": ["code"], "token_endpoint_auth_method": "none",
    });
    for path in ["/register", "/r/main/register"] {
        let url = format!("{}{path}", office.url());
        let answer = http.post(url).header("content-type", "application/json").body(client.to_string());
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 400);
        let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(body["error"], "invalid_request");
        let words = body["error_description"].as_str().unwrap();
        assert!(
            words.contains("Authorization: Bearer TOKEN") && words.contains("posthaste token create"),
            "{words}"
        );
    }
    // AIRC's own registration is as it was.
    let answer =
        http.post(format!("{}/register", office.url())).body(r#"{"handle":"x"}"#).send().await.unwrap();
    let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!((answer_is_airc(&body), &body["success"]), (true, &json!(false)));
    for path in ["oauth-authorization-server", "oauth-protected-resource/mcp"] {
        let answer = http.get(format!("{}/.well-known/{path}", office.url())).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 404);
        assert!(answer.text().await.unwrap().contains("posthaste token create"), "{path}");
    }
    assert_eq!(office.close(), Some(0));
}

fn answer_is_airc(body: &Value) -> bool {
    body.get("error_description").is_none() && body["message"].is_string()
}
