//! Opening and closing conversations, and who takes part in them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::turns::{self, FirstTurn};
use super::{Decided, Write};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, AgentKind, Audience, Conversation, ConversationId, ConversationStatus, Fact, Json, Participant,
    Permissions, PermissionsPatch, Sight, Standing, Turn, TurnId,
};
use crate::sight;
use crate::store::{one, rows};

/// Opens a conversation, with its participants and its first turn, or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Create {
    /// Its name; made up if absent.
    #[serde(default)]
    pub id: Option<ConversationId>,
    /// What it is for.
    pub kind: String,
    /// Its heading.
    #[serde(default)]
    pub subject: Option<String>,
    /// The conversation it comes out of.
    #[serde(default)]
    pub parent: Option<ConversationId>,
    /// The turn it comes out of.
    #[serde(default)]
    pub parent_turn: Option<TurnId>,
    /// Who takes part besides the caller.
    #[serde(default)]
    pub participants: Vec<Invitee>,
    /// What is said first.
    #[serde(default)]
    pub first: Option<FirstTurn>,
    /// Whether observers of the realm may read it.
    pub audience: Audience,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
}

/// Somebody who is to take part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invitee {
    /// Who.
    pub agent: AgentId,
    /// As what; an assistant if not said.
    #[serde(default)]
    pub role: Option<String>,
    /// What it may do, where that differs from the role's.
    #[serde(default)]
    pub permissions: PermissionsPatch,
}

/// What opening a conversation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The conversation.
    pub conversation: Conversation,
    /// The caller's part in it.
    pub participant: Participant,
    /// The first turn.
    pub first: Option<Turn>,
}

impl Create {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Created> {
        to.require_member()?;
        check_word("kind", &self.kind)?;
        if let Some(id) = &self.id
            && rows::conversation_by_id(to.db, id)?.is_some()
        {
            return Err(Refusal::ConversationExists { conversation: id.clone() }.into());
        }
        match (&self.parent, self.parent_turn) {
            (Some(parent), turn) => {
                let parent = readable(to, parent)?;
                turn.map(|turn| turns::turn_in(to, &parent, turn)).transpose()?;
            }
            // A turn of no conversation.
            (None, Some(_)) => return Err(Refusal::NoSuchTurn.into()),
            (None, None) => {}
        }
        for invitee in &self.participants {
            check_word("role", invitee.role.as_deref().unwrap_or("assistant"))?;
        }
        if self.participants.len() >= to.rules.participants as usize {
            return Err(too_many_participants(to));
        }
        check_entries(to, self.participants.len())?;
        if let Some(first) = &self.first {
            let invited: HashSet<&AgentId> = self.participants.iter().map(|invitee| &invitee.agent).collect();
            first.check(|agent| to.caller.is(agent) || invited.contains(agent))?;
        }
        let id = match &self.id {
            Some(id) => id.clone(),
            None => ConversationId::new(to.fresh_id().to_string()).map_err(Refusal::from)?,
        };
        let mut conversation =
            open(to, id, &self.kind, self.subject.clone(), self.audience, |conversation| {
                conversation.parent = self.parent.clone();
                conversation.parent_turn = self.parent_turn;
                conversation.meta = self.meta.clone();
            })?;
        let caller = to.caller.agent.clone();
        let initiator = Permissions::for_role("initiator");
        let participant = enter(to, &mut conversation, &caller, "initiator", initiator, Standing::Full)?;
        for invitee in &self.participants {
            if invitee.agent != caller && !takes_part(to, &conversation.id, &invitee.agent)? {
                let role = invitee.role.as_deref().unwrap_or("assistant");
                let permissions = Permissions::for_role(role).patched(&invitee.permissions);
                let agent = &invitee.agent;
                enter(to, &mut conversation, agent, role, permissions, Standing::Invited)?;
            }
        }
        let first = match &self.first {
            Some(first) => Some(turns::record_first(to, &mut conversation, first)?),
            None => None,
        };
        Ok(Created { conversation, participant, first })
    }
}

/// Ends a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Close {
    /// Which.
    pub conversation: ConversationId,
    /// How it ended; completed if not said.
    #[serde(default)]
    pub status: Option<ConversationStatus>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Close {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Conversation> {
        let conversation = readable(to, &self.conversation)?;
        if conversation.status.is_closed() {
            return Err(Refusal::ConversationClosed { conversation: conversation.id }.into());
        }
        check_may_lead(to, &conversation)?;
        let status = self.status.filter(|status| status.is_closed()).unwrap_or(ConversationStatus::Completed);
        close(to, conversation, status, self.reason.clone())
    }
}

/// Ends a conversation for whatever reason the engine has.
pub(super) fn close(
    to: &mut Write<'_>,
    mut conversation: Conversation,
    status: ConversationStatus,
    reason: Option<String>,
) -> Decided<Conversation> {
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

/// Lets a closed conversation go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reopen {
    /// Which.
    pub conversation: ConversationId,
}

impl Reopen {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Conversation> {
        let conversation = readable(to, &self.conversation)?;
        check_may_lead(to, &conversation)?;
        reopen(to, conversation)
    }
}

/// Lets a conversation go on, if it was closed.
pub(super) fn reopen(to: &mut Write<'_>, mut conversation: Conversation) -> Decided<Conversation> {
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

/// Takes part from now on. What was said before is read with the turns view, as the history permission allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Which conversation.
    pub conversation: ConversationId,
    /// As what; an assistant if not said.
    #[serde(default)]
    pub role: Option<String>,
}

/// What joining gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The conversation.
    pub conversation: Conversation,
    /// The caller's part in it.
    pub participant: Participant,
}

impl Join {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Joined> {
        to.require_member()?;
        let role = self.role.as_deref().unwrap_or("assistant");
        check_word("role", role)?;
        // One who left may come back even where outsiders may not look in.
        let before = rows::participant_of(to.db, &self.conversation, &to.caller.agent)?;
        let mut conversation = match &before {
            Some(_) => existing(to, &self.conversation)?,
            None => readable(to, &self.conversation)?,
        };
        if was_put_out(to, &self.conversation, &to.caller.agent)? && !to.caller.rights.admin {
            readable(to, &self.conversation)?;
            return Err(Refusal::NotAllowed { need: "to be invited again" }.into());
        }
        check_open(&conversation)?;
        if let Some(part) = before.as_ref().filter(|part| part.left_at.is_none()) {
            if part.standing != Standing::Invited {
                return Err(Refusal::AlreadyJoined { agent: to.caller.agent.clone() }.into());
            }
            // It was added by another, and agrees.
            accept(to, part)?;
            return Ok(Joined {
                conversation,
                participant: Participant { standing: Standing::Full, ..part.clone() },
            });
        }
        // Coming back does not widen what one was allowed before, nor does choosing a leading role for oneself.
        let (permissions, standing) = match before {
            Some(part) if part.standing == Standing::Invited => (part.permissions, Standing::Full),
            Some(part) => (part.permissions, part.standing),
            None => {
                let full = Permissions::for_role(role);
                let standing = if to.caller.rights.admin { Standing::Full } else { Standing::Guest };
                (Permissions { can_invite: false, can_remove: false, ..full }, standing)
            }
        };
        let agent = to.caller.agent.clone();
        let participant = enter(to, &mut conversation, &agent, role, permissions, standing)?;
        Ok(Joined { conversation, participant })
    }
}

/// Stops taking part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leave {
    /// Which conversation.
    pub conversation: ConversationId,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Leave {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Participant> {
        let conversation = readable(to, &self.conversation)?;
        let part = own_part(to, &conversation)?;
        Ok(depart(to, &conversation, part, self.reason.clone(), false)?)
    }
}

/// Brings somebody in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invite {
    /// Into which conversation.
    pub conversation: ConversationId,
    /// Whom, and as what.
    pub invitee: Invitee,
}

impl Invite {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Participant> {
        let mut conversation = readable(to, &self.conversation)?;
        check_open(&conversation)?;
        let need = "canInvite";
        require(to, &conversation, |may| may.can_invite, need)?;
        let role = self.invitee.role.as_deref().unwrap_or("assistant");
        check_word("role", role)?;
        if takes_part(to, &conversation.id, &self.invitee.agent)? {
            return Err(Refusal::AlreadyJoined { agent: self.invitee.agent.clone() }.into());
        }
        let permissions = Permissions::for_role(role).patched(&self.invitee.permissions);
        let standing = if to.caller.is(&self.invitee.agent) { Standing::Full } else { Standing::Invited };
        enter(to, &mut conversation, &self.invitee.agent, role, permissions, standing)
    }
}

/// Puts somebody out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remove {
    /// Of which conversation.
    pub conversation: ConversationId,
    /// Whom.
    pub agent: AgentId,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Remove {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Participant> {
        let conversation = readable(to, &self.conversation)?;
        require(to, &conversation, |may| may.can_remove, "canRemove")?;
        let part = rows::participant_of(to.db, &conversation.id, &self.agent)?;
        let part = part
            .filter(|part| part.left_at.is_none())
            .ok_or_else(|| Refusal::NoSuchParticipant { agent: self.agent.clone() })?;
        let put_out = !to.caller.is(&self.agent);
        Ok(depart(to, &conversation, part, self.reason.clone(), put_out)?)
    }
}

/// Writes a new conversation into the books.
pub(super) fn open(
    to: &mut Write<'_>,
    id: ConversationId,
    kind: &str,
    subject: Option<String>,
    audience: Audience,
    refine: impl FnOnce(&mut Conversation),
) -> Decided<Conversation> {
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
    // The opener sees its own opening although it becomes a participant only with the next line.
    let agents = Sight::list(vec![to.caller.agent.clone()]);
    let sight = match audience {
        Audience::Parties | Audience::Members => Sight::Agents(agents),
        Audience::Observers => Sight::Observed { agents, except: Sight::list(Vec::new()) },
    };
    to.emit(Fact::ConversationCreated { conversation: Box::new(conversation.clone()) }, sight)?;
    Ok(conversation)
}

/// Makes an agent a participant, new or returning.
pub(super) fn enter(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    agent: &AgentId,
    role: &str,
    permissions: Permissions,
    standing: Standing,
) -> Decided<Participant> {
    if conversation.participant_count >= i64::from(to.rules.participants) {
        return Err(too_many_participants(to));
    }
    // An agent that is hidden from whoever brings it in looks like one that is not in the address book.
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

pub(super) fn depart(
    to: &mut Write<'_>,
    conversation: &Conversation,
    mut part: Participant,
    reason: Option<String>,
    put_out: bool,
) -> rusqlite::Result<Participant> {
    // The one who leaves still sees that it left.
    let sight = sight::of_conversation(to.db, conversation)?;
    part.left_at = Some(to.now);
    let sql = "UPDATE participants SET left_at = ?3, put_out = ?4 WHERE conversation = ?1 AND agent = ?2";
    to.exec(sql, (&part.conversation, &part.agent, to.now, put_out))?;
    let mut conversation = conversation.clone();
    conversation.participant_count -= 1;
    touch(to, &mut conversation)?;
    let fact = Fact::ParticipantLeft { conversation: conversation.id, agent: part.agent.clone(), reason };
    to.emit(fact, sight)?;
    Ok(part)
}

/// Writes the counters down and moves the conversation's time on.
pub(super) fn touch(to: &Write<'_>, conversation: &mut Conversation) -> rusqlite::Result<()> {
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

/// The conversation of that name.
pub(super) fn existing(to: &Write<'_>, id: &ConversationId) -> Decided<Conversation> {
    rows::conversation_by_id(to.db, id)?
        .ok_or_else(|| Refusal::NoSuchConversation { conversation: id.clone() }.into())
}

/// The conversation of that name, if the caller may know of it: it takes part (even if it may not read), may observe,
/// or runs the office.
pub(super) fn readable(to: &Write<'_>, id: &ConversationId) -> Decided<Conversation> {
    let conversation = existing(to, id)?;
    let takes_part = to.caller.rights.member && takes_part(to, id, &to.caller.agent)?;
    if takes_part || sight::reads_conversation(to.db, to.caller, &conversation)?.is_some() {
        return Ok(conversation);
    }
    Err(Refusal::NoSuchConversation { conversation: id.clone() }.into())
}

/// Refuses what adds to a conversation that has ended.
pub(super) fn check_open(conversation: &Conversation) -> Decided<()> {
    if conversation.status.is_closed() {
        return Err(Refusal::ConversationClosed { conversation: conversation.id.clone() }.into());
    }
    Ok(())
}

/// The caller's present part in a conversation.
pub(super) fn own_part(to: &Write<'_>, conversation: &Conversation) -> Decided<Participant> {
    rows::participant_of(to.db, &conversation.id, &to.caller.agent)?
        .filter(|part| part.left_at.is_none())
        .ok_or_else(|| Refusal::NotAParticipant { conversation: conversation.id.clone() }.into())
}

/// Refuses callers whose part lacks a permission. Those who run the office need none.
pub(super) fn require(
    to: &Write<'_>,
    conversation: &Conversation,
    may: impl Fn(&Permissions) -> bool,
    need: &'static str,
) -> Decided<()> {
    match own_part(to, conversation) {
        Ok(part) if may(&part.permissions) => Ok(()),
        _ if to.caller.rights.admin => Ok(()),
        Ok(_) => Err(Refusal::ParticipantMayNot { conversation: conversation.id.clone(), need }.into()),
        Err(halt) => Err(halt),
    }
}

/// Refuses callers that may not close or reopen a conversation, or change its task: those that take no part, and guests.
/// Administrators always may.
pub(super) fn check_may_lead(to: &Write<'_>, conversation: &Conversation) -> Decided<()> {
    if to.caller.rights.admin {
        return Ok(());
    }
    check_standing(conversation, &own_part(to, conversation)?)
}

/// Refuses guests.
pub(super) fn check_standing(conversation: &Conversation, part: &Participant) -> Decided<()> {
    match part.standing {
        Standing::Full | Standing::Invited => Ok(()),
        Standing::Guest => {
            let need = "to have been invited";
            Err(Refusal::ParticipantMayNot { conversation: conversation.id.clone(), need }.into())
        }
    }
}

/// Notes that one who was invited takes part of its own accord.
pub(super) fn accept(to: &Write<'_>, part: &Participant) -> rusqlite::Result<()> {
    if part.standing == Standing::Invited {
        let sql = "UPDATE participants SET standing = ?3 WHERE conversation = ?1 AND agent = ?2";
        to.exec(sql, (&part.conversation, &part.agent, Standing::Full))?;
    }
    Ok(())
}

/// Whether an agent takes part now.
pub(super) fn takes_part(to: &Write<'_>, id: &ConversationId, agent: &AgentId) -> rusqlite::Result<bool> {
    Ok(rows::participant_of(to.db, id, agent)?.is_some_and(|part| part.left_at.is_none()))
}

/// Whether an agent was put out by somebody else; it comes back only by invitation.
pub(super) fn was_put_out(to: &Write<'_>, id: &ConversationId, agent: &AgentId) -> rusqlite::Result<bool> {
    let sql =
        "SELECT put_out FROM participants WHERE conversation = ?1 AND agent = ?2 AND left_at IS NOT NULL";
    Ok(one(to.db, sql, (id, agent), |row| row.get(0))?.unwrap_or(false))
}

/// Refuses to bring in more participants at once than one command may.
pub(super) fn check_entries(to: &Write<'_>, entries: usize) -> Decided<()> {
    let limit = to.rules.changes_per_command;
    if entries > limit as usize {
        let what = "participants at once; invite the others one by one";
        return Err(Refusal::TooMany { what, limit: limit.into() }.into());
    }
    Ok(())
}

fn too_many_participants(to: &Write<'_>) -> super::Stop {
    Refusal::TooMany { what: "participants", limit: to.rules.participants.into() }.into()
}

pub(super) fn check_word(field: &'static str, word: &str) -> Decided<()> {
    if word.is_empty() || word.len() > 64 || word.chars().any(char::is_control) {
        return Err(Refusal::BadValue { field, why: "one word of 1 to 64 bytes" }.into());
    }
    Ok(())
}
