//! Bringing a mailbox and the books together from whatever state each is in: at the start, and when changes were missed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use posthaste_engine::nouns::{AgentId, Caller, DeliveryState, Message, MessageId};
use posthaste_wire::files::check_agent;

use super::super::post;
use super::Bridge;
use super::boxes::{BoxState, Known};
use super::convert;

/// A directory that changed this shortly before it was looked at may have changed again in the same tick of its clock.
const TICK: i128 = 50_000_000;
/// Letters written into a mailbox before the next are read from the books.
const PAGE: usize = 200;

impl Bridge {
    /// Looks at every mailbox that changed since it was last looked at.
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
            match self.boxes.contains_key(agent) {
                true => self.look_through(agent, deep).await,
                false => self.meet(agent).await,
            }
        }
        let there: HashSet<&String> = agents.iter().collect();
        let gone: Vec<String> = self.boxes.keys().filter(|agent| !there.contains(agent)).cloned().collect();
        for agent in gone {
            self.part(&agent);
        }
    }

    /// Takes up a mailbox, if it is one.
    pub(super) async fn meet(&mut self, agent: &str) {
        if check_agent(agent).is_err() {
            return;
        }
        let Ok(name) = AgentId::new(agent) else { return };
        if let Some(state) = self.boxes.get(agent) {
            if state.mailbox.changed().is_some() {
                return;
            }
            self.part(agent);
        }
        let mailbox = match self.mail.mailbox(agent) {
            Ok(Some(mailbox)) if mailbox.changed().is_some() => mailbox,
            Ok(Some(_)) => {
                // The one that was open is gone; perhaps there is another.
                self.mail.forget(agent);
                match self.mail.mailbox(agent) {
                    Ok(Some(mailbox)) => mailbox,
                    _ => return,
                }
            }
            _ => return,
        };
        if !self.counts(&mailbox) {
            self.mail.forget(agent);
            return;
        }
        // Watched before it is looked at, so that nothing falls between.
        self.watch.add(&self.mail.path().canonicalize().unwrap_or_default().join(agent));
        self.enter(&name).await;
        self.boxes.insert(agent.to_owned(), BoxState::new(name, mailbox));
        self.reconcile(agent).await;
    }

    fn part(&mut self, agent: &str) {
        if self.boxes.remove(agent).is_some() {
            self.mail.forget(agent);
            self.watch.remove(&self.mail.path().canonicalize().unwrap_or_default().join(agent));
        }
    }

    /// Looks through a mailbox that is known: by names, or deeply by every file's date as well.
    async fn look_through(&mut self, agent: &str, deep: bool) {
        self.settle_gone(agent).await;
        let Some(state) = self.boxes.get_mut(agent) else { return };
        let Some(changed) = state.mailbox.changed() else { return self.part(agent) };
        let again = std::mem::take(&mut state.again);
        let unfinished: Vec<String> = state.unfinished.iter().cloned().collect();
        if !unfinished.is_empty() {
            self.take(agent, unfinished, false).await;
        }
        let Some(state) = self.boxes.get_mut(agent) else { return };
        if state.waiting > 0 {
            // There is a list already that is being worked off.
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
        let began = post::now().nanos();
        let mailbox = state.mailbox.clone();
        let listed = tokio::task::spawn_blocking(move || (mailbox.names(), mailbox.archived())).await;
        let Ok((Ok(names), archived)) = listed else { return };
        let archived = archived.unwrap_or_default();
        let Some(state) = self.boxes.get_mut(agent) else { return };
        state.seen = Some((changed, began));
        let here: HashSet<&str> = names.iter().map(String::as_str).collect();
        let missing: Vec<String> = state
            .known
            .iter()
            .filter(|(file, known)| !known.archived && !here.contains(file.as_ref()))
            .map(|(file, _)| file.to_string())
            .collect();
        // What was left in place and is gone need not be remembered.
        state.left.retain(|file, _| here.contains(file.as_str()));
        state.refused.retain(|file| here.contains(file.as_str()));
        let wanted = |file: &String| deep || !state.known.contains_key(file.as_str());
        let mut files: Vec<String> = names.iter().filter(|file| wanted(file)).cloned().collect();
        files.extend(missing);
        let kept: Vec<String> =
            archived.into_iter().filter(|file| !state.known.contains_key(file.as_str())).collect();
        self.take(agent, files, false).await;
        self.take(agent, kept, true).await;
        if deep || again {
            self.project_waiting(agent).await;
        }
    }

    /// Brings a mailbox that was just taken up together with the books.
    async fn reconcile(&mut self, agent: &str) {
        let Some(state) = self.boxes.get(agent) else { return };
        let (owner, mailbox) = (state.agent.clone(), state.mailbox.clone());
        let began = post::now().nanos();
        let listed = tokio::task::spawn_blocking(move || {
            mailbox.sweep_temps();
            (mailbox.changed(), mailbox.names(), mailbox.archived())
        });
        let Ok((changed, Ok(names), archived)) = listed.await else { return };
        let archived = archived.unwrap_or_default();
        let places: HashMap<&str, bool> = archived
            .iter()
            .map(|file| (file.as_str(), true))
            .chain(names.iter().map(|file| (file.as_str(), false)))
            .collect();
        let mut known: Vec<(String, Known, bool)> = Vec::new();
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
                    _ => convert::name(line.at, line.seq, &line.from),
                };
                let Some(archived) = places.get(file.as_str()) else { continue };
                let read = matches!(line.state, DeliveryState::Read | DeliveryState::Acked);
                let queued = line.state == DeliveryState::Queued;
                let one = Known { message: line.message, print: None, read: false, archived: *archived };
                known.push((file, Known { read, ..one }, queued));
            }
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        self.compare(agent, known).await;
        let Some(state) = self.boxes.get_mut(agent) else { return };
        state.seen = changed.map(|changed| (changed, began));
        let fresh = |files: Vec<String>, state: &BoxState| -> Vec<String> {
            files.into_iter().filter(|file| !state.known.contains_key(file.as_str())).collect()
        };
        let (new, kept) = (fresh(names, state), fresh(archived, state));
        self.take(agent, new, false).await;
        self.take(agent, kept, true).await;
        self.project_waiting(agent).await;
    }

    /// Compares the flags of files with the books, and sets each where only the other has it.
    async fn compare(&mut self, agent: &str, known: Vec<(String, Known, bool)>) {
        let Some(state) = self.boxes.get(agent) else { return };
        let mailbox = state.mailbox.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = |(file, mut known, queued): (String, Known, bool)| {
                let mut flagged = known.read;
                if !known.archived
                    && let Ok((message, print)) = mailbox.message(&file)
                {
                    known.print = Some(print);
                    flagged = message.read;
                    if known.read && !flagged {
                        // Read while nobody was looking; if it fails the next start tries again.
                        let _ = mailbox.mark_read(&file);
                        known.print = mailbox.print(&file);
                        flagged = true;
                    }
                }
                (file, known, queued, flagged)
            };
            known.into_iter().map(look).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { return };
        let Some(state) = self.boxes.get_mut(agent) else { return };
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
            state.learn(&file, known);
        }
        for part in delivered.chunks(1_000) {
            self.mark_delivered(&owner, part.to_vec()).await;
        }
        self.mark_all_read(&owner, read).await;
    }

    /// Writes the letters into a mailbox that are kept for its agent and have not been handed over.
    async fn project_waiting(&mut self, agent: &str) {
        let Some(state) = self.boxes.get(agent) else { return };
        let owner = state.agent.clone();
        if !self.takes_files(&owner).await {
            return;
        }
        let mut after = 0;
        loop {
            let name = owner.clone();
            let waiting =
                self.engine.read(move |view| view.waiting(&Caller::office(), &name, after, PAGE)).await;
            let Ok(waiting) = waiting else { return };
            let Some(last) = waiting.items.last() else { return };
            after = last.message.seq;
            let letters: Vec<Arc<Message>> = waiting.items.into_iter().map(|letter| letter.message).collect();
            self.project(&owner, letters).await;
        }
    }
}
