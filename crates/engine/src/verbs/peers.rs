//! Peers: other realms and servers that exchange mail with this one.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{Fact, Json, Millis, Peer, PeerKind, RealmName, Sight};
use crate::store::{one, rows};

/// Adds a peer or changes what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PutPeer {
    /// The realm name under which its agents are addressed.
    pub name: RealmName,
    /// Its kind.
    pub kind: PeerKind,
    /// Its address.
    #[serde(default)]
    pub url: Option<String>,
    /// The environment variable that holds the token for it.
    #[serde(default)]
    pub token_ref: Option<String>,
    /// Whether it is reachable.
    pub reachable: bool,
    /// Whether it is removed when the server stops.
    #[serde(default)]
    pub volatile: bool,
    /// Other data.
    #[serde(default)]
    pub meta: Option<Json>,
    /// When it last answered.
    #[serde(default)]
    pub seen_at: Option<Millis>,
}

impl PutPeer {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Peer> + use<'v>> {
        to.require_admin()?;
        if self.name == *to.realm {
            return Err(Refusal::BadValue { field: "name", why: "a realm is not its own peer" }.into());
        }
        Ok(|to: &mut Write<'_>| self.write(to))
    }

    fn write(&self, to: &mut Write<'_>) -> rusqlite::Result<Peer> {
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
        one(to.db, &sql, [&self.name], rows::peer)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}

/// Removes a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemovePeer {
    /// The peer.
    pub name: RealmName,
}

impl RemovePeer {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<()> + use<'v>> {
        to.require_admin()?;
        let peer = self.name.to_string();
        if one(to.db, "SELECT 1 FROM peers WHERE name = ?1", [&self.name], |_| Ok(()))?.is_none() {
            return Err(Refusal::NoSuchPeer { peer }.into());
        }
        Ok(move |to: &mut Write<'_>| {
            to.exec("DELETE FROM peers WHERE name = ?1", [&self.name])?;
            to.emit(Fact::PeerRemoved { peer }, Sight::Admins).map(drop)
        })
    }
}
