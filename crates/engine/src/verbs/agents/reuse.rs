//! Making way for somebody else under a name that was given up: what was agreed with the former holder, entrusted to it
//! or held by it does not pass on. Its mail is kept apart by the place at which the new holder was born.

use crate::error::Refusal;
use crate::nouns::{AgentId, Fact, ReservationStatus, Seq};
use crate::sight;
use crate::store::{all, count_message_keys_of, exec, one, rows};
use crate::verbs::{Applied, Apply, conversations, reservations};

/// Rows that a command of a plain caller takes away in a stroke.
const MOST_KEYS: u32 = 20_000;

/// Refuses a name that more hangs on than one command may change.
fn check_traces(to: &Apply<'_>, name: &AgentId) -> Applied<()> {
    if to.caller.rights.admin {
        return Ok(());
    }
    let limit = to.rules.changes_per_command;
    let parts = "SELECT count(*) FROM (SELECT 1 FROM participants WHERE agent = ?1 LIMIT ?2)";
    let parts = one(to.db, parts, (name, limit + 1), |row| row.get::<_, u32>(0))?.unwrap_or(0);
    let keys = count_message_keys_of(to.db, name, MOST_KEYS + 1)?;
    for (found, most) in [(parts, limit), (keys, MOST_KEYS)] {
        if found > most {
            let what = "traces of the name's former holder; choose another name";
            return Err(Refusal::TooMany { what, limit: most.into() }.into());
        }
    }
    Ok(())
}

/// Ends everything that a name still stands for.
pub(super) fn make_way(to: &mut Apply<'_>, name: &AgentId) -> Applied<()> {
    check_traces(to, name)?;
    // Consent was given to the former holder. A block stays: it costs the new holder a word, not others their peace.
    let sql = "DELETE FROM contacts WHERE (sender = ?1 AND state <> 'blocked') OR recipient = ?1";
    exec(to.db, sql, [name])?;
    to.memory.seen_keys(to.db)?.delete_message_keys_of(to.db, name)?;
    // Whoever owns an agent may read its mail, and whoever stands above it may change it.
    exec(to.db, "UPDATE agents SET owner = NULL WHERE owner = ?1", [name])?;
    exec(to.db, "UPDATE agents SET parent = NULL WHERE parent = ?1", [name])?;
    exec(to.db, "UPDATE scopes SET created_by = ?2 WHERE created_by = ?1", (name, AgentId::office()))?;
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
    // One that left could come back; its successor is as new to the conversation as anybody. The history keeps who was.
    exec(to.db, "DELETE FROM participants WHERE agent = ?1", [name])?;
    let sql = format!(
        "SELECT {} FROM reservations r INDEXED BY reservations_held WHERE r.owner = ?1 AND r.status = 'active' ORDER BY r.seq",
        rows::RESERVATION
    );
    for mut reservation in all(to.db, &sql, [name], rows::reservation)? {
        reservation.status = ReservationStatus::Released;
        reservation.released_at = Some(to.now);
        reservations::end(to, &reservation)?;
        let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
        to.tell(Fact::ReservationReleased { reservation: Box::new(reservation) }, sight)?;
    }
    Ok(())
}
