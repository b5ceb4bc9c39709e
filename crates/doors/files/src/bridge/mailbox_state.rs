//! What the bridge knows of each mailbox. All of it can be rebuilt from the database and the directory.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use posthaste_engine::nouns::{AgentId, MessageId};

use super::super::directory::Mailbox;
use super::super::reader::{FileVersion, SkipReason};

/// Messages that are remembered after their files are gone, for each mailbox; the bridge is never that many events behind.
const MAX_REMOVED_KEPT: usize = 4_096;

/// A file whose message is in the database.
#[derive(Clone, Debug)]
pub(super) struct KnownFile {
    pub(super) message: MessageId,
    /// The file's version when it was last read; `None` if it was not.
    pub(super) version: Option<FileVersion>,
    /// Whether both sides know that it was read.
    pub(super) read: bool,
    /// Whether it has been moved to the archive.
    pub(super) archived: bool,
}

/// One mailbox.
#[derive(Debug)]
pub(super) struct MailboxState {
    pub(super) agent: AgentId,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) known: HashMap<Arc<str>, KnownFile>,
    pub(super) by_message: HashMap<MessageId, Arc<str>>,
    /// Messages whose files were removed lately. Their events may come only now, and must not write them again.
    removed: HashSet<MessageId>,
    removed_in_order: VecDeque<MessageId>,
    /// Files that are not messages, with their versions: one warning each.
    pub(super) skipped: HashMap<String, FileVersion>,
    /// Those among them that the engine refused; it may accept them later.
    pub(super) refused: HashSet<String>,
    /// Those that are to be submitted again.
    pub(super) retry: HashSet<String>,
    /// Files that wait to be read.
    pub(super) waiting: usize,
    /// Files that are no message yet and may still be written.
    pub(super) unfinished: HashSet<String>,
    /// Known files that are missing, and since when; they may only be being replaced.
    pub(super) gone: HashMap<Arc<str>, Instant>,
    /// The directory's last change that a full scan has seen, and when that scan began.
    pub(super) seen: Option<(i128, i128)>,
    /// Archived files that are not messages; they are not read again.
    pub(super) skipped_archived: HashSet<String>,
    /// Whether to scan again although nothing changed.
    pub(super) again: bool,
    /// Senders whose wrong clock was logged.
    pub(super) skewed: HashSet<String>,
}

impl MailboxState {
    pub(super) fn new(agent: AgentId, mailbox: Arc<Mailbox>) -> Self {
        Self {
            agent,
            mailbox,
            known: HashMap::new(),
            by_message: HashMap::new(),
            removed: HashSet::new(),
            removed_in_order: VecDeque::new(),
            skipped: HashMap::new(),
            refused: HashSet::new(),
            retry: HashSet::new(),
            waiting: 0,
            unfinished: HashSet::new(),
            gone: HashMap::new(),
            seen: None,
            skipped_archived: HashSet::new(),
            again: false,
            skewed: HashSet::new(),
        }
    }

    pub(super) fn insert(&mut self, file: &str, known: KnownFile) {
        let file: Arc<str> = Arc::from(file);
        self.by_message.insert(known.message, file.clone());
        self.known.insert(file, known);
    }

    pub(super) fn remove(&mut self, file: &str) -> Option<KnownFile> {
        let known = self.known.remove(file)?;
        self.by_message.remove(&known.message);
        Some(known)
    }

    /// Whether a message's file exists or did lately.
    pub(super) fn has_seen(&self, message: MessageId) -> bool {
        self.by_message.contains_key(&message) || self.removed.contains(&message)
    }

    /// Forgets a file that its agent removed, but not that its message was there.
    pub(super) fn forget_removed(&mut self, file: &str) -> Option<KnownFile> {
        let known = self.remove(file)?;
        self.removed.insert(known.message);
        self.removed_in_order.push_back(known.message);
        if self.removed_in_order.len() > MAX_REMOVED_KEPT
            && let Some(oldest) = self.removed_in_order.pop_front()
        {
            self.removed.remove(&oldest);
        }
        Some(known)
    }

    /// Logs once that a file is left in place.
    pub(super) fn skip(&mut self, file: &str, version: Option<FileVersion>, why: &dyn std::fmt::Display) {
        let version = version.unwrap_or(FileVersion { inode: 0, changed: 0, size: 0 });
        if self.skipped.insert(file.to_owned(), version) != Some(version) {
            tracing::warn!(mailbox = %self.agent, file, "left in place: {why}");
        }
    }

    /// Whether a file was left in place, has not changed since, and is not to be submitted again.
    pub(super) fn is_skipped(&mut self, file: &str) -> bool {
        if self.retry.remove(file) {
            return false;
        }
        let Some(before) = self.skipped.get(file) else { return false };
        let now = self.mailbox.version(file).unwrap_or(FileVersion { inode: 0, changed: 0, size: 0 });
        now == *before
    }
}

/// The contents of one file.
#[derive(Debug)]
pub(super) enum ReadFile {
    /// A message that the database may not have.
    Message(Box<posthaste_wire::files::FileMessage>, FileVersion),
    /// Not a message.
    Skipped(SkipReason, Option<FileVersion>),
}
