//! What every door is given: [`Host`] with the engine, authentication, limits, health and the stop signal; the listener with TLS
//! and middleware, the egress policy, projects, metrics, and the rules that several doors share.

pub mod acks;
pub mod address;
pub mod attachments;
pub mod backup;
pub mod caller;
pub mod door_facts;
pub mod download;
mod host;
pub mod http;
pub mod jwt;
pub mod keys;
pub mod no_oauth;
pub mod observe;
pub mod operators;
pub mod plain_text;
pub mod projects;
pub mod safe_open;
pub mod services;
pub mod signals;
pub mod token_watch;
pub mod units;

pub use host::{Features, Host, Offer, WeakHost};
