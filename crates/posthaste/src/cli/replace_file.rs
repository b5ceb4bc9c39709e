//! Puts finished files in place: written under another name, synced and renamed, so that no half-written file is found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use posthaste_engine::store::forget_position;

use super::exit::{Exit, Failure};

/// Replaces a database by another. The write-ahead log of the old one is removed, so that it is not applied to the new one.
pub(super) fn replace(fresh: &Path, target: &Path) -> Result<(), Failure> {
    for tail in ["-wal", "-shm"] {
        match fs::remove_file(with_tail(target, tail)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    forget_position(target)?;
    settle(fresh, target)
}

/// Removes a half-written database if writing it failed.
pub(super) fn tidy_up<T>(copied: Result<T, Failure>, fresh: &Path) -> Result<T, Failure> {
    if copied.is_err() {
        for tail in ["", "-wal", "-shm", "-journal"] {
            drop(fs::remove_file(with_tail(fresh, tail)));
        }
    }
    copied
}

/// Renames a finished file into place and syncs it, so that it survives a power cut.
pub(super) fn settle(fresh: &Path, place: &Path) -> Result<(), Failure> {
    File::open(fresh)?.sync_all()?;
    fs::rename(fresh, place)?;
    if let Some(directory) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// The same for a place that must be empty.
pub(super) fn settle_new(fresh: &Path, place: &Path) -> Result<(), Failure> {
    File::open(fresh)?.sync_all()?;
    // A hard link is refused where a file exists.
    fs::hard_link(fresh, place).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Held, format!("{} was made meanwhile", place.display()))
        }
        _ => error.into(),
    })?;
    fs::remove_file(fresh)?;
    if let Some(directory) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

pub(super) fn refuse_to_replace(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        return Err(Failure::new(Exit::Usage, format!("{} exists; --force replaces it", path.display())));
    }
    Ok(())
}

pub(super) fn beside(path: &Path, tail: &str) -> PathBuf {
    with_tail(path, &format!(".{tail}"))
}

pub(super) fn with_tail(path: &Path, tail: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(tail);
    name.into()
}

/// Leaves a directory to its owner.
pub(super) fn close_to_others(directory: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(directory)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode & 0o7700))?;
        }
    }
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

/// Leaves a file to its owner: mail is private, in a backup too.
pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
