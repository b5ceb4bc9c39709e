//! Attachments: read for a message that is sent, saved from one that was received.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_wire::control::{AttachmentParams, AttachmentResult, FileData, Message};

use super::exit::{Exit, Failure};
use super::output::printable;
use super::realm_access::RealmAccess;
use posthaste_host::attachments::{MAX_FILES, MAX_REQUEST_BYTES, is_hash, is_plain};
use posthaste_host::backup::private_file;
use posthaste_host::safe_open;
use posthaste_host::units::show_bytes;

/// Names that are tried for a file before saving it fails.
const MAX_NAMES: u32 = 1_000;

/// The files that were named, as `x-posthaste/send` takes them.
pub(super) fn read_files(paths: &[PathBuf]) -> Result<Vec<FileData>, Failure> {
    let usage = |text: String| Failure::new(Exit::Usage, text);
    if paths.len() > MAX_FILES {
        return Err(usage(format!("a message carries {MAX_FILES} files at most")));
    }
    let mut left = MAX_REQUEST_BYTES;
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).filter(|name| is_plain(name));
        let name = name.ok_or_else(|| usage(format!("{}: not a name that can be sent", path.display())))?;
        // The user named it, so a link is followed to its file.
        let real = path.canonicalize().map_err(|error| usage(format!("{}: {error}", path.display())))?;
        let bytes = safe_open::read(&real, left).map_err(|error| match error {
            safe_open::OpenError::TooLarge(_) => usage(format!(
                "{}: the files of a message may take {} together",
                path.display(),
                show_bytes(MAX_REQUEST_BYTES)
            )),
            other => usage(format!("{}: {other}", path.display())),
        })?;
        left -= bytes.len() as u64;
        let data = Some(STANDARD.encode(bytes));
        files.push(FileData { name: name.to_owned(), data, media_type: None });
    }
    Ok(files)
}

/// One line for each file of a message.
pub(super) fn lines(message: &Message) -> Vec<String> {
    let files = message.attachments.iter();
    let line = files.map(|file| {
        let size = show_bytes(file.size);
        format!("{} ({size}, {})", printable(&file.name), printable(&file.media_type))
    });
    line.collect()
}

/// Fetches the files of a message into a directory. Nothing there is overwritten: a name that is taken gets a number.
pub(super) async fn save(
    realm: &RealmAccess,
    agent: Option<&str>,
    message: &Message,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let not_usable = |what: &str| Failure::new(Exit::Failed, format!("the server sent {what}"));
    let id = message.id.parse().map_err(|_| not_usable("a message whose id is not a UUID"))?;
    let mut saved = Vec::new();
    for file in message.attachments.iter().filter(|file| is_hash(&file.sha256)) {
        let params =
            AttachmentParams { agent: agent.map(str::to_owned), message: id, sha256: file.sha256.clone() };
        let found: AttachmentResult = realm.call("attachment", params).await?;
        let bytes =
            STANDARD.decode(&found.data).map_err(|_| not_usable("an attachment that is not base64"))?;
        saved.push(put(folder, &found.name, &bytes)?);
    }
    Ok(saved)
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", folder.display())))?;
    let name = safe_name(name);
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => (stem, format!(".{end}")),
        _ => (name.as_str(), String::new()),
    };
    for number in 1..=MAX_NAMES {
        let tried = match number {
            1 => folder.join(&name),
            _ => folder.join(format!("{stem}-{number}{end}")),
        };
        let mut file = match private_file(&tried) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            made => {
                made.map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", tried.display())))?
            }
        };
        file.write_all(bytes)?;
        return Ok(tried);
    }
    Err(Failure::new(Exit::Failed, format!("{}: too many files are called {name}", folder.display())))
}

/// A sender's name for a file made safe: a plain name that is not hidden and is no option of a command.
fn safe_name(name: &str) -> String {
    let plain = |c: char| if c.is_control() || "/\\:*?\"<>|".contains(c) { '_' } else { c };
    let name: String = name.chars().map(plain).collect();
    match name.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "attachment".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_files_stay_in_their_folder_and_overwrite_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = ["a.txt", "a.txt", "../../a.txt", ".bashrc", "-rf", ""]
            .iter()
            .map(|name| put(dir.path(), name, b"x").unwrap())
            .inspect(|path| assert_eq!(path.parent(), Some(dir.path())))
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a.txt", "a-2.txt", "_._.._a.txt", "_bashrc", "_rf", "attachment"]);
    }
}
