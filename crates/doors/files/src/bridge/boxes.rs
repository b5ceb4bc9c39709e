//! What the bridge knows of each mailbox. All of it can be found again in the books and the directory.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use posthaste_engine::nouns::{AgentId, MessageId};

use super::super::directory::Mailbox;
use super::super::look::{Odd, Print};

/// Letters that are remembered after their files are gone, for each mailbox; the bridge is never that far behind the
/// history.
const TAKEN_LATELY: usize = 4_096;

/// A file whose letter is in the books.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) message: MessageId,
    /// Which file it was when it was last looked into; nothing if it has not been.
    pub(super) print: Option<Print>,
    /// Whether both sides know that it was read.
    pub(super) read: bool,
    /// Whether it has been moved to the archive.
    pub(super) archived: bool,
}

/// One mailbox.
#[derive(Debug)]
pub(super) struct BoxState {
    pub(super) agent: AgentId,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) known: HashMap<Arc<str>, Known>,
    pub(super) by_message: HashMap<MessageId, Arc<str>>,
    /// Letters whose files were taken out lately. The history may tell of them only now, and they must not come again.
    taken: HashSet<MessageId>,
    taken_in_order: VecDeque<MessageId>,
    /// Files that were left in place, as they were then: one warning each.
    pub(super) left: HashMap<String, Print>,
    /// Those among them that the office refused, which it may think better of.
    pub(super) refused: HashSet<String>,
    /// Those that are to be offered once more.
    pub(super) retry: HashSet<String>,
    /// Files that wait to be looked at.
    pub(super) waiting: usize,
    /// Files that cannot be read as a message yet and may still be on their way.
    pub(super) unfinished: HashSet<String>,
    /// Known files that were gone at some moment: perhaps they are only being replaced.
    pub(super) gone: HashMap<Arc<str>, Instant>,
    /// The directory's last change that a full look has seen, and when that look began.
    pub(super) seen: Option<(i128, i128)>,
    /// Archived files that are no messages; they are not looked into again.
    pub(super) odd_archived: HashSet<String>,
    /// Whether something has to be tried again although nothing changed.
    pub(super) again: bool,
    /// Senders whose clock was complained about.
    pub(super) skewed: HashSet<String>,
}

impl BoxState {
    pub(super) fn new(agent: AgentId, mailbox: Arc<Mailbox>) -> Self {
        Self {
            agent,
            mailbox,
            known: HashMap::new(),
            by_message: HashMap::new(),
            taken: HashSet::new(),
            taken_in_order: VecDeque::new(),
            left: HashMap::new(),
            refused: HashSet::new(),
            retry: HashSet::new(),
            waiting: 0,
            unfinished: HashSet::new(),
            gone: HashMap::new(),
            seen: None,
            odd_archived: HashSet::new(),
            again: false,
            skewed: HashSet::new(),
        }
    }

    pub(super) fn learn(&mut self, file: &str, known: Known) {
        let file: Arc<str> = Arc::from(file);
        self.by_message.insert(known.message, file.clone());
        self.known.insert(file, known);
    }

    pub(super) fn unlearn(&mut self, file: &str) -> Option<Known> {
        let known = self.known.remove(file)?;
        self.by_message.remove(&known.message);
        Some(known)
    }

    /// Whether a letter's file is or lately was there.
    pub(super) fn has_had(&self, letter: MessageId) -> bool {
        self.by_message.contains_key(&letter) || self.taken.contains(&letter)
    }

    /// Forgets a file that its agent took out, but not that its letter was there.
    pub(super) fn take_out(&mut self, file: &str) -> Option<Known> {
        let known = self.unlearn(file)?;
        self.taken.insert(known.message);
        self.taken_in_order.push_back(known.message);
        if self.taken_in_order.len() > TAKEN_LATELY
            && let Some(oldest) = self.taken_in_order.pop_front()
        {
            self.taken.remove(&oldest);
        }
        Some(known)
    }

    /// Says once that a file is left where it is.
    pub(super) fn leave(&mut self, file: &str, print: Option<Print>, why: &dyn std::fmt::Display) {
        let print = print.unwrap_or(Print { inode: 0, changed: 0, size: 0 });
        if self.left.insert(file.to_owned(), print) != Some(print) {
            tracing::warn!(mailbox = %self.agent, file, "left in place: {why}");
        }
    }

    /// Whether a file was left in place, has not changed since, and is not to be offered once more.
    pub(super) fn is_left(&mut self, file: &str) -> bool {
        if self.retry.remove(file) {
            return false;
        }
        let Some(before) = self.left.get(file) else { return false };
        let now = self.mailbox.print(file).unwrap_or(Print { inode: 0, changed: 0, size: 0 });
        now == *before
    }
}

/// What a look at one file gave.
#[derive(Debug)]
pub(super) enum Seen {
    /// A message that the books may not have.
    Message(Box<posthaste_wire::files::FileMessage>, Print),
    /// Not a message.
    Odd(Odd, Option<Print>),
}
