//! Messages that wait to be sent to a peer.

use std::sync::Arc;

use super::page_weight::Weigh;
use super::{View, Viewed, require_admin};
use crate::nouns::{AgentId, Caller, DeliveryState, Message, RealmName};
use crate::store::rows;

/// A message for an agent of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// The peer.
    pub peer: RealmName,
    /// The recipient there, as it is addressed here.
    pub agent: AgentId,
    /// The message.
    pub message: Arc<Message>,
    /// Whether it is still to be sent: neither expired nor given up.
    pub due: bool,
}

impl View<'_> {
    /// The messages that have waited longest, by peer.
    ///
    /// # Errors
    /// Refused for callers other than administrators.
    pub fn outbound(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Outbound>> {
        require_admin(caller)?;
        let sql = format!(
            "SELECT {}, o.peer, o.agent, d.state, d.expires_at FROM outbound o JOIN messages m ON m.seq = o.message
             JOIN deliveries d ON d.agent = o.agent AND d.message = o.message
             ORDER BY o.peer, o.message, o.agent LIMIT ?1",
            rows::MESSAGE
        );
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let waiting = self.read_rows(&sql, [limit], |row| {
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
