//! The visitor of a request: a cookie that proves an earlier sign-in, and a token in every form that proves that the form
//! is from this page.
//!
//! The cookie holds the id of the token, the time and a seal over both, never the token or its hash: a browser hands
//! cookies of `localhost` to every port of the machine, so what is in it must open nothing but this page. It dies with its
//! token, and after 30 days.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_engine::nouns::{AgentId, Caller, Millis, TokenRole};
use posthaste_engine::verbs::agents::{Existing, Register};
use posthaste_engine::views::{View, Viewed};
use posthaste_engine::{Engine, EngineError, stamp};

use super::VIA;
use super::answers::DoorError;
use super::query::encoded;
use super::session::{MAX_AGE_SECONDS, Session};
use posthaste_host::Host;
use posthaste_host::caller::{AuthError, Identity, Realm, TokenRef};

/// What the cookies' names start with; the realm follows.
const COOKIE: &str = "posthaste.";
/// The cookie of a visitor that prefers light or dark.
pub(super) const THEME: &str = "posthaste-theme";

const FORM: &str = "ui form";

/// The visitor that sent a request, authenticated.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) host: Host,
    pub(super) engine: Engine,
    pub(super) identity: Identity,
    /// What stands before every address of this realm: nothing, or `/r/NAME`.
    pub(super) base: String,
    /// The address that was asked for, with its query.
    pub(super) here: Uri,
    /// The token in this visitor's forms.
    pub(super) form_token: String,
    /// `light` or `dark`, if one was chosen.
    pub(super) theme: Option<&'static str>,
    /// What was signed in with, if it can lapse or be revoked.
    pub(super) pass: Option<TokenRef>,
    /// Whether the visitor signed in. False on a server that needs no token.
    pub(super) signed_in: bool,
    pub(super) now: Millis,
}

impl Visitor {
    pub(super) fn caller(&self) -> Caller {
        self.identity.caller(VIA)
    }

    pub(super) fn me(&self) -> &AgentId {
        &self.identity.name
    }

    pub(super) fn is_admin(&self) -> bool {
        self.identity.role == TokenRole::Admin
    }

    /// An address of this page; the rest starts with a slash, or is empty.
    pub(super) fn to(&self, rest: &str) -> String {
        format!("{}/ui{rest}", self.base)
    }

    /// This address with one value of its query put in, changed or taken out.
    pub(super) fn here_with(&self, name: &str, value: Option<&str>) -> String {
        let mut pairs = super::query::pairs(self.here.query().unwrap_or(""));
        pairs.retain(|(key, _)| key != name && key != "done");
        pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        let query: Vec<String> =
            pairs.iter().map(|(key, value)| format!("{}={}", encoded(key), encoded(value))).collect();
        match query.is_empty() {
            true => self.here.path().to_owned(),
            false => format!("{}?{}", self.here.path(), query.join("&")),
        }
    }

    /// Reads the database as this visitor.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>, &Caller) -> Viewed<T> + Send + 'static,
    ) -> Viewed<T> {
        let caller = self.caller();
        self.engine.read(move |view| look(view, &caller)).await
    }

    /// Enters the visitor into the directory, if it is not there, so that agents can answer.
    pub(super) async fn enter(&self) -> Result<(), EngineError> {
        let me = self.me().clone();
        // One that another token entered under the visitor's name is not the visitor's yet.
        let there = self.read(move |view, caller| {
            let bearer = view.bearer_of(&Caller::office(), &me)?;
            Ok(view.agent(caller, &me).is_ok() && bearer.is_none_or(|bearer| bearer == me))
        });
        if there.await? {
            return Ok(());
        }
        let kind = match self.identity.role {
            TokenRole::Admin => posthaste_engine::nouns::AgentKind::Admin,
            TokenRole::User => posthaste_engine::nouns::AgentKind::User,
            TokenRole::Agent => posthaste_engine::nouns::AgentKind::Agent,
        };
        let verb = Register {
            id: Some(self.me().clone()),
            kind: Some(kind),
            existing: Existing::TakeOver,
            bearer: Some(self.identity.bearer()),
            ..Register::default()
        };
        self.engine.submit(&self.caller(), verb).await.map(drop)
    }

    /// Refuses a form that this server did not make for this visitor.
    pub(super) fn check_form(&self, token: &str) -> Result<(), DoorError> {
        let right = subtle::ConstantTimeEq::ct_eq(self.form_token.as_bytes(), token.as_bytes());
        match bool::from(right) {
            true => Ok(()),
            false => Err(DoorError::new(
                StatusCode::FORBIDDEN,
                "This form is not from this page; reload and try again.",
            )),
        }
    }
}

/// The realm and the base of a request, before authentication.
#[derive(Clone, Debug)]
pub(super) struct RequestRealm {
    pub(super) engine: Engine,
    pub(super) base: String,
}

impl FromRequestParts<Host> for RequestRealm {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, host: &Host) -> Result<Self, Response> {
        let Realm(engine) = Realm::from_request_parts(parts, host).await?;
        let params =
            RawPathParams::from_request_parts(parts, host).await.map_err(IntoResponse::into_response)?;
        let named = params.iter().any(|(name, _)| name == "realm");
        let base = if named { format!("/r/{}", engine.realm()) } else { String::new() };
        Ok(Self { engine, base })
    }
}

impl FromRequestParts<Host> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, host: &Host) -> Result<Self, Response> {
        let RequestRealm { engine, base } = RequestRealm::from_request_parts(parts, host).await?;
        let here = original(parts);
        if parts.method != Method::GET && !is_ours(&parts.headers, &here) {
            let text = "Only this page's own forms are taken.";
            return Err(DoorError::new(StatusCode::FORBIDDEN, text).into_response());
        }
        let cookie = session_of(host, &engine, &parts.headers);
        let session = cookie.as_deref().and_then(|cookie| Session::open(host.admin(), cookie));
        let known = match session {
            Some(Session::Operator) => Some((Identity::operator(), None)),
            Some(Session::Token(id)) => match host.authenticate_id(&engine, id, VIA).await {
                Ok(known) => Some(known),
                Err(AuthError::Failed(error)) => return Err(DoorError::from(error).into_response()),
                Err(AuthError::Missing | AuthError::Invalid | AuthError::OtherDoor { .. }) => None,
            },
            None => None,
        };
        let signed_in = known.is_some();
        let (identity, pass) = match known {
            Some(known) => known,
            None if !host.needs_token() => (Identity::operator(), None),
            None => return Err(away(parts, &base, &here)),
        };
        let turn = host.bucket_of(&engine, &identity, pass.as_ref()).take();
        if !turn.is_granted() {
            let text = "Too many requests with this token; wait a moment and reload.";
            let mut response = DoorError::new(StatusCode::TOO_MANY_REQUESTS, text).into_response();
            turn.write(response.headers_mut());
            return Err(response);
        }
        let engine = host.engine_for(&engine, &identity, pass.as_ref());
        let form_token = form_token(host, cookie.as_deref().filter(|_| signed_in));
        let theme = cookies(&parts.headers)
            .find(|(name, _)| *name == THEME)
            .and_then(|(_, value)| ["light", "dark"].into_iter().find(|known| *known == value));
        let now = stamp::now();
        Ok(Self { host: host.clone(), engine, identity, base, here, form_token, theme, pass, signed_in, now })
    }
}

/// The address as the browser wrote it: nesting has cut the realm off the one in the parts.
fn original(parts: &Parts) -> Uri {
    parts
        .extensions
        .get::<axum::extract::OriginalUri>()
        .map_or_else(|| parts.uri.clone(), |uri| uri.0.clone())
}

/// The answer to a request without a session.
fn away(parts: &Parts, base: &str, here: &Uri) -> Response {
    let fetched = parts.headers.get("x-requested-by").is_some()
        || parts.headers.get(header::ACCEPT).is_some_and(|kind| kind == "text/event-stream");
    if fetched || parts.method != Method::GET {
        return DoorError::new(StatusCode::UNAUTHORIZED, "You are signed out; reload the page to sign in.")
            .into_response();
    }
    let next = here.path_and_query().map_or("", |address| address.as_str());
    Redirect::to(&format!("{base}/ui/sign-in?next={}", encoded(next))).into_response()
}

/// Whether the browser says that the request comes from a page of this server. Older browsers do not say; the form token
/// is checked in any case.
pub(super) fn is_ours(headers: &HeaderMap, here: &Uri) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return false;
    }
    // HTTP/2 names its host in the address.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or(here.authority().map(|authority| authority.as_str()));
    match headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?")) {
        Some(origin) => origin.split_once("://").is_some_and(|(_, from)| Some(from) == host),
        None => true,
    }
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// The cookie of this realm, or else the one of another realm if it was made with the key to all of them.
fn session_of(host: &Host, engine: &Engine, headers: &HeaderMap) -> Option<String> {
    let own = format!("{COOKIE}{}", engine.realm());
    let of_ours = cookies(headers).find(|(name, _)| *name == own).map(|(_, value)| value.to_owned());
    of_ours.or_else(|| {
        let ours = |value: &str| matches!(Session::open(host.admin(), value), Some(Session::Operator));
        cookies(headers)
            .find(|(name, value)| name.starts_with(COOKIE) && ours(value))
            .map(|(_, value)| value.to_owned())
    })
}

/// The cookie of a sign-in.
pub(super) fn session_cookie(host: &Host, engine: &Engine, session: &Session, secure: bool) -> String {
    let sealed = session.seal(host.admin());
    let secure = if secure { "; Secure" } else { "" };
    let realm = engine.realm();
    format!("{COOKIE}{realm}={sealed}; Path=/; HttpOnly; SameSite=Strict; Max-Age={MAX_AGE_SECONDS}{secure}")
}

/// The cookies that end every sign-in that a request carries.
pub(super) fn farewell_cookies(headers: &HeaderMap) -> Vec<String> {
    cookies(headers)
        .filter(|(name, _)| name.starts_with(COOKIE))
        .map(|(name, _)| format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"))
        .collect()
}

/// The token of forms, bound to the session if there is one.
pub(super) fn form_token(host: &Host, cookie: Option<&str>) -> String {
    host.admin().seal(FORM, cookie.unwrap_or("signed out"))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_from_another_page_is_not_ours() {
        let asked = |host: &'static str, origin: Option<&'static str>, site: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            origin.map(|origin| headers.insert(header::ORIGIN, origin.parse().unwrap()));
            site.map(|site| headers.insert("sec-fetch-site", site.parse().unwrap()));
            is_ours(&headers, &Uri::from_static("/ui"))
        };
        assert!(asked("localhost:7678", Some("http://localhost:7678"), Some("same-origin")));
        assert!(asked("localhost:7678", None, None), "a program, which has no page to be lured from");
        assert!(
            !asked("localhost:7678", Some("http://localhost:3000"), None),
            "another port is another page"
        );
        assert!(!asked("localhost:7678", Some("http://localhost:7678"), Some("same-site")));
        assert!(!asked("localhost:7678", Some("null"), None));
        assert!(!asked("localhost:7678", None, Some("cross-site")));
    }
}
