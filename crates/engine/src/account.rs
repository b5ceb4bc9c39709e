//! Whose account an agent draws on: its owner's, so that registering more names gives no more room.

use rusqlite::Connection;

use crate::nouns::AgentId;
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
