//! Messages: `map/send` and its relatives, the notification `map/message`, and receipts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lenient::{or_default, present};

/// A message, with payload and meta as its sender wrote them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message<'a> {
    /// The message id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The sender.
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    /// The address, in any of the forms that [`super::Address::parse`] reads.
    pub to: Cow<'a, RawValue>,
    /// When the server accepted it, in Unix milliseconds.
    pub timestamp: i64,
    /// The payload.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Cow<'a, RawValue>>,
    /// The meta.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub meta: Option<Cow<'a, RawValue>>,
}

/// The address of a message that came by another door, as MAP writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum To {
    /// An agent of another system.
    Remote {
        /// The system.
        system: String,
        /// The agent.
        agent: String,
    },
    /// One agent.
    Agent {
        /// The agent.
        agent: String,
    },
    /// Several agents.
    Agents {
        /// The agents.
        agents: Vec<String>,
    },
    /// The members of a scope.
    Scope {
        /// The scope.
        scope: String,
    },
    /// All agents with a role.
    Role {
        /// The role.
        role: String,
        /// Only members of this scope.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// The sender's parent.
    Parent {
        /// Always true.
        parent: bool,
    },
    /// The sender's children.
    Children {
        /// Always true.
        children: bool,
        /// Number of levels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
    },
    /// Agents with the sender's parent.
    Siblings {
        /// Always true.
        siblings: bool,
    },
    /// The sender's ancestors.
    Ancestors {
        /// Always true.
        ancestors: bool,
        /// Maximum number of levels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
    },
    /// The sender's descendants.
    Descendants {
        /// Always true.
        descendants: bool,
        /// Maximum number of levels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
    },
    /// All participants of a class.
    Participants {
        /// `agents` or `clients`.
        participants: Cow<'static, str>,
    },
    /// Every agent.
    Broadcast {
        /// Always true.
        broadcast: bool,
    },
    /// Several addresses.
    List(Vec<To>),
}

/// The payload of a message that was written as plain text by another door.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPayload<'a> {
    /// The text.
    #[serde(borrow)]
    pub body: Cow<'a, str>,
    /// The subject.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Cow<'a, str>>,
    /// The kind of message.
    #[serde(borrow, rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'a, str>>,
}

/// The meta of a message that came by another door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignMeta<'a> {
    /// `urgent`, `high`, `normal` or `low`.
    #[serde(borrow)]
    pub priority: Cow<'a, str>,
    /// The correlation id.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// True if the sender wants an acknowledgement; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_ack: Option<bool>,
    /// The conversation of the message.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailRef<'a>>,
    /// Data of the other door, and the attachments.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Value>,
}

/// Names a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailRef<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
}

/// The params of `map/message`, by which the server delivers a message; `M` is the [`Message`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delivery<'a, M = Box<RawValue>> {
    /// The message.
    pub message: M,
    /// The agent that it is delivered to.
    #[serde(borrow)]
    pub recipient: Cow<'a, str>,
}

/// The params of `map/send`, `map/broadcast` and `map/request`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendParams<'a> {
    /// The address.
    #[serde(borrow, default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub to: Option<&'a RawValue>,
    /// The payload.
    #[serde(borrow, default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<&'a RawValue>,
    /// The meta; the server reads [`SendMeta`] in it.
    #[serde(borrow, default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a RawValue>,
    /// The priority, if meta has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Value>,
    /// The time to live, if meta has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<Value>,
    /// The kind of message, if the payload has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    /// How long a request waits for its answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Value>,
    /// Another name of `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Value>,
    /// Options; only `timeout` is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
}

/// The members of a message's meta that the server acts on. All others are passed to the recipients unread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendMeta {
    /// `urgent`, `high`, `normal`, `low`, or a number from 1 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Value>,
    /// The way of delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Value>,
    /// Another name of `ttlMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Value>,
    /// The time to live, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<Value>,
    /// Whether the sender wants an acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_ack: Option<Value>,
    /// Connects a question with its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Value>,
    /// The conversation to record the message in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail: Option<Value>,
}

/// The members of meta that tell a question from its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Expectation {
    /// Whether the sender waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expects_response: Option<bool>,
    /// Whether the message is an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_result: Option<bool>,
}

/// The members of a payload that other doors show beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heading {
    /// The kind of message.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Value>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Value>,
}

/// The params of `map/send/scope`, beside those in [`SendParams`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeParams {
    /// The scope.
    pub scope_id: String,
    /// False delivers the message to the sender too, if it is a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_sender: Option<bool>,
    /// Whether scopes below it count.
    #[serde(default, deserialize_with = "or_default")]
    pub include_descendants: bool,
}

/// The state of a message's delivery to one recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt<'a> {
    /// The recipient.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The state.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// The way of delivery that the sender named, or the usual one.
    #[serde(borrow)]
    pub semantic: Cow<'a, str>,
    /// When the message was accepted, in Unix milliseconds.
    pub timestamp: i64,
    /// Why it failed. Absent for local recipients; null for recipients in other systems that did not fail.
    #[serde(borrow, default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub error: Option<Option<Cow<'a, str>>>,
}

/// The recipients that have a message by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Delivered<'a> {
    /// Their number, for sessions of the draft.
    Count(usize),
    /// Their names, for sessions of the SDK.
    Agents(#[serde(borrow)] Vec<Cow<'a, str>>),
}

/// The result of `map/send` and its relatives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendResult<'a> {
    /// The message.
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    /// The recipients that have it by now.
    #[serde(borrow)]
    pub delivered: Delivered<'a>,
    /// One receipt per recipient: local ones, then those that receive no messages, then those in other systems.
    #[serde(borrow)]
    pub receipts: Vec<Receipt<'a>>,
}

/// The result of `map/request`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestResult<'a> {
    /// The question.
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    /// The answer.
    #[serde(borrow)]
    pub response: Message<'a>,
    /// The payload of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Cow<'a, RawValue>>,
}

/// The params of `map/inject`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectParams {
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// `interrupt`, `queue`, `best-effort` or `inject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// The agent, in the draft's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The content, in the draft's form: the payload or its member `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// The meta, in the draft's form; its `delivery` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The result of `map/inject`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectResult<'a> {
    /// Whether the delivery did not fail.
    pub injected: bool,
    /// `interrupt`, `queue` or `message`.
    #[serde(borrow)]
    pub delivery: Cow<'a, str>,
    /// The message.
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
}
