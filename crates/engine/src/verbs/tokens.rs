//! Bearer tokens. The door makes the secret; the engine keeps its hash.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply};
use crate::error::Refusal;
use crate::nouns::{Fact, Millis, Sight, Token, TokenRole};
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
    /// The only door it opens, by the door's tag; every door if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// Whether its bearer may observe traffic between others that is not marked private.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// When it stops working.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl CreateToken {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Token> {
        to.require_admin()?;
        crate::nouns::AgentId::new(&self.name).map_err(Refusal::from)?;
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
            door: self.door.clone(),
            observe: self.observe,
            created_at: to.now,
            expires_at: self.expires_at,
            revoked_at: None,
        };
        let sql =
            "INSERT INTO tokens(id, hash, role, name, door, observe, created_at, expires_at, revoked_at)
                   VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL)";
        let Token { id, role, name, door, observe, created_at, expires_at, .. } = &token;
        exec(to.books, sql, (id, &self.hash, role, name, door, observe, created_at, expires_at))?;
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
