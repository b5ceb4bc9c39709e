//! What every handler of this door starts from: the realm, what the request carries, and who is speaking.

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
use posthaste_wire::airc::{Handle, MAX_MESSAGE_BYTES};
use posthaste_wire::canonical::canonicalize;
use posthaste_wire::signing::PublicKey;
use serde_json::{Map, Value};

use super::VIA;
use super::errors::{Answer, Trouble};
use crate::Door;
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::listen::Peer;
use posthaste_host::http::local::Local;
use posthaste_host::http::rate::{Quota, Turn};
use posthaste_host::keys;

/// A message's own bytes and what stands around them in a request.
const MAX_BODY: usize = MAX_MESSAGE_BYTES + (16 << 10);

/// A request without its body.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) shared: Door,
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

    async fn from_request_parts(parts: &mut Parts, shared: &Door) -> Result<Self, Response> {
        let Realm(engine) = Realm::from_request_parts(parts, shared).await?;
        let hash = bearer(&parts.headers).map(keys::hash);
        let known = hash.and_then(|hash| {
            shared.token_cache().get(engine.realm(), engine.directory_version(), &hash)?.at(VIA).ok()
        });
        let engine = match known {
            Some((identity, pass)) => shared.engine_for(&engine, &identity, Some(&pass)),
            None => engine,
        };
        let params =
            RawPathParams::from_request_parts(parts, shared).await.map_err(IntoResponse::into_response)?;
        let params: Vec<_> = params.iter().map(|(name, it)| (name.to_owned(), it.to_owned())).collect();
        let named = params.iter().find(|(name, _)| name == "realm");
        let prefix = named.map(|(_, realm)| format!("/r/{realm}")).unwrap_or_default();
        let query = parts.uri.query().unwrap_or_default();
        let query = serde_urlencoded(query);
        let peer = parts.extensions.get::<Peer>();
        let Local(local) = Local::of(parts);
        Ok(Self {
            shared: shared.clone(),
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
fn serde_urlencoded(query: &str) -> Vec<(String, String)> {
    if query.is_empty() {
        return Vec::new();
    }
    let uri = format!("/?{query}").parse().unwrap_or_default();
    let read = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri);
    read.map(|axum::extract::Query(pairs)| pairs).unwrap_or_default()
}

/// Senders by realm and name. Whose token is whose is cached once for all doors, not here.
pub(crate) type ActorCache = Versioned<(RealmName, AgentId), Actor>;

/// A caller whose token was checked, with its entry in the directory.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(super) caller: Caller,
    /// Host with the cache: a message needs little of it.
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
    pub(super) fn number(&self, name: &str, usual: usize, most: usize) -> Answer<usize> {
        let Some(text) = self.query(name) else { return Ok(usual) };
        match text.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number.min(most)),
            _ => Err(Trouble::bad(format!("{name}: a positive whole number is expected, not {text:?}"))),
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

    /// Whether Safe Mode is spoken with this caller.
    pub(super) fn safe_mode(&self) -> bool {
        self.shared.safe_mode().holds(self.local)
    }

    /// Takes a turn for somebody.
    pub(super) fn turn(&self, what: &'static str, who: &str, quota: Quota) -> Answer<Turn> {
        // Every realm has agents of its own.
        let turn = self.shared.limiter().take(what, &format!("{}/{who}", self.engine.realm()), quota);
        if turn.is_granted() { Ok(turn) } else { Err(Trouble::too_often(turn, what)) }
    }

    /// Takes a turn for the address that the request came from.
    pub(super) fn turn_of_address(&self, what: &'static str, quota: Quota) -> Answer<()> {
        let Some(address) = self.address else { return Ok(()) };
        let turn = self.shared.limiter().take_from(what, address, quota);
        if turn.is_granted() { Ok(()) } else { Err(Trouble::too_often(turn, what)) }
    }

    /// Who bears the token of this request. `claimed` is whom the request says it is from: another name than the
    /// token's is refused, and those who run the office speak for whom they say.
    pub(super) async fn actor(&self, claimed: Option<&str>) -> Answer<Actor> {
        self.actor_and(claimed, |_, _| Ok(())).await.map(|(actor, ())| actor)
    }

    /// As [`Self::actor`], and looks at something else in the same moment.
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
        let claimed = claimed.map(spelled);
        let seen = self.engine.read(move |view| {
            let Some((name, source)) = bearer.name(view, claimed.as_deref())? else {
                return Ok(Seen::Unknown);
            };
            if claimed.is_some_and(|claimed| claimed != name)
                && written.is_some_and(|written| written != name)
            {
                return Ok(Seen::Other(name));
            }
            let Ok(id) = AgentId::new(&name) else { return Ok(Seen::Unknown) };
            let caller = Caller::member(id.clone(), VIA);
            match view.entry(&caller, &id) {
                Ok(agent) if agent.is_active() => {
                    let more = look(view, &caller)?;
                    Ok(Seen::Known(Box::new(Actor::new(caller, agent)), source, more))
                }
                Ok(_) => Ok(Seen::Gone),
                Err(error) if error.refusal().is_some() => Ok(Seen::Absent(name)),
                Err(error) => Err(error),
            }
        });
        match seen.await? {
            Seen::Known(actor, ..) if actor.agent.is_suspended() => {
                Err(Trouble::new(403, "identity_suspended", "this identity is suspended"))
            }
            Seen::Known(actor, source, more) => {
                if let (Some(hash), Source::Token(token)) = (hash, source) {
                    drop(self.shared.token_cache().put(realm, version, hash, &token));
                    let key = (realm.clone(), actor.agent.id.clone());
                    self.shared.actors().put(version, key, (*actor).clone());
                }
                Ok((*actor, more))
            }
            Seen::Unknown => Err(Trouble::unauthorized("this token is unknown, expired or revoked")),
            Seen::Other(name) => Err(Trouble::forbidden(format!("this token speaks for {name} alone"))),
            Seen::Gone => Err(Trouble::new(403, "identity_revoked", "this identity has been given up")),
            Seen::Absent(name) => Err(Trouble::nobody(&name)),
        }
    }

    /// Who bears the token of this request, if that was found out a moment ago and the request does not claim to be from
    /// somebody else.
    pub(super) fn recall(&self, claimed: Option<&str>) -> Option<Actor> {
        let hash = self.bearer().ok()?.hash()?;
        let (realm, version) = (self.engine.realm(), self.engine.directory_version());
        let (bearer, _) = self.shared.token_cache().get(realm, version, &hash)?.at(VIA).ok()?;
        // Those who run the realm speak for whom they say, which is looked up each time.
        if bearer.role == TokenRole::Admin {
            return None;
        }
        let actor = self.shared.actors().get(version, &(realm.clone(), bearer.name))?;
        claimed.is_none_or(|claimed| spelled(claimed) == actor.handle()).then_some(actor)
    }

    /// Who is looking, where looking needs no token: a bad token is still refused.
    pub(super) async fn looker(&self) -> Answer<Option<Actor>> {
        if bearer(&self.headers).is_none() {
            return Ok(None);
        }
        match self.actor(None).await {
            Ok(actor) => Ok(Some(actor)),
            Err(_) if self.shared.admin().fits(bearer(&self.headers).unwrap_or_default()) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// The hash of the token of this request, where it is a token that can be exchanged for another.
    pub(super) fn token_hash(&self) -> Answer<[u8; 32]> {
        match bearer(&self.headers) {
            Some(token) if self.shared.admin().fits(token) => {
                Err(Trouble::bad("the server's own key is not renewed"))
            }
            Some(token) => Ok(keys::hash(token)),
            None => Err(Trouble::unauthorized(
                "send the token that is to be renewed: `Authorization: Bearer TOKEN`",
            )),
        }
    }

    /// How the bearer of this request stands to an identity: it speaks for it by a token of its own, or by running the
    /// realm, or not at all.
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
            Some(token) if self.shared.admin().fits(token) => Ok(Bearer::Operator),
            Some(token) => Ok(Bearer::Token(keys::hash(token))),
            None if !self.shared.needs_token() => Ok(Bearer::Operator),
            None => Err(Trouble::unauthorized("a token is needed: send `Authorization: Bearer TOKEN`")),
        }
    }
}

/// Why a caller may have a token for an identity.
pub(super) enum Holder {
    /// It is new, signed with the identity's key or runs the realm; or no token is asked for.
    Proven,
    /// It bears a token that this door issued, by its hash.
    Issued([u8; 32]),
    /// It bears a token that an administrator made.
    Given { end: Option<Millis> },
}

enum Bearer {
    /// Speaks for whom it says.
    Operator,
    Token([u8; 32]),
}

impl Bearer {
    fn hash(&self) -> Option<[u8; 32]> {
        if let Self::Token(hash) = self { Some(*hash) } else { None }
    }

    /// Whom it speaks for.
    fn name(
        &self,
        view: &View<'_>,
        claimed: Option<&str>,
    ) -> Result<Option<(String, Source)>, posthaste_engine::EngineError> {
        let operator = || Some((claimed.unwrap_or("admin").to_owned(), Source::Asked));
        let Self::Token(hash) = self else { return Ok(operator()) };
        let token = view.token_by_hash(hash)?.filter(|token| token.opens(VIA));
        Ok(match token {
            Some(token) if token.role == TokenRole::Admin => operator(),
            Some(token) => Some((token.name.clone(), Source::Token(Box::new(token)))),
            None => None,
        })
    }
}

/// Where the name comes from that somebody speaks under.
enum Source {
    /// From the token.
    Token(Box<Token>),
    /// From the request: it speaks for whom it says.
    Asked,
}

enum Seen<T> {
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
    agent.keys.as_ref()?.value().get("public_key")?.as_str()?.parse().ok()
}

/// A name in its usual spelling: a handle's one, or as it is written for agents that came by other doors.
pub(super) fn spelled(text: &str) -> String {
    match Handle::parse(text) {
        Ok(handle) => handle.as_str().to_owned(),
        Err(_) => text.trim().trim_start_matches('@').to_owned(),
    }
}

/// Finds out which agent a name means: the one that is spelled so exactly, or the handle.
pub(super) fn find_name(view: &View<'_>, caller: &Caller, text: &str) -> Option<AgentId> {
    let exact = text.trim().trim_start_matches('@');
    let seen = |name: &str| AgentId::new(name).ok().filter(|id| view.agent(caller, id).is_ok());
    seen(exact).or_else(|| seen(&spelled(text)))
}

/// The agent that a message is aimed at. Where only one spelling is possible the books need not be asked: the engine
/// will say if there is nobody of that name.
pub(super) fn aim(text: &str) -> Option<AgentId> {
    let exact = text.trim().trim_start_matches('@');
    let plain = !exact.contains('@') && exact == spelled(exact);
    plain.then(|| AgentId::new(exact).ok()).flatten()
}

/// Somebody who has shown no token: sees what is public.
pub(super) fn visitor() -> Caller {
    // No handle has a space in it, so this is nobody's name.
    let name = AgentId::new("a visitor").unwrap_or_else(|_| AgentId::office());
    Caller::member(name, VIA)
}

/// A request's body as text.
#[derive(Debug)]
pub(super) struct Text(pub(super) String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Trouble;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let too_large = || {
            Trouble::new(413, "payload_too_large", format!("a message has at most {MAX_MESSAGE_BYTES} bytes"))
        };
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.into_response().status().as_u16() {
                413 => too_large(),
                status => Trouble::new(status, "bad_request", "the body could not be read"),
            }
        })?;
        if bytes.len() > MAX_BODY {
            return Err(too_large());
        }
        let text = String::from_utf8(bytes.into());
        text.map(Self).map_err(|_| Trouble::new(400, "invalid_json", "the body is not UTF-8"))
    }
}

/// A request's body as a JSON object without members that occur twice.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) text: String,
    pub(super) members: Map<String, Value>,
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Trouble;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let Text(text) = Text::from_request(request, state).await?;
        Self::read(text)
    }
}

impl Fields {
    pub(super) fn read(text: String) -> Answer<Self> {
        let bad = |why: String| Trouble::new(400, "invalid_json", why);
        canonicalize(&text).map_err(|error| bad(error.to_string()))?;
        match serde_json::from_str(&text) {
            Ok(Value::Object(members)) => Ok(Self { text, members }),
            Ok(_) => Err(bad("a JSON object is expected".to_owned())),
            Err(error) => Err(bad(error.to_string())),
        }
    }

    /// A string under one of these names; null counts as absent.
    pub(super) fn text(&self, names: &[&str]) -> Answer<Option<&str>> {
        for name in names {
            match self.members.get(*name) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => return Ok(Some(text)),
                Some(_) => return Err(Trouble::bad(format!("{name}: a string is expected"))),
            }
        }
        Ok(None)
    }

    pub(super) fn get(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.members.get(*name)).filter(|value| !value.is_null())
    }
}
