//! Peers: other servers and realms that mail can be exchanged with.

use super::coded::coded;
use super::{Json, Millis, RealmName};

coded! {
    /// What a peer is.
    PeerKind {
        /// Another realm of this server.
        Realm = "realm",
        /// Another posthaste server.
        Office = "office",
        /// A server that speaks one of the doors' protocols.
        Server = "server",
    }
}

/// Another realm or server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The realm name under which its agents are addressed.
    pub name: RealmName,
    /// What the peer is.
    pub kind: PeerKind,
    /// Its URL.
    pub url: Option<String>,
    /// The environment variable that holds the token for it; never the token.
    pub token_ref: Option<String>,
    /// Whether it answered when last asked.
    pub reachable: bool,
    /// Whether it is forgotten when the server stops.
    pub volatile: bool,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// When it was added.
    pub created_at: Millis,
    /// When it last answered.
    pub seen_at: Option<Millis>,
}
