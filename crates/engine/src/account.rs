//! Whose account an agent draws on: its owner's, so that registering more names gives no more room.

use rusqlite::Connection;

use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, Caller};
use crate::store::one;

/// How many owners of owners are followed.
const DEPTH: usize = 16;

/// The agent at the end of the chain of owners; the agent itself if it has none.
pub(crate) fn of(books: &Connection, agent: &AgentId) -> rusqlite::Result<AgentId> {
    let mut account = agent.clone();
    for _ in 0..DEPTH {
        let sql = "SELECT owner FROM agents WHERE id = ?1";
        match one(books, sql, [&account], |row| row.get::<_, Option<AgentId>>(0))?.flatten() {
            Some(owner) if owner != account => account = owner,
            _ => break,
        }
    }
    Ok(account)
}

/// Refuses one more agent where an account has as many in force as it may.
pub(crate) fn check_agents(
    books: &Connection,
    caller: &Caller,
    owner: Option<&AgentId>,
    rules: &Rules,
) -> rusqlite::Result<Result<(), Refusal>> {
    let Some(owner) = owner.filter(|_| !caller.rights.admin) else { return Ok(Ok(())) };
    let limit = rules.agents_per_owner;
    let sql = "WITH RECURSIVE own(id) AS (SELECT ?1
                   UNION SELECT a.id FROM agents a INDEXED BY agents_owned JOIN own ON a.owner = own.id
                   WHERE a.owner IS NOT NULL AND a.retired_at IS NULL)
               SELECT count(*) FROM (SELECT 1 FROM own LIMIT ?2)";
    // The owner itself is counted, too.
    let most = i64::from(limit) + 1;
    let own: i64 = one(books, sql, (of(books, owner)?, most), |row| row.get(0))?.unwrap_or(0);
    let what = "agents of one owner; unregister some, or have the operator raise the rule";
    Ok(if own >= most { Err(Refusal::TooMany { what, limit: limit.into() }) } else { Ok(()) })
}

/// Refuses one more scope where an account has made as many as it may.
pub(crate) fn check_scopes(
    books: &Connection,
    caller: &Caller,
    rules: &Rules,
) -> rusqlite::Result<Result<(), Refusal>> {
    if caller.rights.admin {
        return Ok(Ok(()));
    }
    let sql = "WITH RECURSIVE own(id) AS (SELECT ?1
                   UNION SELECT a.id FROM agents a INDEXED BY agents_owned JOIN own ON a.owner = own.id
                   WHERE a.owner IS NOT NULL AND a.retired_at IS NULL)
               SELECT count(*) FROM (SELECT 1 FROM own JOIN scopes s ON s.created_by = own.id LIMIT ?2)";
    let limit = rules.scopes_per_owner;
    let own: i64 = one(books, sql, (of(books, &caller.agent)?, limit), |row| row.get(0))?.unwrap_or(0);
    let what = "scopes of one owner; delete some, or have the operator raise the rule";
    Ok(if own >= limit.into() { Err(Refusal::TooMany { what, limit: limit.into() }) } else { Ok(()) })
}
