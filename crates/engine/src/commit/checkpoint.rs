//! Checkpoints the WAL on another thread. The WAL must not grow without bound, and a checkpoint takes milliseconds during which
//! no caller would be answered; so the writer only checkpoints what came meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use tracing::{debug, warn};

use crate::store::{open_checkpointer, passive_checkpoint};

/// Pages in the WAL from which it is checkpointed.
const CHECKPOINT_AFTER_PAGES: i32 = 4_000;
/// Pages in the WAL at which the writer waits for the checkpoint.
const WAIT_AFTER_PAGES: i32 = 16 * CHECKPOINT_AFTER_PAGES;
/// Pages left that the writer checkpoints itself, between two batches.
const LEFT_TO_WRITER_PAGES: i32 = 200;
/// Passes over what came meanwhile before the rest is left to the writer.
const MAX_PASSES: u32 = 4;

/// The WAL of one database and the thread that checkpoints it.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    path: PathBuf,
    /// Pages in the WAL, as of the last commit.
    pages: Arc<AtomicI32>,
    /// Pages from which the next checkpoint begins.
    next: i32,
    running: Option<JoinHandle<rusqlite::Result<Connection>>>,
    /// The thread's connection, kept between checkpoints.
    connection: Option<Connection>,
}

impl Checkpointer {
    /// Takes checkpoints over from SQLite, which would run them inside a commit.
    pub(crate) fn take_over(db: &mut Connection, path: &Path) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let counted = pages.clone();
        db.wal_hook(Some(move |_: &mut Wal, now| {
            counted.store(now, Ordering::Relaxed);
            Ok(())
        }))?;
        let next = CHECKPOINT_AFTER_PAGES;
        Ok(Self { path: path.to_owned(), pages, next, running: None, connection: None })
    }

    /// Called between two batches: begins or finishes a checkpoint if it is due.
    pub(crate) fn checkpoint_if_due(&mut self, db: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let is_done = self.running.as_ref().is_some_and(JoinHandle::is_finished);
        if pages < CHECKPOINT_AFTER_PAGES {
            // The WAL has begun anew, and nothing is left.
            self.next = CHECKPOINT_AFTER_PAGES;
            if is_done {
                self.join();
            }
        } else if is_done || (self.running.is_some() && pages >= WAIT_AFTER_PAGES) {
            self.join();
            // What is left; after that the next commit begins the WAL anew, unless a reader uses it.
            if let Err(error) = passive_checkpoint(db) {
                debug!(%error, "the WAL was not checkpointed to its end");
            }
        } else if self.running.is_none() && pages >= self.next {
            self.next = pages + CHECKPOINT_AFTER_PAGES;
            self.begin();
        }
    }

    /// Waits for a checkpoint that is running.
    pub(crate) fn join(&mut self) {
        let Some(running) = self.running.take() else { return };
        match running.join() {
            Ok(Ok(connection)) => self.connection = Some(connection),
            // The WAL is whole, and grows until a checkpoint succeeds.
            Ok(Err(error)) => warn!(%error, "the WAL could not be checkpointed"),
            Err(_) => warn!("the checkpoint thread panicked"),
        }
    }

    fn begin(&mut self) {
        let (path, connection) = (self.path.clone(), self.connection.take());
        let checkpoint = move || {
            let connection = match connection {
                Some(connection) => connection,
                None => open_checkpointer(&path)?,
            };
            for _ in 0..MAX_PASSES {
                let (in_wal, checkpointed) = passive_checkpoint(&connection)?;
                // A reader may keep the rest from being checkpointed; the next checkpoint gets it.
                if in_wal - checkpointed < LEFT_TO_WRITER_PAGES {
                    break;
                }
            }
            Ok(connection)
        };
        match std::thread::Builder::new().name("checkpoint".to_owned()).spawn(checkpoint) {
            Ok(running) => self.running = Some(running),
            Err(error) => warn!(%error, "no thread for a checkpoint"),
        }
    }
}
