//! Where stamped commands come from, in the one order in which they are applied. Today that is a queue in this process; a
//! replicated log has the same interface, and nothing outside this folder can tell which it is.

mod claim;
mod local;
mod record;

pub(crate) use claim::Claim;
pub(crate) use local::{Account, Local, PendingAnswer, QueueSlot, Sender, local};
pub use record::{RECORD_VERSION, Record, RecordError};

use std::time::Instant;

use crate::commit::{QueuedCommand, Wanted};

/// Hands out commands in the order in which they are applied.
pub(crate) trait Source: Send + 'static {
    /// Waits for at least one command, then takes some, up to a limit. False when no more will come. What was taken before has
    /// been answered by now.
    fn take(&mut self, batch: &mut Vec<QueuedCommand>, limit: usize) -> bool;

    /// Adds some of what has come since, up to the limit, without waiting.
    fn top_up(&mut self, batch: &mut Vec<QueuedCommand>, limit: usize);

    /// Waits until a deadline, or until what is wanted has come. Returns at once if waiting is of no use.
    fn wait_until(&mut self, _deadline: Instant, _wanted: Wanted) {}

    /// Whether a caller waits for the batch besides those that wait for answers.
    fn is_awaited(&self) -> bool {
        false
    }

    /// How many commands have come and were not taken.
    fn waiting(&self) -> usize {
        0
    }
}
