//! Giving way. While nobody waits for the writer, whoever hands letters on should not wait for it either: the system leaves
//! a thread that was woken on the processor of a busy one for milliseconds, even where another processor has nothing to do.
//! So the writer offers its own between two stretches of work. Where somebody takes it who simply computes, it stops
//! offering for a while.

use std::time::{Duration, Instant};

/// Whoever hands letters on is done sooner.
const LONG: Duration = Duration::from_millis(2);
/// After somebody kept the processor long, the writer keeps it so many times as long.
const IN_TURN: u32 = 20;

/// How the writer fared when it gave way.
#[derive(Debug, Default)]
pub(crate) struct Courtesy {
    /// Until when it does not.
    keeps_on: Option<Instant>,
}

impl Courtesy {
    /// Lets others have the processor, if any of them wait for it.
    pub(crate) fn give_way(&mut self) {
        let now = Instant::now();
        if self.is_due(now) {
            std::thread::yield_now();
            self.returned(now, Instant::now());
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.keeps_on.is_none_or(|until| now >= until)
    }

    fn returned(&mut self, left: Instant, now: Instant) {
        let away = now.duration_since(left);
        self.keeps_on = (away >= LONG).then(|| now + away * IN_TURN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gave_way_for_long_keeps_on_for_longer() {
        let (mut courtesy, start) = (Courtesy::default(), Instant::now());
        assert!(courtesy.is_due(start));
        courtesy.returned(start, start + LONG / 2);
        assert!(courtesy.is_due(start + LONG / 2), "that was soon");
        courtesy.returned(start, start + LONG);
        assert!(!courtesy.is_due(start + LONG * IN_TURN));
        assert!(courtesy.is_due(start + LONG * (IN_TURN + 1)));
    }
}
