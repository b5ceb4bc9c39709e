//! Ed25519 keys and signatures in the spellings met in the wild, and envelopes signed with them.

mod together;

pub use together::{Claim, check_all};

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use ed25519_dalek::{Signer as _, SigningKey, Verifier as _, VerifyingKey};

use crate::canonical::{self, CanonicalError, Node};

/// The member of an envelope that holds its signature, and that the signature does not cover.
const MEMBER: &str = "signature";
/// Goes before the base64 of keys and signatures we write; may be missing in those we read.
const SCHEME: &str = "ed25519:";
/// What the DER of an Ed25519 SubjectPublicKeyInfo (RFC 8410) starts with; the 32 bytes of the key follow.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_HEAD: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_FOOT: &str = "-----END PUBLIC KEY-----";
/// Longer than any spelling of a key or signature; what is longer is not worth decoding.
const MAX_TEXT: usize = 256;

/// The points whose order divides eight, in the one way they are spelled: under such a one a signature proves nothing.
const SMALL_ORDER: [[u8; 32]; 8] = {
    const EIGHTH: [u8; 32] = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ];
    const OTHER_EIGHTH: [u8; 32] = [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ];
    const fn with(mut point: [u8; 32], place: usize, byte: u8) -> [u8; 32] {
        point[place] = byte;
        point
    }
    [
        with([0; 32], 0, 0x01),
        with(with([0xff; 32], 0, 0xec), 31, 0x7f),
        [0; 32],
        with([0; 32], 31, 0x80),
        EIGHTH,
        with(EIGHTH, 31, 0x85),
        OTHER_EIGHTH,
        with(OTHER_EIGHTH, 31, 0xfa),
    ]
};

/// Why a key or signature cannot be read, or an envelope is not to be believed.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The envelope has no canonical bytes.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The key or signature is not base64 of either alphabet.
    #[error("not base64")]
    NotBase64,
    /// The base64 decodes to a wrong number of bytes.
    #[error("expected {expected} bytes")]
    Length {
        /// How many bytes were wanted.
        expected: &'static str,
    },
    /// The bytes are not a point of the curve, or one of small order under which anything verifies.
    #[error("not an Ed25519 public key")]
    NotAKey,
    /// The envelope has no `signature`, or one that is not a string.
    #[error("the envelope has no signature")]
    Unsigned,
    /// The signature was not made by this key over these bytes.
    #[error("the signature does not match")]
    Mismatch,
}

/// Checks that `text` carries a `signature` by `key` over its canonical bytes without that member.
pub fn verify_envelope(text: &str, key: &PublicKey) -> Result<(), SigningError> {
    let (signed, signature) = canonical::take(text, MEMBER)?;
    let Some(Node::Text(signature)) = signature else { return Err(SigningError::Unsigned) };
    key.verify(signed.as_bytes(), &signature.parse()?)
}

/// Signs the canonical bytes of `text`; a `signature` it may already have is not covered.
pub fn sign_envelope(text: &str, key: &SecretKey) -> Result<Signature, SigningError> {
    let signed = canonical::canonicalize_without(text, MEMBER)?;
    Ok(key.sign(signed.as_bytes()))
}

/// The public half of a key pair; shown as `ed25519:` and base64 of its 32 bytes.
///
/// Read from base64 or base64url, padded or not, with or without `ed25519:`, of the 32 raw bytes
/// or of the 44 bytes of an SPKI; or from the PEM of such an SPKI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey {
    point: VerifyingKey,
    /// Whether it has no part of small order, as every key that was made as keys are.
    is_plain: bool,
}

impl PublicKey {
    /// Takes the raw 32 bytes, unless they are no point of the curve or one of small order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, SigningError> {
        match VerifyingKey::from_bytes(bytes) {
            Ok(point) if !point.is_weak() => {
                Ok(PublicKey { point, is_plain: point.to_edwards().is_torsion_free() })
            }
            _ => Err(SigningError::NotAKey),
        }
    }

    /// The raw 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.point.as_bytes()
    }

    /// Checks a signature over exactly these bytes, refusing its malleable twins.
    pub fn verify(&self, bytes: &[u8], signature: &Signature) -> Result<(), SigningError> {
        // What `verify_strict` asks as well, without working out the point: a signature that verifies spells it in the one
        // canonical way. That the key is of no small order was seen when it was read.
        if SMALL_ORDER.contains(signature.0.r_bytes()) {
            return Err(SigningError::Mismatch);
        }
        self.point.verify(bytes, &signature.0).map_err(|_| SigningError::Mismatch)
    }
}

impl FromStr for PublicKey {
    type Err = SigningError;

    fn from_str(text: &str) -> Result<Self, SigningError> {
        let text = text.trim();
        let body = text.strip_prefix(PEM_HEAD).and_then(|rest| rest.strip_suffix(PEM_FOOT));
        let bytes = match body {
            Some(body) => decode(&body.split_ascii_whitespace().collect::<String>())?,
            None => decode(text)?,
        };
        let raw = bytes.strip_prefix(&SPKI).unwrap_or(&bytes);
        let raw = raw.try_into().map_err(|_| SigningError::Length { expected: "32 or, as SPKI, 44" })?;
        Self::from_bytes(raw)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", STANDARD.encode(self.as_bytes()))
    }
}

/// A signature; shown as `ed25519:` and base64, read from the same spellings of base64 as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(ed25519_dalek::Signature);

impl Signature {
    /// The raw 64 bytes.
    pub fn to_bytes(&self) -> [u8; 64] {
        self.0.to_bytes()
    }
}

impl FromStr for Signature {
    type Err = SigningError;

    fn from_str(text: &str) -> Result<Self, SigningError> {
        let bytes = decode(text.trim())?;
        let raw = bytes.as_slice().try_into().map_err(|_| SigningError::Length { expected: "64" })?;
        Ok(Signature(ed25519_dalek::Signature::from_bytes(raw)))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", STANDARD.encode(self.0.to_bytes()))
    }
}

/// The secret half of a key pair; `Debug` shows only the public half, and memory is wiped on drop.
#[derive(Clone, Debug)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Takes the 32-byte seed of RFC 8032, which the caller drew from a good source.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(seed))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey { point: self.0.verifying_key(), is_plain: true }
    }

    /// Signs exactly these bytes.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(bytes))
    }
}

/// Decodes base64 of either alphabet, but not of both mixed, with padding or without.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, SigningError> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

    let text = text.strip_prefix(SCHEME).unwrap_or(text);
    if text.len() > MAX_TEXT {
        return Err(SigningError::NotBase64);
    }
    let engine = if text.contains(['-', '_']) { &URL } else { &PLAIN };
    engine.decode(text).map_err(|_| SigningError::NotBase64)
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::Scalar;
    use sha2::{Digest as _, Sha512};

    use super::*;

    const RAW: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn secret() -> SecretKey {
        SecretKey::from_seed(&[7; 32])
    }

    #[test]
    fn a_key_is_read_from_every_spelling_and_shown_in_one() {
        let url = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let spki = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
        for text in [
            RAW.to_owned(),
            RAW.trim_end_matches('=').to_owned(),
            url.to_owned(),
            format!("{url}="),
            format!("ed25519:{RAW}"),
            format!("ed25519:{url}"),
            spki.to_owned(),
            format!("ed25519:{spki}"),
            format!("{PEM_HEAD}\n{spki}\n{PEM_FOOT}\n"),
            format!("{PEM_HEAD}\r\n{}\r\n{}\r\n{PEM_FOOT}\r\n", &spki[..40], &spki[40..]),
        ] {
            let key: PublicKey = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(key.to_string(), format!("ed25519:{RAW}"), "{text}");
        }
    }

    #[test]
    fn bad_keys_are_refused_with_the_reason() {
        let read = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert!(matches!(read(""), SigningError::Length { .. }));
        assert!(matches!(read("rsa:AAAA"), SigningError::NotBase64));
        assert!(matches!(read("+_+_"), SigningError::NotBase64));
        assert!(matches!(read(&"A".repeat(300)), SigningError::NotBase64));
        assert!(matches!(read(&format!("{PEM_HEAD}\n{RAW}")), SigningError::NotBase64));
        // An X25519 key (OID 1.3.101.110) is as long as an Ed25519 one.
        assert!(matches!(
            read("MCowBQYDK2VuAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="),
            SigningError::Length { .. }
        ));
        // The neutral element would let one signature fit every message.
        assert!(matches!(read("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), SigningError::NotAKey));
        // y = 2 is on no point of the curve.
        assert!(matches!(read("AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), SigningError::NotAKey));
    }

    #[test]
    fn an_envelope_signed_here_verifies_here() {
        let text = r#"{"to":"@bob","n":1.0,"from":"alice"}"#;
        let signature = sign_envelope(text, &secret()).unwrap();
        // Order, blanks and the spelling of numbers may change on the way.
        let sent = format!(r#"{{ "signature": "{signature}", "from":"alice","n":1,"to":"\u0040bob" }}"#);
        verify_envelope(&sent, &secret().public()).unwrap();
        assert_eq!(sign_envelope(&sent, &secret()).unwrap(), signature);

        let changed = sent.replace("alice", "mallory");
        assert!(matches!(verify_envelope(&changed, &secret().public()), Err(SigningError::Mismatch)));
        let other = SecretKey::from_seed(&[8; 32]).public();
        assert!(matches!(verify_envelope(&sent, &other), Err(SigningError::Mismatch)));
    }

    #[test]
    fn an_envelope_without_a_usable_signature_is_refused() {
        let verify = |text: &str| verify_envelope(text, &secret().public()).unwrap_err();
        assert!(matches!(verify(r#"{"a":1}"#), SigningError::Unsigned));
        assert!(matches!(verify(r#"{"signature":null}"#), SigningError::Unsigned));
        assert!(matches!(verify(r#"{"signature":"ed25519:AAAA"}"#), SigningError::Length { .. }));
        assert!(matches!(verify(r#"{"signature":"?"}"#), SigningError::NotBase64));
        assert!(matches!(verify("[]"), SigningError::Canonical(CanonicalError::NotAnObject)));
        assert!(matches!(
            verify(r#"{"signature":"a","sign\u0061ture":"b"}"#),
            SigningError::Canonical(CanonicalError::Duplicate(_))
        ));
    }

    #[test]
    fn a_signature_under_a_point_of_small_order_is_refused_as_the_strict_rule_has_it() {
        for point in SMALL_ORDER {
            assert!(VerifyingKey::from_bytes(&point).unwrap().is_weak(), "{point:02x?}");
            assert_eq!(SMALL_ORDER.iter().filter(|other| **other == point).count(), 1);
        }
        // With the neutral element for its point, s = k·a fits the equation for whoever has the secret.
        let (secret, bytes) = (secret(), b"hello".as_slice());
        let key = secret.public();
        let mut k = Sha512::new_with_prefix(SMALL_ORDER[0]);
        k.update(key.as_bytes());
        k.update(bytes);
        let s = Scalar::from_bytes_mod_order_wide(&k.finalize().into()) * secret.0.to_scalar();
        let signature = ed25519_dalek::Signature::from_components(SMALL_ORDER[0], s.to_bytes());
        assert!(
            key.point.verify(bytes, &signature).is_ok()
                && key.point.verify_strict(bytes, &signature).is_err()
        );
        assert!(matches!(key.verify(bytes, &Signature(signature)), Err(SigningError::Mismatch)));
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        let shown = format!("{:?}", SecretKey::from_seed(&[0xab; 32]));
        assert!(!shown.contains("171, 171") && !shown.contains("abab"), "{shown}");
    }
}
