//! MAP Mail: what is said, the threads it branches into, and the gist of it.

use std::borrow::Cow;
use std::sync::Arc;

use posthaste_engine::nouns::{Caller, ConversationId, Json};
use posthaste_engine::verbs::turns::{KeepSummary, OpenThread, Say};
use posthaste_engine::views::{Gist, Part, TurnQuery};
use posthaste_engine::{EngineError, Refusal};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Answer, Connection, Outcome, Reply};
use super::errors::DoorError;
use super::from_wire::{self, borrowed, object_or_default, or_default, params};
use super::session::Session;
use super::to_wire;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SayParams<'a> {
    #[serde(borrow)]
    conversation_id: Cow<'a, str>,
    content_type: String,
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    in_reply_to: Option<String>,
    #[serde(default)]
    visibility: Option<Value>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

/// `mail/turn`.
pub(super) async fn say(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Result<Reply, DoorError> {
    let asked: SayParams<'_> = borrowed(given)?;
    let conversation = from_wire::conversation(&asked.conversation_id)?;
    let caller = session.mail_caller();
    let verb = Say {
        conversation,
        thread: asked.thread_id.as_deref().map(from_wire::thread),
        content_type: asked.content_type,
        content: from_wire::raw_json("content", asked.content)?,
        in_reply_to: asked.in_reply_to.as_deref().map(from_wire::turn),
        visibility: from_wire::visibility(asked.visibility.as_ref())?,
        meta: asked.metadata.map(|metadata| Json::from_value(&Value::Object(metadata))),
    };
    let pending = at.engine.enqueue(&caller, verb).await?;
    Ok(Reply::Pipelined(Box::pin(async move {
        let turn = pending.answer().await?;
        let mut text = String::with_capacity(turn.content.as_str().len() + 384);
        text.push_str(r#"{"turn":"#);
        to_wire::push_turn(&mut text, &turn);
        text.push('}');
        Ok(Answer::from(text))
    })))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListParams {
    conversation_id: String,
    #[serde(default, deserialize_with = "object_or_default")]
    filter: ListFilter,
    #[serde(default)]
    limit: Option<Value>,
    #[serde(default)]
    order: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListFilter {
    thread_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    content_types: Vec<String>,
    participant_id: Option<String>,
    after_turn_id: Option<String>,
    before_turn_id: Option<String>,
    after_timestamp: Option<i64>,
    before_timestamp: Option<i64>,
}

/// `mail/turns/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let ListParams { conversation_id, filter, limit, order } = params(given)?;
    let id = from_wire::conversation(&conversation_id)?;
    let newest_first = match order.as_deref() {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(DoorError::params("order: asc or desc")),
    };
    let limit = from_wire::limit(limit.as_ref(), 50, 1000)?;
    let caller = session.mail_caller();
    let query = TurnQuery {
        thread: filter.thread_id.as_deref().map(from_wire::thread),
        content_types: filter.content_types,
        author: filter.participant_id.as_deref().map(from_wire::sought_agent).transpose()?,
        after: filter.after_turn_id.as_deref().map(from_wire::turn),
        before: filter.before_turn_id.as_deref().map(from_wire::turn),
        after_time: filter.after_timestamp,
        before_time: filter.before_timestamp,
        newest_first,
        limit,
    };
    let page = at.engine.read(move |view| view.turns(&caller, &id, &query)).await?;
    let mut text = format!(r#"{{"turns":{},"hasMore":{}"#, to_wire::turns(&page.items), page.next.is_some());
    if let Some(next) = page.next {
        text.push_str(&format!(r#","nextCursor":"{}""#, to_wire::turn_id(next)));
    }
    text.push('}');
    Ok(text.into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadParams {
    conversation_id: String,
    root_turn_id: String,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    parent_thread_id: Option<String>,
}

/// `mail/thread/create`.
pub(super) async fn open_thread(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let asked: ThreadParams = params(given)?;
    let conversation = from_wire::conversation(&asked.conversation_id)?;
    let caller = session.mail_caller();
    let root = from_wire::turn(&asked.root_turn_id);
    let parent = asked.parent_thread_id.as_deref().map(from_wire::thread);
    let thread =
        at.engine.submit(&caller, OpenThread { conversation, root, parent, subject: asked.subject }).await?;
    Ok(json!({ "thread": to_wire::thread(&thread) }).into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadsParams {
    conversation_id: String,
    #[serde(default)]
    parent_thread_id: Option<String>,
    #[serde(default)]
    limit: Option<Value>,
    #[serde(default)]
    cursor: Option<String>,
}

/// `mail/thread/list`.
pub(super) async fn threads(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let asked: ThreadsParams = params(given)?;
    let id = from_wire::conversation(&asked.conversation_id)?;
    let caller = session.mail_caller();
    let parent = asked.parent_thread_id.as_deref().map(from_wire::thread);
    let after = match asked.cursor.as_deref() {
        Some(cursor) => cursor.parse().map_err(|_| DoorError::params("cursor: not one of ours"))?,
        None => 0,
    };
    let limit = from_wire::limit(asked.limit.as_ref(), 50, 1000)?;
    let page = at.engine.read(move |view| view.threads(&caller, &id, parent, after, limit)).await?;
    let mut answer = json!({
        "threads": page.items.iter().map(to_wire::thread).collect::<Vec<_>>(),
        "hasMore": page.next.is_some(),
    });
    if let Some(next) = page.next {
        answer["nextCursor"] = next.to_string().into();
    }
    Ok(answer.into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryParams {
    conversation_id: String,
    #[serde(default, deserialize_with = "object_or_default")]
    scope: SummaryScope,
    #[serde(default, deserialize_with = "or_default")]
    regenerate: bool,
    #[serde(default, deserialize_with = "object_or_default")]
    include: SummaryInclude,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SummaryScope {
    from_turn_id: Option<String>,
    to_turn_id: Option<String>,
    thread_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SummaryInclude {
    #[serde(deserialize_with = "or_default")]
    key_points: bool,
    #[serde(deserialize_with = "or_default")]
    key_decisions: bool,
    #[serde(deserialize_with = "or_default")]
    open_questions: bool,
    #[serde(deserialize_with = "or_default")]
    participants: bool,
}

/// `mail/summary`.
pub(super) async fn summary(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let asked: SummaryParams = params(given)?;
    let id = from_wire::conversation(&asked.conversation_id)?;
    let caller = session.mail_caller();
    let part = Part {
        thread: asked.scope.thread_id.as_deref().map(from_wire::thread),
        from: asked.scope.from_turn_id.as_deref().map(from_wire::turn),
        to: asked.scope.to_turn_id.as_deref().map(from_wire::turn),
    };
    let gist = gist(at, &caller, &id, part, asked.regenerate).await?;
    let mut answer = json!({ "summary": gist.summary.text, "generated": gist.kept_at.is_none() });
    if let Some(at) = gist.kept_at {
        answer["cachedAt"] = at.into();
    }
    for (wanted, name, lines) in [
        (asked.include.key_points, "keyPoints", &gist.summary.key_points),
        (asked.include.key_decisions, "keyDecisions", &gist.summary.decisions),
        (asked.include.open_questions, "openQuestions", &gist.summary.open_questions),
        (asked.include.participants, "participants", &gist.summary.participants),
    ] {
        if wanted {
            answer[name] = json!(lines);
        }
    }
    Ok(answer.into())
}

/// The gist of a conversation; one that had to be made is kept for the next who asks.
pub(super) async fn gist(
    at: &Connection,
    caller: &Caller,
    id: &ConversationId,
    part: Part,
    anew: bool,
) -> Result<Gist, DoorError> {
    let (asking, of) = (caller.clone(), id.clone());
    let gist = at.engine.read(move |view| view.summary(&asking, &of, &part, anew)).await?;
    if gist.kept_at.is_none() {
        let verb = KeepSummary {
            conversation: id.clone(),
            part: gist.part.clone(),
            summary: gist.summary.clone(),
            up_to: gist.up_to,
            announce: gist.for_all,
        };
        match at.engine.submit(caller, verb).await {
            // What an observer asked for is not kept.
            Ok(()) | Err(EngineError::Refused(Refusal::NotAParticipant { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(gist)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplayParams {
    conversation_id: String,
    #[serde(default)]
    from_turn_id: Option<String>,
    #[serde(default)]
    from_timestamp: Option<i64>,
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    limit: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    content_types: Vec<String>,
}

/// `mail/replay`.
pub(super) async fn replay(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ReplayParams = params(given)?;
    let id = from_wire::conversation(&asked.conversation_id)?;
    let caller = session.mail_caller();
    let query = TurnQuery {
        thread: asked.thread_id.as_deref().map(from_wire::thread),
        content_types: asked.content_types,
        after: asked.from_turn_id.as_deref().map(from_wire::turn),
        after_time: asked.from_timestamp,
        limit: from_wire::limit(asked.limit.as_ref(), 50, 1000)?,
        ..TurnQuery::default()
    };
    // Whatever was missed counts, also what is not wanted now.
    let all = TurnQuery { content_types: Vec::new(), ..query.clone() };
    let (page, missed) = at
        .engine
        .read(move |view| Ok((view.turns(&caller, &id, &query)?, view.count_turns(&caller, &id, &all)?)))
        .await?;
    let mut text = format!(
        r#"{{"turns":{},"hasMore":{},"missedCount":{missed}"#,
        to_wire::turns(&page.items),
        page.next.is_some()
    );
    if let Some(next) = page.next {
        text.push_str(&format!(r#","nextCursor":"{}""#, to_wire::turn_id(next)));
    }
    text.push('}');
    Ok(text.into())
}
