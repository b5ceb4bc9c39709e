//! The verbs of conversations: opening and closing them, joining and leaving, inviting and removing.

mod parts;

pub(super) use parts::{
    accept, check_entries, check_may_lead, check_open, check_participants, check_standing, check_word, close,
    depart, enter, existing, open, own_part, readable, reopen, require, takes_part, touch, was_removed,
};

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::turns::{self, FirstTurn};
use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Audience, Conversation, ConversationId, ConversationStatus, Json, Participant, Permissions,
    PermissionsPatch, Standing, Turn, TurnId,
};
use crate::store::rows;

/// Opens a conversation with its participants and its first turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Create {
    /// Its id; generated if absent.
    #[serde(default)]
    pub id: Option<ConversationId>,
    /// What it is for.
    pub kind: String,
    /// Its subject.
    #[serde(default)]
    pub subject: Option<String>,
    /// The conversation it comes out of.
    #[serde(default)]
    pub parent: Option<ConversationId>,
    /// The turn it comes out of.
    #[serde(default)]
    pub parent_turn: Option<TurnId>,
    /// The participants besides the caller.
    #[serde(default)]
    pub participants: Vec<Invitee>,
    /// The first turn.
    #[serde(default)]
    pub first: Option<FirstTurn>,
    /// Whether observers of the realm may read it.
    pub audience: Audience,
    /// Any other data.
    #[serde(default)]
    pub meta: Option<Json>,
}

/// An agent that is invited to a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invitee {
    /// The agent.
    pub agent: AgentId,
    /// Its role; assistant if absent.
    #[serde(default)]
    pub role: Option<String>,
    /// Where its permissions differ from the role's.
    #[serde(default)]
    pub permissions: PermissionsPatch,
}

/// The result of opening a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The conversation.
    pub conversation: Conversation,
    /// The caller as a participant.
    pub participant: Participant,
    /// The first turn.
    pub first: Option<Turn>,
}

impl Create {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Created> + use<'v>> {
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
            // A turn without its conversation.
            (None, Some(_)) => return Err(Refusal::NoSuchTurn.into()),
            (None, None) => {}
        }
        for invitee in &self.participants {
            check_word("role", invitee.role.as_deref().unwrap_or("assistant"))?;
        }
        if self.participants.len() >= to.rules.participants as usize {
            return Err(parts::too_many_participants(to));
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
        Ok(move |to: &mut Write<'_>| self.write(to, id))
    }

    fn write(&self, to: &mut Write<'_>, id: ConversationId) -> rusqlite::Result<Created> {
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

/// Closes a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Close {
    /// The conversation.
    pub conversation: ConversationId,
    /// How it ended; completed if absent.
    #[serde(default)]
    pub status: Option<ConversationStatus>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Close {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Conversation> + use<'v>> {
        let conversation = readable(to, &self.conversation)?;
        if conversation.status.is_closed() {
            return Err(Refusal::ConversationClosed { conversation: conversation.id }.into());
        }
        check_may_lead(to, &conversation)?;
        let status = self.status.filter(|status| status.is_closed()).unwrap_or(ConversationStatus::Completed);
        Ok(move |to: &mut Write<'_>| close(to, conversation, status, self.reason.clone()))
    }
}

/// Reopens a closed conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reopen {
    /// The conversation.
    pub conversation: ConversationId,
}

impl Reopen {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Conversation> + use<'v>> {
        let conversation = readable(to, &self.conversation)?;
        check_may_lead(to, &conversation)?;
        Ok(move |to: &mut Write<'_>| reopen(to, conversation))
    }
}

/// Makes the caller a participant. Earlier turns are read with the turns view, as the history permission allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// The conversation.
    pub conversation: ConversationId,
    /// The caller's role; assistant if absent.
    #[serde(default)]
    pub role: Option<String>,
}

/// The result of joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The conversation.
    pub conversation: Conversation,
    /// The caller as a participant.
    pub participant: Participant,
}

impl Join {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Joined> + use<'v>> {
        to.require_member()?;
        let role = self.role.as_deref().unwrap_or("assistant");
        check_word("role", role)?;
        // A former participant may return even where outsiders may not read.
        let before = rows::participant_of(to.db, &self.conversation, &to.caller.agent)?;
        let mut conversation = match &before {
            Some(_) => existing(to, &self.conversation)?,
            None => readable(to, &self.conversation)?,
        };
        if was_removed(to, &self.conversation, &to.caller.agent)? && !to.caller.rights.admin {
            readable(to, &self.conversation)?;
            return Err(Refusal::NotAllowed { need: "to be invited again" }.into());
        }
        check_open(&conversation)?;
        let present = before.as_ref().is_some_and(|part| part.left_at.is_none());
        // Neither returning nor choosing a leading role widens what the caller was permitted before.
        let (permissions, standing) = match &before {
            Some(part) if present && part.standing != Standing::Invited => {
                return Err(Refusal::AlreadyJoined { agent: to.caller.agent.clone() }.into());
            }
            Some(part) if part.standing == Standing::Invited => (part.permissions, Standing::Full),
            Some(part) => (part.permissions, part.standing),
            None => {
                let full = Permissions::for_role(role);
                let standing = if to.caller.rights.admin { Standing::Full } else { Standing::Guest };
                (Permissions { can_invite: false, can_remove: false, ..full }, standing)
            }
        };
        if !present {
            check_participants(to, conversation.participant_count, 1)?;
        }
        Ok(move |to: &mut Write<'_>| match before.filter(|_| present) {
            Some(part) => {
                accept(to, &part)?;
                Ok(Joined { conversation, participant: Participant { standing: Standing::Full, ..part } })
            }
            None => {
                let agent = to.caller.agent.clone();
                let participant = enter(to, &mut conversation, &agent, role, permissions, standing)?;
                Ok(Joined { conversation, participant })
            }
        })
    }
}

/// Ends the caller's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leave {
    /// The conversation.
    pub conversation: ConversationId,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Leave {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Participant> + use<'v>> {
        let conversation = readable(to, &self.conversation)?;
        let part = own_part(to, &conversation)?;
        Ok(move |to: &mut Write<'_>| depart(to, &conversation, part, self.reason.clone(), false))
    }
}

/// Makes another agent a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invite {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent and its role.
    pub invitee: Invitee,
}

impl Invite {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Participant> + use<'v>> {
        let mut conversation = readable(to, &self.conversation)?;
        check_open(&conversation)?;
        require(to, &conversation, |may| may.can_invite, "canInvite")?;
        let role = self.invitee.role.as_deref().unwrap_or("assistant");
        check_word("role", role)?;
        let agent = &self.invitee.agent;
        if takes_part(to, &conversation.id, agent)? {
            return Err(Refusal::AlreadyJoined { agent: agent.clone() }.into());
        }
        check_participants(to, conversation.participant_count, 1)?;
        let permissions = Permissions::for_role(role).patched(&self.invitee.permissions);
        let standing = if to.caller.is(agent) { Standing::Full } else { Standing::Invited };
        Ok(move |to: &mut Write<'_>| enter(to, &mut conversation, agent, role, permissions, standing))
    }
}

/// Removes a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remove {
    /// The conversation.
    pub conversation: ConversationId,
    /// The participant.
    pub agent: AgentId,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Remove {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Participant> + use<'v>> {
        let conversation = readable(to, &self.conversation)?;
        require(to, &conversation, |may| may.can_remove, "canRemove")?;
        let part = rows::participant_of(to.db, &conversation.id, &self.agent)?;
        let part = part
            .filter(|part| part.left_at.is_none())
            .ok_or_else(|| Refusal::NoSuchParticipant { agent: self.agent.clone() })?;
        let removed = !to.caller.is(&self.agent);
        Ok(move |to: &mut Write<'_>| depart(to, &conversation, part, self.reason.clone(), removed))
    }
}
