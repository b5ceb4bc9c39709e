//! Tells a connection of its token's end: whoever holds one is warned before it lapses, and hangs up with it when it lapses
//! or is revoked.

use std::pin::pin;
use std::time::Duration;

use axum::extract::ws::close_code;
use posthaste_engine::nouns::Millis;
use posthaste_engine::{Engine, stamp};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::connection::Line;
use crate::Door;
use posthaste_host::caller::Pass;
use posthaste_host::token_watch::End;

/// How long before its end the bearer of a token is warned.
const WARNING: Millis = 5 * 60 * 1000;

/// Watches over a pass until `watch` ends, and ends `line` with it. Nothing is said before `go`.
pub(super) fn watch(
    door: &Door,
    engine: &Engine,
    pass: Pass,
    watch: CancellationToken,
    line: Line,
) -> oneshot::Sender<()> {
    let (go, gone) = oneshot::channel();
    let (door, engine) = (door.clone(), engine.clone());
    tokio::spawn(async move {
        // Pinned here: handed on whole it would be there twice for as long as it waits.
        let watching = pin!(async {
            if gone.await.is_ok() {
                guard(&door, &engine, &pass, &line).await;
            }
        });
        watch.run_until_cancelled(watching).await;
    });
    go
}

async fn guard(door: &Door, engine: &Engine, pass: &Pass, line: &Line) {
    let warning = async {
        let Some(end) = pass.expires_at else { return std::future::pending().await };
        let left = |until: Millis| Duration::from_millis(u64::try_from(until - stamp::now()).unwrap_or(0));
        tokio::time::sleep(left(end - WARNING)).await;
        let left = end - stamp::now();
        if left > 0 {
            tell(line, "map/auth/expiring", json!({ "expiresAt": end, "expiresInMs": left }));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = warning => {}
        end = door.until_void(engine, pass) => hang_up(line, end),
    }
}

fn tell(line: &Line, method: &str, params: serde_json::Value) {
    let notice = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    // Whoever has hung up need not be told, and whoever does not read is not waited for.
    let _ = line.out.try_send(notice.to_string());
}

fn hang_up(line: &Line, end: End) {
    let (reason, farewell) = match end {
        End::Expired => ("expired", "the token has expired"),
        End::Revoked => ("revoked", "the token was revoked"),
    };
    tell(line, "map/auth/revoked", json!({ "reason": reason }));
    line.end(close_code::POLICY, farewell);
}
