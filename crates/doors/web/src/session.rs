//! The cookie of a sign-in: the id of its token and the time, sealed by the server.

use posthaste_engine::nouns::Millis;
use posthaste_engine::stamp;

use posthaste_host::caller::TokenRef;
use posthaste_host::keys::AdminKey;

/// How long a sign-in lasts, in seconds.
pub(super) const MAX_AGE_SECONDS: u32 = 30 * 24 * 3_600;

const PURPOSE: &str = "ui session";
/// Stands for the server's own key, instead of a token's id.
const OPERATOR: &str = "operator";
/// Prefix of a token's id, so that no id equals `OPERATOR`.
const TOKEN: char = 't';

/// The credential of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Session {
    /// The server's own key.
    Operator,
    /// A token, by its id, which is no secret.
    Token(String),
}

impl Session {
    /// The session of a credential; `None` for a token that the database does not have.
    pub(super) fn of(pass: Option<&TokenRef>) -> Option<Self> {
        match pass {
            None => Some(Self::Operator),
            Some(pass) => pass.id.clone().map(Self::Token),
        }
    }

    pub(super) fn seal(&self, key: &AdminKey) -> String {
        let since = stamp::now();
        let text = match self {
            Self::Operator => format!("{OPERATOR}.{since}"),
            Self::Token(id) => format!("{TOKEN}{id}.{since}"),
        };
        format!("{text}.{}", key.seal(PURPOSE, &text))
    }

    /// The session in a cookie, if this server sealed it and it is not too old.
    pub(super) fn open(key: &AdminKey, cookie: &str) -> Option<Self> {
        let (text, seal) = cookie.rsplit_once('.')?;
        let (made_with, since) = text.rsplit_once('.')?;
        let since: Millis = since.parse().ok()?;
        if !key.sealed(PURPOSE, text, seal) || stamp::now() - since > Millis::from(MAX_AGE_SECONDS) * 1_000 {
            return None;
        }
        match made_with.strip_prefix(TOKEN) {
            Some(id) => Some(Self::Token(id.to_owned())),
            None => (made_with == OPERATOR).then_some(Self::Operator),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_what_was_sealed() {
        let data = tempfile::tempdir().unwrap();
        let key = AdminKey::open(data.path()).unwrap();
        for session in [Session::Operator, Session::Token("7".into()), Session::Token(OPERATOR.into())] {
            let cookie = session.seal(&key);
            assert_eq!(Session::open(&key, &cookie), Some(session));
            let (text, seal) = cookie.rsplit_once('.').unwrap();
            for forged in [format!("{text}0.{seal}"), format!("operator.1.{seal}"), text.to_owned()] {
                assert_eq!(Session::open(&key, &forged), None, "{forged}");
            }
        }
        let old = format!("{OPERATOR}.{}", stamp::now() - Millis::from(MAX_AGE_SECONDS) * 1_000 - 1);
        assert_eq!(Session::open(&key, &format!("{old}.{}", key.seal(PURPOSE, &old))), None, "too old");
    }
}
