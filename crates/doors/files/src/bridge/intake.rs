//! From the directory into the realm: new files, flags that a peer set, files that are gone.

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
use super::super::look::{self, Odd, Print};
use super::super::post;
use super::boxes::{Known, Seen};
use super::convert::{self, VIA};
use super::{Backlog, Bridge};
use posthaste_host::acks;

/// The tag of agents that get their messages on a connection they hold open.
const CONNECTED_VIA: &str = "map";

/// Files that are read before any of them is handed to the office.
const CHUNK: usize = 256;
/// A file that cannot be read as a message and changed this recently may still be being written.
const YOUNG: i128 = 2_000_000_000;
/// A file that is gone for this long was not just being replaced.
const REPLACED: Duration = Duration::from_secs(1);
/// A name whose stamp is further from the file's arrival than this shows a clock that is wrong.
const SKEW: i128 = 60_000_000_000;

/// A file on its way into the books.
struct Coming {
    file: String,
    print: Print,
    message: Box<FileMessage>,
    archived: bool,
}

impl Bridge {
    /// Looks at files of a mailbox that may have changed; at the first of many at once, at the rest by and by.
    pub(super) async fn take(&mut self, agent: &str, mut files: Vec<String>, archived: bool) {
        if files.len() > CHUNK {
            let rest: VecDeque<String> = files.split_off(CHUNK).into();
            if let Some(state) = self.boxes.get_mut(agent) {
                state.waiting += rest.len();
            }
            self.backlog.push_back(Backlog { agent: agent.to_owned(), files: rest, archived });
        }
        self.take_some(agent, files, archived).await;
    }

    /// Looks at some of the files that wait. Mailboxes take turns.
    pub(super) async fn work_off(&mut self) {
        let Some(mut backlog) = self.backlog.pop_front() else { return };
        let count = backlog.files.len().min(CHUNK);
        let files: Vec<String> = backlog.files.drain(..count).collect();
        let (agent, archived) = (backlog.agent.clone(), backlog.archived);
        if let Some(state) = self.boxes.get_mut(&agent) {
            state.waiting = state.waiting.saturating_sub(count);
        }
        if !backlog.files.is_empty() {
            self.backlog.push_back(backlog);
        }
        self.take_some(&agent, files, archived).await;
    }

    async fn take_some(&mut self, agent: &str, files: Vec<String>, archived: bool) {
        let Some(state) = self.boxes.get_mut(agent) else { return };
        let mut fresh = Vec::new();
        let mut known = Vec::new();
        for file in files {
            match state.known.get(file.as_str()).map(|known| known.print) {
                Some(_) if archived => {}
                Some(print) => known.push((file, print)),
                None if !archived && state.is_left(&file) => {}
                None if archived && state.odd_archived.contains(&file) => {}
                None => fresh.push(file),
            }
        }
        if !known.is_empty() {
            self.look_again(agent, known).await;
        }
        if !fresh.is_empty() {
            self.take_new(agent, fresh, archived).await;
        }
    }

    async fn take_new(&mut self, agent: &str, files: Vec<String>, archived: bool) {
        let Some(state) = self.boxes.get(agent) else { return };
        let mailbox = state.mailbox.clone();
        let looked = tokio::task::spawn_blocking(move || look_at(&mailbox, files, archived)).await;
        let Ok(looked) = looked else { return };
        let Some(state) = self.boxes.get_mut(agent) else { return };
        let mut coming = Vec::new();
        let now = post::now().nanos();
        for (file, seen) in looked {
            state.unfinished.remove(&file);
            match seen {
                Seen::Message(message, print) => {
                    if check_agent(&message.from).is_err() {
                        state.leave(&file, Some(print), &"its `from` is not an agent's name");
                        continue;
                    }
                    state.left.remove(&file);
                    coming.push(Coming { file, print, message, archived });
                }
                Seen::Odd(Odd::Gone, _) => {
                    state.left.remove(&file);
                }
                Seen::Odd(Odd::NotAMessage(NotAMessage::NotJson(_)), Some(print))
                    if now - print.changed < YOUNG && !archived =>
                {
                    state.unfinished.insert(file);
                }
                Seen::Odd(_, _) if archived => {
                    state.odd_archived.insert(file);
                }
                Seen::Odd(odd, print) => state.leave(&file, print, &odd),
            }
        }
        if !coming.is_empty() {
            self.hand_in(agent, coming).await;
        }
    }

    /// Hands files to the office as letters: all are asked for before the first is waited for.
    async fn hand_in(&mut self, agent: &str, coming: Vec<Coming>) {
        let Ok(owner) = AgentId::new(agent) else { return };
        self.enter(&owner).await;
        let mut asked: Vec<(Coming, SendMessage, Result<Pending<SendMessage>, EngineError>)> = Vec::new();
        for one in coming {
            let Ok(from) = AgentId::new(&one.message.from) else { continue };
            self.enter(&from).await;
            let letter = convert::letter(&owner, &one.file, &one.message);
            let pending = self.engine.enqueue(&Caller::member(from, VIA), letter.clone()).await;
            asked.push((one, letter, pending));
        }
        let mut delivered = Vec::new();
        let mut read = Vec::new();
        for (one, letter, pending) in asked {
            let answer = match pending {
                Ok(pending) => pending.answer().await,
                Err(error) => Err(error),
            };
            let answer = match answer {
                Err(EngineError::Refused(refusal)) => self.ask_again(&one, letter, refusal).await,
                answer => answer,
            };
            let Some(state) = self.boxes.get_mut(agent) else { return };
            match answer {
                Ok(sent) => {
                    let message = sent.message.id;
                    let known = Known {
                        message,
                        print: Some(one.print),
                        read: one.message.read,
                        archived: one.archived,
                    };
                    state.learn(&one.file, known);
                    // What an older program put into the archive has every right to be old.
                    let skewed = !one.archived && is_skewed(&one.file, &one.print);
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
                    self.trouble = false;
                }
                Err(EngineError::Refused(Refusal::Busy)) => state.again = true,
                Err(EngineError::Refused(refusal)) => {
                    state.leave(&one.file, Some(one.print), &refusal);
                    state.refused.insert(one.file);
                }
                Err(EngineError::Failed(fault)) => {
                    state.again = true;
                    if !std::mem::replace(&mut self.trouble, true) {
                        tracing::error!(mailbox = agent, %fault, "files wait until the office takes letters again");
                    }
                }
            }
        }
        self.mark_delivered(&owner, delivered).await;
        self.mark_all_read(&owner, read).await;
    }

    /// A letter that names a conversation or a letter it may not name is taken without that; an agent that left in between
    /// is entered again.
    async fn ask_again(
        &mut self,
        one: &Coming,
        letter: SendMessage,
        refusal: Refusal,
    ) -> Result<posthaste_engine::verbs::mail::SendReceipt, EngineError> {
        let from = AgentId::new(&one.message.from).map_err(Refusal::from)?;
        let again = match &refusal {
            Refusal::NoSuchMessage => SendMessage { in_reply_to: None, ..letter },
            Refusal::ConversationClosed { .. }
            | Refusal::NoSuchConversation { .. }
            | Refusal::NotAParticipant { .. }
            | Refusal::ParticipantMayNot { .. }
            | Refusal::TooManyParticipants { .. } => {
                SendMessage { within: None, in_reply_to: None, ..letter }
            }
            Refusal::NoSuchAgent { agent, .. } => {
                self.agents.remove(agent.as_str());
                if let Ok(agent) = AgentId::new(agent) {
                    self.enter(&agent).await;
                }
                letter
            }
            _ => return Err(refusal.into()),
        };
        self.engine.submit(&Caller::member(from, VIA), again).await
    }

    /// Makes sure that an agent is in the address book.
    pub(super) async fn enter(&mut self, agent: &AgentId) {
        if self.agents.contains(agent.as_str()) {
            return;
        }
        let name = agent.clone();
        let there = self.engine.read(move |view| view.agent(&Caller::office(), &name).map(drop)).await;
        if there.is_err() {
            let entry = Register { id: Some(agent.clone()), ..Register::default() };
            if let Err(error) = self.engine.submit(&Caller::member(agent.clone(), VIA), entry).await {
                tracing::debug!(%agent, %error, "cannot be entered into the address book");
                return;
            }
        }
        if self.agents.len() >= super::MOST_AGENTS {
            self.agents.clear();
        }
        self.agents.insert(agent.to_string());
    }

    pub(super) async fn mark_delivered(&self, agent: &AgentId, messages: Vec<MessageId>) {
        if messages.is_empty() || !self.takes_files(agent).await || self.is_handed_letters(agent).await {
            return;
        }
        let verb = MarkDelivered { agent: agent.clone(), messages };
        if let Err(error) = self.engine.submit(&Caller::member(agent.clone(), VIA), verb).await {
            tracing::debug!(%agent, %error, "cannot be marked as delivered");
        }
    }

    /// Whether an agent gets its messages on a connection. Whoever writes to it by a file makes a directory of its
    /// name, so a file there is no sign that the agent has the letter.
    async fn is_handed_letters(&self, agent: &AgentId) -> bool {
        self.door_of(agent).await.as_deref() == Some(CONNECTED_VIA)
    }

    /// Marks letters as read, together: a commit for each file that a busy agent takes out would hold up every mailbox.
    /// What happens to files in a mailbox whose agent does not use it says nothing of what that agent has read.
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
        // A file has one flag: whoever sets it on a letter that asks for an acknowledgement gives it.
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

    /// Looks at files that are known: whether a peer has set the flag, moved them or taken them away.
    async fn look_again(&mut self, agent: &str, files: Vec<(String, Option<Print>)>) {
        let Some(state) = self.boxes.get(agent) else { return };
        let mailbox = state.mailbox.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = |(file, before): (String, Option<Print>)| match mailbox.print(&file) {
                None => (file, None),
                Some(print) if Some(print) == before => (file, Some((print, None))),
                Some(_) => {
                    let seen = mailbox.message(&file).ok();
                    (file, seen.map(|(message, print)| (print, Some(message.read))))
                }
            };
            files.into_iter().map(look).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { return };
        let Some(state) = self.boxes.get_mut(agent) else { return };
        let mut read = Vec::new();
        for (file, found) in looked {
            let Some(known) = state.known.get_mut(file.as_str()) else { continue };
            match found {
                None => {
                    state.gone.entry(Arc::from(file)).or_insert_with(Instant::now);
                }
                Some((print, flag)) => {
                    known.print = Some(print);
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

    /// Decides about files that have been gone for a while: archived, or taken away by their recipient.
    pub(super) async fn settle_gone(&mut self, agent: &str) {
        let Some(state) = self.boxes.get_mut(agent) else { return };
        let due: Vec<Arc<str>> = state
            .gone
            .iter()
            .filter(|(_, since)| since.elapsed() >= REPLACED)
            .map(|(file, _)| file.clone())
            .collect();
        if due.is_empty() {
            return;
        }
        let (mailbox, files) = (state.mailbox.clone(), due);
        let looked = tokio::task::spawn_blocking(move || {
            let archive = mailbox.archive().ok().flatten();
            let look = |file: Arc<str>| {
                let archived = archive.as_ref().is_some_and(|archive| look::exists(archive, &file));
                let back = mailbox.print(&file).is_some();
                (file, back, archived)
            };
            files.into_iter().map(look).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { return };
        let Some(state) = self.boxes.get_mut(agent) else { return };
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
            } else if let Some(known) = state.take_out(&file)
                && !known.read
            {
                read.push(known.message);
            }
        }
        let owner = state.agent.clone();
        self.mark_all_read(&owner, read).await;
    }
}

fn look_at(mailbox: &Mailbox, files: Vec<String>, archived: bool) -> Vec<(String, Seen)> {
    let archive = if archived { mailbox.archive().ok().flatten() } else { None };
    let look = |file: String| {
        let content = match (&archive, archived) {
            (Some(archive), _) => look::read(archive, &file),
            (None, true) => Err(Odd::Gone),
            (None, false) => look::read(&mailbox.directory, &file),
        };
        let seen = match content {
            Ok(content) => match FileMessage::parse(&content.bytes, mailbox.agent(), &file) {
                Ok(message) => Seen::Message(Box::new(message), content.print),
                Err(why) => Seen::Odd(why.into(), Some(content.print)),
            },
            Err(odd) => Seen::Odd(odd, mailbox.print(&file)),
        };
        (file, seen)
    };
    files.into_iter().map(look).collect()
}

fn is_skewed(file: &str, print: &Print) -> bool {
    FileName::parse(file).is_some_and(|name| (name.stamp.nanos() - print.changed).abs() > SKEW)
}
