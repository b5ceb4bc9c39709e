//! JSON web tokens signed by HS256 with a key that the operator gives. Only this algorithm is provided, so that no token
//! can choose a weaker one.

use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use posthaste_engine::nouns::{AgentId, Millis, RealmName, TokenRole};
use serde::Deserialize;
use sha2::Sha256;
use signature::{Signer, Verifier};

use crate::caller::Identity;

/// The shortest key in bytes: a key shorter than the hash is weaker than it.
const SHORTEST_KEY: usize = 32;

/// The key that tokens must be signed with.
#[derive(Clone)]
pub struct JwtKey {
    key: DecodingKey,
}

/// The claims of a token.
#[derive(Debug, Deserialize)]
struct Claims {
    #[serde(alias = "id", alias = "username")]
    sub: String,
    role: String,
    /// The realm that it is valid for; every realm if absent.
    #[serde(default, alias = "swarm")]
    realm: Option<String>,
    /// Whether its bearer may observe traffic between others.
    #[serde(default)]
    observe: bool,
    /// When it expires, in seconds.
    exp: f64,
}

impl JwtKey {
    /// Reads the key from a file; white space at its end is not part of it.
    ///
    /// # Errors
    /// When the file cannot be read or the key is too short.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path)?;
        let key = bytes.trim_ascii_end();
        anyhow::ensure!(
            key.len() >= SHORTEST_KEY,
            "{}: a key has at least {SHORTEST_KEY} bytes",
            path.display()
        );
        Ok(Self::new(key))
    }

    fn new(key: &[u8]) -> Self {
        // A second installation finds the same provider.
        let _ = PROVIDER.install_default();
        Self { key: DecodingKey::from_secret(key) }
    }

    /// The identity of a token's bearer and its expiry, if it is signed, in force and valid for the realm.
    pub fn identify(&self, token: &str, realm: &RealmName) -> Option<(Identity, Millis)> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_required_spec_claims(&["exp"]);
        rules.validate_nbf = true;
        rules.validate_aud = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &self.key, &rules).ok()?.claims;
        if claims.realm.as_ref().is_some_and(|named| named != realm.as_str()) {
            return None;
        }
        // As much of the time as counts; the sign was checked with the rest.
        let expires_at = (claims.exp.clamp(0.0, 9e12) * 1000.0) as Millis;
        let role = match claims.role.as_str() {
            "admin" => TokenRole::Admin,
            "user" => TokenRole::User,
            "agent" => TokenRole::Agent,
            _ => return None,
        };
        let identity = Identity {
            role,
            name: AgentId::new(&claims.sub).ok()?,
            everywhere: claims.realm.is_none(),
            observe: claims.observe,
        };
        Some((identity, expires_at))
    }
}

impl std::fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JwtKey(…)")
    }
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(Seal::new(*algorithm, key.as_bytes())?)),
    verifier_factory: |algorithm, key| Ok(Box::new(Seal::new(*algorithm, key.try_get_as_bytes()?)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// HMAC over SHA-256.
struct Seal(Hmac<Sha256>);

impl Seal {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Hmac::new_from_slice(key).map(Self).map_err(|_| ErrorKind::InvalidKeyFormat.into())
    }
}

impl Signer<Vec<u8>> for Seal {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let mut seal = self.0.clone();
        seal.update(message);
        Ok(seal.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Seal {
    fn verify(&self, message: &[u8], seal: &Vec<u8>) -> Result<(), signature::Error> {
        let mut own = self.0.clone();
        own.update(message);
        own.verify_slice(seal).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Seal {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Seal {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header};
    use serde_json::{Value, json};

    use super::*;

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn token(claims: &Value, key: &[u8]) -> String {
        let _ = PROVIDER.install_default();
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(key)).unwrap()
    }

    #[test]
    fn a_token_says_who_its_bearer_is() {
        let claims = json!({ "sub": "ann", "role": "user", "exp": 4_000_000_000_u64, "realm": "main" });
        let found = JwtKey::new(KEY).identify(&token(&claims, KEY), &RealmName::main()).unwrap().0;
        assert_eq!((found.role, found.name.as_str()), (TokenRole::User, "ann"));
    }

    #[test]
    fn invalid_tokens_identify_no_caller() {
        let good = json!({ "sub": "ann", "role": "user", "exp": 4_000_000_000_u64 });
        let changed = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            token(&claims, KEY)
        };
        let mut forged = token(&good, KEY);
        forged.truncate(forged.len() - 2);
        let none = format!(
            "{}.",
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJyb2xlIjoiYWRtaW4iLCJleHAiOjQwMDAwMDAwMDB9"
        );
        let cases = [
            changed("exp", json!(1)),
            changed("exp", Value::Null),
            changed("nbf", json!(3_900_000_000_u64)),
            changed("role", json!("king")),
            changed("realm", json!("elsewhere")),
            changed("sub", json!("")),
            token(&good, b"another key another key another key"),
            forged,
            none,
            "a.b.c".to_owned(),
        ];
        for case in cases {
            assert_eq!(JwtKey::new(KEY).identify(&case, &RealmName::main()), None, "{case}");
        }
    }
}
