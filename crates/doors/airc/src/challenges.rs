//! Challenges: random texts that a client signs to prove its key, valid for one use within five minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use posthaste_engine::nouns::Millis;
use posthaste_engine::stamp;

/// How long a challenge is valid.
const VALID_FOR: Millis = 300_000;
/// Open challenges; one more drops the oldest.
const MAX_OPEN: usize = 10_000;

/// The open challenges. They are lost when the server stops; clients then ask for another.
#[derive(Debug, Default)]
pub(crate) struct Challenges {
    open: Mutex<HashMap<String, Open>>,
}

#[derive(Debug)]
struct Open {
    /// Realm and handle, which the challenge is bound to.
    holder: String,
    until: Millis,
}

impl Open {
    fn check(&self, realm: &str, handle: &str) -> Result<(), ChallengeError> {
        match self.holder == format!("{realm}/{handle}") {
            false => Err(ChallengeError::Unknown),
            true if self.until > stamp::now() => Ok(()),
            true => Err(ChallengeError::Expired),
        }
    }
}

/// Why a challenge is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChallengeError {
    Unknown,
    Expired,
}

impl Challenges {
    /// A new challenge, and when it expires.
    pub(super) fn issue(&self, realm: &str, handle: &str) -> (String, Millis) {
        let challenge = format!("{}{}", stamp::secret(), stamp::secret());
        let (now, mut open) = (stamp::now(), self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let until = now + VALID_FOR;
        if open.len() >= MAX_OPEN {
            open.retain(|_, one| one.until > now);
        }
        if open.len() >= MAX_OPEN
            && let Some(oldest) = open.iter().min_by_key(|(_, one)| one.until).map(|(key, _)| key.clone())
        {
            open.remove(&oldest);
        }
        open.insert(challenge.clone(), Open { holder: format!("{realm}/{handle}"), until });
        (challenge, until)
    }

    /// Whether a challenge was issued for this handle and is valid, without using it up.
    pub(super) fn check(&self, realm: &str, handle: &str, challenge: &str) -> Result<(), ChallengeError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(challenge).ok_or(ChallengeError::Unknown).and_then(|one| one.check(realm, handle))
    }

    /// Uses a challenge up. Of several callers with the same challenge, the first succeeds.
    pub(super) fn take(&self, realm: &str, handle: &str, challenge: &str) -> Result<(), ChallengeError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(challenge).ok_or(ChallengeError::Unknown).and_then(|one| one.check(realm, handle))?;
        open.remove(challenge);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_bound_to_its_handle_and_used_once() {
        let challenges = Challenges::default();
        let (challenge, _) = challenges.issue("main", "alice");
        assert!(challenge.len() >= 43);
        assert_eq!(challenges.take("main", "bob", &challenge), Err(ChallengeError::Unknown));
        assert_eq!(challenges.take("other", "alice", &challenge), Err(ChallengeError::Unknown));
        assert_eq!(challenges.check("main", "bob", &challenge), Err(ChallengeError::Unknown));
        assert_eq!(challenges.check("main", "alice", &challenge), Ok(()), "a check does not use it up");
        assert_eq!(challenges.take("main", "alice", &challenge), Ok(()));
        assert_eq!(challenges.take("main", "alice", &challenge), Err(ChallengeError::Unknown));
    }
}
