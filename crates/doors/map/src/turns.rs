//! MAP Mail: turns, threads and summaries.

use std::sync::Arc;

use posthaste_engine::nouns::{Caller, ConversationId, Json};
use posthaste_engine::verbs::turns::{KeepSummary, OpenThread, Say};
use posthaste_engine::views::{Gist, Part, TurnQuery};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::map::turn::{
    MailReplayParams, MailReplayResult, SummaryParams, SummaryResult, ThreadParams, ThreadResult,
    ThreadsParams, ThreadsResult, TurnParams, TurnResult, TurnsParams, TurnsResult,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome, Reply};
use super::errors::DoorError;
use super::from_wire::{self, borrowed, params};
use super::session::Session;
use super::to_wire;

/// `mail/turn`.
pub(super) async fn say(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Result<Reply, DoorError> {
    let asked: TurnParams<'_> = borrowed(given)?;
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
        Ok(Answer::of(&TurnResult { turn: to_wire::turn(&turn) }))
    })))
}

/// `mail/turns/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let TurnsParams { conversation_id, filter, limit, order } = params(given)?;
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
    Ok(Answer::of(&TurnsResult {
        turns: to_wire::turns(&page.items),
        has_more: page.next.is_some(),
        next_cursor: page.next.map(to_wire::turn_id),
    }))
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
    Ok(Answer::of(&ThreadResult { thread: to_wire::thread(&thread) }))
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
    Ok(Answer::of(&ThreadsResult {
        threads: page.items.iter().map(to_wire::thread).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
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
    let (include, summary) = (asked.include, gist.summary);
    Ok(Answer::of(&SummaryResult {
        summary: summary.text,
        generated: gist.kept_at.is_none(),
        cached_at: gist.kept_at,
        key_points: include.key_points.then_some(summary.key_points),
        key_decisions: include.key_decisions.then_some(summary.decisions),
        open_questions: include.open_questions.then_some(summary.open_questions),
        participants: include.participants.then_some(summary.participants),
    }))
}

/// The summary of a conversation; a new one is stored for later callers.
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
            // Summaries that an observer asked for are not stored.
            Ok(()) | Err(EngineError::Refused(Refusal::NotAParticipant { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(gist)
}

/// `mail/replay`.
pub(super) async fn replay(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: MailReplayParams = params(given)?;
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
    // The missed count includes all content types.
    let all = TurnQuery { content_types: Vec::new(), ..query.clone() };
    let (page, missed) = at
        .engine
        .read(move |view| Ok((view.turns(&caller, &id, &query)?, view.count_turns(&caller, &id, &all)?)))
        .await?;
    Ok(Answer::of(&MailReplayResult {
        turns: to_wire::turns(&page.items),
        has_more: page.next.is_some(),
        missed_count: missed,
        next_cursor: page.next.map(to_wire::turn_id),
    }))
}
