//! The one place that reads the clock and makes ids. What happens inside `apply` gets both from here, by way of the
//! command.

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
        #[expect(clippy::disallowed_methods, reason = "this is the place")]
        let id = Uuid::now_v7();
        Self { id, now: now() }
    }
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
