//! Extractors: the authenticated caller, checked before the body is read, and the body as JSON.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use posthaste_engine::Engine;
use posthaste_engine::nouns::{RealmName, TokenRole};
use posthaste_wire::mail::{Owner, OwnerRole};
use serde_json::Value;

use super::errors::DoorError;
use crate::Door;
use crate::runtime::{Runtime, VIA};
use posthaste_host::caller::{Identity, Realm, TokenRef, bearer};
use posthaste_host::http::rate::Turn;

/// A caller whose token was checked.
#[derive(Debug)]
pub(super) struct AuthedCaller {
    pub(super) identity: Identity,
    pub(super) engine: Engine,
    /// The token, if it can expire or be revoked.
    pub(super) pass: Option<TokenRef>,
}

impl AuthedCaller {
    /// The caller's instance here.
    pub(super) fn owner(&self) -> Owner {
        let role = match self.identity.role {
            TokenRole::Admin => OwnerRole::Admin,
            TokenRole::User => OwnerRole::User,
            TokenRole::Agent => OwnerRole::Swarm,
        };
        Owner { role, id: self.identity.name.to_string(), swarm: self.engine.realm().to_string() }
    }

    pub(super) fn runtime<'a>(&self, door: &'a Door) -> Result<&'a Runtime, DoorError> {
        door.runtime(self.engine.realm()).ok_or_else(DoorError::no_swarm)
    }

    async fn check(parts: &mut Parts, door: &Door) -> Result<Self, Response> {
        let Realm(engine) = Realm::from_request_parts(parts, door).await?;
        let token = bearer(&parts.headers).filter(|token| !token.is_empty());
        match door.authenticate(&engine, token, VIA).await {
            Ok((identity, pass)) => {
                let turn = door.bucket_of(&engine, &identity, pass.as_ref()).take();
                let engine = door.engine_for(&engine, &identity, pass.as_ref());
                if turn.is_granted() { Ok(Self { identity, engine, pass }) } else { Err(too_often(turn)) }
            }
            Err(error) => Err(DoorError::from(error).into_response()),
        }
    }

    fn needs(self, allowed: bool, need: &str) -> Result<Self, DoorError> {
        if allowed { Ok(self) } else { Err(DoorError::new(StatusCode::FORBIDDEN, need)) }
    }
}

/// A user or an administrator.
#[derive(Debug)]
pub(super) struct User(pub(super) AuthedCaller);

/// An administrator.
#[derive(Debug)]
pub(super) struct Admin(pub(super) AuthedCaller);

/// Another swarm.
#[derive(Debug)]
pub(super) struct Agent(pub(super) AuthedCaller);

impl FromRequestParts<Door> for User {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Response> {
        let caller = AuthedCaller::check(parts, door).await?;
        let allowed = caller.identity.role != TokenRole::Agent;
        caller
            .needs(allowed, "this needs the role user or admin")
            .map(Self)
            .map_err(IntoResponse::into_response)
    }
}

impl FromRequestParts<Door> for Admin {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Response> {
        let caller = AuthedCaller::check(parts, door).await?;
        let allowed = caller.identity.role == TokenRole::Admin;
        caller.needs(allowed, "this needs the role admin").map(Self).map_err(IntoResponse::into_response)
    }
}

impl FromRequestParts<Door> for Agent {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Response> {
        let caller = AuthedCaller::check(parts, door).await?;
        // Without authentication the server cannot tell swarms from other callers.
        let allowed = caller.identity.role == TokenRole::Agent || !door.needs_token();
        caller.needs(allowed, "this needs the role agent").map(Self).map_err(IntoResponse::into_response)
    }
}

/// Any caller, within the rate limit of its address.
#[derive(Debug)]
pub(super) struct RateLimited;

impl FromRequestParts<Door> for RateLimited {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Response> {
        let Some(ConnectInfo(address)) = parts.extensions.get::<ConnectInfo<SocketAddr>>() else {
            return Ok(Self);
        };
        let turn = door.limiter().take_from("mail public", address.ip(), door.rates().requests);
        if turn.is_granted() {
            return Ok(Self);
        }
        Err(too_often(turn))
    }
}

fn too_often(turn: Turn) -> Response {
    let why = "too many requests; try again later";
    let mut response = DoorError::new(StatusCode::TOO_MANY_REQUESTS, why).into_response();
    turn.write(response.headers_mut());
    response
}

/// A protocol whose form a caller requests where two protocols share a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Mail,
    Airc,
}

/// The protocol that a caller chose with `?protocol=mail` or `?protocol=airc`.
#[derive(Debug)]
pub(super) struct RequestedProtocol(pub(super) Option<Protocol>);

impl FromRequestParts<Door> for RequestedProtocol {
    type Rejection = Response;
    async fn from_request_parts(parts: &mut Parts, _: &Door) -> Result<Self, Response> {
        let query = parts.uri.query().unwrap_or_default();
        match query.split('&').find_map(|pair| pair.strip_prefix("protocol=")) {
            None => Ok(Self(None)),
            Some("mail") => Ok(Self(Some(Protocol::Mail))),
            Some("airc") => Ok(Self(Some(Protocol::Airc))),
            Some(_) => Err(DoorError::bad("field `protocol` must be mail or airc").into_response()),
        }
    }
}

/// A body that is JSON, regardless of its content type.
#[derive(Debug)]
pub(super) struct Json(pub(super) Value);

impl FromRequest<Door> for Json {
    type Rejection = Response;
    async fn from_request(request: Request, door: &Door) -> Result<Self, Response> {
        let bytes = Bytes::from_request(request, door).await.map_err(unreadable)?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(DoorError::bad(format!("the body is not JSON: {error}")).into_response()),
        }
    }
}

fn unreadable(rejection: BytesRejection) -> Response {
    DoorError::new(rejection.status(), rejection.body_text()).into_response()
}

/// The address by which this request reached the server.
pub(super) fn own_url(headers: &HeaderMap, secure: bool) -> String {
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("{}://{host}", if secure { "https" } else { "http" })
}

/// The swarm's name in a realm that hosts none is the realm's.
pub(super) fn swarm_name(realm: &RealmName) -> &str {
    realm.as_str()
}
