//! The engine's promises, tested through its public verbs and views.

mod harness;
mod mail;
