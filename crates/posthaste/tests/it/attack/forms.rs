//! Malformed and hostile requests: foreign hosts and origins, compressed and oversized bodies, injected lines, slow peers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::Office;

/// Sends raw bytes and reads the response, up to its end or the read timeout.
fn raw(office: &Office, bytes: &[u8]) -> String {
    let address = office.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // The request may be refused before all of it is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// One path of every door.
const DOORS: [&str; 10] = [
    "/x-posthaste/export",
    "/x-posthaste/status",
    "/map/events",
    "/messages",
    "/api/messages",
    "/status",
    "/mcp",
    "/ui/inbox",
    "/metrics",
    "/health",
];

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_at_every_door() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let token = office.token();
    for path in DOORS {
        let ask = |host: &str, more: &str| {
            let head = format!(
                "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{more}connection: close\r\n\r\n"
            );
            status(&raw(&office, head.as_bytes()))
        };
        // DNS rebinding: the attacker's host name resolves to 127.0.0.1.
        assert_eq!(ask("evil.test", ""), 421, "{path}");
        assert_eq!(ask("evil.test:80", ""), 421, "{path}");
        assert_eq!(ask("localhost.evil.test", ""), 421, "{path}");
        assert_eq!(ask("127.0.0.1.evil.test", ""), 421, "{path}");
        assert_eq!(ask("localhost", "host: evil.test\r\n"), 400, "{path}: two host headers");
        assert_eq!(ask("localhost@evil.test", ""), 400, "{path}: not a host name");
        assert_eq!(ask("localhost", "origin: https://evil.test\r\n"), 403, "{path}");
        assert_eq!(ask("localhost", "origin: null\r\n"), 403, "{path}");
    }
    // Browsers open WebSockets to other origins without a preflight request.
    let upgrade = |origin: &str| {
        let head = format!(
            "GET /map?token={token} HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let address = office.url().trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 512];
        let count = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..count]).into_owned()
    };
    assert_eq!(status(&upgrade("https://evil.test")), 403);
    assert_eq!(status(&upgrade("null")), 403);
    let opened = upgrade("http://localhost:3000");
    assert_eq!(status(&opened), 101, "{opened}");
}

#[tokio::test]
async fn nothing_is_decompressed() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let token = office.token();
    // Gzip of a thousand zeros; any body would do, because the content is not read.
    let compressed = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0x63, 0x60, 0x18, 5, 0xa3, 0x60, 0x14, 0x0c, 0x57, 0, 0, 0x2c,
        0xe4, 0x7f, 0xed, 0xe8, 3, 0, 0,
    ];
    for path in
        ["/x-posthaste/rpc", "/map/rpc", "/mcp", "/messages", "/api/messages", "/message", "/ui/sign-in"]
    {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let mut bytes = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
                 content-encoding: {coding}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                compressed.len()
            )
            .into_bytes();
            bytes.extend(compressed);
            let answer = raw(&office, &bytes);
            assert!((400..500).contains(&status(&answer)) || answer.contains("-32700"), "{path}: {answer}");
        }
    }
    // Nor are WebSocket frames: the extension is not negotiated.
    let head = format!(
        "GET /map HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    );
    let mut stream = TcpStream::connect(office.url().trim_start_matches("http://")).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 1024];
    let count = stream.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..count]).to_lowercase();
    assert_eq!(status(&answer), 101, "{answer}");
    assert!(!answer.contains("permessage-deflate"), "{answer}");
    // Responses are not compressed either, so that a secret cannot be guessed from their length.
    let head = format!(
        "GET /status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\naccept-encoding: gzip, br\r\nconnection: close\r\n\r\n"
    );
    assert!(!raw(&office, head.as_bytes()).to_lowercase().contains("content-encoding"));
}

#[tokio::test]
async fn oversized_requests_are_refused_at_every_door() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    // A connection for each request: it is closed when a body is refused.
    let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let token = office.token().to_owned();
    let big = "x".repeat(3 << 20);
    let call = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let bodies = [
        ("/x-posthaste/rpc", call("x-posthaste/send", json!({ "to": ["a"], "body": big }))),
        ("/map/rpc", call("map/send", json!({ "to": "a", "payload": big }))),
        ("/mcp", call("tools/call", json!({ "name": big, "arguments": {} }))),
        ("/messages", json!({ "body": big })),
        ("/api/messages", json!({ "to": "a", "text": big })),
        ("/message", json!({ "body": big })),
        ("/ui/sign-in", json!(big)),
    ];
    for (path, body) in &bodies {
        let sent = http
            .post(format!("{}{path}", office.url()))
            .bearer_auth(&token)
            .body(body.to_string())
            .send()
            .await;
        // The server may close the connection while the client is still sending.
        if let Ok(answer) = sent {
            assert_eq!(answer.status().as_u16(), 413, "{path}");
        }
        // Without content-length: counted while it is read.
        let chunks = futures_util::stream::iter(
            body.to_string()
                .into_bytes()
                .chunks(1 << 16)
                .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()))
                .collect::<Vec<_>>(),
        );
        let body = reqwest::Body::wrap_stream(chunks);
        if let Ok(answer) =
            http.post(format!("{}{path}", office.url())).bearer_auth(&token).body(body).send().await
        {
            let status = answer.status().as_u16();
            assert!(matches!(status, 400 | 413), "{path} in pieces: {status}");
        }
    }
    // Long request lines and many headers.
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(100_000));
    assert!(matches!(status(&raw(&office, long.as_bytes())), 0 | 414 | 431));
    let many: String = (0..2_000).map(|n| format!("x-{n}: y\r\n")).collect();
    let many = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    assert!(matches!(status(&raw(&office, many.as_bytes())), 0 | 431));
    // Deep nesting: refused by the parser before the stack overflows.
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{}{}}}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    for path in ["/x-posthaste/rpc", "/map/rpc", "/mcp", "/messages", "/message"] {
        let answer = http
            .post(format!("{}{path}", office.url()))
            .bearer_auth(&token)
            .body(deep.clone())
            .send()
            .await
            .unwrap();
        assert!(answer.status().as_u16() < 500 || answer.status().as_u16() == 503, "{path}");
    }
    assert_eq!(office.get("/health").await.0, 200, "the server continues");
}

#[tokio::test]
async fn smuggled_requests_get_no_response() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let token = office.token();
    let auth = format!("host: localhost\r\nauthorization: Bearer {token}\r\n");
    for smuggled in [
        format!("POST /mcp HTTP/1.1\r\n{auth}content-length: 4\r\ncontent-length: 40\r\n\r\nping"),
        format!(
            "POST /mcp HTTP/1.1\r\n{auth}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /status HTTP/1.1\r\n{auth}\r\n"
        ),
        format!("POST /mcp HTTP/1.1\r\n{auth}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("GET /health HTTP/1.1\r\n{auth}x: a\rb\r\n\r\n"),
        format!("GET /health\u{0} HTTP/1.1\r\n{auth}\r\n"),
    ] {
        let answer = raw(&office, smuggled.as_bytes());
        // At most one response, to the first request, and none to the one hidden in its body.
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{smuggled:?}: {answer}");
        assert!(!answer.contains("active_users"), "{smuggled:?}: {answer}");
    }
}

#[tokio::test]
async fn input_cannot_inject_headers() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let evil = "a%0d%0aset-cookie:%20evil=1";
    let key = office.token();
    let page = http.get(format!("{}/ui/sign-in", office.url())).send().await.unwrap().text().await.unwrap();
    let word = page.split("name=\"word\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    for next in [
        format!("/ui/{evil}"),
        format!("/ui?{evil}"),
        format!("/r/{evil}/ui"),
        "//evil.test".to_owned(),
        "/ui%0d%0ax:y".to_owned(),
    ] {
        let signed = http.post(format!("{}/ui/sign-in", office.url()));
        let signed = signed.body(format!("word={word}&token={key}&next={next}")).send().await.unwrap();
        let cookies: Vec<_> = signed.headers().get_all("set-cookie").iter().collect();
        assert!(cookies.iter().all(|cookie| !cookie.to_str().unwrap().starts_with("evil")), "{cookies:?}");
        let led = signed.headers()["location"].to_str().unwrap();
        assert!(led.starts_with('/') && !led.starts_with("//"), "{led}");
    }
    // Values that are echoed: ids, hosts, origins, names in paths.
    for path in [
        format!("/ui/{evil}"),
        format!("/r/{evil}/health"),
        format!("/messages/thread/{evil}"),
        format!("/identity/{evil}"),
    ] {
        let request =
            http.get(format!("{}{path}", office.url())).bearer_auth(key).header("x-request-id", "a b");
        let answer = request.send().await.unwrap();
        assert!(answer.headers().get("set-cookie").is_none(), "{path}");
        assert!(
            !answer.headers()["x-request-id"].to_str().unwrap().contains(' '),
            "an id with a space is replaced"
        );
    }
}

/// Connections with half a head, half a body or nothing use one connection slot each; others are served meanwhile.
#[tokio::test]
async fn slow_peers_do_not_delay_others() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let address = office.url().trim_start_matches("http://");
    let mut slow = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(address).unwrap();
        let said = match n % 3 {
            0 => String::new(),
            1 => "GET /health HTTP/1.1\r\nhost: local".to_owned(),
            _ => format!(
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: 100000\r\n\r\n{{",
                office.token()
            ),
        };
        stream.write_all(said.as_bytes()).unwrap();
        slow.push(stream);
    }
    for _ in 0..20 {
        let started = Instant::now();
        assert_eq!(office.get("/health").await.0, 200);
        // In real time: a request takes milliseconds, a slow peer its whole timeout.
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }
    drop(slow);
}
