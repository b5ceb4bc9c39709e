//! The signed envelope: read strictly, kept verbatim.

use serde_json::{Map, Value};

use super::payload::{Payload, PayloadError};
use crate::canonical::{self, CanonicalError, Node};
use crate::signing::{Claim, PublicKey, SigningError};
use crate::time;

/// Longer identifiers are refused, in bytes.
const LONGEST_ID: usize = 256;

/// A message as its sender wrote it.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The text as it came, byte for byte but for white space around it.
    pub text: String,
    /// What the signature covers.
    signed: String,
    /// The signature as written; nothing if there is none.
    signature: Option<Value>,
    members: Map<String, Value>,
    /// Who says to have sent it, as written.
    pub from: Option<String>,
    /// Whom it is for, as written.
    pub to: String,
    /// The sender's name for it.
    pub id: Option<String>,
    /// A word that comes once.
    pub nonce: Option<String>,
    /// When it was written, in Unix milliseconds.
    pub timestamp: Option<i64>,
    /// The thread it belongs to.
    pub thread_id: Option<String>,
    /// Prose.
    pub body: Option<String>,
    /// What it carries.
    pub payload: Option<Payload>,
}

/// Why a text is no envelope.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON, members twice, numbers no double can hold, nested too deep, or no object.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A member is missing or of the wrong kind.
    #[error("{field}: {why}")]
    Field {
        /// Which.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A payload of a known type does not keep to its rules.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

fn wrong<T>(field: &'static str, why: &'static str) -> Result<T, EnvelopeError> {
    Err(EnvelopeError::Field { field, why })
}

impl Envelope {
    /// Reads an envelope. Members that are not known stay and are covered by the signature.
    pub fn parse(text: &str) -> Result<Self, EnvelopeError> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        let node = Node::parse(text)?;
        let signed = node.spell_without("signature")?;
        let Value::Object(members) = node.into_value() else {
            return Err(CanonicalError::NotAnObject.into());
        };
        // The registry adds this one for the recipient; it must be able to tell whose it is.
        if members.contains_key("delivery") {
            return wrong("delivery", "this member is the registry's");
        }
        check_version(&members)?;
        let to = match text_of(&members, "to")? {
            Some(to) if !to.trim().is_empty() => to,
            _ => return wrong("to", "a recipient is needed"),
        };
        let body = text_of(&members, "body")?;
        let payload = match members.get("payload") {
            None | Some(Value::Null) => None,
            Some(Value::Object(payload)) => Some(Payload::read(payload)?),
            Some(_) => return wrong("payload", "a payload is an object"),
        };
        let signature = members.get("signature").filter(|signature| !signature.is_null()).cloned();
        Ok(Self {
            from: text_of(&members, "from")?,
            to,
            id: name_of(&members, "id")?,
            nonce: name_of(&members, "nonce")?,
            timestamp: moment_of(&members)?,
            thread_id: text_of(&members, "thread_id")?.filter(|thread| !thread.is_empty()),
            body,
            payload,
            text: text.to_owned(),
            signed,
            signature,
            members,
        })
    }

    /// What the signature covers.
    pub fn signed(&self) -> &str {
        &self.signed
    }

    /// Whether there is a signature at all, good or bad.
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// A member by name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// The payload as it was written.
    pub fn raw_payload(&self) -> Option<&Value> {
        self.members.get("payload").filter(|payload| payload.is_object())
    }

    /// The payload as it was written, to keep.
    pub fn take_payload(&mut self) -> Option<Value> {
        self.members.get_mut("payload").filter(|payload| payload.is_object()).map(Value::take)
    }

    /// Checks the signature against its sender's key.
    pub fn verify(&self, key: &PublicKey) -> Result<(), SigningError> {
        self.claim(key)?.check()
    }

    /// What its signature says, to be checked with others.
    pub fn claim(&self, key: &PublicKey) -> Result<Claim, SigningError> {
        let Some(Value::String(signature)) = &self.signature else { return Err(SigningError::Unsigned) };
        Ok(Claim { key: *key, signed: self.signed.clone(), signature: signature.parse()? })
    }

    /// Checks a signature that was made before `text`, a copy of `body`, was added: what one published client does.
    pub fn verify_without_text(&self, key: &PublicKey) -> Result<(), SigningError> {
        let Some(Value::String(signature)) = &self.signature else { return Err(SigningError::Unsigned) };
        if self.members.get("text").is_none() || self.members.get("text") != self.members.get("body") {
            return Err(SigningError::Mismatch);
        }
        let signed = canonical::canonicalize_without(&self.signed, "text")?;
        key.verify(signed.as_bytes(), &signature.parse()?)
    }

    /// The envelope as a recipient gets it: verbatim, and one member more that holds what the registry knows.
    pub fn with_delivery(text: &str, delivery: &str) -> String {
        let end = text.trim_end().len().saturating_sub(1);
        let head = text.get(..end).unwrap_or_default();
        let comma = if head.trim_end().ends_with('{') { "" } else { "," };
        format!("{head}{comma}\"delivery\":{delivery}}}")
    }
}

fn text_of(members: &Map<String, Value>, field: &'static str) -> Result<Option<String>, EnvelopeError> {
    match members.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => wrong(field, "a string is expected"),
    }
}

fn name_of(members: &Map<String, Value>, field: &'static str) -> Result<Option<String>, EnvelopeError> {
    match text_of(members, field)? {
        None => Ok(None),
        Some(name) if name.is_empty() || name.len() > LONGEST_ID || name.chars().any(char::is_control) => {
            wrong(field, "1 to 256 bytes without control characters are expected")
        }
        name => Ok(name),
    }
}

fn moment_of(members: &Map<String, Value>) -> Result<Option<i64>, EnvelopeError> {
    let why = "Unix seconds or ISO 8601 with an offset are expected";
    let moment = match members.get("timestamp") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => time::from_number(whole).ok(),
            (None, Some(part)) if part.abs() < 1e14 => {
                let millis = if part.abs() <= 1e11 { part * 1000.0 } else { part };
                time::from_number(millis as i64).ok().map(|_| millis as i64)
            }
            _ => None,
        },
        Some(Value::String(text)) => time::parse_moment(text).ok(),
        Some(_) => None,
    };
    if moment.is_some() { Ok(moment) } else { wrong("timestamp", why) }
}

fn check_version(members: &Map<String, Value>) -> Result<(), EnvelopeError> {
    for field in ["v", "protocol_version"] {
        let version = match members.get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            Some(_) => return wrong(field, "a version is a string"),
        };
        if version.trim_start_matches('v').split('.').next() != Some("0") {
            return wrong(field, "only versions 0.x are spoken here");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_envelope_is_refused() {
        for text in [
            "",
            "[1,2]",
            "\"x\"",
            "{not json",
            "{}",
            r#"{"to":""}"#,
            r#"{"to":7}"#,
            r#"{"to":"bob","to":"eve"}"#,
            r#"{"to":"bob","payload":[]}"#,
            r#"{"to":"bob","payload":{"content":"x"}}"#,
            r#"{"to":"bob","body":{}}"#,
            r#"{"to":"bob","timestamp":"yesterday"}"#,
            r#"{"to":"bob","timestamp":true}"#,
            r#"{"to":"bob","id":""}"#,
            r#"{"to":"bob","v":"1.0"}"#,
            r#"{"to":"bob","delivery":{}}"#,
            r#"{"to":"bob","n":1e400}"#,
        ] {
            assert!(Envelope::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_in_every_form() {
        let at = |timestamp: &str| {
            Envelope::parse(&format!(r#"{{"to":"bob","timestamp":{timestamp}}}"#)).unwrap().timestamp
        };
        for text in
            ["1767701100", "1767701100000", "1767701100.0", "\"2026-01-06T12:05:00Z\"", "\"1767701100\""]
        {
            assert_eq!(at(text), Some(1_767_701_100_000), "{text}");
        }
    }

    #[test]
    fn the_registry_adds_one_member_and_changes_nothing() {
        let text = "{\"to\" : \"bob\", \"n\":1.0 }";
        let envelope = Envelope::parse(&format!("\n {text} \n")).unwrap();
        assert_eq!(envelope.text, text);
        let shown = Envelope::with_delivery(&envelope.text, r#"{"seq":1}"#);
        assert_eq!(shown, "{\"to\" : \"bob\", \"n\":1.0 ,\"delivery\":{\"seq\":1}}");
        assert_eq!(Envelope::with_delivery("{}", "1"), "{\"delivery\":1}");
    }
}
