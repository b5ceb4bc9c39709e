//! What stands before every door: Host and Origin, ids, limits and the net for panics.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Extension;
use axum::routing::{get, post};
use posthaste_host::http::guard::Guard;
use posthaste_host::http::layers::{LayerOptions, RequestId, wrap};
use posthaste_host::http::listen::ListenOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Listening, listen};

async fn office(guard: Guard) -> Listening {
    let doors = Router::new()
        .route("/", get(|Extension(id): Extension<RequestId>| async move { format!("id={}", id.as_str()) }))
        .route("/size", post(|body: Bytes| async move { body.len().to_string() }))
        .route(
            "/panic",
            get(|| async {
                if true {
                    panic!("on purpose")
                }
            }),
        );
    let options = LayerOptions { guard, max_body: 3 << 20, body_timeout: Duration::from_millis(300) };
    listen(wrap(doors, options), ListenOptions::default()).await
}

async fn local() -> Listening {
    office(Guard::new(true, &["post.test".into()], &["https://app.test".into()]).unwrap()).await
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn hosts_and_origins() {
    let office = local().await;
    let table = [
        ("host: localhost:1", "200", "id="),
        ("host: post.test", "200", "id="),
        ("host: [::1]\r\norigin: http://localhost:5173", "200", "id="),
        ("host: localhost\r\norigin: https://app.test", "200", "id="),
        ("host: evil.test", "421", "host_not_allowed"),
        ("host: localhost\r\norigin: https://evil.test", "403", "origin_not_allowed"),
        ("host: localhost\r\norigin: null", "403", "origin_not_allowed"),
        ("host: localhost\r\nhost: evil.test", "400", "bad_host"),
        ("x: y", "400", "bad_host"),
    ];
    for (headers, expected, word) in table {
        for path in ["/", "/no-such-path"] {
            let answer =
                office.ask(&format!("GET {path} HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n")).await;
            let expected = if expected == "200" && path != "/" { "404" } else { expected };
            assert_eq!(status(&answer), expected, "{path} {headers}: {answer}");
            assert!(expected == "404" || answer.contains(word), "{headers}: {answer}");
        }
    }
    let answer =
        office.ask("GET http://evil.test/ HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), "421", "an absolute target counts too: {answer}");
}

#[tokio::test]
async fn every_answer_has_an_id() {
    let office = local().await;
    let ask = async |headers: &str| {
        office.ask(&format!("GET / HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\n\r\n")).await
    };
    let id = |answer: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        line.expect("an id").to_owned()
    };
    let (one, two) = (ask("").await, ask("").await);
    assert_ne!(id(&one), id(&two));
    assert!(one.ends_with(&format!("id={}", id(&one))), "the door sees it too: {one}");
    assert_eq!(id(&ask("x-request-id: mine-1\r\n").await), "mine-1");
    let long = "x".repeat(65);
    for odd in ["a b", "<script>", "", &long] {
        assert_ne!(id(&ask(&format!("x-request-id: {odd}\r\n")).await), odd);
    }
    id(&office.ask("GET / HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\n\r\n").await);
}

#[tokio::test]
async fn bodies_have_a_limit_and_must_move() {
    let office = local().await;
    let send = async |size: usize, sent: usize| {
        let head = format!(
            "POST /size HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n"
        );
        office.ask(&(head + &"x".repeat(sent))).await
    };
    // Above axum's own 2 MB.
    let answer = send(3 << 20, 3 << 20).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let answer = send((3 << 20) + 1, 0).await;
    assert_eq!(status(&answer), "413");
    assert!(answer.contains(r#""code":"too_large""#), "{answer}");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    let head =
        "POST /size HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = office.ask(&format!("{head}{}0\r\n\r\n", chunk.repeat(3) + "1\r\nx\r\n")).await;
    assert_eq!(status(&answer), "413", "without a length it is counted: {answer}");
    let answer = send(10, 5).await;
    assert_eq!(status(&answer), "400", "half a body and then nothing: {answer}");
}

#[tokio::test]
async fn a_client_that_sends_its_whole_body_first_reads_the_refusal() {
    let office = local().await;
    let size = 9 << 20;
    for (host, expected) in [("localhost", "413"), ("evil.test", "421")] {
        let mut socket = TcpStream::connect(office.address).await.unwrap();
        let head = format!("POST /size HTTP/1.1\r\nhost: {host}\r\ncontent-length: {size}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..9 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            socket.write_all(&[b'x'; 1 << 20]).await.unwrap();
        }
        let again = "GET /no-such-path HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        socket.write_all(again.as_bytes()).await.unwrap();
        let mut answers = String::new();
        socket.read_to_string(&mut answers).await.unwrap();
        assert_eq!(status(&answers), expected, "{answers}");
        assert!(answers.contains("HTTP/1.1 404"), "the connection goes on: {answers}");
    }
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let office = local().await;
    let answer = office.get("/panic").await;
    assert_eq!(status(&answer), "500");
    assert!(answer.contains(r#""code":"internal""#) && !answer.contains("on purpose"), "{answer}");
    assert_eq!(status(&office.get("/").await), "200");
}
