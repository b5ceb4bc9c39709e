//! What operators see of a running office.

pub mod health;
pub mod logs;
pub mod metrics;
