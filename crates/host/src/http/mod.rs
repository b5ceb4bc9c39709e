//! What every door over HTTP shares: the listener, TLS and the checks before a request is anyone's.

mod activity;
pub mod bind;
mod bound;
pub mod dial;
pub mod errors;
pub mod gate;
pub mod guard;
pub mod layers;
pub mod listen;
pub mod local;
pub mod outgoing;
pub mod rate;
pub mod reach;
mod socket;
pub mod tls;
