//! MAIL 1.3: messages, the wrapper between swarms, request bodies, owners, and the words the reference uses.
//!
//! What comes in is checked against the published schemas, field by field, and an error names the field. `null` in an
//! optional field counts as absent, because the reference writes it so. What goes out is valid by construction.

mod address;
mod fields;
mod interswarm;
mod message;
mod owner;
mod requests;
pub mod tools;
pub mod words;

pub use address::{AddressType, MailAddress, split};
pub use fields::FieldError;
pub use interswarm::Interswarm;
pub use message::{MailMessage, MsgType, Payload};
pub use owner::{Owner, OwnerRole};
pub use requests::{DirectRequest, LoadRequest, MessageRequest, RegisterRequest, ResumeFrom};

/// The version of the protocol.
pub const VERSION: &str = "1.3";
