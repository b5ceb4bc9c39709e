//! The data directory's key is shown to its own server only; an unreachable server is reported with advice.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

/// Something that listens, answers every request with `{}` and keeps what it was sent.
fn stranger() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = Arc::new(Mutex::new(String::new()));
    let kept = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap_or(0);
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
        }
    });
    (address, heard)
}

// F13: `status` showed the admin key to whatever listened on the configured port.
#[test]
fn other_servers_get_no_key_and_are_reported() {
    let dir = TestDir::new();
    dir.posthaste().args(["send", "--from=me", "--to=me", "--body=x"]).run().ok();
    let (address, heard) = stranger();
    let status = dir.posthaste().args(["status"]).env("POSTHASTE_LISTEN", &address).run();
    assert_eq!(status.code, 3, "{}{}", status.stdout, status.stderr);
    assert!(status.stderr.contains("is not a posthaste server"), "{}", status.stderr);
    assert_eq!(status.stdout, "");
    // A file that a server left behind when it was killed names an address that another program may have now.
    let url = format!("http://{address}");
    dir.write("office.json", &json!({ "pid": std::process::id(), "url": url }).to_string());
    for words in [&["agents"][..], &["whoami"], &["token", "list"], &["guard", "check"]] {
        dir.posthaste().args(words.iter().copied()).run().ok();
    }
    for words in [&["whoami"][..], &["status"], &["token", "list"]] {
        let ran = dir.posthaste().args(words.iter().copied()).args(["--url", &url]).run();
        assert_eq!(ran.code, 3, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("is not a posthaste server"), "{}", ran.stderr);
    }
    let heard = heard.lock().unwrap().to_lowercase();
    assert!(heard.contains("get /health"), "{heard}");
    assert!(!heard.contains("authorization") && !heard.contains("ph_"), "{heard}");
}

// F38: a server that is not running is reported with advice.
#[test]
fn a_missing_server_is_reported_with_advice() {
    let dir = TestDir::new();
    for words in [
        &["status"][..],
        &["whoami"],
        &["tail"],
        &["token", "list"],
        &["export", "-"],
        &["map"],
        &["inbox", "--agent=ann"],
    ] {
        let ran = dir.posthaste().args(words.iter().copied()).args(["--url", "http://127.0.0.1:1"]).run();
        assert_eq!(ran.code, 3, "{words:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("connection refused") && ran.stderr.contains("posthaste serve"),
            "{words:?}: {}",
            ran.stderr
        );
    }
}

// F43: what waits with a token that is revoked ended after 20 seconds.
#[tokio::test]
async fn waits_end_with_their_token() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    office.send("ann", "ann", "before", "k").await.unwrap();
    for words in [&["tail", "--after=0"][..], &["inbox", "--watch"]] {
        let made = office.call("token.create", json!({ "role": "agent", "name": "ann" })).await.unwrap();
        let mut program = dir.posthaste().args(words.iter().copied()).args(["--url", office.url()]);
        program = program.env("POSTHASTE_TOKEN", made["token"].as_str().unwrap());
        let mut child = program.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The first line shows that it is under way.
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        let start = Instant::now();
        office.call("token.revoke", json!({ "id": made["id"] })).await.unwrap();
        let code = tokio::task::spawn_blocking(move || {
            drop(std::io::copy(&mut output, &mut std::io::sink()));
            child.wait().unwrap().code()
        });
        assert_eq!(code.await.unwrap(), Some(4), "{words:?}");
        assert!(start.elapsed() < Duration::from_secs(10), "{words:?}: {:?}", start.elapsed());
    }
    // An MCP client that waits for mail is told, too.
    let ann = Mcp::bearer(&office, "user", "walter").await;
    ann.call(
        "macro_start_session",
        json!({ "human_key": "/srv/app", "program": "p", "model": "m", "agent_name": "BlueLake" }),
    )
    .await;
    let tokens = office.call("token.list", json!({})).await.unwrap()["tokens"].take();
    let held = tokens.as_array().unwrap().iter().find(|token| token["name"] == "walter").unwrap();
    let wait = json!({ "project_key": "/srv/app", "agent_name": "BlueLake", "timeout_seconds": 60 });
    let (start, id) = (Instant::now(), held["id"].clone());
    let waiting = tokio::spawn(async move {
        ann.method("tools/call", json!({ "name": "wait_for_mail", "arguments": wait })).await
    });
    office.call("token.revoke", json!({ "id": id })).await.unwrap();
    let answer = waiting.await.unwrap();
    assert_eq!(answer["error"]["code"], -32_001, "{answer}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(office.close(), Some(0));
}
