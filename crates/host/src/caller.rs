//! Authentication: from the token of a request to an identity, and from an identity to the engine's caller.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::extract::{FromRef, FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{AgentId, Caller, Millis, RealmName, Token, TokenRole};
use posthaste_engine::verbs::agents::Bearer;
use posthaste_engine::{CallerQuota, Engine, EngineError, Refusal, Versioned, stamp};

use crate::Host;
use crate::http::errors::answer;
use crate::http::rate::{Bucket, network};
use crate::keys;

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its role.
    pub role: TokenRole,
    /// Its name.
    pub name: AgentId,
    /// Whether that holds in every realm of the server, or only in the one whose database has the token.
    pub everywhere: bool,
    /// Whether it may observe traffic between others that is not marked private.
    pub observe: bool,
}

/// A token that can expire or be revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRef {
    /// The token's id in the database; `None` for one that is not there and cannot be revoked.
    pub id: Option<String>,
    /// When it expires.
    pub expires_at: Option<Millis>,
}

/// Why authentication failed.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("a token is needed: send `Authorization: Bearer TOKEN`; `posthaste token create` makes one")]
    Missing,
    #[error("this token is unknown, expired or revoked; `posthaste token create` makes another")]
    Invalid,
    #[error("this token opens the {door} door only; `posthaste token create` makes one for every door")]
    OtherDoor { door: String },
    #[error(transparent)]
    Failed(#[from] EngineError),
}

impl Identity {
    /// The operator: a caller with the admin key, or every caller when authentication is off.
    pub fn operator() -> Self {
        let name = AgentId::new("admin").unwrap_or_else(|_| AgentId::office());
        Self { role: TokenRole::Admin, name, everywhere: true, observe: true }
    }

    /// Whether it administers the server, not just one of its realms.
    pub fn is_operator(&self) -> bool {
        self.role == TokenRole::Admin && self.everywhere
    }

    /// Its claim to a name.
    pub fn bearer(&self) -> Bearer {
        Bearer { name: self.name.clone(), admin: self.role == TokenRole::Admin }
    }

    /// As the engine's caller, acting under its own name.
    pub fn caller(&self, via: &str) -> Caller {
        self.caller_as(self.name.clone(), via)
    }

    /// As the engine's caller, acting for an agent that it may act for.
    pub fn caller_as(&self, agent: AgentId, via: &str) -> Caller {
        match self.role {
            TokenRole::Admin => Caller::admin(agent, via),
            TokenRole::User | TokenRole::Agent if self.observe => Caller::observer(agent, via),
            TokenRole::User | TokenRole::Agent => Caller::member(agent, via),
        }
    }
}

impl Host {
    /// The identity of a token's bearer at a door. Without authentication every caller is the operator.
    pub async fn identify(
        &self,
        engine: &Engine,
        token: Option<&str>,
        door: &str,
    ) -> Result<Identity, AuthError> {
        self.authenticate(engine, token, door).await.map(|(identity, _)| identity)
    }

    /// The same, with the token, if it can expire or be revoked.
    pub async fn authenticate(
        &self,
        engine: &Engine,
        token: Option<&str>,
        door: &str,
    ) -> Result<(Identity, Option<TokenRef>), AuthError> {
        let Some(token) = token else {
            return if self.needs_token() {
                Err(AuthError::Missing)
            } else {
                Ok((Identity::operator(), None))
            };
        };
        if let Some(key) = self.jwt()
            && token.bytes().filter(|byte| *byte == b'.').count() == 2
            && let Some((identity, expires_at)) = key.identify(token, engine.realm())
        {
            return Ok((identity, Some(TokenRef { id: None, expires_at: Some(expires_at) })));
        }
        match self.authenticate_hash(engine, keys::hash(token), door).await {
            Err(AuthError::Invalid) if !self.needs_token() => Ok((Identity::operator(), None)),
            recognised => recognised,
        }
    }

    /// Whether a caller may administer the server as a whole: callers with its key, and administrators of its default
    /// realm. The latter still may not read the mail of other realms.
    pub fn may_administer(&self, engine: &Engine, identity: &Identity) -> bool {
        let at_home = engine.realm() == self.default_realm();
        identity.is_operator() || (at_home && identity.role == TokenRole::Admin)
    }

    /// The bucket that counts a caller's calls: by token, or by name if the token is not in the database.
    pub fn bucket_of(&self, engine: &Engine, identity: &Identity, pass: Option<&TokenRef>) -> Bucket {
        let quota = self.rates().calls;
        let who = match pass.and_then(|pass| pass.id.as_deref()) {
            Some(id) => format!("{}/{id}", engine.realm()),
            None => format!("{}//{}", engine.realm(), identity.name),
        };
        self.limiter().bucket("calls", &who, quota)
    }

    /// The realm with the caller's quota: one quota per token, over all its connections and doors. The operator, and every
    /// caller of a server without authentication, has none.
    pub fn engine_for(&self, engine: &Engine, identity: &Identity, pass: Option<&TokenRef>) -> Engine {
        match account_of(engine, identity, pass) {
            None => engine.unhurried(),
            Some(account) => engine.with_caller_quota(self.shares().of(&account, engine.limits())),
        }
    }

    /// Another realm than that of the caller's token, on the token's account: its quota there is the one it has everywhere,
    /// and the number of realms that one token uses at once is limited.
    pub async fn visit(&self, account: Option<&str>, realm: &RealmName) -> Result<Engine, EngineError> {
        let Some(account) = account else { return Ok(self.office().realm(realm).await?.unhurried()) };
        // Taken before the realm is opened, so that realms being opened count.
        let share = self.shares().elsewhere(account, realm, self.office().limits())?;
        Ok(self.office().realm(realm).await?.with_caller_quota(share))
    }

    /// The bucket that counts calls of an unauthenticated caller.
    pub fn bucket_of_address(&self, address: Option<IpAddr>) -> Bucket {
        let who = address.map_or_else(|| "nowhere".to_owned(), network);
        self.limiter().bucket("strangers", &who, self.rates().calls)
    }

    /// Who bore a token of the realm when that was proved, by the token's id; only while the token is good.
    pub async fn authenticate_id(
        &self,
        engine: &Engine,
        id: String,
        door: &str,
    ) -> Result<(Identity, Option<TokenRef>), AuthError> {
        let token = engine.read(move |view| view.token_by_id(&id)).await?;
        let known = token.as_ref().and_then(KnownToken::new).ok_or(AuthError::Invalid)?;
        known.at(door).map(|(identity, pass)| (identity, Some(pass)))
    }

    /// Who bears the token with that hash: the admin's key, or a token of the realm that is still good.
    pub async fn authenticate_hash(
        &self,
        engine: &Engine,
        hash: [u8; 32],
        door: &str,
    ) -> Result<(Identity, Option<TokenRef>), AuthError> {
        if self.admin().has_hash(&hash) {
            return Ok((Identity::operator(), None));
        }
        let (cache, realm, version) = (self.token_cache(), engine.realm(), engine.directory_version());
        let known = match cache.get(realm, version, &hash) {
            Some(known) => known,
            None => {
                let token = engine.read(move |view| view.token_by_hash(&hash)).await?;
                token.and_then(|token| cache.put(realm, version, hash, &token)).ok_or(AuthError::Invalid)?
            }
        };
        known.at(door).map(|(identity, pass)| (identity, Some(pass)))
    }
}

/// The account of a caller: that of its token. The operator has none.
pub fn account_of(engine: &Engine, identity: &Identity, pass: Option<&TokenRef>) -> Option<String> {
    Some(match pass? {
        TokenRef { id: Some(id), .. } => format!("{}/{id}", engine.realm()),
        TokenRef { id: None, .. } => format!("{}//{}", engine.realm(), identity.name),
    })
}

/// The quotas of tokens in use.
#[derive(Debug, Default)]
pub struct Shares {
    known: Mutex<KnownShares>,
    /// The quotas of tokens in realms other than their own.
    elsewhere: Mutex<HashMap<String, HashMap<RealmName, Weak<CallerQuota>>>>,
}

/// Realms besides its own that one token uses at once.
const MAX_OTHER_REALMS: usize = 32;

#[derive(Debug, Default)]
struct KnownShares {
    by_token: HashMap<String, Weak<CallerQuota>>,
    /// Number of entries at which unused ones are removed.
    prune_at: usize,
}

/// Number of entries below which unused ones are kept.
const MIN_ENTRIES_TO_PRUNE: usize = 1_024;

impl Shares {
    fn of(&self, who: &str, limits: &Limits) -> Arc<CallerQuota> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = known.by_token.get(who).and_then(Weak::upgrade) {
            return share;
        }
        if known.by_token.len() >= known.prune_at.max(MIN_ENTRIES_TO_PRUNE) {
            known.by_token.retain(|_, share| share.strong_count() > 0);
            // Not again before the number has doubled, so that the cost per entry stays low.
            known.prune_at = known.by_token.len() * 2;
        }
        let share = CallerQuota::new(limits);
        known.by_token.insert(who.to_owned(), Arc::downgrade(&share));
        share
    }

    fn elsewhere(&self, who: &str, realm: &RealmName, limits: &Limits) -> Result<Arc<CallerQuota>, Refusal> {
        let mut by_token = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if by_token.len() >= MIN_ENTRIES_TO_PRUNE && !by_token.contains_key(who) {
            by_token.retain(|_, realms| realms.values().any(|share| share.strong_count() > 0));
        }
        let realms = by_token.entry(who.to_owned()).or_default();
        if let Some(share) = realms.get(realm).and_then(Weak::upgrade) {
            return Ok(share);
        }
        if realms.len() >= MAX_OTHER_REALMS {
            realms.retain(|_, share| share.strong_count() > 0);
        }
        if realms.len() >= MAX_OTHER_REALMS {
            let what = "projects in use at once with one token";
            return Err(Refusal::TooMany { what, limit: MAX_OTHER_REALMS as u64 });
        }
        let share = self.of(who, limits).branch();
        realms.insert(realm.clone(), Arc::downgrade(&share));
        Ok(share)
    }
}

/// Tokens cached at once, in all realms.
const CACHED_TOKENS: usize = 10_000;

/// The tokens of all realms that were looked up lately, for all doors. A change to the directory invalidates those of
/// its realm, so a revoked token is refused from the moment its revocation is answered.
#[derive(Debug)]
pub struct TokenCache {
    tokens: Versioned<(RealmName, [u8; 32]), KnownToken>,
    /// Hashes of tokens that were valid in some realm; they may have ended since.
    met: Mutex<HashSet<[u8; 32]>>,
}

/// What the database said about a valid token.
#[derive(Clone, Debug)]
pub struct KnownToken {
    identity: Identity,
    pass: TokenRef,
    /// The only door that the token opens.
    door: Option<String>,
}

impl KnownToken {
    /// Nothing if the token's name cannot be an agent's.
    fn new(token: &Token) -> Option<Self> {
        let name = AgentId::new(&token.name).ok()?;
        let observe = token.observe || token.role == TokenRole::Admin;
        let identity = Identity { role: token.role, name, everywhere: false, observe };
        let pass = TokenRef { id: Some(token.id.clone()), expires_at: token.expires_at };
        Some(Self { identity, pass, door: token.door.clone() })
    }

    /// Whom the token stands for at a door, if it opens that door.
    pub fn at(self, door: &str) -> Result<(Identity, TokenRef), AuthError> {
        match self.door {
            Some(only) if only != door => Err(AuthError::OtherDoor { door: only }),
            _ => Ok((self.identity, self.pass)),
        }
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        Self { tokens: Versioned::new(CACHED_TOKENS), met: Mutex::default() }
    }
}

impl TokenCache {
    /// The token of this hash, if it was looked up under this version of the realm's directory and has not expired.
    pub fn get(&self, realm: &RealmName, version: u64, hash: &[u8; 32]) -> Option<KnownToken> {
        let known = self.tokens.get(version, &(realm.clone(), *hash))?;
        known.pass.expires_at.is_none_or(|end| stamp::now() < end).then_some(known)
    }

    /// Whether a token of this hash was valid in some realm when it was last looked up. For counting, not for letting in.
    pub fn has_met(&self, hash: &[u8; 32]) -> bool {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).contains(hash)
    }

    /// Keeps a valid token. `version` was read before the token was looked up. Nothing if its name cannot be an agent's.
    pub fn put(&self, realm: &RealmName, version: u64, hash: [u8; 32], token: &Token) -> Option<KnownToken> {
        let known = KnownToken::new(token)?;
        self.tokens.put(version, (realm.clone(), hash), known.clone());
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() >= CACHED_TOKENS {
            met.clear();
        }
        met.insert(hash);
        Some(known)
    }
}

/// The bearer token of a request's headers.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The error code for a realm that does not exist.
pub const NO_SUCH_REALM: &str = "no_such_realm";

/// The realm a request is about: the one in its path, or the default. Only realms that exist can be reached from
/// outside; a request never makes one.
#[derive(Clone, Debug)]
pub struct Realm(pub Engine);

impl<S: Send + Sync> FromRequestParts<S> for Realm
where
    Host: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let host = Host::from_ref(state);
        let unknown = || answer(StatusCode::NOT_FOUND, NO_SUCH_REALM, "there is no such realm");
        let params =
            RawPathParams::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?;
        let named = params.iter().find(|(name, _)| *name == "realm").map(|(_, value)| value.to_owned());
        let name = match named {
            Some(name) => RealmName::new(name).map_err(|_| unknown())?,
            None => host.default_realm().clone(),
        };
        if name != *host.default_realm() && !host.office().has_realm(&name) {
            return Err(unknown());
        }
        match host.office().realm(&name).await {
            Ok(engine) => Ok(Self(engine)),
            Err(error) => Err(answer(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_is_read_whatever_the_case_of_its_scheme() {
        let token = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc").as_deref(), Some("abc"));
        assert_eq!(token("Basic abc"), None);
        assert_eq!(token("abc"), None);
    }
}
