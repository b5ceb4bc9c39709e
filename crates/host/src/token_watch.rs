//! Keeps an eye on the passes that open connections came in with: a token that is revoked or lapses takes its streams with
//! it, at whichever door they are.

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
use crate::caller::Pass;

/// Revocations kept for those who watch; whoever misses some asks the books.
const KEPT: usize = 64;
/// How often it is asked whether anyone still watches.
const STILL_NEEDED: Duration = Duration::from_secs(60);
/// A call that takes longer than this waits for something.
const ANSWERED_AT_ONCE: Duration = Duration::from_millis(500);
/// Longer than this nobody sleeps at once: the clock may be set meanwhile.
const LONGEST_NAP: Duration = Duration::from_secs(3_600);

/// Why a pass is good no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Revoked,
    Expired,
}

/// Where those who watch hear of revocations, by realm.
#[derive(Debug, Default)]
pub struct Wardens {
    realms: Mutex<HashMap<RealmName, Revoked>>,
}

type Revoked = broadcast::Sender<Arc<str>>;

impl Wardens {
    fn lock(&self) -> MutexGuard<'_, HashMap<RealmName, Revoked>> {
        self.realms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody listens any more; then this one is forgotten, and the next who asks gets another.
    fn is_unwatched(&self, realm: &RealmName, told: &Revoked) -> bool {
        let mut realms = self.lock();
        if told.receiver_count() > 0 {
            return false;
        }
        forget(&mut realms, realm, told);
        true
    }
}

fn forget(realms: &mut HashMap<RealmName, Revoked>, realm: &RealmName, told: &Revoked) {
    if realms.get(realm).is_some_and(|one| one.same_channel(told)) {
        realms.remove(realm);
    }
}

impl Host {
    /// Waits until a pass is good no more.
    pub async fn until_void(&self, engine: &Engine, pass: &Pass) -> End {
        // Heard of from here on, so that nothing happens between the look at the books and the listening.
        let mut revoked = self.revocations(engine);
        if !is_good(engine, pass).await {
            return End::Revoked;
        }
        loop {
            tokio::select! {
                news = revoked.recv(), if pass.id.is_some() => match news {
                    Ok(id) if pass.id.as_deref() == Some(&*id) => return End::Revoked,
                    Ok(_) => {}
                    // Too many at once, or nobody to tell us: the books know.
                    Err(_) => {
                        revoked = self.revocations(engine);
                        if !is_good(engine, pass).await {
                            return End::Revoked;
                        }
                    }
                },
                () = nap(pass.expires_at) => {
                    if pass.expires_at.is_some_and(|end| end <= stamp::now()) {
                        return End::Expired;
                    }
                }
            }
        }
    }

    /// An answer, unless its pass ends first: a call that waits ends with its token, and not when what it waits for happens.
    /// Calls that are answered at once are not watched, because watching asks the database.
    pub async fn unless_void<T>(
        &self,
        engine: &Engine,
        pass: Option<&Pass>,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(pass) = pass else { return Some(answer.await) };
        let void = async {
            tokio::time::sleep(ANSWERED_AT_ONCE).await;
            self.until_void(engine, pass).await
        };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            _ = void => None,
        }
    }

    /// An answer that is a stream of events ends when its pass does; other answers are as they were.
    pub fn while_good(&self, engine: &Engine, pass: Option<&Pass>, answer: Response) -> Response {
        let is_stream = |value: &axum::http::HeaderValue| value.as_bytes().starts_with(b"text/event-stream");
        let Some(pass) = pass.cloned() else { return answer };
        if !answer.headers().get(header::CONTENT_TYPE).is_some_and(is_stream) {
            return answer;
        }
        let (shared, engine) = (self.clone(), engine.clone());
        let void = Box::pin(async move { shared.until_void(&engine, &pass).await });
        answer.map(|body| Body::from_stream(body.into_data_stream().take_until(void)))
    }

    /// Tokens of a realm as they are revoked from now on.
    fn revocations(&self, engine: &Engine) -> broadcast::Receiver<Arc<str>> {
        let mut realms = self.wardens().lock();
        let told = realms.entry(engine.realm().clone()).or_insert_with(|| self.follow_revocations(engine));
        told.subscribe()
    }

    /// Passes on what is revoked, for as long as anyone watches.
    fn follow_revocations(&self, engine: &Engine) -> Revoked {
        let (sender, _) = broadcast::channel(KEPT);
        let (told, shared, engine) = (sender.clone(), self.clone(), engine.clone());
        tokio::spawn(async move {
            let stop = shared.stop().clone();
            let passing = pass_on(&shared, &engine, &told);
            if let Some(Err(error)) = stop.run_until_cancelled(passing).await {
                tracing::warn!(%error, "revocations are not followed");
            }
            forget(&mut shared.wardens().lock(), engine.realm(), &told);
        });
        sender
    }
}

async fn pass_on(shared: &Host, engine: &Engine, told: &Revoked) -> Result<(), EngineError> {
    let filter = Filter::Kinds(vec!["token.revoked".to_owned()]);
    let mut feed = engine.follow(&Caller::office(), filter, Start::Now, KEPT).await?;
    loop {
        tokio::select! {
            step = feed.next() => {
                if let Step::Event { event, .. } = step?
                    && let Fact::TokenRevoked { token } = &event.fact
                {
                    // Nobody may be watching just now.
                    drop(told.send(Arc::from(token.as_str())));
                }
            }
            () = tokio::time::sleep(STILL_NEEDED) => {
                if shared.wardens().is_unwatched(engine.realm(), told) {
                    return Ok(());
                }
            }
        }
    }
}

/// Sleeps until a moment, or a while.
async fn nap(until: Option<Millis>) {
    let Some(until) = until else { return std::future::pending().await };
    let left = Duration::from_millis(u64::try_from(until - stamp::now()).unwrap_or(0));
    tokio::time::sleep(left.min(LONGEST_NAP)).await;
}

/// Whether a pass still opens the door; a doubt is not held against its bearer.
async fn is_good(engine: &Engine, pass: &Pass) -> bool {
    let Some(id) = pass.id.clone() else { return true };
    let known =
        engine.read(move |view| Ok(view.tokens(&Caller::office())?.into_iter().find(|one| one.id == id)));
    match known.await {
        Ok(found) => found.is_some_and(|found| found.revoked_at.is_none()),
        Err(_) => true,
    }
}
