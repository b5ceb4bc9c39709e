//! Signed messages: the door has verified the sender, and the engine accepts each message once, together with its side effect.

use serde::{Deserialize, Serialize};

use super::conversations::Close;
use super::mail::{SendMessage, SendReceipt};
use super::reservations::{self, Announcement, Renew, Renewal, Reserve, Which};
use super::seen_keys::{self, SingleUseKey};
use super::{Decide, Decided, Stop, Write, deliveries};
use crate::error::Refusal;
use crate::nouns::{
    Address, Audience, ConversationId, ConversationStatus, Delivery, Message, MessageId, Reservation,
    Reserved,
};
use crate::sight;
use crate::store::rows;

/// Sends a message that is accepted once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendSigned {
    /// The message.
    pub message: SendMessage,
    /// Keys that the sender must not have used before. They are stored if the message is accepted.
    pub keys: Vec<SingleUseKey>,
    /// What the message does besides being delivered.
    #[serde(default)]
    pub side_effect: Option<SideEffect>,
}

/// What a signed message can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Announces a reservation of the sender's. One that is known, or has expired, is announced all the same.
    Reserve(Reserve),
    /// Extends one.
    Renew(Renew),
    /// Releases one.
    Release(Which),
    /// Ends one, though it may be extended again.
    Lapse(Which),
    /// Acknowledges the message that its sender gave this label.
    Acknowledge {
        /// The label.
        label: String,
        /// The message itself, if no sender used the label: messages of other doors go by their id.
        #[serde(default)]
        message: Option<MessageId>,
        /// The recipient's response.
        response: Option<String>,
    },
    /// Sets a conversation's subject, and closes it if `ended` is given. Where the sender may not do that, the message is
    /// sent all the same.
    Entitle {
        /// The conversation.
        conversation: ConversationId,
        /// The subject.
        subject: String,
        /// How the conversation ended, if it did.
        ended: Option<ConversationStatus>,
    },
}

/// The result of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedReceipt {
    /// The message and its receipts.
    pub sent: SendReceipt,
    /// The reservation it announced, and what that overlaps with.
    pub reserved: Option<Reserved>,
    /// The delivery it acknowledged.
    pub acked: Option<Delivery>,
}

impl SendSigned {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<SignedReceipt> + use<'v>> {
        to.require_member()?;
        let unused = seen_keys::check(to, &to.caller.agent, &self.keys)?;
        let effect = self.check_effect(to)?;
        let message = self.message.decide(to)?;
        let effect = effect.compare(to)?;
        Ok(move |to: &mut Write<'_>| {
            let sent = message(to)?;
            unused.store(to, sent.message.seq)?;
            let mut done = SignedReceipt { sent, reserved: None, acked: None };
            effect.write(to, &mut done)?;
            Ok(done)
        })
    }

    /// Refuses a side effect that the caller may not have.
    fn check_effect(&self, to: &Decide<'_>) -> Decided<Effect<'_>> {
        Ok(match &self.side_effect {
            None => Effect::None,
            Some(SideEffect::Reserve(reserve)) => {
                Effect::Reserve(Box::new(reserve.check_announced(to)?), reserve.audience)
            }
            Some(SideEffect::Renew(renew)) => Effect::Renew(Box::new(renew.check(to)?)),
            Some(SideEffect::Release(which)) => Effect::Release(Box::new(reservations::own(to, which)?)),
            Some(SideEffect::Lapse(which)) => Effect::Lapse(Box::new(reservations::own(to, which)?)),
            Some(SideEffect::Acknowledge { label, message, response }) => {
                let message = self.labelled(to, label, *message)?;
                Effect::Acknowledge(Box::new(deliveries::find(to, &to.caller.agent, message)?), response)
            }
            Some(SideEffect::Entitle { conversation, subject, ended }) => {
                Effect::Entitle { conversation, subject, ended: *ended }
            }
        })
    }

    /// The message with a label that the caller received; from a recipient of this message, if there are several.
    fn labelled(&self, to: &Decide<'_>, label: &str, ours: Option<MessageId>) -> Decided<MessageId> {
        let mut received = None;
        for (sender, seq) in seen_keys::uses_of_label(to, label)? {
            if rows::delivery_of(to.db, &to.caller.agent, seq)?.is_none() {
                continue;
            }
            let Some(message) = rows::message_at(to.db, seq)? else { continue };
            if !sight::sees_message(to.db, to.caller, &message)? {
                continue;
            }
            if self.message.to.contains(&Address::Agent(sender)) {
                return Ok(message.id);
            }
            received = received.or(Some(message.id));
        }
        if received.is_none()
            && let Some(id) = ours
            && let Some(message) = rows::message_by_id(to.db, id)?
            && rows::delivery_of(to.db, &to.caller.agent, message.seq)?.is_some()
            && sight::sees_message(to.db, to.caller, &message)?
        {
            received = Some(id);
        }
        received.ok_or_else(|| Refusal::NoSuchMessage.into())
    }
}

/// A side effect that is checked.
enum Effect<'v> {
    None,
    Reserve(Box<Announcement<'v>>, Audience),
    Renew(Box<Renewal>),
    Release(Box<Reservation>),
    Lapse(Box<Reservation>),
    Acknowledge(Box<(Message, Delivery)>, &'v Option<String>),
    Entitle { conversation: &'v ConversationId, subject: &'v str, ended: Option<ConversationStatus> },
}

impl Effect<'_> {
    /// Finds what a reservation overlaps with, which may be refused, too.
    fn compare(self, to: &Decide<'_>) -> Decided<Self> {
        Ok(match self {
            Self::Reserve(announcement, audience) => {
                Self::Reserve(Box::new(announcement.compare(to)?), audience)
            }
            Self::Renew(renewal) => Self::Renew(Box::new(renewal.compare(to)?)),
            other => other,
        })
    }

    fn write(self, to: &mut Write<'_>, done: &mut SignedReceipt) -> rusqlite::Result<()> {
        match self {
            Self::None => {}
            Self::Reserve(announcement, audience) => {
                let agents = done.sent.receipts.iter().map(|receipt| receipt.agent.clone());
                let told = (audience == Audience::Parties).then(|| agents.collect());
                done.reserved = Some(announcement.write(to, told)?);
            }
            Self::Renew(renewal) => done.reserved = Some(renewal.write(to)?),
            Self::Release(held) => done.reserved = Some(alone(reservations::release(to, *held)?)),
            Self::Lapse(held) => done.reserved = Some(alone(reservations::expire(to, *held)?)),
            Self::Acknowledge(found, response) => {
                let (message, delivery) = *found;
                done.acked = Some(deliveries::acknowledge(to, message, delivery, response.clone())?);
            }
            Self::Entitle { conversation, subject, ended } => entitle(to, conversation, subject, ended)?,
        }
        Ok(())
    }
}

fn alone(reservation: Reservation) -> Reserved {
    Reserved { reservation, conflicts: Vec::new() }
}

/// Decided when it is written, because the message itself may open the conversation or make the sender a participant.
fn entitle(
    to: &mut Write<'_>,
    id: &ConversationId,
    subject: &str,
    ended: Option<ConversationStatus>,
) -> rusqlite::Result<()> {
    let part = rows::participant_of(to.db, id, &to.caller.agent)?;
    if part.is_none_or(|part| part.left_at.is_some() || !part.permissions.can_send) {
        return Ok(());
    }
    let sql = "UPDATE conversations SET subject = ?2, updated_at = ?3 WHERE id = ?1 AND subject IS NOT ?2";
    to.exec(sql, (id, subject, to.now))?;
    if ended.is_some() {
        let close = Close { conversation: id.clone(), status: ended, reason: None };
        match close.decide(to) {
            Ok(write) => drop(write(to)?),
            Err(Stop::Refused(_) | Stop::Recorded(..)) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}
