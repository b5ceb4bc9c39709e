//! MAILMessage and its payload types.

use serde_json::{Map, Value, json};

use super::address::MailAddress;
use super::fields::{FieldError, Fields, texts};

/// The message type, which determines the fields of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Converts to JSON.
    #[must_use]
    pub fn to_json(&self, kind: MsgType) -> Value {
        let mut out = Map::new();
        out.insert("task_id".into(), Value::from(self.task_id.as_str()));
        out.insert(kind.id_field().into(), Value::from(self.own_id.as_str()));
        out.insert("sender".into(), self.sender.to_json());
        let mut to = self.recipients.iter().map(MailAddress::to_json);
        if kind.is_plural() {
            out.insert("recipients".into(), to.collect());
        } else {
            out.insert("recipient".into(), to.next().unwrap_or_default());
        }
        out.insert("subject".into(), Value::from(self.subject.as_str()));
        out.insert("body".into(), Value::from(self.body.as_str()));
        if let Some(swarm) = &self.sender_swarm {
            out.insert("sender_swarm".into(), Value::from(swarm.as_str()));
        }
        match (&self.recipient_swarms, kind.is_plural()) {
            (Some(swarms), true) => {
                out.insert("recipient_swarms".into(), Value::from(swarms.clone()));
            }
            (Some(swarms), false) if !swarms.is_empty() => {
                out.insert("recipient_swarm".into(), Value::from(swarms[0].as_str()));
            }
            _ => {}
        }
        if let Some(info) = &self.routing_info {
            out.insert("routing_info".into(), Value::Object(info.clone()));
        }
        Value::Object(out)
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

    /// Converts to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "timestamp": self.timestamp,
            "message": self.message.to_json(self.msg_type),
            "msg_type": self.msg_type.as_str(),
        })
    }
}
