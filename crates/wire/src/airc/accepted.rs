//! What the sender of a message is answered.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// `POST /messages`: the message is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted<'a> {
    /// Always true.
    pub success: bool,
    /// The message's id.
    #[serde(rename = "messageId")]
    pub message_id: Cow<'a, str>,
    /// The message's id.
    pub id: Cow<'a, str>,
    /// The message in short.
    pub message: AcceptedMessage<'a>,
    /// Its number in the event log.
    pub seq: i64,
    /// How many recipients have it.
    pub delivered: usize,
    /// `accepted`.
    pub status: Cow<'a, str>,
    /// The reservation that the message made, renewed or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationState>,
    /// Reservations of others that it overlaps with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Vec<ReservationConflict>>,
    /// What is odd about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Warning>>,
}

/// An accepted message in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedMessage<'a> {
    /// The message's id.
    pub id: Cow<'a, str>,
    /// The sender.
    pub from: Cow<'a, str>,
    /// The recipient, as written.
    pub to: Cow<'a, str>,
    /// The thread it belongs to.
    pub thread_id: Option<Cow<'a, str>>,
    /// When it was accepted.
    pub created_at: String,
}

/// A reservation as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationState {
    /// Its id, unique for its owner.
    pub reservation_id: String,
    /// The agent that holds it.
    pub owner: String,
    /// The scope of its paths, as written.
    pub scope: String,
    /// `active`, `released` or `expired`.
    pub status: Cow<'static, str>,
    /// When it ends.
    pub expires_ts: String,
}

/// Another agent's reservation, and which paths overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationConflict {
    /// Its id, unique for its owner.
    pub reservation_id: String,
    /// The agent that holds it.
    pub owner: String,
    /// The scope of its paths.
    pub scope: String,
    /// Its paths that overlap.
    pub paths: Vec<String>,
    /// The requested paths that overlap.
    pub requested_paths: Vec<String>,
    /// When it ends.
    pub expires_ts: String,
    /// What it is for.
    pub reason: Option<String>,
    /// Its number in the event log.
    pub seq: i64,
}

/// What is odd about an accepted message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The warning's code.
    pub code: Cow<'static, str>,
    /// The same for people.
    pub message: Cow<'static, str>,
}
