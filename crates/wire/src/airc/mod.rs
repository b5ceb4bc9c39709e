//! AIRC: handles and targets, signed envelopes, the extension's payloads, scopes, and proofs of identity.
//!
//! Everything here is about form. Whether a message may be sent, and to whom, is decided elsewhere.

mod envelope;
mod handle;
mod payload;
mod proof;
mod scope;

pub use envelope::{Envelope, EnvelopeError};
pub use handle::{Handle, HandleError, RESERVED, Target};
pub use payload::{
    Ack, Conflict, Mailbox, Payload, PayloadError, Reservation, ReservationStatus, Thread, ThreadStatus,
    check_path,
};
pub use proof::{RevokeProof, RotateProof, ascii_canonical, verify_body, verify_challenge};
pub use scope::{Scope, normal_remote};

/// The version that is announced.
pub const PROTOCOL_VERSION: &str = "0.2.0";
/// How far a timestamp may be from the reader's clock, in milliseconds.
pub const CLOCK_WINDOW: i64 = 300_000;
/// A reservation first heard of this long after it was issued is stale, in milliseconds.
pub const STALE_AFTER: i64 = 300_000;
/// The largest message, in bytes.
pub const MAX_MESSAGE: usize = 64 << 10;
