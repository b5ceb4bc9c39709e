//! Tasks: made, assigned, moved on, ended.

use serde::{Deserialize, Serialize};

use super::agents::merge;
use super::conversations::{self, Invitee};
use super::{Decided, Stop, Write};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Audience, Conversation, ConversationStatus, Fact, Json, Permissions, PermissionsPatch, Standing,
    Task, TaskId, TaskStatus,
};
use crate::sight;
use crate::store::rows;

/// Makes a task and the conversation of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateTask {
    /// Its name; made up if absent.
    #[serde(default)]
    pub id: Option<TaskId>,
    /// What it is, in a line.
    #[serde(default)]
    pub title: Option<String>,
    /// What it is, at length.
    #[serde(default)]
    pub description: Option<String>,
    /// Where it starts; open if not said.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// Who answers for it; the caller if not said. Agents of other realms are written in their door's form.
    #[serde(default)]
    pub owner: Option<String>,
    /// Who works on it.
    #[serde(default)]
    pub assignee: Option<AgentId>,
    /// Who else takes part in its conversation.
    #[serde(default)]
    pub participants: Vec<Invitee>,
    /// Whether observers of the realm may see it.
    pub audience: Audience,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
}

impl CreateTask {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Task> {
        to.require_member()?;
        if let Some(id) = &self.id {
            if rows::task_by_id(to.db, id)?.is_some() {
                return Err(Refusal::TaskExists { task: id.clone() }.into());
            }
            // A label that letters have used may become a task for its participants; reading along is not enough.
            if rows::conversation_by_id(to.db, id)?.is_some() {
                let conversation = changeable(to, id)?;
                self.check_newcomers(to, &conversation)?;
            }
        }
        if let Some(assignee) = &self.assignee {
            to.known_agent(assignee)?;
        }
        conversations::check_entries(to, self.participants.len())?;
        for invitee in &self.participants {
            conversations::check_word("role", invitee.role.as_deref().unwrap_or("worker"))?;
        }
        let id = match &self.id {
            Some(id) => id.clone(),
            None => TaskId::new(to.fresh_id().to_string()).map_err(Refusal::from)?,
        };
        // Whoever makes a task of a conversation that goes on already does not lead it by that.
        let (mut conversation, role) = match rows::conversation_by_id(to.db, &id)? {
            Some(conversation) => (conversation, "worker"),
            None => {
                let title = self.title.clone();
                let opened = conversations::open(to, id.clone(), "agent-task", title, self.audience, |_| {})?;
                (opened, "initiator")
            }
        };
        let caller = to.caller.agent.clone();
        join(to, &mut conversation, &caller, role, &PermissionsPatch::default())?;
        if let Some(assignee) = &self.assignee {
            join(to, &mut conversation, assignee, "worker", &PermissionsPatch::default())?;
        }
        for invitee in &self.participants {
            let role = invitee.role.as_deref().unwrap_or("worker");
            join(to, &mut conversation, &invitee.agent, role, &invitee.permissions)?;
        }
        let owner = self.owner.clone().unwrap_or_else(|| caller.to_string());
        let status = self.status.unwrap_or(TaskStatus::Open);
        let mut task = Task {
            id,
            title: self.title.clone(),
            description: self.description.clone(),
            status,
            contributors: Vec::new(),
            owner,
            assignee: self.assignee.clone(),
            result: None,
            meta: self.meta.clone(),
            created_at: to.now,
            updated_at: to.now,
            ended_at: status.is_final().then_some(to.now),
            seq: to.next_seq(),
        };
        write(to, &task)?;
        contribute(to, &task.id, &task.owner)?;
        if let Some(assignee) = &task.assignee {
            contribute(to, &task.id, assignee.as_str())?;
        }
        task.contributors = rows::contributors_of(to.db, &task.id)?;
        let sight = sight::of_conversation(to.db, &conversation)?;
        to.emit(Fact::TaskCreated { task: Box::new(task.clone()) }, sight.clone())?;
        if let Some(agent) = task.assignee.clone() {
            to.emit(Fact::TaskAssigned { task: task.id.clone(), agent }, sight)?;
        }
        if status.is_final() {
            end(to, &task, conversation)?;
        }
        Ok(task)
    }
}

impl CreateTask {
    /// Making a task of a conversation brings agents into it only if the caller may invite them.
    fn check_newcomers(&self, to: &Write<'_>, conversation: &Conversation) -> Decided<()> {
        for agent in self.assignee.iter().chain(self.participants.iter().map(|invitee| &invitee.agent)) {
            if !conversations::takes_part(to, &conversation.id, agent)? {
                conversations::require(to, conversation, |may| may.can_invite, "canInvite")?;
            }
        }
        Ok(())
    }
}

/// Changes what is given and leaves the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateTask {
    /// Which.
    pub task: TaskId,
    /// What it is, in a line.
    #[serde(default)]
    pub title: Option<String>,
    /// What it is, at length.
    #[serde(default)]
    pub description: Option<String>,
    /// Where it is now. Completing or failing ends its conversation; opening it again lets it go on.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// Who works on it now.
    #[serde(default)]
    pub assignee: Option<AgentId>,
    /// Whether nobody works on it now, unless somebody is named.
    #[serde(default)]
    pub unassign: bool,
    /// What came of it.
    #[serde(default)]
    pub result: Option<Json>,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
    /// Whether `meta` is laid over the present one, member by member, or replaces it.
    #[serde(default)]
    pub merge_meta: bool,
}

impl UpdateTask {
    /// Changes nothing yet.
    #[must_use]
    pub fn of(task: TaskId) -> Self {
        Self {
            task,
            title: None,
            description: None,
            status: None,
            assignee: None,
            unassign: false,
            result: None,
            meta: None,
            merge_meta: false,
        }
    }

    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Task> {
        let (mut task, mut conversation) = workable(to, &self.task)?;
        if let Some(assignee) = &self.assignee {
            to.known_agent(assignee)?;
        }
        let previous = task.status;
        let reassigned = self.assignee.as_ref().filter(|new| task.assignee.as_ref() != Some(new)).cloned();
        for (field, given) in [(&mut task.title, &self.title), (&mut task.description, &self.description)] {
            if given.is_some() {
                field.clone_from(given);
            }
        }
        if self.result.is_some() {
            task.result.clone_from(&self.result);
        }
        if let Some(meta) = &self.meta {
            task.meta = Some(if self.merge_meta { merge(task.meta.as_ref(), meta) } else { meta.clone() });
        }
        task.assignee = self.assignee.clone().or(task.assignee.filter(|_| !self.unassign));
        task.status = self.status.unwrap_or(task.status);
        task.updated_at = to.now;
        task.ended_at = match (task.status.is_final(), previous.is_final()) {
            (true, false) => Some(to.now),
            (true, true) => task.ended_at,
            (false, _) => None,
        };
        write(to, &task)?;
        if let Some(agent) = reassigned {
            join(to, &mut conversation, &agent, "worker", &PermissionsPatch::default())?;
            contribute(to, &task.id, agent.as_str())?;
            let sight = sight::of_conversation(to.db, &conversation)?;
            to.emit(Fact::TaskAssigned { task: task.id.clone(), agent }, sight)?;
        }
        if task.status != previous {
            moved_on(to, &task, previous, conversation)?;
        }
        task.contributors = rows::contributors_of(to.db, &task.id)?;
        Ok(task)
    }
}

fn moved_on(
    to: &mut Write<'_>,
    task: &Task,
    previous: TaskStatus,
    conversation: Conversation,
) -> Decided<()> {
    let sight = sight::of_conversation(to.db, &conversation)?;
    let fact = Fact::TaskStatusChanged { task: task.id.clone(), previous, current: task.status };
    to.emit(fact, sight.clone())?;
    if task.status == TaskStatus::Completed {
        to.emit(Fact::TaskCompleted { task: task.id.clone(), result: task.result.clone() }, sight)?;
    }
    if task.status.is_final() {
        end(to, task, conversation)
    } else {
        Ok(conversations::reopen(to, conversation).map(drop)?)
    }
}

/// Ends the conversation of a task that has ended.
fn end(to: &mut Write<'_>, task: &Task, conversation: Conversation) -> Decided<()> {
    if conversation.status.is_closed() {
        return Ok(());
    }
    let status = match task.status {
        TaskStatus::Failed => ConversationStatus::Failed,
        _ => ConversationStatus::Completed,
    };
    Ok(conversations::close(to, conversation, status, None).map(drop)?)
}

/// Notes that somebody has had a part in a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddContributor {
    /// Which task.
    pub task: TaskId,
    /// Who; agents of other realms are written in their door's form.
    pub contributor: String,
}

impl AddContributor {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Task> {
        let (mut task, _) = workable(to, &self.task)?;
        contribute(to, &task.id, &self.contributor)?;
        task.contributors = rows::contributors_of(to.db, &task.id)?;
        Ok(task)
    }
}

/// The task and its conversation, if the caller may change them: it takes part and may speak there, or runs the office.
fn workable(to: &Write<'_>, id: &TaskId) -> Decided<(Task, Conversation)> {
    let none = || Refusal::NoSuchTask { task: id.clone() };
    let task = rows::task_by_id(to.db, id)?.ok_or_else(none)?;
    match changeable(to, id) {
        Err(Stop::Refused(Refusal::NoSuchConversation { .. })) => Err(none().into()),
        changeable => Ok((task, changeable?)),
    }
}

/// A task's conversation, if the caller may change the task.
fn changeable(to: &Write<'_>, id: &TaskId) -> Decided<Conversation> {
    let conversation = conversations::readable(to, id)?;
    conversations::check_may_lead(to, &conversation)?;
    conversations::require(to, &conversation, |may| may.can_send, "canSend")?;
    Ok(conversation)
}

fn join(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    agent: &AgentId,
    role: &str,
    given: &PermissionsPatch,
) -> Decided<()> {
    if !conversations::takes_part(to, &conversation.id, agent)? {
        let permissions = Permissions::for_role(role).patched(given);
        let standing = if to.caller.is(agent) { Standing::Full } else { Standing::Invited };
        conversations::check_participants(to, conversation.participant_count, 1)?;
        conversations::enter(to, conversation, agent, role, permissions, standing)?;
    }
    Ok(())
}

fn contribute(to: &Write<'_>, task: &TaskId, contributor: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO task_contributors(task, contributor, place)
               VALUES(?1, ?2, (SELECT count(*) FROM task_contributors WHERE task = ?1)) ON CONFLICT DO NOTHING";
    to.exec(sql, (task, contributor)).map(drop)
}

fn write(to: &Write<'_>, task: &Task) -> rusqlite::Result<()> {
    let sql = "INSERT INTO tasks(id, title, description, status, owner, assignee, result, meta, created_at, updated_at,
                   ended_at, seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)
               ON CONFLICT(id) DO UPDATE SET title=?2, description=?3, status=?4, assignee=?6, result=?7, meta=?8,
                   updated_at=?10, ended_at=?11";
    let params = rusqlite::params![
        task.id,
        task.title,
        task.description,
        task.status,
        task.owner,
        task.assignee,
        task.result,
        task.meta,
        task.created_at,
        task.updated_at,
        task.ended_at,
        task.seq,
    ];
    to.exec(sql, params).map(drop)
}
