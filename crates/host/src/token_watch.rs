//! Watches the tokens of open connections: when a token is revoked or expires, its streams end at every door.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures_util::StreamExt;
use posthaste_engine::nouns::{Caller, Fact, Millis, RealmName};
use posthaste_engine::{Engine, EngineError, Filter, Start, Step, stamp};
use tokio::sync::broadcast;

use crate::Host;
use crate::caller::TokenRef;

/// Revocations that are buffered for watchers; one that misses some reads the database.
const BUFFERED_REVOCATIONS: usize = 64;
/// How often the task that follows revocations checks whether there are watchers.
const CHECK_WATCHERS_EVERY: Duration = Duration::from_secs(60);
/// A call that takes longer than this is waiting, and its token is watched.
const WATCH_CALLS_AFTER: Duration = Duration::from_millis(500);
/// The longest sleep until an expiry, because the clock may be set meanwhile.
const MAX_SLEEP: Duration = Duration::from_secs(3_600);

/// Why a token is no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Revoked,
    Expired,
}

/// The channels on which watchers receive revocations, by realm.
#[derive(Debug, Default)]
pub struct TokenWatches {
    realms: Mutex<HashMap<RealmName, Revoked>>,
}

type Revoked = broadcast::Sender<Arc<str>>;

impl TokenWatches {
    fn lock(&self) -> MutexGuard<'_, HashMap<RealmName, Revoked>> {
        self.realms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the channel if it has no receivers. Returns whether it did.
    fn remove_if_unwatched(&self, realm: &RealmName, channel: &Revoked) -> bool {
        let mut realms = self.lock();
        if channel.receiver_count() > 0 {
            return false;
        }
        forget(&mut realms, realm, channel);
        true
    }
}

fn forget(realms: &mut HashMap<RealmName, Revoked>, realm: &RealmName, channel: &Revoked) {
    if realms.get(realm).is_some_and(|one| one.same_channel(channel)) {
        realms.remove(realm);
    }
}

impl Host {
    /// Waits until a token is no longer valid.
    pub async fn until_token_ends(&self, engine: &Engine, pass: &TokenRef) -> End {
        // Subscribed before the database is read, so that no revocation is missed between the two.
        let mut revoked = self.revocations(engine);
        if !is_valid(engine, pass).await {
            return End::Revoked;
        }
        loop {
            tokio::select! {
                news = revoked.recv(), if pass.id.is_some() => match news {
                    Ok(id) if pass.id.as_deref() == Some(&*id) => return End::Revoked,
                    Ok(_) => {}
                    // The receiver lagged or the channel closed: the database knows.
                    Err(_) => {
                        revoked = self.revocations(engine);
                        if !is_valid(engine, pass).await {
                            return End::Revoked;
                        }
                    }
                },
                () = sleep_until(pass.expires_at) => {
                    if pass.expires_at.is_some_and(|end| end <= stamp::now()) {
                        return End::Expired;
                    }
                }
            }
        }
    }

    /// The response, or `None` if the token ends first: a waiting call ends with its token. Calls that respond quickly are
    /// not watched, because watching reads the database.
    pub async fn unless_token_ends<T>(
        &self,
        engine: &Engine,
        pass: Option<&TokenRef>,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(pass) = pass else { return Some(answer.await) };
        let void = async {
            tokio::time::sleep(WATCH_CALLS_AFTER).await;
            self.until_token_ends(engine, pass).await
        };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            _ = void => None,
        }
    }

    /// Ends a response that is an event stream when its token ends. Other responses are unchanged.
    pub fn end_stream_with_token(
        &self,
        engine: &Engine,
        pass: Option<&TokenRef>,
        answer: Response,
    ) -> Response {
        let is_stream = |value: &axum::http::HeaderValue| value.as_bytes().starts_with(b"text/event-stream");
        let Some(pass) = pass.cloned() else { return answer };
        if !answer.headers().get(header::CONTENT_TYPE).is_some_and(is_stream) {
            return answer;
        }
        let (host, engine) = (self.clone(), engine.clone());
        let void = Box::pin(async move { host.until_token_ends(&engine, &pass).await });
        answer.map(|body| Body::from_stream(body.into_data_stream().take_until(void)))
    }

    /// Ids of a realm's tokens as they are revoked from now on.
    fn revocations(&self, engine: &Engine) -> broadcast::Receiver<Arc<str>> {
        let mut realms = self.token_watches().lock();
        let channel = realms.entry(engine.realm().clone()).or_insert_with(|| self.follow_revocations(engine));
        channel.subscribe()
    }

    /// Starts the task that sends revocations to watchers, while there are any.
    fn follow_revocations(&self, engine: &Engine) -> Revoked {
        let (sender, _) = broadcast::channel(BUFFERED_REVOCATIONS);
        let (channel, host, engine) = (sender.clone(), self.clone(), engine.clone());
        tokio::spawn(async move {
            let stop = host.stop().clone();
            let passing = send_revocations(&host, &engine, &channel);
            if let Some(Err(error)) = stop.run_until_cancelled(passing).await {
                tracing::warn!(%error, "revocations are not followed");
            }
            forget(&mut host.token_watches().lock(), engine.realm(), &channel);
        });
        sender
    }
}

async fn send_revocations(host: &Host, engine: &Engine, channel: &Revoked) -> Result<(), EngineError> {
    let filter = Filter::Kinds(vec!["token.revoked".to_owned()]);
    let mut feed = engine.follow(&Caller::office(), filter, Start::Now, BUFFERED_REVOCATIONS).await?;
    loop {
        tokio::select! {
            step = feed.next() => {
                if let Step::Event { event, .. } = step?
                    && let Fact::TokenRevoked { token } = &event.fact
                {
                    // There may be no watcher at the moment.
                    drop(channel.send(Arc::from(token.as_str())));
                }
            }
            () = tokio::time::sleep(CHECK_WATCHERS_EVERY) => {
                if host.token_watches().remove_if_unwatched(engine.realm(), channel) {
                    return Ok(());
                }
            }
        }
    }
}

/// Sleeps until a time, or for `MAX_SLEEP` if that is earlier.
async fn sleep_until(until: Option<Millis>) {
    let Some(until) = until else { return std::future::pending().await };
    let left = Duration::from_millis(u64::try_from(until - stamp::now()).unwrap_or(0));
    tokio::time::sleep(left.min(MAX_SLEEP)).await;
}

/// Whether a token is still valid. If the database cannot be read, it counts as valid.
async fn is_valid(engine: &Engine, pass: &TokenRef) -> bool {
    let Some(id) = pass.id.clone() else { return true };
    let known =
        engine.read(move |view| Ok(view.tokens(&Caller::office())?.into_iter().find(|one| one.id == id)));
    match known.await {
        Ok(found) => found.is_some_and(|found| found.revoked_at.is_none()),
        Err(_) => true,
    }
}
