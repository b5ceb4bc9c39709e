//! The accept loop: timeouts, the connection limit and graceful shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Extension};
use axum::routing::{any, get};
use posthaste_host::http::listen::{ListenOptions, Peer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::harness::{LONG, keep_alive, listen, rest};

/// A short timeout, long enough for a busy machine.
const SHORT: Duration = Duration::from_millis(300);

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

fn impatient() -> ListenOptions {
    ListenOptions { header_timeout: SHORT, idle_timeout: SHORT, grace: SHORT, ..ListenOptions::default() }
}

#[tokio::test]
async fn requests_carry_the_address_of_their_peer() {
    let door = |ConnectInfo(address): ConnectInfo<SocketAddr>, Extension(peer): Extension<Peer>| async move {
        format!("{} {} {}", address.ip(), address == peer.address, peer.tls)
    };
    let office = listen(Router::new().route("/", get(door)), ListenOptions::default()).await;
    assert_ne!(office.address.port(), 0);
    let answer = office.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1 true false"), "{answer}");
    assert!(office.close().await < Duration::from_secs(2), "there is no request to wait for");
}

#[tokio::test]
async fn silent_and_slow_peers_are_cut_off() {
    let office = listen(hello(), impatient()).await;
    // Nothing at all; half a head; the beginning of an HTTP/2 preface; a preface and then nothing.
    for opening in
        [&b""[..], b"GET / HTTP/1.1\r\nhost: loc", b"PRI * HT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut stream = office.connect().await;
        stream.write_all(opening).await.unwrap();
        let start = Instant::now();
        rest(&mut stream).await;
        let took = start.elapsed();
        assert!(took < Duration::from_secs(5), "{opening:?} held for {took:?}");
        assert!(took > SHORT / 2, "{opening:?} only {took:?}");
    }
}

#[tokio::test]
async fn slow_request_heads_are_cut_off() {
    let office = listen(hello(), impatient()).await;
    let mut stream = office.connect().await;
    let (mut read, mut write) = stream.split();
    let drip = async {
        write.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
        while write.write_all(b"y").await.is_ok() {
            sleep(SHORT / 10).await;
        }
    };
    let start = Instant::now();
    tokio::select! {
        () = drip => {}
        _ = rest(&mut read) => {}
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn idle_connections_end_and_busy_ones_do_not() {
    let slow = get(|| async {
        sleep(SHORT * 3).await;
        "slow"
    });
    // An answer that trickles, like a stream of events.
    let trickle = get(|| async {
        let pieces = tokio::io::duplex(64);
        let (mut write, read) = pieces;
        tokio::spawn(async move {
            for _ in 0..4 {
                sleep(SHORT / 2).await;
                write.write_all(b"drop ").await.unwrap();
            }
        });
        Body::from_stream(tokio_util::io::ReaderStream::new(read))
    });
    let app = hello().route("/slow", slow).route("/trickle", trickle);
    let office = listen(app, impatient()).await;

    let mut stream = office.connect().await;
    keep_alive(&mut stream, "hello").await;
    keep_alive(&mut stream, "hello").await;
    let start = Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert!(start.elapsed() < Duration::from_secs(5));

    assert!(office.get("/slow").await.ends_with("slow"));
    assert!(office.get("/trickle").await.matches("drop").count() == 4);
}

#[tokio::test]
async fn connections_beyond_the_limit_get_503() {
    let options = ListenOptions { max_connections: 2, ..ListenOptions::default() };
    let office = listen(hello(), options).await;
    let (mut one, mut two) = (office.connect().await, office.connect().await);
    keep_alive(&mut one, "hello").await;
    keep_alive(&mut two, "hello").await;

    let refused = office.get("/").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("too_many_connections"), "{refused}");
    keep_alive(&mut one, "hello").await;

    drop(two);
    // The connection is counted until the listener has noticed that it is closed.
    let freed = async {
        while !office.get("/").await.starts_with("HTTP/1.1 200") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, freed).await.expect("a connection becomes free");
}

#[tokio::test]
async fn shutdown_lets_requests_finish() {
    let begun = Arc::new(Notify::new());
    let announce = begun.clone();
    let slow = get(move || async move {
        announce.notify_one();
        sleep(SHORT).await;
        "done"
    });
    let options = ListenOptions { grace: LONG, ..ListenOptions::default() };
    let office = listen(hello().route("/slow", slow), options).await;
    let mut idle = office.connect().await;
    keep_alive(&mut idle, "hello").await;
    let mut busy = office.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    timeout(LONG, begun.notified()).await.expect("the request arrives");

    let address = office.address;
    let (took, answer) = tokio::join!(office.close(), rest(&mut busy));
    assert!(answer.ends_with("done"), "{answer}");
    assert!(took < LONG / 2, "{took:?}");
    assert_eq!(rest(&mut idle).await, "");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn shutdown_ends_after_the_grace_period() {
    let begun = Arc::new(Notify::new());
    let announce = begun.clone();
    let stuck = get(move || async move {
        announce.notify_one();
        std::future::pending::<&str>().await
    });
    let app = Router::new().route("/", stuck);
    let office = listen(app, ListenOptions { grace: SHORT, ..ListenOptions::default() }).await;
    let mut stuck = office.connect().await;
    stuck.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    timeout(LONG, begun.notified()).await.expect("the request arrives");
    let took = office.close().await;
    assert!(took >= SHORT && took < SHORT + Duration::from_secs(3), "{took:?}");
    assert_eq!(rest(&mut stuck).await, "");
}

#[tokio::test]
async fn a_websocket_counts_as_a_connection_and_ends_with_the_server() {
    let echo = any(|upgrade: WebSocketUpgrade| async {
        upgrade.on_upgrade(|mut socket| async move {
            while let Some(Ok(message)) = socket.recv().await {
                if let Message::Text(text) = message {
                    let _ = socket.send(Message::Text(text)).await;
                }
            }
        })
    });
    let options = ListenOptions { max_connections: 1, ..impatient() };
    let office = listen(hello().route("/ws", echo), options).await;
    let mut stream = office.connect().await;
    let head = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 512];
    let count = timeout(LONG, stream.read(&mut answer)).await.unwrap().unwrap();
    assert!(answer[..count].starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer[..count]));

    // Idle far beyond the timeout of HTTP, and still connected: a masked "hi" comes back bare.
    sleep(SHORT * 3).await;
    stream.write_all(&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i']).await.unwrap();
    let mut frame = [0; 4];
    timeout(LONG, stream.read_exact(&mut frame)).await.unwrap().unwrap();
    assert_eq!(frame, [0x81, 2, b'h', b'i']);
    assert!(
        office.get("/").await.starts_with("HTTP/1.1 503 "),
        "the WebSocket is the only allowed connection"
    );

    // This door does not watch `stop`, so it is cut off after the grace period.
    let took = office.close().await;
    assert!(took >= SHORT && took < SHORT + Duration::from_secs(3), "{took:?}");
    rest(&mut stream).await;
}

#[tokio::test]
async fn a_peer_that_stops_reading_is_cut_off() {
    let flood = get(|| async { Body::from(vec![b'x'; 64 << 20]) });
    let options = ListenOptions { write_timeout: SHORT, max_connections: 1, ..ListenOptions::default() };
    let office = listen(hello().route("/flood", flood), options).await;
    let mut stream = office.connect().await;
    stream.write_all(b"GET /flood HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let freed = async {
        while !office.get("/").await.starts_with("HTTP/1.1 200") {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, freed).await.expect("its connection becomes free");
}

#[tokio::test]
async fn http2_streams_finish_or_are_cut_off_too() {
    let (slow_begun, stuck_begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (slow_announce, stuck_announce) = (slow_begun.clone(), stuck_begun.clone());
    let slow = get(move || async move {
        slow_announce.notify_one();
        sleep(SHORT).await;
        "done"
    });
    let stuck = get(move || async move {
        stuck_announce.notify_one();
        std::future::pending::<&str>().await
    });
    let app = Router::new().route("/slow", slow).route("/stuck", stuck);
    let office = listen(app, ListenOptions { grace: SHORT * 3, ..ListenOptions::default() }).await;
    let io = hyper_util::rt::TokioIo::new(office.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, driver) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(driver);
    let mut ask = |path: &str| {
        let uri = format!("http://localhost{path}");
        sender.send_request(hyper::Request::get(uri).body(Body::empty()).unwrap())
    };
    let (slow, stuck) = (ask("/slow"), ask("/stuck"));
    let (slow, stuck, took) = tokio::join!(slow, stuck, async {
        let begun = async { tokio::join!(slow_begun.notified(), stuck_begun.notified()) };
        timeout(LONG, begun).await.expect("both requests arrive");
        office.close().await
    });
    assert_eq!(slow.unwrap().status().as_u16(), 200);
    assert!(stuck.is_err());
    assert!(took >= SHORT * 3 && took < SHORT * 3 + Duration::from_secs(3), "{took:?}");
}
