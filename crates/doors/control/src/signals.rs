//! Methods about nudges and hooks, which are kept beside the mail directory.

use std::sync::Arc;

use posthaste_engine::Engine;
use posthaste_engine::nouns::{AgentId, TokenRole};
use posthaste_host::Host;
use posthaste_host::services::{MailSignals, NudgeDraft, SignalError};
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::{bad_params, denied};
use super::from_wire::{acting, name};
use super::table::Call;

/// Nudges an agent of the mail directory. The bridge finds the file and records it in the event log.
pub(super) async fn nudge(
    call: Call<'_>,
    given: wire::NudgeParams,
) -> Result<wire::NudgeResult, ErrorObject> {
    let signals = signals_of(call.host, call.engine)?;
    let to: AgentId = name(given.to)?;
    let caller = acting(call.identity, given.from)?;
    let recipient = to.to_string();
    let written = tokio::task::spawn_blocking(move || {
        let draft = NudgeDraft {
            from: caller.agent.as_str(),
            kind: &given.kind,
            message: &given.message,
            requires_response: given.requires_response,
        };
        signals.nudge(to.as_str(), draft)
    })
    .await;
    match written {
        Ok(Ok(nudge)) => Ok(wire::NudgeResult {
            from: nudge.from,
            kind: nudge.kind,
            message: nudge.message,
            timestamp: nudge.timestamp,
            requires_response: nudge.requires_response,
            to: recipient,
        }),
        Ok(Err(SignalError::Invalid(why))) => Err(bad_params(why)),
        Ok(Err(SignalError::Failed(why))) => Err(denied(&why)),
        Err(error) => Err(bad_params(error)),
    }
}

/// The hooks of the mail directory: all for an administrator, else the caller's own.
pub(super) async fn hooks(call: Call<'_>, _: wire::NoParams) -> Result<wire::HooksResult, ErrorObject> {
    let signals = signals_of(call.host, call.engine)?;
    let is_admin = call.identity.role == TokenRole::Admin;
    let hooks = tokio::task::spawn_blocking(move || signals.hooks()).await.map_err(bad_params)?;
    let shown = hooks.into_iter().filter(|hook| is_admin || hook.agent == call.identity.name.as_str());
    let shown = shown.map(|hook| wire::Hook {
        agent: hook.agent,
        status: hook.status,
        bead_id: hook.bead,
        title: hook.title,
        assigned_at: hook.assigned_at,
        last_activity: hook.last_activity,
    });
    Ok(wire::HooksResult { hooks: shown.collect() })
}

fn signals_of(host: &Host, engine: &Engine) -> Result<Arc<dyn MailSignals>, ErrorObject> {
    host.mail_signals(engine.realm())
        .ok_or_else(|| denied("this realm has no mail directory with hooks and nudges beside it"))
}
