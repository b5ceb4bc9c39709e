//! Calls of long-running commands (`tail`, `inbox --watch`), which go on after a restart of the server.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::exit::{Exit, Failure};
use super::realm_access::RealmAccess;

/// The pause before the first new attempt, and the longest between two.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A realm that a command calls repeatedly. A server that never answered is a failure; one that stops answering later is
/// called again until it answers.
pub(super) struct Persistent<'a> {
    realm: &'a RealmAccess,
    /// The realm at the address that the server has since a restart.
    moved: Option<RealmAccess>,
    retry: bool,
    reached: bool,
}

impl<'a> Persistent<'a> {
    pub(super) fn new(realm: &'a RealmAccess, retry: bool) -> Self {
        Self { realm, moved: None, retry, reached: false }
    }

    pub(super) async fn call<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut told = false;
        loop {
            let failure = match self.moved.as_ref().unwrap_or(self.realm).call(method, &params).await {
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
            self.moved = self.realm.again();
        }
    }
}

/// Whether the same call may succeed later: the server is unreachable, closing or busy.
fn is_passing(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable
        || matches!(failure.refusal(), Some("closing" | "busy" | "too_many_requests"))
}
