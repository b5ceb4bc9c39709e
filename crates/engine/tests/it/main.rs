//! The engine's promises, tested through its public verbs and views.

#![allow(unreachable_pub, reason = "a test binary has no public face")]

mod addresses;
mod agents;
mod busy;
mod chance;
mod child;
mod clock;
mod commands;
mod contacts;
mod conversations;
mod damage;
mod determinism;
mod feed;
mod filters;
mod fold;
mod glance;
mod group_commit;
mod harness;
mod inbox;
mod interception;
mod leases;
mod ledger;
mod mail;
mod mailslot;
mod model;
mod office;
mod outsiders;
mod poison;
mod quota;
mod records;
mod relay;
mod reservations;
mod runs;
mod scopes;
mod sealed;
mod search;
mod shares;
mod sweep;
mod tasks;
mod tokens_peers_rules;
mod turns;
mod watched;
mod work;
