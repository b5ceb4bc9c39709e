//! Sessions and streams, which rmcp keeps: the handshake, subscriptions, progress, and the revision without sessions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::sse;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::call::Visitor;
use super::http::accepting;
use super::service::Server;
use crate::Door;

/// The header that names a session.
pub(super) const SESSION: &str = "mcp-session-id";
/// Sessions at once. Whoever comes later is served without one, which costs it only notifications.
const MOST_SESSIONS: usize = 1_024;
/// Sessions of one token; the one that was not used for longest ends when another begins.
const MOST_OF_TOKEN: usize = 64;
/// The longest handshake. What a client says of itself is kept as long as its session.
pub(super) const MOST_HANDSHAKE: usize = 16 << 10;
/// How long a session without traffic of its own is kept; subscribers are asked for signs of life more often.
const IDLE: Duration = Duration::from_secs(3600);
/// Ids of terminated sessions that are remembered, and answered 404 from then on; the oldest is forgotten first.
const MOST_TERMINATED: usize = 8_192;
/// The largest body; the layers around all doors have a lower limit.
const MOST_BYTES: usize = 64 << 20;
/// The longest answer to a handshake.
const MOST_GREETING: usize = 1 << 20;

/// rmcp's services, and whose session is whose.
pub(super) struct Sessions {
    kept: StreamableHttpService<Server, LocalSessionManager>,
    once: StreamableHttpService<Server, NeverSessionManager>,
    manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Owned>>,
    terminated: RwLock<Terminated>,
}

/// Whose a session is: the token's that opened it. A name would not do, since realms may have equal ones.
#[derive(Debug)]
struct Owned {
    owner: String,
    used: Instant,
}

/// Ids of sessions that their clients ended by DELETE. Kept in memory only: after a restart every id is merely unknown.
#[derive(Debug, Default)]
struct Terminated {
    ids: HashSet<Arc<str>>,
    oldest_first: VecDeque<Arc<str>>,
}

impl Terminated {
    fn add(&mut self, id: &str) {
        let id: Arc<str> = id.into();
        if !self.ids.insert(id.clone()) {
            return;
        }
        self.oldest_first.push_back(id);
        if self.oldest_first.len() > MOST_TERMINATED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(super) fn new(shared: &Door) -> Self {
        let mut session = SessionConfig::default();
        session.keep_alive = Some(IDLE);
        // rmcp's retry hints are events with empty data, which clients with an older SDK (Gemini CLI) try to parse as JSON,
        // and then give the server up. Clients have a reconnection delay of their own.
        session.sse_retry = None;
        let mut manager = LocalSessionManager::default();
        manager.session_config = session;
        let manager = Arc::new(manager);
        // Host and Origin were checked before any door.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_sse_retry(None)
            .with_cancellation_token(shared.stop().clone())
            .with_max_request_body_bytes(MOST_BYTES);
        // The office keeps this, so this must not keep the office.
        let weak = shared.downgrade();
        let made = move || {
            weak.upgrade().map(Server::new).ok_or_else(|| std::io::Error::other("the office is closing"))
        };
        let kept = StreamableHttpService::new(made.clone(), manager.clone(), config.clone());
        let once_config = config.with_legacy_session_mode(false).with_json_response(true);
        let once = StreamableHttpService::new(made, Arc::default(), once_config);
        Self { kept, once, manager, owners: Mutex::default(), terminated: RwLock::default() }
    }

    /// Answers a handshake: with a session while there is room, and in plain JSON either way.
    pub(super) async fn greet(&self, visitor: Visitor, parts: Parts, body: Bytes) -> Response {
        let owner = owner_of(&visitor);
        let parts = accepting(parts);
        if let Some(oldest) = self.oldest_beyond(&owner).await {
            // A session that cannot be closed has ended already.
            drop(self.manager.close_session(&oldest.into()).await);
        }
        if self.manager.sessions.read().await.len() >= MOST_SESSIONS {
            return self.once(visitor, parts, body).await;
        }
        let response = self.kept.handle(request(visitor, parts, body)).await;
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            return Response::from_parts(head, Body::new(body));
        }
        if let Some(id) = head.headers.get(SESSION).and_then(|id| id.to_str().ok()) {
            self.lock().insert(id.to_owned(), Owned { owner, used: Instant::now() });
        }
        let Ok(bytes) = to_bytes(Body::new(body), MOST_GREETING).await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let mut events = Vec::new();
        if sse::Parser::new(MOST_GREETING).feed(&bytes, &mut events).is_err() {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        let data = events.into_iter().map(|event| event.data).find(|data| !data.trim().is_empty());
        let mut answer =
            ([(header::CONTENT_TYPE, "application/json")], data.unwrap_or_default()).into_response();
        if let Some(id) = head.headers.get(SESSION) {
            answer.headers_mut().insert(SESSION, id.clone());
        }
        answer
    }

    /// Whether the client has ended the session of that id.
    pub(super) fn is_terminated(&self, id: &[u8]) -> bool {
        let terminated = self.terminated.read().unwrap_or_else(PoisonError::into_inner);
        std::str::from_utf8(id).is_ok_and(|id| terminated.ids.contains(id))
    }

    /// Hands a request of a session over.
    pub(super) async fn hand_over(&self, visitor: Visitor, parts: Parts, body: Bytes) -> Response {
        let id = parts.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let owner = owner_of(&visitor);
        let owned = match self.lock().get_mut(id).filter(|owned| owned.owner == owner) {
            Some(owned) => {
                owned.used = Instant::now();
                true
            }
            None => false,
        };
        if !owned {
            // As the protocol says of sessions that are gone; whose it is does not matter to anyone else.
            return gone();
        }
        if parts.method == Method::DELETE {
            return self.terminate(id.to_owned(), visitor, parts).await;
        }
        self.kept.handle(request(visitor, parts, body)).await.map(Body::new)
    }

    /// Ends a session for its client. rmcp answers 202, which the official Python SDK reports as a failure.
    async fn terminate(&self, id: String, visitor: Visitor, parts: Parts) -> Response {
        let response = self.kept.handle(request(visitor, parts, Bytes::new())).await;
        if !response.status().is_success() {
            return response.map(Body::new);
        }
        self.lock().remove(&id);
        self.terminated.write().unwrap_or_else(PoisonError::into_inner).add(&id);
        StatusCode::NO_CONTENT.into_response()
    }

    /// Hands a notification of a session over. A session that is gone has nobody to be told.
    pub(super) async fn notify(&self, visitor: Visitor, parts: Parts, body: Bytes) -> Response {
        let response = self.hand_over(visitor, accepting(parts), body).await;
        match response.status() {
            StatusCode::NOT_FOUND => StatusCode::ACCEPTED.into_response(),
            _ => response,
        }
    }

    /// Answers one request that stands for itself.
    pub(super) async fn once(&self, visitor: Visitor, mut parts: Parts, body: Bytes) -> Response {
        parts.headers.remove(SESSION);
        self.once.handle(request(visitor, parts, body)).await.map(Body::new)
    }

    /// The session of a token that was not used for longest, if the token has as many as it may have.
    async fn oldest_beyond(&self, owner: &str) -> Option<String> {
        let sessions = self.manager.sessions.read().await;
        let mut owners = self.lock();
        owners.retain(|id, _| sessions.contains_key(id.as_str()));
        let theirs = owners.iter().filter(|(_, owned)| owned.owner == owner);
        if theirs.clone().count() < MOST_OF_TOKEN {
            return None;
        }
        let oldest = theirs.min_by_key(|(_, owned)| owned.used).map(|(id, _)| id.clone())?;
        owners.remove(&oldest);
        Some(oldest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Owned>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to the id of a session that has ended or never was.
pub(super) fn gone() -> Response {
    (StatusCode::NOT_FOUND, "there is no such session; initialize again").into_response()
}

/// The token that a visitor came with; the operator's work is counted together.
fn owner_of(visitor: &Visitor) -> String {
    visitor.account.clone().unwrap_or_else(|| format!("operator//{}", visitor.identity.name))
}

/// The request as rmcp sees it, with the visitor among its extensions.
fn request(visitor: Visitor, mut parts: Parts, body: Bytes) -> Request<Body> {
    parts.extensions.insert(visitor);
    if !parts.headers.contains_key(header::ACCEPT) {
        parts.headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    }
    Request::from_parts(parts, Body::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_terminated_sessions_is_forgotten() {
        let mut terminated = Terminated::default();
        for number in 0..=MOST_TERMINATED {
            terminated.add(&format!("s{number}"));
            terminated.add("s1");
        }
        assert_eq!((terminated.ids.len(), terminated.oldest_first.len()), (MOST_TERMINATED, MOST_TERMINATED));
        assert!(!terminated.ids.contains("s0"));
        assert!(terminated.ids.contains("s2") && terminated.ids.contains("s8192"));
    }
}
