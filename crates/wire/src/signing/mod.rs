//! Ed25519 keys, signatures and signed JSON envelopes, parsed from every text encoding that clients use.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

use crate::canonical::{self, CanonicalError, Node};

/// Envelope member that holds the signature; the signature does not cover it.
const SIGNATURE_MEMBER: &str = "signature";
/// Prefix of the base64 text of keys and signatures: always written, optional when parsing.
const SCHEME_PREFIX: &str = "ed25519:";
/// DER prefix of an Ed25519 SubjectPublicKeyInfo (RFC 8410); the 32 key bytes follow.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_HEADER: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_FOOTER: &str = "-----END PUBLIC KEY-----";
/// Longest base64 text that is decoded; every valid key or signature is shorter.
const MAX_BASE64_BYTES: usize = 256;

/// Why a key or signature does not parse, or an envelope does not verify.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The envelope has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The key or signature is neither base64 nor base64url.
    #[error("not base64")]
    NotBase64,
    /// The base64 decodes to a wrong number of bytes.
    #[error("expected {expected} bytes")]
    Length {
        /// The accepted lengths.
        expected: &'static str,
    },
    /// The bytes are not a curve point, or a point of small order, which would verify forged signatures.
    #[error("not an Ed25519 public key")]
    NotAKey,
    /// The envelope's `signature` is missing or not a string.
    #[error("the envelope has no signature")]
    Unsigned,
    /// The signature was not made by this key over these bytes.
    #[error("the signature does not match")]
    Mismatch,
}

/// Verifies that the `signature` member of `text` is by `key`, over the canonical bytes without that member.
pub fn verify_envelope(text: &str, key: &PublicKey) -> Result<(), SigningError> {
    let (signed, signature) = canonical::canonicalize_and_remove(text, SIGNATURE_MEMBER)?;
    let Some(Node::Text(signature)) = signature else { return Err(SigningError::Unsigned) };
    key.verify(signed.as_bytes(), &signature.parse()?)
}

/// Signs the canonical bytes of `text`, leaving out an existing `signature` member.
pub fn sign_envelope(text: &str, key: &SecretKey) -> Result<Signature, SigningError> {
    let signed = canonical::canonicalize_without(text, SIGNATURE_MEMBER)?;
    Ok(key.sign(signed.as_bytes()))
}

/// A public key; displayed as `ed25519:` and base64 of its 32 bytes.
///
/// Parses base64 and base64url, with or without padding and `ed25519:`, of the 32 raw bytes or the 44 bytes of an SPKI,
/// and the PEM of an SPKI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads the raw 32 bytes; refuses bytes that are not a curve point and points of small order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, SigningError> {
        match VerifyingKey::from_bytes(bytes) {
            Ok(point) if !point.is_weak() => Ok(PublicKey(point)),
            _ => Err(SigningError::NotAKey),
        }
    }

    /// The raw 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Verifies a signature over exactly these bytes. Malleable variants of a signature are refused, and signatures with a
    /// point of small order, which prove nothing.
    pub fn verify(&self, bytes: &[u8], signature: &Signature) -> Result<(), SigningError> {
        self.0.verify_strict(bytes, &signature.0).map_err(|_| SigningError::Mismatch)
    }
}

impl FromStr for PublicKey {
    type Err = SigningError;

    fn from_str(text: &str) -> Result<Self, SigningError> {
        let text = text.trim();
        let body = text.strip_prefix(PEM_HEADER).and_then(|rest| rest.strip_suffix(PEM_FOOTER));
        let bytes = match body {
            Some(body) => decode(&body.split_ascii_whitespace().collect::<String>())?,
            None => decode(text)?,
        };
        let raw = bytes.strip_prefix(&SPKI_PREFIX).unwrap_or(&bytes);
        let raw = raw.try_into().map_err(|_| SigningError::Length { expected: "32 or, as SPKI, 44" })?;
        Self::from_bytes(raw)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME_PREFIX}{}", STANDARD.encode(self.as_bytes()))
    }
}

/// A signature; displayed as `ed25519:` and base64, parsed from the same base64 variants as a key.
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
        write!(f, "{SCHEME_PREFIX}{}", STANDARD.encode(self.0.to_bytes()))
    }
}

/// A secret key; `Debug` shows only the public key, and the memory is zeroed on drop.
#[derive(Clone, Debug)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Derives the key from a 32-byte seed (RFC 8032) of a cryptographic random source.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(seed))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs exactly these bytes.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(bytes))
    }
}

/// Decodes base64 or base64url, padded or not. Text that mixes both alphabets is refused.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, SigningError> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

    let text = text.strip_prefix(SCHEME_PREFIX).unwrap_or(text);
    if text.len() > MAX_BASE64_BYTES {
        return Err(SigningError::NotBase64);
    }
    let engine = if text.contains(['-', '_']) { &BASE64_URL } else { &BASE64 };
    engine.decode(text).map_err(|_| SigningError::NotBase64)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::Verifier as _;

    use super::*;

    const RAW: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn secret() -> SecretKey {
        SecretKey::from_seed(&[7; 32])
    }

    #[test]
    fn public_key_parses_every_encoding_and_displays_one() {
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
            format!("{PEM_HEADER}\n{spki}\n{PEM_FOOTER}\n"),
            format!("{PEM_HEADER}\r\n{}\r\n{}\r\n{PEM_FOOTER}\r\n", &spki[..40], &spki[40..]),
        ] {
            let key: PublicKey = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(key.to_string(), format!("ed25519:{RAW}"), "{text}");
        }
    }

    #[test]
    fn invalid_public_keys_are_refused() {
        let read = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert!(matches!(read(""), SigningError::Length { .. }));
        assert!(matches!(read("rsa:AAAA"), SigningError::NotBase64));
        assert!(matches!(read("+_+_"), SigningError::NotBase64));
        assert!(matches!(read(&"A".repeat(300)), SigningError::NotBase64));
        assert!(matches!(read(&format!("{PEM_HEADER}\n{RAW}")), SigningError::NotBase64));
        // An X25519 key (OID 1.3.101.110) has the same length.
        assert!(matches!(
            read("MCowBQYDK2VuAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="),
            SigningError::Length { .. }
        ));
        // With the identity element as key, one signature would verify for every message.
        assert!(matches!(read("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), SigningError::NotAKey));
        // No curve point has y = 2.
        assert!(matches!(read("AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), SigningError::NotAKey));
    }

    #[test]
    fn signed_envelope_verifies() {
        let text = r#"{"to":"@bob","n":1.0,"from":"alice"}"#;
        let signature = sign_envelope(text, &secret()).unwrap();
        // Member order, white space and number format do not affect the signature.
        let sent = format!(r#"{{ "signature": "{signature}", "from":"alice","n":1,"to":"\u0040bob" }}"#);
        verify_envelope(&sent, &secret().public()).unwrap();
        assert_eq!(sign_envelope(&sent, &secret()).unwrap(), signature);

        let changed = sent.replace("alice", "mallory");
        assert!(matches!(verify_envelope(&changed, &secret().public()), Err(SigningError::Mismatch)));
        let other = SecretKey::from_seed(&[8; 32]).public();
        assert!(matches!(verify_envelope(&sent, &other), Err(SigningError::Mismatch)));
    }

    #[test]
    fn envelope_without_valid_signature_is_refused() {
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
    fn signature_with_small_order_point_is_refused() {
        // With R = identity, the holder of the secret key can satisfy the equation with s = k·a, here for "hello".
        const S: [u8; 32] = [
            0x3d, 0x0b, 0xbf, 0x5a, 0x4e, 0xd7, 0x93, 0xea, 0xd3, 0xf7, 0xb1, 0x07, 0x80, 0x83, 0x9e, 0x94,
            0x2a, 0xdb, 0x18, 0x4c, 0xbe, 0xf9, 0x0f, 0xf5, 0xeb, 0x18, 0x08, 0x31, 0xf8, 0x11, 0xeb, 0x05,
        ];
        let mut identity = [0; 32];
        identity[0] = 1;
        let (key, bytes) = (secret().public(), b"hello".as_slice());
        let signature = ed25519_dalek::Signature::from_components(identity, S);
        assert!(key.0.verify(bytes, &signature).is_ok(), "a lax check accepts it");
        assert!(matches!(key.verify(bytes, &Signature(signature)), Err(SigningError::Mismatch)));
    }

    #[test]
    fn debug_output_hides_the_secret_key() {
        let shown = format!("{:?}", SecretKey::from_seed(&[0xab; 32]));
        assert!(!shown.contains("171, 171") && !shown.contains("abab"), "{shown}");
    }
}
