//! Letters under seal: the door has checked who wrote them, and the office takes each once, together with what it does
//! besides being read. All of it happens or none.

use serde::{Deserialize, Serialize};

use super::conversations::Close;
use super::deliveries::Acknowledge;
use super::mail::{Send, Sent};
use super::marks::{self, Mark};
use super::reservations::{self, Renew, Reserve, Which};
use super::{Applied, Apply, Halt};
use crate::error::Refusal;
use crate::nouns::{
    Address, AgentId, Audience, ConversationId, ConversationStatus, Delivery, MessageId, Reservation,
    Reserved,
};
use crate::sight;
use crate::store::{exec, rows};

/// Sends a letter that can be sent once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendSealed {
    /// The letter.
    pub letter: Send,
    /// Names that must not have come before from the same sender. They are kept if the letter is taken.
    pub marks: Vec<Mark>,
    /// What the letter does besides being read.
    #[serde(default)]
    pub deed: Option<Deed>,
}

/// What a letter can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Tells of a reservation of the sender's. One that is known, or has lapsed already, is told of all the same.
    Reserve(Reserve),
    /// Prolongs one.
    Renew(Renew),
    /// Gives one back.
    Release(Which),
    /// Says that one is over, though it may be prolonged again.
    Lapse(Which),
    /// Acknowledges the letter that its sender marked so.
    Acknowledge {
        /// The mark.
        label: String,
        /// The letter itself, if no sender marked one so: letters of other doors go by the office's own name.
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
pub struct SealedSent {
    /// The letter and its receipts.
    pub sent: Sent,
    /// The lease it told of, and whose it overlaps.
    pub reserved: Option<Reserved>,
    /// The copy it acknowledged.
    pub acked: Option<Delivery>,
}

impl SendSealed {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<SealedSent> {
        to.require_member()?;
        let sender = to.caller.agent.clone();
        let fresh = marks::check(to, &sender, &self.marks)?;
        // What can be refused is asked before the first row is written.
        let acked = self.check(to)?;
        let sent = self.letter.apply(to)?;
        fresh.keep(to, sent.message.seq)?;
        let told: Vec<AgentId> = sent.receipts.iter().map(|receipt| receipt.agent.clone()).collect();
        let mut done = SealedSent { sent, reserved: None, acked: None };
        match &self.deed {
            None => {}
            Some(Deed::Reserve(reserve)) => {
                let told = (reserve.audience == Audience::Parties).then_some(told);
                done.reserved = Some(reserve.announce(to, told)?);
            }
            Some(Deed::Renew(renew)) => done.reserved = Some(renew.apply(to)?),
            Some(Deed::Release(which)) => {
                let release = reservations::Release { which: vec![which.clone()], owner: None };
                done.reserved = release.apply(to)?.pop().map(alone);
            }
            Some(Deed::Lapse(which)) => done.reserved = Some(alone(reservations::lapse(to, which)?)),
            Some(Deed::Acknowledge { response, .. }) => {
                if let Some(message) = acked {
                    let verb = Acknowledge { agent: sender, message, response: response.clone() };
                    done.acked = Some(verb.apply(to)?);
                }
            }
            Some(Deed::Entitle { conversation, subject, ended }) => {
                entitle(to, conversation, subject, *ended)?;
            }
        }
        Ok(done)
    }

    /// Refuses a deed that cannot be done; finds the letter that is to be acknowledged.
    fn check(&self, to: &mut Apply<'_>) -> Applied<Option<MessageId>> {
        match &self.deed {
            Some(Deed::Reserve(reserve)) => reserve.check_announced(to)?,
            Some(Deed::Renew(renew)) => renew.check(to).map(drop)?,
            Some(Deed::Release(which) | Deed::Lapse(which)) => reservations::own(to, which).map(drop)?,
            Some(Deed::Acknowledge { label, message, .. }) => {
                return self.marked(to, label, *message).map(Some);
            }
            Some(Deed::Entitle { .. }) | None => {}
        }
        Ok(None)
    }

    /// The letter with a mark that the caller received; from one this letter is for, if there are several.
    fn marked(&self, to: &mut Apply<'_>, label: &str, ours: Option<MessageId>) -> Applied<MessageId> {
        let mut received = None;
        for (sender, seq) in marks::with_label(to, label)? {
            if rows::delivery_of(to.books, &to.caller.agent, seq)?.is_none() {
                continue;
            }
            let Some(message) = rows::message_at(to.books, seq)? else { continue };
            if !sight::sees_message(to.books, to.caller, &message)? {
                continue;
            }
            if self.letter.to.contains(&Address::Agent(sender)) {
                return Ok(message.id);
            }
            received = received.or(Some(message.id));
        }
        if received.is_none()
            && let Some(id) = ours
            && let Some(message) = rows::message_by_id(to.books, id)?
            && rows::delivery_of(to.books, &to.caller.agent, message.seq)?.is_some()
            && sight::sees_message(to.books, to.caller, &message)?
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
    to: &mut Apply<'_>,
    id: &ConversationId,
    subject: &str,
    ended: Option<ConversationStatus>,
) -> Applied<()> {
    let part = rows::participant_of(to.books, id, &to.caller.agent)?;
    if part.is_none_or(|part| part.left_at.is_some() || !part.permissions.can_send) {
        return Ok(());
    }
    let sql = "UPDATE conversations SET subject = ?2, updated_at = ?3 WHERE id = ?1 AND subject IS NOT ?2";
    exec(to.books, sql, (id, subject, to.now))?;
    if ended.is_none() {
        return Ok(());
    }
    match (Close { conversation: id.clone(), status: ended, reason: None }).apply(to) {
        Ok(_) | Err(Halt::Refused(_)) => Ok(()),
        Err(halt) => Err(halt),
    }
}
