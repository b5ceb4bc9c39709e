//! Reservations of paths.

use serde::{Deserialize, Serialize};

/// `file_reservation_paths`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Reserved {
    pub granted: Vec<GrantedReservation>,
    pub conflicts: Vec<ConflictsByPath>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GrantedReservation {
    pub id: i64,
    pub path_pattern: String,
    pub exclusive: bool,
    pub reason: String,
    pub expires_ts: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ConflictsByPath {
    pub path: String,
    pub holders: Vec<Holder>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Holder {
    pub agent: String,
    pub path_pattern: String,
    pub exclusive: bool,
    pub expires_ts: String,
    pub file_reservation_id: i64,
}

/// `check_file_reservation_conflicts`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Conflicts {
    pub conflicts: Vec<ConflictsByPath>,
    /// The agents that work in the directory that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_here: Option<Vec<String>>,
}

/// `renew_file_reservations`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RenewedReservations {
    pub renewed: usize,
    pub file_reservations: Vec<RenewedReservation>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RenewedReservation {
    pub id: i64,
    pub path_pattern: String,
    pub old_expires_ts: String,
    pub new_expires_ts: String,
}

/// `release_file_reservations`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Released {
    pub released: usize,
    pub released_at: String,
}

/// `force_release_file_reservation`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ForcedRelease {
    pub released: usize,
    pub released_at: String,
    pub reservation: GrantedReservation,
    pub previous_holder: String,
    pub notified: bool,
}

/// `macro_file_reservation_cycle`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReservationCycle {
    pub file_reservations: Reserved,
    pub released: Option<Released>,
}

/// A row of `resource://file_reservations/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReservationRow {
    #[serde(flatten)]
    pub reservation: GrantedReservation,
    pub agent: String,
    pub scope: String,
    pub created_ts: String,
    pub released_ts: Option<String>,
    pub status: String,
    pub stale: bool,
    pub stale_reasons: Vec<String>,
    pub last_agent_activity_ts: Option<String>,
}
