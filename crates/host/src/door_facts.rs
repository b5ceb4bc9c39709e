//! What doors have to know about agents and messages that came by another door. Everything else about a protocol stays in
//! its own door.

/// Properties of a protocol that matter to other doors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorFacts {
    /// Its agents get their messages on a connection that they hold open, and confirm them there.
    pub delivers_on_connections: bool,
    /// Its senders learn of an acknowledgement only by a message, because the protocol has nothing but an inbox.
    pub acknowledges_by_message: bool,
}

impl DoorFacts {
    /// The facts of a door, by the tag of its agents and messages.
    pub fn of(via: &str) -> Self {
        match via {
            "map" => Self { delivers_on_connections: true, ..Self::default() },
            "airc" => Self { acknowledges_by_message: true, ..Self::default() },
            _ => Self::default(),
        }
    }
}
