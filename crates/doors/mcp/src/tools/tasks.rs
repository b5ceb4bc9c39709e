//! Tasks by their own names: requests and responses, interrupts, broadcasts, and the end of a task.

use posthaste_engine::nouns::{
    Address, AgentId, Audience, Caller, ConversationId, Json, MessageId, Priority, TaskId, TaskStatus,
};
use posthaste_engine::verbs::conversations::Invitee;
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage, SendReceipt};
use posthaste_engine::verbs::tasks::{AddContributor, CreateTask, UpdateTask};
use posthaste_engine::views::{InboxMessage, InboxQuery};
use posthaste_engine::{EngineError, Refusal};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::attachments::Given;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::wait::{LONGEST_WAIT, wait, waited};
use super::{inbox, mail};
use posthaste_host::address;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        send_request,
        full,
        ADDS reaches_agents,
        "Ask an agent for work. Without task_id a task is opened, with you as its owner.",
        "project_key! agent_name! target! subject! body! task_id registration_token"
    ),
    tool!(
        send_response,
        full,
        ADDS reaches_agents,
        "Answer the latest request of target in a task, or the one with message_id.",
        "project_key! agent_name! target! subject! body! task_id! message_id:int registration_token"
    ),
    tool!(
        send_interrupt,
        full,
        ADDS reaches_agents,
        "Interrupt an agent's work on a task.",
        "project_key! agent_name! target! subject! body! task_id! registration_token"
    ),
    tool!(
        send_broadcast,
        full,
        ADDS reaches_agents,
        "Tell every agent of the project something about a task.",
        "project_key! agent_name! subject! body! task_id! targets:texts registration_token"
    ),
    tool!(
        task_complete,
        full,
        ENDS reaches_agents,
        "End a task with its result; those who took part are told.",
        "project_key! agent_name! task_id! finish_message! registration_token"
    ),
    tool!(
        acknowledge_broadcast,
        full,
        ADDS reaches_agents,
        "Acknowledge the latest unread broadcast, or the one with message_id.",
        "project_key! agent_name! note message_id:int registration_token"
    ),
    tool!(
        ignore_broadcast,
        full,
        ADDS,
        "Mark the latest unread broadcast, or the one with message_id, as read without answering.",
        "project_key! agent_name! reason message_id:int registration_token"
    ),
    tool!(
        await_message,
        full,
        READS,
        "Wait for the next unread message (as wait_for_mail).",
        "project_key! agent_name! reason timeout_seconds:int=30 after_id:int registration_token"
    ),
];

const REQUEST: &str = "request";
const RESPONSE: &str = "response";
const INTERRUPT: &str = "interrupt";
const BROADCAST: &str = "broadcast";
const COMPLETE: &str = "broadcast_complete";
/// What ends a task says at the head.
const COMPLETED: &str = "::task_complete::";

async fn send_request(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let target = AgentId::new(args.need("target")).map_err(Refusal::from)?;
    let (task, opened) = match args.text("task_id").map(named).transpose()? {
        None => (open(call, &project, &caller, None, &target, &args).await?, true),
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
                (open(call, &project, &caller, Some(id), &target, &args).await?, true)
            }
            Err(error) => return Err(error.into()),
        },
    };
    let sent =
        send(call, &project, &caller, &args, REQUEST, vec![Address::Agent(target.clone())], &task, None)
            .await?;
    let contributor = target.to_string();
    call.ask(&project, &caller, AddContributor { task: task.clone(), contributor }).await?;
    let mut answer = told(&project, &task, &sent);
    answer["opened"] = opened.into();
    Ok(answer.into())
}

async fn open(
    call: &Call,
    project: &Project,
    caller: &Caller,
    id: Option<TaskId>,
    target: &AgentId,
    args: &Args,
) -> Result<TaskId, DoorError> {
    let verb = CreateTask {
        id,
        title: Some(args.need("subject").to_owned()),
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

async fn send_response(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let task = named(args.need("task_id"))?;
    let target = AgentId::new(args.need("target")).map_err(Refusal::from)?;
    let request = match args.id("message_id") {
        Some(number) => Some(mail::id_of(call, &project, &caller, number).await?),
        None => latest(call, &project, &caller, &[REQUEST, INTERRUPT], false)
            .await?
            .into_iter()
            .find(|letter| letter.message.from == target && letter.message.task.as_ref() == Some(&task))
            .map(|letter| letter.message.id),
    };
    let sent =
        send(call, &project, &caller, &args, RESPONSE, vec![Address::Agent(target)], &task, request).await?;
    Ok(told(&project, &task, &sent).into())
}

async fn send_interrupt(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let task = named(args.need("task_id"))?;
    let to = vec![address::parse(args.need("target")).map_err(Refusal::from)?];
    let sent = send(call, &project, &caller, &args, INTERRUPT, to, &task, None).await?;
    Ok(told(&project, &task, &sent).into())
}

async fn send_broadcast(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let task = named(args.need("task_id"))?;
    let sent = send(call, &project, &caller, &args, BROADCAST, vec![Address::All], &task, None).await?;
    Ok(told(&project, &task, &sent).into())
}

/// Sends a letter of a task into the task's conversation. Only agents that have a part in it may.
#[expect(clippy::too_many_arguments, reason = "one letter, spelled out")]
async fn send(
    call: &Call,
    project: &Project,
    caller: &Caller,
    args: &Args,
    kind: &str,
    to: Vec<Address>,
    task: &TaskId,
    in_reply_to: Option<MessageId>,
) -> Result<SendReceipt, DoorError> {
    let (asking, id) = (caller.clone(), task.clone());
    let known = call.look(project, caller, move |view| view.task(&asking, &id)).await?;
    if known.status.is_final() && kind != RESPONSE {
        return Err(Refusal::TaskEnded { task: task.clone() }.into());
    }
    // Who is not in a broadcast's conversation gets the letter all the same.
    let join = if kind == BROADCAST {
        JoinMode::IfAllowed
    } else {
        JoinMode::Open { kind: "agent-task".to_owned() }
    };
    let mut letter = SendMessage::text(to, args.text("body").unwrap_or_else(|| args.need("finish_message")));
    letter.kind = kind.to_owned();
    letter.subject = Some(mail::subject(args.text("subject").unwrap_or(COMPLETED)));
    // The tiers of these letters: interrupts before broadcasts before questions and answers.
    letter.priority = match kind {
        INTERRUPT | COMPLETE => Priority::NORMAL,
        BROADCAST => Priority::LOW,
        _ => Priority::BULK,
    };
    letter.task = Some(task.clone());
    letter.in_reply_to = in_reply_to;
    letter.allow_no_recipients = kind == BROADCAST || kind == COMPLETE;
    letter.within = Some(ConversationRef {
        conversation: task.clone(),
        thread: None,
        reply_to: None,
        visibility: None,
        join,
    });
    mail::post(call, project, caller, letter, None, &Given::default()).await
}

async fn task_complete(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let task = named(args.need("task_id"))?;
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
        return Ok(json!({ "task_id": task, "completed": true, "duplicate": true }).into());
    }
    // The last word is said while the conversation is still open.
    let to = others.into_iter().map(Address::Agent).collect();
    let sent = send(call, &project, &caller, &args, COMPLETE, to, &task, None).await?;
    let result = Json::from_value(&json!({ "finish_message": args.need("finish_message") }));
    let verb = UpdateTask {
        status: Some(TaskStatus::Completed),
        result: Some(result),
        ..UpdateTask::of(task.clone())
    };
    let ended = call.ask(&project, &caller, verb).await?;
    let mut answer = told(&project, &task, &sent);
    answer["completed"] = true.into();
    answer["ended_ts"] = json!(ended.ended_at.map(to_wire::time));
    Ok(answer.into())
}

async fn acknowledge_broadcast(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let letter = broadcast(call, &project, &caller, &args).await?;
    let note = args.text("note").map(str::to_owned);
    inbox::acknowledge(call, &project, &caller, letter.0, note).await.map(Answer::from)
}

async fn ignore_broadcast(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let (number, message) = broadcast(call, &project, &caller, &args).await?;
    let verb = MarkRead { agent: caller.agent.clone(), message, unread: false };
    let delivery = call.ask(&project, &caller, verb).await?;
    Ok(json!({ "message_id": number, "ignored": true, "read_at": delivery.read_at.map(to_wire::time) })
        .into())
}

/// The broadcast that is meant.
async fn broadcast(
    call: &Call,
    project: &Project,
    caller: &Caller,
    args: &Args,
) -> Result<(i64, MessageId), DoorError> {
    if let Some(number) = args.id("message_id") {
        return Ok((number, mail::id_of(call, project, caller, number).await?));
    }
    let found = latest(call, project, caller, &[BROADCAST, COMPLETE], true).await?;
    let letter =
        found.first().ok_or_else(|| DoorError::new("MESSAGE_NOT_FOUND", "there is no unread broadcast"))?;
    Ok((letter.message.seq, letter.message.id))
}

/// The latest letters of these kinds.
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

async fn await_message(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let seconds = args.within("timeout_seconds", 0, LONGEST_WAIT)?.unwrap_or(30);
    let letters = wait(call, &project, &caller, args.whole("after_id"), 20, seconds).await?;
    Ok(waited(&project, &letters, args.whole("after_id"), true).into())
}

fn named(text: &str) -> Result<TaskId, DoorError> {
    Ok(ConversationId::new(text).map_err(Refusal::from)?)
}

fn told(project: &Project, task: &TaskId, sent: &SendReceipt) -> Value {
    let message = to_wire::sent(project, sent);
    json!({ "task_id": task, "message_id": sent.message.seq, "kind": sent.message.kind, "message": message })
}
