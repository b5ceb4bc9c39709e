//! What every door over HTTP shares: the listener, TLS and the checks before authentication.

pub mod bind;
mod bound;
pub mod early_reject;
pub mod egress_policy;
pub mod errors;
pub mod guard;
mod idle;
pub mod layers;
pub mod listen;
pub mod local;
pub mod outgoing;
pub mod rate;
mod socket;
pub mod tls;
pub mod tls_client;

// Earlier names of the modules.
