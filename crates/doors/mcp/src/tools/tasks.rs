//! Tasks and their messages: requests and responses, interrupts, broadcasts, and the end of a task.

use posthaste_engine::nouns::{
    Address, AgentId, Audience, Caller, ConversationId, MessageId, Priority, TaskId, TaskStatus,
};
use posthaste_engine::verbs::conversations::Invitee;
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage, SendReceipt};
use posthaste_engine::verbs::tasks::{AddContributor, CreateTask, UpdateTask};
use posthaste_engine::views::{InboxMessage, InboxQuery};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mcp::answers::{IgnoredBroadcast, OpenedTask, TaskDuplicate, TaskEnded, TaskMessage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{id, int, within};
use super::super::attachments::Given;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::meta::{self, TaskResult};
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::wait::{MAX_WAIT_SECONDS, wait, waited};
use super::{inbox, mail};
use posthaste_host::address;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(send_request(SendRequestArgs), full, ADDS reaches_agents),
    tool!(send_response(SendResponseArgs), full, ADDS reaches_agents),
    tool!(send_interrupt(SendInterruptArgs), full, ADDS reaches_agents),
    tool!(send_broadcast(SendBroadcastArgs), full, ADDS reaches_agents),
    tool!(task_complete(TaskCompleteArgs), full, ENDS reaches_agents),
    tool!(acknowledge_broadcast(AcknowledgeBroadcastArgs), full, ADDS reaches_agents),
    tool!(ignore_broadcast(IgnoreBroadcastArgs), full, ADDS),
    tool!(await_message(AwaitMessageArgs), full, READS),
];

/// Ask an agent for work. Without task_id a task is opened, with you as its owner.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendRequestArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    target: String,
    subject: String,
    body: String,
    task_id: Option<String>,
    registration_token: Option<String>,
}

/// Answer the latest request of target in a task, or the one with message_id.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendResponseArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    target: String,
    subject: String,
    body: String,
    task_id: String,
    message_id: Option<i64>,
    registration_token: Option<String>,
}

/// Interrupt an agent's work on a task.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendInterruptArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    target: String,
    subject: String,
    body: String,
    task_id: String,
    registration_token: Option<String>,
}

/// Tell every agent of the project something about a task.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendBroadcastArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    subject: String,
    body: String,
    task_id: String,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    #[serde(default)]
    targets: Vec<String>,
    registration_token: Option<String>,
}

/// End a task with its result; its participants are told.
#[derive(Debug, Deserialize, JsonSchema)]
struct TaskCompleteArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    task_id: String,
    finish_message: String,
    registration_token: Option<String>,
}

/// Acknowledge the latest unread broadcast, or the one with message_id.
#[derive(Debug, Deserialize, JsonSchema)]
struct AcknowledgeBroadcastArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    /// text for the other agent
    note: Option<String>,
    message_id: Option<i64>,
    registration_token: Option<String>,
}

/// Mark the latest unread broadcast, or the one with message_id, as read without answering.
#[derive(Debug, Deserialize, JsonSchema)]
struct IgnoreBroadcastArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    #[expect(dead_code, reason = "taken for clients that give it")]
    reason: Option<String>,
    message_id: Option<i64>,
    registration_token: Option<String>,
}

/// Wait for the next unread message (as wait_for_mail).
#[derive(Debug, Deserialize, JsonSchema)]
struct AwaitMessageArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    #[expect(dead_code, reason = "taken for clients that give it")]
    reason: Option<String>,
    /// 0 to 600
    #[serde(default = "int::<30>")]
    timeout_seconds: i64,
    /// only messages newer than this id
    after_id: Option<i64>,
    registration_token: Option<String>,
}

const REQUEST: &str = "request";
const RESPONSE: &str = "response";
const INTERRUPT: &str = "interrupt";
const BROADCAST: &str = "broadcast";
const COMPLETE: &str = "broadcast_complete";
/// The subject of the message that ends a task.
const COMPLETED: &str = "::task_complete::";

/// A message of a task.
struct Draft<'a> {
    kind: &'static str,
    to: Vec<Address>,
    task: &'a TaskId,
    subject: &'a str,
    body: &'a str,
    in_reply_to: Option<MessageId>,
}

async fn send_request(call: &Call, args: SendRequestArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let target = AgentId::new(&args.target).map_err(Refusal::from)?;
    let (task, opened) = match args.task_id.as_deref().map(task_id).transpose()? {
        None => (open(call, &project, &caller, None, &target, &args.subject).await?, true),
        Some(id) => match project
            .engine
            .read({
                let (asking, id) = (caller.clone(), id.clone());
                move |view| view.task(&asking, &id)
            })
            .await
        {
            Ok(task) if task.status.is_final() => return Err(Refusal::TaskEnded { task: id }.into()),
            Ok(_) => (id, false),
            Err(EngineError::Refused(Refusal::NoSuchTask { .. })) => {
                (open(call, &project, &caller, Some(id), &target, &args.subject).await?, true)
            }
            Err(error) => return Err(error.into()),
        },
    };
    let draft = Draft {
        kind: REQUEST,
        to: vec![Address::Agent(target.clone())],
        task: &task,
        subject: &args.subject,
        body: &args.body,
        in_reply_to: None,
    };
    let sent = send(call, &project, &caller, draft).await?;
    let contributor = target.to_string();
    call.ask(&project, &caller, AddContributor { task: task.clone(), contributor }).await?;
    Ok(Answer::one(&OpenedTask { sent: task_message(&project, &task, &sent), opened }))
}

async fn open(
    call: &Call,
    project: &Project,
    caller: &Caller,
    id: Option<TaskId>,
    target: &AgentId,
    title: &str,
) -> Result<TaskId, DoorError> {
    let verb = CreateTask {
        id,
        title: Some(title.to_owned()),
        description: None,
        status: Some(TaskStatus::InProgress),
        owner: None,
        assignee: Some(target.clone()),
        participants: vec![Invitee { agent: target.clone(), role: None, permissions: Default::default() }],
        audience: Audience::Parties,
        meta: None,
    };
    Ok(call.ask(project, caller, verb).await?.id)
}

async fn send_response(call: &Call, args: SendResponseArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let task = task_id(&args.task_id)?;
    let target = AgentId::new(&args.target).map_err(Refusal::from)?;
    let in_reply_to = match id(args.message_id) {
        Some(number) => Some(mail::id_of(call, &project, &caller, number).await?),
        None => latest(call, &project, &caller, &[REQUEST, INTERRUPT], false)
            .await?
            .into_iter()
            .find(|found| found.message.from == target && found.message.task.as_ref() == Some(&task))
            .map(|found| found.message.id),
    };
    let draft = Draft {
        kind: RESPONSE,
        to: vec![Address::Agent(target)],
        task: &task,
        subject: &args.subject,
        body: &args.body,
        in_reply_to,
    };
    let sent = send(call, &project, &caller, draft).await?;
    Ok(Answer::one(&task_message(&project, &task, &sent)))
}

async fn send_interrupt(call: &Call, args: SendInterruptArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let task = task_id(&args.task_id)?;
    let draft = Draft {
        kind: INTERRUPT,
        to: vec![address::parse(&args.target).map_err(Refusal::from)?],
        task: &task,
        subject: &args.subject,
        body: &args.body,
        in_reply_to: None,
    };
    let sent = send(call, &project, &caller, draft).await?;
    Ok(Answer::one(&task_message(&project, &task, &sent)))
}

async fn send_broadcast(call: &Call, args: SendBroadcastArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let task = task_id(&args.task_id)?;
    let draft = Draft {
        kind: BROADCAST,
        to: vec![Address::All],
        task: &task,
        subject: &args.subject,
        body: &args.body,
        in_reply_to: None,
    };
    let sent = send(call, &project, &caller, draft).await?;
    Ok(Answer::one(&task_message(&project, &task, &sent)))
}

/// Sends a message of a task into the task's conversation. Only agents that have a part in it may.
async fn send(
    call: &Call,
    project: &Project,
    caller: &Caller,
    draft: Draft<'_>,
) -> Result<SendReceipt, DoorError> {
    let Draft { kind, to, task, subject, body, in_reply_to } = draft;
    let (asking, id) = (caller.clone(), task.clone());
    let known = call.look(project, caller, move |view| view.task(&asking, &id)).await?;
    if known.status.is_final() && kind != RESPONSE {
        return Err(Refusal::TaskEnded { task: task.clone() }.into());
    }
    // Agents outside a broadcast's conversation get the message all the same.
    let join = if kind == BROADCAST {
        JoinMode::IfAllowed
    } else {
        JoinMode::Open { kind: "agent-task".to_owned() }
    };
    let mut send = SendMessage::text(to, body);
    send.kind = kind.to_owned();
    send.subject = Some(mail::subject(subject));
    // Interrupts come before broadcasts, and those before requests and responses.
    send.priority = match kind {
        INTERRUPT | COMPLETE => Priority::NORMAL,
        BROADCAST => Priority::LOW,
        _ => Priority::BULK,
    };
    send.task = Some(task.clone());
    send.in_reply_to = in_reply_to;
    send.allow_no_recipients = kind == BROADCAST || kind == COMPLETE;
    send.within = Some(ConversationRef {
        conversation: task.clone(),
        thread: None,
        reply_to: None,
        visibility: None,
        join,
    });
    mail::post(call, project, caller, send, None, &Given::default()).await
}

async fn task_complete(call: &Call, args: TaskCompleteArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let task = task_id(&args.task_id)?;
    let (asking, id) = (caller.clone(), task.clone());
    let (known, others) = call
        .look(&project, &caller, move |view| {
            let task = view.task(&asking, &id)?;
            let parts = view.participants(&asking, &id, false, None, 1_000)?;
            let others =
                parts.items.into_iter().map(|part| part.agent).filter(|agent| *agent != asking.agent);
            Ok((task, others.collect::<Vec<_>>()))
        })
        .await?;
    if known.status.is_final() {
        let task_id = task.to_string();
        return Ok(Answer::one(&TaskDuplicate { task_id, completed: true, duplicate: true }));
    }
    // Sent while the conversation is still open.
    let draft = Draft {
        kind: COMPLETE,
        to: others.into_iter().map(Address::Agent).collect(),
        task: &task,
        subject: COMPLETED,
        body: &args.finish_message,
        in_reply_to: None,
    };
    let sent = send(call, &project, &caller, draft).await?;
    let verb = UpdateTask {
        status: Some(TaskStatus::Completed),
        result: Some(meta::json(&TaskResult { finish_message: &args.finish_message })),
        ..UpdateTask::of(task.clone())
    };
    let ended = call.ask(&project, &caller, verb).await?;
    Ok(Answer::one(&TaskEnded {
        sent: task_message(&project, &task, &sent),
        completed: true,
        ended_ts: ended.ended_at.map(to_wire::time),
    }))
}

async fn acknowledge_broadcast(call: &Call, args: AcknowledgeBroadcastArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let (number, _) = broadcast(call, &project, &caller, args.message_id).await?;
    Ok(Answer::one(&inbox::acknowledge(call, &project, &caller, number, args.note).await?))
}

async fn ignore_broadcast(call: &Call, args: IgnoreBroadcastArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let (number, message) = broadcast(call, &project, &caller, args.message_id).await?;
    let verb = MarkRead { agent: caller.agent.clone(), message, unread: false };
    let delivery = call.ask(&project, &caller, verb).await?;
    let read_at = delivery.read_at.map(to_wire::time);
    Ok(Answer::one(&IgnoredBroadcast { message_id: number, ignored: true, read_at }))
}

/// The broadcast that is meant.
async fn broadcast(
    call: &Call,
    project: &Project,
    caller: &Caller,
    given: Option<i64>,
) -> Result<(i64, MessageId), DoorError> {
    if let Some(number) = id(given) {
        return Ok((number, mail::id_of(call, project, caller, number).await?));
    }
    let found = latest(call, project, caller, &[BROADCAST, COMPLETE], true).await?;
    let newest =
        found.first().ok_or_else(|| DoorError::new("MESSAGE_NOT_FOUND", "there is no unread broadcast"))?;
    Ok((newest.message.seq, newest.message.id))
}

/// The latest messages of these kinds.
async fn latest(
    call: &Call,
    project: &Project,
    caller: &Caller,
    kinds: &[&str],
    unread: bool,
) -> Result<Vec<InboxMessage>, DoorError> {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let (asking, query) = (caller.clone(), InboxQuery { kinds, unread, limit: 100, ..InboxQuery::default() });
    let page = call.look(project, caller, move |view| view.inbox(&asking, &asking.agent, &query)).await?;
    Ok(page.items)
}

async fn await_message(call: &Call, args: AwaitMessageArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let seconds = within("timeout_seconds", args.timeout_seconds, 0, MAX_WAIT_SECONDS)?;
    let found = wait(call, &project, &caller, args.after_id, 20, seconds).await?;
    Ok(Answer::one(&waited(&project, &found, args.after_id, true)))
}

fn task_id(text: &str) -> Result<TaskId, DoorError> {
    Ok(ConversationId::new(text).map_err(Refusal::from)?)
}

fn task_message(project: &Project, task: &TaskId, sent: &SendReceipt) -> TaskMessage {
    TaskMessage {
        task_id: task.to_string(),
        message_id: sent.message.seq,
        kind: sent.message.kind.clone(),
        message: to_wire::sent(project, sent),
    }
}
