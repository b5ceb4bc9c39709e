//! Bearer tokens. The door makes the secret; the engine keeps its hash.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply, agents};
use crate::error::Refusal;
use crate::nouns::{AgentId, Fact, Millis, Sight, Token, TokenRole};
use crate::skeleton::skeleton;
use crate::store::{exec, one, rows};

/// Keeps a new token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateToken {
    /// SHA-256 of the token.
    pub hash: Vec<u8>,
    /// What its bearer is taken for.
    pub role: TokenRole,
    /// Whom its bearer is taken for.
    pub name: String,
    /// When it stops working.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl CreateToken {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Token> {
        to.require_admin()?;
        let name = AgentId::new(&self.name).map_err(Refusal::from)?;
        agents::check_token(to, &name)?;
        if self.hash.len() != 32 {
            return Err(Refusal::BadValue { field: "hash", why: "SHA-256 has 32 bytes" }.into());
        }
        if let Some(at) = self.expires_at
            && at <= to.clock()
        {
            return Err(Refusal::AlreadyExpired { at }.into());
        }
        let known = one(to.books, "SELECT 1 FROM tokens WHERE hash = ?1", [&self.hash], |_| Ok(()))?;
        if known.is_some() {
            return Err(Refusal::BadValue { field: "hash", why: "this token is known already" }.into());
        }
        let token = Token {
            id: to.fresh_id().to_string(),
            role: self.role,
            name: self.name.clone(),
            created_at: to.now,
            expires_at: self.expires_at,
            revoked_at: None,
        };
        let sql = "INSERT INTO tokens(id, hash, role, name, created_at, expires_at, revoked_at, skeleton)
                   VALUES(?1, ?2, ?3, ?4, ?5, ?6, NULL, ?7)";
        let looks = skeleton(&token.name);
        let params =
            (&token.id, &self.hash, token.role, &token.name, token.created_at, token.expires_at, looks);
        exec(to.books, sql, params)?;
        // From now on the name is the token's: an agent that another token entered under it changes hands at once.
        // Nor does its bearer get what others own under that name.
        let sql = "UPDATE agents SET owner = NULL WHERE owner = ?1 AND id <> ?1 AND bearer IS NOT ?1 AND bearer IS NOT id";
        exec(to.books, sql, [&name])?;
        if let Some(agent) = rows::active_agent(to.books, &name)? {
            agents::reclaim(to, agent)?;
        }
        to.tell(Fact::TokenCreated { token: token.id.clone(), name: token.name.clone() }, Sight::Admins)?;
        Ok(token)
    }
}

/// Makes a token useless, at once and for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevokeToken {
    /// Which.
    pub id: String,
}

impl RevokeToken {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Token> {
        to.require_admin()?;
        let sql = format!("SELECT {} FROM tokens WHERE id = ?1", rows::TOKEN);
        let mut token = one(to.books, &sql, [&self.id], rows::token)?.ok_or(Refusal::NoSuchToken)?;
        if token.revoked_at.is_none() {
            token.revoked_at = Some(to.now);
            exec(to.books, "UPDATE tokens SET revoked_at = ?2 WHERE id = ?1", (&token.id, to.now))?;
            to.tell(Fact::TokenRevoked { token: token.id.clone() }, Sight::Admins)?;
        }
        Ok(token)
    }
}
