//! Params as the engine's nouns and verbs.

use std::fmt::Display;

use posthaste_engine::nouns::{
    Address, AgentKind, Audience, Body, Caller, Json, MessageId, Priority, TokenRole,
};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::views::{InboxOrder, InboxQuery};
use posthaste_host::address;
use posthaste_host::caller::Identity;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::VIA;
use super::errors::{bad_params, denied};

/// The address of the person who runs the server.
const OPERATOR: &str = "operator";

/// An id or name, checked.
pub(super) fn name<T: TryFrom<String, Error: Display>>(text: String) -> Result<T, ErrorObject> {
    T::try_from(text).map_err(bad_params)
}

/// The same where it may be absent.
pub(super) fn optional<T: TryFrom<String, Error: Display>>(
    text: Option<String>,
) -> Result<Option<T>, ErrorObject> {
    text.map(name).transpose()
}

/// The caller under the name it asks for: its own, or any agent's for an administrator.
pub(super) fn acting(identity: &Identity, agent: Option<String>) -> Result<Caller, ErrorObject> {
    match agent {
        // The operator's address is another word for the name that the admin key stands for.
        Some(word) if word == OPERATOR && identity.is_operator() => Ok(identity.caller(VIA)),
        Some(agent) if agent != identity.name.as_str() && identity.role != TokenRole::Admin => {
            Err(denied("only administrators act for other agents"))
        }
        Some(agent) => Ok(identity.caller_as(name(agent)?, VIA)),
        None => Ok(identity.caller(VIA)),
    }
}

pub(super) fn agent_kind(kind: wire::AgentKind) -> AgentKind {
    match kind {
        wire::AgentKind::Agent => AgentKind::Agent,
        wire::AgentKind::User => AgentKind::User,
        wire::AgentKind::Admin => AgentKind::Admin,
        wire::AgentKind::Client => AgentKind::Client,
        wire::AgentKind::Gateway => AgentKind::Gateway,
        wire::AgentKind::System => AgentKind::System,
    }
}

pub(super) fn token_role(role: wire::TokenRole) -> TokenRole {
    match role {
        wire::TokenRole::Admin => TokenRole::Admin,
        wire::TokenRole::User => TokenRole::User,
        wire::TokenRole::Agent => TokenRole::Agent,
    }
}

/// The message to send, without its files. The sender is the caller.
pub(super) fn message(
    given: wire::SendParams,
    in_reply_to: Option<MessageId>,
) -> Result<SendMessage, ErrorObject> {
    let addresses = |words: &[String]| -> Result<Vec<Address>, ErrorObject> {
        words
            .iter()
            .map(|word| address::parse(word).map_err(|why| bad_params(format!("{word:?}: {why}"))))
            .collect()
    };
    let body = match serde_json::from_str::<String>(given.body.get()) {
        Ok(text) => Body::Text(text),
        Err(_) => Body::Json(Json::from_raw(&given.body).map_err(|why| bad_params(format!("body: {why}")))?),
    };
    let priority = given.priority.map(Priority::try_from).transpose().map_err(bad_params)?;
    let conversation = optional(given.conversation)?;
    Ok(SendMessage {
        to: addresses(&given.to)?,
        cc: addresses(&given.cc)?,
        bcc: addresses(&given.bcc)?,
        kind: given.kind,
        subject: given.subject,
        body,
        priority: priority.unwrap_or(Priority::NORMAL),
        ack_required: given.ack_required,
        expires_at: given.expires_at,
        correlation: None,
        within: conversation.map(|conversation| ConversationRef {
            conversation,
            thread: None,
            reply_to: None,
            visibility: None,
            join: JoinMode::NameOnly { kind: "thread".to_owned() },
        }),
        in_reply_to,
        task: None,
        key: given.key,
        envelope: None,
        meta: None,
        audience: Audience::Parties,
        allow_no_recipients: false,
        pass_over: false,
        not_receiving: Vec::new(),
    })
}

pub(super) fn inbox_query(given: wire::InboxParams) -> InboxQuery {
    InboxQuery {
        unread: given.unread,
        kinds: given.kinds,
        since: given.since,
        after: given.after,
        before: given.before,
        order: match given.order {
            wire::InboxOrder::Newest => InboxOrder::Newest,
            wire::InboxOrder::Oldest => InboxOrder::Oldest,
            wire::InboxOrder::Priority => InboxOrder::Priority,
        },
        limit: given.limit.0,
        ..InboxQuery::default()
    }
}
