//! The office's own business: announcements, rules, and sweeping up what has expired.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply, deliveries, reservations, seen_keys};
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, DeliveryState, Fact, Json, ReservationStatus, Seq, Sight};
use crate::sight;
use crate::store::{all, exec, rows};

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
        let sql = "INSERT INTO meta(key, value) VALUES('rules', ?1) ON CONFLICT DO UPDATE SET value = ?1";
        exec(to.db, sql, [self.rules.to_json()])?;
        to.tell(Fact::RulesChanged, Sight::Admins)?;
        *to.rules = self.rules.clone();
        Ok(self.rules.clone())
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
    /// Single-use keys that expired.
    pub keys: usize,
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
            all(to.db, sql, (to.clock(), limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (agent, seq) in &due {
            let sql = "UPDATE deliveries SET state = ?3 WHERE agent = ?1 AND message = ?2";
            exec(to.db, sql, (agent, seq, DeliveryState::Expired))?;
            if let Some(message) = rows::message_at(to.db, *seq)? {
                deliveries::tell(to, Fact::MessageExpired { agent: agent.clone() }, message)?;
            }
        }
        let sql = format!(
            "SELECT {} FROM reservations r WHERE r.status = 'active' AND r.expires_at <= ?1
             ORDER BY r.expires_at, r.seq LIMIT ?2",
            rows::RESERVATION
        );
        let mut lapsed = all(to.db, &sql, (to.clock(), limit), rows::reservation)?;
        // Each path is taken out of the index, so paths are counted and not reservations.
        let mut paths = 0;
        lapsed.retain(|held| {
            paths += held.paths.len();
            paths <= (limit as usize).saturating_mul(4) || paths == held.paths.len()
        });
        for mut reservation in lapsed.iter().cloned() {
            reservation.status = ReservationStatus::Expired;
            reservations::end(to, &reservation)?;
            let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
            to.tell(Fact::ReservationExpired { reservation: Box::new(reservation) }, sight)?;
        }
        // While the office is quiet the index catches up, so that searches need not lay out what is missing.
        to.index_texts()?;
        let keys = seen_keys::delete_expired(to, limit)?;
        let more = paths > (limit as usize).saturating_mul(4)
            || [due.len(), lapsed.len(), keys].iter().any(|swept| *swept >= limit as usize);
        Ok(Swept { deliveries: due.len(), reservations: lapsed.len(), keys, more })
    }
}
