//! Signed messages through the AIRC door, beside the server's own sends in the same server.

use serde_json::json;

use super::{BODY, name};
use crate::clients::{Connection, Server, Signer};
use posthaste::cli::exit::Failure;

/// More than any machine takes in a second. Messages are signed beforehand, so that the client's own work is not measured.
const PER_SECOND: u64 = 15_000;

/// Registers agents and makes each take mail from the one before it.
pub(super) async fn register(server: &Server, agents: u32) -> Result<Vec<Signer>, Failure> {
    let mut senders = Vec::new();
    let mut line = Connection::to(&server.address, None, "/identity").await?;
    for agent in 0..agents {
        senders.push(Signer::register(&mut line, handle(agent), agent).await?);
    }
    for agent in 0..agents {
        let next = (agent + 1) % agents;
        for (who, action, other) in [(agent, "request", next), (next, "accept", agent)] {
            let token = &senders[who as usize].token;
            let mut line = Connection::to(&server.address, Some(token), "/consent").await?;
            let body = json!({ "action": action, "handle": handle(other) });
            // Where two agents write to each other both ways, one asking was enough.
            line.post(&body.to_string()).await?;
        }
    }
    Ok(senders)
}

/// As many messages as one line can need, signed.
pub(super) fn sign(
    sender: &Signer,
    me: u32,
    agents: u32,
    seconds: u64,
    in_flight: u32,
    most: u64,
) -> Vec<String> {
    let count = (PER_SECOND * seconds).div_ceil(in_flight.into()).min(most);
    let (to, payload) = (handle((me + 1) % agents), json!({ "type": "text", "content": BODY }));
    (0..count).map(|_| sender.sign(&to, &payload)).collect()
}

fn handle(agent: u32) -> String {
    name(agent).replace('-', "_")
}
