//! AIRC: handles and targets, signed envelopes, payloads of the context extension, scopes, and proofs of identity.
//!
//! This module checks form only. Whether a message may be sent, and to which recipients, is decided by the server.

mod envelope;
mod handle;
mod payload;
mod proof;
mod scope;

pub use envelope::{Envelope, EnvelopeError};
pub use handle::{Handle, HandleError, RESERVED_HANDLES, Target};
pub use payload::{
    Ack, Conflict, Mailbox, Payload, PayloadError, Reservation, ReservationStatus, Thread, ThreadStatus,
    check_path,
};
pub use proof::{RevokeProof, RotateProof, ascii_canonical, verify_body, verify_challenge};
pub use scope::{Scope, normal_remote};

/// The advertised protocol version.
pub const PROTOCOL_VERSION: &str = "0.2.0";
/// Maximum difference between a timestamp and the receiver's clock.
pub const CLOCK_WINDOW_MS: i64 = 300_000;
/// A reservation that arrives this long after it was issued is stale.
pub const STALE_AFTER_MS: i64 = 300_000;
/// Maximum size of a message.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;
