//! Consent between two agents: requested, given, withdrawn.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write, mail};
use crate::error::Refusal;
use crate::nouns::{AgentId, Contact, ContactPolicy, ContactState, Fact, Millis, Sight};
use crate::store::{one, rows};

/// The longest reason for a request, in bytes: it is shown to an agent that has not agreed to be written to.
const MAX_REASON_BYTES: usize = 1_000;

/// Asks an agent to accept the caller's messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The agent.
    pub to: AgentId,
    /// The reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the request expires.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl Ask {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Contact> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(|to: &mut Write<'_>| match plan {
            Request::Made(contact) => Ok(contact),
            Request::New { from, to: other } => {
                let (state, reason) = (ContactState::Pending, self.reason.clone());
                put(to, &from, &other, state, reason, self.expires_at)?;
                emit_changed(to, &from, &other, Some(state))?;
                get(to, &from, &other)
            }
        })
    }

    fn plan(&self, to: &Decide<'_>) -> Decided<Request> {
        to.require_member()?;
        if let Some(got) = self.reason.as_ref().map(String::len).filter(|got| *got > MAX_REASON_BYTES) {
            return Err(Refusal::TooLarge { what: "the reason", limit: MAX_REASON_BYTES, got }.into());
        }
        let from = to.acting_agent()?;
        let other = to.known_agent(&self.to)?;
        let present = rows::contact_of(to.db, &from.id, &other.id)?;
        match present {
            Some(contact) if contact.state == ContactState::Blocked => {
                return Err(Refusal::ConsentBlocked { agent: other.id }.into());
            }
            Some(contact) if contact.expires_at.is_none_or(|end| to.clock() < end) => {
                return Ok(Request::Made(contact));
            }
            _ => {}
        }
        if other.contact_policy == ContactPolicy::Closed {
            return Err(Refusal::ConsentBlocked { agent: other.id }.into());
        }
        check_room(to, &other.id)?;
        Ok(Request::New { from: from.id, to: other.id })
    }
}

enum Request {
    /// The other side was asked before, or has answered.
    Made(Contact),
    New {
        from: AgentId,
        to: AgentId,
    },
}

/// Answers a request. Blocking needs none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The agent that asked.
    pub from: AgentId,
    /// The decision. Accepting goes both ways; blocking only against the other agent.
    pub state: ContactState,
    /// When the answer expires.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl Answer {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Contact> + use<'v>> {
        to.require_member()?;
        let me = to.acting_agent()?.id;
        // A name that does not exist (yet) may be blocked, but not accepted.
        let other = &self.from;
        match self.state {
            ContactState::Accepted => {
                // Accepting goes both ways, so the other side must have asked, and its request must not have expired.
                let asked = rows::contact_of(to.db, other, &me)?.is_some_and(|asked| {
                    asked.state != ContactState::Blocked
                        && asked.expires_at.is_none_or(|end| to.clock() < end)
                });
                if !asked {
                    return Err(Refusal::NoSuchContact { from: other.clone(), to: me }.into());
                }
                // An agent of another realm is not registered here.
                if !mail::is_foreign(to, other)? {
                    to.agent_or_refuse(other)?;
                }
                let back = rows::contact_of(to.db, &me, other)?;
                if back.is_some_and(|contact| contact.state == ContactState::Blocked) {
                    return Err(Refusal::ConsentBlocked { agent: other.clone() }.into());
                }
            }
            ContactState::Blocked => {}
            ContactState::Pending => {
                return Err(Refusal::BadValue { field: "state", why: "an answer accepts or blocks" }.into());
            }
        }
        Ok(|to: &mut Write<'_>| self.write(to, me))
    }

    fn write(&self, to: &mut Write<'_>, me: AgentId) -> rusqlite::Result<Contact> {
        let other = &self.from;
        if self.state == ContactState::Blocked {
            put(to, other, &me, ContactState::Blocked, None, None)?;
            // The consent that the blocker had from the other side ends too, unless that side has blocked it.
            let back = rows::contact_of(to.db, &me, other)?;
            if back.is_some_and(|contact| contact.state != ContactState::Blocked) {
                forget(to, &me, other)?;
            }
        } else {
            put(to, other, &me, self.state, None, self.expires_at)?;
            put(to, &me, other, self.state, None, self.expires_at)?;
        }
        emit_changed(to, other, &me, Some(self.state))?;
        get(to, other, &me)
    }
}

/// Ends a contact, lifts a block, or withdraws or declines a request. A new message asks again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndContact {
    /// The other agent.
    pub with: AgentId,
}

impl EndContact {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<()> + use<'v>> {
        to.require_member()?;
        let me = to.acting_agent()?.id;
        let theirs = rows::contact_of(to.db, &self.with, &me)?;
        let mine = rows::contact_of(to.db, &me, &self.with)?;
        // A block against the caller is not the caller's to lift.
        let mine = mine.filter(|contact| contact.state != ContactState::Blocked);
        if theirs.is_none() && mine.is_none() {
            return Err(Refusal::NoSuchContact { from: self.with.clone(), to: me }.into());
        }
        Ok(move |to: &mut Write<'_>| {
            if theirs.is_some() {
                forget(to, &self.with, &me)?;
            }
            if mine.is_some() {
                forget(to, &me, &self.with)?;
            }
            emit_changed(to, &self.with, &me, None)
        })
    }
}

/// Refuses requests to an agent that has too many to answer.
pub(super) fn check_room(to: &Decide<'_>, agent: &AgentId) -> Decided<()> {
    let sql = "SELECT count(*) FROM contacts WHERE recipient = ?1 AND state = 'pending'
               AND (expires_at IS NULL OR expires_at > ?2)";
    let waiting = one(to.db, sql, (agent, to.clock()), |row| row.get::<_, u32>(0))?.unwrap_or(0);
    if waiting >= to.rules.pending_contacts {
        return Err(Refusal::TooManyRequests { agent: agent.clone() }.into());
    }
    Ok(())
}

/// Writes one direction.
pub(super) fn put(
    to: &Write<'_>,
    from: &AgentId,
    recipient: &AgentId,
    state: ContactState,
    reason: Option<String>,
    expires_at: Option<Millis>,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO contacts(sender, recipient, state, reason, expires_at, created_at, updated_at)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6)
               ON CONFLICT DO UPDATE SET state = ?3, reason = coalesce(?4, reason), expires_at = ?5, updated_at = ?6";
    to.exec(sql, (from, recipient, state, reason, expires_at, to.now)).map(drop)
}

fn forget(to: &Write<'_>, from: &AgentId, recipient: &AgentId) -> rusqlite::Result<()> {
    to.exec("DELETE FROM contacts WHERE sender = ?1 AND recipient = ?2", (from, recipient)).map(drop)
}

fn get(to: &Write<'_>, from: &AgentId, recipient: &AgentId) -> rusqlite::Result<Contact> {
    rows::contact_of(to.db, from, recipient)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

fn emit_changed(
    to: &mut Write<'_>,
    from: &AgentId,
    other: &AgentId,
    state: Option<ContactState>,
) -> rusqlite::Result<()> {
    let sight = match state {
        // Only the agent that blocks another sees that it does.
        Some(ContactState::Blocked) => Sight::Agents(Sight::list(vec![to.caller.agent.clone()])),
        _ => Sight::Agents(Sight::list(vec![from.clone(), other.clone()])),
    };
    to.emit(Fact::ContactChanged { from: from.clone(), to: other.clone(), state }, sight).map(drop)
}
