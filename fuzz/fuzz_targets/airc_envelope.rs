//! Envelopes: reading never fails other than by saying no, what is read is kept verbatim, and only the right key fits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_wire::airc::Envelope;
use posthaste_wire::canonical::canonicalize_without;
use posthaste_wire::signing::{SecretKey, sign_envelope};

fuzz_target!(|text: &str| {
    let Ok(envelope) = Envelope::parse(text) else { return };
    assert!(text.contains(envelope.as_str()));
    let key = SecretKey::from_seed(&[7; 32]);
    // Nobody can have guessed a signature of this key.
    assert!(envelope.verify(&key.public()).is_err());
    let signature = sign_envelope(envelope.as_str(), &key).expect("it was read");
    key.public().verify(envelope.signed().as_bytes(), &signature).expect("the same bytes");
    let shown = Envelope::with_delivery(envelope.as_str(), "{\"seq\":1}");
    let back = canonicalize_without(&shown, "delivery").expect("still an object");
    assert_eq!(canonicalize_without(&back, "signature").expect("still an object"), envelope.signed());
});
