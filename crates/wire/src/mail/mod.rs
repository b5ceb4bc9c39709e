//! MAIL 1.3: messages, interswarm messages, request bodies, task owners, and the names that the reference
//! implementation reserves.
//!
//! Parsers check the published schemas field by field, and errors name the field. `null` in an optional field counts as
//! absent, because the reference implementation writes it. Output is valid by construction.

mod address;
pub mod answers;
pub mod definition;
pub mod driver;
pub mod events;
mod fields;
mod interswarm;
mod message;
mod owner;
mod requests;
pub mod subjects;
pub mod tasks;
pub mod tools;

pub use address::{AddressType, MailAddress, split};
pub use fields::FieldError;
pub use interswarm::{Interswarm, InterswarmRequest};
pub use message::{MailMessage, MailOrigin, MsgType, Payload};
pub use owner::{Owner, OwnerRole};
pub use requests::{
    DirectRequest, HealthRequest, LoadRequest, MessageRequest, RegisterRequest, ResumeFrom, TaskRef,
};

/// The protocol version.
pub const VERSION: &str = "1.3";
