//! What operators see of a running office.

pub mod health;
pub mod inspector;

pub mod metrics;
