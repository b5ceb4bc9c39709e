//! MAIL 1.3: messages, interswarm messages, request bodies, task owners, and the names that the reference
//! implementation reserves.
//!
//! Parsers check the published schemas field by field, and errors name the field. `null` in an optional field counts as
//! absent, because the reference implementation writes it. Output is valid by construction.

mod address;
pub mod events;
mod fields;
mod interswarm;
mod message;
mod owner;
mod requests;
pub mod subjects;
pub mod tools;

pub use address::{AddressType, MailAddress, split};
pub use fields::FieldError;
pub use interswarm::Interswarm;
pub use message::{MailMessage, MsgType, Payload};
pub use owner::{Owner, OwnerRole};
pub use requests::{DirectRequest, LoadRequest, MessageRequest, RegisterRequest, ResumeFrom};

/// The protocol version.
pub const VERSION: &str = "1.3";
