//! What operators see of a running server.

pub mod health;
pub mod inspector;

pub mod metrics;
