//! Messages between doors, on one server with every door open: what is sent through one door arrives at another with
//! everything that the other can show, and the answer comes back.

mod airc;
mod conversations;
mod files;
mod lossless;
mod map;
mod matrix;
mod mcp;
mod reservations;
mod server;
mod swarm;
mod table;

use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

/// Time limit for a message from any door to any other.
const CROSSING_TIMEOUT: Duration = Duration::from_secs(15);

/// A message to be sent.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) to: String,
    pub(super) subject: String,
    pub(super) body: String,
    /// The name of the conversation.
    pub(super) thread: String,
    /// `urgent`, `high`, `normal` or `low`.
    pub(super) priority: &'static str,
    pub(super) wants_ack: bool,
}

/// A message that arrived, in terms that all doors share. What a door does not show is absent.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) from: String,
    pub(super) subject: Option<String>,
    pub(super) body: String,
    pub(super) thread: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) wants_ack: Option<bool>,
    /// The message as the door shows it.
    pub(super) raw: Value,
}

/// An agent at one door.
pub(super) trait Correspondent {
    /// The agent's name.
    fn name(&self) -> String;

    /// Sends a message, which the door must accept.
    fn send<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()>;

    /// Waits for the message whose text contains `words`.
    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived>;

    /// Answers a message in its conversation.
    fn reply<'a>(&'a mut self, to: &'a Arrived, body: &'a str) -> LocalBoxFuture<'a, ()>;

    /// Acknowledges a message.
    fn acknowledge<'a>(&'a mut self, message: &'a Arrived) -> LocalBoxFuture<'a, ()>;

    /// Waits until the door shows that the last message sent was acknowledged by its recipient.
    fn hear_ack<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()>;
}

/// Polls until `look` finds something.
pub(super) async fn find<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(started.elapsed() < CROSSING_TIMEOUT, "not found in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The text of a JSON string.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
