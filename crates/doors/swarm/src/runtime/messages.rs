//! Conversion of a run's messages between the engine's form and MAIL's.

use posthaste_engine::nouns::{Address, AgentId, AgentKind, Json, Message, MessageId, Priority, RealmName};
use posthaste_engine::stamp::Stamp;
use posthaste_engine::verbs::runs::RunMessage;
use posthaste_wire::mail::subjects;
use posthaste_wire::mail::{AddressType, MailAddress, MailMessage, MsgType, Payload, split};
use posthaste_wire::time::to_rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::definition::Swarm;
use posthaste_host::plain_text;

/// Fields of a MAIL message that the engine's message has no field for; stored as its metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageMeta {
    /// The sender's address type, unless it is an agent.
    #[serde(default, rename = "from", skip_serializing_if = "Option::is_none")]
    pub(crate) sender_type: Option<String>,
    /// The sender's address, if its agent id differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sender: Option<String>,
    /// The address type and address of the recipient, if it is no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recipient: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sender_swarm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recipient_swarms: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) routing_info: Option<Map<String, Value>>,
    /// Whether it resumes an agent with the result of a breakpoint tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resumed: bool,
    /// Whether it only tells another swarm that the task has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) notice: bool,
}

impl MessageMeta {
    pub(crate) fn of(message: &Message) -> Self {
        let read = |json: &Json| serde_json::from_str(json.as_str()).ok();
        message.meta.as_ref().and_then(read).unwrap_or_default()
    }

    fn to_json(&self) -> Option<Json> {
        if *self == Self::default() {
            return None;
        }
        serde_json::to_string(self).ok().and_then(|text| Json::new(text).ok())
    }
}

/// A message that is about to be sent.
#[derive(Clone, Debug)]
pub(crate) struct MessageDraft {
    pub(crate) kind: MsgType,
    pub(crate) sender: MailAddress,
    /// The recipients as the sender named them: local names, `name@swarm`, `all`, or a user.
    pub(crate) recipients: Vec<MailAddress>,
    /// The local agents that get it.
    pub(crate) here: Vec<String>,
    pub(crate) subject: String,
    pub(crate) body: String,
    /// `request_id` and the like; made up if absent.
    pub(crate) own_id: Option<String>,
    /// The idempotency key of a message from outside.
    pub(crate) key: Option<String>,
    pub(crate) extra: MessageMeta,
}

impl MessageDraft {
    /// A message of the system to local agents.
    pub(crate) fn system(
        swarm: &str,
        kind: MsgType,
        to: &[&str],
        subject: &str,
        body: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            sender: MailAddress::system(swarm),
            recipients: to.iter().map(|name| MailAddress::agent(*name)).collect(),
            here: to.iter().map(|name| (*name).to_owned()).collect(),
            subject: subject.to_owned(),
            body: body.into(),
            own_id: None,
            key: None,
            extra: MessageMeta::default(),
        }
    }

    /// The message with which an agent ends a turn of the task. It is addressed to all and delivered to none.
    pub(crate) fn completion(agent: &str, text: String) -> Self {
        Self {
            kind: MsgType::BroadcastComplete,
            sender: MailAddress::agent(agent),
            recipients: vec![MailAddress::all()],
            here: Vec::new(),
            subject: subjects::TASK_COMPLETE.to_owned(),
            body: text,
            own_id: None,
            key: None,
            extra: MessageMeta::default(),
        }
    }

    /// Its priority: the system first, then users, interrupts, broadcasts, everything else.
    pub(crate) fn priority(&self) -> Priority {
        match (self.sender.address_type, self.kind) {
            (AddressType::System, _) => Priority::URGENT,
            (AddressType::User | AddressType::Admin, _) => Priority::HIGH,
            (AddressType::Agent, MsgType::Interrupt) => Priority::NORMAL,
            (AddressType::Agent, MsgType::Broadcast | MsgType::BroadcastComplete) => Priority::LOW,
            (AddressType::Agent, MsgType::Request | MsgType::Response) => Priority::BULK,
        }
    }

    /// The message in the engine's form. Recipients in swarms whose name is not valid were refused before.
    pub(crate) fn into_message(mut self, swarm: &Swarm) -> RunMessage {
        let priority = self.priority();
        let (from, from_kind) = principal(swarm, &self.sender);
        match self.sender.address_type {
            AddressType::Agent => {}
            other => self.extra.sender_type = Some(other.as_str().to_owned()),
        }
        if from.as_str() != self.sender.address && self.sender.address_type != AddressType::System {
            self.extra.sender = Some(self.sender.address.clone());
        }
        let mut addressed = Vec::with_capacity(self.recipients.len());
        let mut away = Vec::new();
        for recipient in &self.recipients {
            match (recipient.address_type, split(&recipient.address)) {
                (AddressType::Agent, ("all", None)) => addressed.push(Address::All),
                (AddressType::Agent, (name, Some(other))) if other != swarm.name => {
                    let parts = (RealmName::new(other), AgentId::new(&recipient.address));
                    if let (Ok(realm), Ok(agent)) = parts {
                        addressed.push(Address::Remote { agent: name.to_owned(), realm: realm.clone() });
                        away.push((realm, agent));
                    }
                }
                (AddressType::Agent, (name, _)) => {
                    addressed.extend(AgentId::new(name).ok().map(Address::Agent))
                }
                (other, _) => {
                    self.extra.recipient = Some((other.as_str().to_owned(), recipient.address.clone()));
                    addressed.push(Address::Agent(principal(swarm, recipient).0));
                }
            }
        }
        let id = Stamp::new().id;
        RunMessage {
            id: MessageId(id),
            from,
            from_kind,
            addressed,
            to: self.here.iter().filter_map(|name| AgentId::new(name).ok()).collect(),
            away,
            kind: self.kind.as_str().to_owned(),
            subject: self.subject,
            body: self.body,
            priority,
            correlation: Some(self.own_id.unwrap_or_else(|| own_id_of(id))),
            key: self.key,
            meta: self.extra.to_json(),
            in_reply_to: None,
            elsewhere: None,
        }
    }
}

/// The engine's id for an address. Users and agents share one directory, so the id of a user that has the name of an agent
/// of the swarm begins with its role.
pub(crate) fn principal(swarm: &Swarm, address: &MailAddress) -> (AgentId, AgentKind) {
    let plain = |text: &str| AgentId::new(text).unwrap_or_else(|_| AgentId::office());
    match address.address_type {
        AddressType::Agent => (plain(&address.address), AgentKind::Agent),
        AddressType::System => match split(&address.address) {
            // The system of another swarm.
            (name, _) if name == swarm.name => (AgentId::office(), AgentKind::System),
            _ => (plain(&format!("system@{}", address.address)), AgentKind::System),
        },
        AddressType::User | AddressType::Admin => {
            let kind = match address.address_type {
                AddressType::Admin => AgentKind::Admin,
                _ => AgentKind::User,
            };
            if swarm.agent(&address.address).is_some() {
                let role = address.address_type.as_str();
                return (plain(&format!("{role}:{}", address.address)), kind);
            }
            (plain(&address.address), kind)
        }
    }
}

/// A message of a run in MAIL's form.
pub(crate) fn to_mail(message: &Message, task_id: &str, swarm: &str) -> MailMessage {
    let extra = MessageMeta::of(message);
    // Messages of other doors have other kinds; they are responses to what the agent was asked.
    let kind = MsgType::parse(&message.kind).unwrap_or(MsgType::Response);
    let sender_type = extra.sender_type.as_deref().and_then(AddressType::parse);
    let sender = match sender_type {
        Some(AddressType::System) if message.from == AgentId::office() => MailAddress::system(swarm),
        Some(address_type) => {
            MailAddress { address_type, address: extra.sender.unwrap_or_else(|| message.from.to_string()) }
        }
        None => MailAddress::agent(extra.sender.unwrap_or_else(|| message.from.to_string())),
    };
    let mut recipients: Vec<MailAddress> = match &extra.recipient {
        Some((word, address)) => {
            let address_type = AddressType::parse(word).unwrap_or(AddressType::User);
            vec![MailAddress { address_type, address: address.clone() }]
        }
        None => message.to.iter().filter_map(recipient).collect(),
    };
    if recipients.is_empty() {
        recipients.push(MailAddress::all());
    }
    let named = message.correlation.as_ref().filter(|id| **id != message.id.to_string());
    let own_id = match named {
        Some(id) if kind == MsgType::Response || uuid::Uuid::try_parse(id).is_ok() => id.clone(),
        _ => own_id_of(message.id.0),
    };
    MailMessage {
        id: message.id.to_string(),
        timestamp: to_rfc3339(message.at),
        msg_type: kind,
        message: Payload {
            task_id: task_id.to_owned(),
            own_id,
            sender,
            recipients,
            subject: plain_text::heading(message),
            body: plain_text::text(message),
            sender_swarm: extra.sender_swarm,
            recipient_swarms: extra.recipient_swarms,
            routing_info: extra.routing_info,
        },
    }
}

/// The `request_id`, `broadcast_id` or `interrupt_id` of a message whose sender gave none: always the same for one message,
/// and not the message's `id`, which names the envelope.
fn own_id_of(id: uuid::Uuid) -> String {
    uuid::Uuid::new_v5(&id, b"payload").to_string()
}

fn recipient(address: &Address) -> Option<MailAddress> {
    match address {
        Address::Agent(id) => Some(MailAddress::agent(id.as_str())),
        Address::Remote { agent, realm } => Some(MailAddress::agent(format!("{agent}@{realm}"))),
        Address::All => Some(MailAddress::all()),
        _ => None,
    }
}
