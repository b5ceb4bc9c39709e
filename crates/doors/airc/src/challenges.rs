//! Challenges: a random text that a newcomer signs, good for one use within five minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use posthaste_engine::nouns::Millis;
use posthaste_engine::stamp;

/// How long a challenge is good for.
pub(super) const LASTS: Millis = 300_000;
/// Challenges that wait at once; a flood drops the oldest.
const MOST: usize = 10_000;

/// The challenges that were given out. Forgotten when the office stops: then one asks for another.
#[derive(Debug, Default)]
pub(crate) struct Challenges {
    waiting: Mutex<HashMap<String, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    /// Realm and handle, which the challenge is bound to.
    whose: String,
    until: Millis,
}

impl Waiting {
    fn check(&self, realm: &str, handle: &str) -> Result<(), Stale> {
        match self.whose == format!("{realm}/{handle}") {
            false => Err(Stale::Unknown),
            true if self.until > stamp::now() => Ok(()),
            true => Err(Stale::Expired),
        }
    }
}

/// Why a challenge does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    Unknown,
    Expired,
}

impl Challenges {
    /// A new challenge, and until when it is good.
    pub(super) fn give(&self, realm: &str, handle: &str) -> (String, Millis) {
        let challenge = format!("{}{}", stamp::secret(), stamp::secret());
        let (now, mut waiting) = (stamp::now(), self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let until = now + LASTS;
        if waiting.len() >= MOST {
            waiting.retain(|_, one| one.until > now);
        }
        if waiting.len() >= MOST
            && let Some(oldest) = waiting.iter().min_by_key(|(_, one)| one.until).map(|(key, _)| key.clone())
        {
            waiting.remove(&oldest);
        }
        waiting.insert(challenge.clone(), Waiting { whose: format!("{realm}/{handle}"), until });
        (challenge, until)
    }

    /// Whether a challenge was given for this handle and is good, without using it up.
    pub(super) fn check(&self, realm: &str, handle: &str, challenge: &str) -> Result<(), Stale> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.get(challenge).ok_or(Stale::Unknown).and_then(|one| one.check(realm, handle))
    }

    /// Uses a challenge up. Of several callers that show the same one, the first has it.
    pub(super) fn take(&self, realm: &str, handle: &str, challenge: &str) -> Result<(), Stale> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.get(challenge).ok_or(Stale::Unknown).and_then(|one| one.check(realm, handle))?;
        waiting.remove(challenge);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_bound_to_its_handle_and_used_once() {
        let challenges = Challenges::default();
        let (challenge, _) = challenges.give("main", "alice");
        assert!(challenge.len() >= 43);
        assert_eq!(challenges.take("main", "bob", &challenge), Err(Stale::Unknown));
        assert_eq!(challenges.take("other", "alice", &challenge), Err(Stale::Unknown));
        assert_eq!(challenges.check("main", "bob", &challenge), Err(Stale::Unknown));
        assert_eq!(challenges.check("main", "alice", &challenge), Ok(()), "looking does not use it up");
        assert_eq!(challenges.take("main", "alice", &challenge), Ok(()));
        assert_eq!(challenges.take("main", "alice", &challenge), Err(Stale::Unknown));
    }
}
