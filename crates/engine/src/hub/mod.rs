//! Everyone who listens: followers of the history, and agents waiting for their mail. Memory only; whatever is missed
//! here is in the books.

mod feed;
mod filter;
mod ring;
mod slots;

pub use feed::{Feed, Overflow, Start, Step};
pub use filter::{Filter, Test};
pub use slots::Mailslot;

use std::sync::Arc;

use tokio::sync::watch;

use self::ring::Ring;
use self::slots::Slots;
use crate::limits::Limits;
use crate::nouns::{AgentId, DeliveryState, Event, Seq};
use crate::verbs::Outcome;
use crate::views::Letter;

/// The listening side of a realm.
#[derive(Debug)]
pub(crate) struct Hub {
    ring: Ring,
    /// The last committed place. Followers sleep on it.
    head: watch::Sender<Seq>,
    slots: Slots,
}

impl Hub {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            ring: Ring::new(limits.live_events),
            head: watch::Sender::new(0),
            slots: Slots::new(limits.slot_letters),
        }
    }

    /// Tells followers where the history stood when the office opened.
    pub(crate) fn start_at(&self, last: Seq) {
        self.ring.start_at(last);
        self.head.send_replace(last);
    }

    /// Keeps committed events for followers, who learn of them from [`Hub::call`]. Gives the place to call out.
    pub(crate) fn keep(&self, events: Vec<Arc<Event>>) -> Option<Seq> {
        let last = events.last().map(|event| event.seq);
        self.ring.push(events);
        last
    }

    /// Wakes everyone who follows the history. Each reads at its own pace, but waking many takes its time.
    pub(crate) fn call(&self, last: Seq) {
        self.head.send_replace(last);
    }

    /// Hands a committed letter to recipients that are connected, and says so on its receipts.
    pub(crate) fn hand_over(&self, outcome: &mut Outcome) {
        let Outcome::Send(sent) = outcome else { return };
        if sent.repeated || self.slots.is_empty() {
            return;
        }
        for receipt in &mut sent.receipts {
            let handed = self.slots.offer(&receipt.agent, || Letter {
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
    }

    /// Whether somebody waits for an agent's mail.
    pub(crate) fn is_attached(&self, agent: &AgentId) -> bool {
        self.slots.has(agent)
    }

    /// How many agents have somebody waiting for their mail.
    pub(crate) fn attached(&self) -> usize {
        self.slots.len()
    }

    /// How many follow the history.
    pub(crate) fn followers(&self) -> usize {
        self.head.receiver_count()
    }
}
