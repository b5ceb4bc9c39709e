//! Watches the token of a connection: warns the peer before it expires, and closes the connection when it expires or is
//! revoked.

use std::pin::pin;
use std::time::Duration;

use axum::extract::ws::close_code;
use posthaste_engine::nouns::Millis;
use posthaste_engine::{Engine, stamp};
use posthaste_wire::map::connect::{AuthExpiring, AuthRevoked};
use posthaste_wire::rpc;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::connection::Line;
use crate::Door;
use posthaste_host::caller::TokenRef;
use posthaste_host::token_watch::End;

/// How long before its token expires a peer is warned.
const WARNING: Millis = 5 * 60 * 1000;

/// Watches a token until `watch` is cancelled, and ends `line` with the token. Starts when the returned sender is used.
pub(super) fn watch(
    door: &Door,
    engine: &Engine,
    pass: TokenRef,
    watch: CancellationToken,
    line: Line,
) -> oneshot::Sender<()> {
    let (go, gone) = oneshot::channel();
    let (door, engine) = (door.clone(), engine.clone());
    tokio::spawn(async move {
        // Pinned here: moved into `run_until_cancelled` it would take its memory twice.
        let watching = pin!(async {
            if gone.await.is_ok() {
                guard(&door, &engine, &pass, &line).await;
            }
        });
        watch.run_until_cancelled(watching).await;
    });
    go
}

async fn guard(door: &Door, engine: &Engine, pass: &TokenRef, line: &Line) {
    let warning = async {
        let Some(end) = pass.expires_at else { return std::future::pending().await };
        let left = |until: Millis| Duration::from_millis(u64::try_from(until - stamp::now()).unwrap_or(0));
        tokio::time::sleep(left(end - WARNING)).await;
        let left = end - stamp::now();
        if left > 0 {
            tell(line, "map/auth/expiring", &AuthExpiring { expires_at: end, expires_in_ms: left });
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = warning => {}
        end = door.until_token_ends(engine, pass) => hang_up(line, end),
    }
}

fn tell(line: &Line, method: &str, params: &impl Serialize) {
    let Ok(params) = to_raw_value(params) else { return };
    // A full queue means that the peer does not read; the connection ends soon either way.
    let _ = line.out.try_send(rpc::write_notification(method, Some(&params)));
}

fn hang_up(line: &Line, end: End) {
    let (reason, text) = match end {
        End::Expired => ("expired", "the token has expired"),
        End::Revoked => ("revoked", "the token was revoked"),
    };
    tell(line, "map/auth/revoked", &AuthRevoked { reason: reason.to_owned() });
    line.end(close_code::POLICY, text);
}
