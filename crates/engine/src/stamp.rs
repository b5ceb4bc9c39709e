//! The only module that reads the clock and creates ids. Verbs get both from the stamp of their command.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::nouns::Millis;

/// The stamp of a command: when it was made, and the id that its other ids are derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The id of the command, globally unique; the first id that it uses.
    pub id: Uuid,
    /// When it was made.
    pub now: Millis,
}

impl Stamp {
    /// A stamp with the current time and a new id.
    #[must_use]
    pub fn new() -> Self {
        let now = now();
        Self { id: fresh_id(now), now }
    }
}

/// The last id given out, as a number: milliseconds, followed by a 12-bit counter. Each new id must be larger.
static LAST_ID: AtomicU64 = AtomicU64::new(0);
const COUNT_BITS: u32 = 12;

/// The smallest id number of a millisecond. An id has 48 bits for the time.
fn id_number(time: Millis) -> u64 {
    u64::try_from(time).unwrap_or(0).min((1 << 48) - 1) << COUNT_BITS
}

/// Makes all further ids larger than those of that time, whatever the clock says.
pub(crate) fn ids_after(time: Millis) {
    LAST_ID.fetch_max(id_number(time.saturating_add(1)), Ordering::Relaxed);
}

/// A new UUIDv7: the time, a counter within it, and bits derived from a secret of this process. Ids increase in the
/// order in which they are made. System randomness for each id would cost more than the rest of the stamp.
fn fresh_id(now: Millis) -> Uuid {
    static SECRET: LazyLock<(RandomState, Uuid)> = LazyLock::new(|| {
        #[expect(clippy::disallowed_methods, reason = "the only module that may")]
        let salt = Uuid::new_v4();
        (RandomState::new(), salt)
    });
    let at = id_number(now);
    let next = |last: u64| Some(at.max(last + 1));
    let last = LAST_ID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(at);
    let number = at.max(last + 1);
    let random = u128::from(SECRET.0.hash_one((SECRET.1.as_u128(), number)));
    let (millis, count) = (u128::from(number >> COUNT_BITS), u128::from(number & ((1 << COUNT_BITS) - 1)));
    let low = random & ((1 << 62) - 1);
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
    #[expect(clippy::disallowed_methods, reason = "the only module that may")]
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(elapsed.as_millis()).unwrap_or(Millis::MAX)
}

/// The time, in nanoseconds since 1970, at the system's resolution.
#[must_use]
pub fn now_nanos() -> i128 {
    #[expect(clippy::disallowed_methods, reason = "the only module that may")]
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(elapsed.as_nanos()).unwrap_or(i128::MAX)
}

/// A random string that cannot be guessed, for tokens.
#[must_use]
pub fn secret() -> String {
    // Two random UUIDs carry 244 random bits from the system's generator.
    #[expect(clippy::disallowed_methods, reason = "the only module that may")]
    let (a, b) = (Uuid::new_v4(), Uuid::new_v4());
    format!("{}{}", a.simple(), b.simple())
}

/// The n-th id that a command uses: close to the command's own id, and ordered after it.
#[must_use]
pub(crate) fn derived(base: Uuid, n: u64) -> Uuid {
    // Only the 62 random bits at the end change: the time, version and variant bits stay those of a version 7 id.
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
    fn ids_are_unique_and_increasing_uuids_of_version_7() {
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
    fn ids_increase_when_the_clock_goes_back() {
        let first = fresh_id(4_000_000_000_000);
        assert!(fresh_id(1_000) > first);
    }
}
