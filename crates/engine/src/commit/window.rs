//! Group-commit window: how long a batch stays open for more commands. A commit costs much the same however many commands share
//! it, so a batch waits for callers that were just answered and are about to send again, but never for long.

use std::time::{Duration, Instant};

use super::queue::Wanted;

/// Commands that are enough for a batch whose callers do not wait: half of what one caller may have queued, so that it queues
/// the other half while these are written.
const WRITE_BEHIND_COMMANDS: usize = 128;
/// Fewer callers than these are not waited for: they would be answered later for little gain.
const MIN_CALLERS: usize = 8;

/// A batch, as far as the window is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// When its first command was taken.
    pub(crate) opened: Instant,
    /// Commands in it.
    pub(crate) commands: usize,
    /// Whether a caller waits for it: for the answer to one of its commands, or for room that they hold.
    pub(crate) is_awaited: bool,
    /// Callers that may come: those that the last commit answered, and commands that were queued behind it.
    pub(crate) expected: usize,
    /// How long it may stay open, waiting or applying ([`Limits::batch_open`](crate::limits::Limits::batch_open)).
    pub(crate) max_open: Duration,
    /// How long the last commit took. Waiting longer than that costs more than it saves.
    pub(crate) last_commit: Duration,
}

impl Batch {
    /// Commands that close the batch early.
    pub(crate) fn enough(&self) -> usize {
        match (self.is_awaited, self.expected >= MIN_CALLERS) {
            (false, _) => WRITE_BEHIND_COMMANDS,
            // The last callers may take long to come.
            (true, true) => self.expected - self.expected / 10,
            (true, false) => 0,
        }
    }

    /// When the batch closes, whatever comes.
    pub(crate) fn deadline(&self) -> Instant {
        let wait = if self.is_awaited { self.last_commit.min(self.max_open) } else { self.max_open };
        self.opened + wait
    }

    /// What a writer with nothing left to apply waits for.
    pub(crate) fn wanted(&self) -> Wanted {
        // A caller that waits ends the wait of a batch for which none waited.
        Wanted { commands: self.enough().saturating_sub(self.commands), caller: !self.is_awaited }
    }
}

/// Whether a batch is complete although more could come.
pub(crate) fn should_close(now: Instant, batch: &Batch) -> bool {
    batch.commands >= batch.enough() || now >= batch.deadline()
}

/// Whether a batch that still has queued commands to take must commit what it has.
pub(crate) fn is_overdue(now: Instant, batch: &Batch) -> bool {
    now >= batch.opened + batch.max_open
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_OPEN: Duration = Duration::from_millis(2);

    fn batch(opened: Instant) -> Batch {
        Batch {
            opened,
            commands: 1,
            is_awaited: true,
            expected: 64,
            max_open: MAX_OPEN,
            last_commit: Duration::from_millis(1),
        }
    }

    #[test]
    fn few_callers_are_not_waited_for() {
        let now = Instant::now();
        assert!(should_close(now, &Batch { expected: MIN_CALLERS - 1, ..batch(now) }));
        assert!(!should_close(now, &Batch { expected: MIN_CALLERS, ..batch(now) }));
    }

    #[test]
    fn nine_of_ten_expected_callers_are_enough() {
        let now = Instant::now();
        assert!(!should_close(now, &Batch { commands: 57, ..batch(now) }));
        assert!(should_close(now, &Batch { commands: 58, ..batch(now) }));
    }

    #[test]
    fn callers_are_waited_for_no_longer_than_a_commit_takes() {
        let now = Instant::now();
        assert!(!should_close(now + Duration::from_micros(999), &batch(now)));
        assert!(should_close(now + Duration::from_millis(1), &batch(now)));
        let slow_disk = Batch { last_commit: Duration::from_secs(1), ..batch(now) };
        assert!(!should_close(now + Duration::from_micros(1_999), &slow_disk));
        assert!(should_close(now + MAX_OPEN, &slow_disk));
    }

    #[test]
    fn batch_that_no_caller_waits_for_stays_open_until_it_is_large_or_late() {
        let now = Instant::now();
        let unawaited =
            Batch { is_awaited: false, expected: 0, commands: WRITE_BEHIND_COMMANDS - 1, ..batch(now) };
        assert!(!should_close(now + Duration::from_micros(1_999), &unawaited));
        assert!(should_close(now, &Batch { commands: WRITE_BEHIND_COMMANDS, ..unawaited }));
        assert!(should_close(now + MAX_OPEN, &unawaited));
        assert!(unawaited.wanted().caller, "a caller that waits ends the wait");
    }

    #[test]
    fn batch_is_overdue_however_many_commands_are_queued() {
        let now = Instant::now();
        assert!(!is_overdue(now + Duration::from_micros(1_999), &batch(now)));
        assert!(is_overdue(now + MAX_OPEN, &batch(now)));
    }
}
