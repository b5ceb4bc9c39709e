//! Signed messages through the AIRC door, beside the office's own sends in the same server.

use posthaste_engine::stamp;
use posthaste_wire::signing::{SecretKey, sign_envelope};
use serde_json::{Value, json};

use super::line::Line;
use super::server::Server;
use super::{BODY, name};
use crate::cli::exit::Failure;

/// More than any machine takes in a second; so many are signed beforehand, so that the client's own work is not measured.
const PER_SECOND: u64 = 15_000;

/// Someone who signs.
pub(super) struct Sender {
    key: SecretKey,
    pub(super) token: String,
}

/// Registers agents and makes each take mail from the one before it.
pub(super) async fn register(server: &Server, agents: u32) -> Result<Vec<Sender>, Failure> {
    let mut senders = Vec::new();
    let mut line = Line::to(&server.address, None, "/identity").await?;
    for agent in 0..agents {
        let key = key(agent);
        let body = json!({
            "handle": handle(agent),
            "public_key": key.public().to_string(),
            "proof": key.sign(handle(agent).as_bytes()).to_string(),
        });
        let answer: Value = serde_json::from_slice(line.post(&body.to_string()).await?)?;
        let token = answer["session_token"].as_str().unwrap_or_default().to_owned();
        senders.push(Sender { key, token });
    }
    for agent in 0..agents {
        let next = (agent + 1) % agents;
        for (who, action, other) in [(agent, "request", next), (next, "accept", agent)] {
            let token = &senders[who as usize].token;
            let mut line = Line::to(&server.address, Some(token), "/consent").await?;
            let body = json!({ "action": action, "handle": handle(other) });
            // Where two agents write to each other both ways, one asking was enough.
            line.post(&body.to_string()).await?;
        }
    }
    Ok(senders)
}

/// As many messages as one line can need, signed.
pub(super) fn sign(
    sender: &Sender,
    me: u32,
    agents: u32,
    seconds: u64,
    in_flight: u32,
    most: u64,
) -> Vec<String> {
    let count = (PER_SECOND * seconds).div_ceil(in_flight.into()).min(most);
    let message = |_| {
        let mut envelope = json!({
            "v": "0.2",
            "id": format!("msg_{}", &stamp::secret()[..24]),
            "from": handle(me),
            "to": handle((me + 1) % agents),
            "timestamp": stamp::now() / 1_000,
            "nonce": &stamp::secret()[..32],
            "payload": { "type": "text", "content": BODY },
        });
        let signature = sign_envelope(&envelope.to_string(), &sender.key).map(|it| it.to_string());
        envelope["signature"] = json!(signature.unwrap_or_default());
        envelope.to_string()
    };
    (0..count).map(message).collect()
}

fn key(agent: u32) -> SecretKey {
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&agent.to_le_bytes());
    SecretKey::from_seed(&seed)
}

fn handle(agent: u32) -> String {
    name(agent).replace('-', "_")
}
