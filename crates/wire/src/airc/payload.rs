//! Payloads: a type and whatever belongs to it. Those of the extension keep to its rules; all others are carried as they are.

use serde_json::{Map, Value};

use super::scope::Scope;
use crate::time;

/// Characters of an acknowledgement's answer.
const LONGEST_RESPONSE: usize = 500;

/// What a message carries.
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

/// Why a payload is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct PayloadError {
    /// Which member.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

/// What a thread is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub id: String,
    /// Its heading.
    pub subject: String,
    /// Where it is in its life.
    pub status: ThreadStatus,
}

/// Where a thread is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStatus {
    /// Going on.
    Open,
    /// Ended.
    Closed,
    /// Ended and put away.
    Archived,
}

/// Mail for later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// Its name.
    pub id: String,
    /// The thread it belongs to.
    pub thread_id: Option<String>,
    /// Its heading.
    pub subject: String,
    /// Markdown.
    pub body: String,
    /// Whether an acknowledgement is asked for.
    pub ack_required: bool,
    /// `low`, `normal`, `high` or `urgent`.
    pub priority: String,
    /// When it is to be hidden, in Unix milliseconds.
    pub expires: Option<i64>,
}

/// An acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The mail it is about.
    pub id: String,
    /// What is said to it.
    pub response: Option<String>,
}

/// An advisory lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its name, unique among its owner's.
    pub id: String,
    /// The thread it belongs to.
    pub thread_id: Option<String>,
    /// Where the paths live; there for `active`, may be there for the others.
    pub scope: Option<Scope>,
    /// The paths.
    pub paths: Vec<String>,
    /// Whether the owner wants them alone.
    pub exclusive: bool,
    /// What for.
    pub reason: Option<String>,
    /// What is said of it.
    pub status: ReservationStatus,
    /// When it was issued, in Unix milliseconds.
    pub issued: Option<i64>,
    /// When it lapses, in Unix milliseconds; there for `active` and `renewed`.
    pub expires: Option<i64>,
}

/// What is said of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationStatus {
    /// It is taken.
    Active,
    /// It lasts longer.
    Renewed,
    /// It is given back.
    Released,
    /// It is over.
    Expired,
}

/// A word about somebody's reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Which.
    pub id: String,
    /// The paths that are wanted.
    pub paths: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// `release`, `share`, `wait` or `split`.
    pub proposal: Option<String>,
}

impl Payload {
    /// Reads a payload. The members of the extension's types stand flat beside `type`, or below `data` or `content`.
    pub fn read(payload: &Map<String, Value>) -> Result<Self, PayloadError> {
        let kind = match payload.get("type") {
            Some(Value::String(kind)) if !kind.trim().is_empty() && kind.len() <= 128 => kind.as_str(),
            _ => return Err(refused("type", "a payload needs a type of 1 to 128 bytes")),
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

    /// The type's word.
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

    /// The thread it says it belongs to.
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
        if let Some(people) = fields.list("participants")?
            && !people.iter().all(Value::is_string)
        {
            return Err(refused("participants", "a list of handles is expected"));
        }
        fields.required_moment("created_ts")?;
        fields.moment("updated_ts")?;
        let status = match fields.word("status", &["open", "closed", "archived"])? {
            None | Some("open") => ThreadStatus::Open,
            Some("closed") => ThreadStatus::Closed,
            Some(_) => ThreadStatus::Archived,
        };
        Ok(Self { id: fields.required("thread_id")?, subject: fields.required("subject")?, status })
    }
}

impl Mailbox {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        let priority = fields.word("priority", &["low", "normal", "high", "urgent"])?.unwrap_or("normal");
        Ok(Self {
            id: fields.required("message_id")?,
            thread_id: fields.thread_id()?,
            subject: fields.required("subject")?,
            body: fields.required("body_md")?,
            ack_required: fields.flag("ack_required")?.unwrap_or(false),
            priority: priority.to_owned(),
            expires: fields.moment("expires_ts")?,
        })
    }
}

impl Ack {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        fields.required_moment("ack_ts")?;
        let response = fields.text("response")?;
        if response.is_some_and(|text| text.chars().count() > LONGEST_RESPONSE) {
            return Err(refused("response", "at most 500 characters"));
        }
        Ok(Self { id: fields.required("message_id")?, response: response.map(str::to_owned) })
    }
}

impl Reservation {
    fn read(fields: &Fields<'_>) -> Result<Self, PayloadError> {
        let id = fields.required("reservation_id")?;
        let status = match fields.word("status", &["active", "renewed", "released", "expired"])? {
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
        let ttl = fields.count("ttl_seconds")?;
        let issued = fields.moment("issued_ts")?;
        let expires = fields.moment("expires_ts")?;
        fields.moment("released_ts")?;
        let exclusive = fields.flag("exclusive")?.unwrap_or(true);
        let reason = fields.text("reason")?.map(str::to_owned);
        let missing = |field, there: bool| if there { Ok(()) } else { Err(refused(field, "is missing")) };
        if status == ReservationStatus::Active {
            missing("scope", scope.is_some())?;
            missing("paths", paths.is_some())?;
            missing("issued_ts", issued.is_some())?;
        }
        if matches!(status, ReservationStatus::Active | ReservationStatus::Renewed) {
            missing("ttl_seconds", ttl)?;
            missing("expires_ts", expires.is_some())?;
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
        let proposal = fields.word("proposal", &["release", "share", "wait", "split"])?;
        Ok(Self {
            id: fields.required("conflicting_reservation_id")?,
            paths: paths.ok_or_else(|| refused("requested_paths", "is missing"))?,
            reason: fields.text("reason")?.map(str::to_owned),
            proposal: proposal.map(str::to_owned),
        })
    }
}

/// Refuses paths that are not relative to a scope.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    let bytes = path.as_bytes();
    let drive = bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    if path.trim().is_empty() {
        return Err("a path must not be empty");
    }
    if path.starts_with(['/', '\\', '~']) || drive || path.to_ascii_lowercase().starts_with("file:") {
        return Err("paths are relative to the scope");
    }
    if path.contains('\0') {
        return Err("a path has no NUL");
    }
    if path.split(['/', '\\']).any(|segment| segment == "..") {
        return Err("a path must not climb out of the scope with ..");
    }
    Ok(())
}

fn refused(field: &'static str, why: impl Into<String>) -> PayloadError {
    PayloadError { field, why: why.into() }
}

/// The members of a payload, asked for by kind.
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

    fn word(&self, field: &'static str, known: &[&str]) -> Result<Option<&'a str>, PayloadError> {
        match self.text(field)? {
            Some(word) if !known.contains(&word) => {
                Err(refused(field, format!("one of {} is expected", known.join(", "))))
            }
            word => Ok(word),
        }
    }

    fn flag(&self, field: &'static str) -> Result<Option<bool>, PayloadError> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(refused(field, "true or false is expected")),
        }
    }

    /// Whether a positive whole number is there.
    fn count(&self, field: &'static str) -> Result<bool, PayloadError> {
        let Some(value) = self.0.get(field) else { return Ok(false) };
        let whole = |number: f64| number >= 1.0 && number.fract() == 0.0;
        match value.as_f64() {
            Some(number) if whole(number) => Ok(true),
            _ => Err(refused(field, "a positive whole number is expected")),
        }
    }

    fn moment(&self, field: &'static str) -> Result<Option<i64>, PayloadError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        // A date alone, or one without an offset, would mean another moment to every reader.
        let whole = text.len() >= 20 && matches!(text.as_bytes().get(10), Some(b'T' | b't'));
        let moment = time::parse_rfc3339(text).ok().filter(|_| whole);
        moment.map(Some).ok_or_else(|| refused(field, "an ISO 8601 timestamp in UTC is expected"))
    }

    fn required_moment(&self, field: &'static str) -> Result<i64, PayloadError> {
        self.moment(field)?.ok_or_else(|| refused(field, "is missing"))
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
            return Err(refused(field, "at least one path is needed"));
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
