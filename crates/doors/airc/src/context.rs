//! What every handler of this door starts from: the realm, the request's members, and the caller.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{Agent, AgentId, Caller, Millis, RealmName, Token, TokenRole};
use posthaste_engine::views::View;
use posthaste_engine::{Engine, Versioned};
use posthaste_wire::airc::{Fields, Handle, MAX_MESSAGE_BYTES};
use posthaste_wire::signing::PublicKey;

use super::VIA;
use super::errors::{Answer, DoorError};
use super::stored_keys::StoredKeys;
use crate::Door;
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::listen::Peer;
use posthaste_host::http::local::Local;
use posthaste_host::http::rate::{Quota, Turn};
use posthaste_host::keys;

/// The longest request body: a message and the members around it.
const MAX_BODY_BYTES: usize = MAX_MESSAGE_BYTES + (16 << 10);

/// A request without its body.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) door: Door,
    pub(super) engine: Engine,
    pub(super) headers: HeaderMap,
    pub(super) address: Option<IpAddr>,
    /// Whether the caller is on this machine.
    pub(super) local: bool,
    /// `/r/NAME` for realms that are not the default one.
    pub(super) prefix: String,
    secure: bool,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
}

impl FromRequestParts<Door> for Context {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Response> {
        let Realm(engine) = Realm::from_request_parts(parts, door).await?;
        let hash = bearer(&parts.headers).map(keys::hash);
        let known = hash.and_then(|hash| {
            door.token_cache().get(engine.realm(), engine.directory_version(), &hash)?.at(VIA).ok()
        });
        let engine = match known {
            Some((identity, pass)) => door.engine_for(&engine, &identity, Some(&pass)),
            None => engine,
        };
        let params =
            RawPathParams::from_request_parts(parts, door).await.map_err(IntoResponse::into_response)?;
        let params: Vec<_> = params.iter().map(|(name, it)| (name.to_owned(), it.to_owned())).collect();
        let named = params.iter().find(|(name, _)| name == "realm");
        let prefix = named.map(|(_, realm)| format!("/r/{realm}")).unwrap_or_default();
        let query = parts.uri.query().unwrap_or_default();
        let query = query_pairs(query);
        let peer = parts.extensions.get::<Peer>();
        let Local(local) = Local::of(parts);
        Ok(Self {
            door: door.clone(),
            engine,
            local,
            headers: parts.headers.clone(),
            address: peer.map(|peer| peer.address.ip()),
            secure: peer.is_some_and(|peer| peer.tls),
            prefix,
            params,
            query,
        })
    }
}

/// The pairs of a query string.
fn query_pairs(query: &str) -> Vec<(String, String)> {
    if query.is_empty() {
        return Vec::new();
    }
    let uri = format!("/?{query}").parse().unwrap_or_default();
    let read = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri);
    read.map(|axum::extract::Query(pairs)| pairs).unwrap_or_default()
}

/// Senders by realm and name. Which token belongs to which agent is cached once for all doors, not here.
pub(crate) type ActorCache = Versioned<(RealmName, AgentId), Actor>;

/// A caller whose token was checked, with its entry in the directory.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(super) caller: Caller,
    /// Shared with the cache.
    pub(super) agent: Arc<Agent>,
    key: Option<PublicKey>,
}

impl Context {
    /// A part of the path.
    pub(super) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A member of the query; one that is empty counts as absent.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A whole number of the query.
    pub(super) fn number(&self, name: &str, default: usize, max: usize) -> Answer<usize> {
        let Some(text) = self.query(name) else { return Ok(default) };
        match text.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number.min(max)),
            _ => Err(DoorError::bad(format!("{name}: a positive whole number is expected, not {text:?}"))),
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.query(name), Some("true" | "1" | "yes"))
    }

    /// Where this registry is reached, as the caller sees it.
    pub(super) fn base(&self) -> String {
        let host = self.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{host}{}", self.prefix)
    }

    /// Whether Safe Mode is offered to this caller.
    pub(super) fn safe_mode(&self) -> bool {
        self.door.safe_mode().holds(self.local)
    }

    /// Counts one use of a rate limit of an agent.
    pub(super) fn turn(&self, what: &'static str, handle: &str, quota: Quota) -> Answer<Turn> {
        // Agents of the same name in other realms have limits of their own.
        let turn = self.door.limiter().take(what, &format!("{}/{handle}", self.engine.realm()), quota);
        if turn.is_granted() { Ok(turn) } else { Err(DoorError::too_often(turn, what)) }
    }

    /// Counts one use of a rate limit of the address that the request came from.
    pub(super) fn turn_of_address(&self, what: &'static str, quota: Quota) -> Answer<()> {
        let Some(address) = self.address else { return Ok(()) };
        let turn = self.door.limiter().take_from(what, address, quota);
        if turn.is_granted() { Ok(()) } else { Err(DoorError::too_often(turn, what)) }
    }

    /// The agent that the token of this request belongs to. `claimed` is the sender that the request names: another name
    /// than the token's is refused, except from administrators, who may act as any agent.
    pub(super) async fn actor(&self, claimed: Option<&str>) -> Answer<Actor> {
        self.actor_and(claimed, |_, _| Ok(())).await.map(|(actor, ())| actor)
    }

    /// As [`Self::actor`], and reads something else in the same transaction.
    pub(super) async fn actor_and<T: Send + 'static>(
        &self,
        claimed: Option<&str>,
        look: impl FnOnce(&View<'_>, &Caller) -> Result<T, posthaste_engine::EngineError> + Send + 'static,
    ) -> Answer<(Actor, T)> {
        let bearer = self.bearer()?;
        let hash = bearer.hash();
        // Read before the database, so that an answer computed before a change is a miss after it.
        let (realm, version) = (self.engine.realm(), self.engine.directory_version());
        // As written and in the usual spelling: agents of other doors may have names that no handle has.
        let written = claimed.map(|text| text.trim().trim_start_matches('@').to_owned());
        let claimed = claimed.map(normalized);
        let seen = self.engine.read(move |view| {
            let Some((name, source)) = bearer.name(view, claimed.as_deref())? else {
                return Ok(Lookup::Unknown);
            };
            if claimed.is_some_and(|claimed| claimed != name)
                && written.is_some_and(|written| written != name)
            {
                return Ok(Lookup::Other(name));
            }
            let Ok(id) = AgentId::new(&name) else { return Ok(Lookup::Unknown) };
            let caller = Caller::member(id.clone(), VIA);
            match view.entry(&caller, &id) {
                Ok(agent) if agent.is_active() => {
                    let more = look(view, &caller)?;
                    Ok(Lookup::Known(Box::new(Actor::new(caller, agent)), source, more))
                }
                Ok(_) => Ok(Lookup::Gone),
                Err(error) if error.refusal().is_some() => Ok(Lookup::Absent(name)),
                Err(error) => Err(error),
            }
        });
        match seen.await? {
            Lookup::Known(actor, ..) if actor.agent.is_suspended() => {
                Err(DoorError::new(403, "identity_suspended", "this identity is suspended"))
            }
            Lookup::Known(actor, source, more) => {
                if let (Some(hash), Source::Token(token)) = (hash, source) {
                    drop(self.door.token_cache().put(realm, version, hash, &token));
                    let key = (realm.clone(), actor.agent.id.clone());
                    self.door.actors().put(version, key, (*actor).clone());
                }
                Ok((*actor, more))
            }
            Lookup::Unknown => Err(DoorError::unauthorized("this token is unknown, expired or revoked")),
            Lookup::Other(name) => Err(DoorError::forbidden(format!("this token speaks for {name} alone"))),
            Lookup::Gone => Err(DoorError::new(403, "identity_revoked", "this identity has been given up")),
            Lookup::Absent(name) => Err(DoorError::no_identity(&name)),
        }
    }

    /// The agent that the token of this request belongs to, if it is cached and the request does not name another sender.
    pub(super) fn cached_actor(&self, claimed: Option<&str>) -> Option<Actor> {
        let hash = self.bearer().ok()?.hash()?;
        let (realm, version) = (self.engine.realm(), self.engine.directory_version());
        let (bearer, _) = self.door.token_cache().get(realm, version, &hash)?.at(VIA).ok()?;
        // An administrator may act as any agent, which is looked up each time.
        if bearer.role == TokenRole::Admin {
            return None;
        }
        let actor = self.door.actors().get(version, &(realm.clone(), bearer.name))?;
        claimed.is_none_or(|claimed| normalized(claimed) == actor.handle()).then_some(actor)
    }

    /// The caller, where reading needs no token: an invalid token is still refused.
    pub(super) async fn optional_actor(&self) -> Answer<Option<Actor>> {
        if bearer(&self.headers).is_none() {
            return Ok(None);
        }
        match self.actor(None).await {
            Ok(actor) => Ok(Some(actor)),
            Err(_) if self.door.admin().fits(bearer(&self.headers).unwrap_or_default()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The hash of the token of this request, where it is a token that can be exchanged for another.
    pub(super) fn token_hash(&self) -> Answer<[u8; 32]> {
        match bearer(&self.headers) {
            Some(token) if self.door.admin().fits(token) => {
                Err(DoorError::bad("the server's own key is not renewed"))
            }
            Some(token) => Ok(keys::hash(token)),
            None => Err(DoorError::unauthorized(
                "send the token that is to be renewed: `Authorization: Bearer TOKEN`",
            )),
        }
    }

    /// By what right the bearer of this request acts for an identity, if by any: with a token of its own, or as an
    /// administrator.
    pub(super) async fn holds(&self, identity: &AgentId) -> Answer<Option<Holder>> {
        let Ok(bearer) = self.bearer() else { return Ok(None) };
        let Some(hash) = bearer.hash() else { return Ok(Some(Holder::Proven)) };
        let token = self.engine.read(move |view| view.token_by_hash(&hash)).await?;
        let token = token.filter(|token| token.opens(VIA));
        Ok(token.and_then(|token| match token.role {
            TokenRole::Admin => Some(Holder::Proven),
            _ if token.name != identity.as_str() => None,
            _ if token.door.is_some() => Some(Holder::Issued(hash)),
            _ => Some(Holder::Given { end: token.expires_at }),
        }))
    }

    fn bearer(&self) -> Answer<Bearer> {
        match bearer(&self.headers) {
            Some(token) if self.door.admin().fits(token) => Ok(Bearer::Operator),
            Some(token) => Ok(Bearer::Token(keys::hash(token))),
            None if !self.door.needs_token() => Ok(Bearer::Operator),
            None => Err(DoorError::unauthorized("a token is needed: send `Authorization: Bearer TOKEN`")),
        }
    }
}

/// By what right a caller may have a token for an identity.
pub(super) enum Holder {
    /// The identity is new, the request is signed with its key, the caller is an administrator, or no token is needed.
    Proven,
    /// The caller has a token that this door issued, by its hash.
    Issued([u8; 32]),
    /// The caller has a token that an administrator made.
    Given { end: Option<Millis> },
}

enum Bearer {
    /// May act as any agent.
    Operator,
    Token([u8; 32]),
}

impl Bearer {
    fn hash(&self) -> Option<[u8; 32]> {
        if let Self::Token(hash) = self { Some(*hash) } else { None }
    }

    /// The agent it acts as.
    fn name(
        &self,
        view: &View<'_>,
        claimed: Option<&str>,
    ) -> Result<Option<(String, Source)>, posthaste_engine::EngineError> {
        let operator = || Some((claimed.unwrap_or("admin").to_owned(), Source::Claimed));
        let Self::Token(hash) = self else { return Ok(operator()) };
        let token = view.token_by_hash(hash)?.filter(|token| token.opens(VIA));
        Ok(match token {
            Some(token) if token.role == TokenRole::Admin => operator(),
            Some(token) => Some((token.name.clone(), Source::Token(Box::new(token)))),
            None => None,
        })
    }
}

/// Where the caller's name comes from.
enum Source {
    /// From the token.
    Token(Box<Token>),
    /// From the request of a caller that may act as any agent.
    Claimed,
}

enum Lookup<T> {
    Known(Box<Actor>, Source, T),
    Unknown,
    Other(String),
    Gone,
    Absent(String),
}

impl Actor {
    pub(super) fn new(caller: Caller, agent: Agent) -> Self {
        let key = key_of(&agent);
        Self { caller, agent: Arc::new(agent), key }
    }

    pub(super) fn handle(&self) -> &str {
        self.agent.id.as_str()
    }

    /// The key that this identity signs with.
    pub(super) fn key(&self) -> Option<PublicKey> {
        self.key
    }
}

/// Whether an agent is an identity of this door. Agents of other doors are shown to callers with a token only.
pub(super) fn is_identity(agent: &Agent) -> bool {
    agent.via == VIA || key_of(agent).is_some()
}

/// The key that an identity signs with.
pub(super) fn key_of(agent: &Agent) -> Option<PublicKey> {
    agent.keys.as_ref()?;
    StoredKeys::of(agent).signing()
}

/// A name in its usual spelling: a handle's one, or as it is written for agents that came by other doors.
pub(super) fn normalized(text: &str) -> String {
    match Handle::parse(text) {
        Ok(handle) => handle.as_str().to_owned(),
        Err(_) => text.trim().trim_start_matches('@').to_owned(),
    }
}

/// The agent that a name means: one of exactly this name, or else of the normalized handle.
pub(super) fn find_name(view: &View<'_>, caller: &Caller, text: &str) -> Option<AgentId> {
    let exact = text.trim().trim_start_matches('@');
    let seen = |name: &str| AgentId::new(name).ok().filter(|id| view.agent(caller, id).is_ok());
    seen(exact).or_else(|| seen(&normalized(text)))
}

/// The agent that a message is for, where only one spelling is possible. No lookup is needed then: the engine refuses names
/// that no agent has.
pub(super) fn exact_name(text: &str) -> Option<AgentId> {
    let exact = text.trim().trim_start_matches('@');
    let plain = !exact.contains('@') && exact == normalized(exact);
    plain.then(|| AgentId::new(exact).ok()).flatten()
}

/// A caller without a token: it sees what is public.
pub(super) fn visitor() -> Caller {
    // Handles have no spaces, so no agent has this name.
    let name = AgentId::new("a visitor").unwrap_or_else(|_| AgentId::office());
    Caller::member(name, VIA)
}

/// A request's body as text.
#[derive(Debug)]
pub(super) struct Text(pub(super) String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = DoorError;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let too_large = || {
            DoorError::new(
                413,
                "payload_too_large",
                format!("a message has at most {MAX_MESSAGE_BYTES} bytes"),
            )
        };
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.into_response().status().as_u16() {
                413 => too_large(),
                status => DoorError::new(status, "bad_request", "the body could not be read"),
            }
        })?;
        if bytes.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        let text = String::from_utf8(bytes.into());
        text.map(Self).map_err(|_| DoorError::new(400, "invalid_json", "the body is not UTF-8"))
    }
}

/// A request's body as a JSON object.
#[derive(Debug)]
pub(super) struct Form(pub(super) Fields);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = DoorError;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let Text(text) = Text::from_request(request, state).await?;
        Ok(Self(Fields::parse(text)?))
    }
}
