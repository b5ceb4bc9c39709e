//! Names that are known before their holder connects: the operator's, and those that valid tokens carry. The first message
//! to such a name registers it, so that mail waits for the holder.

use super::{Bearer, Claim, Entrance, Register};
use crate::confusables::skeleton;
use crate::nouns::{Agent, AgentId, AgentKind, Caller, Millis, TokenRole};
use crate::store::{Db, one, rows};
use crate::verbs::{Decide, Decided};

/// The mailbox of the person who runs the server, in every realm.
pub(crate) const OPERATOR: &str = "admin";
/// The address of that person, independent of the mailbox's name.
pub(crate) const OPERATOR_WORD: &str = "operator";

/// What a name stands for as a recipient: the word `operator` means the operator's mailbox, unless an agent or a token got
/// the name before the word was reserved.
pub(in crate::verbs) fn meant(to: &Decide<'_>, id: &AgentId) -> Decided<AgentId> {
    let is_name = || -> rusqlite::Result<bool> {
        Ok(rows::active_agent(to.db, id)?.is_some() || known_as(to.db, id, to.clock())?.is_some())
    };
    if id.as_str() != OPERATOR_WORD || is_name()? {
        return Ok(id.clone());
    }
    Ok(AgentId::new(OPERATOR).map_err(crate::error::Refusal::from)?)
}

/// Decides to register a name that is known although no active agent has it. None if the name is not known.
pub(in crate::verbs) fn expect(to: &Decide<'_>, id: &AgentId) -> Decided<Option<Entrance>> {
    let Some(kind) = known_as(to.db, id, to.clock())? else { return Ok(None) };
    // No door yet: the first one that the holder comes through is noted then.
    enter(to, kind, Caller::member(id.clone(), ""))
}

/// Decides to register the name under which an administrator writes, if no active agent has it.
pub(in crate::verbs) fn enter_sender(to: &Decide<'_>, id: &AgentId) -> Decided<Option<Entrance>> {
    Claim::new(to, None).check(id)?;
    let kind = known_as(to.db, id, to.clock())?.unwrap_or(AgentKind::User);
    enter(to, kind, Caller::member(id.clone(), &to.caller.via))
}

fn enter(to: &Decide<'_>, kind: AgentKind, holder: Caller) -> Decided<Option<Entrance>> {
    let id = &holder.agent;
    let before = rows::any_agent(to.db, id)?;
    if before.as_ref().is_some_and(|before| before.is_active() || before.state == Agent::REVOKED) {
        return Ok(None);
    }
    // Neither a role nor a scope: messages to groups reach agents that registered themselves. The contact policy of an agent
    // that left still counts.
    let register = Register {
        kind: Some(before.as_ref().map_or(kind, |before| before.kind)),
        name: (id.as_str() == OPERATOR).then(|| OPERATOR_WORD.to_owned()),
        visibility: before.as_ref().map(|before| before.visibility),
        contact_policy: before.as_ref().map(|before| before.contact_policy),
        privacy: before.as_ref().map(|before| before.privacy),
        bearer: Some(Bearer { name: id.clone(), admin: false }),
        ..Register::default()
    };
    // What a former holder left is read and changed, so buffered rows are written first.
    if before.is_some() {
        to.flush_rows()?;
    }
    let entrance = register.enter(&to.acting_as(&holder), id.clone(), before.as_ref())?;
    Ok(Some(entrance.by(holder)))
}

/// What a name without an active agent stands for: the operator, or the bearer of a valid token.
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
