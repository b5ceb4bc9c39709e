//! Contacts and policies.

use serde::{Deserialize, Serialize};

use super::SentMessage;

/// `request_contact`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ContactRequest {
    pub from: String,
    pub from_project: String,
    pub to: String,
    pub to_project: String,
    pub status: String,
    pub expires_ts: Option<String>,
}

/// `respond_contact`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ContactAnswer {
    pub from: String,
    pub to: String,
    pub approved: bool,
    pub expires_ts: Option<String>,
    pub updated: u32,
}

/// A row of `list_contacts`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ContactRow {
    pub to: String,
    pub to_project: String,
    pub direction: String,
    pub status: String,
    pub is_expired: bool,
    pub allows_messaging: bool,
    pub reason: String,
    pub updated_ts: String,
    pub expires_ts: Option<String>,
}

/// `set_contact_policy`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ContactPolicyAnswer {
    pub agent: String,
    pub policy: String,
}

/// `macro_contact_handshake`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Handshake {
    pub request: ContactRequest,
    pub response: Option<ContactAnswer>,
    pub welcome_message: Option<SentMessage>,
}
