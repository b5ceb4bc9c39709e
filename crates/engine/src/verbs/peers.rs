//! Neighbours: other realms, offices and servers that mail can be exchanged with.

use serde::{Deserialize, Serialize};

use super::{Decided, Write};
use crate::error::Refusal;
use crate::nouns::{Fact, Json, Millis, Peer, PeerKind, RealmName, Sight};
use crate::store::{one, rows};

/// Adds a neighbour or changes what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PutPeer {
    /// The realm name under which its agents are addressed.
    pub name: RealmName,
    /// What sort of neighbour it is.
    pub kind: PeerKind,
    /// Where it is reached.
    #[serde(default)]
    pub url: Option<String>,
    /// The environment variable that holds the token for it.
    #[serde(default)]
    pub token_ref: Option<String>,
    /// Whether it answers.
    pub reachable: bool,
    /// Whether it is forgotten when the office stops.
    #[serde(default)]
    pub volatile: bool,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
    /// When it last answered.
    #[serde(default)]
    pub seen_at: Option<Millis>,
}

impl PutPeer {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Peer> {
        to.require_admin()?;
        if self.name == *to.realm {
            return Err(Refusal::BadValue { field: "name", why: "a realm is not its own neighbour" }.into());
        }
        let sql = "INSERT INTO peers(name, kind, url, token_ref, reachable, volatile, meta, created_at, seen_at)
                   VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)
                   ON CONFLICT DO UPDATE SET kind=?2, url=?3, token_ref=?4, reachable=?5, volatile=?6, meta=?7,
                       seen_at=coalesce(?9, seen_at)";
        let params = (
            &self.name,
            self.kind,
            &self.url,
            &self.token_ref,
            self.reachable,
            self.volatile,
            &self.meta,
            to.now,
            self.seen_at,
        );
        to.exec(sql, params)?;
        let peer = self.name.to_string();
        to.emit(Fact::PeerChanged { peer, reachable: self.reachable }, Sight::Admins)?;
        let sql = format!("SELECT {} FROM peers WHERE name = ?1", rows::PEER);
        one(to.db, &sql, [&self.name], rows::peer)?
            .ok_or_else(|| Refusal::NoSuchPeer { peer: self.name.to_string() }.into())
    }
}

/// Forgets a neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemovePeer {
    /// Which.
    pub name: RealmName,
}

impl RemovePeer {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<()> {
        to.require_admin()?;
        let peer = self.name.to_string();
        if to.exec("DELETE FROM peers WHERE name = ?1", [&self.name])? == 0 {
            return Err(Refusal::NoSuchPeer { peer }.into());
        }
        to.emit(Fact::PeerRemoved { peer }, Sight::Admins)?;
        Ok(())
    }
}
