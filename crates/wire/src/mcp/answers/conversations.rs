//! Conversations and turns.

use serde::{Deserialize, Serialize};

/// `open_conversation`, `close_conversation`, and a row of `list_conversations`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ConversationRow {
    pub conversation_id: String,
    pub kind: String,
    pub status: String,
    pub subject: Option<String>,
    pub created_by: String,
    pub participants: i64,
    pub turns: i64,
    pub created_ts: String,
    pub updated_ts: String,
    /// The cursor of `list_conversations`.
    pub place: i64,
}

/// `list_turns`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TurnList {
    pub conversation_id: String,
    pub turns: Vec<TurnRow>,
    pub next: Option<String>,
}

/// `add_turn`, and a row of `list_turns`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TurnRow {
    pub turn_id: String,
    pub from: String,
    pub content_type: String,
    pub text: String,
    pub in_reply_to: Option<String>,
    pub created_ts: String,
}
