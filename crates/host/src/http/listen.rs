//! The accept loop: limits, timeouts, TLS, and an end that lets requests in progress finish.
//!
//! `axum::serve` has neither a header timeout nor a connection limit, so the loop is ours.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::idle::Activity;
use super::socket::{Slot, Socket};
use super::tls::Tls;

/// How patient the listener is, and how many peers it takes.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Speak TLS and nothing else.
    pub tls: Option<Arc<Tls>>,
    /// Open connections, WebSockets included. One more is answered with 503 and closed (over TLS
    /// just closed: a handshake is what an overloaded office cannot afford).
    pub max_connections: usize,
    /// From accepting a connection to the complete head of its first request.
    pub header_timeout: Duration,
    /// From the end of one request to the complete head of the next one.
    pub idle_timeout: Duration,
    /// From accepting a connection to the end of its TLS handshake.
    pub handshake_timeout: Duration,
    /// How long a peer may take no byte of an answer that is waiting for it.
    pub write_timeout: Duration,
    /// How long requests in progress may take to finish after `stop`; then they are cut off.
    pub grace: Duration,
}

/// How a request came in. Put into every request's extensions, beside axum's `ConnectInfo`.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    pub tls: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            tls: None,
            max_connections: 16_384,
            header_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(75),
            handshake_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(5),
        }
    }
}

/// Serves `app` until `stop` is cancelled and the last connection is closed, at the latest after the
/// grace period. Streams that end only by themselves (WebSocket, SSE) are asked by their doors: they
/// watch the same `stop`.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    options: ListenOptions,
    stop: CancellationToken,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let connections = TaskTracker::new();
    let kill = CancellationToken::new();
    let places = Arc::new(Semaphore::new(options.max_connections.min(Semaphore::MAX_PERMITS)));
    let farewells = Arc::new(Semaphore::new(MAX_FAREWELLS));
    let grace = options.grace;
    let http = http(&options, Executor { connections: connections.clone(), kill: kill.clone() });
    let shared = Arc::new(Host { app, options, http, stop: stop.clone(), kill: kill.clone() });
    tracing::info!(%address, tls = shared.options.tls.is_some(), "listening");

    while let Some((stream, peer)) = stop.run_until_cancelled(accept(&listener)).await {
        match places.clone().try_acquire_owned() {
            Ok(permit) => {
                let slot = Slot { _permit: permit, _open: connections.token() };
                connections.spawn(connection(shared.clone(), stream, peer, slot));
            }
            Err(_) => {
                tracing::warn!(%peer, "too many connections");
                if let (Ok(permit), None) = (farewells.clone().try_acquire_owned(), &shared.options.tls) {
                    connections.spawn(async move {
                        turn_away(stream).await;
                        drop(permit);
                    });
                }
            }
        }
    }

    drop(listener);
    connections.close();
    if timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(left = connections.len(), "grace period over, cutting off what is left");
        kill.cancel();
        // What is left are tasks that only need to be polled once; a stuck one must not hold us up.
        let _ = timeout(Duration::from_secs(1), connections.wait()).await;
    }
    Ok(())
}

/// Refusals in progress at once; beyond this a peer is dropped without a word.
const MAX_FAREWELLS: usize = 64;

/// Longest head of a request.
const MAX_HEAD: u32 = 64 * 1024;

/// What all connections of one listener share.
struct Host {
    app: Router,
    options: ListenOptions,
    http: Builder<Executor>,
    stop: CancellationToken,
    kill: CancellationToken,
}

fn http(options: &ListenOptions, executor: Executor) -> Builder<Executor> {
    let mut http = Builder::new(executor);
    // hyper's timer runs while a connection is idle too, so it gets the longer of the two times; the
    // shorter one, for the first request, is kept in `converse`, which also covers the bytes that
    // are read before the version of HTTP is known.
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.idle_timeout.max(options.header_timeout))
        .max_buf_size(MAX_HEAD as usize);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20))
        .max_header_list_size(MAX_HEAD);
    http
}

/// The next connection. Errors of `accept` are never the end: either the peer is gone already, or we
/// are out of descriptors, and then waiting for some to come back is the only thing that helps.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Responses are small, and a caller waits for each of them.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%peer, "TCP_NODELAY: {error}");
                }
                return (stream, peer);
            }
            Err(error) if is_of_the_peer(&error) => tracing::debug!("accept: {error}"),
            Err(error) => {
                tracing::error!("cannot accept connections: {error}");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection(shared: Arc<Host>, stream: TcpStream, peer: SocketAddr, slot: Slot) {
    let options = &shared.options;
    let (kill, patience) = (shared.kill.clone(), options.write_timeout);
    let Some(tls) = &options.tls else {
        let socket = Socket::new(stream, slot, kill, patience);
        return converse(&shared, socket, Peer { address: peer, tls: false }).await;
    };
    let handshake = timeout(options.handshake_timeout, tls.acceptor().accept(stream));
    match shared.stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => {
            let socket = Socket::new(stream, slot, kill, patience);
            converse(&shared, socket, Peer { address: peer, tls: true }).await;
        }
        Some(Ok(Err(error))) => tracing::debug!(%peer, "TLS handshake: {error}"),
        Some(Err(_)) => tracing::debug!(%peer, "TLS handshake took too long"),
        None => {}
    }
}

/// Serves one connection until it ends, falls silent or is asked to go.
async fn converse<S>(shared: &Host, socket: Socket<S>, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Host { app, options, http, stop, kill } = shared;
    let activity = Activity::begin();
    let service = service_fn(|request: Request<Incoming>| {
        let busy = activity.request();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(ConnectInfo(peer.address));
        let answer = app.clone().call(request);
        async move { answer.await.map(|response| response.map(|body| busy.until_sent(body))) }
    });
    let mut talk = pin!(http.serve_connection_with_upgrades(TokioIo::new(socket), service));
    let mut alarm = pin!(sleep_until(activity.quiet_at(options.header_timeout, options.idle_timeout)));
    let (mut asked_to_stop, mut leaving) = (false, false);
    loop {
        tokio::select! {
            end = talk.as_mut() => {
                if let Err(error) = end {
                    tracing::debug!(peer = %peer.address, "connection: {error}");
                }
                return;
            }
            () = alarm.as_mut() => {
                let quiet_at = activity.quiet_at(options.header_timeout, options.idle_timeout);
                if quiet_at > Instant::now() {
                    alarm.as_mut().reset(quiet_at);
                } else if leaving || activity.is_fresh() {
                    tracing::debug!(peer = %peer.address, "closed a silent connection");
                    return;
                } else {
                    // Politely first: over HTTP/2 the peer learns which of its requests were seen.
                    talk.as_mut().graceful_shutdown();
                    leaving = true;
                    alarm.as_mut().reset(Instant::now() + options.header_timeout);
                }
            }
            () = stop.cancelled(), if !asked_to_stop => {
                talk.as_mut().graceful_shutdown();
                asked_to_stop = true;
            }
            () = kill.cancelled() => return,
        }
    }
}

/// Says why, and waits a moment for the peer to hear it: closing at once with its request unread
/// would make the kernel throw the answer away.
async fn turn_away(mut stream: TcpStream) {
    const BODY: &str =
        r#"{"error":{"code":"too_many_connections","message":"this office has no connection left"}}"#;
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
                retry-after: 1\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len());
    let farewell = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    // Whether the peer listened is its own affair.
    let _ = timeout(Duration::from_secs(1), farewell).await;
}

/// Runs the streams of HTTP/2 connections, which are tasks of their own, under the same end.
#[derive(Clone)]
struct Executor {
    connections: TaskTracker,
    kill: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let kill = self.kill.clone();
        self.connections.spawn(async move { kill.run_until_cancelled_owned(stream).await.map(drop) });
    }
}
