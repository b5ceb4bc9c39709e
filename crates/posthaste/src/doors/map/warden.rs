//! Keeps an eye on the tokens that connections came in with: whoever holds one is warned before it lapses, and hangs up
//! with it when it lapses or is revoked.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::close_code;
use posthaste_engine::nouns::{Caller, Fact, Millis, Token};
use posthaste_engine::{Engine, EngineError, Filter, Start, Step, stamp};
use serde_json::json;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

use super::connection::Line;
use super::hall::Hall;

/// How long before its end the bearer of a token is warned.
const WARNING: Millis = 5 * 60 * 1000;
/// Revocations kept for those who watch; whoever misses some asks the books.
const KEPT: usize = 64;
/// How often it is asked whether anyone still watches.
const STILL_NEEDED: Duration = Duration::from_secs(60);

/// Watches over a token until `watch` ends, and ends `line` with it. Nothing is said before `go`.
pub(super) fn watch(
    engine: &Engine,
    hall: &Arc<Hall>,
    token: Token,
    watch: CancellationToken,
    line: Line,
) -> oneshot::Sender<()> {
    let (go, gone) = oneshot::channel();
    let (engine, hall) = (engine.clone(), hall.clone());
    tokio::spawn(async move {
        let watching = async {
            if gone.await.is_ok() {
                guard(&engine, &hall, &token, &line).await;
            }
        };
        watch.run_until_cancelled(watching).await;
    });
    go
}

async fn guard(engine: &Engine, hall: &Arc<Hall>, token: &Token, line: &Line) {
    let mut revoked = hall.revocations(|| follow(engine.clone(), hall.clone()));
    // Something may have happened between its being shown and our listening.
    if !is_good(engine, token).await {
        return end(line, "revoked");
    }
    let mut warned = false;
    loop {
        let due = token.expires_at.map(|end| if warned { end } else { end - WARNING });
        let wait = due.map(|due| Duration::from_millis(u64::try_from(due - stamp::now()).unwrap_or(0)));
        tokio::select! {
            news = revoked.recv() => match news {
                Ok(id) if *id == *token.id => return end(line, "revoked"),
                Ok(_) => {}
                // Too many at once, or nobody to tell us: the books know.
                Err(_) => {
                    if !is_good(engine, token).await {
                        return end(line, "revoked");
                    }
                    revoked = hall.revocations(|| follow(engine.clone(), hall.clone()));
                }
            },
            () = sleep(wait) => {
                let end_at = token.expires_at.unwrap_or(Millis::MAX);
                let left = end_at - stamp::now();
                if left <= 0 {
                    return end(line, "expired");
                }
                if !warned {
                    warned = true;
                    tell(line, "map/auth/expiring", json!({ "expiresAt": end_at, "expiresInMs": left }));
                }
            }
        }
    }
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

fn tell(line: &Line, method: &str, params: serde_json::Value) {
    let notice = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    // Whoever has hung up need not be told, and whoever does not read is not waited for.
    let _ = line.out.try_send(notice.to_string());
}

fn end(line: &Line, reason: &'static str) {
    tell(line, "map/auth/revoked", json!({ "reason": reason }));
    line.end(
        close_code::POLICY,
        if reason == "expired" { "the token has expired" } else { "the token was revoked" },
    );
}

/// Whether a token still opens the door; a doubt is not held against its bearer.
async fn is_good(engine: &Engine, token: &Token) -> bool {
    let id = token.id.clone();
    let known =
        engine.read(move |view| Ok(view.tokens(&Caller::office())?.into_iter().find(|one| one.id == id)));
    match known.await {
        Ok(found) => found.is_some_and(|found| found.is_valid(stamp::now())),
        Err(_) => true,
    }
}

/// Passes on what is revoked, for as long as anyone watches.
fn follow(engine: Engine, hall: Arc<Hall>) -> broadcast::Sender<Arc<str>> {
    let (sender, _) = broadcast::channel(KEPT);
    let told = sender.clone();
    tokio::spawn(async move {
        if let Err(error) = pass_on(&engine, &hall, &told).await {
            tracing::warn!(%error, "revocations are not followed");
        }
        hall.forget_revocations(&told);
    });
    sender
}

async fn pass_on(
    engine: &Engine,
    hall: &Hall,
    told: &broadcast::Sender<Arc<str>>,
) -> Result<(), EngineError> {
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
                if hall.is_unwatched(told) {
                    return Ok(());
                }
            }
        }
    }
}
