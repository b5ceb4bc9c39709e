//! Consent between two agents: asked, given, withdrawn.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write, mail};
use crate::error::Refusal;
use crate::nouns::{AgentId, Contact, ContactPolicy, ContactState, Fact, Millis, Sight};
use crate::store::{one, rows};

/// The longest reason for a request, in bytes: it is shown to an agent that has not agreed to be written to.
const LONGEST_REASON: usize = 1_000;

/// Asks somebody to take the caller's letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Whom.
    pub to: AgentId,
    /// What for.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the request lapses.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl Ask {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Contact> {
        to.require_member()?;
        if let Some(got) = self.reason.as_ref().map(String::len).filter(|got| *got > LONGEST_REASON) {
            return Err(Refusal::TooLarge { what: "the reason", limit: LONGEST_REASON, got }.into());
        }
        let from = to.acting_agent()?;
        let other = to.known_agent(&self.to)?;
        let present = rows::contact_of(to.db, &from.id, &other.id)?;
        match present {
            Some(contact) if contact.state == ContactState::Blocked => {
                return Err(Refusal::ConsentBlocked { agent: other.id }.into());
            }
            Some(contact) if contact.expires_at.is_none_or(|end| to.clock() < end) => return Ok(contact),
            _ => {}
        }
        if other.contact_policy == ContactPolicy::Closed {
            return Err(Refusal::ConsentBlocked { agent: other.id }.into());
        }
        check_room(to, &other.id)?;
        let reason = self.reason.clone();
        put(to, &from.id, &other.id, ContactState::Pending, reason, self.expires_at)?;
        changed(to, &from.id, &other.id, Some(ContactState::Pending))?;
        get(to, &from.id, &other.id)
    }
}

/// Answers somebody who asked. Blocking needs no asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Whom.
    pub from: AgentId,
    /// What is decided. Accepting goes both ways; blocking only against the one who is blocked.
    pub state: ContactState,
    /// When the answer lapses.
    #[serde(default)]
    pub expires_at: Option<Millis>,
}

impl Answer {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Contact> {
        to.require_member()?;
        let me = to.acting_agent()?;
        // One may block a name that does not exist (yet), but not befriend it.
        let other = self.from.clone();
        match self.state {
            ContactState::Accepted => {
                // Accepting goes both ways, so the other side must have asked, and its request must still stand.
                let asked = rows::contact_of(to.db, &other, &me.id)?.is_some_and(|asked| {
                    asked.state != ContactState::Blocked
                        && asked.expires_at.is_none_or(|end| to.clock() < end)
                });
                if !asked {
                    return Err(Refusal::NoSuchContact { from: other, to: me.id }.into());
                }
                // An agent of another realm has no entry here.
                if !mail::is_foreign(to, &other)? {
                    to.agent_or_refuse(&other)?;
                }
                let blocked_me = rows::contact_of(to.db, &me.id, &other)?;
                if blocked_me.is_some_and(|contact| contact.state == ContactState::Blocked) {
                    return Err(Refusal::ConsentBlocked { agent: other }.into());
                }
                put(to, &other, &me.id, ContactState::Accepted, None, self.expires_at)?;
                put(to, &me.id, &other, ContactState::Accepted, None, self.expires_at)?;
            }
            ContactState::Blocked => {
                put(to, &other, &me.id, ContactState::Blocked, None, None)?;
                // What the blocker was allowed before is not the blocked one's doing: it lapses too.
                let back = rows::contact_of(to.db, &me.id, &other)?;
                if back.is_some_and(|contact| contact.state != ContactState::Blocked) {
                    forget(to, &me.id, &other)?;
                }
            }
            ContactState::Pending => {
                return Err(Refusal::BadValue { field: "state", why: "an answer accepts or blocks" }.into());
            }
        }
        changed(to, &other, &me.id, Some(self.state))?;
        get(to, &other, &me.id)
    }
}

/// Ends what was agreed, lifts a block, or takes a request back or turns it down. A new letter asks anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndContact {
    /// With whom.
    pub with: AgentId,
}

impl EndContact {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<()> {
        to.require_member()?;
        let me = to.acting_agent()?.id;
        let theirs = rows::contact_of(to.db, &self.with, &me)?;
        let mine = rows::contact_of(to.db, &me, &self.with)?;
        // A block against the caller is not the caller's to lift.
        let mine = mine.filter(|contact| contact.state != ContactState::Blocked);
        if theirs.is_none() && mine.is_none() {
            return Err(Refusal::NoSuchContact { from: self.with.clone(), to: me }.into());
        }
        if theirs.is_some() {
            forget(to, &self.with, &me)?;
        }
        if mine.is_some() {
            forget(to, &me, &self.with)?;
        }
        changed(to, &self.with, &me, None)
    }
}

/// Refuses requests to somebody who has too many to answer.
pub(super) fn check_room(to: &Decide<'_>, agent: &AgentId) -> Decided<()> {
    let sql = "SELECT count(*) FROM contacts WHERE recipient = ?1 AND state = 'pending'
               AND (expires_at IS NULL OR expires_at > ?2)";
    let waiting = one(to.db, sql, (agent, to.clock()), |row| row.get::<_, u32>(0))?.unwrap_or(0);
    if waiting >= to.rules.pending_contacts {
        return Err(Refusal::TooManyRequests { agent: agent.clone() }.into());
    }
    Ok(())
}

/// Writes one direction down.
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

fn get(to: &Write<'_>, from: &AgentId, recipient: &AgentId) -> Decided<Contact> {
    rows::contact_of(to.db, from, recipient)?
        .ok_or_else(|| Refusal::NoSuchContact { from: from.clone(), to: recipient.clone() }.into())
}

fn changed(to: &mut Write<'_>, from: &AgentId, other: &AgentId, state: Option<ContactState>) -> Decided<()> {
    let sight = match state {
        // Whom one blocks is one's own affair.
        Some(ContactState::Blocked) => Sight::Agents(Sight::list(vec![to.caller.agent.clone()])),
        _ => Sight::Agents(Sight::list(vec![from.clone(), other.clone()])),
    };
    to.emit(Fact::ContactChanged { from: from.clone(), to: other.clone(), state }, sight)?;
    Ok(())
}
