//! What operators see of a running office.

pub mod health;
pub(crate) mod inspector;
pub mod logs;
pub mod metrics;
