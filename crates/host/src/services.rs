//! What a door asks of another part of the program. The program provides these, so that no door knows another.

use std::fmt;
use std::pin::Pin;

use posthaste_engine::Engine;
use posthaste_engine::nouns::RealmName;
use posthaste_wire::files::signals::{Hook, Nudge};
use posthaste_wire::rpc::ErrorObject;
use serde_json::value::RawValue;

use crate::caller::Identity;

/// A swarm that the default realm hosts.
pub trait HostedSwarm: fmt::Debug + Send + Sync {
    /// Tasks in memory that are not finished.
    fn live_tasks(&self) -> usize;
    /// Says that the operator's peer of this name is at this URL, so that the operator's token for it may be sent there.
    fn trust_peer(&self, name: &RealmName, url: &str) -> Result<(), String>;
}

/// Hooks and nudges beside the mail directory that is joined with the default realm. Calls block on files.
pub trait MailSignals: fmt::Debug + Send + Sync {
    /// What the directory's agents are to work on.
    fn hooks(&self) -> Vec<Hook>;
    /// Nudges an agent.
    fn nudge(&self, to: &str, draft: NudgeDraft<'_>) -> Result<Nudge, SignalError>;
}

/// A nudge that has no time yet.
#[derive(Clone, Copy, Debug)]
pub struct NudgeDraft<'a> {
    pub from: &'a str,
    pub kind: &'a str,
    pub message: &'a str,
    pub requires_response: bool,
}

/// Why a nudge was not written.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Failed(String),
}

/// The future of [`OwnMethods::call`].
pub type OwnAnswer<'a> = Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send + 'a>>;

/// posthaste's own methods, `x-posthaste/…`, which every JSON-RPC door offers.
pub trait OwnMethods: fmt::Debug + Send + Sync {
    /// Calls one for a caller whose token was checked.
    fn call<'a>(
        &'a self,
        engine: &'a Engine,
        identity: &'a Identity,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> OwnAnswer<'a>;
}
