//! How long a batch is kept open for those who are on their way, and when it is large enough. A commit costs much the same
//! however many share it, and where many are in flight most of those who were just answered are back with their next
//! command in the time that one takes. So a batch of a crowd waits for them, never longer than a commit; one of a few does
//! not wait at all. But where commands take long, a batch of all who are in flight leaves everybody else with nothing to do
//! until it is written. There it has half of them: while one half is written the other is answered and asks again.

use std::time::{Duration, Instant};

/// So many in flight are a crowd.
const CROWD: usize = 8;
/// A batch that would take longer than so many commits takes long.
const COMMITS: u32 = 3;
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
    /// How long a commit takes, and how long each command before it, smoothed.
    commit: Duration,
    command: Duration,
    /// Batches to come that do not wait, and how many it would be the next time.
    skip: u32,
    penalty: u32,
    begun: Instant,
    began_with: usize,
    goal: usize,
    waited: Duration,
}

impl Default for Gather {
    fn default() -> Self {
        Self {
            in_flight: 0,
            commit: Duration::ZERO,
            command: Duration::ZERO,
            skip: 0,
            penalty: 0,
            begun: Instant::now(),
            began_with: 0,
            goal: 0,
            waited: Duration::ZERO,
        }
    }
}

impl Gather {
    /// How many commands a batch may have.
    pub(crate) fn most(&self, limit: usize) -> usize {
        let all = u32::try_from(self.in_flight).unwrap_or(u32::MAX);
        let is_soon_done = self.command.saturating_mul(all) <= self.commit * COMMITS;
        if is_soon_done || self.in_flight < 2 * CROWD { limit } else { limit.min(self.in_flight / 2) }
    }

    /// A batch begins with so many commands.
    pub(crate) fn begin(&mut self, commands: usize) {
        (self.begun, self.began_with, self.waited) = (Instant::now(), commands, Duration::ZERO);
        // Nearly all of them: the last may be long in coming.
        let all = self.most(self.in_flight);
        self.goal = if all >= CROWD && self.skip == 0 { all * 9 / 10 } else { 0 };
        self.skip = self.skip.saturating_sub(1);
    }

    /// Waits a moment if more should come to a batch that has so many; says whether it did.
    pub(crate) fn waits(&mut self, commands: usize) -> bool {
        if commands >= self.goal || self.begun.elapsed() >= self.commit.min(LONGEST) {
            return false;
        }
        let before = Instant::now();
        std::thread::sleep(NAP);
        self.waited += before.elapsed();
        true
    }

    /// A batch of so many was committed in that time, while so many came behind it.
    pub(crate) fn committed(&mut self, commands: usize, behind: usize, took: Duration) {
        if !self.waited.is_zero() {
            let (came, missed) = (commands - self.began_with, self.goal.saturating_sub(self.began_with));
            // Those who come when it suits them are not waited for as often.
            let in_vain = came * 4 < missed;
            self.penalty = if in_vain { (self.penalty * 2).clamp(1, MOST_SKIPPED) } else { self.penalty / 2 };
            self.skip = if in_vain { self.penalty } else { 0 };
        }
        self.in_flight = commands + behind;
        let applied = self.begun.elapsed().saturating_sub(self.waited + took);
        let each = applied / u32::try_from(commands.max(1)).unwrap_or(u32::MAX);
        self.commit = (self.commit * 7 + took) / 8;
        self.command = (self.command * 7 + each) / 8;
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
    fn a_batch_of_long_commands_has_half_of_them() {
        let mut gather = Gather { in_flight: 64, commit: Duration::from_millis(1), ..Gather::default() };
        let most = |gather: &mut Gather, micros: u64| {
            gather.command = Duration::from_micros(micros);
            gather.begin(1);
            (gather.most(1_000), gather.goal)
        };
        assert_eq!(most(&mut gather, 40), (1_000, 57), "all who are in flight are soon done");
        assert_eq!(most(&mut gather, 50), (32, 28), "half of them");
        gather.in_flight = 2 * CROWD - 1;
        assert_eq!(most(&mut gather, 5_000), (1_000, 13), "nobody parts a few");
    }

    #[test]
    fn how_long_commands_take_is_learned() {
        let mut gather = Gather::default();
        for _ in 0..40 {
            gather.begin(10);
            std::thread::sleep(Duration::from_millis(2));
            gather.committed(10, 0, Duration::from_micros(100));
        }
        assert!(gather.command >= Duration::from_micros(180), "{:?}", gather.command);
        assert!((90..=100).contains(&gather.commit.as_micros()), "{:?}", gather.commit);
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
