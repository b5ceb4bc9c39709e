//! Reservations: advisory claims on paths. They inform other agents and never block.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Audience, Json, Millis, Seq};

coded! {
    /// The status of a reservation.
    ReservationStatus {
        /// In force until it expires.
        Active = "active",
        /// Released by its holder.
        Released = "released",
        /// Past its expiry.
        Expired = "expired",
    }
}

/// An advisory claim on path patterns within a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its seq in the event log, which is also its number.
    pub seq: Seq,
    /// The agent that holds it.
    pub owner: AgentId,
    /// The holder's own key for it, unique among the holder's.
    pub key: String,
    /// Where the paths are: a repository, a project, a machine.
    pub scope: String,
    /// The patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether the holder wants the paths for itself alone.
    pub exclusive: bool,
    /// The purpose.
    pub reason: Option<String>,
    /// Where it is in its life.
    pub status: ReservationStatus,
    /// Whether the whole realm may see it, or only the holder and accepted contacts.
    pub audience: Audience,
    /// The agents that see it, if it has such a list. Else its audience decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Vec<AgentId>>,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// When it was made.
    pub issued_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
    /// When it was released.
    pub released_at: Option<Millis>,
}

/// A reservation of another agent that overlaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The pattern that was requested.
    pub path: String,
    /// The pattern that is held.
    pub held_path: String,
    /// The agent that holds it.
    pub holder: AgentId,
    /// The number of the reservation that holds it.
    pub reservation: Seq,
    /// The holder's key for it.
    pub key: String,
    /// Whether the holder wants the paths for itself alone.
    pub exclusive: bool,
    /// When it expires.
    pub expires_at: Millis,
    /// The purpose.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The result of making or renewing a reservation: the reservation, and the overlaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The reservation as it is now.
    pub reservation: Reservation,
    /// Overlaps with reservations that the holder may see.
    pub conflicts: Vec<Conflict>,
}
