//! From the realm into the directory: letters become files, and what was read elsewhere is marked in its file.

use std::sync::Arc;

use posthaste_engine::Step;
use posthaste_engine::nouns::{AgentId, Caller, Event, Fact, Message, MessageId, Sight};

use super::super::look::Print;
use super::Bridge;
use super::boxes::Known;
use super::convert::{self, VIA};

impl Bridge {
    /// Deals with what has happened in the realm.
    pub(super) async fn follow(&mut self, steps: Vec<Step>) {
        let mut letters: Vec<Arc<Message>> = Vec::new();
        for step in steps {
            let Step::Event { event, .. } = step else {
                // Nothing holds this feed up, so nothing is passed over; if it were, a look at everything finds it.
                self.deep = true;
                continue;
            };
            match &event.fact {
                Fact::MessageSent => letters.extend(self.concerns(&event)),
                Fact::MessageRead { agent } | Fact::MessageAcked { agent, .. } => {
                    if let Some(message) = &event.message {
                        let (agent, id) = (agent.clone(), message.id);
                        // What came before it in the feed is in the directory before its flag is.
                        self.hand_out(std::mem::take(&mut letters)).await;
                        self.flag(&agent, id).await;
                    }
                }
                _ => {}
            }
        }
        self.hand_out(letters).await;
    }

    /// The letter of an event, if one of its recipients may have a mailbox here.
    fn concerns(&self, event: &Event) -> Option<Arc<Message>> {
        let message = event.message.as_ref()?;
        let some = match &event.sight {
            Sight::Agents(agents) | Sight::Observed { agents, .. } | Sight::Among { agents, .. } => {
                agents.iter().any(|agent| self.boxes.contains_key(agent.as_str()))
            }
            Sight::Everyone | Sight::Admins | Sight::Ask => !self.boxes.is_empty(),
        };
        some.then(|| message.clone())
    }

    async fn hand_out(&mut self, letters: Vec<Arc<Message>>) {
        if letters.is_empty() {
            return;
        }
        let seqs: Vec<_> = letters.iter().map(|letter| letter.seq).collect();
        let asked = self
            .engine
            .read(move |view| {
                let mut recipients = Vec::new();
                for seq in seqs {
                    let (mut after, mut agents) = (None, Vec::new());
                    loop {
                        let page = view.deliveries_of(&Caller::office(), seq, after.as_ref(), 1_000)?;
                        agents.extend(page.items.into_iter().map(|copy| copy.agent));
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
                tracing::error!(%error, "letters wait until the books can be read");
                self.deep = true;
                return;
            }
        };
        let mut bound: Vec<(AgentId, Vec<Arc<Message>>)> = Vec::new();
        for (letter, agents) in letters.into_iter().zip(recipients) {
            for agent in agents.into_iter().filter(|agent| self.boxes.contains_key(agent.as_str())) {
                match bound.iter_mut().find(|(other, _)| *other == agent) {
                    Some((_, letters)) => letters.push(letter.clone()),
                    None => bound.push((agent, vec![letter.clone()])),
                }
            }
        }
        for (agent, letters) in bound {
            if self.takes_files(&agent).await {
                self.project(&agent, letters).await;
            }
        }
    }

    /// Writes letters into an agent's mailbox; when it returns, they are durable there and marked as delivered.
    pub(super) async fn project(&mut self, agent: &AgentId, letters: Vec<Arc<Message>>) {
        let Some(state) = self.boxes.get_mut(agent.as_str()) else { return };
        let mut writing: Vec<(String, String, MessageId)> = Vec::new();
        for letter in letters {
            let is_file = letter.via == VIA
                && letter.key.as_deref().and_then(|key| convert::file_of(agent.as_str(), key)).is_some();
            if is_file || state.has_had(letter.id) {
                continue;
            }
            let name = convert::name(letter.at, letter.seq, &letter.from);
            let text = convert::file(agent, &letter).to_text();
            // Known before it is there, so that nobody takes it for a stranger's.
            state.learn(&name, Known { message: letter.id, print: None, read: false, archived: false });
            writing.push((name, text, letter.id));
        }
        if writing.is_empty() {
            return;
        }
        let mailbox = state.mailbox.clone();
        let written = tokio::task::spawn_blocking(move || {
            let results: Vec<(String, MessageId, Result<Option<Print>, String>)> = writing
                .into_iter()
                .map(|(name, text, id)| {
                    // One that is there already was written before a crash; its name says which letter it is.
                    let put = mailbox.put(&text, &name).map_err(|error| error.to_string());
                    let print = put.map(|_| mailbox.print(&name));
                    (name, id, print)
                })
                .collect();
            (results, mailbox.settle().map_err(|error| error.to_string()))
        });
        let Ok((results, settled)) = written.await else { return };
        let Some(state) = self.boxes.get_mut(agent.as_str()) else { return };
        let mut delivered = Vec::new();
        for (name, id, result) in results {
            match (&result, &settled) {
                (Ok(print), Ok(())) => {
                    if let Some(known) = state.known.get_mut(name.as_str()) {
                        known.print = *print;
                    }
                    delivered.push(id);
                }
                (Err(why), _) | (Ok(_), Err(why)) => {
                    state.unlearn(&name);
                    state.again = true;
                    self.deep = true;
                    tracing::error!(mailbox = %agent, file = name, "cannot be written and waits: {why}");
                }
            }
        }
        self.mark_delivered(agent, delivered).await;
    }

    /// Marks the file of a letter that was read elsewhere.
    async fn flag(&mut self, agent: &AgentId, message: MessageId) {
        let Some(state) = self.boxes.get_mut(agent.as_str()) else { return };
        let Some(file) = state.by_message.get(&message).cloned() else { return };
        let Some(known) = state.known.get_mut(&file) else { return };
        if std::mem::replace(&mut known.read, true) {
            return;
        }
        let (mailbox, name) = (state.mailbox.clone(), file.clone());
        let marked =
            tokio::task::spawn_blocking(move || (mailbox.mark_read(&name), mailbox.print(&name))).await;
        let Ok((marked, print)) = marked else { return };
        if let Err(error) = marked {
            tracing::warn!(mailbox = %agent, file = %file, %error, "cannot be marked as read");
        }
        if let Some(state) = self.boxes.get_mut(agent.as_str())
            && let Some(known) = state.known.get_mut(&file)
        {
            known.print = print;
        }
    }
}
