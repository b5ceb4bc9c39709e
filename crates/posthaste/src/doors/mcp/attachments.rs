//! Files by reference: a copy in the data directory under its hash, and its name, size and hash in the letter.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_engine::nouns::{Caller, RealmName};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::call::Call;
use super::errors::Problem;
use super::to_wire;
use crate::projects::Project;

/// Bytes of one file.
pub(super) const MOST_BYTES: u64 = 10 << 20;
/// Files in one letter.
pub(super) const MOST_FILES: usize = 20;
/// Bytes of all files of one realm.
pub(super) const MOST_IN_REALM: u64 = 1 << 30;

/// Copies the files that a letter is to carry and says how it refers to them.
pub(super) async fn keep(call: &Call, project: &Project, paths: &[String]) -> Result<Vec<Value>, Problem> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    if !call.visitor.local {
        let text = "attachment_paths names files on the office's machine; only agents there can attach them";
        return Err(Problem::new("ATTACHMENT_REFUSED", text));
    }
    if paths.len() > MOST_FILES {
        return Err(Problem::new("TOO_MANY", format!("a message carries {MOST_FILES} files at most")));
    }
    let bounds = Bounds {
        root: PathBuf::from(&project.human_key),
        anywhere: call.runs_office(),
        office: data_of(call, project.realm()),
    };
    let store = store_of(call, project.realm());
    let paths = paths.to_vec();
    let kept = tokio::task::spawn_blocking(move || {
        paths.iter().map(|path| copy(&store, &bounds, path)).collect::<Result<Vec<_>, _>>()
    });
    kept.await.map_err(|_| Problem::new("OFFICE_FAILED", "the office failed on an attachment"))?
}

/// The bytes of a file that a letter refers to, for those who may read the letter.
pub(super) async fn fetch(
    call: &Call,
    project: &Project,
    viewers: Vec<Caller>,
    message: i64,
    hash: &str,
) -> Result<(String, String), Problem> {
    let missing = || Problem::new("ATTACHMENT_NOT_FOUND", "there is no such attachment in this agent's mail");
    let wanted = hash.to_ascii_lowercase();
    let asked = wanted.clone();
    let media = project
        .engine
        .read(move |view| {
            let found = viewers.iter().find_map(|viewer| view.message_at(viewer, message).ok());
            Ok(found.and_then(|found| {
                let (_, attachments) = to_wire::extras(&found.message);
                let mut files = attachments.as_array().cloned().unwrap_or_default().into_iter();
                let file = files.find(|file| file["sha256"] == asked.as_str())?;
                Some(file["media_type"].as_str().unwrap_or("application/octet-stream").to_owned())
            }))
        })
        .await?
        .ok_or_else(missing)?;
    let path = place(&store_of(call, project.realm()), &wanted);
    let bytes = tokio::fs::read(path).await.map_err(|_| missing())?;
    Ok((media, STANDARD.encode(bytes)))
}

fn store_of(call: &Call, realm: &RealmName) -> PathBuf {
    data_of(call, realm).join("attachments").join(realm.as_str())
}

fn data_of(call: &Call, realm: &RealmName) -> PathBuf {
    // The books lie in a folder of the data directory, beside which the attachments lie.
    let books = call.shared.office().path_of(realm);
    books.parent().and_then(Path::parent).unwrap_or(Path::new(".")).to_owned()
}

/// Which files may be attached. The office reads them with its own rights, which may be more than the agent's.
struct Bounds {
    /// The project's folder.
    root: PathBuf,
    /// Whether files elsewhere may be attached too.
    anywhere: bool,
    /// The office's own folder, with its key and everyone's mail.
    office: PathBuf,
}

impl Bounds {
    fn check(&self, path: &Path) -> Result<(), &'static str> {
        if self.office.canonicalize().is_ok_and(|office| path.starts_with(office)) {
            return Err("it belongs to the office");
        }
        if self.anywhere {
            return Ok(());
        }
        let Ok(root) = self.root.canonicalize() else { return Err("it lies outside of the project") };
        // A project is whatever somebody says it is; one as wide as the machine or a whole home bounds nothing.
        let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
        if root.parent().is_none() || home.is_some_and(|home| home.starts_with(&root)) {
            return Err("the project is too wide to attach files from; name the folder of one repository");
        }
        if path.starts_with(root) { Ok(()) } else { Err("it lies outside of the project") }
    }
}

fn place(store: &Path, hash: &str) -> PathBuf {
    store.join(hash.get(..2).unwrap_or("00")).join(hash)
}

fn copy(store: &Path, bounds: &Bounds, given: &str) -> Result<Value, Problem> {
    let refused =
        |why: &str| Problem::new("ATTACHMENT_REFUSED", format!("'{given}' cannot be attached: {why}"));
    let path = bounds.root.join(given).canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            refused("there is no such file; give an absolute path or one relative to the project")
        }
        _ => refused(&error.to_string()),
    })?;
    bounds.check(&path).map_err(refused)?;
    let file = fs::File::open(&path).map_err(|error| refused(&error.to_string()))?;
    let about = file.metadata().map_err(|error| refused(&error.to_string()))?;
    if !about.is_file() {
        return Err(refused("it is not a file"));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, because a file may grow while it is read.
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused(&format!("it is larger than {MOST_BYTES} bytes")));
    }
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = place(store, &hash);
    if !kept.exists() {
        if size_of(store) + bytes.len() as u64 > MOST_IN_REALM {
            return Err(refused(&format!("the project's attachments take {MOST_IN_REALM} bytes already")));
        }
        write(&kept, &bytes).map_err(|error| refused(&error.to_string()))?;
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(json!({
        "type": "file",
        "name": name,
        "path": given,
        "size": bytes.len(),
        "sha256": hash,
        "media_type": media_type(&name),
    }))
}

/// Writes beside and renames, and syncs: a letter must not refer to half a file.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    crate::serve::make_private_directory(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(bytes)?;
    fresh.as_file().sync_all()?;
    fresh.persist(path).map_err(|error| error.error)?;
    fs::File::open(folder)?.sync_all()
}

fn size_of(store: &Path) -> u64 {
    let folders = fs::read_dir(store).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "md" => "text/markdown",
        "txt" | "log" | "rs" | "py" | "ts" | "js" | "toml" | "yaml" | "yml" | "diff" | "patch" => {
            "text/plain"
        }
        _ => "application/octet-stream",
    }
}
