//! From the realm into the directory: messages become files, and files of messages that were read elsewhere are marked.

use std::sync::Arc;

use posthaste_engine::Step;
use posthaste_engine::nouns::{AgentId, Caller, Event, Fact, Message, MessageId, Sight};

use super::super::reader::FileVersion;
use super::Bridge;
use super::convert::{self, VIA};
use super::mailbox_state::KnownFile;

impl Bridge {
    /// Handles events of the realm.
    pub(super) async fn follow(&mut self, steps: Vec<Step>) {
        let mut messages: Vec<Arc<Message>> = Vec::new();
        for step in steps {
            let Step::Event { event, .. } = step else {
                // A feed that lost events is caught up by a full scan.
                self.deep = true;
                continue;
            };
            match &event.fact {
                Fact::MessageSent => messages.extend(self.for_mailboxes(&event)),
                Fact::MessageRead { agent } | Fact::MessageAcked { agent, .. } => {
                    if let Some(message) = &event.message {
                        let (agent, id) = (agent.clone(), message.id);
                        // Earlier messages are written before the flag is set.
                        self.write_all(std::mem::take(&mut messages)).await;
                        self.mark_file_read(&agent, id).await;
                    }
                }
                _ => {}
            }
        }
        self.write_all(messages).await;
    }

    /// The message of an event, if one of its recipients may have a mailbox here.
    fn for_mailboxes(&self, event: &Event) -> Option<Arc<Message>> {
        let message = event.message.as_ref()?;
        let is_for_mailbox = match &event.sight {
            Sight::Agents(agents) | Sight::Observed { agents, .. } | Sight::Among { agents, .. } => {
                agents.iter().any(|agent| self.mailboxes.contains_key(agent.as_str()))
            }
            Sight::Everyone | Sight::Admins | Sight::Ask => !self.mailboxes.is_empty(),
        };
        is_for_mailbox.then(|| message.clone())
    }

    async fn write_all(&mut self, messages: Vec<Arc<Message>>) {
        if messages.is_empty() {
            return;
        }
        let seqs: Vec<_> = messages.iter().map(|message| message.seq).collect();
        let asked = self
            .engine
            .read(move |view| {
                let mut recipients = Vec::new();
                for seq in seqs {
                    let (mut after, mut agents) = (None, Vec::new());
                    loop {
                        let page = view.deliveries_of(&Caller::office(), seq, after.as_ref(), 1_000)?;
                        agents.extend(page.items.into_iter().map(|delivery| delivery.agent));
                        after = page.next;
                        if after.is_none() {
                            break;
                        }
                    }
                    recipients.push(agents);
                }
                Ok(recipients)
            })
            .await;
        let recipients = match asked {
            Ok(recipients) => recipients,
            Err(error) => {
                tracing::error!(%error, "messages wait until the database can be read");
                self.deep = true;
                return;
            }
        };
        let mut bound: Vec<(AgentId, Vec<Arc<Message>>)> = Vec::new();
        for (message, agents) in messages.into_iter().zip(recipients) {
            for agent in agents.into_iter().filter(|agent| self.mailboxes.contains_key(agent.as_str())) {
                match bound.iter_mut().find(|(other, _)| *other == agent) {
                    Some((_, messages)) => messages.push(message.clone()),
                    None => bound.push((agent, vec![message.clone()])),
                }
            }
        }
        for (agent, messages) in bound {
            if self.takes_files(&agent).await {
                self.write_messages(&agent, messages).await;
            }
        }
    }

    /// Writes messages into an agent's mailbox and marks them as delivered once they are durable there.
    pub(super) async fn write_messages(&mut self, agent: &AgentId, messages: Vec<Arc<Message>>) {
        let Some(state) = self.mailboxes.get_mut(agent.as_str()) else { return };
        let mut writing: Vec<(String, String, MessageId)> = Vec::new();
        for message in messages {
            let is_file = message.via == VIA
                && message.key.as_deref().and_then(|key| convert::file_of(agent.as_str(), key)).is_some();
            if is_file || state.has_seen(message.id) {
                continue;
            }
            let name = convert::file_name(message.at, message.seq, &message.from);
            let text = convert::to_file(agent, &message).to_text();
            // Recorded before it is written, so that the watcher does not take it for a new file.
            state.insert(
                &name,
                KnownFile { message: message.id, version: None, read: false, archived: false },
            );
            writing.push((name, text, message.id));
        }
        if writing.is_empty() {
            return;
        }
        let mailbox = state.mailbox.clone();
        let written = tokio::task::spawn_blocking(move || {
            let results: Vec<(String, MessageId, Result<Option<FileVersion>, String>)> = writing
                .into_iter()
                .map(|(name, text, id)| {
                    // A file of this name was written before a crash; the name identifies the message.
                    let put = mailbox.write_as(&text, &name).map_err(|error| error.to_string());
                    let version = put.map(|_| mailbox.version(&name));
                    (name, id, version)
                })
                .collect();
            (results, mailbox.sync_names().map_err(|error| error.to_string()))
        });
        let Ok((results, settled)) = written.await else { return };
        let Some(state) = self.mailboxes.get_mut(agent.as_str()) else { return };
        let mut delivered = Vec::new();
        for (name, id, result) in results {
            match (&result, &settled) {
                (Ok(version), Ok(())) => {
                    if let Some(known) = state.known.get_mut(name.as_str()) {
                        known.version = *version;
                    }
                    delivered.push(id);
                }
                (Err(why), _) | (Ok(_), Err(why)) => {
                    state.remove(&name);
                    state.again = true;
                    self.deep = true;
                    tracing::error!(mailbox = %agent, file = name, "cannot be written and waits: {why}");
                }
            }
        }
        self.mark_delivered(agent, delivered).await;
    }

    /// Marks the file of a message that was read elsewhere.
    async fn mark_file_read(&mut self, agent: &AgentId, message: MessageId) {
        let Some(state) = self.mailboxes.get_mut(agent.as_str()) else { return };
        let Some(file) = state.by_message.get(&message).cloned() else { return };
        let Some(known) = state.known.get_mut(&file) else { return };
        if std::mem::replace(&mut known.read, true) {
            return;
        }
        let (mailbox, name) = (state.mailbox.clone(), file.clone());
        let marked =
            tokio::task::spawn_blocking(move || (mailbox.mark_read(&name), mailbox.version(&name))).await;
        let Ok((marked, version)) = marked else { return };
        if let Err(error) = marked {
            tracing::warn!(mailbox = %agent, file = %file, %error, "cannot be marked as read");
        }
        if let Some(state) = self.mailboxes.get_mut(agent.as_str())
            && let Some(known) = state.known.get_mut(&file)
        {
            known.version = version;
        }
    }
}
