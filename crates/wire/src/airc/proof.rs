//! Proofs of key ownership: key rotation, revocation, and signed request bodies.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::canonical::{CanonicalError, canonicalize, canonicalize_value, canonicalize_without};
use crate::signing::{PublicKey, Signature, SigningError, decode};
use crate::time;

/// A proof that the holder of the recovery key requests a new signing key.
#[derive(Clone, Debug)]
pub struct RotateProof {
    signed: String,
    signature: String,
    /// The new key, as written in the proof.
    pub new_key: String,
    /// The handle, if the proof has one.
    pub handle: Option<String>,
    /// The current key, if the proof has it.
    pub old_key: Option<String>,
    /// Creation time in Unix milliseconds, if the proof has one.
    pub timestamp: Option<i64>,
    /// Single-use key against replays.
    pub nonce: Option<String>,
}

impl RotateProof {
    /// Parses the proof of `{new_public_key, proof}`: a signature over the new key's text, or an object signed without its
    /// `signature` member.
    pub fn read(new_key: &str, proof: &Value) -> Result<Self, &'static str> {
        match proof {
            Value::String(signature) => Ok(Self {
                signed: new_key.to_owned(),
                signature: signature.clone(),
                new_key: new_key.to_owned(),
                handle: None,
                old_key: None,
                timestamp: None,
                nonce: None,
            }),
            Value::Object(members) => Self::read_object(new_key, members),
            _ => Err("a proof is a signature, or an object with one"),
        }
    }

    fn read_object(new_key: &str, members: &Map<String, Value>) -> Result<Self, &'static str> {
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        if text("operation").is_some_and(|operation| operation != "rotate") {
            return Err("the proof is for another operation");
        }
        let proven = text("new_public_key").or_else(|| text("new_key")).ok_or("the proof has no new key")?;
        if proven != new_key {
            return Err("the proof is for another key");
        }
        let timestamp =
            members.get("timestamp").and_then(parse_timestamp).ok_or("the proof has no timestamp")?;
        Ok(Self {
            signed: signed_part(members, "signature").map_err(|_| "the proof cannot be read")?,
            signature: text("signature").ok_or("the proof is not signed")?,
            new_key: proven,
            handle: text("handle"),
            old_key: text("old_key"),
            timestamp: Some(timestamp),
            nonce: Some(text("nonce").ok_or("the proof has no nonce")?),
        })
    }

    /// Verifies the proof with the recovery key.
    pub fn verify(&self, key: &PublicKey) -> Result<(), SigningError> {
        key.verify(self.signed.as_bytes(), &self.signature.parse()?)
    }

    /// The signature, which identifies the proof.
    pub fn signature(&self) -> Result<Signature, SigningError> {
        self.signature.parse()
    }
}

/// A proof that the holder of the recovery key revokes the identity.
#[derive(Clone, Debug)]
pub struct RevokeProof {
    signed: String,
    signature: String,
    /// The handle.
    pub handle: String,
    /// The reason, if given.
    pub reason: Option<String>,
    /// Creation time, in Unix milliseconds.
    pub timestamp: i64,
    /// Single-use key against replays.
    pub nonce: String,
}

impl RevokeProof {
    /// Parses a body that is signed without its `proof` member.
    pub fn read(body: &Map<String, Value>) -> Result<Self, &'static str> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        if text("action").as_deref() != Some("revoke") {
            return Err("action must be revoke");
        }
        Ok(Self {
            signed: signed_part(body, "proof").map_err(|_| "the body cannot be read")?,
            signature: text("proof").ok_or("proof: a signature is expected")?,
            handle: text("handle").ok_or("handle is missing")?,
            reason: text("reason"),
            timestamp: body.get("timestamp").and_then(parse_timestamp).ok_or("timestamp is missing")?,
            nonce: text("nonce").filter(|nonce| !nonce.is_empty()).ok_or("nonce is missing")?,
        })
    }

    /// Verifies the proof with the recovery key.
    pub fn verify(&self, key: &PublicKey) -> Result<(), SigningError> {
        key.verify(self.signed.as_bytes(), &self.signature.parse()?)
    }
}

/// Verifies a signature over a whole body, in canonical JSON or in the ASCII form of the published Python client.
pub fn verify_body(body: &str, signature: &str, key: &PublicKey) -> Result<(), SigningError> {
    let signature: Signature = signature.parse()?;
    let canonical = canonicalize(body)?;
    key.verify(canonical.as_bytes(), &signature)
        .or_else(|_| key.verify(escape_non_ascii(&canonical).as_bytes(), &signature))
}

/// Verifies a signature over a challenge: over its text, or over the bytes that the text encodes in base64.
pub fn verify_challenge(challenge: &str, signature: &str, key: &PublicKey) -> Result<(), SigningError> {
    let signature: Signature = signature.parse()?;
    key.verify(challenge.as_bytes(), &signature).or_else(|mismatch| match decode(challenge) {
        Ok(bytes) => key.verify(&bytes, &signature),
        Err(_) => Err(mismatch),
    })
}

/// Canonical JSON with all non-ASCII characters escaped, as the published Python client writes it.
pub fn ascii_canonical(text: &str) -> Result<String, CanonicalError> {
    canonicalize(text).map(|canonical| escape_non_ascii(&canonical))
}

fn escape_non_ascii(canonical: &str) -> String {
    let mut out = String::with_capacity(canonical.len());
    let mut units = [0; 2];
    for c in canonical.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut units) {
                // Writing into a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

fn signed_part(members: &Map<String, Value>, without: &str) -> Result<String, CanonicalError> {
    let whole = canonicalize_value(&Value::Object(members.clone()))?;
    canonicalize_without(&whole, without)
}

fn parse_timestamp(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => time::from_number(number.as_i64()?).ok(),
        Value::String(text) => time::parse_timestamp(text).ok(),
        _ => None,
    }
}
