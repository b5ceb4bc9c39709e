//! The tools, one file for each family. Each is a line of the table and a function.

pub(super) mod contacts;
pub(super) mod guard;
pub(super) mod identity;
pub(super) mod inbox;
pub(super) mod macros;
pub(super) mod mail;
pub(super) mod reservations;
pub(super) mod talk;
pub(super) mod tasks;
pub(super) mod threads;
pub(super) mod wait;
