//! The office's own business: announcements, rules, and sweeping up what has expired.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply, deliveries, marks, reservations};
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, DeliveryState, Fact, Json, Millis, RealmName, ReservationStatus, Seq, Sight};
use crate::sight;
use crate::store::{all, exec, one, rows};

/// Writes into the history what only a door knows of: somebody connected, a permission changed, ….
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announce {
    /// What happened, in the door's word for it.
    pub word: String,
    /// The particulars.
    pub data: Json,
    /// Who may see it; everybody in the realm if not said.
    #[serde(default)]
    pub to: Option<Vec<AgentId>>,
}

impl Announce {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Seq> {
        to.require_member()?;
        if self.word.is_empty() || self.word.len() > 128 {
            return Err(Refusal::BadValue { field: "word", why: "1 to 128 bytes" }.into());
        }
        let sight = match &self.to {
            Some(agents) => Sight::Agents(Sight::list(agents.clone())),
            None => Sight::Everyone,
        };
        let fact = Fact::Announced { word: self.word.clone(), data: self.data.clone(), to: self.to.clone() };
        Ok(to.tell(fact, sight)?)
    }
}

/// Changes the realm's rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetRules {
    /// The rules from now on.
    pub rules: Rules,
}

impl SetRules {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Rules> {
        to.require_admin()?;
        let text = serde_json::to_string(&self.rules).unwrap_or_default();
        let sql = "INSERT INTO meta(key, value) VALUES('rules', ?1) ON CONFLICT DO UPDATE SET value = ?1";
        exec(to.books, sql, [text])?;
        to.tell(Fact::RulesChanged, Sight::Admins)?;
        *to.rules = self.rules.clone();
        Ok(self.rules.clone())
    }
}

/// Gives a realm of the office another name: a path, the address of a repository, a project's key. The office's
/// default realm keeps the list. The first claim stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The other name.
    pub alias: String,
    /// The realm it stands for.
    pub realm: RealmName,
    /// On whose wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// The realm of an earlier claim that no longer counts and is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<RealmName>,
}

/// A name of a realm besides its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The other name.
    pub alias: String,
    /// The realm it stands for, which may be another than was asked for if it was claimed before.
    pub realm: RealmName,
    /// Since when.
    pub at: Millis,
    /// On whose wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
}

impl Claimed {
    /// What the entries of the list start with.
    pub(crate) const PREFIX: &'static str = "alias:";
}

impl Claim {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Claimed> {
        to.require_admin()?;
        if self.alias.is_empty() || self.alias.len() > 4_096 || self.alias.chars().any(char::is_control) {
            let why = "1 to 4096 bytes without control characters";
            return Err(Refusal::BadValue { field: "alias", why }.into());
        }
        let key = format!("{}{}", Claimed::PREFIX, self.alias);
        let known: Option<String> =
            one(to.books, "SELECT value FROM meta WHERE key = ?1", [&key], |row| row.get(0))?;
        let known: Option<Claimed> = known.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(claimed) = known.filter(|claimed| self.instead_of.as_ref() != Some(&claimed.realm)) {
            return Ok(claimed);
        }
        let (alias, realm) = (self.alias.clone(), self.realm.clone());
        let claimed = Claimed { alias, realm, at: to.now, by: self.by.clone() };
        // Plain data without maps or floats: writing it as JSON cannot fail.
        let text = serde_json::to_string(&claimed).unwrap_or_default();
        // The office's own note of where things are: nothing that happened to anybody, so no line of the history.
        let sql = "INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
        exec(to.books, sql, (&key, &text))?;
        Ok(claimed)
    }
}

/// Marks what has expired by the command's time: letters that were not handed over until then, and leases. Views never
/// show expired things as live, swept or not; sweeping makes the expiry an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {}

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Deliveries whose time ran out while they waited.
    pub deliveries: usize,
    /// Reservations that lapsed.
    pub reservations: usize,
    /// Marks that are forgotten.
    pub marks: usize,
    /// Whether there may be more.
    pub more: bool,
}

impl Sweep {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Swept> {
        to.require_admin()?;
        let limit = to.rules.sweep_rows;
        let sql = "SELECT agent, message FROM deliveries
                   WHERE expires_at <= ?1 AND expires_at IS NOT NULL AND state = 0
                   ORDER BY expires_at, agent, message LIMIT ?2";
        let due: Vec<(AgentId, Seq)> =
            all(to.books, sql, (to.clock(), limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (agent, seq) in &due {
            let sql = "UPDATE deliveries SET state = ?3 WHERE agent = ?1 AND message = ?2";
            exec(to.books, sql, (agent, seq, DeliveryState::Expired))?;
            if let Some(message) = rows::message_at(to.books, *seq)? {
                deliveries::tell(to, Fact::MessageExpired { agent: agent.clone() }, message)?;
            }
        }
        let sql = format!(
            "SELECT {} FROM reservations r WHERE r.status = 'active' AND r.expires_at <= ?1
             ORDER BY r.expires_at, r.seq LIMIT ?2",
            rows::RESERVATION
        );
        let mut lapsed = all(to.books, &sql, (to.clock(), limit), rows::reservation)?;
        // Each path is taken out of the index, so paths are counted and not reservations.
        let mut paths = 0;
        lapsed.retain(|held| {
            paths += held.paths.len();
            paths <= (limit as usize).saturating_mul(4) || paths == held.paths.len()
        });
        for mut reservation in lapsed.iter().cloned() {
            reservation.status = ReservationStatus::Expired;
            reservations::end(to, &reservation)?;
            let sight = sight::of_reservation(to.books, &reservation, to.clock())?;
            to.tell(Fact::ReservationExpired { reservation: Box::new(reservation) }, sight)?;
        }
        // While the office is quiet the index catches up, so that searches need not lay out what is missing.
        to.index_texts()?;
        let marks = marks::forget_due(to, limit)?;
        let more = paths > (limit as usize).saturating_mul(4)
            || [due.len(), lapsed.len(), marks].iter().any(|swept| *swept >= limit as usize);
        Ok(Swept { deliveries: due.len(), reservations: lapsed.len(), marks, more })
    }
}
