//! Bearer tokens. The door makes the secret; the engine keeps its hash.

use serde::{Deserialize, Serialize};

use super::{Decided, Write, agents};
use crate::confusables::skeleton;
use crate::error::Refusal;
use crate::nouns::{AgentId, Fact, Millis, Sight, Token, TokenRole};
use crate::store::{one, rows};

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
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Token> {
        to.require_admin()?;
        let name = AgentId::new(&self.name).map_err(Refusal::from)?;
        agents::check_token(to, &name)?;
        check_hash(&self.hash)?;
        if let Some(at) = self.expires_at
            && at <= to.clock()
        {
            return Err(Refusal::AlreadyExpired { at }.into());
        }
        let known = one(to.db, "SELECT 1 FROM tokens WHERE hash = ?1", [&self.hash], |_| Ok(()))?;
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
            "INSERT INTO tokens(id, hash, role, name, door, observe, created_at, expires_at, revoked_at,
                       skeleton) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, ?9)";
        let Token { id, role, door, observe, created_at, expires_at, .. } = &token;
        let looks = skeleton(&token.name);
        let params = (id, &self.hash, role, &token.name, door, observe, created_at, expires_at, looks);
        to.exec(sql, params)?;
        // From now on the name is the token's: an agent that another token entered under it changes hands at once.
        // Nor does its bearer get what others own under that name.
        let sql = "UPDATE agents SET owner = NULL WHERE owner = ?1 AND id <> ?1 AND bearer IS NOT ?1 AND bearer IS NOT id";
        to.exec(sql, [&name])?;
        if let Some(agent) = rows::active_agent(to.db, &name)? {
            agents::reclaim(to, agent)?;
        }
        to.emit(Fact::TokenCreated { token: token.id.clone(), name: token.name.clone() }, Sight::Admins)?;
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
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Token> {
        to.require_admin()?;
        let sql = format!("SELECT {} FROM tokens WHERE id = ?1", rows::TOKEN);
        let mut token = one(to.db, &sql, [&self.id], rows::token)?.ok_or(Refusal::NoSuchToken)?;
        if token.revoked_at.is_none() {
            token.revoked_at = Some(to.now);
            to.exec("UPDATE tokens SET revoked_at = ?2 WHERE id = ?1", (&token.id, to.now))?;
            to.emit(Fact::TokenRevoked { token: token.id.clone() }, Sight::Admins)?;
        }
        Ok(token)
    }
}

/// Exchanges a valid token for another with the same bearer, role, door and right to observe. The old one is revoked in
/// the same step, so that two callers cannot both exchange it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenewToken {
    /// SHA-256 of the token that is given up.
    pub old: Vec<u8>,
    /// SHA-256 of the token that replaces it.
    pub hash: Vec<u8>,
    /// When the new token ends. Counts only for a token bound to the door that asks, which issued it; any other token
    /// keeps its end.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl RenewToken {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Token> {
        to.require_admin()?;
        check_hash(&self.old)?;
        let sql = format!("SELECT {} FROM tokens WHERE hash = ?1", rows::TOKEN);
        let old = one(to.db, &sql, [&self.old], rows::token)?;
        let old = old.filter(|token| token.is_valid(to.clock())).ok_or(Refusal::NoSuchToken)?;
        if old.role == TokenRole::Admin {
            let why = "an administrator's token is not renewed; make another and revoke this one";
            return Err(Refusal::BadValue { field: "token", why }.into());
        }
        let issued_here = old.door.as_ref().is_some_and(|door| *door == to.caller.via);
        let renewed = CreateToken {
            hash: self.hash.clone(),
            role: old.role,
            name: old.name,
            door: old.door,
            observe: old.observe,
            expires_at: if issued_here { self.expires_at } else { old.expires_at },
        };
        let renewed = renewed.apply(to)?;
        RevokeToken { id: old.id }.apply(to)?;
        Ok(renewed)
    }
}

fn check_hash(hash: &[u8]) -> Decided<()> {
    if hash.len() == 32 {
        return Ok(());
    }
    Err(Refusal::BadValue { field: "hash", why: "SHA-256 has 32 bytes" }.into())
}
