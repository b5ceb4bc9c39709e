//! One caller's part of the office: how much of it somebody may have at work at once, however many connections it asks on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::Limits;

/// How long somebody counts as being about after a command.
const ABOUT: Duration = Duration::from_secs(1);
/// How long each command waits of a caller that wants more than its share while others are about: the machine is theirs,
/// too, and not only the queue.
const REST: Duration = Duration::from_millis(2);

/// A caller's part. Whoever has more than that on the way waits for its own, not others for it: the queue is first come
/// first served, and fair as long as nobody fills it alone.
#[derive(Debug)]
pub struct Share {
    commands: Arc<Semaphore>,
    looks: Arc<Semaphore>,
}

/// What one command or reading takes of a share. Keeps the share known while it is at work.
#[derive(Debug)]
pub(crate) struct Part {
    _permit: OwnedSemaphorePermit,
    _of: Arc<Share>,
}

impl Share {
    /// A share that nobody has yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Arc<Self> {
        // One reader is always left to others.
        let looks = limits.readers.saturating_sub(1).max(1);
        Arc::new(Self {
            commands: Arc::new(Semaphore::new(limits.share_commands.max(1))),
            looks: Arc::new(Semaphore::new(looks)),
        })
    }

    /// Waits until one more command may be on its way to the writer. Nothing only if somebody closed it, which nobody
    /// does.
    pub(crate) async fn command(self: &Arc<Self>, company: &Company) -> Option<Part> {
        let others_are_about = company.meet(self);
        if let Ok(permit) = self.commands.clone().try_acquire_owned() {
            return Some(Part { _permit: permit, _of: self.clone() });
        }
        let part = self.part(&self.commands).await;
        if others_are_about {
            tokio::time::sleep(REST).await;
        }
        part
    }

    /// Waits until one more reading may go on.
    pub(crate) async fn look(self: &Arc<Self>) -> Option<Part> {
        self.part(&self.looks).await
    }

    async fn part(self: &Arc<Self>, of: &Arc<Semaphore>) -> Option<Part> {
        let permit = of.clone().acquire_owned().await.ok()?;
        Some(Part { _permit: permit, _of: self.clone() })
    }
}

/// Who has been at a queue lately.
#[derive(Debug, Default)]
pub(crate) struct Company {
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    /// Whose command was the latest; only ever compared.
    share: usize,
    /// When it was somebody else's before.
    changed: Option<Instant>,
}

impl Company {
    /// Notes that a caller is here, and says whether another has been here lately.
    fn meet(&self, share: &Arc<Share>) -> bool {
        let (now, share) = (Instant::now(), Arc::as_ptr(share).addr());
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.share != share {
            let is_first = latest.share == 0;
            *latest = Latest { share, changed: (!is_first).then_some(now) };
        }
        latest.changed.is_some_and(|changed| now.duration_since(changed) < ABOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(commands: usize) -> Arc<Share> {
        Share::new(&Limits { share_commands: commands, ..Limits::default() })
    }

    /// How long so many commands of one caller take that each are done at once, twice as many at a time as its share.
    async fn pressed(share: &Arc<Share>, company: &Arc<Company>, rounds: usize) -> Duration {
        let started = Instant::now();
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (share, company) = (share.clone(), company.clone());
                tokio::spawn(async move {
                    for _ in 0..rounds {
                        let part = share.command(&company).await;
                        tokio::task::yield_now().await;
                        drop(part);
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        started.elapsed()
    }

    #[tokio::test]
    async fn whoever_wants_more_than_its_share_rests_only_among_others() {
        let (company, flood, other) = (Arc::new(Company::default()), share(2), share(2));
        // Nobody else is here, so nobody is in anybody's way: a rest for each would take 200 ms.
        let alone = pressed(&flood, &company, 50).await;
        assert!(alone < REST * 50, "{alone:?}");
        drop(other.command(&company).await);
        let among_others = pressed(&flood, &company, 50).await;
        assert!(among_others >= REST * 50, "{among_others:?}");
    }

    #[tokio::test]
    async fn whoever_keeps_to_its_share_never_rests() {
        let (company, one, other) = (Company::default(), share(2), share(2));
        let started = Instant::now();
        for _ in 0..500 {
            drop((one.command(&company).await, other.command(&company).await));
        }
        assert!(started.elapsed() < REST * 250, "{:?}", started.elapsed());
    }

    #[test]
    fn who_left_long_ago_is_no_company() {
        let (company, one, other) = (Company::default(), share(1), share(1));
        assert!(!company.meet(&one), "the first is alone");
        assert!(!company.meet(&one));
        assert!(company.meet(&other));
        assert!(company.meet(&one));
        company.latest.lock().unwrap().changed = Instant::now().checked_sub(ABOUT);
        assert!(!company.meet(&one));
    }
}
