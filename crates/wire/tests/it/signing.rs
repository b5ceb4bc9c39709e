//! Signatures agree with test vectors of other libraries.

use posthaste_wire::canonical::{canonicalize_value, canonicalize_without};
use posthaste_wire::signing::{
    PublicKey, SecretKey, Signature, SigningError, sign_envelope, verify_envelope,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// `golden/signing_vectors.json`: PyNaCl and cryptography, with two implementations of RFC 8785.
#[derive(Deserialize)]
struct Vectors {
    keys: std::collections::HashMap<String, Key>,
    message_vectors: Vec<Signed>,
    proof_vectors: Vec<Proof>,
    negative: Vec<Negative>,
}

#[derive(Deserialize)]
struct Key {
    seed_hex: String,
    public_hex: String,
    public_key_raw: String,
    public_key_spki: String,
    public_key_base64url: String,
}

#[derive(Deserialize)]
struct Signed {
    name: String,
    key: String,
    message: Box<RawValue>,
    canonical: String,
    canonical_hex: String,
    signature_base64: String,
    signature_base64url: String,
    signature_field: String,
    signature_hex: String,
}

#[derive(Deserialize)]
struct Proof {
    name: String,
    key: String,
    bytes_utf8: String,
    bytes_hex: String,
    signature_base64: String,
    signature_base64url: String,
    signature_field: String,
}

#[derive(Deserialize)]
struct Negative {
    name: String,
    base: Option<String>,
    #[serde(default)]
    change: Value,
    signature_base64: Option<String>,
}

impl Vectors {
    fn load() -> Self {
        serde_json::from_str(include_str!("../golden/signing_vectors.json")).unwrap()
    }

    fn secret(&self, key: &str) -> SecretKey {
        SecretKey::from_seed(unhex(&self.keys[key].seed_hex).as_slice().try_into().unwrap())
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The message as a client sends it, with its signature.
fn sent(message: &Signed, signature: &str) -> String {
    let mut envelope: Value = serde_json::from_str(message.message.get()).unwrap();
    envelope["signature"] = json!(signature);
    envelope.to_string()
}

#[test]
fn public_keys_parse_in_every_encoding() {
    let vectors = Vectors::load();
    assert_eq!(vectors.keys.len(), 4);
    for (name, key) in &vectors.keys {
        let public = vectors.secret(name).public();
        assert_eq!(public.as_bytes().as_slice(), unhex(&key.public_hex), "{name}");
        assert_eq!(public.to_string(), key.public_key_raw, "{name}");
        for text in [&key.public_key_raw, &key.public_key_spki, &key.public_key_base64url] {
            assert_eq!(text.parse::<PublicKey>().unwrap(), public, "{text}");
        }
    }
}

#[test]
fn message_vectors_are_canonicalized_signed_and_verified() {
    let vectors = Vectors::load();
    assert_eq!(vectors.message_vectors.len(), 6);
    for message in &vectors.message_vectors {
        let name = &message.name;
        let text = message.message.get();
        let canonical = canonicalize_without(text, "signature").unwrap();
        assert_eq!(canonical, message.canonical, "{name}");
        assert_eq!(canonical.as_bytes(), unhex(&message.canonical_hex), "{name}");
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(canonicalize_value(&value).unwrap(), message.canonical, "{name}");

        let secret = vectors.secret(&message.key);
        let signature = sign_envelope(text, &secret).unwrap();
        assert_eq!(signature.to_string(), message.signature_field, "{name}");
        assert_eq!(signature.to_bytes().as_slice(), unhex(&message.signature_hex), "{name}");
        for signature in [&message.signature_field, &message.signature_base64, &message.signature_base64url] {
            verify_envelope(&sent(message, signature), &secret.public()).unwrap();
        }
    }
}

#[test]
fn proof_vectors_are_signed_and_verified() {
    let vectors = Vectors::load();
    assert!(!vectors.proof_vectors.is_empty());
    for proof in &vectors.proof_vectors {
        let bytes = proof.bytes_utf8.as_bytes();
        assert_eq!(bytes, unhex(&proof.bytes_hex), "{}", proof.name);
        let secret = vectors.secret(&proof.key);
        assert_eq!(secret.sign(bytes).to_string(), proof.signature_field, "{}", proof.name);
        for signature in [&proof.signature_field, &proof.signature_base64, &proof.signature_base64url] {
            let signature: Signature = signature.parse().unwrap();
            secret.public().verify(bytes, &signature).unwrap();
        }
    }
}

#[test]
fn forged_signatures_are_refused() {
    let vectors = Vectors::load();
    let mut tried = Vec::new();
    for negative in &vectors.negative {
        // One entry is only a note about a published signature, without a case to test.
        let Some(base) = &negative.base else { continue };
        let message = vectors.message_vectors.iter().find(|it| it.name == *base).unwrap();
        let signature = negative.signature_base64.as_ref().unwrap_or(&message.signature_base64);
        let mut envelope: Value = serde_json::from_str(&sent(message, signature)).unwrap();
        for (name, change) in negative.change.as_object().into_iter().flatten() {
            envelope[name] = change.clone();
        }
        let key = vectors.secret(&message.key).public();
        let outcome = verify_envelope(&envelope.to_string(), &key);
        assert!(matches!(outcome, Err(SigningError::Mismatch)), "{}: {outcome:?}", negative.name);
        tried.push(negative.name.as_str());
    }
    assert_eq!(tried, ["tampered", "non-canonical-S"]);
}
