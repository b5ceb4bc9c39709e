//! Making way for somebody else under a name that was given up: what was agreed with the former holder, entrusted to it
//! or held by it does not pass on. Its mail is kept apart by the place at which the new holder was born.

use super::{Applied, Apply, conversations, reservations};
use crate::nouns::{AgentId, Fact, ReservationStatus, Seq};
use crate::sight;
use crate::store::{all, exec, rows};

/// Ends everything that a name still stands for.
pub(super) fn make_way(to: &mut Apply<'_>, name: &AgentId) -> Applied<()> {
    // Consent was given to the former holder. A block stays: it costs the new holder a word, not others their peace.
    let sql = "DELETE FROM contacts WHERE (sender = ?1 AND state <> 'blocked') OR recipient = ?1";
    exec(to.books, sql, [name])?;
    exec(to.books, "DELETE FROM message_keys WHERE sender = ?1", [name])?;
    // Whoever owns an agent may read its mail, and whoever stands above it may change it.
    exec(to.books, "UPDATE agents SET owner = NULL WHERE owner = ?1", [name])?;
    exec(to.books, "UPDATE agents SET parent = NULL WHERE parent = ?1", [name])?;
    exec(to.books, "UPDATE scopes SET created_by = ?2 WHERE created_by = ?1", (name, AgentId::office()))?;
    let sql = "SELECT conversation_seq FROM participants WHERE agent = ?1 AND left_at IS NULL ORDER BY conversation_seq";
    let places: Vec<Seq> = all(to.books, sql, [name], |row| row.get(0))?;
    for place in places {
        let sql = format!("SELECT {} FROM conversations c WHERE c.seq = ?1", rows::CONVERSATION);
        for conversation in all(to.books, &sql, [place], rows::conversation)? {
            if let Some(part) = rows::participant_of(to.books, &conversation.id, name)? {
                conversations::depart(to, &conversation, part, None, true)?;
            }
        }
    }
    // One that left could come back; its successor is as new to the conversation as anybody. The history keeps who was.
    exec(to.books, "DELETE FROM participants WHERE agent = ?1", [name])?;
    let sql = format!(
        "SELECT {} FROM reservations r WHERE r.owner = ?1 AND r.status = 'active' ORDER BY r.seq",
        rows::RESERVATION
    );
    for mut reservation in all(to.books, &sql, [name], rows::reservation)? {
        reservation.status = ReservationStatus::Released;
        reservation.released_at = Some(to.now);
        reservations::end(to, &reservation)?;
        let sight = sight::of_reservation(to.books, &reservation, to.clock())?;
        to.tell(Fact::ReservationReleased { reservation: Box::new(reservation) }, sight)?;
    }
    Ok(())
}
