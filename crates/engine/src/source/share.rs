//! One caller's part of the office: how much of it somebody may have at work at once, however many connections it asks on.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::Limits;

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

    /// Waits until one more command may be on its way to the writer.
    pub(crate) async fn command(self: &Arc<Self>) -> Option<Part> {
        self.part(&self.commands).await
    }

    /// Waits until one more reading may go on.
    pub(crate) async fn look(self: &Arc<Self>) -> Option<Part> {
        self.part(&self.looks).await
    }

    /// Nothing only if somebody closed it, which nobody does.
    async fn part(self: &Arc<Self>, of: &Arc<Semaphore>) -> Option<Part> {
        let permit = of.clone().acquire_owned().await.ok()?;
        Some(Part { _permit: permit, _of: self.clone() })
    }
}
