//! Where stamped commands come from, in order. Today a queue in this process; a replicated stream has the same face,
//! and nobody outside this room can tell which it is.

mod claim;
mod local;
mod record;
mod share;

pub(crate) use claim::Claim;
pub(crate) use local::{AnswerSlip, Local, Place, Sender, local};
pub use record::{RECORD_VERSION, Record, RecordError};
pub use share::CallerQuota;
pub(crate) use share::{Account, Company, Part};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::EngineError;
use crate::verbs::Outcome;

/// A command on its way to the writer.
#[derive(Debug)]
pub(crate) struct Work {
    /// The command, stamped.
    pub(crate) record: Record,
    /// Who waits for the answer; nobody for commands that other offices submitted.
    pub(crate) answer: Option<oneshot::Sender<Result<Outcome, EngineError>>>,
    /// Whether it is still to be carried out; nothing if it is in any case.
    pub(crate) claim: Option<Claim>,
    /// The room it takes in the queue; given back when it has been applied.
    pub(crate) room: Option<OwnedSemaphorePermit>,
    /// What it takes of its caller's share; given back at the same time.
    pub(crate) share: Option<Part>,
}

impl Work {
    /// Takes the command up; false if its caller has withdrawn it.
    pub(crate) fn take_up(&self) -> bool {
        self.claim.as_ref().is_none_or(Claim::take_up)
    }
}

/// Hands out commands in the one order in which they are to be applied.
pub(crate) trait Source: Send + 'static {
    /// Waits for at least one command, then takes what is there up to a limit. False when no more will come.
    fn take(&mut self, batch: &mut Vec<Work>, limit: usize) -> bool;

    /// Adds what has come since, up to the limit, without waiting.
    fn top_up(&mut self, batch: &mut Vec<Work>, limit: usize);

    /// How many commands are there that were not taken yet, as far as that is known.
    fn waiting(&self) -> usize {
        0
    }
}
