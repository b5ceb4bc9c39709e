//! What becomes of a letter at its recipient: handed over, read, acknowledged, given up.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Decided, Stop, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Audience, Delivery, DeliveryState, Fact, Message, MessageId, RealmName, Sight};
use crate::sight;
use crate::store::rows;

/// Notes that letters have been handed to their recipient. Those that were not waiting any more are left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkDelivered {
    /// The recipient.
    pub agent: AgentId,
    /// The letters.
    pub messages: Vec<MessageId>,
}

impl MarkDelivered {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<usize> {
        may_act(to, &self.agent)?;
        let mut marked = 0;
        for id in &self.messages {
            let (message, delivery) = match find(to, &self.agent, *id) {
                Ok(found) => found,
                Err(Stop::Refused(_)) => continue,
                Err(halt) => return Err(halt),
            };
            if delivery.state != DeliveryState::Queued {
                continue;
            }
            let sql = "UPDATE deliveries SET state = 1, delivered_at = ?3 WHERE agent = ?1 AND message = ?2";
            to.exec(sql, (&self.agent, message.seq, to.now))?;
            tell(to, Fact::MessageDelivered { agent: self.agent.clone() }, message)?;
            marked += 1;
        }
        Ok(marked)
    }
}

/// Notes that the recipient has looked at a letter. The first time counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkRead {
    /// The recipient.
    pub agent: AgentId,
    /// The letter.
    pub message: MessageId,
    /// Puts the letter back among the unread ones instead.
    #[serde(default)]
    pub unread: bool,
}

impl MarkRead {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Delivery> {
        may_act(to, &self.agent)?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        if self.unread {
            if delivery.state == DeliveryState::Read {
                delivery.state = DeliveryState::Delivered;
                delivery.read_at = None;
                delivery.delivered_at = delivery.delivered_at.or(Some(to.now));
                write(to, &delivery)?;
            }
            return Ok(delivery);
        }
        if delivery.state.is_unread() {
            delivery.state = DeliveryState::Read;
            delivery.delivered_at = delivery.delivered_at.or(Some(to.now));
            delivery.read_at = Some(to.now);
            write(to, &delivery)?;
            tell(to, Fact::MessageRead { agent: self.agent.clone() }, message)?;
        }
        Ok(delivery)
    }
}

/// Acknowledges a letter, with a word if the recipient has one. Reading is implied; the first time counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acknowledge {
    /// The recipient.
    pub agent: AgentId,
    /// The letter.
    pub message: MessageId,
    /// What the recipient has to say.
    #[serde(default)]
    pub response: Option<String>,
}

impl Acknowledge {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Delivery> {
        may_act(to, &self.agent)?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        if delivery.state == DeliveryState::Acked {
            return Ok(delivery);
        }
        delivery.state = DeliveryState::Acked;
        delivery.delivered_at = delivery.delivered_at.or(Some(to.now));
        delivery.read_at = delivery.read_at.or(Some(to.now));
        delivery.acked_at = Some(to.now);
        delivery.note = self.response.clone();
        write(to, &delivery)?;
        let fact = Fact::MessageAcked { agent: self.agent.clone(), response: self.response.clone() };
        tell(to, fact, message)?;
        Ok(delivery)
    }
}

/// Takes a letter out of the recipient's mail. The letter itself stays, and so does what became of it before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Discard {
    /// The recipient.
    pub agent: AgentId,
    /// The letter.
    pub message: MessageId,
}

impl Discard {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Delivery> {
        may_act(to, &self.agent)?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        if delivery.state != DeliveryState::Failed {
            delivery.state = DeliveryState::Failed;
            delivery.note = Some(Self::NOTE.to_owned());
            write(to, &delivery)?;
            let fact = Fact::MessageFailed { agent: self.agent.clone(), reason: Self::NOTE.to_owned() };
            // Nobody but the recipient needs to know what it throws away.
            let sight = Sight::Agents(Sight::list(vec![self.agent.clone()]));
            to.emit_of(fact, Arc::new(message), None, sight)?;
        }
        Ok(delivery)
    }

    const NOTE: &'static str = "discarded by the recipient";
}

/// Gives a delivery up, for a reason the sender is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkFailed {
    /// The recipient that was not reached.
    pub agent: AgentId,
    /// The letter.
    pub message: MessageId,
    /// Why.
    pub reason: String,
}

impl MarkFailed {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Delivery> {
        to.require_admin()?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        if delivery.state.is_unread() {
            delivery.state = DeliveryState::Failed;
            delivery.note = Some(self.reason.clone());
            write(to, &delivery)?;
            let fact = Fact::MessageFailed { agent: self.agent.clone(), reason: self.reason.clone() };
            tell(to, fact, message)?;
        }
        Ok(delivery)
    }
}

/// Notes what became of a letter that was to be carried to a neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispatched {
    /// The neighbour.
    pub peer: RealmName,
    /// The recipient there, as it is addressed here.
    pub agent: AgentId,
    /// The letter.
    pub message: MessageId,
    /// Why it was not taken, if it was not.
    #[serde(default)]
    pub failure: Option<String>,
}

impl Dispatched {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<()> {
        to.require_admin()?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        let sql = "DELETE FROM outbound WHERE peer = ?1 AND message = ?2 AND agent = ?3";
        if to.exec(sql, (&self.peer, message.seq, &self.agent))? == 0
            || delivery.state != DeliveryState::Queued
        {
            return Ok(());
        }
        let agent = self.agent.clone();
        let fact = match &self.failure {
            None => Fact::MessageDelivered { agent },
            Some(reason) => Fact::MessageFailed { agent, reason: reason.clone() },
        };
        (delivery.state, delivery.delivered_at) = match &self.failure {
            None => (DeliveryState::Delivered, Some(to.now)),
            Some(_) => (DeliveryState::Failed, None),
        };
        delivery.note = self.failure.clone();
        write(to, &delivery)?;
        Ok(tell(to, fact, message)?)
    }
}

fn may_act(to: &Write<'_>, agent: &AgentId) -> Decided<()> {
    if to.caller.may_act_for(agent) {
        return Ok(());
    }
    // An owner acts for its agents; for anybody else the mailbox is not there.
    let owned = rows::active_agent(to.db, agent)?.and_then(|agent| agent.owner);
    if to.caller.rights.member && owned.is_some_and(|owner| to.caller.is(&owner)) {
        return Ok(());
    }
    Err(Refusal::NoSuchMessage.into())
}

fn find(to: &Write<'_>, agent: &AgentId, id: MessageId) -> Decided<(Message, Delivery)> {
    let message = rows::message_by_id(to.db, id)?.ok_or(Refusal::NoSuchMessage)?;
    let delivery = rows::delivery_of(to.db, agent, message.seq)?.ok_or(Refusal::NoSuchMessage)?;
    // Mail of a former holder of the name is nobody's now.
    let born = rows::any_agent(to.db, agent)?.map_or(0, |agent| agent.born);
    if message.seq <= born {
        return Err(Refusal::NoSuchMessage.into());
    }
    Ok((message, delivery))
}

fn write(to: &Write<'_>, delivery: &Delivery) -> rusqlite::Result<()> {
    let sql = "UPDATE deliveries SET state = ?3, delivered_at = ?4, read_at = ?5, acked_at = ?6, note = ?7
               WHERE agent = ?1 AND message = ?2";
    let params = (
        &delivery.agent,
        delivery.message,
        delivery.state,
        delivery.delivered_at,
        delivery.read_at,
        delivery.acked_at,
        &delivery.note,
    );
    to.exec(sql, params).map(drop)
}

/// Tells sender and recipient how the letter fares; other recipients are not told.
pub(super) fn tell(to: &mut Write<'_>, fact: Fact, message: impl Into<Arc<Message>>) -> rusqlite::Result<()> {
    let message = message.into();
    let blind = match fact.about() {
        Some(agent) => sight::is_blind(to.db, agent, message.seq)?,
        None => false,
    };
    tell_whom(to, fact, message, blind)
}

/// The same of a copy that is known to be an open one.
pub(super) fn tell_openly(to: &mut Write<'_>, fact: Fact, message: Arc<Message>) -> rusqlite::Result<()> {
    tell_whom(to, fact, message, false)
}

/// Tells the sender that somebody whom it named was passed over. That one has no copy, so it is no party to it.
pub(super) fn tell_refused(
    to: &mut Write<'_>,
    agent: &AgentId,
    reason: &str,
    message: Arc<Message>,
) -> rusqlite::Result<()> {
    let agents = Sight::list(vec![message.from.clone()]);
    let sight = match message.audience {
        Audience::Observers => Sight::Observed { agents, except: Sight::list(Vec::new()) },
        _ => Sight::Agents(agents),
    };
    let cause = Some(message.seq);
    let fact = Fact::MessageFailed { agent: agent.clone(), reason: reason.to_owned() };
    to.emit_of(fact, message, cause, sight).map(drop)
}

fn tell_whom(to: &mut Write<'_>, fact: Fact, message: Arc<Message>, blind: bool) -> rusqlite::Result<()> {
    let parties = std::iter::once(message.from.clone()).chain(fact.about().cloned()).collect();
    let agents = Sight::list(parties);
    let sight = match message.audience {
        // A letter that is open to onlookers does not show them its blind copies.
        Audience::Observers if !blind => Sight::Observed { agents, except: Sight::list(Vec::new()) },
        _ => Sight::Agents(agents),
    };
    let cause = Some(message.seq);
    to.emit_of(fact, message, cause, sight).map(drop)
}
