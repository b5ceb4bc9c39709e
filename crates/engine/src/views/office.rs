//! The server as administrators see it: tokens, peers, rules, statistics.

use super::{View, Viewed, require_admin, require_member};
use crate::error::Fault;
use crate::limits::Rules;
use crate::nouns::{AgentKind, Caller, Peer, RealmName, Token};
use crate::store::{Db, all, one, rows};
use crate::verbs::claims::Claimed;

/// Statistics of the realm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfficeStats {
    /// Agents in the directory.
    pub agents: i64,
    /// The last seq of the event log.
    pub events: i64,
    /// Active conversations.
    pub active_conversations: i64,
    /// Tasks that have not ended.
    pub open_tasks: i64,
    /// Reservations in force.
    pub reservations: i64,
    /// Bytes of the database.
    pub bytes: i64,
}

impl View<'_> {
    /// Every token, for administrators.
    ///
    /// # Errors
    /// Refused for other callers.
    pub fn tokens(&self, caller: &Caller) -> Viewed<Vec<Token>> {
        require_admin(caller)?;
        let sql = format!("SELECT {} FROM tokens ORDER BY created_at, id", rows::TOKEN);
        Ok(all(self.db, &sql, [], rows::token)?)
    }

    /// The valid token with that hash: how a door authenticates a caller.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn token_by_hash(&self, hash: &[u8]) -> Viewed<Option<Token>> {
        let sql = format!("SELECT {} FROM tokens WHERE hash = ?1", rows::TOKEN);
        let token = one(self.db, &sql, [hash], rows::token)?;
        Ok(token.filter(|token| token.is_valid(self.now)))
    }

    /// The valid token with an id. An id is no secret: the caller must have proved otherwise that it has the token.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn token_by_id(&self, id: &str) -> Viewed<Option<Token>> {
        let sql = format!("SELECT {} FROM tokens WHERE id = ?1", rows::TOKEN);
        let token = one(self.db, &sql, [id], rows::token)?;
        Ok(token.filter(|token| token.is_valid(self.now)))
    }

    /// Whether a token with that hash has expired, as opposed to one that was revoked or never existed. Only the holder
    /// of the token can ask.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn token_has_lapsed(&self, hash: &[u8]) -> Viewed<bool> {
        let sql = format!("SELECT {} FROM tokens WHERE hash = ?1", rows::TOKEN);
        let token = one(self.db, &sql, [hash], rows::token)?;
        Ok(token.is_some_and(|token| token.revoked_at.is_none() && !token.is_valid(self.now)))
    }

    /// Every peer. The references to their tokens are shown to administrators only.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn peers(&self, caller: &Caller) -> Viewed<Vec<Peer>> {
        require_member(caller)?;
        let sql = format!("SELECT {} FROM peers ORDER BY name", rows::PEER);
        Ok(all(self.db, &sql, [], rows::peer)?.into_iter().map(|peer| shown(caller, peer)).collect())
    }

    /// One peer. The reference to its token is shown to administrators only.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn peer(&self, caller: &Caller, name: &RealmName) -> Viewed<Option<Peer>> {
        require_member(caller)?;
        let sql = format!("SELECT {} FROM peers WHERE name = ?1", rows::PEER);
        Ok(one(self.db, &sql, [name], rows::peer)?.map(|peer| shown(caller, peer)))
    }

    /// The aliases of the server's realms, the earliest first, including those that were withdrawn. For administrators.
    ///
    /// # Errors
    /// Refused for other callers.
    pub fn claims(&self, caller: &Caller) -> Viewed<Vec<Claimed>> {
        require_admin(caller)?;
        let sql = "SELECT value FROM meta WHERE key >= ?1 AND key < ?1 || char(0x10FFFF)";
        let texts: Vec<String> = all(self.db, sql, [Claimed::PREFIX], |row| row.get(0))?;
        let mut claims: Vec<Claimed> =
            texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        claims.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.alias.cmp(&b.alias)));
        Ok(claims)
    }

    /// The realm's rules.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn rules(&self) -> Viewed<Rules> {
        Ok(rules(self.db)?)
    }

    /// Number of agents proper: no people, no clients and nothing of the system.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn agent_count(&self, caller: &Caller) -> Viewed<i64> {
        require_member(caller)?;
        let sql = "SELECT count(*) FROM agents WHERE retired_at IS NULL AND kind = ?1";
        Ok(one(self.db, sql, [AgentKind::Agent], |row| row.get(0))?.unwrap_or(0))
    }

    /// Number of messages in the realm. Counts row by row, so the cost grows with the number.
    ///
    /// # Errors
    /// Refused for callers other than administrators.
    pub fn message_count(&self, caller: &Caller) -> Viewed<i64> {
        require_admin(caller)?;
        Ok(one(self.db, "SELECT count(*) FROM messages", [], |row| row.get(0))?.unwrap_or(0))
    }

    /// Statistics of the realm.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn stats(&self, caller: &Caller) -> Viewed<OfficeStats> {
        require_member(caller)?;
        let count = |sql: &str| -> Viewed<i64> { Ok(one(self.db, sql, [], |row| row.get(0))?.unwrap_or(0)) };
        let reserved = "SELECT count(*) FROM reservations WHERE status = 'active' AND expires_at > ?1";
        Ok(OfficeStats {
            agents: count("SELECT count(*) FROM agents WHERE retired_at IS NULL")?,
            events: self.head()?,
            active_conversations: count("SELECT count(*) FROM conversations WHERE status = 'active'")?,
            open_tasks: count(
                "SELECT count(*) FROM tasks WHERE status IN ('open', 'in_progress', 'blocked')",
            )?,
            reservations: one(self.db, reserved, [self.now], |row| row.get(0))?.unwrap_or(0),
            bytes: count("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")?,
        })
    }
}

fn shown(caller: &Caller, peer: Peer) -> Peer {
    let token_ref = peer.token_ref.filter(|_| caller.rights.admin);
    Peer { token_ref, ..peer }
}

/// The rules in force. They decide outcomes, so a row that cannot be read is an error and never means the defaults.
pub(crate) fn rules(db: Db<'_>) -> Result<Rules, Fault> {
    let text: Option<String> = one(db, "SELECT value FROM meta WHERE key = 'rules'", [], |row| row.get(0))?;
    let text =
        text.ok_or_else(|| Fault::Database { reason: "`rules` is missing in the table `meta`".to_owned() })?;
    Rules::from_json(&text).map_err(|why| Fault::Database {
        reason: format!("`rules` in the table `meta` cannot be read: {why}"),
    })
}
