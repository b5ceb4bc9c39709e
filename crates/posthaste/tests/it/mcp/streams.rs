//! What comes by itself at the MCP door: notifications, progress, waiting; and standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{LONG, TestDir};
use crate::mcp::client::Mcp;
use crate::office::Office;

const APP: &str = "/srv/app";

/// The messages of a stream of events, as they come.
async fn next(
    stream: &mut (impl StreamExt<Item = reqwest::Result<impl AsRef<[u8]>>> + Unpin),
    text: &mut String,
) -> Value {
    loop {
        while let Some(end) = text.find("\n\n").or_else(|| text.find("\r\n\r\n")) {
            let event: String = text.drain(..end + 2).collect();
            let data: String =
                event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).collect();
            if !data.is_empty() {
                return serde_json::from_str(&data).unwrap();
            }
        }
        let chunk = timeout(LONG, stream.next()).await.expect("an event").expect("more").unwrap();
        text.push_str(std::str::from_utf8(chunk.as_ref()).unwrap());
    }
}

#[tokio::test]
async fn a_session_is_told_of_resources_that_change() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox"]).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let greeted = mcp.post(&hello).await;
    let session = greeted.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let with = |method| {
        mcp.request(method)
            .header("mcp-session-id", &session)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
    };
    let told = with(reqwest::Method::POST)
        .body(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(told.status().as_u16(), 202);
    let stream = with(reqwest::Method::GET).send().await.unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    let uri = format!("resource://inbox/GreenFox?project={APP}");
    for uri in [uri.as_str(), "resource://file_reservations/srv-app"] {
        let body =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": uri } });
        let answer =
            with(reqwest::Method::POST).body(body.to_string()).send().await.unwrap().text().await.unwrap();
        assert!(answer.contains("\"result\""), "{answer}");
    }
    mcp.send(APP, "BlueLake", "GreenFox", "news").await;
    let (mut chunks, mut text) = (stream.bytes_stream(), String::new());
    let heard = next(&mut chunks, &mut text).await;
    assert_eq!(
        (&heard["method"], &heard["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri))
    );
    mcp.call(
        "file_reservation_paths",
        json!({ "project_key": APP, "agent_name": "BlueLake", "paths": ["src/**"] }),
    )
    .await;
    assert_eq!(next(&mut chunks, &mut text).await["params"]["uri"], "resource://file_reservations/srv-app");
    // Another token cannot listen in, and a session that is gone is answered 404.
    let eve = Mcp::bearer(&office, "user", "eve").await;
    let listening =
        eve.request(reqwest::Method::GET).header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(listening.status().as_u16(), 404);
    assert_eq!(with(reqwest::Method::DELETE).send().await.unwrap().status().as_u16(), 204);
    let gone = with(reqwest::Method::POST)
        .body(r#"{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"x"}}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(gone.status().as_u16(), 404);
    // An open stream does not keep the server from closing.
    let stream = mcp.post(&hello).await.headers()["mcp-session-id"].clone();
    let stream = mcp
        .request(reqwest::Method::GET)
        .header("mcp-session-id", stream)
        .header("accept", "text/event-stream");
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    let closing = Instant::now();
    assert_eq!(office.close(), Some(0));
    assert!(closing.elapsed() < Duration::from_secs(8), "{:?}", closing.elapsed());
    drop((stream, chunks));
}

#[tokio::test]
async fn waiting_ends_with_mail_or_its_timeout_and_reports_progress() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox"]).await;
    let wait = |seconds: i64, after: Option<i64>| json!({ "project_key": APP, "agent_name": "GreenFox", "timeout_seconds": seconds, "after_id": after });
    let empty = mcp.call("wait_for_mail", wait(1, None)).await;
    assert_eq!((&empty["timed_out"], &empty["count"]), (&json!(true), &json!(0)));
    // What comes while it waits ends the wait; progress is reported meanwhile to callers that want it.
    let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "wait_for_mail", "arguments": wait(60, None), "_meta": { "progressToken": "p1" } } });
    let waiting = mcp
        .request(reqwest::Method::POST)
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string());
    let waiting = tokio::spawn(waiting.send());
    let sender = mcp.clone();
    let start = Instant::now();
    let response = tokio::spawn(async move {
        let mut stream = waiting.await.unwrap().unwrap().bytes_stream();
        let mut text = String::new();
        let first = next(&mut stream, &mut text).await;
        assert_eq!(
            (&first["method"], &first["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p1"))
        );
        sender.send(APP, "BlueLake", "GreenFox", "at last").await;
        loop {
            let message = next(&mut stream, &mut text).await;
            if message["id"] == 5 {
                return message;
            }
        }
    });
    let answer = response.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(30));
    let found = &answer["result"]["structuredContent"];
    assert_eq!((&found["messages"][0]["subject"], &found["timed_out"]), (&json!("at last"), &json!(false)));
    // Unread mail is there at once; beyond the cursor there is nothing.
    let again = mcp.call("wait_for_mail", wait(0, None)).await;
    assert_eq!(again["count"], 1);
    assert_eq!(mcp.call("wait_for_mail", wait(0, again["cursor"].as_i64())).await["count"], 0);
    assert_eq!(office.close(), Some(0));
}

/// One dialogue on standard input and output: each line is answered before the next is written.
fn speak(dir: &TestDir, lines: &[Value]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.env_clear().current_dir(dir.path()).arg("--data").arg(dir.path()).arg("mcp");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut answers = Vec::new();
    for line in lines {
        writeln!(input, "{line}").unwrap();
        if line.get("id").is_some() {
            let mut answer = String::new();
            output.read_line(&mut answer).unwrap();
            answers.push(serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}")));
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers
}

#[tokio::test]
async fn standard_input_and_output_reach_the_running_server_or_start_one() {
    let dir = TestDir::new();
    let call = |id: i64, tool: &str, given: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": given } });
    let start = |name: &str| json!({ "human_key": APP, "program": "p", "model": "m", "agent_name": name });
    let lines = |name: &str, revision: &str| {
        vec![
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
            call(3, "macro_start_session", start(name)),
        ]
    };
    let alone = speak(&dir, &lines("BlueLake", "2025-11-25"));
    assert_eq!(alone[0]["result"]["protocolVersion"], "2025-11-25");
    assert!(alone[1]["result"]["tools"].as_array().unwrap().len() > 24);
    assert_eq!(alone[2]["result"]["structuredContent"]["agent"]["name"], "BlueLake");

    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    let mut dialogue = lines("GreenFox", "2024-11-05");
    let message = json!({ "project_key": APP, "sender_name": "GreenFox", "to": ["BlueLake"], "subject": "by pipe", "body_md": "b" });
    dialogue.push(call(4, "send_message", message));
    let joined = speak(&dir, &dialogue);
    assert_eq!(joined[0]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(joined[3]["result"]["isError"], false, "{}", joined[3]);
    let inbox = mcp.call("fetch_inbox", json!({ "project_key": APP, "agent_name": "BlueLake" })).await;
    assert_eq!(inbox[0]["subject"], "by pipe");
    assert_eq!(office.close(), Some(0));
}
