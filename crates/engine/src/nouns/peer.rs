//! Peers: other offices and realms that mail can be exchanged with.

use super::coded::coded;
use super::{Json, Millis, RealmName};

coded! {
    /// What sort of neighbour a peer is.
    PeerKind {
        /// Another realm of this office.
        Realm = "realm",
        /// An office like this one.
        Office = "office",
        /// A server that speaks one of the doors' protocols.
        Server = "server",
    }
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The realm name under which its agents are addressed.
    pub name: RealmName,
    /// What sort of neighbour it is.
    pub kind: PeerKind,
    /// Where it is reached.
    pub url: Option<String>,
    /// The environment variable that holds the token for it; never the token.
    pub token_ref: Option<String>,
    /// Whether it answered when last asked.
    pub reachable: bool,
    /// Whether it is forgotten when the office stops.
    pub volatile: bool,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// When it was added.
    pub created_at: Millis,
    /// When it last answered.
    pub seen_at: Option<Millis>,
}
