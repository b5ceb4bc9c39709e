//! Verbs of the server itself: announcements, rules, and expiring what is due.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write, deliveries, reservations, seen_keys};
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, DeliveryState, Fact, Json, Seq, Sight};
use crate::store::{all, rows};

/// Emits an event that only a door knows of: a connection was opened, a permission changed, ….
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announce {
    /// What happened, in the door's vocabulary.
    pub word: String,
    /// Its data.
    pub data: Json,
    /// Who may see it; the whole realm if absent.
    #[serde(default)]
    pub to: Option<Vec<AgentId>>,
}

impl Announce {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Seq> + use<'v>> {
        to.require_member()?;
        if self.word.is_empty() || self.word.len() > 128 {
            return Err(Refusal::BadValue { field: "word", why: "1 to 128 bytes" }.into());
        }
        Ok(|to: &mut Write<'_>| {
            let sight = match &self.to {
                Some(agents) => Sight::Agents(Sight::list(agents.clone())),
                None => Sight::Everyone,
            };
            let (word, data) = (self.word.clone(), self.data.clone());
            to.emit(Fact::Announced { word, data, to: self.to.clone() }, sight)
        })
    }
}

/// Changes the realm's rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetRules {
    /// The new rules.
    pub rules: Rules,
}

impl SetRules {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Rules> + use<'v>> {
        to.require_admin()?;
        Ok(|to: &mut Write<'_>| {
            let sql = "INSERT INTO meta(key, value) VALUES('rules', ?1) ON CONFLICT DO UPDATE SET value = ?1";
            to.exec(sql, [self.rules.to_json()])?;
            to.emit(Fact::RulesChanged, Sight::Admins)?;
            to.set_rules(self.rules.clone());
            Ok(self.rules.clone())
        })
    }
}

/// Expires what is due by the command's time: queued deliveries, reservations and single-use keys. Views never show expired
/// things as active, swept or not; sweeping makes the expiry an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {}

/// Result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Deliveries that expired while they were queued.
    pub deliveries: usize,
    /// Reservations that expired.
    pub reservations: usize,
    /// Single-use keys that were deleted.
    pub keys: usize,
    /// Whether more may be due.
    pub more: bool,
}

impl Sweep {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Swept> + use<'v>> {
        to.require_admin()?;
        let limit = to.rules.sweep_rows;
        let sql = "SELECT agent, message FROM deliveries
                   WHERE expires_at <= ?1 AND expires_at IS NOT NULL AND state = 0
                   ORDER BY expires_at, agent, message LIMIT ?2";
        let deliveries: Vec<(AgentId, Seq)> =
            all(to.db, sql, (to.clock(), limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sql = format!(
            "SELECT {} FROM reservations r WHERE r.status = 'active' AND r.expires_at <= ?1
             ORDER BY r.expires_at, r.seq LIMIT ?2",
            rows::RESERVATION
        );
        let mut reservations = all(to.db, &sql, (to.clock(), limit), rows::reservation)?;
        // Each path is taken out of the index, so paths are counted and not reservations.
        let mut paths = 0;
        reservations.retain(|held| {
            paths += held.paths.len();
            paths <= (limit as usize).saturating_mul(4) || paths == held.paths.len()
        });
        Ok(move |to: &mut Write<'_>| {
            let (expired, lapsed) = (deliveries.len(), reservations.len());
            for (agent, seq) in deliveries {
                expire_delivery(to, agent, seq)?;
            }
            for reservation in reservations {
                reservations::expire(to, reservation)?;
            }
            // The full-text index catches up while the server is idle, so that searches need not scan what it lacks.
            to.index_texts()?;
            let keys = seen_keys::delete_expired(to, limit)?;
            let more = paths > (limit as usize).saturating_mul(4)
                || [expired, lapsed, keys].iter().any(|swept| *swept >= limit as usize);
            Ok(Swept { deliveries: expired, reservations: lapsed, keys, more })
        })
    }
}

fn expire_delivery(to: &mut Write<'_>, agent: AgentId, seq: Seq) -> rusqlite::Result<()> {
    let sql = "UPDATE deliveries SET state = ?3 WHERE agent = ?1 AND message = ?2";
    to.exec(sql, (&agent, seq, DeliveryState::Expired))?;
    if let Some(message) = rows::message_at(to.db, seq)? {
        deliveries::emit(to, Fact::MessageExpired { agent }, message)?;
    }
    Ok(())
}
