//! Reservations: advisory claims on paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Millis, PageSize, Seq, Timestamp, is_false};

/// The status of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReservationStatus {
    /// In force until it expires.
    Active,
    /// Released by its holder.
    Released,
    /// Past its expiry.
    Expired,
}

/// Reserves paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReserveParams {
    /// The holder; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The holder's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where the paths are: a repository, a project, a machine.
    pub scope: String,
    /// The directory that the caller works in: the scope `project` means its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Path patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether the holder wants the paths for itself alone.
    #[serde(default = "yes")]
    pub exclusive: bool,
    /// The purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it expires.
    pub expires_at: Millis,
}

fn yes() -> bool {
    true
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    /// Its number.
    pub id: Seq,
    /// The holder's own name for it.
    pub key: String,
    /// The holder.
    pub owner: String,
    /// Where the paths are.
    pub scope: String,
    /// Path patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether the holder wants the paths for itself alone.
    pub exclusive: bool,
    /// The purpose.
    pub reason: Option<String>,
    /// Its status.
    pub status: ReservationStatus,
    /// When it was made.
    pub issued_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it was released.
    pub released_at: Option<Timestamp>,
}

/// A reservation that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReserveResult {
    /// The reservation.
    #[serde(flatten)]
    pub reservation: Reservation,
    /// Overlaps with reservations of other agents. They do not prevent it.
    pub conflicts: Vec<Conflict>,
}

/// An overlap with a reservation of another agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The pattern that was asked for.
    pub path: String,
    /// The pattern that is held.
    pub held_path: String,
    /// The agent that holds it.
    pub holder: String,
    /// The number of the reservation that holds it.
    pub reservation: Seq,
    /// Whether the holder wants the paths for itself alone.
    pub exclusive: bool,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Releases reservations: all in the scope if neither ids nor keys are given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseParams {
    /// The holder; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Seq>,
    /// The holder's own names for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Only those of this scope; all scopes if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The directory that the caller works in: the scope `project` means its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// Reservations that were released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseResult {
    /// The reservations.
    pub released: Vec<Reservation>,
}

/// Lists reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationsParams {
    /// Only those of this scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Only those of this holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Also those that were released or have expired.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ended: bool,
    /// `next` of the page before.
    #[serde(default)]
    pub after: Seq,
    /// Reservations of one page.
    #[serde(default)]
    pub limit: PageSize,
}

/// A page of reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservationsResult {
    /// The reservations, by number.
    pub reservations: Vec<Reservation>,
    /// `after` of the next page, if there is one.
    pub next: Option<Seq>,
}
