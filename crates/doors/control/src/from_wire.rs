//! The parameters of the office's own methods.

use posthaste_engine::nouns::{
    Address, AgentId, AgentKind, Audience, Body, Json, MessageId, Millis, Priority, RealmName, TokenRole,
};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::views::{InboxOrder, InboxQuery};
use posthaste_wire::rpc::ErrorObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::errors::bad_params;
use posthaste_host::address;

/// Reads parameters; none at all count as an empty object.
pub(super) fn params<T: DeserializeOwned>(given: Option<&RawValue>) -> Result<T, ErrorObject> {
    serde_json::from_str(given.map_or("{}", RawValue::get)).map_err(bad_params)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RegisterParams {
    #[serde(default)]
    pub(super) id: Option<AgentId>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<AgentKind>,
    #[serde(default)]
    pub(super) role: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SendParams {
    /// Who sends; the caller if absent.
    #[serde(default)]
    pub(super) from: Option<AgentId>,
    to: Vec<String>,
    #[serde(default)]
    cc: Vec<String>,
    #[serde(default)]
    bcc: Vec<String>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    subject: Option<String>,
    /// Prose if it is a string, else JSON.
    body: Box<RawValue>,
    #[serde(default)]
    priority: Option<Priority>,
    #[serde(default)]
    ack_required: bool,
    #[serde(default)]
    expires_at: Option<Millis>,
    #[serde(default)]
    conversation: Option<posthaste_engine::nouns::ConversationId>,
    #[serde(default)]
    /// The message that it answers: an id, the beginning of one, or a number.
    pub(super) in_reply_to: Option<String>,
    #[serde(default)]
    key: Option<String>,
    /// Files: `{name, data, media_type?}` with the bytes in base64.
    #[serde(default)]
    pub(super) attachments: Vec<Map<String, Value>>,
}

impl SendParams {
    pub(super) fn into_verb(self, in_reply_to: Option<MessageId>) -> Result<SendMessage, ErrorObject> {
        let addresses = |words: &[String]| -> Result<Vec<Address>, ErrorObject> {
            words
                .iter()
                .map(|word| address::parse(word).map_err(|why| bad_params(format!("{word:?}: {why}"))))
                .collect()
        };
        let body = match serde_json::from_str::<String>(self.body.get()) {
            Ok(text) => Body::Text(text),
            Err(_) => {
                Body::Json(Json::from_raw(&self.body).map_err(|why| bad_params(format!("body: {why}")))?)
            }
        };
        let gather = |conversation| ConversationRef {
            conversation,
            thread: None,
            reply_to: None,
            visibility: None,
            join: JoinMode::NameOnly { kind: "thread".to_owned() },
        };
        Ok(SendMessage {
            to: addresses(&self.to)?,
            cc: addresses(&self.cc)?,
            bcc: addresses(&self.bcc)?,
            kind: self.kind,
            subject: self.subject,
            body,
            priority: self.priority.unwrap_or(Priority::NORMAL),
            ack_required: self.ack_required,
            expires_at: self.expires_at,
            correlation: None,
            within: self.conversation.map(gather),
            in_reply_to,
            task: None,
            key: self.key,
            envelope: None,
            meta: None,
            audience: Audience::Parties,
            allow_no_recipients: false,
            pass_over: false,
            not_receiving: Vec::new(),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxParams {
    /// Whose mail; the caller's if absent.
    #[serde(default)]
    pub(super) agent: Option<AgentId>,
    #[serde(default)]
    unread: bool,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    since: Option<Millis>,
    #[serde(default)]
    after: Option<i64>,
    #[serde(default)]
    before: Option<i64>,
    #[serde(default)]
    order: Order,
    #[serde(default = "usual_page")]
    limit: usize,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    #[default]
    Newest,
    Oldest,
    Priority,
}

impl InboxParams {
    pub(super) fn into_query(self) -> InboxQuery {
        InboxQuery {
            unread: self.unread,
            kinds: self.kinds,
            since: self.since,
            after: self.after,
            before: self.before,
            order: match self.order {
                Order::Newest => InboxOrder::Newest,
                Order::Oldest => InboxOrder::Oldest,
                Order::Priority => InboxOrder::Priority,
            },
            limit: self.limit,
            ..InboxQuery::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkParams {
    /// Whose copy; the caller's if absent.
    #[serde(default)]
    pub(super) agent: Option<AgentId>,
    /// An id, the beginning of one, or a number.
    pub(super) message: String,
    #[serde(default)]
    pub(super) response: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentsParams {
    #[serde(default)]
    pub(super) after: Option<AgentId>,
    #[serde(default = "usual_page")]
    pub(super) limit: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParams {
    pub(super) query: String,
    /// Whose view; the caller's if absent.
    #[serde(default)]
    pub(super) agent: Option<AgentId>,
    #[serde(default)]
    pub(super) from: Option<AgentId>,
    #[serde(default)]
    pub(super) conversation: Option<posthaste_engine::nouns::ConversationId>,
    #[serde(default)]
    pub(super) newest: bool,
    #[serde(default)]
    pub(super) before: Option<i64>,
    #[serde(default = "usual_page")]
    pub(super) limit: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RealmParams {
    pub(super) name: RealmName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenCreateParams {
    pub(super) role: TokenRole,
    pub(super) name: String,
    #[serde(default)]
    pub(super) observe: bool,
    #[serde(default)]
    pub(super) expires_at: Option<Millis>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenRevokeParams {
    #[serde(default)]
    pub(super) id: Option<String>,
    /// The token itself, for a caller that has it and does not know its id.
    #[serde(default)]
    pub(super) token: Option<String>,
}

fn usual_page() -> usize {
    50
}
