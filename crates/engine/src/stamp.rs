//! The one place that reads the clock and makes ids. What happens inside `apply` gets both from here, by way of the
//! command.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::nouns::Millis;

/// A command's birth mark: when it was made, and the number its ids are derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The name of the command, unique for ever; the first id it gives out.
    pub id: Uuid,
    /// When it was made.
    pub now: Millis,
}

impl Stamp {
    /// A stamp for a command made now.
    #[must_use]
    pub fn new() -> Self {
        let now = now();
        Self { id: fresh_id(now), now }
    }
}

/// The place in the order of ids that the next one must lie beyond: the time in milliseconds and a count of 12 bits below
/// it; each id takes a higher one.
static LAST: AtomicU64 = AtomicU64::new(0);
const COUNT_BITS: u32 = 12;

/// The first place of a millisecond. An id has 48 bits for it.
fn place_of(time: Millis) -> u64 {
    u64::try_from(time).unwrap_or(0).min((1 << 48) - 1) << COUNT_BITS
}

/// Lets all further ids rise above those of that time, whatever the clock says.
pub(crate) fn ids_after(time: Millis) {
    LAST.fetch_max(place_of(time.saturating_add(1)), Ordering::Relaxed);
}

/// An id of version 7 that nobody has given out before: the time, a count within it, and bits that follow from a secret
/// of this process. Ids rise in the order in which they are made. Asking the system for chance each time would cost more
/// than all the rest of a stamp.
fn fresh_id(now: Millis) -> Uuid {
    static SECRET: LazyLock<(RandomState, Uuid)> = LazyLock::new(|| {
        #[expect(clippy::disallowed_methods, reason = "this is the place")]
        let salt = Uuid::new_v4();
        (RandomState::new(), salt)
    });
    let at = place_of(now);
    let next = |last: u64| Some(at.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(at);
    let mark = at.max(last + 1);
    let chance = u128::from(SECRET.0.hash_one((SECRET.1.as_u128(), mark)));
    let (millis, count) = (u128::from(mark >> COUNT_BITS), u128::from(mark & ((1 << COUNT_BITS) - 1)));
    let low = chance & ((1 << 62) - 1);
    Uuid::from_u128(millis << 80 | 0x7 << 76 | count << 64 | 0b10 << 62 | low)
}

impl Default for Stamp {
    fn default() -> Self {
        Self::new()
    }
}

/// The time, in milliseconds since 1970.
#[must_use]
pub fn now() -> Millis {
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(elapsed.as_millis()).unwrap_or(Millis::MAX)
}

/// The time, in nanoseconds since 1970, as finely as the system knows it.
#[must_use]
pub fn now_nanos() -> i128 {
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(elapsed.as_nanos()).unwrap_or(i128::MAX)
}

/// A name nobody can guess, for tokens.
#[must_use]
pub fn secret() -> String {
    // Two random UUIDs carry 244 random bits from the system's generator.
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    let (a, b) = (Uuid::new_v4(), Uuid::new_v4());
    format!("{}{}", a.simple(), b.simple())
}

/// The n-th id that a command gives out. Close to the command's own, and ordered after it.
#[must_use]
pub(crate) fn derived(base: Uuid, n: u64) -> Uuid {
    // Only the 62 random bits at the end move: the time, version and variant bits stay those of a version 7 id.
    const LOW: u128 = (1 << 62) - 1;
    let bits = base.as_u128();
    let low = (bits & LOW).wrapping_add(u128::from(n)) & LOW;
    Uuid::from_u128((bits & !LOW) | low)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Stamp, fresh_id};

    #[test]
    fn ids_are_of_version_7_rise_and_are_never_given_twice() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..5_000).map(|_| Stamp::new().id).collect::<Vec<_>>()))
            .collect();
        let mut seen = HashSet::new();
        for made in threads.into_iter().map(|thread| thread.join().expect("ids")) {
            assert!(made.is_sorted_by(|a, b| a < b), "in the order in which they are made");
            assert!(made.iter().all(|id| id.get_version_num() == 7));
            assert!(made.into_iter().all(|id| seen.insert(id)), "each once");
        }
    }

    #[test]
    fn a_clock_that_goes_back_does_not_bring_ids_back() {
        let first = fresh_id(4_000_000_000_000);
        assert!(fresh_id(1_000) > first);
    }
}
