//! Message payloads. Types of the context extension are parsed and checked; all others are passed through.

use serde_json::{Map, Value};

use super::scope::Scope;
use crate::time;

/// Longest response of an acknowledgement, in characters.
const MAX_RESPONSE_CHARS: usize = 500;

/// A parsed payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// `context:thread`
    Thread(Thread),
    /// `context:mailbox`
    Mailbox(Mailbox),
    /// `context:mailbox_ack`
    Ack(Ack),
    /// `context:file_reservation`
    Reservation(Reservation),
    /// `context:reservation_conflict`
    Conflict(Conflict),
    /// Any other type.
    Other(String),
}

/// An invalid payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct PayloadError {
    /// The invalid member.
    pub field: &'static str,
    /// The problem.
    pub why: String,
}

/// A thread announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The thread id.
    pub id: String,
    /// The subject.
    pub subject: String,
    /// The status.
    pub status: ThreadStatus,
}

/// The status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStatus {
    /// The thread is open.
    Open,
    /// The thread is closed.
    Closed,
    /// The thread is closed and archived.
    Archived,
}

/// A mailbox message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// The message id.
    pub id: String,
    /// The thread it belongs to.
    pub thread_id: Option<String>,
    /// The subject.
    pub subject: String,
    /// The body, as Markdown.
    pub body: String,
    /// Whether the sender requests an acknowledgement.
    pub ack_required: bool,
    /// `low`, `normal`, `high` or `urgent`.
    pub priority: String,
    /// Expiry time, in Unix milliseconds; the message is hidden afterwards.
    pub expires: Option<i64>,
}

/// An acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The id of the acknowledged message.
    pub id: String,
    /// An optional response text.
    pub response: Option<String>,
}

/// An advisory file reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The reservation id, unique per owner.
    pub id: String,
    /// The thread it belongs to.
    pub thread_id: Option<String>,
    /// The scope of the paths; always present for `active`, optional for other statuses.
    pub scope: Option<Scope>,
    /// The reserved paths.
    pub paths: Vec<String>,
    /// Whether the reservation is exclusive.
    pub exclusive: bool,
    /// The reason, if given.
    pub reason: Option<String>,
    /// The status.
    pub status: ReservationStatus,
    /// Issue time, in Unix milliseconds.
    pub issued: Option<i64>,
    /// Expiry time, in Unix milliseconds; always present for `active` and `renewed`.
    pub expires: Option<i64>,
}

/// The announced status of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationStatus {
    /// The paths are reserved.
    Active,
    /// The expiry time was extended.
    Renewed,
    /// The owner released the paths.
    Released,
    /// The reservation expired.
    Expired,
}

/// A notice that a reservation conflicts with the sender's plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The id of the conflicting reservation.
    pub id: String,
    /// The requested paths.
    pub paths: Vec<String>,
    /// The reason, if given.
    pub reason: Option<String>,
    /// `release`, `share`, `wait` or `split`.
    pub proposal: Option<String>,
}

impl Payload {
    /// Parses a payload. Members of the extension's types are next to `type`, or inside `data` or `content`.
    pub fn read(payload: &Map<String, Value>) -> Result<Self, PayloadError> {
        let kind = match payload.get("type") {
            Some(Value::String(kind)) if !kind.trim().is_empty() && kind.len() <= 128 => kind.as_str(),
            _ => return Err(refused("type", "a payload requires a type of 1 to 128 bytes")),
        };
        let key = match kind {
            "context:thread" => "thread_id",
            "context:mailbox" | "context:mailbox_ack" => "message_id",
            "context:file_reservation" => "reservation_id",
            "context:reservation_conflict" => "conflicting_reservation_id",
            _ => return Ok(Self::Other(kind.to_owned())),
        };
        let wrapped =
            ["data", "content"].iter().find_map(|name| payload.get(*name).and_then(Value::as_object));
        let fields = Fields(match wrapped {
            Some(inner) if !payload.contains_key(key) => inner,
            _ => payload,
        });
        Ok(match kind {
            "context:thread" => Self::Thread(Thread::read(&fields)?),
            "context:mailbox" => Self::Mailbox(Mailbox::read(&fields)?),
            "context:mailbox_ack" => Self::Ack(Ack::read(&fields)?),
            "context:file_reservation" => Self::Reservation(Reservation::read(&fields)?),
            _ => Self::Conflict(Conflict::read(&fields)?),
        })
    }

    /// The payload type on the wire.
    pub fn kind(&self) -> &str {
        match self {
            Self::Thread(_) => "context:thread",
            Self::Mailbox(_) => "context:mailbox",
            Self::Ack(_) => "context:mailbox_ack",
            Self::Reservation(_) => "context:file_reservation",
            Self::Conflict(_) => "context:reservation_conflict",
            Self::Other(kind) => kind,
        }
    }

    /// The thread that the payload refers to.
    pub fn thread_id(&self) -> Option<&str> {
        match self {
            Self::Thread(thread) => Some(&thread.id),
            Self::Mailbox(mail) => mail.thread_id.as_deref(),
            Self::Reservation(reservation) => reservation.thread_id.as_deref(),
            _ => None,
        }
    }
}

impl Thread {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        if let Some(participants) = fields.list("participants")?
            && !participants.iter().all(Value::is_string)
        {
            return Err(refused("participants", "a list of handles is expected"));
        }
        fields.required_timestamp("created_ts")?;
        fields.timestamp("updated_ts")?;
        let status = match fields.one_of("status", &["open", "closed", "archived"])? {
            None | Some("open") => ThreadStatus::Open,
            Some("closed") => ThreadStatus::Closed,
            Some(_) => ThreadStatus::Archived,
        };
        Ok(Self { id: fields.required("thread_id")?, subject: fields.required("subject")?, status })
    }
}

impl Mailbox {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        let priority = fields.one_of("priority", &["low", "normal", "high", "urgent"])?.unwrap_or("normal");
        Ok(Self {
            id: fields.required("message_id")?,
            thread_id: fields.thread_id()?,
            subject: fields.required("subject")?,
            body: fields.required("body_md")?,
            ack_required: fields.flag("ack_required")?.unwrap_or(false),
            priority: priority.to_owned(),
            expires: fields.timestamp("expires_ts")?,
        })
    }
}

impl Ack {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        fields.required_timestamp("ack_ts")?;
        let response = fields.text("response")?;
        if response.is_some_and(|text| text.chars().count() > MAX_RESPONSE_CHARS) {
            return Err(refused("response", "at most 500 characters"));
        }
        Ok(Self { id: fields.required("message_id")?, response: response.map(str::to_owned) })
    }
}

impl Reservation {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        let id = fields.required("reservation_id")?;
        let status = match fields.one_of("status", &["active", "renewed", "released", "expired"])? {
            Some("active") => ReservationStatus::Active,
            Some("renewed") => ReservationStatus::Renewed,
            Some("released") => ReservationStatus::Released,
            Some(_) => ReservationStatus::Expired,
            None => return Err(refused("status", "active, renewed, released or expired is expected")),
        };
        let scope = match fields.text("scope")? {
            Some(scope) => Some(Scope::parse(scope).map_err(|why| refused("scope", why))?),
            None => None,
        };
        let paths = fields.paths("paths")?;
        let ttl = fields.has_count("ttl_seconds")?;
        let issued = fields.timestamp("issued_ts")?;
        let expires = fields.timestamp("expires_ts")?;
        fields.timestamp("released_ts")?;
        let exclusive = fields.flag("exclusive")?.unwrap_or(true);
        let reason = fields.text("reason")?.map(str::to_owned);
        let require =
            |field, is_present: bool| if is_present { Ok(()) } else { Err(refused(field, "is missing")) };
        if status == ReservationStatus::Active {
            require("scope", scope.is_some())?;
            require("paths", paths.is_some())?;
            require("issued_ts", issued.is_some())?;
        }
        if matches!(status, ReservationStatus::Active | ReservationStatus::Renewed) {
            require("ttl_seconds", ttl)?;
            require("expires_ts", expires.is_some())?;
        }
        if let (Some(issued), Some(expires)) = (issued, expires)
            && expires <= issued
        {
            return Err(refused("expires_ts", "must be after issued_ts"));
        }
        let thread_id = fields.thread_id()?;
        let paths = paths.unwrap_or_default();
        Ok(Self { id, thread_id, scope, paths, exclusive, reason, status, issued, expires })
    }
}

impl Conflict {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        fields.text("urgency")?;
        let paths = fields.paths("requested_paths")?;
        let proposal = fields.one_of("proposal", &["release", "share", "wait", "split"])?;
        Ok(Self {
            id: fields.required("conflicting_reservation_id")?,
            paths: paths.ok_or_else(|| refused("requested_paths", "is missing"))?,
            reason: fields.text("reason")?.map(str::to_owned),
            proposal: proposal.map(str::to_owned),
        })
    }
}

/// Refuses paths that are not relative to the scope or lead out of it.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    let bytes = path.as_bytes();
    let has_drive = bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    if path.trim().is_empty() {
        return Err("a path must not be empty");
    }
    if path.starts_with(['/', '\\', '~']) || has_drive || path.to_ascii_lowercase().starts_with("file:") {
        return Err("paths are relative to the scope");
    }
    if path.contains('\0') {
        return Err("a path must not contain NUL");
    }
    if path.split(['/', '\\']).any(|segment| segment == "..") {
        return Err("a path must not leave the scope with ..");
    }
    Ok(())
}

fn refused(field: &'static str, why: impl Into<String>) -> PayloadError {
    PayloadError { field, why: why.into() }
}

/// Typed access to the members of a payload.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn text(&self, field: &'static str) -> Result<Option<&'a str>, PayloadError> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(refused(field, "a string is expected")),
        }
    }

    fn required(&self, field: &'static str) -> Result<String, PayloadError> {
        match self.text(field)? {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            Some(_) => Err(refused(field, "must not be empty")),
            None => Err(refused(field, "is missing")),
        }
    }

    fn thread_id(&self) -> Result<Option<String>, PayloadError> {
        Ok(self.text("thread_id")?.filter(|thread| !thread.is_empty()).map(str::to_owned))
    }

    fn one_of(&self, field: &'static str, known: &[&str]) -> Result<Option<&'a str>, PayloadError> {
        match self.text(field)? {
            Some(text) if !known.contains(&text) => {
                Err(refused(field, format!("one of {} is expected", known.join(", "))))
            }
            text => Ok(text),
        }
    }

    fn flag(&self, field: &'static str) -> Result<Option<bool>, PayloadError> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(refused(field, "true or false is expected")),
        }
    }

    /// Whether the member is present; it must be a positive whole number.
    fn has_count(&self, field: &'static str) -> Result<bool, PayloadError> {
        let Some(value) = self.0.get(field) else { return Ok(false) };
        let is_positive_integer = |number: f64| number >= 1.0 && number.fract() == 0.0;
        match value.as_f64() {
            Some(number) if is_positive_integer(number) => Ok(true),
            _ => Err(refused(field, "a positive whole number is expected")),
        }
    }

    fn timestamp(&self, field: &'static str) -> Result<Option<i64>, PayloadError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        // A date without time, or without an offset, would be ambiguous.
        let is_complete = text.len() >= 20 && matches!(text.as_bytes().get(10), Some(b'T' | b't'));
        let timestamp = time::parse_rfc3339(text).ok().filter(|_| is_complete);
        timestamp.map(Some).ok_or_else(|| refused(field, "an ISO 8601 timestamp in UTC is expected"))
    }

    fn required_timestamp(&self, field: &'static str) -> Result<i64, PayloadError> {
        self.timestamp(field)?.ok_or_else(|| refused(field, "is missing"))
    }

    fn list(&self, field: &'static str) -> Result<Option<&'a Vec<Value>>, PayloadError> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(refused(field, "a list is expected")),
        }
    }

    fn paths(&self, field: &'static str) -> Result<Option<Vec<String>>, PayloadError> {
        let Some(list) = self.list(field)? else { return Ok(None) };
        if list.is_empty() {
            return Err(refused(field, "at least one path is required"));
        }
        let path = |value: &Value| match value {
            Value::String(path) => match check_path(path) {
                Ok(()) => Ok(path.clone()),
                Err(why) => Err(refused(field, format!("{path:?}: {why}"))),
            },
            _ => Err(refused(field, "a list of strings is expected")),
        };
        list.iter().map(path).collect::<Result<_, _>>().map(Some)
    }
}
