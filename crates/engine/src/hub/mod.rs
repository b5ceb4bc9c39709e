//! Everyone who listens: followers of the history, and agents waiting for their mail. Memory only; whatever is missed
//! here is in the books.

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

/// The listening side of a realm.
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

    /// Tells followers where the history stood when the office opened.
    pub(crate) fn start_at(&self, last: Seq) {
        self.ring.start_at(last);
        self.mailboxes.settle(last);
        self.wakeups.call(last);
    }

    /// Keeps committed events for followers, who learn of them from [`Hub::call`]. Gives the place to call out.
    pub(crate) fn keep(&self, events: Vec<Arc<Event>>) -> Option<Seq> {
        let last = events.last().map(|event| event.seq);
        self.fast_path.note(&events);
        match last {
            // Whoever comes later begins in the books.
            Some(last) if self.followers() == 0 => self.ring.start_at(last),
            _ => self.ring.push(events),
        }
        last
    }

    /// Wakes everyone who follows the history. Each reads at its own pace, but waking many takes its time.
    pub(crate) fn call(&self, last: Seq) {
        self.wakeups.call(last);
    }

    /// Makes those who wait for mail ask again whether it is theirs, where agents came, changed or left. Comes before
    /// the letters of the same batch are handed over.
    pub(crate) fn question(&self, events: &[Arc<Event>]) {
        if let Some(last) = events.last() {
            self.mailboxes.settle(last.seq);
        }
        for event in events {
            match &event.fact {
                Fact::AgentUnregistered { agent, reason: Some(reason), .. } if reason == RECLAIMED => {
                    self.mailboxes.shut(agent);
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
                self.mailboxes.question(agent);
            }
        }
    }

    /// Hands a committed message to recipients that are connected, and says so on its receipts and on its event, which no
    /// subscriber has yet. Streams of an agent that left end: the name may go to another.
    pub(crate) fn deliver(&self, outcome: &mut Outcome, events: &mut [Arc<Event>]) {
        self.fast_path.note_outcome(outcome);
        let sent = match outcome {
            Outcome::Unregister(agent) => return self.mailboxes.shut(&agent.id),
            Outcome::ChangeKeys(agent) if !agent.is_active() => return self.mailboxes.shut(&agent.id),
            Outcome::Advance(advanced) => return self.hand_over_run(advanced),
            Outcome::SendMessage(sent) => sent.as_mut(),
            Outcome::SendSigned(sealed) => &mut sealed.sent,
            _ => return,
        };
        if sent.repeated || self.mailboxes.is_empty() {
            return;
        }
        // Whoever got it by the fast lane has it.
        for receipt in sent.receipts.iter_mut().filter(|receipt| receipt.state == DeliveryState::Queued) {
            let handed = self.mailboxes.offer(&receipt.agent, || InboxMessage {
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
            if handed {
                receipt.state = DeliveryState::Delivered;
            }
        }
        if self.followers() > 0 {
            note_delivered(sent, events);
        }
    }

    /// Hands the letters of a run to those of its agents that wait for mail by themselves.
    fn hand_over_run(&self, advanced: &Advanced) {
        if advanced.repeated || self.mailboxes.is_empty() {
            return;
        }
        for (message, agents) in &advanced.letters {
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

    /// What the fast lane remembers.
    pub(crate) fn fast_path(&self) -> &FastPath {
        &self.fast_path
    }

    /// Hands a letter to everyone it is for, if all of them can take it now; to nobody otherwise.
    pub(crate) fn hand_round(&self, agents: &[AgentId], letter: impl Fn(&AgentId) -> InboxMessage) -> bool {
        self.mailboxes.offer_all(agents, letter)
    }

    /// Whether somebody waits for an agent's mail.
    pub(crate) fn is_attached(&self, agent: &AgentId) -> bool {
        self.mailboxes.has(agent)
    }

    /// The doors by which an agent's mail is waited for.
    pub(crate) fn doors_of(&self, agent: &AgentId) -> Vec<String> {
        self.mailboxes.doors(agent)
    }

    /// Lets go of everyone who waits for an agent's mail.
    pub(crate) fn close_mailboxes(&self, agent: &AgentId) {
        self.mailboxes.shut(agent);
    }

    /// Version of who holds which name.
    pub(crate) fn reassigned(&self) -> u64 {
        self.reassigned.get()
    }

    /// How many agents have somebody waiting for their mail.
    pub(crate) fn attached(&self) -> usize {
        self.mailboxes.len()
    }

    /// How many follow the history.
    pub(crate) fn followers(&self) -> usize {
        self.wakeups.followers()
    }
}

/// Says on a message's event which recipients have it.
fn note_delivered(sent: &SendReceipt, events: &mut [Arc<Event>]) {
    let Ok(at) = events.binary_search_by_key(&sent.message.seq, |event| event.seq) else { return };
    let Some(reached) = Arc::get_mut(&mut events[at]).and_then(|event| event.reached.as_mut()) else {
        return;
    };
    // Both list the recipients in the same order; the event leaves blind copies out.
    let mut places = reached.iter_mut();
    for receipt in sent.receipts.iter().filter(|receipt| receipt.copy != RecipientKind::Bcc) {
        let Some(place) = places.find(|(agent, _)| *agent == receipt.agent) else { return };
        place.1 = receipt.state;
    }
}
