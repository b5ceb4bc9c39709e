//! Signatures that come at the same moment are checked together, which takes half the time. Nobody waits for company: what
//! is there when everyone who is ready has had a turn is checked.

use std::sync::{Arc, Mutex, PoisonError};

use posthaste_wire::signing::{Claim, SigningError, check_all};
use tokio::sync::oneshot;

/// Claims that are checked without letting others have a turn.
const AT_ONCE: usize = 64;

/// The claims that wait to be checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    waiting: Arc<Mutex<Vec<Waiting>>>,
}

#[derive(Debug)]
struct Waiting {
    claim: Arc<Claim>,
    tell: oneshot::Sender<Result<(), SigningError>>,
}

impl Checks {
    /// Checks a claim, on a task of the runtime's.
    pub(super) async fn check(&self, claim: Claim) -> Result<(), SigningError> {
        let (tell, hear) = oneshot::channel();
        let claim = Arc::new(claim);
        let is_first = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(Waiting { claim: claim.clone(), tell });
            waiting.len() == 1
        };
        if is_first {
            // Not here: whoever asked first may hang up, and the others still want to know.
            tokio::spawn(self.clone().check_those_who_wait());
        }
        // If the task was lost, the claim is not.
        hear.await.unwrap_or_else(|_| claim.check())
    }

    async fn check_those_who_wait(self) {
        loop {
            tokio::task::yield_now().await;
            let (taken, are_all): (Vec<Waiting>, bool) = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let some = waiting.len().min(AT_ONCE);
                (waiting.drain(..some).collect(), waiting.is_empty())
            };
            let claims: Vec<&Claim> = taken.iter().map(|waiting| &*waiting.claim).collect();
            let checked = check_all(&claims);
            for (waiting, outcome) in taken.into_iter().zip(checked) {
                // Who hung up does not want to know.
                drop(waiting.tell.send(outcome));
            }
            // Whoever came since then is first again.
            if are_all {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_wire::signing::SecretKey;

    use super::*;

    fn claim(n: u32, is_good: bool) -> Claim {
        let secret = SecretKey::from_seed(&[7; 32]);
        let signed = format!("message {n}");
        let signature = secret.sign(if is_good { signed.as_bytes() } else { b"another" });
        Claim { key: secret.public(), signed, signature }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everyone_hears_of_its_own_claim() {
        let checks = Checks::default();
        let asked: Vec<_> = (0..200_u32)
            .map(|n| {
                let checks = checks.clone();
                tokio::spawn(async move { checks.check(claim(n, n % 7 != 0)).await.is_ok() })
            })
            .collect();
        for (n, one) in (0_u32..).zip(asked) {
            assert_eq!(one.await.unwrap(), n % 7 != 0, "{n}");
        }
        assert!(checks.waiting.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn whoever_asked_first_may_hang_up() {
        let checks = Checks::default();
        let first = {
            let checks = checks.clone();
            tokio::spawn(async move { checks.check(claim(1, true)).await })
        };
        tokio::task::yield_now().await;
        first.abort();
        checks.check(claim(2, true)).await.unwrap();
        assert!(checks.check(claim(3, false)).await.is_err());
    }
}
