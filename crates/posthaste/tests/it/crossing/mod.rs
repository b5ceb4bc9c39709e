//! One letter, every door: whatever is sent at one arrives at the other with all that the other can show, and the answer
//! finds its way back. One office with all doors open.

mod airc;
mod files;
mod leases;
mod map;
mod matrix;
mod mcp;
mod office;
mod swarm;
mod table;
mod talks;
mod whole;

use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

/// Longer than a letter may take from any door to any other.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is sent.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) to: String,
    pub(super) subject: String,
    pub(super) body: String,
    /// The conversation, by its name.
    pub(super) thread: String,
    /// `urgent`, `high`, `normal` or `low`.
    pub(super) priority: &'static str,
    pub(super) wants_ack: bool,
}

/// What arrived, in the words that all doors share. What a door does not show is absent.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) from: String,
    pub(super) subject: Option<String>,
    pub(super) body: String,
    pub(super) thread: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) wants_ack: Option<bool>,
    /// As the door showed it.
    pub(super) raw: Value,
}

/// An agent at one door, with that door's own means.
pub(super) trait Correspondent {
    /// Its name in the address book.
    fn name(&self) -> String;

    /// Sends a letter. The door must take it.
    fn send<'a>(&'a mut self, letter: &'a Letter) -> LocalBoxFuture<'a, ()>;

    /// Waits for the letter whose text has these words.
    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived>;

    /// Answers a letter in its conversation, in the way that the door has for it.
    fn reply<'a>(&'a mut self, to: &'a Arrived, body: &'a str) -> LocalBoxFuture<'a, ()>;

    /// Acknowledges a letter in the way that the door has for it.
    fn acknowledge<'a>(&'a mut self, letter: &'a Arrived) -> LocalBoxFuture<'a, ()>;

    /// Waits until the door shows that the last letter sent was acknowledged by its recipient.
    fn hear_ack<'a>(&'a mut self, letter: &'a Letter) -> LocalBoxFuture<'a, ()>;
}

/// Asks again and again until there is an answer.
pub(super) async fn find<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A member that is a text.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
