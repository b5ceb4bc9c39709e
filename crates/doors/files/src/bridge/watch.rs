//! Change notifications of the system for the mail directory. Changes without notification are found by the sweep.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// Changes that may wait; if there are more, all mailboxes are scanned instead.
const MAX_PENDING_CHANGES: usize = 65_536;

/// A change in the directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Change {
    /// A file of a mailbox.
    File {
        /// The mailbox's agent.
        agent: String,
        /// The file's name.
        file: String,
    },
    /// A mailbox was made or removed.
    Mailbox(String),
    /// A hook or a nudge.
    Signal(PathBuf),
}

/// The watcher of the mail directory and the files next to it.
#[derive(Debug)]
pub(super) struct Watch {
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<Change>,
    /// Set when changes were missed.
    missed: Arc<AtomicBool>,
    watched: HashSet<PathBuf>,
}

impl Watch {
    pub(super) fn new(root: &Path, state: Option<&Path>) -> notify::Result<Self> {
        let (sender, changes) = mpsc::channel(MAX_PENDING_CHANGES);
        let missed = Arc::new(AtomicBool::new(false));
        let (lost, root_path, state) = (missed.clone(), root.to_owned(), state.map(Path::to_owned));
        let tell = move |event: notify::Result<Event>| {
            let Ok(event) = event else {
                lost.store(true, Ordering::Release);
                return;
            };
            if event.need_rescan() {
                lost.store(true, Ordering::Release);
            }
            if !matters(&event.kind) {
                return;
            }
            for path in event.paths {
                if let Some(change) = change_of(&path, &root_path, state.as_deref())
                    && sender.try_send(change).is_err()
                {
                    lost.store(true, Ordering::Release);
                }
            }
        };
        let mut watcher = notify::recommended_watcher(tell)?;
        watcher.watch(root, RecursiveMode::NonRecursive)?;
        Ok(Self { watcher, changes, missed, watched: HashSet::new() })
    }

    /// Watches a mailbox. Changes in one that cannot be watched are found by the sweep.
    pub(super) fn add(&mut self, path: &Path) {
        if !self.watched.contains(path) {
            match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.to_owned());
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot be watched; looked at now and then")
                }
            }
        }
    }

    /// Watches a directory with all below it, if it exists; true if it was not watched before.
    pub(super) fn add_tree(&mut self, path: &Path) -> bool {
        if self.watched.contains(path) || !path.is_dir() {
            return false;
        }
        self.watcher.watch(path, RecursiveMode::Recursive).is_ok() && self.watched.insert(path.to_owned())
    }

    /// Watches a mailbox no more.
    pub(super) fn remove(&mut self, path: &Path) {
        if self.watched.remove(path) {
            // If the directory was removed, the system has ended the watch already.
            let _ = self.watcher.unwatch(path);
        }
    }

    /// The next changes.
    pub(super) async fn next(&mut self) -> HashSet<Change> {
        let mut found = HashSet::new();
        match self.changes.recv().await {
            Some(change) => found.insert(change),
            // The watcher owns the sender, so this is not reached while it lives.
            None => std::future::pending().await,
        };
        while found.len() < 1_024
            && let Ok(change) = self.changes.try_recv()
        {
            found.insert(change);
        }
        found
    }

    /// Whether changes were missed since this was last asked.
    pub(super) fn has_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }
}

/// Whether an event is of interest; of writing, only the closing of the file is.
fn matters(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Create(_)
            | EventKind::Remove(_)
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Any
    )
}

fn change_of(path: &Path, root: &Path, state: Option<&Path>) -> Option<Change> {
    if let Ok(inner) = path.strip_prefix(root) {
        let mut parts = inner.iter();
        let agent = parts.next()?.to_str()?.to_owned();
        let Some(file) = parts.next() else { return Some(Change::Mailbox(agent)) };
        let file = file.to_str()?.to_owned();
        let wanted = parts.next().is_none() && posthaste_wire::files::name::is_candidate(&file);
        return wanted.then_some(Change::File { agent, file });
    }
    let inner = path.strip_prefix(state?).ok()?;
    let is_json = inner.extension().is_some_and(|tail| tail == "json");
    is_json.then(|| Change::Signal(path.to_owned()))
}
