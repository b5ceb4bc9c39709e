//! What must hold for every input, and vectors computed by others.

mod airc;
mod canonical;
mod ids;
mod mail;
mod rpc;
mod signing;
mod sse;
