//! Changing the keys by which an agent proves its identity. The old keys stop working at once.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::agents::{Unregister, write};
use super::seen_keys::{self, SingleUseKey};
use super::tokens::CreateToken;
use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, Fact, Json, Millis, Sight, TokenRole};
use crate::sight;
use crate::store::{all, rows};

/// Replaces the keys that the door checked the change against, and revokes every token of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeKeys {
    /// The agent.
    pub agent: AgentId,
    /// The keys as the door saw them; refused if they have changed since.
    pub before: Option<Json>,
    /// The new keys.
    pub keys: Json,
    /// Single-use keys of the proof.
    #[serde(default)]
    pub proof_keys: Vec<SingleUseKey>,
    /// SHA-256 of the agent's new token.
    #[serde(default)]
    pub token: Option<Vec<u8>>,
    /// The only door that accepts that token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_door: Option<String>,
    /// When that token expires.
    #[serde(default)]
    pub token_ends: Option<Millis>,
    /// Whether the agent is unregistered for good: its name cannot be taken again.
    #[serde(default)]
    pub revoke: bool,
}

impl ChangeKeys {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Agent> + use<'v>> {
        to.require_admin()?;
        let mut agent = to.agent_or_refuse(&self.agent)?;
        if agent.keys != self.before {
            return Err(Refusal::WrongState { agent: agent.id, state: "changing its keys".to_owned() }.into());
        }
        let unused = seen_keys::check(to, &agent.id, &self.proof_keys)?;
        let token = match &self.token {
            Some(hash) => Some(self.token(hash).plan(to)?),
            None => None,
        };
        Ok(move |to: &mut Write<'_>| {
            agent.keys = Some(self.keys.clone());
            agent.updated_at = to.now;
            write(to, &agent)?;
            let changes = Json::from_value(&json!({ "keys": self.keys.value() }));
            let sight = sight::of_agent(to.db, &agent)?;
            let seq = to.emit(Fact::AgentUpdated { agent: agent.id.clone(), changes }, sight)?;
            unused.store(to, seq)?;
            revoke_tokens(to, &agent.id)?;
            if let Some(token) = token {
                token.write(to)?;
            }
            if self.revoke {
                let agent_now = rows::active_agent(to.db, &agent.id)?.unwrap_or(agent);
                let reason = Some("revoked".to_owned());
                let unregister = Unregister { agent: self.agent.clone(), reason, cause: None };
                agent = unregister.write(to, agent_now)?;
                agent.state = Agent::REVOKED.to_owned();
                write(to, &agent)?;
            }
            Ok(agent)
        })
    }

    fn token(&self, hash: &[u8]) -> CreateToken {
        CreateToken {
            hash: hash.to_owned(),
            role: TokenRole::Agent,
            name: self.agent.to_string(),
            door: self.token_door.clone(),
            observe: false,
            expires_at: self.token_ends,
        }
    }
}

fn revoke_tokens(to: &mut Write<'_>, agent: &AgentId) -> rusqlite::Result<()> {
    let sql = "SELECT id FROM tokens WHERE name = ?1 AND role <> 'admin' AND revoked_at IS NULL ORDER BY id";
    let ids: Vec<String> = all(to.db, sql, [agent], |row| row.get(0))?;
    for token in ids {
        to.exec("UPDATE tokens SET revoked_at = ?2 WHERE id = ?1", (&token, to.now))?;
        to.emit(Fact::TokenRevoked { token }, Sight::Admins)?;
    }
    Ok(())
}
