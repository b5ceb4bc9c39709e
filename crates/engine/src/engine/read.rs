//! Reading the database: one snapshot, on a thread that may block, within the limits of the caller.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use rusqlite::Connection;

use super::{Engine, Shared, Turn};
use crate::budget::{Bounds, Budget, Request, Waiting};
use crate::error::{EngineError, Fault, Refusal};
use crate::stamp;
use crate::store::{Db, open_reader};
use crate::views::{View, Viewed};

/// A view to be read once, and what it returns. Boxed, because each of the hundreds of closures that doors pass would
/// otherwise be compiled with a blocking task, a snapshot and a budget of its own.
type BoxedLook = Box<dyn FnOnce(&View<'_>) -> Viewed<BoxedResult> + Send>;
type BoxedResult = Box<dyn Any + Send>;
type ReadFuture<'a> = Pin<Box<dyn Future<Output = Viewed<BoxedResult>> + Send + 'a>>;
type Look<'a> = &'a mut dyn FnMut(&View<'_>) -> Viewed<()>;

/// How long a read waits for a free reader.
#[derive(Clone, Copy, Debug)]
enum Patience {
    QueueWait,
    Unlimited,
}

fn boxed<T: Send + 'static>(look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static) -> BoxedLook {
    Box::new(move |view| Ok(Box::new(look(view)?)))
}

fn unboxed<T: 'static>(found: BoxedResult) -> Viewed<T> {
    let found =
        found.downcast().map_err(|_| Fault::Internal { reason: "a view of another type".to_owned() })?;
    Ok(*found)
}

impl Engine {
    /// Reads one snapshot of the database. The read is stopped when its budget is used up, and when this future is
    /// dropped.
    ///
    /// # Errors
    /// The view's own errors; refused if it takes too long or if no reader becomes free in time; a fault if the
    /// database cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static,
    ) -> Viewed<T> {
        unboxed(self.read_boxed(Patience::QueueWait, boxed(look)).await?)
    }

    /// As [`Engine::read`], for streams, which wait for a reader without a time limit instead of being refused.
    pub(crate) async fn read_patiently<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static,
    ) -> Viewed<T> {
        unboxed(self.read_boxed(Patience::Unlimited, boxed(look)).await?)
    }

    /// Waits for a reader: first within the caller's quota, then for a free connection.
    async fn turn(&self) -> Result<Turn, EngineError> {
        let part = match &self.share {
            Some(share) => share.read().await,
            None => None,
        };
        let place = self.shared.turnstile.clone().acquire_owned().await.map_err(|_| Fault::Closing)?;
        Ok(Turn { part, _place: place, _reading: self.shared.liveness.read_begins() })
    }

    fn read_boxed(&self, patience: Patience, look: BoxedLook) -> ReadFuture<'_> {
        Box::pin(async move {
            let turn = match patience {
                Patience::QueueWait => tokio::time::timeout(self.shared.limits.queue_wait, self.turn())
                    .await
                    .map_err(|_| Refusal::Busy)??,
                Patience::Unlimited => self.turn().await?,
            };
            self.read_in_turn(turn, look).await
        })
    }

    async fn read_in_turn(&self, turn: Turn, look: BoxedLook) -> Viewed<BoxedResult> {
        let limits = &self.shared.limits;
        let bounds = match self.unhurried {
            true => Bounds { cpu: limits.long_read_cpu, wall: limits.long_read_wall, bytes: u64::MAX },
            false => {
                let bytes = limits.answer_bytes.max(limits.page_bytes + limits.message_bytes * 4) as u64;
                Bounds { cpu: limits.read_cpu, wall: limits.read_wall, bytes }
            }
        };
        let request = Request::current();
        let (bounds, bytes) = match &request {
            Some(request) => request.next_read(bounds, limits)?,
            None => (bounds, limits.page_bytes),
        };
        let waiting = Waiting::default();
        let gone = waiting.gone();
        let shared = self.shared.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let budget = Budget::new(Some(bounds), bytes, gone, shared.closing.clone());
            let looked = shared.look_once(&budget, look);
            let cpu = budget.cpu();
            if let Some(part) = &turn.part {
                part.charge(cpu);
            }
            if let Some(request) = request {
                request.charge(cpu, budget.bytes_returned());
            }
            drop(turn);
            looked
        });
        let looked = looked.await.map_err(|error| Fault::Internal { reason: error.to_string() })?;
        drop(waiting);
        looked
    }

    /// Reads the database on this thread, without a time limit. For programs and tests that are not asynchronous.
    ///
    /// # Errors
    /// The view's own errors; a fault if the database cannot be read.
    pub fn read_blocking<T>(&self, look: impl FnOnce(&View<'_>) -> Viewed<T>) -> Viewed<T> {
        self.shared.look_once(&Budget::unbounded(&self.shared.limits), look)
    }
}

impl Shared {
    fn look_once<T>(&self, budget: &Arc<Budget>, look: impl FnOnce(&View<'_>) -> Viewed<T>) -> Viewed<T> {
        let (mut look, mut found) = (Some(look), None);
        self.look(budget, &mut |view| {
            if let Some(look) = look.take() {
                found = Some(look(view)?);
            }
            Ok(())
        })?;
        Ok(found.ok_or_else(|| Fault::Internal { reason: "a view was not called".to_owned() })?)
    }

    fn look(&self, budget: &Arc<Budget>, look: Look<'_>) -> Viewed<()> {
        let kept = self.lock().pop();
        let mut db = match kept {
            Some(db) => db,
            // Blocking reads do not acquire a permit, so the pool may be empty.
            None => open_reader(&self.path)?,
        };
        budget.watch(&mut db)?;
        let looked = self.look_at(&db, budget, look);
        Budget::unwatch(&mut db)?;
        let mut readers = self.lock();
        if readers.len() < self.limits.readers {
            readers.push(db);
        }
        looked
    }

    fn look_at(&self, db: &Connection, budget: &Budget, look: Look<'_>) -> Viewed<()> {
        // One transaction, so that all statements of a view see the same snapshot.
        let moment = db.unchecked_transaction()?;
        let view = View { db: Db::new(&moment), limits: &self.limits, now: stamp::now(), budget };
        let looked = look(&view);
        // After an interrupted statement the view's result is incomplete, so the verdict wins. Dropping rolls back.
        if let Some(verdict) = budget.verdict() {
            return Err(verdict);
        }
        // Committed, not rolled back: the temporary index of recent texts that a search builds is reused by the next
        // search.
        moment.commit()?;
        looked
    }
}
