//! Signed envelopes: parsed strictly, kept verbatim.

use serde_json::{Map, Value};

use super::payload::{Payload, PayloadError};
use crate::canonical::{self, CanonicalError, Node};
use crate::signing::{PublicKey, SigningError};
use crate::time;

/// Longest `id` or `nonce`, in bytes.
const MAX_ID_BYTES: usize = 256;

/// A parsed message envelope.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The original text, without surrounding white space.
    pub text: String,
    /// The canonical bytes that the signature covers.
    signed: String,
    /// The `signature` member, if present.
    signature: Option<Value>,
    members: Map<String, Value>,
    /// The claimed sender, as written.
    pub from: Option<String>,
    /// The recipient, as written.
    pub to: String,
    /// Message id, chosen by the sender.
    pub id: Option<String>,
    /// Single-use key against replays.
    pub nonce: Option<String>,
    /// Sending time, in Unix milliseconds.
    pub timestamp: Option<i64>,
    /// The thread it belongs to.
    pub thread_id: Option<String>,
    /// The text body.
    pub body: Option<String>,
    /// The payload.
    pub payload: Option<Payload>,
}

/// Why a text is not an envelope.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not a JSON object, or without a canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A member is missing or of the wrong type.
    #[error("{field}: {why}")]
    Field {
        /// The member.
        field: &'static str,
        /// The problem.
        why: &'static str,
    },
    /// The payload violates the rules of its type.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

fn invalid<T>(field: &'static str, why: &'static str) -> Result<T, EnvelopeError> {
    Err(EnvelopeError::Field { field, why })
}

impl Envelope {
    /// Parses an envelope. Unknown members are kept and covered by the signature.
    pub fn parse(text: &str) -> Result<Self, EnvelopeError> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        let node = Node::parse(text)?;
        let signed = node.canonical_without("signature")?;
        let Value::Object(members) = node.into_value() else {
            return Err(CanonicalError::NotAnObject.into());
        };
        // The registry adds this member on delivery, so a sender must not be able to forge it.
        if members.contains_key("delivery") {
            return invalid("delivery", "this member is reserved for the registry");
        }
        check_version(&members)?;
        let to = match text_of(&members, "to")? {
            Some(to) if !to.trim().is_empty() => to,
            _ => return invalid("to", "a recipient is needed"),
        };
        let body = text_of(&members, "body")?;
        let payload = match members.get("payload") {
            None | Some(Value::Null) => None,
            Some(Value::Object(payload)) => Some(Payload::read(payload)?),
            Some(_) => return invalid("payload", "a payload is an object"),
        };
        let signature = members.get("signature").filter(|signature| !signature.is_null()).cloned();
        Ok(Self {
            from: text_of(&members, "from")?,
            to,
            id: id_of(&members, "id")?,
            nonce: id_of(&members, "nonce")?,
            timestamp: timestamp_of(&members)?,
            thread_id: text_of(&members, "thread_id")?.filter(|thread| !thread.is_empty()),
            body,
            payload,
            text: text.to_owned(),
            signed,
            signature,
            members,
        })
    }

    /// The canonical bytes that the signature covers.
    pub fn signed(&self) -> &str {
        &self.signed
    }

    /// Whether the envelope has a signature, valid or not.
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

    /// Moves the payload out, as it was written.
    pub fn take_payload(&mut self) -> Option<Value> {
        self.members.get_mut("payload").filter(|payload| payload.is_object()).map(Value::take)
    }

    /// Verifies the signature with the sender's key.
    pub fn verify(&self, key: &PublicKey) -> Result<(), SigningError> {
        let Some(Value::String(signature)) = &self.signature else { return Err(SigningError::Unsigned) };
        key.verify(self.signed.as_bytes(), &signature.parse()?)
    }

    /// Verifies a signature that does not cover `text`, a copy of `body`: one published client adds `text` after signing.
    pub fn verify_without_text(&self, key: &PublicKey) -> Result<(), SigningError> {
        let Some(Value::String(signature)) = &self.signature else { return Err(SigningError::Unsigned) };
        if self.members.get("text").is_none() || self.members.get("text") != self.members.get("body") {
            return Err(SigningError::Mismatch);
        }
        let signed = canonical::canonicalize_without(&self.signed, "text")?;
        key.verify(signed.as_bytes(), &signature.parse()?)
    }

    /// The envelope as delivered: the original text with the registry's `delivery` member appended.
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
        Some(_) => invalid(field, "a string is expected"),
    }
}

fn id_of(members: &Map<String, Value>, field: &'static str) -> Result<Option<String>, EnvelopeError> {
    match text_of(members, field)? {
        None => Ok(None),
        Some(id) if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) => {
            invalid(field, "1 to 256 bytes without control characters are expected")
        }
        id => Ok(id),
    }
}

fn timestamp_of(members: &Map<String, Value>) -> Result<Option<i64>, EnvelopeError> {
    let why = "Unix seconds or ISO 8601 with an offset are expected";
    let timestamp = match members.get("timestamp") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => time::from_number(whole).ok(),
            (None, Some(number)) if number.abs() < 1e14 => {
                let millis = if number.abs() <= 1e11 { number * 1000.0 } else { number };
                time::from_number(millis as i64).ok().map(|_| millis as i64)
            }
            _ => None,
        },
        Some(Value::String(text)) => time::parse_timestamp(text).ok(),
        Some(_) => None,
    };
    if timestamp.is_some() { Ok(timestamp) } else { invalid("timestamp", why) }
}

fn check_version(members: &Map<String, Value>) -> Result<(), EnvelopeError> {
    for field in ["v", "protocol_version"] {
        let version = match members.get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            Some(_) => return invalid(field, "a version is a string"),
        };
        if version.trim_start_matches('v').split('.').next() != Some("0") {
            return invalid(field, "only versions 0.x are supported");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_envelopes_are_refused() {
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
    fn timestamps_parse_in_every_format() {
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
    fn with_delivery_appends_one_member_only() {
        let text = "{\"to\" : \"bob\", \"n\":1.0 }";
        let envelope = Envelope::parse(&format!("\n {text} \n")).unwrap();
        assert_eq!(envelope.text, text);
        let shown = Envelope::with_delivery(&envelope.text, r#"{"seq":1}"#);
        assert_eq!(shown, "{\"to\" : \"bob\", \"n\":1.0 ,\"delivery\":{\"seq\":1}}");
        assert_eq!(Envelope::with_delivery("{}", "1"), "{\"delivery\":1}");
    }
}
