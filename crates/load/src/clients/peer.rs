//! One peer of a MAP server: a WebSocket, and as little work on this side as measuring allows.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use posthaste::cli::exit::{Exit, Failure};

/// What is read at once; small, because there may be many peers.
const READ_BUFFER: usize = 16 << 10;

pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
    next: u64,
    /// The agent it registered as.
    pub(crate) agent: String,
}

impl Peer {
    /// Connects as a participant; an agent also registers.
    pub(crate) async fn open(url: &str, kind: &str, name: &str) -> Result<Self, Failure> {
        let mut peer = Self::dial(url).await?;
        let hello = json!({ "protocolVersion": 1, "participantType": kind, "name": name });
        peer.call("map/connect", &hello).await?;
        if kind == "agent" {
            let answer = peer.call("map/agents/register", &json!({ "name": name })).await?;
            answer["agent"]["id"].as_str().unwrap_or_default().clone_into(&mut peer.agent);
        }
        Ok(peer)
    }

    /// Connects without a MAP handshake.
    pub(crate) async fn dial(url: &str) -> Result<Self, Failure> {
        // The address may bear a token.
        let shown = url.split('?').next().unwrap_or_default();
        let broken = |why: &dyn std::fmt::Display| Failure::new(Exit::Unreachable, format!("{shown}: {why}"));
        let rest = url.strip_prefix("ws://").ok_or_else(|| broken(&"not a ws:// address"))?;
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let stream = TcpStream::connect(host).await.map_err(|error| broken(&error))?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER).write_buffer_size(READ_BUFFER);
        let dialled = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await;
        let (socket, _) = dialled.map_err(|error| broken(&error))?;
        Ok(Self { socket, next: 0, agent: String::new() })
    }

    /// Calls a method and waits for its answer, which must not be an error. What else comes meanwhile is dropped.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let id = self.put(method, &params.to_string()).await?;
        self.flush().await?;
        loop {
            let text = self.frame().await?;
            if answered(&text) != Some(id) {
                continue;
            }
            let mut answer: Value = serde_json::from_str(&text)?;
            if let Some(error) = answer.get("error") {
                return Err(Failure::new(Exit::Failed, format!("{method}: {error}")));
            }
            return Ok(answer["result"].take());
        }
    }

    /// Puts a call into the buffer; gives its number.
    pub(crate) async fn put(&mut self, method: &str, params: &str) -> Result<u64, Failure> {
        self.next += 1;
        let id = self.next;
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.socket.feed(Message::text(text)).await.map_err(lost)?;
        Ok(id)
    }

    /// Sends what was put.
    pub(crate) async fn flush(&mut self) -> Result<(), Failure> {
        self.socket.flush().await.map_err(lost)
    }

    /// The next text that comes.
    pub(crate) async fn frame(&mut self) -> Result<Utf8Bytes, Failure> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Close(_))) | None => {
                    return Err(Failure::new(Exit::Unreachable, "the server closed a connection"));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(lost(error)),
            }
        }
    }

    /// Sends the beginning of a frame and drops the connection.
    pub(crate) async fn break_off(mut self) {
        // Text, masked, 256 bytes announced, four of the mask, and only the beginning of what was announced.
        let half = b"\x81\xfe\x01\x00\x00\x00\x00\x00{\"jsonrpc\":\"2.0\",\"id\":1,\"meth";
        let _ = self.socket.get_mut().write_all(half).await;
    }

    /// Closes the connection with a close frame.
    pub(crate) async fn close(mut self) {
        let _ = self.socket.close(None).await;
    }

    /// The next text if it has been received already.
    pub(crate) fn frame_at_hand(&mut self) -> Option<Result<Utf8Bytes, Failure>> {
        use futures_util::FutureExt;
        self.frame().now_or_never()
    }
}

fn lost(error: tokio_tungstenite::tungstenite::Error) -> Failure {
    Failure::new(Exit::Unreachable, format!("a connection was lost: {error}"))
}

/// The number of the call that a frame answers, if it is an answer.
pub(crate) fn answered(text: &str) -> Option<u64> {
    // Events and messages have a method before anything else that could be taken for an id.
    let head = &text[..text.len().min(64)];
    if head.contains("\"method\"") {
        return None;
    }
    number_after(text, "\"id\":")
}

/// The whole number that stands behind a name.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}
