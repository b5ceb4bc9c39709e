//! An identity's keys as the database has them.

use posthaste_engine::nouns::{Agent, Json, Millis};
use posthaste_wire::signing::PublicKey;
use serde::{Deserialize, Serialize};

use super::errors::Answer;
use super::identity::bad_proof;

/// Former keys that are remembered, so that what was signed with them can still be checked.
const MAX_FORMER_KEYS: usize = 100;

/// The keys of an identity, present and former.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredKeys {
    #[serde(default)]
    pub(super) public_key: Option<String>,
    #[serde(default)]
    pub(super) recovery_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rotated_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former: Vec<FormerKey>,
    #[serde(flatten)]
    pub(super) revoked: Option<Revocation>,
}

/// A key that was replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FormerKey {
    pub(super) public_key: String,
    pub(super) until: Millis,
}

/// When and why an identity was revoked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Revocation {
    pub(super) revoked_at: Millis,
    pub(super) reason: Option<String>,
}

impl StoredKeys {
    /// The keys of an agent; none if it has none that this door stored.
    pub(super) fn of(agent: &Agent) -> Self {
        let text = agent.keys.as_ref().map_or("{}", Json::as_str);
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(super) fn new(signing: &PublicKey, recovery: Option<&PublicKey>) -> Self {
        Self {
            public_key: Some(signing.to_string()),
            recovery_key: recovery.map(PublicKey::to_string),
            ..Self::default()
        }
    }

    /// The key that signs messages.
    pub(super) fn signing(&self) -> Option<PublicKey> {
        self.public_key.as_ref()?.parse().ok()
    }

    /// As the database keeps them.
    pub(super) fn to_json(&self) -> Json {
        Json::from_checked(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// The keys of an identity that signs messages.
#[derive(Debug)]
pub(super) struct Keys {
    stored: StoredKeys,
    pub(super) signing: PublicKey,
}

impl Keys {
    pub(super) fn of(agent: &Agent) -> Answer<Self> {
        let stored = StoredKeys::of(agent);
        let signing = stored.signing().ok_or_else(|| bad_proof("this identity has no key"))?;
        Ok(Self { stored, signing })
    }

    /// The key that may change the others: the recovery key, or the signing key where there is none.
    pub(super) fn guardian(&self) -> PublicKey {
        let recovery = self.stored.recovery_key.as_ref().and_then(|text| text.parse().ok());
        recovery.unwrap_or(self.signing)
    }

    pub(super) fn rotated_at(&self) -> Option<Millis> {
        self.stored.rotated_at
    }

    /// Whether a key is or was the identity's.
    pub(super) fn contains(&self, key: &PublicKey) -> bool {
        let text = key.to_string();
        *key == self.signing || self.stored.former.iter().any(|one| one.public_key == text)
    }

    /// The keys after a rotation.
    pub(super) fn rotated(&self, new: &PublicKey, now: Millis) -> Json {
        let mut keys = self.stored.clone();
        keys.former.push(FormerKey { public_key: self.signing.to_string(), until: now });
        let over = keys.former.len().saturating_sub(MAX_FORMER_KEYS);
        keys.former.drain(..over);
        keys.public_key = Some(new.to_string());
        keys.rotated_at = Some(now);
        keys.to_json()
    }

    /// The keys after a revocation.
    pub(super) fn revoked(&self, reason: Option<&str>, now: Millis) -> Json {
        let mut keys = self.stored.clone();
        keys.revoked = Some(Revocation { revoked_at: now, reason: reason.map(str::to_owned) });
        keys.to_json()
    }
}

#[cfg(test)]
mod tests {
    use posthaste_wire::signing::SecretKey;

    use super::*;

    #[test]
    fn stored_keys_keep_their_form() {
        let key = |n: u8| SecretKey::from_seed(&[n; 32]).public();
        let fresh = StoredKeys::new(&key(1), None);
        assert_eq!(fresh.to_json().as_str(), format!(r#"{{"public_key":"{}","recovery_key":null}}"#, key(1)));
        let keys = Keys { stored: StoredKeys::new(&key(1), Some(&key(2))), signing: key(1) };
        assert_eq!(keys.guardian(), key(2));
        let rotated = keys.rotated(&key(3), 7);
        let expected = format!(
            r#"{{"public_key":"{}","recovery_key":"{}","rotated_at":7,"former":[{{"public_key":"{}","until":7}}]}}"#,
            key(3),
            key(2),
            key(1)
        );
        assert_eq!(rotated.as_str(), expected);
        let stored: StoredKeys = serde_json::from_str(rotated.as_str()).unwrap();
        let keys = Keys { stored, signing: key(3) };
        assert!(keys.contains(&key(1)) && keys.contains(&key(3)) && !keys.contains(&key(2)));
        let revoked = keys.revoked(None, 9);
        assert_eq!(
            revoked.as_str(),
            format!("{},\"revoked_at\":9,\"reason\":null}}", expected.trim_end_matches('}'))
        );
        let stored: StoredKeys = serde_json::from_str(revoked.as_str()).unwrap();
        assert_eq!(stored.revoked.map(|revoked| revoked.revoked_at), Some(9));
    }
}
