//! Secrets: no token, key or password shows up in logs, errors, reports, exports or the list of processes.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Posthaste, TestDir};
use crate::mcp::client::Mcp;
use crate::office::Office;

const HOOK_SECRET: &str = "hook-secret-5f2d";
const PEER_SECRET: &str = "peer-secret-77aa";
const WRONG: &str = "ph_wrong-token-that-a-user-typed";
const CLIENT_SECRET: &str = "said-by-a-client-91b0";
const USER_THERE: &str = "user-token-for-elsewhere";

/// Runs mixed and failing requests. Collects every response, except those that issue a secret.
async fn live(office: &Office, secrets: &mut Vec<String>, said: &mut Vec<String>) {
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let key = office.token().to_owned();
    let made = office.call("token.create", json!({ "role": "agent", "name": "ann" })).await.unwrap();
    let token = made["token"].as_str().unwrap().to_owned();
    secrets.extend([key.clone(), token.clone()]);
    let mut ask = async |request: reqwest::RequestBuilder| {
        let answer = request.send().await.unwrap();
        let head = format!("{:?}", answer.headers());
        let text = answer.text().await.unwrap_or_default();
        said.push(head);
        said.push(text.clone());
        text
    };
    let url = |path: &str| format!("{}{path}", office.url());
    // Right and wrong tokens everywhere, in headers, queries, bodies and cookies.
    for path in [
        "/status",
        "/x-posthaste/status",
        "/whoami",
        "/messages",
        "/ui",
        "/metrics",
        "/health",
        "/map/nothing",
        "/api/presence",
        "/tasks",
        "/nowhere",
    ] {
        for bearer in [&key, &token, &WRONG.to_owned()] {
            ask(http.get(url(path)).bearer_auth(bearer)).await;
            if path.starts_with("/map") {
                // Nowhere else does a token belong into an address.
                ask(http.get(url(&format!("{path}?token={bearer}")))).await;
            }
            ask(http.get(url(path)).header("cookie", format!("posthaste.main={bearer}"))).await;
        }
    }
    for path in
        ["/x-posthaste/rpc", "/map/rpc", "/mcp", "/messages", "/message", "/swarms", "/interswarm/message"]
    {
        for bearer in [&key, &token, &WRONG.to_owned()] {
            for body in [
                "not json".to_owned(),
                json!({ "jsonrpc": "2.0", "id": 1, "method": "map/connect", "params": { "auth": { "method": "bearer", "token": bearer } } }).to_string(),
                json!({ "jsonrpc": "2.0", "id": 1, "method": "x-posthaste/send", "params": { "to": 7 } }).to_string(),
                json!({ "user_token": USER_THERE, "body": "b", "targets": ["x@far"], "subject": "s", "msg_type": "request" }).to_string(),
                json!({ "name": "far", "base_url": "http://127.0.0.1:9", "auth_token": PEER_SECRET }).to_string(),
            ] {
                ask(http.post(url(path)).bearer_auth(bearer).body(body)).await;
            }
        }
    }
    // Signing in and failing to.
    let page = ask(http.get(url("/ui/sign-in"))).await;
    let word = page.split("name=\"word\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    for bearer in [WRONG, &token] {
        ask(http.post(url("/ui/sign-in")).body(format!("word={word}&token={bearer}"))).await;
    }
    // MCP: agents have their own secrets, and a client may send a secret in its handshake.
    let mcp = Mcp::at(&url("/mcp"), Some(&token));
    for server in [&mcp, &Mcp::at(&url("/mcp"), Some(&key))] {
        said.push(server.post(&handshake(CLIENT_SECRET)).await.text().await.unwrap());
    }
    mcp.call("ensure_project", json!({ "human_key": "/srv/app" })).await;
    let given = json!({ "project_key": "/srv/app", "program": "t", "model": "m", "name": "BlueLake" });
    let agent = mcp.call("register_agent", given).await;
    let secret = agent["registration_token"].as_str().expect("shown once").to_owned();
    let send = json!({ "project_key": "/srv/app", "sender_name": "BlueLake", "to": ["Unknown"], "subject": "s", "body_md": "b",
                       "sender_token": secret });
    let failed = mcp.result("send_message", send).await;
    said.push(failed.to_string());
    let resource =
        json!({ "uri": format!("resource://inbox/BlueLake?project=/srv/app&registration_token={secret}") });
    said.push(mcp.method("resources/read", resource).await["error"].to_string());
    secrets.push(secret);
    // The WebSocket.
    let address = office.url().trim_start_matches("http://").to_owned();
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let (mut socket, _) =
        tokio_tungstenite::client_async(format!("ws://{address}/map?token={token}"), stream).await.unwrap();
    use futures_util::{SinkExt, StreamExt};
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "map/connect",
        "params": { "protocolVersion": 1, "participantType": "client", "auth": { "method": "bearer", "token": token } } });
    socket.send(tungstenite::Message::text(hello.to_string())).await.unwrap();
    let greeted: Value = loop {
        if let tungstenite::Message::Text(text) = socket.next().await.unwrap().unwrap() {
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["id"] == 1 {
                break frame;
            }
        }
    };
    secrets.push(greeted["result"]["resumeToken"].as_str().unwrap().to_owned());
    office.call("token.revoke", json!({ "id": made["id"] })).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
}

fn handshake(secret: &str) -> Value {
    let client = json!({ "name": "c", "version": "1", "description": secret });
    let capabilities = json!({ "experimental": { "auth": { "bearer": secret } } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client } })
}

#[tokio::test]
async fn handshakes_are_bounded_and_not_logged() {
    let dir = TestDir::new();
    let log = dir.path().join("log");
    let office = Office::open_logging(&dir.path().join("data"), [], &log);
    let mcp = Mcp::operator(&office);
    let session = |answer: &reqwest::Response| answer.headers().get("mcp-session-id").cloned();
    let first = mcp.post(&handshake(CLIENT_SECRET)).await;
    let first = (session(&first).expect("a session"), first.text().await.unwrap());
    assert!(first.1.contains("serverInfo"), "{}", first.1);
    let large = mcp.post(&handshake(&"x".repeat(17 << 10))).await;
    assert_eq!(large.status().as_u16(), 413);
    let text = large.text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)));
    // One token has a limited number of sessions; the one that was not used for longest ends.
    for _ in 0..64 {
        assert!(session(&mcp.post(&handshake("y")).await).is_some());
    }
    let listen = |id: reqwest::header::HeaderValue| {
        mcp.request(reqwest::Method::DELETE).header("mcp-session-id", id).send()
    };
    assert_eq!(listen(first.0).await.unwrap().status().as_u16(), 404, "it was ended for a newer session");
    assert_eq!(office.close(), Some(0));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains(CLIENT_SECRET), "{log}");
    assert!(log.len() < 20_000, "{} bytes for 66 handshakes", log.len());
}

#[tokio::test]
async fn a_session_belongs_to_a_token_and_not_to_a_name() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.call("realm.open", json!({ "name": "shop" })).await.unwrap();
    let ours = Mcp::bearer(&office, "agent", "sam").await;
    let shop = office.as_bearer(office.token()).in_realm("shop");
    let made = shop.call("token.create", json!({ "role": "agent", "name": "sam" })).await.unwrap();
    let theirs = Mcp::at(&format!("{}/r/shop/mcp", office.url()), made["token"].as_str());
    let id = ours.post(&handshake("x")).await.headers()["mcp-session-id"].clone();
    let end = |who: &Mcp| who.request(reqwest::Method::DELETE).header("mcp-session-id", &id).send();
    assert_eq!(end(&theirs).await.unwrap().status().as_u16(), 404);
    assert!(end(&ours).await.unwrap().status().is_success());
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn no_secret_shows_up_anywhere() {
    for form in ["text", "json"] {
        let dir = TestDir::new();
        let (data, log) = (dir.path().join("data"), dir.path().join("log"));
        let jwt = dir.write("jwt.key", "jwt-key-0123456789abcdef0123456789abcdef");
        let driver = json!({ "http": "http://127.0.0.1:9/hook", "token_env": "HOOK" });
        let file = crate::swarm::team("main", json!([crate::swarm::boss(driver, &["boss"])]));
        let swarm = dir.write("swarm.json", &file.to_string());
        let flags = ["--swarm", swarm.to_str().unwrap(), "--jwt-key", jwt.to_str().unwrap()];
        // Secrets in the environment, as an operator would set them.
        let office = Office::open_talkative(
            &data,
            form,
            &flags,
            &log,
            &[("HOOK", HOOK_SECRET), ("SWARM_AUTH_TOKEN_FAR", PEER_SECRET)],
        );
        let mut secrets: Vec<String> =
            [HOOK_SECRET, PEER_SECRET, WRONG, USER_THERE, CLIENT_SECRET, "jwt-key-0123456789abcdef"]
                .map(str::to_owned)
                .to_vec();
        let mut said = Vec::new();
        live(&office, &mut secrets, &mut said).await;
        let processes = std::process::Command::new("ps").args(["-eo", "args"]).output();
        let own = std::fs::read(format!("/proc/{}/cmdline", office.pid())).unwrap_or_default();
        said.push(String::from_utf8_lossy(&own).into_owned());
        if let Ok(processes) = processes {
            said.push(String::from_utf8_lossy(&processes.stdout).into_owned());
        }
        // Output of the command line.
        for args in [
            vec!["status"],
            vec!["doctor"],
            vec!["config"],
            vec!["token", "list"],
            vec!["--json", "status"],
            vec!["--json", "doctor"],
        ] {
            let mut posthaste = Posthaste::new();
            posthaste.command.arg("--data").arg(&data).stdin(Stdio::null());
            let ran = posthaste.args(args.iter().copied()).run();
            said.extend([ran.stdout, ran.stderr]);
        }
        let lines = reqwest::Client::new()
            .get(format!("{}/x-posthaste/export", office.url()))
            .bearer_auth(office.token());
        said.push(lines.send().await.unwrap().text().await.unwrap());
        assert_eq!(office.close(), Some(0));
        let log = std::fs::read_to_string(&log).unwrap();
        assert!(log.len() > 10_000, "everything was logged: {} bytes", log.len());
        for secret in &secrets {
            if let Some(line) = log.lines().find(|line| line.contains(secret.as_str())) {
                panic!("{form} log: {secret} is in {line}");
            }
            // Secrets sent in a URL are not echoed either; a token is shown once, when it is created.
            if let Some(text) = said.iter().find(|text| text.contains(secret.as_str())) {
                let at = text.find(secret.as_str()).unwrap();
                let (from, to) = (at.saturating_sub(120), (at + 160).min(text.len()));
                panic!("{secret} was said: …{}…", text.get(from..to).unwrap_or(text));
            }
        }
        // The database has hashes only, and is still readable by its owner alone.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            for path in [data.join("admin.token"), data.clone(), data.join("realms")] {
                let mode = std::fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0, "{}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn input_cannot_forge_log_lines() {
    for form in ["text", "json"] {
        let dir = TestDir::new();
        let (data, log) = (dir.path().join("data"), dir.path().join("log"));
        let office = Office::open_talkative(&data, form, &[], &log, &[]);
        let evil = "x\r\n2026-01-01T00:00:00.000000Z ERROR posthaste: forged\u{1b}[2J\u{7}";
        for (method, params) in [
            ("register", json!({ "id": evil })),
            ("register", json!({ "id": "ann", "name": evil })),
            ("send", json!({ "to": [evil], "subject": evil, "body": evil })),
            ("search", json!({ "query": evil })),
            ("realm.open", json!({ "name": evil })),
            ("token.create", json!({ "role": "agent", "name": evil })),
            (evil, json!({})),
        ] {
            drop(office.call(method, params).await);
        }
        let http = reqwest::Client::new();
        for path in ["/r/x%0d%0aforged/health", "/identity/x%0d%0aforged%1b", "/messages/thread/%0aforged"] {
            drop(http.get(format!("{}{path}", office.url())).bearer_auth(office.token()).send().await);
        }
        drop(http.get(format!("{}/health", office.url())).header("host", "evil.test").send().await);
        let mcp = Mcp::operator(&office);
        mcp.method(evil, json!({ "name": evil })).await;
        mcp.result(evil, json!({})).await;
        assert_eq!(office.close(), Some(0));
        let log = std::fs::read_to_string(&log).unwrap();
        for line in log.lines() {
            assert!(!line.chars().any(|c| c.is_control() && c != '\t'), "{form}: {line:?}");
            assert!(!line.starts_with("2026-01-01T00:00:00"), "{form}: {line:?}");
            match form {
                "json" => assert!(serde_json::from_str::<Value>(line).is_ok(), "{line:?}"),
                _ => assert!(
                    line.starts_with("20")
                        || line.starts_with(' ')
                        || line.is_empty()
                        || !line.contains("forged"),
                    "{line:?}"
                ),
            }
        }
    }
}
