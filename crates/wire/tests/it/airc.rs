//! AIRC: envelopes and proofs agree with the signing vectors, payloads with the extension's examples.

use std::collections::HashMap;

use posthaste_wire::airc::{
    Envelope, Payload, RevokeProof, RotateProof, ascii_canonical, verify_body, verify_challenge,
};
use posthaste_wire::canonical::{canonicalize, canonicalize_without};
use posthaste_wire::signing::{SecretKey, sign_envelope};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const VECTORS: &str = include_str!("../golden/signing_vectors.json");
const EXAMPLES: &str = include_str!("../golden/airc_extension_examples.json");

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

fn secrets(vectors: &Value) -> HashMap<String, SecretKey> {
    let seed = |key: &Value| {
        let text = key["seed_hex"].as_str().unwrap();
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..64).step_by(2).map(byte).collect();
        SecretKey::from_seed(bytes.as_slice().try_into().unwrap())
    };
    vectors["keys"].as_object().unwrap().iter().map(|(name, key)| (name.clone(), seed(key))).collect()
}

fn proof<'a>(vectors: &'a Value, name: &str) -> &'a Value {
    vectors["proof_vectors"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn message_vectors_verify_as_envelopes() {
    let vectors = vectors();
    let secrets = secrets(&vectors);
    let messages = vectors["message_vectors"].as_array().unwrap();
    assert_eq!(messages.len(), 6);
    for vector in messages {
        let name = vector["name"].as_str().unwrap();
        let key = secrets[vector["key"].as_str().unwrap()].public();
        for encoding in ["signature_field", "signature_base64", "signature_base64url"] {
            let mut message = vector["message"].clone();
            message["signature"] = vector[encoding].clone();
            let envelope =
                Envelope::parse(&message.to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(envelope.signed(), vector["canonical"].as_str().unwrap(), "{name}");
            envelope.verify(&key).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let other = SecretKey::from_seed(&[1; 32]).public();
        let mut message = vector["message"].clone();
        message["signature"] = vector["signature_field"].clone();
        assert!(Envelope::parse(&message.to_string()).unwrap().verify(&other).is_err(), "{name}");
    }
}

#[test]
fn proof_vectors_verify() {
    let vectors = vectors();
    let secrets = secrets(&vectors);
    let recovery = secrets["alice_recovery"].public();

    let draft = proof(&vectors, "rotate-proof-draft");
    let new_key = draft["bytes_utf8"].as_str().unwrap();
    RotateProof::read(new_key, &draft["signature_base64"]).unwrap().verify(&recovery).unwrap();
    assert!(RotateProof::read("another key", &draft["signature_base64"]).unwrap().verify(&recovery).is_err());

    let sdk = proof(&vectors, "rotate-proof-sdk");
    let mut members: Value = serde_json::from_str(sdk["bytes_utf8"].as_str().unwrap()).unwrap();
    members["signature"] = sdk["signature_base64"].clone();
    RotateProof::read(new_key, &members).unwrap().verify(&recovery).unwrap();
    assert!(RotateProof::read("another key", &members).is_err());
    members["timestamp"] = json!(1);
    assert!(RotateProof::read(new_key, &members).unwrap().verify(&recovery).is_err());

    let revoke = proof(&vectors, "revoke-proof-sdk");
    let mut body: Map<String, Value> = serde_json::from_str(revoke["bytes_utf8"].as_str().unwrap()).unwrap();
    body.insert("proof".to_owned(), revoke["signature_field"].clone());
    RevokeProof::read(&body).unwrap().verify(&recovery).unwrap();
    body.insert("reason".to_owned(), json!("another"));
    assert!(RevokeProof::read(&body).unwrap().verify(&recovery).is_err());

    let alice = secrets["alice"].public();
    let challenge = proof(&vectors, "register-challenge");
    let (text, signature) =
        (challenge["bytes_utf8"].as_str().unwrap(), challenge["signature_base64url"].as_str().unwrap());
    verify_challenge(text, signature, &alice).unwrap();
    assert!(verify_challenge("another", signature, &alice).is_err());
    // Some clients sign the decoded bytes of the challenge.
    let decoded = secrets["alice"].sign(b"\xab\x6c\x50").to_string();
    verify_challenge("q2xQ", &decoded, &alice).unwrap();

    for name in ["safe-mode-header-jcs", "safe-mode-header-pypi"] {
        let header = proof(&vectors, name);
        let body: Value = serde_json::from_str(header["bytes_utf8"].as_str().unwrap()).unwrap();
        let spaced = serde_json::to_string_pretty(&body).unwrap();
        verify_body(&spaced, header["signature_base64"].as_str().unwrap(), &alice).unwrap();
    }
    let pypi = proof(&vectors, "safe-mode-header-pypi")["bytes_utf8"].as_str().unwrap();
    assert_eq!(ascii_canonical(pypi).unwrap(), pypi);
}

#[test]
fn examples_of_the_extension_parse() {
    let examples: Vec<Value> = serde_json::from_str(EXAMPLES).unwrap();
    let mut kinds = Vec::new();
    for example in &examples {
        if let Some(payload) = example.as_object().filter(|example| example.contains_key("type")) {
            kinds.push(
                Payload::read(payload).unwrap_or_else(|error| panic!("{example}: {error}")).kind().to_owned(),
            );
        }
    }
    for kind in ["thread", "mailbox", "mailbox_ack", "file_reservation", "reservation_conflict"] {
        assert!(kinds.contains(&format!("context:{kind}")), "{kind} is missing in {kinds:?}");
    }
}

#[test]
fn one_invalid_member_makes_a_payload_invalid() {
    let examples: Vec<Value> = serde_json::from_str(EXAMPLES).unwrap();
    let known = |example: &&Value| example["type"].as_str().is_some_and(|kind| kind.starts_with("context:"));
    let mut tried = 0;
    for example in examples.iter().filter(known) {
        for (name, value) in example.as_object().unwrap() {
            // No member of the extension's types may be an object.
            let mut changed = example.clone();
            changed[name] = json!({ "not": "this" });
            let read = Payload::read(changed.as_object().unwrap());
            assert!(read.is_err(), "{name} as an object in {example}");
            if value.is_string() && name != "type" {
                changed[name] = json!(7);
                assert!(
                    Payload::read(changed.as_object().unwrap()).is_err(),
                    "{name} as a number in {example}"
                );
            }
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

fn any_member() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::collection::vec(any::<i32>(), 0..4).prop_map(Value::from),
    ]
}

proptest! {
    /// A signature over the canonical bytes verifies for any member order and white space.
    #[test]
    fn an_envelope_verifies_in_any_order(
        extra in prop::collection::hash_map("[a-z\u{e000}-\u{ffff}\u{10000}-\u{10010}]{3,6}", any_member(), 0..6),
        turn in any::<prop::sample::Index>(),
        body in any::<String>(),
    ) {
        let key = SecretKey::from_seed(&[5; 32]);
        let mut members: Vec<(String, Value)> = extra
            .into_iter()
            .filter(|(name, _)| !["delivery", "payload", "timestamp", "thread_id", "nonce", "signature"].contains(&name.as_str()))
            .collect();
        members.push(("to".into(), json!("@bob")));
        members.push(("body".into(), json!(body)));
        let object = |members: &[(String, Value)]| Value::Object(members.iter().cloned().collect());
        let signature = sign_envelope(&object(&members).to_string(), &key).unwrap();
        members.push(("signature".into(), json!(signature.to_string())));
        let at = turn.index(members.len());
        members.rotate_left(at);
        let sent = serde_json::to_string_pretty(&object(&members)).unwrap();
        let envelope = Envelope::parse(&sent).unwrap();
        prop_assert!(envelope.verify(&key.public()).is_ok());
        prop_assert_eq!(&envelope.text, &sent);
        prop_assert_eq!(canonicalize(envelope.signed()).unwrap(), envelope.signed());
        // Without the registry's member, the delivered envelope still has the signed bytes.
        let shown = Envelope::with_delivery(&envelope.text, r#"{"seq":1}"#);
        let back = canonicalize_without(&canonicalize_without(&shown, "delivery").unwrap(), "signature").unwrap();
        prop_assert_eq!(back.as_str(), envelope.signed());
    }

    /// No input makes the parser panic.
    #[test]
    fn any_text_is_parsed_or_refused(text in any::<String>(), json in r#"\{("(to|from|payload|type|timestamp|id)":("[a-z@:]{0,4}"|-?[0-9.]{1,9}|\{\}|\[\]|null),?){0,5}\}"#) {
        let _ = Envelope::parse(&text);
        let _ = Envelope::parse(&json);
    }

    /// Paths that leave the scope are refused.
    #[test]
    fn paths_outside_the_scope_are_refused(path in r"[a-z./\\~:C]{1,12}") {
        let payload = json!({
            "type": "context:reservation_conflict", "conflicting_reservation_id": "r", "requested_paths": [path],
        });
        if Payload::read(payload.as_object().unwrap()).is_ok() {
            prop_assert!(!path.starts_with(['/', '\\', '~']));
            prop_assert!(!path.split(['/', '\\']).any(|part| part == ".."));
            prop_assert!(!path[1..].starts_with(':') || !path.as_bytes()[0].is_ascii_alphabetic());
        }
    }
}
