//! What the verbs of conversations, tasks and messages share: finding a conversation, checking what its participants may do,
//! and writing who takes part.

use crate::error::Refusal;
use crate::nouns::{
    AgentId, AgentKind, Audience, Conversation, ConversationId, ConversationStatus, Fact, Participant,
    Permissions, Sight, Standing,
};
use crate::sight;
use crate::store::{one, rows};
use crate::verbs::{Decide, Decided, Stop, Write};

/// The conversation with that id.
pub(in crate::verbs) fn existing(to: &Decide<'_>, id: &ConversationId) -> Decided<Conversation> {
    rows::conversation_by_id(to.db, id)?
        .ok_or_else(|| Refusal::NoSuchConversation { conversation: id.clone() }.into())
}

/// The conversation with that id, if the caller may know of it: the caller takes part (even without the right to read), may
/// observe, or is an administrator.
pub(in crate::verbs) fn readable(to: &Decide<'_>, id: &ConversationId) -> Decided<Conversation> {
    let conversation = existing(to, id)?;
    let takes_part = to.caller.rights.member && takes_part(to, id, &to.caller.agent)?;
    if takes_part || sight::reads_conversation(to.db, to.caller, &conversation)?.is_some() {
        return Ok(conversation);
    }
    Err(Refusal::NoSuchConversation { conversation: id.clone() }.into())
}

/// Refuses to add to a closed conversation.
pub(in crate::verbs) fn check_open(conversation: &Conversation) -> Decided<()> {
    if conversation.status.is_closed() {
        return Err(Refusal::ConversationClosed { conversation: conversation.id.clone() }.into());
    }
    Ok(())
}

/// The caller as a present participant.
pub(in crate::verbs) fn own_part(to: &Decide<'_>, conversation: &Conversation) -> Decided<Participant> {
    rows::participant_of(to.db, &conversation.id, &to.caller.agent)?
        .filter(|part| part.left_at.is_none())
        .ok_or_else(|| Refusal::NotAParticipant { conversation: conversation.id.clone() }.into())
}

/// Refuses callers without a permission in the conversation. Administrators need none.
pub(in crate::verbs) fn require(
    to: &Decide<'_>,
    conversation: &Conversation,
    may: impl Fn(&Permissions) -> bool,
    need: &'static str,
) -> Decided<()> {
    match own_part(to, conversation) {
        Ok(part) if may(&part.permissions) => Ok(()),
        _ if to.caller.rights.admin => Ok(()),
        Ok(_) => Err(Refusal::ParticipantMayNot { conversation: conversation.id.clone(), need }.into()),
        Err(stop) => Err(stop),
    }
}

/// Refuses callers that may not close or reopen a conversation, or change its task: those that take no part, and guests.
/// Administrators always may.
pub(in crate::verbs) fn check_may_lead(to: &Decide<'_>, conversation: &Conversation) -> Decided<()> {
    if to.caller.rights.admin {
        return Ok(());
    }
    check_standing(conversation, &own_part(to, conversation)?)
}

/// Refuses guests.
pub(in crate::verbs) fn check_standing(conversation: &Conversation, part: &Participant) -> Decided<()> {
    match part.standing {
        Standing::Full | Standing::Invited => Ok(()),
        Standing::Guest => {
            let need = "to have been invited";
            Err(Refusal::ParticipantMayNot { conversation: conversation.id.clone(), need }.into())
        }
    }
}

/// Whether an agent takes part now.
pub(in crate::verbs) fn takes_part(
    to: &Decide<'_>,
    id: &ConversationId,
    agent: &AgentId,
) -> rusqlite::Result<bool> {
    Ok(rows::participant_of(to.db, id, agent)?.is_some_and(|part| part.left_at.is_none()))
}

/// Whether an agent was removed by another participant; it comes back only by invitation.
pub(in crate::verbs) fn was_removed(
    to: &Decide<'_>,
    id: &ConversationId,
    agent: &AgentId,
) -> rusqlite::Result<bool> {
    let sql =
        "SELECT put_out FROM participants WHERE conversation = ?1 AND agent = ?2 AND left_at IS NOT NULL";
    Ok(one(to.db, sql, (id, agent), |row| row.get(0))?.unwrap_or(false))
}

/// Refuses more new participants than one command may bring in.
pub(in crate::verbs) fn check_entries(to: &Decide<'_>, entries: usize) -> Decided<()> {
    let limit = to.rules.changes_per_command;
    if entries > limit as usize {
        let what = "participants at once; invite the others one by one";
        return Err(Refusal::TooManyParticipants { what, limit: limit.into() }.into());
    }
    Ok(())
}

/// Refuses participants beyond the rules' limit: [`enter`] does not check it.
pub(in crate::verbs) fn check_participants(to: &Decide<'_>, present: i64, entering: usize) -> Decided<()> {
    let entering = i64::try_from(entering).unwrap_or(i64::MAX);
    if entering > 0 && present.saturating_add(entering) > i64::from(to.rules.participants) {
        return Err(too_many_participants(to));
    }
    Ok(())
}

/// The refusal of more participants than a conversation may have.
pub(super) fn too_many_participants(to: &Decide<'_>) -> Stop {
    Refusal::TooManyParticipants { what: "participants", limit: to.rules.participants.into() }.into()
}

/// Refuses kinds and roles that are empty or long.
pub(in crate::verbs) fn check_word(field: &'static str, word: &str) -> Decided<()> {
    if word.is_empty() || word.len() > 64 || word.chars().any(char::is_control) {
        return Err(Refusal::BadValue { field, why: "one word of 1 to 64 bytes" }.into());
    }
    Ok(())
}

/// Inserts a new conversation.
pub(in crate::verbs) fn open(
    to: &mut Write<'_>,
    id: ConversationId,
    kind: &str,
    subject: Option<String>,
    audience: Audience,
    refine: impl FnOnce(&mut Conversation),
) -> rusqlite::Result<Conversation> {
    let mut conversation = Conversation {
        id,
        kind: kind.to_owned(),
        status: ConversationStatus::Active,
        subject,
        parent: None,
        parent_turn: None,
        created_by: to.caller.agent.clone(),
        audience,
        meta: None,
        participant_count: 0,
        turn_count: 0,
        thread_count: 0,
        created_at: to.now,
        updated_at: to.now,
        closed_at: None,
        seq: to.next_seq(),
    };
    refine(&mut conversation);
    let sql = "INSERT INTO conversations(id, kind, status, subject, parent, parent_turn, created_by, audience, meta,
                   participant_count, turn_count, thread_count, created_at, updated_at, closed_at, seq)
               VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,0,0,0,?10,?10,NULL,?11)";
    let params = rusqlite::params![
        conversation.id,
        conversation.kind,
        conversation.status,
        conversation.subject,
        conversation.parent,
        conversation.parent_turn,
        conversation.created_by,
        conversation.audience,
        conversation.meta,
        conversation.created_at,
        conversation.seq,
    ];
    to.exec(sql, params)?;
    // The creator sees this event, although it becomes a participant only with the next one.
    let agents = Sight::list(vec![to.caller.agent.clone()]);
    let sight = match audience {
        Audience::Parties | Audience::Members => Sight::Agents(agents),
        Audience::Observers => Sight::Observed { agents, except: Sight::list(Vec::new()) },
    };
    to.emit(Fact::ConversationCreated { conversation: Box::new(conversation.clone()) }, sight)?;
    Ok(conversation)
}

/// Closes a conversation.
pub(in crate::verbs) fn close(
    to: &mut Write<'_>,
    mut conversation: Conversation,
    status: ConversationStatus,
    reason: Option<String>,
) -> rusqlite::Result<Conversation> {
    conversation.status = status;
    conversation.closed_at = Some(to.now);
    conversation.updated_at = to.now;
    let sql = "UPDATE conversations SET status = ?2, closed_at = ?3, updated_at = ?3 WHERE id = ?1";
    to.exec(sql, (&conversation.id, status, to.now))?;
    let sight = sight::of_conversation(to.db, &conversation)?;
    let by = to.caller.agent.clone();
    to.emit(Fact::ConversationClosed { conversation: conversation.id.clone(), by, reason }, sight)?;
    Ok(conversation)
}

/// Reopens a conversation, if it is closed.
pub(in crate::verbs) fn reopen(
    to: &mut Write<'_>,
    mut conversation: Conversation,
) -> rusqlite::Result<Conversation> {
    if !conversation.status.is_closed() {
        return Ok(conversation);
    }
    conversation.status = ConversationStatus::Active;
    conversation.closed_at = None;
    conversation.updated_at = to.now;
    let sql = "UPDATE conversations SET status = ?2, closed_at = NULL, updated_at = ?3 WHERE id = ?1";
    to.exec(sql, (&conversation.id, conversation.status, to.now))?;
    let sight = sight::of_conversation(to.db, &conversation)?;
    let by = to.caller.agent.clone();
    to.emit(Fact::ConversationReopened { conversation: conversation.id.clone(), by }, sight)?;
    Ok(conversation)
}

/// Makes an agent a participant, new or returning. See [`check_participants`].
pub(in crate::verbs) fn enter(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    agent: &AgentId,
    role: &str,
    permissions: Permissions,
    standing: Standing,
) -> rusqlite::Result<Participant> {
    // To a caller that does not see it, an agent looks like one that is not registered.
    let kind = match rows::any_agent(to.db, agent)? {
        Some(agent) if sight::sees_agent(to.db, to.caller, &agent)? => agent.kind,
        _ => AgentKind::Agent,
    };
    let participant = Participant {
        conversation: conversation.id.clone(),
        agent: agent.clone(),
        kind,
        role: role.to_owned(),
        permissions,
        joined_at: to.now,
        left_at: None,
        joined: to.next_seq(),
        standing,
    };
    let sql =
        "INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, left_at, joined,
                   conversation_seq, standing) VALUES(?1,?2,?3,?4,?5,?6,NULL,?7,?8,?9)
               ON CONFLICT(conversation, agent) DO UPDATE SET kind=?3, role=?4, permissions=?5, joined_at=?6,
                   left_at=NULL, joined=?7, put_out=0, standing=?9";
    let may = serde_json::to_string(&participant.permissions).unwrap_or_default();
    let params = (
        &participant.conversation,
        &participant.agent,
        participant.kind,
        &participant.role,
        may,
        participant.joined_at,
        participant.joined,
        conversation.seq,
        participant.standing,
    );
    to.exec(sql, params)?;
    conversation.participant_count += 1;
    touch(to, conversation)?;
    let sight = sight::of_conversation(to.db, conversation)?;
    to.emit(Fact::ParticipantJoined { participant: Box::new(participant.clone()) }, sight)?;
    Ok(participant)
}

/// Ends an agent's part; `removed` if another participant ended it.
pub(in crate::verbs) fn depart(
    to: &mut Write<'_>,
    conversation: &Conversation,
    mut part: Participant,
    reason: Option<String>,
    removed: bool,
) -> rusqlite::Result<Participant> {
    // Computed first, so that the agent that leaves still sees the event.
    let sight = sight::of_conversation(to.db, conversation)?;
    part.left_at = Some(to.now);
    let sql = "UPDATE participants SET left_at = ?3, put_out = ?4 WHERE conversation = ?1 AND agent = ?2";
    to.exec(sql, (&part.conversation, &part.agent, to.now, removed))?;
    let mut conversation = conversation.clone();
    conversation.participant_count -= 1;
    touch(to, &mut conversation)?;
    let fact = Fact::ParticipantLeft { conversation: conversation.id, agent: part.agent.clone(), reason };
    to.emit(fact, sight)?;
    Ok(part)
}

/// Writes the conversation's counters and its time of change.
pub(in crate::verbs) fn touch(to: &Write<'_>, conversation: &mut Conversation) -> rusqlite::Result<()> {
    conversation.updated_at = to.now;
    let sql =
        "UPDATE conversations SET participant_count = ?2, turn_count = ?3, thread_count = ?4, updated_at = ?5
               WHERE id = ?1";
    let params = (
        &conversation.id,
        conversation.participant_count,
        conversation.turn_count,
        conversation.thread_count,
        conversation.updated_at,
    );
    to.exec(sql, params).map(drop)
}

/// Records that an invited participant takes part by its own choice.
pub(in crate::verbs) fn accept(to: &Write<'_>, part: &Participant) -> rusqlite::Result<()> {
    if part.standing == Standing::Invited {
        let sql = "UPDATE participants SET standing = ?3 WHERE conversation = ?1 AND agent = ?2";
        to.exec(sql, (&part.conversation, &part.agent, Standing::Full))?;
    }
    Ok(())
}
