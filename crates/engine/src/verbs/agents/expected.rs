//! Names that are known before their holder has come: the operator's, and those that valid tokens carry. Such a name gets
//! its entry with the first message to it, so that mail waits for the holder.

use super::{Bearer, Claim, Register};
use crate::confusables::skeleton;
use crate::nouns::{Agent, AgentId, AgentKind, Caller, Millis, TokenRole};
use crate::store::{Db, one, rows};
use crate::verbs::{Decided, Write};

/// The mailbox of the person who runs the server, in every realm.
pub(crate) const OPERATOR: &str = "admin";
/// The address of that person, whatever the mailbox is called.
pub(crate) const OPERATOR_WORD: &str = "operator";

/// What a name stands for as a recipient: the word `operator` means the operator's mailbox, unless an agent or a token got
/// the name before the word was reserved.
pub(in crate::verbs) fn meant(to: &Write<'_>, id: &AgentId) -> Decided<AgentId> {
    let is_name = || -> rusqlite::Result<bool> {
        Ok(rows::active_agent(to.db, id)?.is_some() || known_as(to.db, id, to.clock())?.is_some())
    };
    if id.as_str() != OPERATOR_WORD || is_name()? {
        return Ok(id.clone());
    }
    Ok(AgentId::new(OPERATOR).map_err(crate::error::Refusal::from)?)
}

/// Enters a name that is known although no agent has it at present. Nothing if the name is not known.
pub(in crate::verbs) fn expect(to: &mut Write<'_>, id: &AgentId) -> Decided<Option<Agent>> {
    let Some(kind) = known_as(to.db, id, to.clock())? else { return Ok(None) };
    // It came by no door yet; the first that it comes by is noted then.
    enter(to, kind, &Caller::member(id.clone(), ""))
}

/// Enters the name under which an administrator writes, if no agent has it.
pub(in crate::verbs) fn enter_sender(to: &mut Write<'_>, id: &AgentId) -> Decided<Option<Agent>> {
    Claim::new(to, None).check(id)?;
    let kind = known_as(to.db, id, to.clock())?.unwrap_or(AgentKind::User);
    enter(to, kind, &Caller::member(id.clone(), &to.caller.via))
}

fn enter(to: &mut Write<'_>, kind: AgentKind, holder: &Caller) -> Decided<Option<Agent>> {
    let id = &holder.agent;
    let before = rows::any_agent(to.db, id)?;
    if before.as_ref().is_some_and(|before| before.is_active() || before.state == Agent::REVOKED) {
        return Ok(None);
    }
    // Neither a role nor a scope: an address of many reaches agents that came by themselves. How an agent that left
    // took mail from others still counts.
    let register = Register {
        kind: Some(before.as_ref().map_or(kind, |before| before.kind)),
        name: (id.as_str() == OPERATOR).then(|| OPERATOR_WORD.to_owned()),
        visibility: before.as_ref().map(|before| before.visibility),
        contact_policy: before.as_ref().map(|before| before.contact_policy),
        privacy: before.as_ref().map(|before| before.privacy),
        bearer: Some(Bearer { name: id.clone(), admin: false }),
        ..Register::default()
    };
    // What a former holder left is read and changed, so rows that wait to be written go first.
    if before.is_some() {
        to.flush_rows()?;
    }
    let entered = to.acting_as(holder, |to| register.enter(to, id.clone(), before))?;
    Ok(Some(entered.agent))
}

/// What a name stands for that is known without an entry: the operator, or the bearer of a valid token.
pub(crate) fn known_as(db: Db<'_>, id: &AgentId, now: Millis) -> rusqlite::Result<Option<AgentKind>> {
    if id.as_str() == OPERATOR {
        return Ok(Some(AgentKind::Admin));
    }
    let sql = "SELECT role FROM tokens WHERE skeleton = ?1 AND name = ?2 AND revoked_at IS NULL
                   AND (expires_at IS NULL OR expires_at > ?3) ORDER BY created_at, id LIMIT 1";
    let role = one(db, sql, (skeleton(id.as_str()), id, now), |row| row.get::<_, TokenRole>(0))?;
    Ok(role.map(|role| match role {
        TokenRole::Agent => AgentKind::Agent,
        TokenRole::User => AgentKind::User,
        TokenRole::Admin => AgentKind::Admin,
    }))
}
