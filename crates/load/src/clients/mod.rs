//! Clients of a server, and the server process under test; shared by bench and soak.

mod connection;
mod peer;
mod server;
mod signer;

pub(super) use connection::{Connection, own_request};
pub(super) use peer::{Peer, answered};
pub(super) use server::{Process, Server};
pub(super) use signer::Signer;
