//! Reading mail. Fetching never consumes; all doors share what is read.

use posthaste_engine::nouns::{Caller, Priority, Seq};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::views::{InboxMessage, InboxQuery};
use posthaste_wire::mcp::answers::{AcknowledgedMessage, ReadMessage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, limit};
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire::{self, Since};
use super::mail::id_of;
use posthaste_host::acks;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(fetch_inbox(FetchInboxArgs), core, SETS),
    tool!(mark_message_read(MarkMessageReadArgs), core, SETS),
    tool!(acknowledge_message(AcknowledgeMessageArgs), core, SETS reaches_agents),
];

/// An agent's mail, newest first. Does not consume. since_ts is exclusive; after_id is an exact cursor.
#[derive(Debug, Deserialize, JsonSchema)]
struct FetchInboxArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    #[serde(default = "int::<20>")]
    limit: i64,
    #[serde(default)]
    urgent_only: bool,
    #[serde(default)]
    include_bodies: bool,
    /// RFC 3339
    since_ts: Option<String>,
    /// a label, such as ci
    topic: Option<String>,
    #[serde(default)]
    unread_only: bool,
    /// only messages newer than this id
    after_id: Option<i64>,
    /// mark the returned messages as read
    #[serde(default)]
    mark_read: bool,
    registration_token: Option<String>,
}

/// Mark a message read; the first time is kept.
#[derive(Debug, Deserialize, JsonSchema)]
struct MarkMessageReadArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    message_id: i64,
    registration_token: Option<String>,
}

/// Acknowledge a message (and mark it read); its sender can see that.
#[derive(Debug, Deserialize, JsonSchema)]
struct AcknowledgeMessageArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    message_id: i64,
    registration_token: Option<String>,
}

/// Messages looked at for a topic before the search for more is given up.
const MAX_SCANNED: usize = 5_000;

/// Which messages of an inbox are wanted.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Wanted {
    pub(in super::super) limit: usize,
    pub(in super::super) urgent: bool,
    pub(in super::super) unread: bool,
    pub(in super::super) since: Option<Since>,
    pub(in super::super) after: Option<Seq>,
    pub(in super::super) topic: Option<String>,
}

async fn fetch_inbox(call: &Call, args: FetchInboxArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let narrowed = args.urgent_only
        || args.unread_only
        || args.since_ts.is_some()
        || args.topic.is_some()
        || args.after_id.is_some();
    let wanted = Wanted {
        limit: limit(args.limit)?,
        urgent: args.urgent_only,
        unread: args.unread_only,
        since: args.since_ts.as_deref().map(Since::parse).transpose()?,
        after: args.after_id,
        topic: args.topic,
    };
    let found = messages(call, &project, &caller, wanted).await?;
    if args.mark_read {
        for unread in found.iter().filter(|found| found.delivery.state.is_unread()) {
            let verb = MarkRead { agent: caller.agent.clone(), message: unread.message.id, unread: false };
            call.ask(&project, &caller, verb).await?;
        }
    }
    let none = if narrowed { "No messages match." } else { "The inbox is empty." };
    Ok(Answer::list(&to_wire::inbox(&project, &found, args.include_bodies), none))
}

/// Messages of an agent's inbox, the newest first.
pub(in super::super) async fn messages(
    call: &Call,
    project: &Project,
    caller: &Caller,
    wanted: Wanted,
) -> Result<Vec<InboxMessage>, DoorError> {
    let asking = caller.clone();
    call.look(project, caller, move |view| {
        let since = wanted.since.map(|since| since.seq(view)).transpose()?;
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
                page.items
                    .into_iter()
                    .filter(|found| to_wire::extras(&found.message).0.as_ref() == Some(topic)),
            );
            query.before = page.next;
            let enough = found.len() >= wanted.limit || looked_at >= MAX_SCANNED || view.has_enough();
            if page.next.is_none() || enough {
                found.truncate(wanted.limit);
                return Ok(found);
            }
        }
    })
    .await
}

async fn mark_message_read(call: &Call, args: MarkMessageReadArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let number = args.message_id;
    let message = id_of(call, &project, &caller, number).await?;
    let verb = MarkRead { agent: caller.agent.clone(), message, unread: false };
    let delivery = call.ask(&project, &caller, verb).await?;
    let read_at = delivery.read_at.map(to_wire::time);
    Ok(Answer::one(&ReadMessage { message_id: number, read: true, read_at }))
}

async fn acknowledge_message(call: &Call, args: AcknowledgeMessageArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let number = args.message_id;
    Ok(Answer::one(&acknowledge(call, &project, &caller, number, None).await?))
}

pub(super) async fn acknowledge(
    call: &Call,
    project: &Project,
    caller: &Caller,
    number: i64,
    response: Option<String>,
) -> Result<AcknowledgedMessage, DoorError> {
    let message = id_of(call, project, caller, number).await?;
    let delivery = acks::acknowledge(&project.engine, caller, message, response).await?;
    Ok(AcknowledgedMessage {
        message_id: number,
        acknowledged: true,
        acknowledged_at: delivery.acked_at.map(to_wire::time),
        read_at: delivery.read_at.map(to_wire::time),
    })
}
