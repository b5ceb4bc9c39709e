//! What operators see of a running office.

pub mod logs;
