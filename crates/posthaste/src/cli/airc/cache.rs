//! What this machine has heard of reservations: kept in a file, judged by the rules for readers.

use std::collections::HashMap;

use posthaste_engine::globs::PathPattern;
use posthaste_engine::stamp;
use posthaste_wire::airc::{Payload, ReservationStatus, STALE_AFTER_MS, Scope};
use posthaste_wire::time::{parse_rfc3339, to_rfc3339};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::exit::Failure;
use super::registry::Registry;

/// The file that holds them.
const FILE: &str = "reservations.json";
/// More of one identity's in one scope are passed over.
const MOST_OF_ONE: usize = 10;
/// Entries that ended are kept this long, for those who want to look back.
const REMEMBERED: i64 = 30 * 24 * 3_600_000;

/// Everything heard so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cache {
    pub(super) reservations: Vec<Entry>,
    #[serde(default)]
    pub(super) updated_at: String,
    /// How far the registry's stream has been read.
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
    #[serde(default = "yes")]
    pub(super) exclusive: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) status: String,
}

fn yes() -> bool {
    true
}

impl Entry {
    /// Past its time it is over, whatever was said last.
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
            |entry: &Entry| parse_rfc3339(&entry.expires_ts).is_ok_and(|end| end > now - REMEMBERED);
        self.reservations.retain(remembered);
        self.updated_at = to_rfc3339(now);
        registry.keyring().write(FILE, self)
    }

    /// Reads on in the registry's stream of reservations; says what deserves a warning.
    pub(super) async fn sync(&mut self, registry: &mut Registry) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        let mut consent = HashMap::new();
        loop {
            let cursor = self.cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let path = format!("/messages/inbox?payload_type=context:file_reservation&limit=200{cursor}");
            let page = registry.call(Method::GET, &path, None).await?.done()?;
            for message in page["messages"].as_array().into_iter().flatten() {
                let owner = message["from"].as_str().unwrap_or_default().trim_start_matches('@').to_owned();
                if !registry.is_authentic(message).await? {
                    warnings.push(format!(
                        "a reservation in the name of {owner} is not signed by {owner}: ignored"
                    ));
                    continue;
                }
                // What is said to everyone comes without consent, but not from somebody who is blocked.
                let standing = standing(registry, &mut consent, &owner).await?;
                let public =
                    message["to"].as_str().is_some_and(|to| to.trim().eq_ignore_ascii_case("@public"));
                if standing != "accepted" && (standing == "blocked" || !public) {
                    warnings.push(format!("{owner} is no contact any more: what it reserves is ignored"));
                    continue;
                }
                warnings.extend(self.hear(&owner, message));
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

    /// Takes in one message whose signature is good.
    fn hear(&mut self, owner: &str, message: &Value) -> Option<String> {
        let Payload::Reservation(said) = Payload::read(message["payload"].as_object()?).ok()? else {
            return None;
        };
        let received = message["delivery"]["received_at"].as_str().and_then(|at| parse_rfc3339(at).ok());
        let received = received.unwrap_or_else(stamp::now);
        let at = self.reservations.iter().position(|one| one.owner == owner && one.reservation_id == said.id);
        let seen = to_rfc3339(received);
        let expires = said.expires.map(to_rfc3339);
        match (said.status, at) {
            (ReservationStatus::Active, Some(at)) => {
                let known = &mut self.reservations[at];
                known.last_seen = seen;
                (known.paths != said.paths)
                    .then(|| format!("{owner} used the reservation id {} twice for different paths", said.id))
            }
            (ReservationStatus::Active, None) => {
                if said.issued.is_some_and(|issued| received - issued > STALE_AFTER_MS) {
                    return Some(format!(
                        "{owner}'s reservation {} was stale when it came: ignored",
                        said.id
                    ));
                }
                let scope = said.scope?;
                let now = stamp::now();
                let held = self.reservations.iter();
                let held = held
                    .filter(|one| one.owner == owner && one.same_scope(&scope) && one.is_live(now))
                    .count();
                if held >= MOST_OF_ONE {
                    return Some(format!(
                        "{owner} holds {held} reservations in {}: more are ignored",
                        scope.as_str()
                    ));
                }
                self.reservations.push(Entry {
                    reservation_id: said.id,
                    owner: owner.to_owned(),
                    scope: scope.as_str().to_owned(),
                    paths: said.paths,
                    expires_ts: expires?,
                    last_seen: seen,
                    exclusive: said.exclusive,
                    reason: said.reason,
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

    /// Keeps what this identity itself has told.
    pub(super) fn keep_own(&mut self, entry: Entry) {
        self.reservations
            .retain(|one| one.owner != entry.owner || one.reservation_id != entry.reservation_id);
        self.reservations.push(entry);
    }

    /// Others' live reservations in a scope that overlap with these paths, where both sides want them alone.
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

/// How somebody stands with this identity, asked once for each.
async fn standing(
    registry: &mut Registry,
    known: &mut HashMap<String, String>,
    owner: &str,
) -> Result<String, Failure> {
    if let Some(standing) = known.get(owner) {
        return Ok(standing.clone());
    }
    let path = format!("/consent?from={owner}&to={}", registry.handle());
    let answer = registry.call(Method::GET, &path, None).await?.done()?;
    let standing = answer["state"].as_str().unwrap_or("none").to_owned();
    known.insert(owner.to_owned(), standing.clone());
    Ok(standing)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(owner: &str, issued: i64, payload: Value) -> Value {
        let mut payload = payload;
        payload["type"] = json!("context:file_reservation");
        let _ = owner;
        json!({ "payload": payload, "delivery": { "received_at": to_rfc3339(issued) } })
    }

    fn active(id: &str, path: &str, now: i64, lasts: i64) -> Value {
        json!({
            "reservation_id": id, "scope": "repo:github.com/a/b", "paths": [path], "status": "active",
            "ttl_seconds": 60, "issued_ts": to_rfc3339(now), "expires_ts": to_rfc3339(now + lasts),
        })
    }

    #[test]
    fn what_is_heard_is_kept_and_what_overlaps_is_found() {
        let (mut cache, now) = (Cache::default(), stamp::now());
        assert_eq!(cache.hear("ann", &said("ann", now, active("r1", "api/auth.ts", now, 60_000))), None);
        let scope = Scope::parse("repo:git@github.com:a/b.git").unwrap();
        let found = |cache: &Cache, path: &str| cache.overlaps("bob", &scope, &[path.to_owned()]).len();
        assert_eq!((found(&cache, "api/*.ts"), found(&cache, "api"), found(&cache, "lib")), (1, 1, 0));
        assert_eq!(cache.overlaps("ann", &scope, &["api".to_owned()]).len(), 0, "one's own is no conflict");
        let released = json!({ "reservation_id": "r1", "status": "released" });
        // Only the owner's word counts: bob's says nothing about ann's.
        cache.hear("bob", &said("bob", now, released.clone()));
        assert_eq!(found(&cache, "api"), 1);
        cache.hear("ann", &said("ann", now, released));
        assert_eq!(found(&cache, "api"), 0);
    }

    #[test]
    fn what_is_stale_or_too_much_is_ignored_with_a_word() {
        let (mut cache, now) = (Cache::default(), stamp::now());
        let stale = active("old", "a", now - STALE_AFTER_MS - 1_000, 3_600_000);
        assert!(cache.hear("ann", &said("ann", now, stale)).unwrap().contains("stale"));
        assert!(cache.reservations.is_empty());
        for n in 0..MOST_OF_ONE {
            assert_eq!(cache.hear("ann", &said("ann", now, active(&n.to_string(), "a", now, 60_000))), None);
        }
        assert!(
            cache
                .hear("ann", &said("ann", now, active("more", "a", now, 60_000)))
                .unwrap()
                .contains("ignored")
        );
        let other = cache.hear("ann", &said("ann", now, active("1", "other", now, 60_000)));
        assert!(other.unwrap().contains("twice"));
    }
}
