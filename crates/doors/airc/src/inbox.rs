//! Reading: the inbox by cursor, time and type, and what two wrote to each other.

use axum::Json;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{AgentId, MessageId, Millis, Seq};
use posthaste_engine::stamp;
use posthaste_engine::verbs::deliveries::{Discard, MarkRead};
use posthaste_engine::views::{InboxMessage, InboxOrder, InboxQuery, Page};
use posthaste_wire::time::{from_number, parse_timestamp};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::context::{Actor, Context, find_name, spelled};
use super::errors::{Answer, Trouble};
use super::to_wire;
use posthaste_host::attachments::{self, Carrier};
use posthaste_host::download;

/// Letters on a page, unless asked for otherwise, and at most.
const USUAL_PAGE: usize = 50;
pub(super) const LARGEST_PAGE: usize = 200;
/// Letters read at once when most may not be wanted.
const LOOKED_THROUGH: usize = 500;
/// Pages that are looked through for letters of a type before the caller is asked to go on from the cursor.
const MOST_PAGES: usize = 20;

/// A page as it is sent: letters verbatim.
#[derive(Serialize)]
struct Shown {
    success: bool,
    messages: Vec<Box<RawValue>>,
    count: usize,
    #[serde(rename = "nextCursor")]
    next: Option<String>,
    #[serde(rename = "hasMore")]
    more: bool,
    /// Where to go on from later, whether or not there is more now.
    cursor: Option<String>,
}

impl Shown {
    fn respond(page: &Page<InboxMessage, Seq>, after: Option<Seq>) -> Response {
        let cursor = |seq: Seq| format!("c{seq}");
        let last = page.items.last().map(|letter| letter.message.seq).or(after);
        let messages: Vec<_> = page.items.iter().filter_map(to_wire::enveloped).collect();
        let shown = Self {
            success: true,
            count: messages.len(),
            messages,
            next: page.next.map(cursor),
            more: page.next.is_some(),
            cursor: page.next.or(last).map(cursor),
        };
        Json(shown).into_response()
    }
}

/// `GET /messages` and `GET /messages/inbox`
pub(super) async fn inbox(context: Context) -> Answer {
    let actor = context.actor(None).await?;
    let query = Query::read(&context, USUAL_PAGE)?;
    let after = query.after;
    let page = fetch(&context, &actor, query, InboxOrder::Oldest).await?;
    Ok(Shown::respond(&page, after))
}

/// `GET /messages/thread/{handle}`
pub(super) async fn thread(context: Context) -> Answer {
    let name = context.param("handle").to_owned();
    let look = {
        let name = name.clone();
        move |view: &posthaste_engine::views::View<'_>, caller: &posthaste_engine::nouns::Caller| {
            Ok(find_name(view, caller, &name).or_else(|| was_there(view, caller, &name)))
        }
    };
    let (actor, other) = context.actor_and(None, look).await?;
    let other = other.ok_or_else(|| Trouble::nobody(&name))?;
    let limit = context.number("limit", USUAL_PAGE, LARGEST_PAGE)?;
    let after = match context.query("after_seq") {
        Some(text) => Some(text.parse().map_err(|_| Trouble::bad("after_seq: a whole number is expected"))?),
        None => cursor_of(&context)?,
    };
    let caller = actor.caller.clone();
    let page = context
        .engine
        .read(move |view| view.exchange(&caller, &caller.agent, &other, after.unwrap_or(0), limit))
        .await?;
    Ok(Shown::respond(&page, after))
}

/// Somebody who has left; what one wrote with it stays readable.
fn was_there(
    view: &posthaste_engine::views::View<'_>,
    caller: &posthaste_engine::nouns::Caller,
    name: &str,
) -> Option<AgentId> {
    let id = AgentId::new(spelled(name)).ok()?;
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
    pub(super) fn read(context: &Context, usual: usize) -> Answer<Self> {
        Ok(Self {
            since: context.query("since").map(moment).transpose()?,
            after: cursor_of(context)?,
            kind: context.query("payload_type").map(str::to_owned),
            expired: context.flag("include_expired"),
            limit: context.number("limit", usual, LARGEST_PAGE)?,
        })
    }
}

/// Letters for the caller. One whose time has run out is hidden unless asked for, read or not.
pub(super) async fn fetch(
    context: &Context,
    actor: &Actor,
    query: Query,
    order: InboxOrder,
) -> Answer<Page<InboxMessage, Seq>> {
    let (kinds, read_at_once) = match query.kind.as_deref() {
        // What letters of other doors are shown as is found out when they are shown: any kind can be one of these.
        Some("text" | "context:mailbox") => (Vec::new(), LOOKED_THROUGH),
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
    let shown = move |letter: &InboxMessage| {
        let lives = expired || letter.message.expires_at.is_none_or(|end| end > now);
        lives && kind.as_ref().is_none_or(|kind| to_wire::type_of(&letter.message).as_ref() == Some(kind))
    };
    let page = context.engine.read(move |view| {
        let mut found = Page { items: Vec::new(), next: None };
        let mut wanted = wanted;
        for _ in 0..MOST_PAGES {
            let page = view.inbox(&caller, &caller.agent, &wanted)?;
            found.next = page.next;
            for letter in page.items {
                if found.items.len() == limit {
                    found.next = found.items.last().map(|last: &InboxMessage| last.message.seq);
                    return Ok(found);
                }
                if shown(&letter) {
                    found.items.push(letter);
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
    seq.map(Some).ok_or_else(|| Trouble::new(400, "invalid_cursor", "this cursor is not from here"))
}

/// A moment in a query: Unix seconds or milliseconds, or ISO 8601, whose `+` may have become a blank on the way.
pub(super) fn moment(text: &str) -> Answer<Millis> {
    let fraction = || text.parse::<f64>().ok().filter(|number| number.abs() < 1e14);
    let read = parse_timestamp(text)
        .or_else(|_| parse_timestamp(&text.replace(' ', "+")))
        .or_else(|error| fraction().map_or(Err(error), |number| from_number(number as i64)));
    read.map_err(|error| Trouble::bad(format!("since: {error}")))
}

/// `POST /messages/{id}/ack`: the caller has read it.
pub(super) async fn ack(context: Context) -> Answer {
    let (actor, message) = own(&context).await?;
    let verb = MarkRead { agent: actor.agent.id.clone(), message, unread: false };
    let delivery = context.engine.submit(&actor.caller, verb).await?;
    let read = delivery.read_at.map(to_wire::moment);
    Ok(Json(json!({ "success": true, "id": context.param("id"), "status": "read", "read_at": read }))
        .into_response())
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
    Ok(Json(json!({ "success": true, "id": context.param("id"), "status": "deleted" })).into_response())
}

/// The letter in the caller's mail that goes by the name in the path: its sender's, or the office's own.
async fn own(context: &Context) -> Answer<(Actor, MessageId)> {
    let id = context.param("id").to_owned();
    let look = move |view: &posthaste_engine::views::View<'_>, caller: &posthaste_engine::nouns::Caller| {
        let marked = view.messages_with_label(caller, &caller.agent, &format!("id:{id}"))?;
        let ours = id.parse().ok().map(MessageId);
        Ok(marked.first().map(|letter| letter.message.id).or(ours))
    };
    let (actor, found) = context.actor_and(None, look).await?;
    let found = found
        .ok_or_else(|| Trouble::new(404, "message_not_found", "there is no such message in your inbox"))?;
    Ok((actor, found))
}
