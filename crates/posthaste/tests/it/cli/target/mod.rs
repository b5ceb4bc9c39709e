//! Which server a command uses, and that choosing it creates nothing.

mod connect;
mod contexts;
mod every_command;
mod guard;
mod looking;
mod status;
mod stdio;

use std::path::Path;

use crate::harness::{Posthaste, TestDir};

/// The program as a new user runs it: a home directory of its own, and no data directory anywhere.
fn at_home(home: &TestDir) -> Posthaste {
    let mut posthaste = Posthaste::new().env("HOME", home.path());
    posthaste.command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(home.path());
    posthaste
}

/// Where the data directory would be.
fn data_of(home: &TestDir) -> std::path::PathBuf {
    home.path().join(".local/share/posthaste")
}

/// The names in a directory; none if it is not there.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
