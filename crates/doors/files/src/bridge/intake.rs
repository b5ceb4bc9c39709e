//! From the directory into the realm: new files, flags that a peer set, files that were removed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_engine::nouns::{AgentId, Caller, MessageId};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::deliveries::{MarkDelivered, MarkRead};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::{EngineError, Pending, Refusal};
use posthaste_wire::files::{FileMessage, FileName, NotAMessage, check_agent};

use super::super::directory::Mailbox;
use super::super::reader::{self, FileVersion, SkipReason};
use super::super::writer;
use super::convert::{self, VIA};
use super::mailbox_state::{KnownFile, ReadFile};
use super::{Backlog, Bridge};
use posthaste_host::acks;
use posthaste_host::door_facts::DoorFacts;

/// Files that are read before the first of them is submitted.
const FILES_AT_ONCE: usize = 256;
/// A file that is no message and changed more recently than this, in nanoseconds, may still be written.
const INCOMPLETE_GRACE: i128 = 2_000_000_000;
/// A file that is missing for longer was removed and not replaced.
const REMOVED_AFTER: Duration = Duration::from_secs(1);
/// A stamp further from the file's arrival than this, in nanoseconds, comes from a wrong clock.
const MAX_SKEW: i128 = 60_000_000_000;

/// A file that is to be submitted.
struct NewFile {
    file: String,
    version: FileVersion,
    message: Box<FileMessage>,
    archived: bool,
}

impl Bridge {
    /// Reads files of a mailbox that may have changed: the first ones now, the rest from the backlog.
    pub(super) async fn read_files(&mut self, agent: &str, mut files: Vec<String>, archived: bool) {
        if files.len() > FILES_AT_ONCE {
            let rest: VecDeque<String> = files.split_off(FILES_AT_ONCE).into();
            if let Some(state) = self.mailboxes.get_mut(agent) {
                state.waiting += rest.len();
            }
            self.backlog.push_back(Backlog { agent: agent.to_owned(), files: rest, archived });
        }
        self.read_some(agent, files, archived).await;
    }

    /// Reads some files of the backlog. Mailboxes take turns.
    pub(super) async fn work_on_backlog(&mut self) {
        let Some(mut backlog) = self.backlog.pop_front() else { return };
        let count = backlog.files.len().min(FILES_AT_ONCE);
        let files: Vec<String> = backlog.files.drain(..count).collect();
        let (agent, archived) = (backlog.agent.clone(), backlog.archived);
        if let Some(state) = self.mailboxes.get_mut(&agent) {
            state.waiting = state.waiting.saturating_sub(count);
        }
        if !backlog.files.is_empty() {
            self.backlog.push_back(backlog);
        }
        self.read_some(&agent, files, archived).await;
    }

    async fn read_some(&mut self, agent: &str, files: Vec<String>, archived: bool) {
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let mut fresh = Vec::new();
        let mut known = Vec::new();
        for file in files {
            match state.known.get(file.as_str()).map(|known| known.version) {
                Some(_) if archived => {}
                Some(version) => known.push((file, version)),
                None if !archived && state.is_skipped(&file) => {}
                None if archived && state.skipped_archived.contains(&file) => {}
                None => fresh.push(file),
            }
        }
        if !known.is_empty() {
            self.look_again(agent, known).await;
        }
        if !fresh.is_empty() {
            self.read_new(agent, fresh, archived).await;
        }
    }

    async fn read_new(&mut self, agent: &str, files: Vec<String>, archived: bool) {
        let Some(state) = self.mailboxes.get(agent) else { return };
        let mailbox = state.mailbox.clone();
        let looked = tokio::task::spawn_blocking(move || look_at(&mailbox, files, archived)).await;
        let Ok(looked) = looked else { return };
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let mut coming = Vec::new();
        let now = writer::now().nanos();
        for (file, seen) in looked {
            state.unfinished.remove(&file);
            match seen {
                ReadFile::Message(message, version) => {
                    if check_agent(&message.from).is_err() {
                        state.skip(&file, Some(version), &"its `from` is not an agent's name");
                        continue;
                    }
                    state.skipped.remove(&file);
                    coming.push(NewFile { file, version, message, archived });
                }
                ReadFile::Skipped(SkipReason::Gone, _) => {
                    state.skipped.remove(&file);
                }
                ReadFile::Skipped(SkipReason::NotAMessage(NotAMessage::NotJson(_)), Some(version))
                    if now - version.changed < INCOMPLETE_GRACE && !archived =>
                {
                    state.unfinished.insert(file);
                }
                ReadFile::Skipped(_, _) if archived => {
                    state.skipped_archived.insert(file);
                }
                ReadFile::Skipped(reason, version) => state.skip(&file, version, &reason),
            }
        }
        if !coming.is_empty() {
            self.submit_files(agent, coming).await;
        }
    }

    /// Submits files as messages: all are queued before the first answer is awaited.
    async fn submit_files(&mut self, agent: &str, coming: Vec<NewFile>) {
        let Ok(owner) = AgentId::new(agent) else { return };
        self.register(&owner).await;
        let mut asked: Vec<(NewFile, SendMessage, Result<Pending<SendMessage>, EngineError>)> = Vec::new();
        for one in coming {
            let Ok(from) = AgentId::new(&one.message.from) else { continue };
            self.register(&from).await;
            let message = convert::to_message(&owner, &one.file, &one.message);
            let pending = self.engine.enqueue(&Caller::member(from, VIA), message.clone()).await;
            asked.push((one, message, pending));
        }
        let mut delivered = Vec::new();
        let mut read = Vec::new();
        for (one, submitted, pending) in asked {
            let answer = match pending {
                Ok(pending) => pending.answer().await,
                Err(error) => Err(error),
            };
            let answer = match answer {
                Err(EngineError::Refused(refusal)) => self.retry(&one, submitted, refusal).await,
                answer => answer,
            };
            let Some(state) = self.mailboxes.get_mut(agent) else { return };
            match answer {
                Ok(sent) => {
                    let message = sent.message.id;
                    let known = KnownFile {
                        message,
                        version: Some(one.version),
                        read: one.message.read,
                        archived: one.archived,
                    };
                    state.insert(&one.file, known);
                    // Files that another program archived may be old.
                    let skewed = !one.archived && is_skewed(&one.file, &one.version);
                    if skewed && state.skewed.len() < 1_024 && state.skewed.insert(one.message.from.clone()) {
                        tracing::warn!(
                            mailbox = agent,
                            file = one.file,
                            "the stamp is more than a minute away from the file's arrival"
                        );
                    }
                    delivered.push(message);
                    if one.message.read {
                        read.push(message);
                    }
                    self.is_failing = false;
                }
                Err(EngineError::Refused(Refusal::Busy)) => state.again = true,
                Err(EngineError::Refused(refusal)) => {
                    state.skip(&one.file, Some(one.version), &refusal);
                    state.refused.insert(one.file);
                }
                Err(EngineError::Failed(fault)) => {
                    state.again = true;
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::error!(mailbox = agent, %fault, "files wait until the server accepts messages again");
                    }
                }
            }
        }
        self.mark_delivered(&owner, delivered).await;
        self.mark_all_read(&owner, read).await;
    }

    /// Submits a refused message again: without a conversation or message that it may not refer to, or after registering an
    /// agent that has left meanwhile.
    async fn retry(
        &mut self,
        one: &NewFile,
        message: SendMessage,
        refusal: Refusal,
    ) -> Result<posthaste_engine::verbs::mail::SendReceipt, EngineError> {
        let from = AgentId::new(&one.message.from).map_err(Refusal::from)?;
        let again = match &refusal {
            Refusal::NoSuchMessage => SendMessage { in_reply_to: None, ..message },
            Refusal::ConversationClosed { .. }
            | Refusal::NoSuchConversation { .. }
            | Refusal::NotAParticipant { .. }
            | Refusal::ParticipantMayNot { .. }
            | Refusal::TooManyParticipants { .. } => {
                SendMessage { within: None, in_reply_to: None, ..message }
            }
            Refusal::NoSuchAgent { agent, .. } => {
                self.agents.remove(agent.as_str());
                if let Ok(agent) = AgentId::new(agent) {
                    self.register(&agent).await;
                }
                message
            }
            _ => return Err(refusal.into()),
        };
        self.engine.submit(&Caller::member(from, VIA), again).await
    }

    /// Registers an agent unless it is registered already.
    pub(super) async fn register(&mut self, agent: &AgentId) {
        if self.agents.contains(agent.as_str()) {
            return;
        }
        let name = agent.clone();
        let there = self.engine.read(move |view| view.agent(&Caller::office(), &name).map(drop)).await;
        if there.is_err() {
            let entry = Register { id: Some(agent.clone()), ..Register::default() };
            if let Err(error) = self.engine.submit(&Caller::member(agent.clone(), VIA), entry).await {
                tracing::debug!(%agent, %error, "cannot be registered");
                return;
            }
        }
        if self.agents.len() >= super::MAX_KNOWN_AGENTS {
            self.agents.clear();
        }
        self.agents.insert(agent.to_string());
    }

    pub(super) async fn mark_delivered(&self, agent: &AgentId, messages: Vec<MessageId>) {
        if messages.is_empty() || !self.takes_files(agent).await || self.is_connected(agent).await {
            return;
        }
        let verb = MarkDelivered { agent: agent.clone(), messages };
        if let Err(error) = self.engine.submit(&Caller::member(agent.clone(), VIA), verb).await {
            tracing::debug!(%agent, %error, "cannot be marked as delivered");
        }
    }

    /// Whether an agent gets its messages on a connection. A sender that writes to it by a file makes a directory of its name,
    /// so a file there does not mean that the agent has the message.
    async fn is_connected(&self, agent: &AgentId) -> bool {
        self.door_of(agent).await.is_some_and(|via| DoorFacts::of(&via).delivers_on_connections)
    }

    /// Marks messages as read, together: a commit for each file that a busy agent removes would delay every mailbox. Files of
    /// agents that get their messages elsewhere say nothing about what those agents have read.
    pub(super) async fn mark_all_read(&self, agent: &AgentId, messages: Vec<MessageId>) {
        if messages.is_empty() || !self.takes_files(agent).await {
            return;
        }
        futures_util::future::join_all(messages.into_iter().map(|message| self.mark_read(agent, message)))
            .await;
    }

    async fn mark_read(&self, agent: &AgentId, message: MessageId) {
        let caller = Caller::member(agent.clone(), VIA);
        let asking = caller.clone();
        let asks =
            self.engine.read(move |view| Ok(view.message(&asking, message)?.message.ack_required)).await;
        // A file has one flag: setting it on a message that asks for an acknowledgement gives it.
        let done = match asks {
            Ok(true) => acks::acknowledge(&self.engine, &caller, message, None).await.map(drop),
            _ => {
                let verb = MarkRead { agent: agent.clone(), message, unread: false };
                self.engine.submit(&caller, verb).await.map(drop)
            }
        };
        if let Err(error) = done {
            tracing::debug!(%agent, %error, "cannot be marked as read");
        }
    }

    /// Checks known files: whether a peer has set the flag, moved them or removed them.
    async fn look_again(&mut self, agent: &str, files: Vec<(String, Option<FileVersion>)>) {
        let Some(state) = self.mailboxes.get(agent) else { return };
        let mailbox = state.mailbox.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = |(file, before): (String, Option<FileVersion>)| match mailbox.version(&file) {
                None => (file, None),
                Some(version) if Some(version) == before => (file, Some((version, None))),
                Some(_) => {
                    let seen = mailbox.message(&file).ok();
                    (file, seen.map(|(message, version)| (version, Some(message.read))))
                }
            };
            files.into_iter().map(look).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { return };
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let mut read = Vec::new();
        for (file, found) in looked {
            let Some(known) = state.known.get_mut(file.as_str()) else { continue };
            match found {
                None => {
                    state.gone.entry(Arc::from(file)).or_insert_with(Instant::now);
                }
                Some((version, flag)) => {
                    known.version = Some(version);
                    known.archived = false;
                    state.gone.remove(file.as_str());
                    if flag == Some(true) && !known.read {
                        known.read = true;
                        read.push(known.message);
                    }
                }
            }
        }
        let owner = state.agent.clone();
        self.mark_all_read(&owner, read).await;
    }

    /// Handles files that have been missing for a while: archived, or removed by their recipient.
    pub(super) async fn settle_gone(&mut self, agent: &str) {
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let due: Vec<Arc<str>> = state
            .gone
            .iter()
            .filter(|(_, since)| since.elapsed() >= REMOVED_AFTER)
            .map(|(file, _)| file.clone())
            .collect();
        if due.is_empty() {
            return;
        }
        let (mailbox, files) = (state.mailbox.clone(), due);
        let looked = tokio::task::spawn_blocking(move || {
            let archive = mailbox.archive().ok().flatten();
            let check = |file: Arc<str>| {
                let archived = archive.as_ref().is_some_and(|archive| reader::exists(archive, &file));
                let back = mailbox.version(&file).is_some();
                (file, back, archived)
            };
            files.into_iter().map(check).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { return };
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let mut read = Vec::new();
        for (file, back, archived) in looked {
            state.gone.remove(&file);
            if back {
                continue;
            }
            if archived {
                if let Some(known) = state.known.get_mut(&file) {
                    known.archived = true;
                }
            } else if let Some(known) = state.forget_removed(&file)
                && !known.read
            {
                read.push(known.message);
            }
        }
        let owner = state.agent.clone();
        self.mark_all_read(&owner, read).await;
    }
}

fn look_at(mailbox: &Mailbox, files: Vec<String>, archived: bool) -> Vec<(String, ReadFile)> {
    let archive = if archived { mailbox.archive().ok().flatten() } else { None };
    let look = |file: String| {
        let content = match (&archive, archived) {
            (Some(archive), _) => reader::read(archive, &file),
            (None, true) => Err(SkipReason::Gone),
            (None, false) => reader::read(&mailbox.directory, &file),
        };
        let seen = match content {
            Ok(content) => match FileMessage::parse(&content.bytes, mailbox.agent(), &file) {
                Ok(message) => ReadFile::Message(Box::new(message), content.version),
                Err(why) => ReadFile::Skipped(why.into(), Some(content.version)),
            },
            Err(reason) => ReadFile::Skipped(reason, mailbox.version(&file)),
        };
        (file, seen)
    };
    files.into_iter().map(look).collect()
}

fn is_skewed(file: &str, version: &FileVersion) -> bool {
    FileName::parse(file).is_some_and(|name| (name.stamp.nanos() - version.changed).abs() > MAX_SKEW)
}
