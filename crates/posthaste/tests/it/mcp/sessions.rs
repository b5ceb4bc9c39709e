//! MCP sessions as real clients use them: how they end, and what their streams look like to a strict reader.

use axum::body::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{LONG, TestDir};
use crate::mcp::client::Mcp;
use crate::office::Office;

const APP: &str = "/srv/app";
const PING: &str = r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#;

async fn session(mcp: &Mcp) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    mcp.post(&hello).await.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

fn request(mcp: &Mcp, method: Method, session: &str) -> RequestBuilder {
    mcp.request(method)
        .header("mcp-session-id", session)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

// F5, F6, F41: the official Python SDK takes 200 and 204 only, and the id of a session that was ended is of no use any more.
#[tokio::test]
async fn a_terminated_session_is_answered_404_by_every_method() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let ann = Mcp::bearer(&office, "user", "ann").await;
    let (ended, other) = (session(&ann).await, session(&ann).await);
    assert_eq!(status(request(&ann, Method::POST, &ended).body(PING)).await, 200);
    // Ending needs the token that opened the session.
    let eve = Mcp::bearer(&office, "user", "eve").await;
    assert_eq!(status(request(&eve, Method::DELETE, &ended)).await, 404);
    assert_eq!(status(request(&ann, Method::POST, &ended).body(PING)).await, 200);
    // A DELETE that is refused ends nothing.
    let refused = request(&ann, Method::DELETE, &ended).header("mcp-protocol-version", "1999-01-01");
    assert_eq!(status(refused).await, 400);
    assert_eq!(status(request(&ann, Method::POST, &ended).body(PING)).await, 200);

    let answer = request(&ann, Method::DELETE, &ended).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (204, String::new()));
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"health_check"}}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    for body in [PING, call, note, hello, r#"[{"jsonrpc":"2.0","id":4,"method":"ping"}]"#] {
        assert_eq!(status(request(&ann, Method::POST, &ended).body(body)).await, 404, "{body}");
    }
    assert_eq!(status(request(&ann, Method::GET, &ended)).await, 404);
    assert_eq!(status(request(&ann, Method::DELETE, &ended)).await, 404);
    // Nothing else is: other sessions, calls without one, and ids that the server does not know.
    for id in [other.as_str(), "11111111-2222-3333-4444-555555555555"] {
        assert_eq!(status(request(&ann, Method::POST, id).body(PING)).await, 200, "{id}");
    }
    assert_eq!(status(ann.request(Method::POST).body(PING)).await, 200);
    assert_eq!(office.close(), Some(0));
    // A client does not notice that the server was restarted.
    let office = Office::open(dir.path());
    let ann = Mcp::at(&format!("{}/mcp", office.url()), ann.token.as_deref());
    assert_eq!(status(request(&ann, Method::POST, &other).body(PING)).await, 200);
    assert_eq!(office.close(), Some(0));
}

/// A stream of events and its text so far.
struct Events {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    text: String,
}

impl Events {
    async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { chunks: response.bytes_stream().boxed(), text: String::new() }
    }

    /// Reads until the text contains `end`, and returns all of it.
    async fn until(&mut self, end: &str) -> &str {
        while !self.text.contains(end) {
            let chunk = timeout(LONG, self.chunks.next()).await.expect("an event").expect("more").unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        &self.text
    }
}

/// Every event is a message: Gemini CLI parses the data of each as JSON and gives the server up when it cannot.
fn assert_only_messages(text: &str) {
    for event in text.replace("\r\n", "\n").split_inclusive("\n\n").filter(|event| event.ends_with("\n\n")) {
        let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        if event.lines().all(|line| line.is_empty() || line.starts_with(':')) {
            continue;
        }
        let message: Value = serde_json::from_str(&data.join("\n")).unwrap_or_else(|error| {
            panic!("{error}: an event that is no message: {event:?}");
        });
        assert_eq!(message["jsonrpc"], "2.0");
    }
}

// Outside, 3: clients parse the data of every event as JSON.
#[tokio::test]
async fn streams_carry_no_events_but_messages() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox"]).await;
    let id = session(&mcp).await;
    let mut notifications = Events::of(request(&mcp, Method::GET, &id)).await;
    let uri = format!("resource://inbox/GreenFox?project={APP}");
    let subscribe =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": uri } });
    let mut subscribed = Events::of(request(&mcp, Method::POST, &id).body(subscribe.to_string())).await;
    assert_only_messages(subscribed.until("\"result\"").await);
    // Progress of a call outside and inside a session.
    let wait = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "wait_for_mail", "_meta": { "progressToken": "p" },
        "arguments": { "project_key": APP, "agent_name": "GreenFox", "timeout_seconds": 60 } } })
    .to_string();
    let outside = mcp.request(Method::POST).header("accept", "application/json, text/event-stream");
    let inside = request(&mcp, Method::POST, &id);
    let (mut outside, mut inside) =
        tokio::join!(Events::of(outside.body(wait.clone())), Events::of(inside.body(wait)));
    tokio::join!(outside.until("notifications/progress"), inside.until("notifications/progress"));
    mcp.send(APP, "BlueLake", "GreenFox", "news").await;
    for mut waited in [outside, inside] {
        assert_only_messages(waited.until("\"result\"").await);
    }
    assert_only_messages(notifications.until("notifications/resources/updated").await);
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_session_cancels_a_call_that_waits() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["GreenFox"]).await;
    let id = session(&mcp).await;
    let wait = json!({ "jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": {
        "name": "wait_for_mail",
        "arguments": { "project_key": APP, "agent_name": "GreenFox", "timeout_seconds": 600 } } });
    let waiting = tokio::spawn(request(&mcp, Method::POST, &id).body(wait.to_string()).send());
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "w" } });
    // Another token's session id cancels nothing.
    let eve = Mcp::bearer(&office, "user", "eve").await;
    assert_eq!(status(request(&eve, Method::POST, &id).body(cancelled.to_string())).await, 202);
    let answer = timeout(LONG, async {
        // A notification that comes before the call is under way concerns nothing.
        while !waiting.is_finished() {
            assert_eq!(status(request(&mcp, Method::POST, &id).body(cancelled.to_string())).await, 202);
        }
        waiting.await.unwrap().unwrap().text().await.unwrap()
    });
    let answer: Value = serde_json::from_str(&answer.await.unwrap()).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("w"), &json!(-32_603)), "{answer}");
    assert_eq!(office.close(), Some(0));
}
