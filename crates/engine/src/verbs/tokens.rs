//! Bearer tokens. The door generates the secret; the engine stores its hash.

use serde::{Deserialize, Serialize};

use super::agents::{self, Reclaim};
use super::{Decide, Decided, Write};
use crate::confusables::skeleton;
use crate::error::Refusal;
use crate::nouns::{AgentId, Fact, Millis, Sight, Token, TokenRole};
use crate::store::{one, rows};

/// Creates a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateToken {
    /// SHA-256 of the token.
    pub hash: Vec<u8>,
    /// Its bearer's role.
    pub role: TokenRole,
    /// Its bearer's name.
    pub name: String,
    /// The only door that accepts it, by the door's tag; every door if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// Whether its bearer may observe traffic between others that is not marked private.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// When it expires.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl CreateToken {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Token> + use<'v>> {
        let token = self.plan(to)?;
        Ok(|to: &mut Write<'_>| token.write(to))
    }

    /// The token, if it may be created.
    pub(super) fn plan(&self, to: &Decide<'_>) -> Decided<NewToken> {
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
        let reclaim = match rows::active_agent(to.db, &name)? {
            Some(agent) => Reclaim::decide(to, &agent)?,
            None => None,
        };
        Ok(NewToken { token, name, hash: self.hash.clone(), reclaim })
    }
}

/// A token that is to be created.
pub(super) struct NewToken {
    token: Token,
    name: AgentId,
    hash: Vec<u8>,
    /// The active agent of the token's name, if another token registered it.
    reclaim: Option<Reclaim>,
}

impl NewToken {
    pub(super) fn write(self, to: &mut Write<'_>) -> rusqlite::Result<Token> {
        let Self { token, name, hash, reclaim } = self;
        let sql =
            "INSERT INTO tokens(id, hash, role, name, door, observe, created_at, expires_at, revoked_at,
                       skeleton) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, ?9)";
        let Token { id, role, door, observe, created_at, expires_at, .. } = &token;
        let looks = skeleton(&token.name);
        let params = (id, &hash, role, &token.name, door, observe, created_at, expires_at, looks);
        to.exec(sql, params)?;
        // From now on the name is the token's: an agent that another token registered under it changes hands at once, and
        // agents that others own under that name lose this owner.
        let sql = "UPDATE agents SET owner = NULL WHERE owner = ?1 AND id <> ?1 AND bearer IS NOT ?1 AND bearer IS NOT id";
        to.exec(sql, [&name])?;
        if let Some(reclaim) = reclaim {
            reclaim.write(to)?;
        }
        to.emit(Fact::TokenCreated { token: token.id.clone(), name: token.name.clone() }, Sight::Admins)?;
        Ok(token)
    }
}

/// Revokes a token, at once and for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevokeToken {
    /// The token.
    pub id: String,
}

impl RevokeToken {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Token> + use<'v>> {
        to.require_admin()?;
        let sql = format!("SELECT {} FROM tokens WHERE id = ?1", rows::TOKEN);
        let token = one(to.db, &sql, [&self.id], rows::token)?.ok_or(Refusal::NoSuchToken)?;
        Ok(|to: &mut Write<'_>| revoke(to, token))
    }
}

/// Revokes a token, unless it is revoked.
fn revoke(to: &mut Write<'_>, mut token: Token) -> rusqlite::Result<Token> {
    if token.revoked_at.is_none() {
        token.revoked_at = Some(to.now);
        to.exec("UPDATE tokens SET revoked_at = ?2 WHERE id = ?1", (&token.id, to.now))?;
        to.emit(Fact::TokenRevoked { token: token.id.clone() }, Sight::Admins)?;
    }
    Ok(token)
}

/// Exchanges a valid token for another with the same bearer, role, door and right to observe. The old one is revoked by the
/// same command, so that two callers cannot both exchange it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenewToken {
    /// SHA-256 of the old token.
    pub old: Vec<u8>,
    /// SHA-256 of the new token.
    pub hash: Vec<u8>,
    /// When the new token expires. Applies only to a token that is bound to the calling door, which issued it; any other
    /// token keeps its end.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl RenewToken {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Token> + use<'v>> {
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
            name: old.name.clone(),
            door: old.door.clone(),
            observe: old.observe,
            expires_at: if issued_here { self.expires_at } else { old.expires_at },
        };
        let renewed = renewed.plan(to)?;
        Ok(|to: &mut Write<'_>| {
            let renewed = renewed.write(to)?;
            revoke(to, old)?;
            Ok(renewed)
        })
    }
}

fn check_hash(hash: &[u8]) -> Decided<()> {
    if hash.len() == 32 {
        return Ok(());
    }
    Err(Refusal::BadValue { field: "hash", why: "SHA-256 has 32 bytes" }.into())
}
