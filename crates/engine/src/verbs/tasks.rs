//! Tasks: creating, assigning and updating them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::agents::merge;
use super::conversations::{self, Invitee};
use super::{Decide, Decided, Stop, Write};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Audience, Conversation, ConversationStatus, Fact, Json, Permissions, PermissionsPatch, Standing,
    Task, TaskId, TaskStatus,
};
use crate::sight;
use crate::store::rows;

/// Creates a task and the conversation of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateTask {
    /// Its id; generated if absent.
    #[serde(default)]
    pub id: Option<TaskId>,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// Its description.
    #[serde(default)]
    pub description: Option<String>,
    /// Its first status; open if absent.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// Its owner; the caller if absent. Agents of other realms are written in their door's form.
    #[serde(default)]
    pub owner: Option<String>,
    /// The agent that works on it.
    #[serde(default)]
    pub assignee: Option<AgentId>,
    /// Other participants of its conversation.
    #[serde(default)]
    pub participants: Vec<Invitee>,
    /// Whether observers of the realm may see it.
    pub audience: Audience,
    /// Other data.
    #[serde(default)]
    pub meta: Option<Json>,
}

impl CreateTask {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Task> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(|to: &mut Write<'_>| self.write(to, plan))
    }

    fn plan(&self, to: &Decide<'_>) -> Decided<NewTask> {
        to.require_member()?;
        let mut conversation = None;
        if let Some(id) = &self.id {
            if rows::task_by_id(to.db, id)?.is_some() {
                return Err(Refusal::TaskExists { task: id.clone() }.into());
            }
            // Participants may turn a conversation into a task; the right to read it is not enough.
            if rows::conversation_by_id(to.db, id)?.is_some() {
                let known = changeable(to, id)?;
                self.check_newcomers(to, &known)?;
                conversation = Some(known);
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
        let mut entering = BTreeSet::new();
        for agent in [&to.caller.agent].into_iter().chain(self.others()) {
            if !conversations::takes_part(to, &id, agent)? {
                entering.insert(agent);
            }
        }
        let present = conversation.as_ref().map_or(0, |conversation| conversation.participant_count);
        conversations::check_participants(to, present, entering.len())?;
        Ok(NewTask { id, conversation })
    }

    /// The agents that take part in the conversation besides the caller.
    fn others(&self) -> impl Iterator<Item = &AgentId> {
        self.assignee.iter().chain(self.participants.iter().map(|invitee| &invitee.agent))
    }

    /// Refuses newcomers to an existing conversation if the caller may not invite them.
    fn check_newcomers(&self, to: &Decide<'_>, conversation: &Conversation) -> Decided<()> {
        for agent in self.others() {
            if !conversations::takes_part(to, &conversation.id, agent)? {
                conversations::require(to, conversation, |may| may.can_invite, "canInvite")?;
            }
        }
        Ok(())
    }

    fn write(&self, to: &mut Write<'_>, NewTask { id, conversation }: NewTask) -> rusqlite::Result<Task> {
        // Turning an existing conversation into a task does not make the caller its initiator.
        let (mut conversation, role) = match conversation {
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

/// A task that is to be created, in a new conversation or an existing one.
struct NewTask {
    id: TaskId,
    conversation: Option<Conversation>,
}

/// Changes the given fields of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateTask {
    /// The task.
    pub task: TaskId,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// Its description.
    #[serde(default)]
    pub description: Option<String>,
    /// Its status. Completing or failing closes its conversation; opening it again reopens that.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// Its new assignee.
    #[serde(default)]
    pub assignee: Option<AgentId>,
    /// Whether it loses its assignee, if no new one is named.
    #[serde(default)]
    pub unassign: bool,
    /// Its result.
    #[serde(default)]
    pub result: Option<Json>,
    /// Other data.
    #[serde(default)]
    pub meta: Option<Json>,
    /// Whether `meta` is merged into the present one, member by member, or replaces it.
    #[serde(default)]
    pub merge_meta: bool,
}

impl UpdateTask {
    /// An update that changes nothing yet.
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

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Task> + use<'v>> {
        let (mut task, conversation) = workable(to, &self.task)?;
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
        if let Some(agent) = &reassigned
            && !conversations::takes_part(to, &conversation.id, agent)?
        {
            conversations::check_participants(to, conversation.participant_count, 1)?;
        }
        let update = TaskUpdate { task, previous, reassigned, conversation };
        Ok(|to: &mut Write<'_>| update.write(to))
    }
}

/// A task as it will be.
struct TaskUpdate {
    task: Task,
    previous: TaskStatus,
    /// The new assignee.
    reassigned: Option<AgentId>,
    conversation: Conversation,
}

impl TaskUpdate {
    fn write(self, to: &mut Write<'_>) -> rusqlite::Result<Task> {
        let Self { mut task, previous, reassigned, mut conversation } = self;
        write(to, &task)?;
        if let Some(agent) = reassigned {
            join(to, &mut conversation, &agent, "worker", &PermissionsPatch::default())?;
            contribute(to, &task.id, agent.as_str())?;
            let sight = sight::of_conversation(to.db, &conversation)?;
            to.emit(Fact::TaskAssigned { task: task.id.clone(), agent }, sight)?;
        }
        if task.status != previous {
            change_status(to, &task, previous, conversation)?;
        }
        task.contributors = rows::contributors_of(to.db, &task.id)?;
        Ok(task)
    }
}

/// Emits the change of a task's status, and closes or reopens its conversation.
fn change_status(
    to: &mut Write<'_>,
    task: &Task,
    previous: TaskStatus,
    conversation: Conversation,
) -> rusqlite::Result<()> {
    let sight = sight::of_conversation(to.db, &conversation)?;
    let fact = Fact::TaskStatusChanged { task: task.id.clone(), previous, current: task.status };
    to.emit(fact, sight.clone())?;
    if task.status == TaskStatus::Completed {
        to.emit(Fact::TaskCompleted { task: task.id.clone(), result: task.result.clone() }, sight)?;
    }
    if task.status.is_final() {
        end(to, task, conversation)
    } else {
        conversations::reopen(to, conversation).map(drop)
    }
}

/// Closes the conversation of a task that has ended.
fn end(to: &mut Write<'_>, task: &Task, conversation: Conversation) -> rusqlite::Result<()> {
    if conversation.status.is_closed() {
        return Ok(());
    }
    let status = match task.status {
        TaskStatus::Failed => ConversationStatus::Failed,
        _ => ConversationStatus::Completed,
    };
    conversations::close(to, conversation, status, None).map(drop)
}

/// Adds a contributor to a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddContributor {
    /// The task.
    pub task: TaskId,
    /// The contributor; agents of other realms are written in their door's form.
    pub contributor: String,
}

impl AddContributor {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Task> + use<'v>> {
        let (mut task, _) = workable(to, &self.task)?;
        Ok(|to: &mut Write<'_>| {
            contribute(to, &task.id, &self.contributor)?;
            task.contributors = rows::contributors_of(to.db, &task.id)?;
            Ok(task)
        })
    }
}

/// The task and its conversation, if the caller may change them: a participant that may send, or an administrator.
fn workable(to: &Decide<'_>, id: &TaskId) -> Decided<(Task, Conversation)> {
    let none = || Refusal::NoSuchTask { task: id.clone() };
    let task = rows::task_by_id(to.db, id)?.ok_or_else(none)?;
    match changeable(to, id) {
        Err(Stop::Refused(Refusal::NoSuchConversation { .. })) => Err(none().into()),
        changeable => Ok((task, changeable?)),
    }
}

/// A task's conversation, if the caller may change the task.
fn changeable(to: &Decide<'_>, id: &TaskId) -> Decided<Conversation> {
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
) -> rusqlite::Result<()> {
    if !conversations::takes_part(to, &conversation.id, agent)? {
        let permissions = Permissions::for_role(role).patched(given);
        let standing = if to.caller.is(agent) { Standing::Full } else { Standing::Invited };
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
