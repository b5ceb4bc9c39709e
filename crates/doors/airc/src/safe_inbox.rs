//! Reading messages in Safe Mode: the latest ones, with the unread among them, and one thread.

use axum::Json;
use axum::response::IntoResponse;
use futures_util::{StreamExt, TryStreamExt};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::views::{InboxMessage, InboxOrder};
use posthaste_wire::airc::{FlatExchange, FlatInbox, FlatMessage, FlatThread};

use super::context::{Actor, Context, Holder, find_name};
use super::errors::Answer;
use super::inbox::{self, LARGEST_PAGE, Query};
use super::safe::check_on;
use super::to_wire;

/// Unread messages are counted up to this number.
const MAX_UNREAD_COUNTED: i64 = 10_000;
/// Messages of a thread that are marked as read concurrently.
const MARKED_AT_ONCE: usize = 32;

/// `GET /api/messages?user=ME[&since=][&with=PEER]`
pub(super) async fn list(context: Context) -> Answer {
    check_on(&context)?;
    let actor = context.actor(context.query("user").or(context.query("username"))).await?;
    match context.query("with") {
        Some(peer) => thread(&context, &actor, peer).await,
        None => inbox(&context, &actor).await,
    }
}

async fn inbox(context: &Context, actor: &Actor) -> Answer {
    let query = Query::read(context, LARGEST_PAGE)?;
    // A client that asks without a cursor must see the latest messages, in the order they came.
    let order = match (query.since, query.after) {
        (None, None) => InboxOrder::Newest,
        _ => InboxOrder::Oldest,
    };
    let mut page = inbox::fetch(context, actor, query, order).await?;
    page.items.sort_by_key(|received| received.message.seq);
    let caller = actor.caller.clone();
    let unread = context
        .engine
        .read(move |view| view.unread_up_to(&caller, &caller.agent, MAX_UNREAD_COUNTED))
        .await?;
    let messages: Vec<FlatMessage> = page.items.iter().map(to_wire::flat).collect();
    // The published client slashvibe-mcp reads `inbox` to announce new messages.
    let inbox: Vec<FlatMessage> = messages.iter().filter(|message| !message.read).cloned().collect();
    let body = FlatInbox {
        success: true,
        user: actor.agent.id.to_string(),
        count: messages.len(),
        unread,
        threads: threads(&page.items, actor),
        inbox,
        messages,
    };
    Ok(Json(body).into_response())
}

/// The latest message of each correspondent, and how many of its messages on the page are unread; latest first.
fn threads(page: &[InboxMessage], actor: &Actor) -> Vec<FlatThread> {
    let mut found: Vec<FlatThread> = Vec::new();
    for received in page {
        let other = received.message.from.as_str();
        let before = match found.iter().position(|thread| thread.with == other) {
            Some(at) => found.remove(at).unread,
            None => 0,
        };
        let last_message = to_wire::flat(received);
        found.push(FlatThread {
            id: format!("{}:{other}", actor.agent.id),
            with: other.to_owned(),
            unread: before + u64::from(received.delivery.state.is_unread()),
            updated_at: last_message.created_at.clone(),
            last_message,
        });
    }
    found.reverse();
    found
}

async fn thread(context: &Context, actor: &Actor, peer: &str) -> Answer {
    let query = Query::read(context, LARGEST_PAGE)?;
    let (caller, peer) = (actor.caller.clone(), peer.to_owned());
    let (since, limit) = (query.since, query.limit);
    let exchange = context
        .engine
        .read(move |view| {
            let Some(other) = find_name(view, &caller, &peer) else { return Ok(Vec::new()) };
            let after = match since {
                Some(since) => view.last_seq_at(since)?,
                None => 0,
            };
            view.latest_exchange(&caller, &caller.agent, &other, after, limit)
        })
        .await?;
    let messages: Vec<FlatMessage> = exchange.iter().map(to_wire::flat).collect();
    mark_read(context, actor, &exchange).await?;
    let (user, count) = (actor.agent.id.to_string(), messages.len());
    let body = FlatExchange { success: true, user, count, messages };
    Ok(Json(body).into_response())
}

/// Marks a thread as read that its own identity fetches: Safe Mode's clients have no other way to say so. An administrator
/// that acts for an identity changes nothing.
async fn mark_read(context: &Context, actor: &Actor, received: &[InboxMessage]) -> Answer<()> {
    let me = &actor.agent.id;
    let unread = |one: &&InboxMessage| one.delivery.agent == *me && one.delivery.state.is_unread();
    let unread: Vec<MarkRead> = received
        .iter()
        .filter(unread)
        .map(|one| MarkRead { agent: me.clone(), message: one.message.id, unread: false })
        .collect();
    let by_itself = match context.door.needs_token() {
        true => !matches!(context.holds(me).await?, None | Some(Holder::Proven)),
        false => true,
    };
    if unread.is_empty() || !by_itself {
        return Ok(());
    }
    let marked = futures_util::stream::iter(unread).map(|verb| context.engine.submit(&actor.caller, verb));
    marked.buffered(MARKED_AT_ONCE).try_for_each(async |_| Ok(())).await?;
    Ok(())
}
