//! An agent that is a web hook: each turn is posted, the answer is the reply.

use std::time::Duration;

use super::{Reply, Turn, from_wire};
use posthaste_host::http::outgoing::{Outgoing, OutgoingError};
use posthaste_wire::mail::definition::HttpDefinition;
use posthaste_wire::mail::driver::TurnReply;

/// Number of attempts at a hook that is unreachable.
const MAX_ATTEMPTS: u32 = 3;
/// Pause after the first attempt; later ones are longer.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// A web hook that answers for an agent.
#[derive(Debug)]
pub(crate) struct Hook {
    given: HttpDefinition,
    outgoing: Outgoing,
}

impl Hook {
    pub(super) fn new(given: &HttpDefinition, outgoing: &Outgoing) -> Self {
        Self { given: given.clone(), outgoing: outgoing.clone() }
    }

    pub(super) async fn take(&self, turn: &Turn) -> Result<Reply, String> {
        let token = self.given.token_env.as_ref().and_then(|name| std::env::var(name).ok());
        let body = turn.to_wire(0);
        let timeout = Duration::from_secs_f64(self.given.timeout.clamp(0.1, 86_400.0));
        for attempt in 1..=MAX_ATTEMPTS {
            let posted = self.outgoing.post_json(&self.given.http, token.as_deref(), &body, timeout).await;
            match posted {
                Ok(answer) if answer.status.is_success() => {
                    let reply: TurnReply = serde_json::from_slice(&answer.body)
                        .map_err(|error| format!("the hook's reply cannot be read: {error}"))?;
                    return from_wire(reply);
                }
                Ok(answer) => return Err(format!("the hook answered {}", answer.status)),
                Err(OutgoingError::Unreachable(_)) if attempt < MAX_ATTEMPTS => {
                    tokio::time::sleep(RETRY_PAUSE * attempt).await;
                }
                Err(error) => return Err(format!("the hook: {error}")),
            }
        }
        Err("the hook cannot be reached".to_owned())
    }
}
