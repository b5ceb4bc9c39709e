//! Tasks: creating, assigning, updating and listing them.

use std::sync::Arc;

use posthaste_engine::nouns::{Audience, TaskId, TaskStatus};
use posthaste_engine::verbs::tasks::{CreateTask, UpdateTask};
use posthaste_engine::views::TaskQuery;
use posthaste_wire::map::task::{CreateParams, ListParams, ListResult, TaskParams, TaskResult};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::nouns;
use super::session::{Session, fresh};

fn status(given: Option<&str>) -> Result<Option<TaskStatus>, DoorError> {
    given
        .map(|word| {
            TaskStatus::from_word(word)
                .ok_or_else(|| DoorError::params("status: open, in_progress, blocked, completed or failed"))
        })
        .transpose()
}

fn task_id(text: &str) -> Result<TaskId, DoorError> {
    Ok(TaskId::new(text)?)
}

/// `map/tasks/create`.
pub(super) async fn create(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: CreateParams = params(given)?;
    let task = match asked.task {
        Some(task) => task,
        None => params(given)?,
    };
    let id = task.id.unwrap_or_else(|| fresh("task-"));
    let verb = CreateTask {
        id: Some(task_id(&id)?),
        title: task.title,
        description: task.description,
        status: status(task.status.as_deref())?,
        owner: None,
        assignee: task.assignee.flatten().as_deref().map(from_wire::agent).transpose()?,
        participants: Vec::new(),
        audience: Audience::Observers,
        meta: task.meta.as_ref().map(from_wire::json),
    };
    let task = at.engine.submit(&session.caller(), verb).await?;
    Ok(Answer::of(&TaskResult { task: nouns::task(&task) }))
}

/// `map/tasks/assign`.
pub(super) async fn assign(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: TaskParams = params(given)?;
    let agent = asked.agent_id.ok_or_else(|| DoorError::params("agentId: who is to do it"))?;
    let verb =
        UpdateTask { assignee: Some(from_wire::agent(&agent)?), ..UpdateTask::of(task_id(&asked.task_id)?) };
    let task = at.engine.submit(&session.task_caller(), verb).await?;
    Ok(Answer::of(&TaskResult { task: nouns::task(&task) }))
}

/// `map/tasks/update`.
pub(super) async fn update(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let TaskParams { task_id: id, changes, .. } = params(given)?;
    let verb = UpdateTask {
        title: changes.title,
        description: changes.description,
        status: status(changes.status.as_deref())?,
        unassign: changes.assignee == Some(None),
        assignee: changes.assignee.flatten().as_deref().map(from_wire::agent).transpose()?,
        result: changes.result.as_ref().map(from_wire::json),
        meta: changes.meta.as_ref().map(from_wire::json),
        merge_meta: true,
        ..UpdateTask::of(task_id(&id)?)
    };
    let task = at.engine.submit(&session.task_caller(), verb).await?;
    Ok(Answer::of(&TaskResult { task: nouns::task(&task) }))
}

/// `map/tasks/get`.
pub(super) async fn get(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let TaskParams { task_id: id, .. } = params(given)?;
    let (caller, id) = (session.caller(), task_id(&id)?);
    let task = at.engine.read(move |view| view.task(&caller, &id)).await?;
    Ok(Answer::of(&TaskResult { task: nouns::task(&task) }))
}

/// `map/tasks/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ListParams = params(given)?;
    let words: Vec<&str> = match &asked.filter.status {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words
            .iter()
            .map(|word| word.as_str().ok_or_else(|| DoorError::params("status: words")))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(DoorError::params("status: a word or a list of words")),
    };
    let mut statuses = Vec::new();
    for word in words {
        statuses.extend(status(Some(word))?);
    }
    let after = match asked.cursor.as_deref() {
        Some(cursor) => cursor.parse().map_err(|_| DoorError::params("cursor: not one of ours"))?,
        None => 0,
    };
    let query = TaskQuery {
        statuses,
        assignee: asked.filter.assignee.as_deref().map(from_wire::agent).transpose()?,
        owner: None,
        after,
        newest_first: false,
        limit: from_wire::limit(asked.limit.as_ref(), 100, 1000)?,
    };
    let caller = session.caller();
    let page = at.engine.read(move |view| view.tasks(&caller, &query)).await?;
    Ok(Answer::of(&ListResult {
        tasks: page.items.iter().map(nouns::task).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}
