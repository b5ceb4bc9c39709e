//! The engine's promises, tested through its public verbs and views.

#![allow(unreachable_pub, reason = "a test binary has no public face")]

mod busy;
mod chance;
mod child;
mod commands;
mod determinism;
mod feed;
mod filters;
mod group_commit;
mod harness;
mod mail;
mod mailslot;
mod model;
mod office;
mod poison;
mod records;
mod watched;
