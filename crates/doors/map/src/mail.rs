//! MAP Mail: conversations and their participants.

use std::sync::Arc;

use posthaste_engine::nouns::{
    Audience, Caller, ConversationId, ConversationStatus, Json, Participant, Turn, TurnId,
};
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::conversations::{Close, Create, Invite, Join, Leave, Reopen};
use posthaste_engine::verbs::turns::FirstTurn;
use posthaste_engine::views::{ConversationQuery, ConversationStats, TurnQuery, View, Viewed};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::map::conversation::{
    CatchUp, ConversationParams, ConversationResult, CreateParams, CreateResult, GetParams, GetResult,
    Invitation, InviteParams, InviteResult, JoinParams, JoinResult, LeaveResult, ListParams, ListResult,
    Presence, PresenceResult, Stats, Words,
};
use posthaste_wire::map::{Switch, codes};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::session::{Session, fresh};
use super::{send, to_wire, turns};

/// The purposes of conversations.
const TYPES: [&str; 4] = ["user-session", "agent-task", "multi-agent", "mixed"];

/// `mail/create`.
pub(super) async fn create(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: CreateParams = params(given)?;
    let kind = asked.kind.unwrap_or_else(|| "multi-agent".to_owned());
    if !TYPES.contains(&kind.as_str()) {
        return Err(DoorError::params("type: user-session, agent-task, multi-agent or mixed"));
    }
    let first = match asked.initial_turn {
        None => None,
        Some(turn) => Some(FirstTurn {
            content: from_wire::json(&turn.content),
            visibility: from_wire::visibility(turn.visibility.as_ref())?,
            content_type: turn.content_type,
        }),
    };
    let verb = Create {
        id: Some(from_wire::conversation(&fresh("conv-"))?),
        kind,
        subject: asked.subject,
        parent: asked.parent_conversation_id.as_deref().map(from_wire::conversation).transpose()?,
        parent_turn: asked.parent_turn_id.as_deref().map(from_wire::turn),
        participants: asked
            .initial_participants
            .iter()
            .flatten()
            .map(from_wire::invitee)
            .collect::<Result<_, _>>()?,
        first,
        audience: Audience::Observers,
        meta: asked.metadata.map(|metadata| Json::from_value(&Value::Object(metadata))),
    };
    let created = at.engine.submit(&session.mail_caller(), verb).await?;
    Ok(Answer::of(&CreateResult {
        conversation: to_wire::conversation(&created.conversation),
        participant: to_wire::participant(&created.participant),
        initial_turn: created.first.as_ref().map(to_wire::turn),
    }))
}

/// `mail/get`.
pub(super) async fn get(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let GetParams { conversation_id, include } = params(given)?;
    let id = from_wire::conversation(&conversation_id)?;
    let recent = match &include.recent_turns {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(10),
        Some(value) if value.as_u64() == Some(0) => None,
        some => Some(from_wire::limit(some.as_ref(), 10, 1000)?),
    };
    if recent.is_some() && !may_read_history(session) {
        return Err(DoorError::new(codes::MAIL_PERMISSION_DENIED, "not allowed: mail.canViewHistory"));
    }
    let caller = session.mail_caller();
    let page = at.engine.limits().page;
    let answer = at
        .engine
        .read(move |view| {
            let conversation = view.conversation(&caller, &id)?;
            let participants = match include.participants {
                true => {
                    let mut found = view.participants(&caller, &id, false, None, page)?.items;
                    found.sort_by_key(|part| part.joined);
                    Some(found.iter().map(to_wire::participant).collect())
                }
                false => None,
            };
            let threads = match include.threads {
                true => {
                    let found = view.threads(&caller, &id, None, 0, page)?.items;
                    Some(found.iter().map(to_wire::thread).collect())
                }
                false => None,
            };
            let turns = match recent {
                Some(limit) => {
                    let query = TurnQuery { newest_first: true, limit, ..TurnQuery::default() };
                    Some(view.turns(&caller, &id, &query)?.items)
                }
                None => None,
            };
            let stats = match include.stats {
                true => Some(stats(view.conversation_stats(&caller, &id)?)),
                false => None,
            };
            Ok(Answer::of(&GetResult {
                conversation: to_wire::conversation(&conversation),
                participants,
                threads,
                recent_turns: turns.as_deref().map(to_wire::turns),
                stats,
            }))
        })
        .await?;
    Ok(answer)
}

fn stats(stats: ConversationStats) -> Stats {
    Stats {
        total_turns: stats.turns,
        turns_by_content_type: stats
            .by_content_type
            .into_iter()
            .map(|(word, count)| (word, count.into()))
            .collect(),
        active_participants: stats.participants,
        thread_count: stats.threads,
    }
}

/// `mail/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let ListParams { filter, limit, cursor } = params(given)?;
    let statuses = Words::list(filter.status)
        .iter()
        .map(|word| {
            ConversationStatus::from_word(word)
                .ok_or_else(|| DoorError::params("status: active, paused, completed, failed or archived"))
        })
        .collect::<Result<_, _>>()?;
    let kinds = Words::list(filter.kinds);
    if kinds.iter().any(|kind| !TYPES.contains(&kind.as_str())) {
        return Err(DoorError::params("type: user-session, agent-task, multi-agent or mixed"));
    }
    let query = ConversationQuery {
        kinds,
        statuses,
        participant: filter.participant_id.as_deref().map(from_wire::sought_agent).transpose()?,
        parent: filter.parent_conversation_id.as_deref().map(from_wire::sought_conversation).transpose()?,
        created_after: filter.created_after,
        created_before: filter.created_before,
        newest_first: false,
        cursor: cursor
            .map(|cursor| cursor.parse().map_err(|_| DoorError::params("cursor: not one of ours")))
            .transpose()?,
        limit: from_wire::limit(limit.as_ref(), 50, 1000)?,
    };
    let caller = session.mail_caller();
    let page = at.engine.read(move |view| view.conversations(&caller, &query)).await?;
    Ok(Answer::of(&ListResult {
        conversations: page.items.iter().map(to_wire::conversation).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

/// `mail/close`.
pub(super) async fn close(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let ConversationParams { conversation_id, reason } = params(given)?;
    let verb = Close { conversation: from_wire::conversation(&conversation_id)?, status: None, reason };
    let conversation = lead(at, session, verb).await?;
    Ok(Answer::of(&ConversationResult { conversation: to_wire::conversation(&conversation) }))
}

/// `mail/reopen`.
pub(super) async fn reopen(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let ConversationParams { conversation_id, .. } = params(given)?;
    let verb = Reopen { conversation: from_wire::conversation(&conversation_id)? };
    let conversation = lead(at, session, verb).await?;
    Ok(Answer::of(&ConversationResult { conversation: to_wire::conversation(&conversation) }))
}

/// Closes or reopens a conversation. An administrator that participates may do so without the permission.
async fn lead<V: Verb + Clone>(
    at: &mut Connection,
    session: &Session,
    verb: V,
) -> Result<V::Outcome, EngineError> {
    match at.engine.submit(&session.mail_caller(), verb.clone()).await {
        Err(EngineError::Refused(Refusal::ParticipantMayNot { .. })) if session.is_operator() => {
            at.engine.submit(&session.steering(), verb).await
        }
        result => result,
    }
}

/// `mail/presence`: which participants are connected.
pub(super) async fn presence(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let ConversationParams { conversation_id, .. } = params(given)?;
    let id = from_wire::conversation(&conversation_id)?;
    let (caller, page) = (session.mail_caller(), at.engine.limits().page);
    let asked = id.clone();
    let parts: Vec<Participant> =
        at.engine.read(move |view| Ok(view.participants(&caller, &asked, false, None, page)?.items)).await?;
    let presence = |part: &Participant| Presence {
        participant_id: part.agent.to_string(),
        presence: if at.engine.is_attached(&part.agent) { "online" } else { "offline" }.into(),
    };
    let participants = parts.iter().map(presence).collect();
    Ok(Answer::of(&PresenceResult { conversation_id: id.to_string(), participants }))
}

/// `mail/join`.
pub(super) async fn join(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let JoinParams { conversation_id, role, catch_up } = params(given)?;
    let id = from_wire::conversation(&conversation_id)?;
    let role = role.as_deref().map(from_wire::mail_role).transpose()?;
    // Params are checked before the caller joins.
    let query = catch_up.as_ref().map(catch_up_query).transpose()?;
    let caller = session.mail_caller();
    if let Some(turn) = query.as_ref().and_then(|query| query.after) {
        let (asking, of) = (caller.clone(), id.clone());
        at.engine.read(move |view| check_point(view, &asking, &of, turn)).await?;
    }
    let joined = at.engine.submit(&caller, Join { conversation: id.clone(), role }).await?;
    let turns = match query {
        Some(query) => Some(history(at, session, &caller, &id, query).await?),
        None => None,
    };
    let mut summary = None;
    if catch_up.is_some_and(|catch_up| catch_up.include_summary) && may_read_history(session) {
        match turns::gist(at, &caller, &id, Default::default(), false).await {
            Ok(gist) => summary = Some(gist.summary.text),
            Err(error) if error.code == codes::MAIL_PERMISSION_DENIED => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Answer::of(&JoinResult {
        conversation: to_wire::conversation(&joined.conversation),
        participant: to_wire::participant(&joined.participant),
        history: turns.as_deref().map(to_wire::turns),
        history_cursor: turns.as_deref().and_then(<[Turn]>::last).map(|last| to_wire::turn_id(last.id)),
        summary,
    }))
}

/// The turns to catch up with, oldest first. None for a session that may not read the history: it joins without it.
async fn history(
    at: &Connection,
    session: &Session,
    caller: &Caller,
    id: &ConversationId,
    query: TurnQuery,
) -> Result<Vec<Turn>, DoorError> {
    if !may_read_history(session) {
        return Ok(Vec::new());
    }
    let (asking, of, newest_first) = (caller.clone(), id.clone(), query.newest_first);
    let mut turns = match at.engine.read(move |view| view.turns(&asking, &of, &query)).await {
        Ok(page) => page.items,
        // The turn existed before the join, so it is older than what the participant may read.
        Err(EngineError::Refused(Refusal::ParticipantMayNot { .. } | Refusal::NoSuchTurn)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if newest_first {
        turns.reverse();
    }
    Ok(turns)
}

/// Whether the session may read earlier turns.
fn may_read_history(session: &Session) -> bool {
    session.may(Switch::ViewMailHistory)
}

/// Refuses to catch up from a turn that does not exist. Other reasons against joining are left to the verb.
fn check_point(view: &View<'_>, caller: &Caller, id: &ConversationId, turn: TurnId) -> Viewed<()> {
    let conversation = view.conversation(caller, id)?;
    if !conversation.status.is_closed() && view.own_part(caller, id)?.is_none() {
        view.turn(caller, id, turn)?;
    }
    Ok(())
}

/// The turns to catch up with: those after a turn or a time, or else the latest.
fn catch_up_query(catch_up: &CatchUp) -> Result<TurnQuery, DoorError> {
    let limit = from_wire::limit(catch_up.limit.as_ref(), 50, 1000)?;
    let mut query = TurnQuery { limit, ..TurnQuery::default() };
    match &catch_up.from {
        None | Some(Value::Null) => query.newest_first = true,
        Some(Value::String(word)) if word == "recent" => query.newest_first = true,
        Some(Value::String(word)) if word == "beginning" => {}
        Some(Value::String(turn)) => query.after = Some(from_wire::turn(turn)),
        // An unreadable time must not return everything.
        Some(time) => {
            let wrong = || DoorError::params("catchUp.from: a turn or a time in whole milliseconds");
            query.after_time = Some(time.as_i64().ok_or_else(wrong)?);
        }
    }
    Ok(query)
}

/// `mail/leave`.
pub(super) async fn leave(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let ConversationParams { conversation_id, reason } = params(given)?;
    let verb = Leave { conversation: from_wire::conversation(&conversation_id)?, reason };
    let part = at.engine.submit(&session.mail_caller(), verb).await?;
    Ok(Answer::of(&LeaveResult { success: true, left_at: part.left_at }))
}

/// `mail/invite`: the invited agent participates at once and receives the text as a message.
pub(super) async fn invite(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let InviteParams { conversation_id, participant, message } = params(given)?;
    let verb = Invite {
        conversation: from_wire::conversation(&conversation_id)?,
        invitee: from_wire::invitee(&participant)?,
    };
    let part = at.engine.submit(&session.mail_caller(), verb).await?;
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        let invitation = Invitation {
            kind: "mail.invitation".into(),
            conversation_id: part.conversation.to_string(),
            message,
        };
        // It participates in any case: an agent that receives no messages finds the conversation in its list.
        if let Err(failure) = send::plain(at, session, &part.agent, &invitation, None).await {
            tracing::debug!(agent = %part.agent, failure = failure.message, "an invitation could not be sent");
        }
    }
    Ok(Answer::of(&InviteResult { invited: true, participant: to_wire::participant(&part), pending: false }))
}
