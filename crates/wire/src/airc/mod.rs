//! AIRC: handles and targets, signed envelopes, payloads of the context extension, scopes, proofs of identity, and every
//! request and response of a registry.
//!
//! This module checks form only. Whether a message may be sent, and to which recipients, is decided by the server.

mod accepted;
mod consent;
mod discovery;
mod envelope;
mod error;
mod fields;
mod handle;
mod identity;
mod inbox;
mod outgoing;
mod payload;
mod presence;
mod proof;
mod safe_mode;
mod scope;

pub use accepted::{Accepted, AcceptedMessage, ReservationConflict, ReservationState, Warning};
pub use consent::{ConsentAnswer, ConsentRequest, ConsentState, PendingConsent, PendingConsents};
pub use discovery::{
    AuthRules, Discovery, Endpoints, Extension, Federation, Limits, RateLimits, SigningRules, VersionPaths,
    Versions,
};
pub use envelope::{Envelope, EnvelopeError};
pub use error::{ErrorBody, ErrorDetails};
pub use fields::{Fields, FieldsError};
pub use handle::{Handle, HandleError, RESERVED_HANDLES, Target};
pub use identity::{
    AgentsAnswer, CapabilitiesAnswer, ChallengeAnswer, ChallengeRequest, Identity, IdentityAnswer,
    ListedAgent, PreviousKey, RefreshAnswer, RefreshRequest, RegisterRequest, RevokeAnswer, RotateAnswer,
    Session,
};
pub use inbox::{DeletedAnswer, Delivery, MessagePage, ReadAnswer, UnsignedEnvelope};
pub use outgoing::{
    AckPayload, ContentPayload, EnvelopeDraft, MailboxPayload, ReservationPayload, SignedEnvelope,
};
pub use payload::{
    Ack, Conflict, Mailbox, Payload, PayloadError, Reservation, ReservationStatus, Thread, ThreadStatus,
    check_path,
};
pub use presence::{
    HeartbeatAnswer, HeartbeatRequest, LeaveAnswer, Offline, PresenceCounts, PresenceEntry, PresenceList,
    PresenceOf,
};
pub use proof::{RevokeProof, RotateProof, ascii_canonical, verify_body, verify_challenge};
pub use safe_mode::{FlatExchange, FlatInbox, FlatMessage, FlatThread, Health, UnsignedMembers};
pub use scope::{Scope, normal_remote};

/// The advertised protocol version.
pub const PROTOCOL_VERSION: &str = "0.2.0";
/// Maximum difference between a timestamp and the receiver's clock.
pub const CLOCK_WINDOW_MS: i64 = 300_000;
/// A reservation that arrives this long after it was issued is stale.
pub const STALE_AFTER_MS: i64 = 300_000;
/// Maximum size of a message.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Payload types that this program knows.
pub const CAPABILITIES: [&str; 6] = [
    "text",
    "context:thread",
    "context:mailbox",
    "context:mailbox_ack",
    "context:file_reservation",
    "context:reservation_conflict",
];
