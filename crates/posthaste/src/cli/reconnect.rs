//! Calls of commands that stay (`tail`, `inbox --watch`): they outlive a restart of the server.

use std::time::Duration;

use serde_json::Value;

use super::desk::Desk;
use super::exit::{Exit, Failure};

/// The pause before the first new attempt, and the longest between two.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A server that a command goes on calling. A server that was never reached is a failure; one that stops answering later
/// is called again until it answers.
pub(super) struct Persistent<'a> {
    desk: &'a Desk,
    /// The server at the address it has since a restart.
    moved: Option<Desk>,
    retry: bool,
    reached: bool,
}

impl<'a> Persistent<'a> {
    pub(super) fn new(desk: &'a Desk, retry: bool) -> Self {
        Self { desk, moved: None, retry, reached: false }
    }

    pub(super) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.attempt(async |desk| desk.call(method, params.clone()).await).await
    }

    async fn attempt(
        &mut self,
        call: impl AsyncFn(&Desk) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut told = false;
        loop {
            let failure = match call(self.moved.as_ref().unwrap_or(self.desk)).await {
                Ok(answer) => {
                    if told {
                        eprintln!("the server answers again");
                    }
                    self.reached = true;
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            if !(self.retry && self.reached && is_passing(&failure)) {
                return Err(failure);
            }
            if !told && failure.exit == Exit::Unreachable {
                told = true;
                eprintln!("{}; trying again until it answers (Ctrl-C ends this)", failure.error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.moved = self.desk.again();
        }
    }
}

/// Whether the same call may succeed later: the server is away, closing or has too much to do.
fn is_passing(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable
        || matches!(failure.refusal(), Some("closing" | "busy" | "too_many_requests"))
}
