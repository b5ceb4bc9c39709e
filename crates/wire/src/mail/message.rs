//! MAILMessage and the payloads it binds.

use serde_json::{Map, Value, json};

use super::address::MailAddress;
use super::fields::{FieldError, Fields, texts};

/// What kind of message it is, which decides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MsgType {
    /// Asks one recipient.
    Request,
    /// Answers one.
    Response,
    /// Tells many.
    Broadcast,
    /// Stops some in what they do.
    Interrupt,
    /// Ends the task.
    BroadcastComplete,
}

impl MsgType {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Request, Self::Response, Self::Broadcast, Self::Interrupt, Self::BroadcastComplete];

    /// Its word.
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

    /// The kind of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// Whether its payload has `recipients` instead of one `recipient`.
    #[must_use]
    pub fn is_plural(self) -> bool {
        !matches!(self, Self::Request | Self::Response)
    }

    /// The field that holds the payload's own id.
    #[must_use]
    pub fn id_field(self) -> &'static str {
        match self {
            Self::Request | Self::Response => "request_id",
            Self::Broadcast | Self::BroadcastComplete => "broadcast_id",
            Self::Interrupt => "interrupt_id",
        }
    }
}

/// What a message carries, whatever its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The task it belongs to.
    pub task_id: String,
    /// `request_id`, `broadcast_id` or `interrupt_id`.
    pub own_id: String,
    /// Who sends it.
    pub sender: MailAddress,
    /// Who gets it; exactly one for requests and responses.
    pub recipients: Vec<MailAddress>,
    /// Its heading.
    pub subject: String,
    /// What it says.
    pub body: String,
    /// The sender's swarm.
    pub sender_swarm: Option<String>,
    /// The recipients' swarms; at most one for requests and responses.
    pub recipient_swarms: Option<Vec<String>>,
    /// Hints for those who carry it.
    pub routing_info: Option<Map<String, Value>>,
}

impl Payload {
    /// Reads the payload that a kind of message must have.
    ///
    /// # Errors
    /// Names the field that is not as the schema wants it.
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
        let fields = Fields::of(value)?.only(&known)?;
        let task_id = fields.uuid("task_id")?.to_owned();
        // The schema wants a UUID in requests and lets responses name anything.
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

    /// As JSON.
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

/// A message with its kind, name and time.
#[derive(Clone, Debug, PartialEq)]
pub struct MailMessage {
    /// Its name.
    pub id: String,
    /// When it was sent, as RFC 3339 writes it.
    pub timestamp: String,
    /// What kind it is.
    pub msg_type: MsgType,
    /// What it carries.
    pub message: Payload,
}

impl MailMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// Names the field that is not as the schema wants it.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::of(value)?.only(&["id", "timestamp", "message", "msg_type"])?;
        let word = fields.text("msg_type")?;
        let msg_type = MsgType::from_word(word).ok_or_else(|| {
            FieldError::new(
                "msg_type",
                "must be request, response, broadcast, interrupt or broadcast_complete",
            )
        })?;
        let payload = fields.required("message")?;
        Ok(Self {
            id: fields.uuid("id")?.to_owned(),
            timestamp: fields.moment("timestamp")?.to_owned(),
            msg_type,
            message: Payload::read(msg_type, payload).map_err(|error| error.within("message"))?,
        })
    }

    /// As JSON.
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
