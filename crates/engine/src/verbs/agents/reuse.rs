//! Reusing a name that an agent gave up: contacts, ownership, participations and reservations of the former holder end.
//! Its mail is kept apart by the seq at which the new holder was born.

use crate::error::Refusal;
use crate::nouns::{AgentId, Seq};
use crate::store::{all, count_message_keys_of, one, rows};
use crate::verbs::{Decide, Decided, Write, conversations, reservations, seen_keys};

/// Idempotency keys that one command of a caller without admin rights may delete.
const MAX_KEYS: u32 = 20_000;

/// Refuses a name whose former holder left more rows than one command may change.
pub(super) fn check_traces(to: &Decide<'_>, name: &AgentId) -> Decided<()> {
    if to.caller.rights.admin {
        return Ok(());
    }
    let limit = to.rules.changes_per_command;
    let parts = "SELECT count(*) FROM (SELECT 1 FROM participants WHERE agent = ?1 LIMIT ?2)";
    let parts = one(to.db, parts, (name, limit + 1), |row| row.get::<_, u32>(0))?.unwrap_or(0);
    let keys = count_message_keys_of(to.db, name, MAX_KEYS + 1)?;
    for (found, most) in [(parts, limit), (keys, MAX_KEYS)] {
        if found > most {
            let what = "traces of the name's former holder; choose another name";
            return Err(Refusal::TooMany { what, limit: most.into() }.into());
        }
    }
    Ok(())
}

/// Ends what a name's former holder agreed to, took part in and held.
pub(super) fn end_former_holder(to: &mut Write<'_>, name: &AgentId) -> rusqlite::Result<()> {
    // A message to an expected name gets here without the writer having dropped its cache.
    to.drop_cached_conversations()?;
    // Consent was given to the former holder. A block stays, to protect the agent that set it.
    let sql = "DELETE FROM contacts WHERE (sender = ?1 AND state <> 'blocked') OR recipient = ?1";
    to.exec(sql, [name])?;
    seen_keys::delete_message_keys_of(to, name)?;
    // An agent's owner may read its mail, and an agent above it may change it.
    to.exec("UPDATE agents SET owner = NULL WHERE owner = ?1", [name])?;
    to.exec("UPDATE agents SET parent = NULL WHERE parent = ?1", [name])?;
    to.exec("UPDATE scopes SET created_by = ?2 WHERE created_by = ?1", (name, AgentId::office()))?;
    let sql = "SELECT conversation_seq FROM participants WHERE agent = ?1 AND left_at IS NULL ORDER BY conversation_seq";
    let places: Vec<Seq> = all(to.db, sql, [name], |row| row.get(0))?;
    for place in places {
        let sql = format!("SELECT {} FROM conversations c WHERE c.seq = ?1", rows::CONVERSATION);
        for conversation in all(to.db, &sql, [place], rows::conversation)? {
            if let Some(part) = rows::participant_of(to.db, &conversation.id, name)? {
                conversations::depart(to, &conversation, part, None, true)?;
            }
        }
    }
    // A participant that left may come back, but the new holder may not. The event log keeps who took part.
    to.exec("DELETE FROM participants WHERE agent = ?1", [name])?;
    let sql = format!(
        "SELECT {} FROM reservations r INDEXED BY reservations_held WHERE r.owner = ?1 AND r.status = 'active' ORDER BY r.seq",
        rows::RESERVATION
    );
    for reservation in all(to.db, &sql, [name], rows::reservation)? {
        reservations::release(to, reservation)?;
    }
    Ok(())
}
