//! Letters under seal: the door has checked who wrote them, and the office takes each once, together with what it does
//! besides being read. All of it happens or none.

use serde::{Deserialize, Serialize};

use super::conversations::Close;
use super::deliveries::Acknowledge;
use super::mail::{SendMessage, SendReceipt};
use super::reservations::{self, Renew, Reserve, Which};
use super::seen_keys::{self, SingleUseKey};
use super::{Decided, Stop, Write};
use crate::error::Refusal;
use crate::nouns::{
    Address, AgentId, Audience, ConversationId, ConversationStatus, Delivery, MessageId, Reservation,
    Reserved,
};
use crate::sight;
use crate::store::rows;

/// Sends a letter that can be sent once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendSigned {
    /// The letter.
    pub message: SendMessage,
    /// Keys that the sender must not have used before. They are stored if the message is accepted.
    pub keys: Vec<SingleUseKey>,
    /// What the letter does besides being read.
    #[serde(default)]
    pub side_effect: Option<SideEffect>,
}

/// What a letter can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Tells of a reservation of the sender's. One that is known, or has lapsed already, is told of all the same.
    Reserve(Reserve),
    /// Prolongs one.
    Renew(Renew),
    /// Gives one back.
    Release(Which),
    /// Says that one is over, though it may be prolonged again.
    Lapse(Which),
    /// Acknowledges the message that its sender gave this label.
    Acknowledge {
        /// The label.
        label: String,
        /// The message itself, if no sender used the label: messages of other doors go by their id.
        #[serde(default)]
        message: Option<MessageId>,
        /// What the recipient has to say.
        response: Option<String>,
    },
    /// Gives a conversation its heading, and ends it if said so. Not refused to those who may not: then it is only said.
    Entitle {
        /// Which.
        conversation: ConversationId,
        /// The heading.
        subject: String,
        /// How it ended, if it did.
        ended: Option<ConversationStatus>,
    },
}

/// What sending gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedReceipt {
    /// The letter and its receipts.
    pub sent: SendReceipt,
    /// The lease it told of, and whose it overlaps.
    pub reserved: Option<Reserved>,
    /// The copy it acknowledged.
    pub acked: Option<Delivery>,
}

impl SendSigned {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<SignedReceipt> {
        to.require_member()?;
        let sender = to.caller.agent.clone();
        let unused = seen_keys::check(to, &sender, &self.keys)?;
        // What can be refused is asked before the first row is written.
        let acked = self.check(to)?;
        let sent = self.message.decide(to)?(to)?;
        unused.store(to, sent.message.seq)?;
        let told: Vec<AgentId> = sent.receipts.iter().map(|receipt| receipt.agent.clone()).collect();
        let mut done = SignedReceipt { sent, reserved: None, acked: None };
        match &self.side_effect {
            None => {}
            Some(SideEffect::Reserve(reserve)) => {
                let told = (reserve.audience == Audience::Parties).then_some(told);
                done.reserved = Some(reserve.check_announced(to)?.compare(to)?.write(to, told)?);
            }
            Some(SideEffect::Renew(renew)) => done.reserved = Some(renew.decide(to)?(to)?),
            Some(SideEffect::Release(which)) => {
                let held = reservations::own(to, which)?;
                done.reserved = Some(alone(reservations::release(to, held)?));
            }
            Some(SideEffect::Lapse(which)) => {
                let held = reservations::own(to, which)?;
                done.reserved = Some(alone(reservations::expire(to, held)?));
            }
            Some(SideEffect::Acknowledge { response, .. }) => {
                if let Some(message) = acked {
                    let verb = Acknowledge { agent: sender, message, response: response.clone() };
                    done.acked = Some(verb.decide(to)?(to)?);
                }
            }
            Some(SideEffect::Entitle { conversation, subject, ended }) => {
                entitle(to, conversation, subject, *ended)?;
            }
        }
        Ok(done)
    }

    /// Refuses a deed that cannot be done; finds the letter that is to be acknowledged.
    fn check(&self, to: &mut Write<'_>) -> Decided<Option<MessageId>> {
        match &self.side_effect {
            Some(SideEffect::Reserve(reserve)) => reserve.check_announced(to).map(drop)?,
            Some(SideEffect::Renew(renew)) => renew.check(to).map(drop)?,
            Some(SideEffect::Release(which) | SideEffect::Lapse(which)) => {
                reservations::own(to, which).map(drop)?
            }
            Some(SideEffect::Acknowledge { label, message, .. }) => {
                return self.labelled(to, label, *message).map(Some);
            }
            Some(SideEffect::Entitle { .. }) | None => {}
        }
        Ok(None)
    }

    /// The message with a label that the caller received; from a recipient of this message, if there are several.
    fn labelled(&self, to: &mut Write<'_>, label: &str, ours: Option<MessageId>) -> Decided<MessageId> {
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

fn alone(reservation: Reservation) -> Reserved {
    Reserved { reservation, conflicts: Vec::new() }
}

fn entitle(
    to: &mut Write<'_>,
    id: &ConversationId,
    subject: &str,
    ended: Option<ConversationStatus>,
) -> Decided<()> {
    let part = rows::participant_of(to.db, id, &to.caller.agent)?;
    if part.is_none_or(|part| part.left_at.is_some() || !part.permissions.can_send) {
        return Ok(());
    }
    let sql = "UPDATE conversations SET subject = ?2, updated_at = ?3 WHERE id = ?1 AND subject IS NOT ?2";
    to.exec(sql, (id, subject, to.now))?;
    if ended.is_none() {
        return Ok(());
    }
    let close = Close { conversation: id.clone(), status: ended, reason: None };
    match close.decide(to) {
        Ok(write) => Ok(write(to).map(drop)?),
        Err(Stop::Refused(_)) => Ok(()),
        Err(halt) => Err(halt),
    }
}
