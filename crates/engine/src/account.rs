//! Whose account an agent draws on: that of the token under which it was registered. Registering more names or opening more
//! sessions therefore gives no more room.

use rusqlite::named_params;

use crate::error::Refusal;
use crate::nouns::AgentId;
use crate::store::{Db, one};
use crate::verbs::{Decide, Decided};

/// How many registrations that were made by other registrations are followed.
const DEPTH: usize = 16;

/// A registration that is decided and not written yet, as far as accounts go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering<'a> {
    /// The agent.
    pub(crate) agent: &'a AgentId,
    /// The token under which it is registered.
    pub(crate) bearer: &'a AgentId,
    /// Whether the scopes that a former holder of the name made go to the server.
    pub(crate) reuses_name: bool,
}

/// The name on the token under which an agent was registered; where another agent registered it, that agent's account.
pub(crate) fn of(db: Db<'_>, agent: &AgentId) -> rusqlite::Result<AgentId> {
    of_with(db, agent, None)
}

/// The same once a registration is written.
fn of_with(db: Db<'_>, agent: &AgentId, entering: Option<&Entering<'_>>) -> rusqlite::Result<AgentId> {
    let mut account = agent.clone();
    for _ in 0..DEPTH {
        let bearer = match entering {
            Some(entering) if *entering.agent == account => Some(entering.bearer.clone()),
            _ => {
                let sql = "SELECT bearer FROM agents WHERE id = ?1";
                one(db, sql, [&account], |row| row.get::<_, Option<AgentId>>(0))?.flatten()
            }
        };
        match bearer {
            Some(bearer) if bearer != account => account = bearer,
            _ => break,
        }
    }
    Ok(account)
}

/// Refuses one more agent where an account has as many active ones as it may. Returns the account.
pub(crate) fn check_agents(to: &Decide<'_>, bearer: &AgentId) -> Decided<AgentId> {
    let (account, limit) = (of(to.db, bearer)?, to.rules.agents_per_owner);
    // The account itself is counted, too.
    if to.cache.borrow_mut().usage.agents(to.db, &account)? > i64::from(limit) {
        let what = "agents of one owner; unregister some, or have the operator raise the rule";
        return Err(Refusal::TooMany { what, limit: limit.into() }.into());
    }
    Ok(account)
}

/// How many active agents an account has, itself included.
pub(crate) fn count_agents(db: Db<'_>, account: &AgentId) -> rusqlite::Result<i64> {
    let sql = "WITH RECURSIVE own(id) AS (SELECT ?1
                   UNION SELECT a.id FROM agents a INDEXED BY agents_by_bearer JOIN own ON a.bearer = own.id
                   WHERE a.bearer IS NOT NULL AND a.retired_at IS NULL)
               SELECT count(*) FROM own";
    Ok(one(db, sql, [account], |row| row.get(0))?.unwrap_or(0))
}

/// Whether other active agents were registered under an agent's name.
pub(crate) fn has_agents(db: Db<'_>, agent: &AgentId) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM agents INDEXED BY agents_by_bearer
               WHERE bearer = ?1 AND bearer IS NOT NULL AND id <> ?1 AND retired_at IS NULL LIMIT 1";
    Ok(one(db, sql, [agent], |_| Ok(()))?.is_some())
}

/// Refuses one more scope where an account has made as many as it may. The same command may have decided on a registration,
/// and to create scopes, none of which is written yet.
pub(crate) fn check_scopes(to: &Decide<'_>, entering: Option<&Entering<'_>>, decided: usize) -> Decided<()> {
    if to.caller.rights.admin {
        return Ok(());
    }
    let sql = "WITH RECURSIVE own(id) AS (SELECT :account
                   UNION SELECT a.id FROM agents a INDEXED BY agents_by_bearer JOIN own ON a.bearer = own.id
                   WHERE a.bearer IS NOT NULL AND a.retired_at IS NULL AND a.id IS NOT :entering
                   UNION SELECT :entering FROM own WHERE own.id = :bearer)
               SELECT count(*) FROM (SELECT 1 FROM own JOIN scopes s ON s.created_by = own.id
                   WHERE s.created_by IS NOT :reused LIMIT :limit)";
    let limit = to.rules.scopes_per_owner;
    let params = named_params! {
        ":account": of_with(to.db, &to.caller.agent, entering)?,
        ":entering": entering.map(|entering| entering.agent),
        ":bearer": entering.map(|entering| entering.bearer),
        ":reused": entering.filter(|entering| entering.reuses_name).map(|entering| entering.agent),
        ":limit": limit,
    };
    let own = one(to.db, sql, params, |row| row.get::<_, i64>(0))?.unwrap_or(0);
    let decided = i64::try_from(decided).unwrap_or(i64::MAX);
    if own.saturating_add(decided) < limit.into() {
        return Ok(());
    }
    let what = "scopes of one owner; delete some, or have the operator raise the rule";
    Err(Refusal::TooMany { what, limit: limit.into() }.into())
}
