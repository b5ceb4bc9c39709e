//! Who is speaking: from what a request carries to an identity, and from an identity to the engine's caller.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{AgentId, Caller, RealmName, TokenRole};
use posthaste_engine::{Engine, EngineError};

use crate::http::errors::answer;
use crate::keys;
use crate::shared::Shared;

/// Somebody whose token was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the bearer is taken for.
    pub role: TokenRole,
    /// Whom the bearer is taken for.
    pub name: AgentId,
}

/// Why somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("a token is needed: send `Authorization: Bearer TOKEN`; `posthaste token create` makes one")]
    Missing,
    #[error("this token is unknown, expired or revoked")]
    Invalid,
    #[error(transparent)]
    Failed(#[from] EngineError),
}

impl Identity {
    /// The operator of this machine: whoever can read the admin's key, or anyone when authentication is off.
    pub(crate) fn operator() -> Self {
        Self { role: TokenRole::Admin, name: AgentId::new("admin").unwrap_or_else(|_| AgentId::office()) }
    }

    /// As the engine's caller, acting under its own name.
    pub fn caller(&self, via: &str) -> Caller {
        self.caller_as(self.name.clone(), via)
    }

    /// As the engine's caller, acting for an agent that it may act for.
    pub fn caller_as(&self, agent: AgentId, via: &str) -> Caller {
        match self.role {
            TokenRole::Admin => Caller::admin(agent, via),
            TokenRole::User | TokenRole::Agent => Caller::member(agent, via),
        }
    }
}

impl Shared {
    /// Finds out who bears a token. Without authentication everyone on this machine is its operator.
    pub async fn identify(&self, engine: &Engine, token: Option<&str>) -> Result<Identity, AuthError> {
        let Some(token) = token else {
            return if self.needs_token() { Err(AuthError::Missing) } else { Ok(Identity::operator()) };
        };
        match self.identify_hash(engine, keys::hash(token)).await? {
            Some(identity) => Ok(identity),
            None if !self.needs_token() => Ok(Identity::operator()),
            None => Err(AuthError::Invalid),
        }
    }

    /// Who bears the token with that hash: the admin's key, or a token of the realm that is still good.
    pub(crate) async fn identify_hash(
        &self,
        engine: &Engine,
        hash: [u8; 32],
    ) -> Result<Option<Identity>, EngineError> {
        if self.admin().has_hash(&hash) {
            return Ok(Some(Identity::operator()));
        }
        let known = engine.read(move |view| view.token_by_hash(&hash)).await?;
        Ok(known
            .and_then(|token| AgentId::new(&token.name).ok().map(|name| Identity { role: token.role, name })))
    }
}

/// The bearer token of a request's headers.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The realm a request is about: the one in its path, or the default. Only realms that exist can be reached from
/// outside; a request never makes one.
#[derive(Clone, Debug)]
pub struct Realm(pub Engine);

impl FromRequestParts<Shared> for Realm {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Response> {
        let unknown = || answer(StatusCode::NOT_FOUND, "no_such_realm", "there is no such realm");
        let params =
            RawPathParams::from_request_parts(parts, shared).await.map_err(IntoResponse::into_response)?;
        let named = params.iter().find(|(name, _)| *name == "realm").map(|(_, value)| value.to_owned());
        let name = match named {
            Some(name) => RealmName::new(name).map_err(|_| unknown())?,
            None => shared.default_realm().clone(),
        };
        if name != *shared.default_realm() && !shared.office().has_realm(&name) {
            return Err(unknown());
        }
        match shared.office().realm(&name).await {
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
