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
/// CPU time of one read that is not counted: nearly all reads take less.
const FREE_READ: Duration = Duration::from_millis(20);
/// Counted CPU time that a caller may be behind with before its next read waits.
const READ_CREDIT: Duration = Duration::from_millis(250);
/// A caller makes up for counted CPU time at this fraction of the time that passes.
const READ_RATE: u32 = 2;

/// A caller's part. Whoever has more than that on the way waits for its own, not others for it: the queue is first come
/// first served, and fair as long as nobody fills it alone. Where nobody else is about there is nobody to be fair to.
#[derive(Debug)]
pub struct CallerQuota {
    commands: Arc<Semaphore>,
    /// What it may have besides while nobody else is about.
    surplus: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    patterns: Arc<Semaphore>,
    /// Commands that may take long.
    broad: Arc<Semaphore>,
    /// CPU time of expensive reads that the caller has not made up for.
    debt: Arc<Mutex<Debt>>,
}

#[derive(Debug)]
struct Debt {
    cpu: Duration,
    at: Instant,
}

impl Debt {
    /// What is left of it now.
    fn settle(&mut self) -> Duration {
        let now = Instant::now();
        self.cpu = self.cpu.saturating_sub(now.duration_since(self.at) / READ_RATE);
        self.at = now;
        self.cpu
    }
}

/// On whose account a command comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account<'a> {
    /// That of somebody who has a share.
    CallerQuota(&'a Arc<CallerQuota>),
    /// That of somebody whom nobody counts, and whom others are company to all the same.
    Guest,
    /// The office's own, which is always there.
    House,
}

/// What one command or reading takes of a share. Keeps the share known while it is at work.
#[derive(Debug)]
pub(crate) struct Part {
    _permit: OwnedSemaphorePermit,
    _broad: Option<OwnedSemaphorePermit>,
    of: Arc<CallerQuota>,
}

impl Part {
    /// Notes what a read has cost. Those that come next wait until the caller has made up for it.
    pub(crate) fn charge(&self, cpu: Duration) {
        let counted = cpu.saturating_sub(FREE_READ);
        if !counted.is_zero() {
            let mut debt = self.of.debt.lock().unwrap_or_else(PoisonError::into_inner);
            debt.settle();
            debt.cpu += counted;
        }
    }
}

impl CallerQuota {
    /// A share that nobody has yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Arc<Self> {
        // One reader is always left to others.
        let looks = limits.share_readers.min(limits.readers.saturating_sub(1)).max(1);
        let commands = limits.share_commands.max(1);
        Arc::new(Self {
            commands: Arc::new(Semaphore::new(commands)),
            surplus: Arc::new(Semaphore::new(limits.share_alone.saturating_sub(commands))),
            looks: Arc::new(Semaphore::new(looks)),
            patterns: Arc::new(Semaphore::new(limits.share_patterns)),
            broad: Arc::new(Semaphore::new(limits.share_broad.max(1))),
            debt: Arc::new(Mutex::new(Debt { cpu: Duration::ZERO, at: Instant::now() })),
        })
    }

    /// The same share under a handle of its own, so that the handle's users can be counted apart from the share's.
    #[must_use]
    pub fn branch(&self) -> Arc<Self> {
        Arc::new(Self {
            commands: self.commands.clone(),
            surplus: self.surplus.clone(),
            looks: self.looks.clone(),
            patterns: self.patterns.clone(),
            broad: self.broad.clone(),
            debt: self.debt.clone(),
        })
    }

    /// Waits until one more command may be on its way to the writer, and says so if it has to. Nothing only if somebody
    /// closed it, which nobody does.
    pub(crate) async fn command(
        self: &Arc<Self>,
        company: &Company,
        has_to_wait: impl FnOnce(),
    ) -> Option<Part> {
        let others_are_about = company.meet(Arc::as_ptr(self).addr());
        let mut at_once = self.commands.clone().try_acquire_owned();
        if at_once.is_err() && !others_are_about {
            at_once = self.surplus.clone().try_acquire_owned();
        }
        if let Ok(permit) = at_once {
            return Some(Part { _permit: permit, _broad: None, of: self.clone() });
        }
        has_to_wait();
        let part = self.part(&self.commands).await;
        if others_are_about {
            tokio::time::sleep(REST).await;
        }
        part
    }

    /// The same for a command that may take long, of which a caller has few on their way.
    pub(crate) async fn broad_command(
        self: &Arc<Self>,
        company: &Company,
        has_to_wait: impl Fn(),
    ) -> Option<Part> {
        if self.broad.available_permits() == 0 {
            has_to_wait();
        }
        let broad = self.broad.clone().acquire_owned().await.ok()?;
        let part = self.command(company, has_to_wait).await?;
        Some(Part { _broad: Some(broad), ..part })
    }

    /// Waits until one more reading may go on: until the caller holds fewer readers than it may, and has made up for what
    /// its reads have cost lately.
    pub(crate) async fn look(self: &Arc<Self>) -> Option<Part> {
        let part = self.part(&self.looks).await;
        loop {
            let debt = self.debt.lock().unwrap_or_else(PoisonError::into_inner).settle();
            let Some(over) = debt.checked_sub(READ_CREDIT).filter(|over| !over.is_zero()) else { break };
            tokio::time::sleep(over * READ_RATE).await;
        }
        part
    }

    /// Takes that many patterns of the caller's share for a subscription, if it has them left.
    pub(crate) fn hold_patterns(self: &Arc<Self>, count: usize) -> Option<Part> {
        let count = u32::try_from(count).ok()?;
        let permit = self.patterns.clone().try_acquire_many_owned(count).ok()?;
        Some(Part { _permit: permit, _broad: None, of: self.clone() })
    }

    async fn part(self: &Arc<Self>, of: &Arc<Semaphore>) -> Option<Part> {
        let permit = of.clone().acquire_owned().await.ok()?;
        Some(Part { _permit: permit, _broad: None, of: self.clone() })
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
    caller: usize,
    /// When it was somebody else's before.
    changed: Option<Instant>,
}

/// Those who have no share, taken together. No share is at this address.
const GUESTS: usize = 1;

impl Company {
    /// Notes that somebody without a share is here.
    pub(crate) fn meet_guest(&self) {
        self.meet(GUESTS);
    }

    /// Notes that a caller is here, and says whether another has been here lately.
    fn meet(&self, caller: usize) -> bool {
        let now = Instant::now();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.caller != caller {
            let is_first = latest.caller == 0;
            *latest = Latest { caller, changed: (!is_first).then_some(now) };
        }
        latest.changed.is_some_and(|changed| now.duration_since(changed) < ABOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(commands: usize) -> Arc<CallerQuota> {
        CallerQuota::new(&Limits { share_commands: commands, share_alone: commands, ..Limits::default() })
    }

    /// What there is without waiting for it.
    async fn at_once<T>(wanted: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            found = wanted => Some(found),
            () = std::future::ready(()) => None,
        }
    }

    /// How many commands a caller can have on their way without waiting.
    async fn room(share: &Arc<CallerQuota>, company: &Company) -> usize {
        let mut taken = Vec::new();
        while let Some(part) = at_once(share.command(company, || ())).await {
            taken.push(part);
        }
        taken.len()
    }

    /// Before, sixteen messages to ten thousand agents of one caller stood in the queue before those of others.
    #[tokio::test]
    async fn few_commands_that_may_take_long_are_on_their_way() {
        let company = Company::default();
        let share = CallerQuota::new(&Limits { share_broad: 2, ..Limits::default() });
        let first = share.broad_command(&company, || ()).await.unwrap();
        let _second = share.broad_command(&company, || ()).await.unwrap();
        assert!(at_once(share.broad_command(&company, || ())).await.is_none());
        assert!(
            at_once(share.branch().broad_command(&company, || ())).await.is_none(),
            "in every realm together"
        );
        assert!(at_once(share.command(&company, || ())).await.is_some(), "others of the same caller go on");
        drop(first);
        assert!(at_once(share.broad_command(&company, || ())).await.is_some());
    }

    #[tokio::test]
    async fn whoever_is_alone_has_more_than_among_others() {
        let company = Company::default();
        let [one, other] = [0, 1]
            .map(|_| CallerQuota::new(&Limits { share_commands: 2, share_alone: 10, ..Limits::default() }));
        assert_eq!(room(&one, &company).await, 10);
        assert_eq!(room(&other, &company).await, 2, "somebody was here");
        assert_eq!(room(&one, &company).await, 2, "somebody is here");
        company.latest.lock().unwrap().changed = Instant::now().checked_sub(ABOUT);
        assert_eq!(room(&one, &company).await, 10, "and left long ago");
    }

    #[tokio::test]
    async fn what_a_caller_took_alone_counts_among_others() {
        let company = Company::default();
        let [one, other] = [0, 1]
            .map(|_| CallerQuota::new(&Limits { share_commands: 2, share_alone: 4, ..Limits::default() }));
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(one.command(&company, || ()).await.unwrap());
        }
        drop(other.command(&company, || ()).await);
        let mut waited = false;
        assert!(at_once(one.command(&company, || waited = true)).await.is_none());
        assert!(waited);
        // Of its share among others, not of what it had besides.
        taken.remove(0);
        assert!(at_once(one.command(&company, || ())).await.is_some());
    }

    /// How long so many commands of one caller take that each are done at once, twice as many at a time as its share.
    async fn pressed(share: &Arc<CallerQuota>, company: &Arc<Company>, rounds: usize) -> Duration {
        let started = Instant::now();
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (share, company) = (share.clone(), company.clone());
                tokio::spawn(async move {
                    for _ in 0..rounds {
                        let part = share.command(&company, || ()).await;
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
        drop(other.command(&company, || ()).await);
        let among_others = pressed(&flood, &company, 50).await;
        assert!(among_others >= REST * 50, "{among_others:?}");
    }

    #[tokio::test]
    async fn whoever_keeps_to_its_share_never_rests() {
        let (company, one, other) = (Company::default(), share(2), share(2));
        let started = Instant::now();
        for _ in 0..500 {
            drop((one.command(&company, || ()).await, other.command(&company, || ()).await));
        }
        assert!(started.elapsed() < REST * 250, "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_caller_makes_up_for_expensive_reads_before_the_next() {
        let (one, other) = (share(2), share(2));
        let read = async |share: &Arc<CallerQuota>, cpu| {
            at_once(share.look()).await.flatten().map(|part| part.charge(cpu))
        };
        for _ in 0..1_000 {
            assert!(read(&one, FREE_READ).await.is_some(), "cheap reads are not counted");
        }
        assert!(read(&one, Duration::from_secs(60)).await.is_some());
        assert!(read(&one, FREE_READ).await.is_none(), "it is behind");
        assert!(read(&other, FREE_READ).await.is_some(), "others are not");
        one.debt.lock().unwrap().at -= Duration::from_secs(60) * READ_RATE;
        assert!(read(&one, FREE_READ).await.is_some(), "it has made up for it");
    }

    #[test]
    fn who_left_long_ago_is_no_company() {
        let (company, one, other) = (Company::default(), 7, 8);
        assert!(!company.meet(one), "the first is alone");
        assert!(!company.meet(one));
        assert!(company.meet(other));
        assert!(company.meet(one));
        company.latest.lock().unwrap().changed = Instant::now().checked_sub(ABOUT);
        assert!(!company.meet(one));
        company.meet_guest();
        assert!(company.meet(one), "who has no share is company, too");
    }
}
