//! Clients that drive an office from outside, and the office they drive: what measuring and soaking have in common.

mod connection;
mod peer;
mod server;
mod signer;

pub(super) use connection::Line;
pub(super) use peer::{Peer, answered};
pub(super) use server::{Process, Server};
pub(super) use signer::Signer;
