//! What connected clients wait on: subscribers of the event log, and agents waiting for their messages. Memory only; what is
//! missed here is in the database.

mod fast_path;
mod feed;
mod filter;
mod mailboxes;
mod ring;
mod wakeups;

pub(crate) use fast_path::FastPath;
pub use feed::{Feed, Overflow, Start, Step};
pub use filter::{AgentTest, Filter, Test};
pub use mailboxes::MailboxStream;

use std::sync::Arc;

use self::mailboxes::Mailboxes;
use self::ring::Ring;
use self::wakeups::Wakeups;
use crate::limits::Limits;
use crate::nouns::{AgentId, DeliveryState, Event, Fact, RecipientKind, Seq};
use crate::verbs::Outcome;
use crate::verbs::agents::RECLAIMED;
use crate::verbs::mail::SendReceipt;
use crate::verbs::runs::Advanced;
use crate::views::InboxMessage;

/// The live side of a realm.
#[derive(Debug)]
pub(crate) struct Hub {
    ring: Ring,
    wakeups: Wakeups,
    mailboxes: Mailboxes,
    fast_path: FastPath,
    /// Version of who holds which name.
    reassigned: crate::versioned::VersionCounter,
}

impl Hub {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            ring: Ring::new(limits.live_events),
            wakeups: Wakeups::new(),
            mailboxes: Mailboxes::new(limits),
            fast_path: FastPath::default(),
            reassigned: crate::versioned::VersionCounter::new(),
        }
    }

    /// Sets the head of the event log when the realm is opened.
    pub(crate) fn start_at(&self, last: Seq) {
        self.ring.start_at(last);
        self.mailboxes.set_committed(last);
        self.wakeups.wake(last);
    }

    /// Keeps committed events for subscribers, which [`Hub::wake`] then wakes. Returns the new head.
    pub(crate) fn keep(&self, events: Vec<Arc<Event>>) -> Option<Seq> {
        let last = events.last().map(|event| event.seq);
        self.fast_path.note(&events);
        match last {
            // Without subscribers there is nothing to keep: later ones begin in the database.
            Some(last) if self.subscribers() == 0 => self.ring.start_at(last),
            _ => self.ring.push(events),
        }
        last
    }

    /// Wakes subscribers up to a head.
    pub(crate) fn wake(&self, last: Seq) {
        self.wakeups.wake(last);
    }

    /// Makes the mailboxes of agents that were registered, changed or removed check their agent in the database. Comes before the
    /// messages of the same batch are delivered.
    pub(crate) fn agents_changed(&self, events: &[Arc<Event>]) {
        if let Some(last) = events.last() {
            self.mailboxes.set_committed(last.seq);
        }
        for event in events {
            match &event.fact {
                Fact::AgentUnregistered { agent, reason: Some(reason), .. } if reason == RECLAIMED => {
                    self.mailboxes.close_all(agent);
                    self.reassigned.increment();
                }
                Fact::AgentRegistered { entry: Some(entry), .. } if entry.born > 0 => {
                    self.reassigned.increment();
                }
                _ => {}
            }
        }
        if self.mailboxes.is_empty() {
            return;
        }
        for event in events {
            if let Fact::AgentRegistered { agent, .. }
            | Fact::AgentUpdated { agent, .. }
            | Fact::AgentOrphaned { agent, .. }
            | Fact::AgentUnregistered { agent, .. } = &event.fact
            {
                self.mailboxes.recheck(agent);
            }
        }
    }

    /// Delivers a committed message to recipients that are connected, and notes that on its receipts and on its event, which no
    /// subscriber has yet. Streams of a removed agent end: its name may be registered again.
    pub(crate) fn deliver(&self, outcome: &mut Outcome, events: &mut [Arc<Event>]) {
        self.fast_path.note_outcome(outcome);
        let sent = match outcome {
            Outcome::Unregister(agent) => return self.mailboxes.close_all(&agent.id),
            Outcome::ChangeKeys(agent) if !agent.is_active() => return self.mailboxes.close_all(&agent.id),
            Outcome::Advance(advanced) => return self.deliver_run(advanced),
            Outcome::SendMessage(sent) => sent.as_mut(),
            Outcome::SendSigned(sealed) => &mut sealed.sent,
            _ => return,
        };
        if sent.repeated || self.mailboxes.is_empty() {
            return;
        }
        // Recipients that got it by the fast path have it.
        for receipt in sent.receipts.iter_mut().filter(|receipt| receipt.state == DeliveryState::Queued) {
            let delivered = self.mailboxes.offer(&receipt.agent, || InboxMessage {
                message: sent.message.clone(),
                delivery: crate::nouns::Delivery {
                    message: sent.message.seq,
                    agent: receipt.agent.clone(),
                    copy: receipt.copy,
                    state: DeliveryState::Queued,
                    delivered_at: None,
                    read_at: None,
                    acked_at: None,
                    note: None,
                },
            });
            if delivered {
                receipt.state = DeliveryState::Delivered;
            }
        }
        if self.subscribers() > 0 {
            note_delivered(sent, events);
        }
    }

    /// Delivers the messages of a run to those of its agents that are connected.
    fn deliver_run(&self, advanced: &Advanced) {
        if advanced.repeated || self.mailboxes.is_empty() {
            return;
        }
        for (message, agents) in &advanced.messages {
            for agent in agents {
                self.mailboxes.offer(agent, || InboxMessage {
                    message: message.clone(),
                    delivery: crate::nouns::Delivery {
                        message: message.seq,
                        agent: agent.clone(),
                        copy: crate::nouns::RecipientKind::To,
                        state: DeliveryState::Queued,
                        delivered_at: None,
                        read_at: None,
                        acked_at: None,
                        note: None,
                    },
                });
            }
        }
    }

    /// The state of the fast path.
    pub(crate) fn fast_path(&self) -> &FastPath {
        &self.fast_path
    }

    /// Delivers a message to all its recipients if all of them can take it now; to none otherwise.
    pub(crate) fn deliver_to_all(
        &self,
        agents: &[AgentId],
        message: impl Fn(&AgentId) -> InboxMessage,
    ) -> bool {
        self.mailboxes.offer_all(agents, message)
    }

    /// Whether an agent is connected.
    pub(crate) fn is_attached(&self, agent: &AgentId) -> bool {
        self.mailboxes.has(agent)
    }

    /// The doors by which an agent is connected.
    pub(crate) fn doors_of(&self, agent: &AgentId) -> Vec<String> {
        self.mailboxes.doors(agent)
    }

    /// Ends the mailbox streams of an agent.
    pub(crate) fn close_mailboxes(&self, agent: &AgentId) {
        self.mailboxes.close_all(agent);
    }

    /// Version of who holds which name.
    pub(crate) fn reassigned(&self) -> u64 {
        self.reassigned.get()
    }

    /// How many agents are connected.
    pub(crate) fn attached(&self) -> usize {
        self.mailboxes.len()
    }

    /// How many subscribers there are.
    pub(crate) fn subscribers(&self) -> usize {
        self.wakeups.subscribers()
    }
}

/// Notes on a message's event which recipients have it.
fn note_delivered(sent: &SendReceipt, events: &mut [Arc<Event>]) {
    let Ok(at) = events.binary_search_by_key(&sent.message.seq, |event| event.seq) else { return };
    let Some(reached) = Arc::get_mut(&mut events[at]).and_then(|event| event.reached.as_mut()) else {
        return;
    };
    // Both list the recipients in the same order; the event leaves blind copies out.
    let mut recipients = reached.iter_mut();
    for receipt in sent.receipts.iter().filter(|receipt| receipt.copy != RecipientKind::Bcc) {
        let Some(recipient) = recipients.find(|(agent, _)| *agent == receipt.agent) else { return };
        recipient.1 = receipt.state;
    }
}
