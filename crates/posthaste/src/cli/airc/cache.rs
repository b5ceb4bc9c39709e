//! The reservations that this identity was told of: kept in a file, checked by the protocol's rules for recipients.

use std::collections::HashMap;

use posthaste_engine::globs::PathPattern;
use posthaste_engine::stamp;
use posthaste_wire::airc::{Payload, ReservationStatus, STALE_AFTER_MS, Scope};
use posthaste_wire::time::{parse_rfc3339, to_rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::exit::Failure;
use super::registry::Registry;

/// The file that holds them.
const FILE: &str = "reservations.json";
/// Live reservations of one owner in one scope; more are ignored.
const MAX_PER_OWNER: usize = 10;
/// How long reservations are kept after their end.
const KEPT_AFTER_END_MS: i64 = 30 * 24 * 3_600_000;

/// All known reservations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cache {
    pub(super) reservations: Vec<Entry>,
    #[serde(default)]
    pub(super) updated_at: String,
    /// The position up to which the registry's reservations were read.
    #[serde(default)]
    cursor: Option<String>,
}

/// One reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) reservation_id: String,
    pub(super) owner: String,
    pub(super) scope: String,
    pub(super) paths: Vec<String>,
    pub(super) expires_ts: String,
    pub(super) last_seen: String,
    #[serde(default = "default_exclusive")]
    pub(super) exclusive: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) status: String,
}

fn default_exclusive() -> bool {
    true
}

impl Entry {
    /// Whether it is in force: not released, and before its end.
    pub(super) fn is_live(&self, now: i64) -> bool {
        matches!(self.status.as_str(), "active" | "renewed" | "")
            && parse_rfc3339(&self.expires_ts).is_ok_and(|end| end > now)
    }

    fn same_scope(&self, scope: &Scope) -> bool {
        Scope::parse(&self.scope).is_ok_and(|own| own.normal() == scope.normal())
    }
}

impl Cache {
    pub(super) fn load(registry: &Registry) -> Self {
        registry.keyring().read(FILE).unwrap_or_default()
    }

    pub(super) fn save(&mut self, registry: &Registry) -> Result<(), Failure> {
        let now = stamp::now();
        let remembered =
            |entry: &Entry| parse_rfc3339(&entry.expires_ts).is_ok_and(|end| end > now - KEPT_AFTER_END_MS);
        self.reservations.retain(remembered);
        self.updated_at = to_rfc3339(now);
        registry.keyring().write(FILE, self)
    }

    /// Reads new reservation messages from the registry; returns warnings about those that are ignored.
    pub(super) async fn sync(&mut self, registry: &mut Registry) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        let mut consent = HashMap::new();
        loop {
            let cursor = self.cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let path = format!("/messages/inbox?payload_type=context:file_reservation&limit=200{cursor}");
            let page = registry.get(&path).await?.done()?;
            for message in page["messages"].as_array().into_iter().flatten() {
                let owner = message["from"].as_str().unwrap_or_default().trim_start_matches('@').to_owned();
                if !registry.is_authentic(message).await? {
                    warnings.push(format!(
                        "a reservation in the name of {owner} is not signed by {owner}: ignored"
                    ));
                    continue;
                }
                // A message to @public needs no consent, but is ignored from a blocked owner.
                let state = consent_of(registry, &mut consent, &owner).await?;
                let public =
                    message["to"].as_str().is_some_and(|to| to.trim().eq_ignore_ascii_case("@public"));
                if state != "accepted" && (state == "blocked" || !public) {
                    warnings.push(format!("{owner} is no contact any more: what it reserves is ignored"));
                    continue;
                }
                warnings.extend(self.apply(&owner, message));
            }
            if let Some(cursor) = page["cursor"].as_str() {
                self.cursor = Some(cursor.to_owned());
            }
            if page["hasMore"] != true {
                self.save(registry)?;
                return Ok(warnings);
            }
        }
    }

    /// Applies one message whose signature is valid; returns a warning if it is ignored.
    fn apply(&mut self, owner: &str, message: &Value) -> Option<String> {
        let Payload::Reservation(announced) = Payload::read(message["payload"].as_object()?).ok()? else {
            return None;
        };
        let received = message["delivery"]["received_at"].as_str().and_then(|at| parse_rfc3339(at).ok());
        let received = received.unwrap_or_else(stamp::now);
        let at =
            self.reservations.iter().position(|one| one.owner == owner && one.reservation_id == announced.id);
        let seen = to_rfc3339(received);
        let expires = announced.expires.map(to_rfc3339);
        match (announced.status, at) {
            (ReservationStatus::Active, Some(at)) => {
                let known = &mut self.reservations[at];
                known.last_seen = seen;
                (known.paths != announced.paths).then(|| {
                    format!("{owner} used the reservation id {} twice for different paths", announced.id)
                })
            }
            (ReservationStatus::Active, None) => {
                if announced.issued.is_some_and(|issued| received - issued > STALE_AFTER_MS) {
                    return Some(format!(
                        "{owner}'s reservation {} was stale when it came: ignored",
                        announced.id
                    ));
                }
                let scope = announced.scope?;
                let now = stamp::now();
                let held = self.reservations.iter();
                let held = held
                    .filter(|one| one.owner == owner && one.same_scope(&scope) && one.is_live(now))
                    .count();
                if held >= MAX_PER_OWNER {
                    return Some(format!(
                        "{owner} holds {held} reservations in {}: more are ignored",
                        scope.as_str()
                    ));
                }
                self.reservations.push(Entry {
                    reservation_id: announced.id,
                    owner: owner.to_owned(),
                    scope: scope.as_str().to_owned(),
                    paths: announced.paths,
                    expires_ts: expires?,
                    last_seen: seen,
                    exclusive: announced.exclusive,
                    reason: announced.reason,
                    status: "active".to_owned(),
                });
                None
            }
            (status, Some(at)) => {
                let known = &mut self.reservations[at];
                known.last_seen = seen;
                known.status = match status {
                    ReservationStatus::Renewed => "renewed",
                    ReservationStatus::Released => "released",
                    _ => "expired",
                }
                .to_owned();
                if let (ReservationStatus::Renewed, Some(expires)) = (status, expires) {
                    known.expires_ts = expires;
                }
                None
            }
            (_, None) => None,
        }
    }

    /// Keeps a reservation of this identity itself.
    pub(super) fn keep_own(&mut self, entry: Entry) {
        self.reservations
            .retain(|one| one.owner != entry.owner || one.reservation_id != entry.reservation_id);
        self.reservations.push(entry);
    }

    /// Live exclusive reservations of other owners in a scope that overlap with these paths.
    pub(super) fn overlaps(&self, me: &str, scope: &Scope, paths: &[String]) -> Vec<&Entry> {
        let now = stamp::now();
        let patterns = |paths: &[String]| -> Vec<PathPattern> {
            paths.iter().filter_map(|path| PathPattern::parse(path).ok()).collect()
        };
        let wanted = patterns(paths);
        let held =
            self.reservations.iter().filter(|one| one.owner != me && one.exclusive && one.is_live(now));
        held.filter(|one| one.same_scope(scope))
            .filter(|one| {
                patterns(&one.paths).iter().any(|held| wanted.iter().any(|path| path.overlaps(held)))
            })
            .collect()
    }
}

/// The consent between an owner and this identity, requested once for each owner.
async fn consent_of(
    registry: &mut Registry,
    known: &mut HashMap<String, String>,
    owner: &str,
) -> Result<String, Failure> {
    if let Some(state) = known.get(owner) {
        return Ok(state.clone());
    }
    let path = format!("/consent?from={owner}&to={}", registry.handle());
    let answer = registry.get(&path).await?.done()?;
    let state = answer["state"].as_str().unwrap_or("none").to_owned();
    known.insert(owner.to_owned(), state.clone());
    Ok(state)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(issued: i64, mut payload: Value) -> Value {
        payload["type"] = json!("context:file_reservation");
        json!({ "payload": payload, "delivery": { "received_at": to_rfc3339(issued) } })
    }

    fn active(id: &str, path: &str, now: i64, lasts: i64) -> Value {
        json!({
            "reservation_id": id, "scope": "repo:github.com/a/b", "paths": [path], "status": "active",
            "ttl_seconds": 60, "issued_ts": to_rfc3339(now), "expires_ts": to_rfc3339(now + lasts),
        })
    }

    #[test]
    fn reservations_are_kept_and_overlaps_are_found() {
        let (mut cache, now) = (Cache::default(), stamp::now());
        assert_eq!(cache.apply("ann", &message(now, active("r1", "api/auth.ts", now, 60_000))), None);
        let scope = Scope::parse("repo:git@github.com:a/b.git").unwrap();
        let found = |cache: &Cache, path: &str| cache.overlaps("bob", &scope, &[path.to_owned()]).len();
        assert_eq!((found(&cache, "api/*.ts"), found(&cache, "api"), found(&cache, "lib")), (1, 1, 0));
        assert_eq!(
            cache.overlaps("ann", &scope, &["api".to_owned()]).len(),
            0,
            "an owner's own reservation is no conflict"
        );
        let released = json!({ "reservation_id": "r1", "status": "released" });
        // Only the owner can release a reservation: bob's message does not affect ann's.
        cache.apply("bob", &message(now, released.clone()));
        assert_eq!(found(&cache, "api"), 1);
        cache.apply("ann", &message(now, released));
        assert_eq!(found(&cache, "api"), 0);
    }

    #[test]
    fn stale_and_excess_reservations_are_ignored_with_a_warning() {
        let (mut cache, now) = (Cache::default(), stamp::now());
        let stale = active("old", "a", now - STALE_AFTER_MS - 1_000, 3_600_000);
        assert!(cache.apply("ann", &message(now, stale)).unwrap().contains("stale"));
        assert!(cache.reservations.is_empty());
        for n in 0..MAX_PER_OWNER {
            assert_eq!(cache.apply("ann", &message(now, active(&n.to_string(), "a", now, 60_000))), None);
        }
        assert!(
            cache.apply("ann", &message(now, active("more", "a", now, 60_000))).unwrap().contains("ignored")
        );
        let other = cache.apply("ann", &message(now, active("1", "other", now, 60_000)));
        assert!(other.unwrap().contains("twice"));
    }
}
