//! Conversion of params to the engine's types.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{
    AgentId, ConversationId, HistoryAccess, Json, PermissionsPatch, Priority, ScopeId, ThreadId, TurnId,
    TurnVisibility,
};
use posthaste_engine::verbs::conversations::Invitee;
use posthaste_wire::Id;
use posthaste_wire::map::conversation;
use posthaste_wire::map::turn::VisibilityParams;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::errors::DoorError;
use super::session::fresh;

/// Parses the params of a call, which must be an object; absent params are an empty one.
pub(super) fn params<T: DeserializeOwned>(given: Option<&RawValue>) -> Result<T, DoorError> {
    borrowed(given)
}

/// Like [`params`], for params that borrow from the text.
pub(super) fn borrowed<'a, T: Deserialize<'a>>(given: Option<&'a RawValue>) -> Result<T, DoorError> {
    let text = given.map_or("{}", RawValue::get);
    // serde would also accept an array of the members in order.
    if !text.starts_with('{') {
        return Err(DoorError::params("the parameters are an object"));
    }
    serde_json::from_str(text).map_err(DoorError::params)
}

/// A page size: the usual one if absent; zero, negative and fractional numbers are refused.
pub(super) fn limit(given: Option<&Value>, usual: usize, most: usize) -> Result<usize, DoorError> {
    match given {
        None | Some(Value::Null) => Ok(usual),
        Some(value) => match value.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
            Some(0) | None => Err(DoorError::params("limit: a whole number of at least 1")),
            Some(limit) => Ok(limit.min(most)),
        },
    }
}

pub(super) fn agent(text: &str) -> Result<AgentId, DoorError> {
    Ok(AgentId::new(text)?)
}

pub(super) fn scope(text: &str) -> Result<ScopeId, DoorError> {
    Ok(ScopeId::new(text)?)
}

/// A conversation id. Text that cannot be one is answered like an unknown id.
pub(super) fn conversation(text: &str) -> Result<ConversationId, DoorError> {
    ConversationId::new(text).map_err(|_| {
        DoorError::new(
            posthaste_wire::map::codes::CONVERSATION_NOT_FOUND,
            "there is no conversation of that name",
        )
    })
}

/// An agent id in a filter. Text that cannot be one becomes an unused id, so that the list is empty.
pub(super) fn sought_agent(text: &str) -> Result<AgentId, DoorError> {
    agent(text).or_else(|_| agent(&fresh("unknown-")))
}

/// A conversation id in a filter, likewise.
pub(super) fn sought_conversation(text: &str) -> Result<ConversationId, DoorError> {
    conversation(text).or_else(|_| conversation(&fresh("conv-")))
}

pub(super) fn turn(text: &str) -> TurnId {
    TurnId(made_id(text, "turn-"))
}

pub(super) fn thread(text: &str) -> ThreadId {
    ThreadId(made_id(text, "thread-"))
}

/// An id that the server made. Text that cannot be one becomes the nil id, which is unused, so that the engine first checks
/// the conversation and the caller's participation.
fn made_id(text: &str, prefix: &str) -> Uuid {
    Id::parse_prefixed(text, prefix)
        .or_else(|_| text.parse())
        .map_or(Uuid::nil(), |Id(bits)| Uuid::from_u128(bits))
}

/// A priority: one of MAP's words or the number of a tier. Anything else is `normal`.
pub(super) fn priority(given: Option<&Value>) -> Priority {
    match given {
        Some(Value::String(word)) => priority_word(word).unwrap_or(Priority::NORMAL),
        Some(value) => value
            .as_u64()
            .and_then(|tier| u8::try_from(tier).ok())
            .and_then(|tier| Priority::try_from(tier).ok())
            .unwrap_or(Priority::NORMAL),
        None => Priority::NORMAL,
    }
}

pub(super) fn priority_word(word: &str) -> Option<Priority> {
    Some(match word {
        "urgent" | "critical" => Priority::URGENT,
        "high" => Priority::HIGH,
        "normal" | "medium" => Priority::NORMAL,
        "low" => Priority::LOW,
        "bulk" => Priority::BULK,
        _ => return None,
    })
}

/// Who may read a turn.
pub(super) fn visibility(given: Option<&Value>) -> Result<Option<TurnVisibility>, DoorError> {
    let VisibilityParams { kind, ids, roles } = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(value @ Value::Object(_)) => VisibilityParams::deserialize(value).map_err(DoorError::params)?,
        Some(_) => return Err(DoorError::params("visibility: an object with a type")),
    };
    Ok(Some(match kind.as_str() {
        "all" => TurnVisibility::All,
        "private" => TurnVisibility::Private,
        "internal" => TurnVisibility::Internal,
        "participants" => {
            let ids = ids.ok_or_else(|| DoorError::params("visibility: ids are missing"))?;
            TurnVisibility::Agents(ids.iter().map(|id| agent(id)).collect::<Result<_, _>>()?)
        }
        "role" => {
            let roles = roles.ok_or_else(|| DoorError::params("visibility: roles are missing"))?;
            TurnVisibility::Roles(roles.iter().map(|role| mail_role(role)).collect::<Result<_, _>>()?)
        }
        _ => return Err(DoorError::params("visibility: all, participants, role, private or internal")),
    }))
}

/// An agent that is to participate in a conversation.
pub(super) fn invitee(given: &conversation::Invitee) -> Result<Invitee, DoorError> {
    let may = given.permissions.clone().unwrap_or_default();
    let history = match &may.history_access {
        None => None,
        Some(word) => Some(
            HistoryAccess::from_word(word)
                .ok_or_else(|| DoorError::params("historyAccess: none, from-join or full"))?,
        ),
    };
    Ok(Invitee {
        agent: agent(&given.id)?,
        role: given.role.as_deref().map(mail_role).transpose()?,
        permissions: PermissionsPatch {
            can_send: may.can_send,
            can_observe: may.can_observe,
            can_invite: may.can_invite,
            can_remove: may.can_remove,
            can_create_threads: may.can_create_threads,
            history,
            can_see_internal: may.can_see_internal,
        },
    })
}

/// A role in a conversation.
pub(super) fn mail_role(word: &str) -> Result<String, DoorError> {
    match word {
        "initiator" | "assistant" | "worker" | "observer" | "moderator" => Ok(word.to_owned()),
        _ => Err(DoorError::params("role: initiator, assistant, worker, observer or moderator")),
    }
}

/// A value as its sender wrote it; refused if a reader could not parse it.
pub(super) fn raw_json(field: &'static str, value: &RawValue) -> Result<Json, DoorError> {
    Ok(Json::from_raw(value).map_err(|why| Refusal::BadJson { field, why })?)
}

/// A JSON value as the engine stores it.
pub(super) fn json(value: &Value) -> Json {
    Json::from_value(value)
}
