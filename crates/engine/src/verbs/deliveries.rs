//! What happens to a message at its recipient: delivered, read, acknowledged, discarded, failed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Audience, Delivery, DeliveryState, Fact, Message, MessageId, RealmName, Sight};
use crate::sight;
use crate::store::{one, rows};

/// Marks messages as delivered. Messages that were not queued any more stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkDelivered {
    /// The recipient.
    pub agent: AgentId,
    /// The messages.
    pub messages: Vec<MessageId>,
}

impl MarkDelivered {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<usize> + use<'v>> {
        check_may_act(to, &self.agent)?;
        Ok(move |to: &mut Write<'_>| {
            let mut marked = 0;
            for id in &self.messages {
                let Some((message, delivery)) = lookup(to, &self.agent, *id)? else { continue };
                if delivery.state != DeliveryState::Queued {
                    continue;
                }
                let sql =
                    "UPDATE deliveries SET state = 1, delivered_at = ?3 WHERE agent = ?1 AND message = ?2";
                to.exec(sql, (&self.agent, message.seq, to.now))?;
                emit(to, Fact::MessageDelivered { agent: self.agent.clone() }, message)?;
                marked += 1;
            }
            Ok(marked)
        })
    }
}

/// Marks a message as read. The first time counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkRead {
    /// The recipient.
    pub agent: AgentId,
    /// The message.
    pub message: MessageId,
    /// Marks the message as unread instead.
    #[serde(default)]
    pub unread: bool,
}

impl MarkRead {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Delivery> + use<'v>> {
        check_may_act(to, &self.agent)?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        Ok(move |to: &mut Write<'_>| {
            if self.unread {
                if delivery.state == DeliveryState::Read {
                    delivery.state = DeliveryState::Delivered;
                    delivery.read_at = None;
                    delivery.delivered_at = delivery.delivered_at.or(Some(to.now));
                    write(to, &delivery)?;
                }
            } else if delivery.state.is_unread() {
                delivery.state = DeliveryState::Read;
                delivery.delivered_at = delivery.delivered_at.or(Some(to.now));
                delivery.read_at = Some(to.now);
                write(to, &delivery)?;
                emit(to, Fact::MessageRead { agent: self.agent.clone() }, message)?;
            }
            Ok(delivery)
        })
    }
}

/// Acknowledges a message, with an optional response. Reading is implied; the first time counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acknowledge {
    /// The recipient.
    pub agent: AgentId,
    /// The message.
    pub message: MessageId,
    /// The recipient's response.
    #[serde(default)]
    pub response: Option<String>,
}

impl Acknowledge {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Delivery> + use<'v>> {
        check_may_act(to, &self.agent)?;
        let (message, delivery) = find(to, &self.agent, self.message)?;
        Ok(move |to: &mut Write<'_>| acknowledge(to, message, delivery, self.response.clone()))
    }
}

/// Writes that a delivery is acknowledged, unless it is already.
pub(super) fn acknowledge(
    to: &mut Write<'_>,
    message: Message,
    mut delivery: Delivery,
    response: Option<String>,
) -> rusqlite::Result<Delivery> {
    if delivery.state == DeliveryState::Acked {
        return Ok(delivery);
    }
    delivery.state = DeliveryState::Acked;
    delivery.delivered_at = delivery.delivered_at.or(Some(to.now));
    delivery.read_at = delivery.read_at.or(Some(to.now));
    delivery.acked_at = Some(to.now);
    delivery.note.clone_from(&response);
    write(to, &delivery)?;
    emit(to, Fact::MessageAcked { agent: delivery.agent.clone(), response }, message)?;
    Ok(delivery)
}

/// Removes a message from the recipient's mail. The message itself stays, and so does what happened to it before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Discard {
    /// The recipient.
    pub agent: AgentId,
    /// The message.
    pub message: MessageId,
}

impl Discard {
    const NOTE: &'static str = "discarded by the recipient";

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Delivery> + use<'v>> {
        check_may_act(to, &self.agent)?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        Ok(move |to: &mut Write<'_>| {
            if delivery.state != DeliveryState::Failed {
                delivery.state = DeliveryState::Failed;
                delivery.note = Some(Self::NOTE.to_owned());
                write(to, &delivery)?;
                let fact = Fact::MessageFailed { agent: self.agent.clone(), reason: Self::NOTE.to_owned() };
                // Only the recipient sees what it discards.
                let sight = Sight::Agents(Sight::list(vec![self.agent.clone()]));
                to.emit_of(fact, Arc::new(message), None, sight)?;
            }
            Ok(delivery)
        })
    }
}

/// Marks a delivery as failed, for a reason that the sender sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkFailed {
    /// The recipient that was not reached.
    pub agent: AgentId,
    /// The message.
    pub message: MessageId,
    /// Why.
    pub reason: String,
}

impl MarkFailed {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Delivery> + use<'v>> {
        to.require_admin()?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        Ok(move |to: &mut Write<'_>| {
            if delivery.state.is_unread() {
                delivery.state = DeliveryState::Failed;
                delivery.note = Some(self.reason.clone());
                write(to, &delivery)?;
                let fact = Fact::MessageFailed { agent: self.agent.clone(), reason: self.reason.clone() };
                emit(to, fact, message)?;
            }
            Ok(delivery)
        })
    }
}

/// Records the result of relaying a message to a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispatched {
    /// The peer.
    pub peer: RealmName,
    /// The recipient there, as it is addressed here.
    pub agent: AgentId,
    /// The message.
    pub message: MessageId,
    /// Why the peer did not take it, if it did not.
    #[serde(default)]
    pub failure: Option<String>,
}

impl Dispatched {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<()> + use<'v>> {
        to.require_admin()?;
        let (message, mut delivery) = find(to, &self.agent, self.message)?;
        let sql = "SELECT 1 FROM outbound WHERE peer = ?1 AND message = ?2 AND agent = ?3";
        let was_waiting = one(to.db, sql, (&self.peer, message.seq, &self.agent), |_| Ok(()))?.is_some();
        Ok(move |to: &mut Write<'_>| {
            if !was_waiting {
                return Ok(());
            }
            let sql = "DELETE FROM outbound WHERE peer = ?1 AND message = ?2 AND agent = ?3";
            to.exec(sql, (&self.peer, message.seq, &self.agent))?;
            if delivery.state != DeliveryState::Queued {
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
            delivery.note.clone_from(&self.failure);
            write(to, &delivery)?;
            emit(to, fact, message)
        })
    }
}

fn check_may_act(to: &Decide<'_>, agent: &AgentId) -> Decided<()> {
    if to.caller.may_act_for(agent) {
        return Ok(());
    }
    // An owner acts for its agents; for other callers the mailbox does not exist.
    let owner = rows::active_agent(to.db, agent)?.and_then(|agent| agent.owner);
    if to.caller.rights.member && owner.is_some_and(|owner| to.caller.is(&owner)) {
        return Ok(());
    }
    Err(Refusal::NoSuchMessage.into())
}

/// A message and its delivery to an agent.
pub(super) fn find(to: &Decide<'_>, agent: &AgentId, id: MessageId) -> Decided<(Message, Delivery)> {
    lookup(to, agent, id)?.ok_or_else(|| Refusal::NoSuchMessage.into())
}

fn lookup(to: &Decide<'_>, agent: &AgentId, id: MessageId) -> rusqlite::Result<Option<(Message, Delivery)>> {
    let Some(message) = rows::message_by_id(to.db, id)? else { return Ok(None) };
    let Some(delivery) = rows::delivery_of(to.db, agent, message.seq)? else { return Ok(None) };
    // Mail of the name's former holder does not belong to the agent.
    let born = rows::any_agent(to.db, agent)?.map_or(0, |agent| agent.born);
    Ok((message.seq > born).then_some((message, delivery)))
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

/// Emits an event about a delivery to sender and recipient; other recipients do not see it.
pub(super) fn emit(to: &mut Write<'_>, fact: Fact, message: impl Into<Arc<Message>>) -> rusqlite::Result<()> {
    let message = message.into();
    let blind = match fact.about() {
        Some(agent) => sight::is_blind(to.db, agent, message.seq)?,
        None => false,
    };
    emit_to_parties(to, fact, message, blind)
}

/// The same for a delivery that is known not to be a blind copy.
pub(super) fn emit_openly(to: &mut Write<'_>, fact: Fact, message: Arc<Message>) -> rusqlite::Result<()> {
    emit_to_parties(to, fact, message, false)
}

/// Emits to the sender that a named agent was passed over. That agent has no delivery, so it does not see the event.
pub(super) fn emit_refused(
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

fn emit_to_parties(
    to: &mut Write<'_>,
    fact: Fact,
    message: Arc<Message>,
    blind: bool,
) -> rusqlite::Result<()> {
    let parties = std::iter::once(message.from.clone()).chain(fact.about().cloned()).collect();
    let agents = Sight::list(parties);
    let sight = match message.audience {
        // A message that is open to observers does not show them its blind copies.
        Audience::Observers if !blind => Sight::Observed { agents, except: Sight::list(Vec::new()) },
        _ => Sight::Agents(agents),
    };
    let cause = Some(message.seq);
    to.emit_of(fact, message, cause, sight).map(drop)
}
