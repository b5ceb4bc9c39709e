//! Who may see letters: their parties, and onlookers as far as sender and scopes allow.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Reader, reads_conversation};
use crate::nouns::{
    Address, AgentId, Audience, Caller, ConversationId, Message, MessagesSeenBy, RecipientKind, ScopeId, Seq,
    Sight, Turn,
};
use crate::store::{Db, all, one, rows};

/// Whether the caller may look at a letter: it sent it, received it, or may observe and the sender allowed that.
pub(crate) fn sees_message(db: Db<'_>, caller: &Caller, message: &Message) -> rusqlite::Result<bool> {
    match sees_by_right(caller, Some(message.audience)) {
        Some(decided) => Ok(decided),
        None => Ok(MessageParty::of(db, caller)?.sees(db, message.seq, &message.from)?
            || (message.audience == Audience::Members
                && sees_as_member(db, caller, message.seq, &message.to)?)),
    }
}

/// Whether the caller may look at a letter that is for its scopes' members besides its parties: as they are today.
fn sees_as_member(db: Db<'_>, caller: &Caller, letter: Seq, to: &[Address]) -> rusqlite::Result<bool> {
    if !caller.rights.observe {
        return Ok(false);
    }
    let mut some = false;
    for id in to.iter().filter_map(Address::scope) {
        // A scope that was made later is another one, whatever its name.
        let same = rows::scope_by_id(db, id)?.is_some_and(|scope| scope.seq < letter);
        if !same || !rows::is_member(db, id, &caller.agent)? {
            return Ok(false);
        }
        some = true;
    }
    Ok(some)
}

/// Who may look at a letter to these addresses, if its sender lets this audience: no more than their scopes allow.
pub(crate) fn audience_of<'a>(
    db: Db<'_>,
    given: Audience,
    to: impl Iterator<Item = &'a Address>,
) -> rusqlite::Result<Audience> {
    let mut audience = given;
    for id in to.filter_map(Address::scope) {
        if audience == Audience::Parties {
            break;
        }
        let letters = rows::scope_by_id(db, id)?.map_or(MessagesSeenBy::Public, |scope| scope.letters);
        audience = match letters {
            MessagesSeenBy::Public => audience,
            MessagesSeenBy::Members => Audience::Members,
            MessagesSeenBy::System => Audience::Parties,
        };
    }
    Ok(audience)
}

/// Whether the caller may look at a letter by its rights alone, if those decide; an audience that was not asked for is
/// the narrower one.
fn sees_by_right(caller: &Caller, audience: Option<Audience>) -> Option<bool> {
    let rights = &caller.rights;
    if rights.admin || !rights.member {
        return Some(rights.admin);
    }
    (rights.observe && audience == Some(Audience::Observers)).then_some(true)
}

/// Somebody as the sender or a recipient of letters.
struct MessageParty<'c> {
    caller: &'c Caller,
    /// A name that was given up and taken again does not inherit its former holder's mail. Nothing if nobody has it.
    born: Option<Seq>,
}

impl<'c> MessageParty<'c> {
    fn of(db: Db<'_>, caller: &'c Caller) -> rusqlite::Result<Self> {
        let born = rows::active_agent(db, &caller.agent)?.map(|me| me.born);
        Ok(Self { caller, born })
    }

    fn sees(&self, db: Db<'_>, letter: Seq, from: &AgentId) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM deliveries WHERE agent = ?1 AND message = ?2";
        Ok(self.born.is_some_and(|born| letter > born)
            && (self.caller.is(from) || one(db, sql, (&self.caller.agent, letter), |_| Ok(()))?.is_some()))
    }
}

/// Somebody who looks through many letters and turns at one moment: what the rules need to know of them, and of the
/// conversations, is read once.
pub(crate) struct Searcher<'c> {
    caller: &'c Caller,
    party: MessageParty<'c>,
    conversations: HashMap<ConversationId, Option<Reader>>,
}

/// What the rule for letters goes by, and what searches are narrowed by.
pub(crate) struct MessageHead {
    pub(crate) from: AgentId,
    /// Only if it was asked for.
    pub(crate) audience: Option<Audience>,
    /// Only if it was asked for.
    pub(crate) conversation: Option<ConversationId>,
}

impl<'c> Searcher<'c> {
    /// SQL that is false only for a place at which the caller surely sees nothing. `{place}` stands for the place, ?3 is
    /// [`Seeker::may_see_any`] and ?4 the caller's name. It keeps most of what is not for the caller from being looked at.
    pub(crate) const MAYBE_VISIBLE_SQL: &'static str = "(?3
         OR EXISTS(SELECT 1 FROM main.deliveries WHERE agent = ?4 AND message = {place})
         OR EXISTS(SELECT 1 FROM main.messages INDEXED BY messages_by_sender WHERE sender = ?4 AND seq = {place})
         OR EXISTS(SELECT 1 FROM main.turns WHERE seq = {place})
         OR EXISTS(SELECT 1 FROM main.turns WHERE seq = {place} + 1 AND message = {place}))";

    pub(crate) fn of(db: Db<'_>, caller: &'c Caller) -> rusqlite::Result<Self> {
        Ok(Self { caller, party: MessageParty::of(db, caller)?, conversations: HashMap::new() })
    }

    /// Whether a letter may be seen by somebody who has no part in it.
    pub(crate) fn may_see_any(&self) -> bool {
        self.caller.rights.admin || self.caller.rights.observe
    }

    /// As [`sees_message`].
    pub(crate) fn sees_letter(&self, db: Db<'_>, place: Seq, letter: &MessageHead) -> rusqlite::Result<bool> {
        if let Some(decided) = sees_by_right(self.caller, letter.audience) {
            return Ok(decided);
        }
        if self.party.sees(db, place, &letter.from)? {
            return Ok(true);
        }
        if letter.audience != Some(Audience::Members) {
            return Ok(false);
        }
        let whole = rows::message_at(db, place)?;
        whole.map_or(Ok(false), |letter| sees_as_member(db, self.caller, place, &letter.to))
    }

    /// Whether the caller may read a turn that was recorded.
    pub(crate) fn reads_turn(&mut self, db: Db<'_>, turn: &Turn) -> rusqlite::Result<bool> {
        let reader = match self.conversations.entry(turn.conversation.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let reader = match rows::conversation_by_id(db, &turn.conversation)? {
                    Some(conversation) => reads_conversation(db, self.caller, &conversation)?,
                    None => None,
                };
                unknown.insert(reader)
            }
        };
        Ok(reader.as_ref().is_some_and(|reader| reader.reads(turn)))
    }
}

/// Who may see that a letter was sent, to these recipients.
pub(crate) fn of_message(db: Db<'_>, message: &Message, recipients: Vec<AgentId>) -> rusqlite::Result<Sight> {
    let mut parties = recipients;
    parties.push(message.from.clone());
    let agents = Sight::list(parties);
    Ok(match message.audience {
        Audience::Parties => Sight::Agents(agents),
        Audience::Observers => Sight::Observed { agents, except: Sight::list(Vec::new()) },
        Audience::Members => {
            // Plain data: writing it as JSON cannot fail.
            let scopes: Vec<&ScopeId> = message.to.iter().filter_map(Address::scope).collect();
            let scopes = serde_json::to_string(&scopes).unwrap_or_default();
            let sql = "SELECT agent FROM scope_members WHERE scope IN (SELECT value FROM json_each(?1))
                       GROUP BY agent
                       HAVING count(*) = (SELECT count(DISTINCT value) FROM json_each(?1))";
            let members = all(db, sql, [scopes], |row| row.get::<_, AgentId>(0))?;
            Sight::Among { agents, members: Sight::list(members) }
        }
    })
}

/// Whether a recipient got its copy without the others knowing.
pub(crate) fn is_blind(db: Db<'_>, agent: &AgentId, message: Seq) -> rusqlite::Result<bool> {
    Ok(rows::delivery_of(db, agent, message)?.is_some_and(|copy| copy.copy == RecipientKind::Bcc))
}
