//! Reconciling a mailbox with the database, whatever state each is in: at the start, and when changes were missed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use posthaste_engine::nouns::{AgentId, Caller, DeliveryState, Message, MessageId};
use posthaste_wire::files::check_agent;

use super::super::writer;
use super::Bridge;
use super::convert;
use super::mailbox_state::{KnownFile, MailboxState};

/// A directory that changed less than this before a scan, in nanoseconds, may have changed again in the same clock tick.
const TICK: i128 = 50_000_000;
/// Messages written into a mailbox before the next are read from the database.
const MESSAGES_AT_ONCE: usize = 200;

impl Bridge {
    /// Scans every mailbox that changed since its last scan.
    pub(super) async fn sweep(&mut self) {
        let deep = std::mem::take(&mut self.deep);
        let mail = self.mail.clone();
        let agents = match tokio::task::spawn_blocking(move || mail.agents()).await {
            Ok(Ok(agents)) => agents,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the mail directory cannot be read");
                self.deep |= deep;
                return;
            }
            Err(_) => return,
        };
        self.sweep_signals(deep).await;
        for agent in &agents {
            match self.mailboxes.contains_key(agent) {
                true => self.scan(agent, deep).await,
                false => self.open_mailbox(agent).await,
            }
        }
        let present: HashSet<&String> = agents.iter().collect();
        let gone: Vec<String> =
            self.mailboxes.keys().filter(|agent| !present.contains(agent)).cloned().collect();
        for agent in gone {
            self.close_mailbox(&agent);
        }
    }

    /// Opens a mailbox, if it is one.
    pub(super) async fn open_mailbox(&mut self, agent: &str) {
        if check_agent(agent).is_err() {
            return;
        }
        let Ok(name) = AgentId::new(agent) else { return };
        if let Some(state) = self.mailboxes.get(agent) {
            if state.mailbox.changed().is_some() {
                return;
            }
            self.close_mailbox(agent);
        }
        let mailbox = match self.mail.mailbox(agent) {
            Ok(Some(mailbox)) if mailbox.changed().is_some() => mailbox,
            Ok(Some(_)) => {
                // The open directory was removed; there may be another of its name.
                self.mail.forget(agent);
                match self.mail.mailbox(agent) {
                    Ok(Some(mailbox)) => mailbox,
                    _ => return,
                }
            }
            _ => return,
        };
        if !self.is_trusted(&mailbox) {
            self.mail.forget(agent);
            return;
        }
        // Watched before it is read, so that no change is missed in between.
        self.watch.add(&self.mail.path().canonicalize().unwrap_or_default().join(agent));
        self.register(&name).await;
        self.mailboxes.insert(agent.to_owned(), MailboxState::new(name, mailbox));
        self.reconcile(agent).await;
    }

    fn close_mailbox(&mut self, agent: &str) {
        if self.mailboxes.remove(agent).is_some() {
            self.mail.forget(agent);
            self.watch.remove(&self.mail.path().canonicalize().unwrap_or_default().join(agent));
        }
    }

    /// Scans an open mailbox: by names, or, if `deep`, by every file's version as well.
    async fn scan(&mut self, agent: &str, deep: bool) {
        self.settle_gone(agent).await;
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let Some(changed) = state.mailbox.changed() else { return self.close_mailbox(agent) };
        let again = std::mem::take(&mut state.again);
        let unfinished: Vec<String> = state.unfinished.iter().cloned().collect();
        if !unfinished.is_empty() {
            self.read_files(agent, unfinished, false).await;
        }
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        if state.waiting > 0 {
            // Files of an earlier scan are still in the backlog.
            state.again |= again || deep;
            return;
        }
        if deep {
            state.retry = std::mem::take(&mut state.refused);
        }
        let unchanged = state.seen.is_some_and(|(seen, at)| seen == changed && at - seen > TICK);
        if unchanged && !deep && !again {
            return;
        }
        let began = writer::now().nanos();
        let mailbox = state.mailbox.clone();
        let listed = tokio::task::spawn_blocking(move || (mailbox.names(), mailbox.archived())).await;
        let Ok((Ok(names), archived)) = listed else { return };
        let archived = archived.unwrap_or_default();
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        state.seen = Some((changed, began));
        let here: HashSet<&str> = names.iter().map(String::as_str).collect();
        let missing: Vec<String> = state
            .known
            .iter()
            .filter(|(file, known)| !known.archived && !here.contains(file.as_ref()))
            .map(|(file, _)| file.to_string())
            .collect();
        // Skipped files that are gone need not be remembered.
        state.skipped.retain(|file, _| here.contains(file.as_str()));
        state.refused.retain(|file| here.contains(file.as_str()));
        let wanted = |file: &String| deep || !state.known.contains_key(file.as_str());
        let mut files: Vec<String> = names.iter().filter(|file| wanted(file)).cloned().collect();
        files.extend(missing);
        let kept: Vec<String> =
            archived.into_iter().filter(|file| !state.known.contains_key(file.as_str())).collect();
        self.read_files(agent, files, false).await;
        self.read_files(agent, kept, true).await;
        if deep || again {
            self.write_undelivered(agent).await;
        }
    }

    /// Reconciles a mailbox that was just opened with the database.
    async fn reconcile(&mut self, agent: &str) {
        let Some(state) = self.mailboxes.get(agent) else { return };
        let (owner, mailbox) = (state.agent.clone(), state.mailbox.clone());
        let began = writer::now().nanos();
        let listed = tokio::task::spawn_blocking(move || {
            mailbox.sweep_temps();
            (mailbox.changed(), mailbox.names(), mailbox.archived())
        });
        let Ok((changed, Ok(names), archived)) = listed.await else { return };
        let archived = archived.unwrap_or_default();
        let archived_by_name: HashMap<&str, bool> = archived
            .iter()
            .map(|file| (file.as_str(), true))
            .chain(names.iter().map(|file| (file.as_str(), false)))
            .collect();
        let mut known: Vec<(String, KnownFile, bool)> = Vec::new();
        let mut after = 0;
        loop {
            let name = owner.clone();
            let page = self
                .engine
                .read(move |view| view.delivery_index(&Caller::office(), &name, after, 1_000))
                .await;
            let Ok(page) = page else { break };
            for line in page.items {
                let file = match line.key.as_deref().and_then(|key| convert::file_of(agent, key)) {
                    Some(file) if line.via == convert::VIA => file.to_owned(),
                    _ => convert::file_name(line.at, line.seq, &line.from),
                };
                let Some(archived) = archived_by_name.get(file.as_str()) else { continue };
                let read = matches!(line.state, DeliveryState::Read | DeliveryState::Acked);
                let queued = line.state == DeliveryState::Queued;
                let one =
                    KnownFile { message: line.message, version: None, read: false, archived: *archived };
                known.push((file, KnownFile { read, ..one }, queued));
            }
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        self.compare(agent, known).await;
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        state.seen = changed.map(|changed| (changed, began));
        let fresh = |files: Vec<String>, state: &MailboxState| -> Vec<String> {
            files.into_iter().filter(|file| !state.known.contains_key(file.as_str())).collect()
        };
        let (new, kept) = (fresh(names, state), fresh(archived, state));
        self.read_files(agent, new, false).await;
        self.read_files(agent, kept, true).await;
        self.write_undelivered(agent).await;
    }

    /// Compares the flags of files with the database, and sets each where only the other has it.
    async fn compare(&mut self, agent: &str, known: Vec<(String, KnownFile, bool)>) {
        let Some(state) = self.mailboxes.get(agent) else { return };
        let mailbox = state.mailbox.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = |(file, mut known, queued): (String, KnownFile, bool)| {
                let mut flagged = known.read;
                if !known.archived
                    && let Ok((message, version)) = mailbox.message(&file)
                {
                    known.version = Some(version);
                    flagged = message.read;
                    if known.read && !flagged {
                        // Read while the bridge did not run; if this fails, the next start tries again.
                        let _ = mailbox.mark_read(&file);
                        known.version = mailbox.version(&file);
                        flagged = true;
                    }
                }
                (file, known, queued, flagged)
            };
            known.into_iter().map(look).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { return };
        let Some(state) = self.mailboxes.get_mut(agent) else { return };
        let owner = state.agent.clone();
        let mut read: Vec<MessageId> = Vec::new();
        let mut delivered = Vec::new();
        for (file, mut known, queued, flagged) in looked {
            if flagged && !known.read {
                known.read = true;
                read.push(known.message);
            }
            if queued {
                delivered.push(known.message);
            }
            state.insert(&file, known);
        }
        for part in delivered.chunks(1_000) {
            self.mark_delivered(&owner, part.to_vec()).await;
        }
        self.mark_all_read(&owner, read).await;
    }

    /// Writes messages that wait for the mailbox's agent.
    async fn write_undelivered(&mut self, agent: &str) {
        let Some(state) = self.mailboxes.get(agent) else { return };
        let owner = state.agent.clone();
        if !self.takes_files(&owner).await {
            return;
        }
        let mut after = 0;
        loop {
            let name = owner.clone();
            let waiting = self
                .engine
                .read(move |view| view.waiting(&Caller::office(), &name, after, MESSAGES_AT_ONCE))
                .await;
            let Ok(waiting) = waiting else { return };
            let Some(last) = waiting.items.last() else { return };
            after = last.message.seq;
            let messages: Vec<Arc<Message>> = waiting.items.into_iter().map(|one| one.message).collect();
            self.write_messages(&owner, messages).await;
        }
    }
}
