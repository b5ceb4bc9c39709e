//! How long a batch is kept open for those who are on their way. A commit costs much the same however many share it, and
//! where many are in flight most of those who were just answered are back with their next command in the time that one
//! takes. So a batch of a crowd waits for them, never longer than a commit; one of a few does not wait at all.

use std::time::{Duration, Instant};

/// So many in flight are a crowd.
const CROWD: usize = 8;
/// No batch waits longer, however slow the disk.
const LONGEST: Duration = Duration::from_millis(2);
/// How often the writer looks whether somebody has come.
const NAP: Duration = Duration::from_micros(200);
/// Batches that do not wait, at most, after waiting was in vain again and again.
const MOST_SKIPPED: u32 = 64;

/// What is known of those who are in flight, and how far the batch at hand is.
#[derive(Debug)]
pub(crate) struct Gather {
    /// Commands that the last commit answered, and those that waited behind it.
    in_flight: usize,
    /// How long a commit takes, smoothed.
    commit: Duration,
    /// Batches to come that do not wait, and how many it would be the next time.
    skip: u32,
    penalty: u32,
    begun: Instant,
    began_with: usize,
    goal: usize,
    waited: bool,
}

impl Default for Gather {
    fn default() -> Self {
        let (commit, begun) = (Duration::ZERO, Instant::now());
        Self { in_flight: 0, commit, skip: 0, penalty: 0, begun, began_with: 0, goal: 0, waited: false }
    }
}

impl Gather {
    /// A batch begins with so many commands.
    pub(crate) fn begin(&mut self, commands: usize) {
        (self.begun, self.began_with, self.waited) = (Instant::now(), commands, false);
        // Nearly all of them: the last may be long in coming.
        self.goal = if self.in_flight >= CROWD && self.skip == 0 { self.in_flight * 9 / 10 } else { 0 };
        self.skip = self.skip.saturating_sub(1);
    }

    /// Waits a moment if more should come to a batch that has so many; says whether it did.
    pub(crate) fn waits(&mut self, commands: usize) -> bool {
        if commands >= self.goal || self.begun.elapsed() >= self.commit.min(LONGEST) {
            return false;
        }
        self.waited = true;
        std::thread::sleep(NAP);
        true
    }

    /// A batch of so many was committed in that time, while so many came behind it.
    pub(crate) fn committed(&mut self, commands: usize, behind: usize, took: Duration) {
        if self.waited {
            let (came, missed) = (commands - self.began_with, self.goal.saturating_sub(self.began_with));
            // Those who come when it suits them are not waited for as often.
            let in_vain = came * 4 < missed;
            self.penalty = if in_vain { (self.penalty * 2).clamp(1, MOST_SKIPPED) } else { self.penalty / 2 };
            self.skip = if in_vain { self.penalty } else { 0 };
        }
        self.in_flight = commands + behind;
        self.commit = (self.commit * 7 + took) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit of that many that took as long as a batch may wait.
    fn after(commands: usize, behind: usize) -> Gather {
        let mut gather = Gather { commit: LONGEST, ..Gather::default() };
        gather.begin(commands);
        gather.committed(commands, behind, LONGEST);
        gather
    }

    #[test]
    fn a_few_are_not_kept_waiting() {
        let mut gather = after(3, 4);
        gather.begin(1);
        assert!(!gather.waits(1));
    }

    #[test]
    fn a_crowd_is_waited_for_until_it_is_there() {
        let mut gather = after(10, 10);
        gather.begin(10);
        assert!(gather.waits(10));
        assert!(!gather.waits(18), "nine in ten are enough");
    }

    #[test]
    fn nobody_waits_longer_than_a_commit_takes() {
        let mut gather = after(10, 10);
        gather.begin(1);
        let started = Instant::now();
        while gather.waits(1) {}
        let waited = started.elapsed();
        assert!(waited >= LONGEST.mul_f32(0.5) && waited < Duration::from_secs(1), "{waited:?}");
    }

    #[test]
    fn who_waits_in_vain_waits_less_often() {
        let mut gather = after(10, 10);
        let mut waited = 0;
        for _ in 0..200 {
            gather.begin(10);
            waited += u32::from(gather.waits(10));
            // Nobody came meanwhile, and as many stand behind.
            gather.committed(10, 10, LONGEST);
        }
        assert!((2..20).contains(&waited), "{waited}");
        // Once somebody comes it is worth the while again.
        while !gather.waits(10) {
            gather.committed(10, 10, LONGEST);
            gather.begin(10);
        }
        gather.committed(20, 0, LONGEST);
        gather.begin(10);
        assert!(gather.waits(10));
    }
}
