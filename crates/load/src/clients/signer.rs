//! An AIRC identity: registers, and signs what it sends.

use posthaste_engine::stamp;
use posthaste_wire::signing::{SecretKey, sign_envelope};
use serde_json::{Value, json};

use super::connection::Connection;
use posthaste::cli::exit::{Exit, Failure};

/// An identity with its key.
pub(crate) struct Signer {
    handle: String,
    key: SecretKey,
    pub(crate) token: String,
}

impl Signer {
    /// Registers a handle with a key that follows from its number, over a connection to `/identity`.
    pub(crate) async fn register(
        line: &mut Connection,
        handle: String,
        number: u32,
    ) -> Result<Self, Failure> {
        let mut seed = [7; 32];
        seed[..4].copy_from_slice(&number.to_le_bytes());
        let key = SecretKey::from_seed(&seed);
        let body = json!({
            "handle": handle,
            "public_key": key.public().to_string(),
            "proof": key.sign(handle.as_bytes()).to_string(),
        });
        let answer: Value = serde_json::from_slice(line.post(&body.to_string()).await?)?;
        match answer["session_token"].as_str() {
            Some(token) => Ok(Self { token: token.to_owned(), handle, key }),
            None => Err(Failure::new(Exit::Failed, format!("{handle} was not registered: {answer}"))),
        }
    }

    /// A signed message with a new id and nonce.
    pub(crate) fn sign(&self, to: &str, payload: &Value) -> String {
        let mut envelope = json!({
            "v": "0.2",
            "id": format!("msg_{}", &stamp::secret()[..24]),
            "from": self.handle,
            "to": to,
            "timestamp": stamp::now() / 1_000,
            "nonce": &stamp::secret()[..32],
            "payload": payload,
        });
        let signature = sign_envelope(&envelope.to_string(), &self.key).map(|it| it.to_string());
        envelope["signature"] = json!(signature.unwrap_or_default());
        envelope.to_string()
    }
}
