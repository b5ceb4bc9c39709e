//! The `posthaste` program that is measured: named by `--bin`, or the one beside this program.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use posthaste::cli::exit::{Exit, Failure};

static POSTHASTE: OnceLock<PathBuf> = OnceLock::new();

/// Finds the program once, before anything starts it.
pub(crate) fn find(named: Option<&Path>) -> Result<(), Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name(format!("posthaste{}", std::env::consts::EXE_SUFFIX)),
    };
    if !path.is_file() {
        let text = format!("there is no program at {}: build it, or name it with --bin", path.display());
        return Err(Failure::new(Exit::Usage, text));
    }
    POSTHASTE.get_or_init(|| path);
    Ok(())
}

/// The program to start.
pub(crate) fn posthaste() -> &'static Path {
    POSTHASTE.get().map_or(Path::new("posthaste"), PathBuf::as_path)
}
