//! Changing the keys by which an agent proves who it is. Whoever held the old ones is out at once.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::agents::{Unregister, write};
use super::seen_keys::{self, SingleUseKey};
use super::tokens::CreateToken;
use super::{Decided, Write};
use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, Fact, Json, Millis, Sight, TokenRole};
use crate::sight;
use crate::store::all;

/// Puts new keys in the place of those that the door checked the change against, and ends every token of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeKeys {
    /// Whose.
    pub agent: AgentId,
    /// The keys as the door saw them; refused if somebody was quicker.
    pub before: Option<Json>,
    /// The keys from now on.
    pub keys: Json,
    /// Single-use keys of the proof.
    #[serde(default)]
    pub proof_keys: Vec<SingleUseKey>,
    /// SHA-256 of the token that opens the door from now on.
    #[serde(default)]
    pub token: Option<Vec<u8>>,
    /// The only door that token opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_door: Option<String>,
    /// When that token stops working.
    #[serde(default)]
    pub token_ends: Option<Millis>,
    /// Whether the agent leaves for good: nobody takes its name again.
    #[serde(default)]
    pub revoke: bool,
}

impl ChangeKeys {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Agent> {
        to.require_admin()?;
        let mut agent = to.agent_or_refuse(&self.agent)?;
        if agent.keys != self.before {
            return Err(Refusal::WrongState { agent: agent.id, state: "changing its keys".to_owned() }.into());
        }
        let unused = seen_keys::check(to, &agent.id, &self.proof_keys)?;
        agent.keys = Some(self.keys.clone());
        agent.updated_at = to.now;
        write(to, &agent)?;
        let changes = Json::from_value(&json!({ "keys": self.keys.value() }));
        let sight = sight::of_agent(to.db, &agent)?;
        let seq = to.emit(Fact::AgentUpdated { agent: agent.id.clone(), changes }, sight)?;
        unused.store(to, seq)?;
        end_tokens(to, &agent.id)?;
        if let Some(hash) = &self.token {
            let token = CreateToken {
                hash: hash.clone(),
                role: TokenRole::Agent,
                name: agent.id.to_string(),
                door: self.token_door.clone(),
                observe: false,
                expires_at: self.token_ends,
            };
            token.plan(to)?.write(to)?;
        }
        if self.revoke {
            let reason = Some("revoked".to_owned());
            let unregister = Unregister { agent: agent.id, reason, cause: None };
            agent = unregister.decide(to)?(to)?;
            agent.state = Agent::REVOKED.to_owned();
            write(to, &agent)?;
        }
        Ok(agent)
    }
}

fn end_tokens(to: &mut Write<'_>, agent: &AgentId) -> Decided<()> {
    let sql = "SELECT id FROM tokens WHERE name = ?1 AND role <> 'admin' AND revoked_at IS NULL ORDER BY id";
    let ids: Vec<String> = all(to.db, sql, [agent], |row| row.get(0))?;
    for token in ids {
        to.exec("UPDATE tokens SET revoked_at = ?2 WHERE id = ?1", (&token, to.now))?;
        to.emit(Fact::TokenRevoked { token }, Sight::Admins)?;
    }
    Ok(())
}
