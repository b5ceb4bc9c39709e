//! Reading messages in Safe Mode: the latest of all, with what is unread among them, and one thread.

use axum::Json;
use axum::response::IntoResponse;
use futures_util::{StreamExt, TryStreamExt};
use posthaste_engine::nouns::AgentId;
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::views::{InboxMessage, InboxOrder};
use serde_json::{Value, json};

use super::context::{Actor, Context, Holder, find_name};
use super::errors::Answer;
use super::inbox::{self, LARGEST_PAGE, Query};
use super::safe::check_on;
use super::to_wire;

/// Unread messages are counted up to here.
const MOST_UNREAD: i64 = 10_000;
/// Messages of a thread that are marked as read at the same time.
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
    // A client that only ever asks for everything must see the latest, in the order they came.
    let order = match (query.since, query.after) {
        (None, None) => InboxOrder::Newest,
        _ => InboxOrder::Oldest,
    };
    let mut page = inbox::fetch(context, actor, query, order).await?;
    page.items.sort_by_key(|letter| letter.message.seq);
    let caller = actor.caller.clone();
    let unread =
        context.engine.read(move |view| view.unread_up_to(&caller, &caller.agent, MOST_UNREAD)).await?;
    let messages: Vec<Value> = page.items.iter().map(to_wire::flat).collect();
    // What slashvibe-mcp looks at to tell its user of new messages.
    let inbox: Vec<&Value> = messages.iter().filter(|message| message["read"] == false).collect();
    let body = json!({
        "success": true,
        "user": actor.agent.id,
        "count": messages.len(),
        "unread": unread,
        "threads": threads(&page.items, actor),
        "inbox": inbox,
        "messages": messages,
    });
    Ok(Json(body).into_response())
}

/// The latest message of each correspondent, and how many of its messages on the page are unread.
fn threads(letters: &[InboxMessage], actor: &Actor) -> Vec<Value> {
    let mut found: Vec<(AgentId, Value)> = Vec::new();
    for letter in letters {
        let other = letter.message.from.clone();
        let last = to_wire::flat(letter);
        let known = found.iter().position(|(known, _)| *known == other).map(|at| found.remove(at).1);
        let before = known.and_then(|entry| entry["unread"].as_u64()).unwrap_or_default();
        let entry = json!({
            "id": format!("{}:{other}", actor.agent.id),
            "with": other,
            "unread": before + u64::from(letter.delivery.state.is_unread()),
            "last_message": last,
            "updated_at": last["created_at"],
        });
        found.push((other, entry));
    }
    found.into_iter().rev().map(|(_, entry)| entry).collect()
}

async fn thread(context: &Context, actor: &Actor, peer: &str) -> Answer {
    let query = Query::read(context, LARGEST_PAGE)?;
    let (caller, peer) = (actor.caller.clone(), peer.to_owned());
    let (since, limit) = (query.since, query.limit);
    let letters = context
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
    let messages: Vec<Value> = letters.iter().map(to_wire::flat).collect();
    mark_read(context, actor, &letters).await?;
    let body =
        json!({ "success": true, "user": actor.agent.id, "count": messages.len(), "messages": messages });
    Ok(Json(body).into_response())
}

/// An identity that fetches a thread has read it: Safe Mode's clients have no other way to say so. An administrator who
/// looks on its behalf changes nothing.
async fn mark_read(context: &Context, actor: &Actor, letters: &[InboxMessage]) -> Answer<()> {
    let me = &actor.agent.id;
    let unread = |letter: &&InboxMessage| letter.delivery.agent == *me && letter.delivery.state.is_unread();
    let unread: Vec<MarkRead> = letters
        .iter()
        .filter(unread)
        .map(|letter| MarkRead { agent: me.clone(), message: letter.message.id, unread: false })
        .collect();
    let by_itself = match context.shared.needs_token() {
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
