//! Reservations: advisory leases on paths. They inform; they never block.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Audience, Json, Millis, Seq};

coded! {
    /// Where a reservation is in its life.
    ReservationStatus {
        /// In force until it expires.
        Active = "active",
        /// Given back.
        Released = "released",
        /// Overtaken by its expiry.
        Expired = "expired",
    }
}

/// An advisory lease on path patterns within a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its place in the realm's history, and its number.
    pub seq: Seq,
    /// Who holds it.
    pub owner: AgentId,
    /// The holder's own name for it, unique among the holder's.
    pub key: String,
    /// Where the paths live: a repository, a project, a machine.
    pub scope: String,
    /// The patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether the holder wants the paths alone.
    pub exclusive: bool,
    /// What for.
    pub reason: Option<String>,
    /// Where it is in its life.
    pub status: ReservationStatus,
    /// Whether the whole realm may see it, or only the holder and accepted contacts.
    pub audience: Audience,
    /// Those who were told of it; if there is such a list, nobody else sees it. Else its audience decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Vec<AgentId>>,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// When it was taken.
    pub issued_at: Millis,
    /// When it lapses.
    pub expires_at: Millis,
    /// When it was given back.
    pub released_at: Option<Millis>,
}

/// Somebody else's reservation that overlaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The pattern that was asked for.
    pub path: String,
    /// The pattern that is held.
    pub held_path: String,
    /// Who holds it.
    pub holder: AgentId,
    /// The number of the reservation that holds it.
    pub reservation: Seq,
    /// The holder's name for it.
    pub key: String,
    /// Whether the holder wants the paths alone.
    pub exclusive: bool,
    /// When it lapses.
    pub expires_at: Millis,
    /// What for.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What taking or renewing a reservation gave: the lease, and whose it overlaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The lease as it stands now.
    pub reservation: Reservation,
    /// Overlaps with others that the holder may know of.
    pub conflicts: Vec<Conflict>,
}
