//! Folding the log into the books. The log must not grow for ever, and folding takes milliseconds in which nobody would be
//! answered. So it is done beside the writer, who only folds what came meanwhile, and begins the log anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use tracing::{debug, warn};

use crate::store::{open_checkpointer, passive_checkpoint};

/// Pages in the log that are worth folding.
const LONG: i32 = 4_000;
/// Pages in the log that are too many: the writer waits until they are folded.
const TOO_LONG: i32 = 16 * LONG;
/// So few left to fold that the writer does it between two batches.
const FEW: i32 = 200;
/// How often what came meanwhile is folded as well, before the rest is left to the writer.
const TRIES: u32 = 4;

/// How far the log of a realm's books has come, and who folds it.
#[derive(Debug)]
pub(crate) struct Folding {
    path: PathBuf,
    /// Pages in the log, as of the last commit.
    pages: Arc<AtomicI32>,
    /// From how many it is folded again.
    next: i32,
    /// Folds at this moment.
    beside: Option<JoinHandle<rusqlite::Result<Connection>>>,
    /// The connection that is folded by, once there was something to fold.
    helper: Option<Connection>,
}

impl Folding {
    /// Takes the folding of these books over from SQLite, which would do it in the midst of a commit.
    pub(crate) fn of(db: &mut Connection, path: &Path) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let counted = pages.clone();
        db.wal_hook(Some(move |_: &mut Wal, now| {
            counted.store(now, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { path: path.to_owned(), pages, next: LONG, beside: None, helper: None })
    }

    /// Folds, if it is time to. Called between two batches.
    pub(crate) fn go_on(&mut self, db: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let is_done = self.beside.as_ref().is_some_and(JoinHandle::is_finished);
        if pages < LONG {
            // The log has begun anew, and nothing is left to fold.
            self.next = LONG;
            if is_done {
                self.join();
            }
        } else if is_done || (self.beside.is_some() && pages >= TOO_LONG) {
            self.join();
            // All that is left; after that the next batch begins the log anew, if nobody reads in it.
            if let Err(error) = passive_checkpoint(db) {
                debug!(%error, "the log was not folded to its end");
            }
        } else if self.beside.is_none() && pages >= self.next {
            self.next = pages + LONG;
            self.begin();
        }
    }

    /// Waits until nobody folds any more.
    pub(crate) fn join(&mut self) {
        let Some(beside) = self.beside.take() else { return };
        match beside.join() {
            Ok(Ok(helper)) => self.helper = Some(helper),
            // The log is whole, and stays until folding works again.
            Ok(Err(error)) => warn!(%error, "the log could not be folded into the db"),
            Err(_) => warn!("folding the log failed unexpectedly"),
        }
    }

    fn begin(&mut self) {
        let (path, helper) = (self.path.clone(), self.helper.take());
        let folding = move || {
            let helper = match helper {
                Some(helper) => helper,
                None => open_checkpointer(&path)?,
            };
            for _ in 0..TRIES {
                let (in_log, folded) = passive_checkpoint(&helper)?;
                // Whoever reads in the log keeps it from being folded further; that is for another time.
                if in_log - folded < FEW {
                    break;
                }
            }
            Ok(helper)
        };
        match std::thread::Builder::new().name("folding".to_owned()).spawn(folding) {
            Ok(beside) => self.beside = Some(beside),
            Err(error) => warn!(%error, "nobody can fold the log beside the writer"),
        }
    }
}
