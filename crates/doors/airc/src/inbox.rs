//! Reading: the inbox by cursor, time and type, and the exchange of two agents.

use axum::Json;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{AgentId, Caller, MessageId, Millis, Seq};
use posthaste_engine::stamp;
use posthaste_engine::verbs::deliveries::{Discard, MarkRead};
use posthaste_engine::views::{InboxMessage, InboxOrder, InboxQuery, Page, View};
use posthaste_wire::airc::{DeletedAnswer, MessagePage, ReadAnswer};
use posthaste_wire::time::{from_number, parse_timestamp};

use super::context::{Actor, Context, find_name, normalized};
use super::errors::{Answer, DoorError};
use super::to_wire;
use posthaste_host::attachments::{self, Carrier};
use posthaste_host::download;

/// Messages on a page by default, and at most.
const DEFAULT_PAGE: usize = 50;
pub(super) const LARGEST_PAGE: usize = 200;
/// Messages read at once where most may be filtered out.
const FILTERED_PAGE: usize = 500;
/// Pages that are read for messages of a type before the caller has to continue from the cursor.
const MAX_PAGES: usize = 20;

/// A page of messages, each with its envelope verbatim.
fn respond(page: &Page<InboxMessage, Seq>, after: Option<Seq>) -> Response {
    let cursor = |seq: Seq| format!("c{seq}");
    let last = page.items.last().map(|received| received.message.seq).or(after);
    let messages: Vec<_> = page.items.iter().filter_map(to_wire::enveloped).collect();
    let body = MessagePage {
        success: true,
        count: messages.len(),
        messages,
        next_cursor: page.next.map(cursor),
        has_more: page.next.is_some(),
        cursor: page.next.or(last).map(cursor),
    };
    Json(body).into_response()
}

/// `GET /messages` and `GET /messages/inbox`
pub(super) async fn inbox(context: Context) -> Answer {
    let actor = context.actor(None).await?;
    let query = Query::read(&context, DEFAULT_PAGE)?;
    let after = query.after;
    let page = fetch(&context, &actor, query, InboxOrder::Oldest).await?;
    Ok(respond(&page, after))
}

/// `GET /messages/thread/{handle}`
pub(super) async fn thread(context: Context) -> Answer {
    let name = context.param("handle").to_owned();
    let look = {
        let name = name.clone();
        move |view: &View<'_>, caller: &Caller| {
            Ok(find_name(view, caller, &name).or_else(|| find_former(view, caller, &name)))
        }
    };
    let (actor, other) = context.actor_and(None, look).await?;
    let other = other.ok_or_else(|| DoorError::no_identity(&name))?;
    let limit = context.number("limit", DEFAULT_PAGE, LARGEST_PAGE)?;
    let after = match context.query("after_seq") {
        Some(text) => {
            Some(text.parse().map_err(|_| DoorError::bad("after_seq: a whole number is expected"))?)
        }
        None => cursor_of(&context)?,
    };
    let caller = actor.caller.clone();
    let page = context
        .engine
        .read(move |view| view.exchange(&caller, &caller.agent, &other, after.unwrap_or(0), limit))
        .await?;
    Ok(respond(&page, after))
}

/// An agent that has left; the exchange with it stays readable.
fn find_former(view: &View<'_>, caller: &Caller, name: &str) -> Option<AgentId> {
    let id = AgentId::new(normalized(name)).ok()?;
    view.entry(caller, &id).ok().map(|agent| agent.id)
}

/// What a reader asks for.
pub(super) struct Query {
    pub(super) since: Option<Millis>,
    pub(super) after: Option<Seq>,
    pub(super) kind: Option<String>,
    pub(super) expired: bool,
    pub(super) limit: usize,
}

impl Query {
    pub(super) fn read(context: &Context, default_limit: usize) -> Answer<Self> {
        Ok(Self {
            since: context.query("since").map(moment).transpose()?,
            after: cursor_of(context)?,
            kind: context.query("payload_type").map(str::to_owned),
            expired: context.flag("include_expired"),
            limit: context.number("limit", default_limit, LARGEST_PAGE)?,
        })
    }
}

/// Messages for the caller. Expired ones are left out unless asked for, read or not.
pub(super) async fn fetch(
    context: &Context,
    actor: &Actor,
    query: Query,
    order: InboxOrder,
) -> Answer<Page<InboxMessage, Seq>> {
    let (kinds, read_at_once) = match query.kind.as_deref() {
        // The type of another door's message is known only when it is converted: any kind can become one of these.
        Some("text" | "context:mailbox") => (Vec::new(), FILTERED_PAGE),
        Some(kind) => (vec![kind.to_owned()], query.limit),
        None => (Vec::new(), query.limit),
    };
    let wanted = InboxQuery {
        kinds,
        since: query.since,
        after: if order == InboxOrder::Oldest { query.after } else { None },
        expired: query.expired,
        order,
        limit: read_at_once.max(query.limit),
        ..InboxQuery::default()
    };
    let (caller, kind, expired, limit) = (actor.caller.clone(), query.kind, query.expired, query.limit);
    let now = stamp::now();
    let shown = move |received: &InboxMessage| {
        let is_live = expired || received.message.expires_at.is_none_or(|end| end > now);
        is_live && kind.as_ref().is_none_or(|kind| to_wire::type_of(&received.message).as_ref() == Some(kind))
    };
    let page = context.engine.read(move |view| {
        let mut found = Page { items: Vec::new(), next: None };
        let mut wanted = wanted;
        for _ in 0..MAX_PAGES {
            let page = view.inbox(&caller, &caller.agent, &wanted)?;
            found.next = page.next;
            for received in page.items {
                if found.items.len() == limit {
                    found.next = found.items.last().map(|last: &InboxMessage| last.message.seq);
                    return Ok(found);
                }
                if shown(&received) {
                    found.items.push(received);
                }
            }
            if view.has_enough() && !found.items.is_empty() {
                break;
            }
            match (found.next, order) {
                (Some(next), InboxOrder::Oldest) if found.items.len() < limit => wanted.after = Some(next),
                (Some(next), InboxOrder::Newest) if found.items.len() < limit => wanted.before = Some(next),
                _ => break,
            }
        }
        Ok(found)
    });
    Ok(page.await?)
}

fn cursor_of(context: &Context) -> Answer<Option<Seq>> {
    let Some(text) = context.query("cursor") else { return Ok(None) };
    let seq = text.strip_prefix('c').and_then(|text| text.parse().ok()).filter(|seq: &Seq| *seq >= 0);
    seq.map(Some).ok_or_else(|| DoorError::new(400, "invalid_cursor", "this cursor is not from here"))
}

/// A time in a query: Unix seconds or milliseconds, or ISO 8601, whose `+` may have become a space on the way.
pub(super) fn moment(text: &str) -> Answer<Millis> {
    let fraction = || text.parse::<f64>().ok().filter(|number| number.abs() < 1e14);
    let read = parse_timestamp(text)
        .or_else(|_| parse_timestamp(&text.replace(' ', "+")))
        .or_else(|error| fraction().map_or(Err(error), |number| from_number(number as i64)));
    read.map_err(|error| DoorError::bad(format!("since: {error}")))
}

/// `POST /messages/{id}/ack`: the caller has read it.
pub(super) async fn ack(context: Context) -> Answer {
    let (actor, message) = own(&context).await?;
    let verb = MarkRead { agent: actor.agent.id.clone(), message, unread: false };
    let delivery = context.engine.submit(&actor.caller, verb).await?;
    let read = delivery.read_at.map(to_wire::moment);
    let id = context.param("id").to_owned();
    Ok(Json(ReadAnswer { success: true, id, status: "read".into(), read_at: read }).into_response())
}

/// `GET /messages/{id}/attachments/{sha256}`: a file of a message in the caller's mail.
pub(super) async fn attachment(context: Context) -> Answer {
    let (actor, message) = own(&context).await?;
    let hash = context.param("sha256");
    let found =
        attachments::fetch(&context.engine, vec![actor.caller.clone()], Carrier::Id(message), hash).await;
    Ok(match found {
        Ok((file, bytes)) => download::answer(&file, bytes),
        Err(error) => download::failure(&error),
    })
}

/// `DELETE /messages/{id}`: out of the caller's inbox.
pub(super) async fn discard(context: Context) -> Answer {
    let (actor, message) = own(&context).await?;
    context.engine.submit(&actor.caller, Discard { agent: actor.agent.id.clone(), message }).await?;
    let id = context.param("id").to_owned();
    Ok(Json(DeletedAnswer { success: true, id, status: "deleted".into() }).into_response())
}

/// The message in the caller's mail with the id in the path: the sender's id for it, or the server's.
async fn own(context: &Context) -> Answer<(Actor, MessageId)> {
    let id = context.param("id").to_owned();
    let look = move |view: &View<'_>, caller: &Caller| {
        let labelled = view.messages_with_label(caller, &caller.agent, &format!("id:{id}"))?;
        let ours = id.parse().ok().map(MessageId);
        Ok(labelled.first().map(|received| received.message.id).or(ours))
    };
    let (actor, found) = context.actor_and(None, look).await?;
    let found = found
        .ok_or_else(|| DoorError::new(404, "message_not_found", "there is no such message in your inbox"))?;
    Ok((actor, found))
}
