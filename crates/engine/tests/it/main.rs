//! The engine's promises, tested through its public verbs and views.

#![allow(unreachable_pub, reason = "a test binary has no public face")]

mod addresses;
mod agents;
mod contacts;
mod conversations;
mod harness;
mod inbox;
mod interception;
mod mail;
mod outsiders;
mod reservations;
mod scopes;
mod search;
mod sweep;
mod tasks;
mod tokens_peers_rules;
mod turns;
