//! Whose account an agent draws on: that of the token under which it was entered, so that registering more names or opening
//! more sessions gives no more room.

use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, Caller};
use crate::store::{Db, one};
use crate::verbs::Write;

/// How many entries that were made by other entries are followed.
const DEPTH: usize = 16;

/// The name on the token under which an agent was entered; where another agent entered it, that agent's account.
pub(crate) fn of(db: Db<'_>, agent: &AgentId) -> rusqlite::Result<AgentId> {
    let mut account = agent.clone();
    for _ in 0..DEPTH {
        let sql = "SELECT bearer FROM agents WHERE id = ?1";
        match one(db, sql, [&account], |row| row.get::<_, Option<AgentId>>(0))?.flatten() {
            Some(bearer) if bearer != account => account = bearer,
            _ => break,
        }
    }
    Ok(account)
}

/// Refuses one more agent where an account has as many in force as it may. Gives the account.
pub(crate) fn check_agents(
    to: &mut Write<'_>,
    bearer: &AgentId,
) -> rusqlite::Result<Result<AgentId, Refusal>> {
    let (account, limit) = (of(to.db, bearer)?, to.rules.agents_per_owner);
    // The account itself is counted, too.
    if to.cache.borrow_mut().usage.agents(to.db, &account)? > i64::from(limit) {
        let what = "agents of one owner; unregister some, or have the operator raise the rule";
        return Ok(Err(Refusal::TooMany { what, limit: limit.into() }));
    }
    Ok(Ok(account))
}

/// How many agents in force an account has, itself included.
pub(crate) fn count_agents(db: Db<'_>, account: &AgentId) -> rusqlite::Result<i64> {
    let sql = format!("{OWN} SELECT count(*) FROM own");
    Ok(one(db, &sql, [account], |row| row.get(0))?.unwrap_or(0))
}

/// An account and all agents in force that draw on it.
const OWN: &str = "WITH RECURSIVE own(id) AS (SELECT ?1
    UNION SELECT a.id FROM agents a INDEXED BY agents_by_bearer JOIN own ON a.bearer = own.id
    WHERE a.bearer IS NOT NULL AND a.retired_at IS NULL)";

/// Refuses one more scope where an account has made as many as it may.
pub(crate) fn check_scopes(
    db: Db<'_>,
    caller: &Caller,
    rules: &Rules,
) -> rusqlite::Result<Result<(), Refusal>> {
    if caller.rights.admin {
        return Ok(Ok(()));
    }
    let sql = format!(
        "{OWN} SELECT count(*) FROM (SELECT 1 FROM own JOIN scopes s ON s.created_by = own.id LIMIT ?2)"
    );
    let limit = rules.scopes_per_owner;
    let own: i64 = one(db, &sql, (of(db, &caller.agent)?, limit), |row| row.get(0))?.unwrap_or(0);
    let what = "scopes of one owner; delete some, or have the operator raise the rule";
    Ok(if own >= limit.into() { Err(Refusal::TooMany { what, limit: limit.into() }) } else { Ok(()) })
}
