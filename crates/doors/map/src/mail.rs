//! MAP Mail: conversations and who takes part in them.

use std::sync::Arc;

use posthaste_engine::nouns::{
    AgentId, Audience, Caller, ConversationId, ConversationStatus, Json, Participant, TurnId,
};
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::conversations::{Close, Create, Invite, Join, Leave, Reopen};
use posthaste_engine::verbs::turns::FirstTurn;
use posthaste_engine::views::{ConversationQuery, TurnQuery, View, Viewed};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::map::{Switch, codes};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{
    self, WrittenInvitee, object, object_or_default, or_default, params, some_object, some_objects,
};
use super::session::{Session, fresh};
use super::{send, to_wire, turns};

/// What conversations are for.
const TYPES: [&str; 4] = ["user-session", "agent-task", "multi-agent", "mixed"];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CreateParams {
    #[serde(rename = "type")]
    kind: Option<String>,
    subject: Option<String>,
    parent_conversation_id: Option<String>,
    parent_turn_id: Option<String>,
    #[serde(deserialize_with = "some_objects")]
    initial_participants: Option<Vec<WrittenInvitee>>,
    #[serde(deserialize_with = "some_object")]
    initial_turn: Option<WrittenTurn>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTurn {
    content_type: String,
    content: Value,
    #[serde(default)]
    visibility: Option<Value>,
}

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
            .map(WrittenInvitee::read)
            .collect::<Result<_, _>>()?,
        first,
        audience: Audience::Observers,
        meta: asked.metadata.map(|metadata| Json::from_value(&Value::Object(metadata))),
    };
    let created = at.engine.submit(&session.mail_caller(), verb).await?;
    let mut text = format!(
        r#"{{"conversation":{},"participant":{}"#,
        to_wire::conversation(&created.conversation),
        to_wire::participant(&created.participant)
    );
    if let Some(turn) = &created.first {
        text.push_str(r#","initialTurn":"#);
        text.push_str(&to_wire::turn(turn));
    }
    text.push('}');
    Ok(text.into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    conversation_id: String,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetParams {
    conversation_id: String,
    #[serde(default, deserialize_with = "object_or_default")]
    include: Include,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Include {
    #[serde(deserialize_with = "or_default")]
    participants: bool,
    #[serde(deserialize_with = "or_default")]
    threads: bool,
    recent_turns: Option<Value>,
    #[serde(deserialize_with = "or_default")]
    stats: bool,
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
    if recent.is_some() && !may_look_back(session) {
        return Err(DoorError::new(codes::MAIL_PERMISSION_DENIED, "not allowed: mail.canViewHistory"));
    }
    let caller = session.mail_caller();
    let page = at.engine.limits().page;
    let text = at
        .engine
        .read(move |view| {
            let conversation = view.conversation(&caller, &id)?;
            let mut text = format!(r#"{{"conversation":{}"#, to_wire::conversation(&conversation));
            if include.participants {
                let mut found = view.participants(&caller, &id, false, None, page)?.items;
                found.sort_by_key(|part| part.joined);
                let found: Vec<Value> = found.iter().map(to_wire::participant).collect();
                text.push_str(&format!(r#","participants":{}"#, Value::Array(found)));
            }
            if include.threads {
                let found = view.threads(&caller, &id, None, 0, page)?.items;
                let found: Vec<Value> = found.iter().map(to_wire::thread).collect();
                text.push_str(&format!(r#","threads":{}"#, Value::Array(found)));
            }
            if let Some(limit) = recent {
                let query = TurnQuery { newest_first: true, limit, ..TurnQuery::default() };
                let turns = view.turns(&caller, &id, &query)?.items;
                text.push_str(&format!(r#","recentTurns":{}"#, to_wire::turns(&turns)));
            }
            if include.stats {
                let stats = view.conversation_stats(&caller, &id)?;
                let by_type: Map<String, Value> =
                    stats.by_content_type.into_iter().map(|(word, count)| (word, count.into())).collect();
                let stats = json!({
                    "totalTurns": stats.turns,
                    "turnsByContentType": by_type,
                    "activeParticipants": stats.participants,
                    "threadCount": stats.threads,
                });
                text.push_str(&format!(r#","stats":{stats}"#));
            }
            text.push('}');
            Ok(text)
        })
        .await?;
    Ok(text.into())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListParams {
    #[serde(deserialize_with = "object_or_default")]
    filter: ListFilter,
    limit: Option<Value>,
    cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListFilter {
    #[serde(rename = "type")]
    kinds: Option<Words>,
    status: Option<Words>,
    participant_id: Option<String>,
    created_after: Option<i64>,
    created_before: Option<i64>,
    parent_conversation_id: Option<String>,
}

/// A word or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    fn list(given: Option<Self>) -> Vec<String> {
        match given {
            None => Vec::new(),
            Some(Self::One(word)) => vec![word],
            Some(Self::Many(words)) => words,
        }
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
    let mut answer = json!({
        "conversations": page.items.iter().map(to_wire::conversation).collect::<Vec<_>>(),
        "hasMore": page.next.is_some(),
    });
    if let Some(next) = page.next {
        answer["nextCursor"] = next.to_string().into();
    }
    Ok(answer.into())
}

/// `mail/close`.
pub(super) async fn close(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let One { conversation_id, reason } = params(given)?;
    let verb = Close { conversation: from_wire::conversation(&conversation_id)?, status: None, reason };
    let conversation = lead(at, session, verb).await?;
    Ok(json!({ "conversation": to_wire::conversation(&conversation) }).into())
}

/// `mail/reopen`.
pub(super) async fn reopen(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let One { conversation_id, .. } = params(given)?;
    let verb = Reopen { conversation: from_wire::conversation(&conversation_id)? };
    let conversation = lead(at, session, verb).await?;
    Ok(json!({ "conversation": to_wire::conversation(&conversation) }).into())
}

/// Closes or reopens a conversation. An administrator that takes part in it may do so even if it came uninvited.
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

/// `mail/presence`: which participants are connected right now.
pub(super) async fn presence(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let One { conversation_id, .. } = params(given)?;
    let id = from_wire::conversation(&conversation_id)?;
    let (caller, page) = (session.mail_caller(), at.engine.limits().page);
    let asked = id.clone();
    let parts: Vec<Participant> =
        at.engine.read(move |view| Ok(view.participants(&caller, &asked, false, None, page)?.items)).await?;
    let present = |agent: &AgentId| if at.engine.is_attached(agent) { "online" } else { "offline" };
    let parts: Vec<Value> = parts
        .iter()
        .map(|part| json!({ "participantId": part.agent, "presence": present(&part.agent) }))
        .collect();
    Ok(json!({ "conversationId": id, "participants": parts }).into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JoinParams {
    conversation_id: String,
    #[serde(default)]
    role: Option<String>,
    #[serde(default, deserialize_with = "some_object")]
    catch_up: Option<CatchUp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CatchUp {
    from: Option<Value>,
    limit: Option<Value>,
    #[serde(deserialize_with = "or_default")]
    include_summary: bool,
}

/// `mail/join`.
pub(super) async fn join(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let JoinParams { conversation_id, role, catch_up } = params(given)?;
    let id = from_wire::conversation(&conversation_id)?;
    let role = role.as_deref().map(from_wire::mail_role).transpose()?;
    // Everything that can be wrong is found out before anyone has joined.
    let query = catch_up.as_ref().map(catch_up_query).transpose()?;
    let caller = session.mail_caller();
    if let Some(turn) = query.as_ref().and_then(|query| query.after) {
        let (asking, of) = (caller.clone(), id.clone());
        at.engine.read(move |view| check_point(view, &asking, &of, turn)).await?;
    }
    let joined = at.engine.submit(&caller, Join { conversation: id.clone(), role }).await?;
    let mut text = format!(
        r#"{{"conversation":{},"participant":{}"#,
        to_wire::conversation(&joined.conversation),
        to_wire::participant(&joined.participant)
    );
    if let Some(query) = query {
        let (asking, of, newest_first) = (caller.clone(), id.clone(), query.newest_first);
        // Who may not look back joins without looking back.
        let mut turns = match may_look_back(session) {
            true => match at.engine.read(move |view| view.turns(&asking, &of, &query)).await {
                Ok(page) => page.items,
                // The turn was there before it joined, so it lies before what its part may read.
                Err(EngineError::Refused(Refusal::ParticipantMayNot { .. } | Refusal::NoSuchTurn)) => {
                    Vec::new()
                }
                Err(error) => return Err(error.into()),
            },
            false => Vec::new(),
        };
        if newest_first {
            turns.reverse();
        }
        text.push_str(&format!(r#","history":{}"#, to_wire::turns(&turns)));
        if let Some(last) = turns.last() {
            text.push_str(&format!(r#","historyCursor":"{}""#, to_wire::turn_id(last.id)));
        }
    }
    if catch_up.is_some_and(|catch_up| catch_up.include_summary) && may_look_back(session) {
        match turns::gist(at, &caller, &id, Default::default(), false).await {
            Ok(gist) => text.push_str(&format!(r#","summary":{}"#, Value::from(gist.summary.text))),
            Err(failure) if failure.code == codes::MAIL_PERMISSION_DENIED => {}
            Err(failure) => return Err(failure),
        }
    }
    text.push('}');
    Ok(text.into())
}

/// Whether a connection may ask for what was said before.
fn may_look_back(session: &Session) -> bool {
    session.may(Switch::ViewMailHistory)
}

/// Refuses a turn to catch up from that is not there. What else speaks against joining is for the verb to say.
fn check_point(view: &View<'_>, caller: &Caller, id: &ConversationId, turn: TurnId) -> Viewed<()> {
    let conversation = view.conversation(caller, id)?;
    if !conversation.status.is_closed() && view.own_part(caller, id)?.is_none() {
        view.turn(caller, id, turn)?;
    }
    Ok(())
}

/// What to catch up with: what came after a turn or a time, or else what came last.
fn catch_up_query(catch_up: &CatchUp) -> Result<TurnQuery, DoorError> {
    let limit = from_wire::limit(catch_up.limit.as_ref(), 50, 1000)?;
    let mut query = TurnQuery { limit, ..TurnQuery::default() };
    match &catch_up.from {
        None | Some(Value::Null) => query.newest_first = true,
        Some(Value::String(word)) if word == "recent" => query.newest_first = true,
        Some(Value::String(word)) if word == "beginning" => {}
        Some(Value::String(turn)) => query.after = Some(from_wire::turn(turn)),
        // A time that cannot be read is no leave to give everything.
        Some(time) => {
            let wrong = || DoorError::params("catchUp.from: a turn or a time in whole milliseconds");
            query.after_time = Some(time.as_i64().ok_or_else(wrong)?);
        }
    }
    Ok(query)
}

/// `mail/leave`.
pub(super) async fn leave(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let One { conversation_id, reason } = params(given)?;
    let verb = Leave { conversation: from_wire::conversation(&conversation_id)?, reason };
    let part = at.engine.submit(&session.mail_caller(), verb).await?;
    Ok(json!({ "success": true, "leftAt": part.left_at }).into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InviteParams {
    conversation_id: String,
    #[serde(deserialize_with = "object")]
    participant: WrittenInvitee,
    #[serde(default)]
    message: Option<String>,
}

/// `mail/invite`: the invited takes part at once, and gets what was said to it as a letter.
pub(super) async fn invite(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let InviteParams { conversation_id, participant, message } = params(given)?;
    let verb =
        Invite { conversation: from_wire::conversation(&conversation_id)?, invitee: participant.read()? };
    let part = at.engine.submit(&session.mail_caller(), verb).await?;
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        let words =
            json!({ "type": "mail.invitation", "conversationId": part.conversation, "message": message });
        // It takes part in any case; one that takes no letters finds the conversation in its list.
        if let Err(failure) = send::plain(at, session, &part.agent, &words, None).await {
            tracing::debug!(agent = %part.agent, failure = failure.message, "an invitation could not be sent");
        }
    }
    Ok(json!({ "invited": true, "participant": to_wire::participant(&part), "pending": false }).into())
}
