//! Reading mail. Fetching never consumes; unread is one truth for every door.

use posthaste_engine::nouns::{Caller, Priority, Seq};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::views::{InboxMessage, InboxQuery};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire::{self, Since};
use super::mail::id_of;
use posthaste_host::acks;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        fetch_inbox,
        core,
        SETS,
        "An agent's mail, newest first. Does not consume. since_ts is exclusive; after_id is an exact cursor.",
        "project_key! agent_name! limit:int=20 urgent_only:flag=false include_bodies:flag=false since_ts topic unread_only:flag=false after_id:int mark_read:flag=false registration_token"
    ),
    tool!(
        mark_message_read,
        core,
        SETS,
        "Mark a message read; the first time is kept.",
        "project_key! agent_name! message_id!:int registration_token"
    ),
    tool!(
        acknowledge_message,
        core,
        SETS reaches_agents,
        "Acknowledge a message (and mark it read); its sender can see that.",
        "project_key! agent_name! message_id!:int registration_token"
    ),
];

/// Letters looked at for a topic before the search for more is given up.
const MOST_LOOKED_AT: usize = 5_000;

/// Which letters of an inbox are wanted.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Wanted {
    pub(in super::super) limit: usize,
    pub(in super::super) urgent: bool,
    pub(in super::super) unread: bool,
    pub(in super::super) since: Option<Since>,
    pub(in super::super) after: Option<Seq>,
    pub(in super::super) topic: Option<String>,
}

async fn fetch_inbox(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let limit = args.within("limit", 1, 1_000)?.unwrap_or(20);
    let wanted = Wanted {
        limit: usize::try_from(limit).unwrap_or(20),
        urgent: args.flag("urgent_only"),
        unread: args.flag("unread_only"),
        since: args.text("since_ts").map(Since::parse).transpose()?,
        after: args.whole("after_id"),
        topic: args.text("topic").map(str::to_owned),
    };
    let letters = letters(call, &project, &caller, wanted).await?;
    if args.flag("mark_read") {
        for letter in letters.iter().filter(|letter| letter.delivery.state.is_unread()) {
            let verb = MarkRead { agent: caller.agent.clone(), message: letter.message.id, unread: false };
            call.ask(&project, &caller, verb).await?;
        }
    }
    let bodies = args.flag("include_bodies");
    let narrowed = ["urgent_only", "unread_only"].iter().any(|name| args.flag(name))
        || ["since_ts", "topic", "after_id"].iter().any(|name| args.has(name));
    let none = if narrowed { "No messages match." } else { "The inbox is empty." };
    Ok(Answer::list(&letters.iter().map(|letter| to_wire::letter(&project, letter, bodies)).collect::<Vec<_>>(), none))
}

/// Letters of an agent's inbox, the newest first.
pub(in super::super) async fn letters(
    call: &Call,
    project: &Project,
    caller: &Caller,
    wanted: Wanted,
) -> Result<Vec<InboxMessage>, DoorError> {
    let asking = caller.clone();
    call.look(project, caller, move |view| {
        let since = wanted.since.map(|since| since.place(view)).transpose()?;
        let mut query = InboxQuery {
            unread: wanted.unread,
            at_least: wanted.urgent.then_some(Priority::HIGH),
            after: since.into_iter().chain(wanted.after).max(),
            limit: wanted.limit,
            ..InboxQuery::default()
        };
        let Some(topic) = &wanted.topic else { return Ok(view.inbox(&asking, &asking.agent, &query)?.items) };
        // Topics are few and have no index of their own.
        let (mut found, mut looked_at) = (Vec::new(), 0);
        query.limit = 500;
        loop {
            let page = view.inbox(&asking, &asking.agent, &query)?;
            looked_at += page.items.len();
            found.extend(
                page.items.into_iter().filter(|letter| to_wire::extras(&letter.message).0 == topic.as_str()),
            );
            query.before = page.next;
            let enough = found.len() >= wanted.limit || looked_at >= MOST_LOOKED_AT || view.has_enough();
            if page.next.is_none() || enough {
                found.truncate(wanted.limit);
                return Ok(found);
            }
        }
    })
    .await
}

async fn mark_message_read(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let number = args.whole("message_id").unwrap_or_default();
    let message = id_of(call, &project, &caller, number).await?;
    let verb = MarkRead { agent: caller.agent.clone(), message, unread: false };
    let delivery = call.ask(&project, &caller, verb).await?;
    Ok(json!({ "message_id": number, "read": true, "read_at": delivery.read_at.map(to_wire::time) }).into())
}

async fn acknowledge_message(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let number = args.whole("message_id").unwrap_or_default();
    acknowledge(call, &project, &caller, number, None).await.map(Answer::from)
}

pub(in super::super) async fn acknowledge(
    call: &Call,
    project: &Project,
    caller: &Caller,
    number: i64,
    response: Option<String>,
) -> Result<Value, DoorError> {
    let message = id_of(call, project, caller, number).await?;
    let delivery = acks::acknowledge(&project.engine, caller, message, response).await?;
    Ok(json!({
        "message_id": number,
        "acknowledged": true,
        "acknowledged_at": delivery.acked_at.map(to_wire::time),
        "read_at": delivery.read_at.map(to_wire::time),
    }))
}
