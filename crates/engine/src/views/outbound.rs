//! Letters that wait to be carried to a neighbour.

use std::sync::Arc;

use super::weigh::Weigh;
use super::{View, Viewed, require_admin};
use crate::nouns::{AgentId, Caller, DeliveryState, Message, RealmName};
use crate::store::rows;

/// A letter for an agent of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// The neighbour.
    pub peer: RealmName,
    /// The recipient there, as it is addressed here.
    pub agent: AgentId,
    /// The letter.
    pub message: Arc<Message>,
    /// Whether it is still worth carrying: neither expired nor given up.
    pub due: bool,
}

impl View<'_> {
    /// The letters that wait longest, neighbour by neighbour.
    ///
    /// # Errors
    /// Refused for anybody but those who run the office.
    pub fn outbound(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Outbound>> {
        require_admin(caller)?;
        let sql = format!(
            "SELECT {}, o.peer, o.agent, d.state, d.expires_at FROM outbound o JOIN messages m ON m.seq = o.message
             JOIN deliveries d ON d.agent = o.agent AND d.message = o.message
             ORDER BY o.peer, o.message, o.agent LIMIT ?1",
            rows::MESSAGE
        );
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let waiting = self.stretch_of(&sql, [limit], |row| {
            let message = rows::message(row)?;
            let after = rows::MESSAGE_COLUMNS;
            let (state, expires): (DeliveryState, Option<i64>) = (row.get(after + 2)?, row.get(after + 3)?);
            Ok(Outbound {
                peer: row.get(after)?,
                agent: row.get(after + 1)?,
                message: Arc::new(message),
                due: state == DeliveryState::Queued && expires.is_none_or(|end| self.now < end),
            })
        })?;
        Ok(waiting.rows)
    }
}

impl Weigh for Outbound {
    fn weight(&self) -> usize {
        self.message.weight()
    }
}
