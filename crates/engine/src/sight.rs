//! Visibility: one rule for each noun, used by verbs, views, search and the feed alike.

mod messages;

use std::sync::LazyLock;

use crate::acl;
use crate::nouns::{
    Agent, AgentId, Audience, Bounds, Caller, ContactState, Conversation, ConversationId, Event, Fact,
    HistoryAccess, Millis, Participant, Reservation, Scope, ScopeId, ScopeVisibility, Seq, Sight, Turn,
    TurnVisibility, Visibility,
};
use crate::store::{Db, all, one, rows};

pub(crate) use self::messages::{MessageHead, Searcher, audience_of, is_blind, of_message, sees_message};

/// With more agents than this, visibility is not a list, but decided by a query per subscriber.
pub(crate) const MAX_LISTED_AGENTS: usize = 64;

/// Whether the caller may know that an agent exists.
pub(crate) fn sees_agent(db: Db<'_>, caller: &Caller, agent: &Agent) -> rusqlite::Result<bool> {
    if let Some(known) = sees_by_right(caller, agent) {
        return Ok(known);
    }
    if let Some(bounds) = acl::bounds_of(db, &caller.agent)?
        && !acl::allows(db, bounds.sees.as_ref(), &caller.agent, agent)?
    {
        return Ok(false);
    }
    sees_within_bounds(db, caller, agent)
}

/// The same for many agents: the caller's bounds are read once.
pub(crate) fn sees_agent_by(
    db: Db<'_>,
    caller: &Caller,
    kept_to: Option<&Bounds>,
    kin: &acl::Kin<'_>,
    agent: &Agent,
) -> rusqlite::Result<bool> {
    if let Some(known) = sees_by_right(caller, agent) {
        return Ok(known);
    }
    if let Some(bounds) = kept_to
        && !kin.allows(bounds.sees.as_ref(), agent, &agent.id)?
    {
        return Ok(false);
    }
    sees_within_bounds(db, caller, agent)
}

/// What the caller's rights decide without the database.
fn sees_by_right(caller: &Caller, agent: &Agent) -> Option<bool> {
    if caller.rights.admin || !caller.rights.member {
        return Some(caller.rights.admin);
    }
    let own = caller.is(&agent.id) || agent.owner.as_ref().is_some_and(|owner| caller.is(owner));
    own.then_some(true)
}

fn sees_within_bounds(db: Db<'_>, caller: &Caller, agent: &Agent) -> rusqlite::Result<bool> {
    if agent.visibility != Visibility::Public && speaks_for(db, caller, agent.owner.as_ref())? {
        return Ok(true);
    }
    match agent.visibility {
        Visibility::Public => Ok(true),
        Visibility::System => Ok(false),
        Visibility::Scope => acl::shares_scope(db, &agent.id, &caller.agent),
        Visibility::ParentOnly => {
            let Some(parent) = &agent.parent else { return Ok(false) };
            if caller.is(parent) {
                return Ok(true);
            }
            let above = rows::any_agent(db, parent)?.and_then(|parent| parent.owner);
            speaks_for(db, caller, above.as_ref())
        }
    }
}

/// Whether the caller is an owner of agents, or one of its agents: agents see what their owner sees.
fn speaks_for(db: Db<'_>, caller: &Caller, owner: Option<&AgentId>) -> rusqlite::Result<bool> {
    let Some(owner) = owner else { return Ok(false) };
    let sql = "SELECT 1 FROM agents WHERE id = ?1 AND owner = ?2";
    Ok(caller.is(owner) || one(db, sql, (&caller.agent, owner), |_| Ok(()))?.is_some())
}

/// Who may see events about an agent.
pub(crate) fn of_agent(db: Db<'_>, agent: &Agent) -> rusqlite::Result<Sight> {
    let mut known = vec![agent.id.clone()];
    let mut owners: Vec<AgentId> = agent.owner.iter().cloned().collect();
    match agent.visibility {
        Visibility::Public => return Ok(Sight::Everyone),
        Visibility::System => {}
        Visibility::Scope => {
            let sql = "SELECT DISTINCT b.agent FROM scope_members a JOIN scope_members b ON a.scope = b.scope
                       WHERE a.agent = ?1 LIMIT ?2";
            let most = i64::try_from(MAX_LISTED_AGENTS + 1).unwrap_or(i64::MAX);
            known.extend(all(db, sql, (&agent.id, most), |row| row.get::<_, AgentId>(0))?);
            if known.len() > MAX_LISTED_AGENTS {
                return Ok(Sight::Ask);
            }
        }
        Visibility::ParentOnly => {
            if let Some(parent) = &agent.parent {
                owners.extend(rows::any_agent(db, parent)?.and_then(|parent| parent.owner));
                known.push(parent.clone());
            }
        }
    }
    let most = i64::try_from(MAX_LISTED_AGENTS + 1).unwrap_or(i64::MAX);
    for owner in owners {
        let sql = "SELECT id FROM agents WHERE owner = ?1 AND retired_at IS NULL LIMIT ?2";
        let theirs: Vec<AgentId> = all(db, sql, (&owner, most), |row| row.get(0))?;
        if theirs.len() > MAX_LISTED_AGENTS {
            return Ok(Sight::Ask);
        }
        known.extend(theirs.into_iter().chain([owner]));
    }
    Ok(Sight::Agents(Sight::list(known)))
}

/// Whether the caller may know that a scope exists.
pub(crate) fn sees_scope(db: Db<'_>, caller: &Caller, scope: &Scope) -> rusqlite::Result<bool> {
    if caller.rights.admin {
        return Ok(true);
    }
    sees_scope_within(db, caller, acl::bounds_of(db, &caller.agent)?.as_ref(), scope)
}

/// The same for a caller whose bounds are known.
pub(crate) fn sees_scope_within(
    db: Db<'_>,
    caller: &Caller,
    bounds: Option<&Bounds>,
    scope: &Scope,
) -> rusqlite::Result<bool> {
    if caller.rights.admin {
        return Ok(true);
    }
    if let Some(bounds) = bounds
        && !acl::allows_scope(db, bounds.sees_scopes.as_ref(), &caller.agent, scope)?
    {
        return Ok(false);
    }
    Ok(caller.rights.member
        && match scope.visibility {
            ScopeVisibility::Public => true,
            ScopeVisibility::Members => {
                caller.is(&scope.created_by) || rows::is_member(db, &scope.id, &caller.agent)?
            }
            ScopeVisibility::System => false,
        })
}

/// Who may see events about a scope.
pub(crate) fn of_scope(db: Db<'_>, scope: &Scope) -> rusqlite::Result<Sight> {
    match scope.visibility {
        ScopeVisibility::Public => Ok(Sight::Everyone),
        ScopeVisibility::System => Ok(Sight::Admins),
        ScopeVisibility::Members => {
            let sql = "SELECT agent FROM scope_members WHERE scope = ?1";
            let mut members: Vec<AgentId> = all(db, sql, [&scope.id], |row| row.get(0))?;
            members.push(scope.created_by.clone());
            Ok(Sight::Agents(Sight::list(members)))
        }
    }
}

/// Whether the caller may read a conversation at all, and in which capacity.
pub(crate) fn reads_conversation(
    db: Db<'_>,
    caller: &Caller,
    conversation: &Conversation,
) -> rusqlite::Result<Option<Reader>> {
    if caller.rights.admin {
        return Ok(Some(Reader::Overseer));
    }
    if !caller.rights.member {
        return Ok(None);
    }
    let part = rows::participant_of(db, &conversation.id, &caller.agent)?;
    if let Some(part) = part.filter(|part| part.left_at.is_none()) {
        return Ok(part.permissions.can_observe.then(|| Reader::Participant(Box::new(part))));
    }
    let open = conversation.audience == Audience::Observers && caller.rights.observe;
    Ok(open.then(|| Reader::Outsider(caller.agent.clone())))
}

/// In which capacity a caller reads a conversation.
#[derive(Debug)]
pub(crate) enum Reader {
    /// An administrator.
    Overseer,
    /// A current participant.
    Participant(Box<Participant>),
    /// An observer.
    Outsider(AgentId),
}

impl Reader {
    /// Whether this reader may read a turn.
    pub(crate) fn reads(&self, turn: &Turn) -> bool {
        match self {
            Self::Overseer => true,
            Self::Outsider(agent) => turn.author == *agent || matches!(turn.visibility, TurnVisibility::All),
            Self::Participant(part) => self.from() < turn.seq && part_reads(part, turn),
        }
    }

    /// Events after this seq may be followed, even by participants that may not read earlier turns.
    pub(crate) fn follows_from(&self) -> Seq {
        match self {
            Self::Participant(part) if part.permissions.history != HistoryAccess::Full => part.joined,
            _ => 0,
        }
    }

    /// Whether this reader may see a turn as it is recorded.
    pub(crate) fn follows(&self, turn: &Turn) -> bool {
        match self {
            Self::Participant(part) => self.follows_from() < turn.seq && part_reads(part, turn),
            other => other.reads(turn),
        }
    }

    /// Turns up to this seq are hidden from the reader.
    pub(crate) fn from(&self) -> Seq {
        match self {
            Self::Participant(part) if part.permissions.history == HistoryAccess::FromJoin => part.joined,
            // `None` hides all earlier turns; live events do not come this way.
            Self::Participant(part) if part.permissions.history == HistoryAccess::None => Seq::MAX,
            _ => 0,
        }
    }
}

fn part_reads(part: &Participant, turn: &Turn) -> bool {
    turn.author == part.agent
        || match &turn.visibility {
            TurnVisibility::All => true,
            TurnVisibility::Agents(agents) => agents.contains(&part.agent),
            TurnVisibility::Roles(roles) => roles.contains(&part.role),
            TurnVisibility::Internal => part.permissions.can_see_internal,
            TurnVisibility::Private => false,
        }
}

/// Current participants.
pub(crate) fn participants(
    db: Db<'_>,
    conversation: &ConversationId,
    limit: usize,
) -> rusqlite::Result<Vec<Participant>> {
    static NOW: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {} FROM participants WHERE conversation = ?1 AND left_at IS NULL ORDER BY agent LIMIT ?2",
            rows::PARTICIPANT
        )
    });
    all(db, &NOW, (conversation, i64::try_from(limit).unwrap_or(i64::MAX)), rows::participant)
}

/// Whether there are too many participants to list. Uses the stored count, so it costs no query.
fn is_large(conversation: &Conversation) -> bool {
    usize::try_from(conversation.participant_count).is_ok_and(|parts| parts > MAX_LISTED_AGENTS)
}

/// Who may see events about a conversation as a whole.
pub(crate) fn of_conversation(db: Db<'_>, conversation: &Conversation) -> rusqlite::Result<Sight> {
    if is_large(conversation) {
        return Ok(Sight::Ask);
    }
    let parts = participants(db, &conversation.id, MAX_LISTED_AGENTS + 1)?;
    let (seeing, blind): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.permissions.can_observe);
    Ok(sight(conversation.audience, seeing, blind))
}

/// Who may see a turn as it is recorded.
pub(crate) fn of_turn(db: Db<'_>, conversation: &Conversation, turn: &Turn) -> rusqlite::Result<Sight> {
    if matches!(turn.visibility, TurnVisibility::Private) {
        return Ok(Sight::Agents(Sight::list(vec![turn.author.clone()])));
    }
    if is_large(conversation) {
        return Ok(Sight::Ask);
    }
    let parts = participants(db, &conversation.id, MAX_LISTED_AGENTS + 1)?;
    let (seeing, blind): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| part.permissions.can_observe && part_reads(part, turn));
    // Only turns that all participants may read are visible to observers.
    let audience = if matches!(turn.visibility, TurnVisibility::All) {
        conversation.audience
    } else {
        Audience::Parties
    };
    let author = turn.author.clone();
    let sight = sight(audience, seeing, blind);
    Ok(match sight {
        Sight::Agents(agents) => Sight::Agents(Sight::list(agents.iter().cloned().chain([author]).collect())),
        other => other,
    })
}

/// Who may see a turn that all readers of the conversation may read, besides its author. Takes all participants.
pub(crate) fn of_open_turn(conversation: &Conversation, parts: Vec<Participant>) -> Sight {
    let (seeing, blind): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.permissions.can_observe);
    sight(conversation.audience, seeing, blind)
}

fn sight(audience: Audience, seeing: Vec<Participant>, blind: Vec<Participant>) -> Sight {
    let names = |parts: Vec<Participant>| Sight::list(parts.into_iter().map(|part| part.agent).collect());
    match audience {
        Audience::Parties | Audience::Members => Sight::Agents(names(seeing)),
        Audience::Observers => Sight::Observed { agents: names(seeing), except: names(blind) },
    }
}

/// Whether the caller may see a reservation: its holder, accepted contacts, or the realm if it is open.
pub(crate) fn sees_reservation(
    db: Db<'_>,
    caller: &Caller,
    held: &Reservation,
    now: Millis,
) -> rusqlite::Result<bool> {
    if caller.rights.admin || (caller.rights.member && caller.is(&held.owner)) {
        return Ok(true);
    }
    if !caller.rights.member {
        return Ok(false);
    }
    if let Some(told) = &held.told {
        return Ok(told.contains(&caller.agent));
    }
    Ok(held.audience == Audience::Observers || are_contacts(db, &caller.agent, &held.owner, now)?)
}

/// Whether both have accepted each other, and neither acceptance has expired.
pub(crate) fn are_contacts(
    db: Db<'_>,
    one_agent: &AgentId,
    other: &AgentId,
    now: Millis,
) -> rusqlite::Result<bool> {
    let sql =
        "SELECT count(*) FROM contacts WHERE state = 'accepted' AND (expires_at IS NULL OR expires_at > ?3)
               AND ((sender = ?1 AND recipient = ?2) OR (sender = ?2 AND recipient = ?1))";
    Ok(one(db, sql, (one_agent, other, now), |row| row.get::<_, i64>(0))? == Some(2))
}

/// The agents with mutual accepted contact that has not expired.
pub(crate) fn contacts_of(db: Db<'_>, agent: &AgentId, now: Millis) -> rusqlite::Result<Vec<AgentId>> {
    let sql = "SELECT a.recipient FROM contacts a JOIN contacts b ON b.sender = a.recipient AND b.recipient = a.sender
               WHERE a.sender = ?1 AND a.state = 'accepted' AND b.state = 'accepted'
               AND (a.expires_at IS NULL OR a.expires_at > ?2) AND (b.expires_at IS NULL OR b.expires_at > ?2)
               ORDER BY a.recipient";
    all(db, sql, (agent, now), |row| row.get(0))
}

/// Who may see events about a reservation.
pub(crate) fn of_reservation(db: Db<'_>, held: &Reservation, now: Millis) -> rusqlite::Result<Sight> {
    let mut known = match (&held.told, held.audience) {
        (Some(told), _) => told.clone(),
        (None, Audience::Observers) => return Ok(Sight::Everyone),
        (None, Audience::Parties | Audience::Members) => contacts_of(db, &held.owner, now)?,
    };
    known.push(held.owner.clone());
    Ok(Sight::Agents(Sight::list(known)))
}

/// Whether one of the callers may see an event.
pub(crate) fn any_sees(db: Db<'_>, callers: &[Caller], event: &Event, now: Millis) -> rusqlite::Result<bool> {
    for caller in callers {
        if sees_event(db, caller, event, now)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the caller may see a past event. Decided by the current state: an agent that joined or became hidden since
/// counts as it is now.
pub(crate) fn sees_event(db: Db<'_>, caller: &Caller, event: &Event, now: Millis) -> rusqlite::Result<bool> {
    if caller.rights.admin {
        return Ok(true);
    }
    if !caller.rights.member {
        return Ok(false);
    }
    match &event.fact {
        Fact::MessageSent => match &event.message {
            Some(message) => sees_message(db, caller, message),
            None => Ok(false),
        },
        Fact::MessageDelivered { agent }
        | Fact::MessageRead { agent }
        | Fact::MessageAcked { agent, .. }
        | Fact::MessageExpired { agent }
        | Fact::MessageFailed { agent, .. } => match &event.message {
            // The state of a delivery is between its recipient and the sender.
            Some(message) => {
                let party = caller.is(&message.from) || caller.is(agent);
                let open = caller.rights.observe
                    && message.audience == Audience::Observers
                    && !is_blind(db, agent, message.seq)?;
                Ok(open || (party && sees_message(db, caller, message)?))
            }
            None => Ok(false),
        },
        Fact::TurnAdded { conversation } => {
            let Some(turn) = &event.turn else { return Ok(false) };
            let Some(conversation) = rows::conversation_by_id(db, conversation)? else { return Ok(false) };
            Ok(reads_conversation(db, caller, &conversation)?.is_some_and(|reader| reader.follows(turn)))
        }
        Fact::AgentRegistered { agent, .. }
        | Fact::AgentUpdated { agent, .. }
        | Fact::AgentState { agent, .. }
        | Fact::AgentOrphaned { agent, .. }
        | Fact::AgentUnregistered { agent, .. } => match rows::any_agent(db, agent)? {
            Some(agent) => sees_agent(db, caller, &agent),
            None => Ok(false),
        },
        Fact::ScopeCreated { scope } => sees_scope(db, caller, scope),
        Fact::ScopeDeleted { scope, .. } => sees_past_scope(db, caller, scope, event.seq),
        Fact::ScopeJoined { scope, agent } | Fact::ScopeLeft { scope, agent } => {
            // A public scope does not show its hidden members.
            Ok(sees_past_scope(db, caller, scope, event.seq)?
                && match rows::any_agent(db, agent)? {
                    Some(agent) => sees_agent(db, caller, &agent)?,
                    None => false,
                })
        }
        Fact::ReservationMade { reservation }
        | Fact::ReservationRenewed { reservation }
        | Fact::ReservationReleased { reservation }
        | Fact::ReservationExpired { reservation } => sees_reservation(db, caller, reservation, now),
        Fact::ReservationConflict { asked, asked_by, held_by, .. } => {
            // The holder learns only of reservations that it may see.
            Ok(caller.is(asked_by)
                || (caller.is(held_by)
                    && match rows::reservation_at(db, *asked)? {
                        Some(asked) => sees_reservation(db, caller, &asked, now)?,
                        None => false,
                    }))
        }
        // A block is visible only to the agent that made it.
        Fact::ContactChanged { to, state: Some(ContactState::Blocked), .. } => Ok(caller.is(to)),
        Fact::ContactChanged { from, to, .. } => Ok(caller.is(from) || caller.is(to)),
        Fact::Announced { to, .. } => Ok(to.as_ref().is_none_or(|to| to.contains(&caller.agent))),
        Fact::TokenCreated { .. }
        | Fact::TokenRevoked { .. }
        | Fact::PeerChanged { .. }
        | Fact::PeerRemoved { .. }
        | Fact::RulesChanged => Ok(false),
        Fact::ConversationCreated { .. }
        | Fact::ConversationClosed { .. }
        | Fact::ConversationReopened { .. }
        | Fact::ParticipantJoined { .. }
        | Fact::ParticipantLeft { .. }
        | Fact::ThreadCreated { .. }
        | Fact::SummaryGenerated { .. }
        | Fact::TaskCreated { .. }
        | Fact::TaskAssigned { .. }
        | Fact::TaskStatusChanged { .. }
        | Fact::TaskCompleted { .. } => {
            let Some(id) = event.fact.conversation() else { return Ok(false) };
            let Some(conversation) = rows::conversation_by_id(db, id)? else { return Ok(false) };
            let reader = reads_conversation(db, caller, &conversation)?;
            // The event at `follows_from` itself is the reader's own joining, which it may see.
            Ok(reader.is_some_and(|reader| reader.follows_from() <= event.seq))
        }
    }
}

/// Whether the caller may know of a scope that may be deleted: its creation event still contains its visibility.
fn sees_past_scope(db: Db<'_>, caller: &Caller, scope: &ScopeId, before: Seq) -> rusqlite::Result<bool> {
    if let Some(scope) = rows::scope_by_id(db, scope)? {
        return sees_scope(db, caller, &scope);
    }
    let sql =
        "SELECT fact FROM events WHERE kind = 'scope.created' AND seq < ?1 AND fact ->> '$.scope.id' = ?2
               ORDER BY seq DESC LIMIT 1";
    let fact = one(db, sql, (before, scope), |row| row.get::<_, String>(0))?;
    let fact = fact.and_then(|text| serde_json::from_str::<Fact>(&text).ok());
    match fact {
        Some(Fact::ScopeCreated { scope }) => sees_scope(db, caller, &scope),
        _ => Ok(false),
    }
}
