//! MAILMessage and its payload types.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::address::MailAddress;
use super::fields::{FieldError, Fields, deserialize_by_read, texts};

/// The message type, which determines the fields of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MsgType {
    /// A request to one recipient.
    Request,
    /// A response to a request.
    Response,
    /// A message to several recipients.
    Broadcast,
    /// A message that interrupts its recipients.
    Interrupt,
    /// The message that ends a task.
    BroadcastComplete,
}

impl MsgType {
    /// All message types.
    pub const ALL: [Self; 5] =
        [Self::Request, Self::Response, Self::Broadcast, Self::Interrupt, Self::BroadcastComplete];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Broadcast => "broadcast",
            Self::Interrupt => "interrupt",
            Self::BroadcastComplete => "broadcast_complete",
        }
    }

    /// Parses the name on the wire.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }

    /// Whether the payload has `recipients` instead of one `recipient`.
    #[must_use]
    pub fn is_plural(self) -> bool {
        !matches!(self, Self::Request | Self::Response)
    }

    /// The payload field that holds its own id.
    #[must_use]
    pub fn id_field(self) -> &'static str {
        match self {
            Self::Request | Self::Response => "request_id",
            Self::Broadcast | Self::BroadcastComplete => "broadcast_id",
            Self::Interrupt => "interrupt_id",
        }
    }
}

/// The payload of any message type.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The task it belongs to.
    pub task_id: String,
    /// `request_id`, `broadcast_id` or `interrupt_id`.
    pub own_id: String,
    /// The sender.
    pub sender: MailAddress,
    /// The recipients; exactly one for requests and responses.
    pub recipients: Vec<MailAddress>,
    /// The subject.
    pub subject: String,
    /// The body.
    pub body: String,
    /// The sender's swarm.
    pub sender_swarm: Option<String>,
    /// The recipients' swarms; at most one for requests and responses.
    pub recipient_swarms: Option<Vec<String>>,
    /// Hints for routing.
    pub routing_info: Option<Map<String, Value>>,
}

impl Payload {
    /// Parses the payload of a message of type `kind`.
    ///
    /// # Errors
    /// Names the field that violates the schema.
    pub fn read(kind: MsgType, value: &Value) -> Result<Self, FieldError> {
        let plural = kind.is_plural();
        let (to, swarms) =
            if plural { ("recipients", "recipient_swarms") } else { ("recipient", "recipient_swarm") };
        let known = [
            "task_id",
            kind.id_field(),
            "sender",
            to,
            "subject",
            "body",
            "sender_swarm",
            swarms,
            "routing_info",
        ];
        let fields = Fields::new(value)?.only(&known)?;
        let task_id = fields.uuid("task_id")?.to_owned();
        // The schema requires a UUID except in responses.
        let own_id = match kind {
            MsgType::Response => fields.text("request_id")?,
            _ => fields.uuid(kind.id_field())?,
        };
        let sender = MailAddress::read(fields.required("sender")?).map_err(|error| error.within("sender"))?;
        let recipients = if plural {
            let list = fields.list("recipients")?;
            if list.is_empty() {
                return Err(FieldError::new("recipients", "must name at least one recipient"));
            }
            let read = |(at, one): (usize, &Value)| {
                MailAddress::read(one).map_err(|error| error.within(&format!("recipients[{at}]")))
            };
            list.iter().enumerate().map(read).collect::<Result<_, _>>()?
        } else {
            let one = fields.required("recipient")?;
            vec![MailAddress::read(one).map_err(|error| error.within("recipient"))?]
        };
        let recipient_swarms = match (plural, fields.get(swarms)) {
            (_, None) => None,
            (true, Some(_)) => Some(texts(swarms, fields.list(swarms)?)?),
            (false, Some(_)) => Some(vec![fields.text(swarms)?.to_owned()]),
        };
        Ok(Self {
            task_id,
            own_id: own_id.to_owned(),
            sender,
            recipients,
            subject: fields.text("subject")?.to_owned(),
            body: fields.text("body")?.to_owned(),
            sender_swarm: fields.optional_text("sender_swarm")?.map(str::to_owned),
            recipient_swarms,
            routing_info: fields.optional_object("routing_info")?.cloned(),
        })
    }

    /// The payload of a message of type `kind`, ready to be serialised.
    pub(crate) fn form(&self, kind: MsgType) -> PayloadForm<'_> {
        let own_id = |field: &str| (kind.id_field() == field).then_some(self.own_id.as_str());
        let (one, several) = match kind.is_plural() {
            true => (None, Some(self.recipients.as_slice())),
            false => (self.recipients.first(), None),
        };
        let swarms = self.recipient_swarms.as_deref();
        PayloadForm {
            task_id: &self.task_id,
            request_id: own_id("request_id"),
            broadcast_id: own_id("broadcast_id"),
            interrupt_id: own_id("interrupt_id"),
            sender: &self.sender,
            recipient: one,
            recipients: several,
            subject: &self.subject,
            body: &self.body,
            sender_swarm: self.sender_swarm.as_deref(),
            recipient_swarm: swarms
                .filter(|_| !kind.is_plural())
                .and_then(<[String]>::first)
                .map(String::as_str),
            recipient_swarms: swarms.filter(|_| kind.is_plural()),
            routing_info: self.routing_info.as_ref(),
        }
    }
}

/// A payload with the fields that its message type has.
#[derive(Serialize)]
pub(crate) struct PayloadForm<'a> {
    task_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broadcast_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupt_id: Option<&'a str>,
    sender: &'a MailAddress,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<&'a MailAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipients: Option<&'a [MailAddress]>,
    subject: &'a str,
    body: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_swarm: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient_swarm: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient_swarms: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing_info: Option<&'a Map<String, Value>>,
}

/// Fields of a message of another protocol that MAIL has no member for. Agents find them in `routing_info`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MailOrigin {
    /// The tag of the door that the message came through.
    pub door: String,
    /// The message's id there.
    pub message_id: String,
    /// The priority: 0 is the most urgent.
    pub priority: u8,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The kind of message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the sender asks for an acknowledgement; absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_required: Option<bool>,
    /// A body that is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Data of the door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Descriptions of the attached files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Value>>,
}

impl MailOrigin {
    /// The members as `routing_info`.
    #[must_use]
    pub fn into_routing_info(self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

/// A message: type, id, timestamp and payload.
#[derive(Clone, Debug, PartialEq)]
pub struct MailMessage {
    /// The message id.
    pub id: String,
    /// Sending time, as RFC 3339.
    pub timestamp: String,
    /// The message type.
    pub msg_type: MsgType,
    /// The payload.
    pub message: Payload,
}

impl MailMessage {
    /// Parses a message.
    ///
    /// # Errors
    /// Names the field that violates the schema.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::new(value)?.only(&["id", "timestamp", "message", "msg_type"])?;
        let msg_type = MsgType::parse(fields.text("msg_type")?).ok_or_else(|| {
            FieldError::new(
                "msg_type",
                "must be request, response, broadcast, interrupt or broadcast_complete",
            )
        })?;
        let payload = fields.required("message")?;
        Ok(Self {
            id: fields.uuid("id")?.to_owned(),
            timestamp: fields.timestamp("timestamp")?.to_owned(),
            msg_type,
            message: Payload::read(msg_type, payload).map_err(|error| error.within("message"))?,
        })
    }
}

impl Serialize for MailMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            id: &'a str,
            timestamp: &'a str,
            message: PayloadForm<'a>,
            msg_type: MsgType,
        }
        let Self { id, timestamp, msg_type, message } = self;
        let form = Form { id, timestamp, message: message.form(*msg_type), msg_type: *msg_type };
        form.serialize(serializer)
    }
}

deserialize_by_read!(MailMessage);
