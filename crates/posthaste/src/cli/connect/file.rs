//! The client's file: read, kept beside, and replaced.

use std::fs;
use std::path::{Path, PathBuf};

use posthaste_engine::stamp;
use posthaste_wire::time::to_rfc3339;

use super::super::exit::{Exit, Failure};
use super::entry::Outdated;

/// What stands in a copy of a file in place of a token.
const REMOVED: &str = "(token removed by posthaste)";

pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Exit::Failed, format!("{}: {error}", path.display()))),
    }
}

/// Keeps what was there beside, without its tokens, then writes. A file that says the same already is left alone.
pub(super) fn write(
    path: &Path,
    before: Option<&str>,
    text: &str,
    outdated: &[Outdated],
) -> Result<Option<PathBuf>, Failure> {
    if before == Some(text) {
        return Ok(None);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let backup = match before {
        None => None,
        Some(before) => {
            let stamp = to_rfc3339(stamp::now()).replace(['-', ':', '.'], "");
            let backup = folder.join(format!("{name}.{stamp}.bak"));
            let mut kept = before.to_owned();
            for old in outdated.iter().filter(|old| !old.token.is_empty()) {
                kept = kept.replace(&old.token, REMOVED);
            }
            private(&backup, &kept)?;
            Some(backup)
        }
    };
    let fresh = folder.join(format!("{name}.posthaste-new"));
    private(&fresh, text)?;
    fs::rename(&fresh, path)?;
    Ok(backup)
}

/// Other entries of the file may hold secrets, so it is its owner's only.
fn private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()
}
