//! Visibility of messages: their parties, and observers as far as sender and scopes allow.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Reader, reads_conversation};
use crate::nouns::{
    Address, AgentId, Audience, Caller, ConversationId, Message, MessagesSeenBy, RecipientKind, ScopeId, Seq,
    Sight, Turn,
};
use crate::store::{Db, all, one, rows};

/// Whether the caller may see a message: it sent it, received it, or may observe and the sender allowed that.
pub(crate) fn sees_message(db: Db<'_>, caller: &Caller, message: &Message) -> rusqlite::Result<bool> {
    match sees_by_right(caller, Some(message.audience)) {
        Some(decided) => Ok(decided),
        None => Ok(MessageParty::read(db, caller)?.sees(db, message.seq, &message.from)?
            || (message.audience == Audience::Members
                && sees_as_member(db, caller, message.seq, &message.to)?)),
    }
}

/// Whether the caller may see a message that is open to the members of its scopes; their current members count.
fn sees_as_member(db: Db<'_>, caller: &Caller, message: Seq, to: &[Address]) -> rusqlite::Result<bool> {
    if !caller.rights.observe {
        return Ok(false);
    }
    let mut has_scope = false;
    for id in to.iter().filter_map(Address::scope) {
        // A scope that was created later is another one, even if it has the same name.
        let same = rows::scope_by_id(db, id)?.is_some_and(|scope| scope.seq < message);
        if !same || !rows::is_member(db, id, &caller.agent)? {
            return Ok(false);
        }
        has_scope = true;
    }
    Ok(has_scope)
}

/// The audience of a message to these addresses: what the sender allows, limited by the scopes.
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
        let seen_by =
            rows::scope_by_id(db, id)?.map_or(MessagesSeenBy::Public, |scope| scope.messages_seen_by);
        audience = match seen_by {
            MessagesSeenBy::Public => audience,
            MessagesSeenBy::Members => Audience::Members,
            MessagesSeenBy::System => Audience::Parties,
        };
    }
    Ok(audience)
}

/// What the caller's rights alone decide about a message, if they do; an unknown audience counts as the narrowest.
fn sees_by_right(caller: &Caller, audience: Option<Audience>) -> Option<bool> {
    let rights = &caller.rights;
    if rights.admin || !rights.member {
        return Some(rights.admin);
    }
    (rights.observe && audience == Some(Audience::Observers)).then_some(true)
}

/// A caller as the sender or recipient of messages.
struct MessageParty<'c> {
    caller: &'c Caller,
    /// When the caller's name was last registered: a name that is reused does not inherit the mail of its former
    /// holder. `None` if the name is not registered.
    born: Option<Seq>,
}

impl<'c> MessageParty<'c> {
    fn read(db: Db<'_>, caller: &'c Caller) -> rusqlite::Result<Self> {
        let born = rows::active_agent(db, &caller.agent)?.map(|me| me.born);
        Ok(Self { caller, born })
    }

    fn sees(&self, db: Db<'_>, message: Seq, from: &AgentId) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM deliveries WHERE agent = ?1 AND message = ?2";
        Ok(self.born.is_some_and(|born| message > born)
            && (self.caller.is(from) || one(db, sql, (&self.caller.agent, message), |_| Ok(()))?.is_some()))
    }
}

/// A caller that checks many messages and turns in one snapshot: its own entry and the conversations are read once.
pub(crate) struct Searcher<'c> {
    caller: &'c Caller,
    party: MessageParty<'c>,
    conversations: HashMap<ConversationId, Option<Reader>>,
}

/// The columns of a message that decide visibility and that searches filter by.
pub(crate) struct MessageHead {
    pub(crate) from: AgentId,
    /// Only if it was read.
    pub(crate) audience: Option<Audience>,
    /// Only if it was read.
    pub(crate) conversation: Option<ConversationId>,
}

impl<'c> Searcher<'c> {
    /// SQL that is false only where the caller surely sees nothing. `{place}` stands for the seq, ?3 is
    /// [`Searcher::may_see_any`] and ?4 the caller's name. It excludes most of what the caller may not see without
    /// further reads.
    pub(crate) const MAYBE_VISIBLE_SQL: &'static str = "(?3
         OR EXISTS(SELECT 1 FROM main.deliveries WHERE agent = ?4 AND message = {place})
         OR EXISTS(SELECT 1 FROM main.messages INDEXED BY messages_by_sender WHERE sender = ?4 AND seq = {place})
         OR EXISTS(SELECT 1 FROM main.turns WHERE seq = {place})
         OR EXISTS(SELECT 1 FROM main.turns WHERE seq = {place} + 1 AND message = {place}))";

    pub(crate) fn new(db: Db<'_>, caller: &'c Caller) -> rusqlite::Result<Self> {
        Ok(Self { caller, party: MessageParty::read(db, caller)?, conversations: HashMap::new() })
    }

    /// Whether the caller may see messages that it is no party of.
    pub(crate) fn may_see_any(&self) -> bool {
        self.caller.rights.admin || self.caller.rights.observe
    }

    /// As [`sees_message`].
    pub(crate) fn sees_message(&self, db: Db<'_>, seq: Seq, head: &MessageHead) -> rusqlite::Result<bool> {
        if let Some(decided) = sees_by_right(self.caller, head.audience) {
            return Ok(decided);
        }
        if self.party.sees(db, seq, &head.from)? {
            return Ok(true);
        }
        if head.audience != Some(Audience::Members) {
            return Ok(false);
        }
        let message = rows::message_at(db, seq)?;
        message.map_or(Ok(false), |message| sees_as_member(db, self.caller, seq, &message.to))
    }

    /// Whether the caller may read a recorded turn.
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

/// Who may see that a message was sent, to these recipients.
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

/// Whether a recipient got a blind copy.
pub(crate) fn is_blind(db: Db<'_>, agent: &AgentId, message: Seq) -> rusqlite::Result<bool> {
    Ok(rows::delivery_of(db, agent, message)?.is_some_and(|delivery| delivery.copy == RecipientKind::Bcc))
}
