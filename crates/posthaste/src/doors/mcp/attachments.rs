//! Files that messages carry: a copy in the data directory under its hash, and its name, size and hash in the message.
//! Their bytes come in the call. Paths are read only in work trees that the operator named.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use posthaste_engine::nouns::{Caller, RealmName};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::args::Args;
use super::call::Call;
use super::errors::Problem;
use super::to_wire;
use crate::projects::Project;
use crate::safe_open::{self, Folder};

/// Bytes of one file.
pub(super) const MOST_BYTES: u64 = 10 << 20;
/// Files in one message.
pub(super) const MOST_FILES: usize = 20;
/// Bytes of all files of one realm, in blocks of 4 KiB.
pub(super) const MOST_IN_REALM: u64 = 1 << 30;
const BLOCK: u64 = 4 << 10;
/// The longest name and media type, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_TYPE: usize = 127;

/// The files that a call gives for one message.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    paths: Vec<String>,
    sent: Vec<Map<String, Value>>,
}

impl Given {
    pub(super) fn of(args: &Args) -> Self {
        Self { paths: args.texts("attachment_paths"), sent: args.objects("attachments") }
    }
}

/// What the kept files of each realm take, once it was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage(Arc<Mutex<HashMap<RealmName, u64>>>);

/// A file as it came in.
struct Incoming {
    name: String,
    /// The path it was named by.
    path: Option<String>,
    media: String,
    bytes: Vec<u8>,
}

/// Copies the files that a message is to carry and says how it refers to them.
pub(super) async fn keep(call: &Call, project: &Project, given: &Given) -> Result<Vec<Value>, Problem> {
    if given.paths.is_empty() && given.sent.is_empty() {
        return Ok(Vec::new());
    }
    if given.paths.len() + given.sent.len() > MOST_FILES {
        return Err(Problem::new("TOO_MANY", format!("a message carries {MOST_FILES} files at most")));
    }
    let mut files = given.sent.iter().map(received).collect::<Result<Vec<_>, _>>()?;
    for path in &given.paths {
        files.push(from_tree(call, project, path).await?);
    }
    let store = store_of(call, project.realm());
    let (usage, realm) = (call.shared.mcp().attachments.clone(), project.realm().clone());
    let kept = tokio::task::spawn_blocking(move || {
        files.iter().map(|file| copy(&store, &usage, &realm, file)).collect::<Result<Vec<_>, _>>()
    });
    kept.await.map_err(|_| Problem::new("OFFICE_FAILED", "the server failed on an attachment"))?
}

fn refused(given: &str, why: &str) -> Problem {
    Problem::new("ATTACHMENT_REFUSED", format!("'{given}' cannot be attached: {why}"))
}

/// A file whose bytes came in the call.
fn received(given: &Map<String, Value>) -> Result<Incoming, Problem> {
    let text = |member: &str| given.get(member).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let is_plain = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !matches!(name, "." | "..")
        && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'));
    if !is_plain {
        return Err(refused(name, "'name' must be a plain file name of 1 to 255 bytes"));
    }
    let Some(data) = text("data") else { return Err(refused(name, "'data' must hold its bytes in base64")) };
    if data.len() as u64 / 4 * 3 > MOST_BYTES + 3 {
        return Err(refused(name, &format!("it is larger than {MOST_BYTES} bytes")));
    }
    let data: String = data.split_ascii_whitespace().collect();
    let bytes = STANDARD
        .decode(&data)
        .or_else(|_| STANDARD_NO_PAD.decode(&data))
        .map_err(|_| refused(name, "'data' is not base64"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused(name, &format!("it is larger than {MOST_BYTES} bytes")));
    }
    let media = match text("media_type") {
        None => media_type(name).to_owned(),
        Some(media) if is_media_type(media) => media.to_owned(),
        Some(_) => return Err(refused(name, "'media_type' must be like image/png")),
    };
    Ok(Incoming { name: name.to_owned(), path: None, media, bytes })
}

fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.len() <= LONGEST_TYPE && text.split_once('/').is_some_and(|(kind, sort)| token(kind) && token(sort))
}

/// A file of a work tree that the operator named, for callers of the default realm on this machine.
async fn from_tree(call: &Call, project: &Project, path: &str) -> Result<Incoming, Problem> {
    if !call.visitor.local || !(call.at_default() || call.runs_office()) {
        let why = "attachment_paths works for agents of the default realm on the server's machine; send the bytes \
                   in 'attachments' instead";
        return Err(refused(path, why));
    }
    let (base, given) = (project.human_key.clone(), path.to_owned());
    let read = call.shared.look_in_trees(move |trees| trees.read(&base, &given, MOST_BYTES)).await;
    let bytes = match read {
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return Err(refused(path, &error.to_string())),
        None => return Err(refused(path, &crate::projects::TreeError::NotNamed.to_string())),
    };
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    Ok(Incoming { media: media_type(&name).to_owned(), name, path: Some(path.to_owned()), bytes })
}

/// The bytes of a file that a message refers to, for callers that may read the message.
pub(super) async fn fetch(
    call: &Call,
    project: &Project,
    viewers: Vec<Caller>,
    message: i64,
    hash: &str,
) -> Result<(String, String), Problem> {
    let missing = || Problem::new("ATTACHMENT_NOT_FOUND", "there is no such attachment in this agent's mail");
    let wanted = hash.to_ascii_lowercase();
    // What a message says of its files may come through any door, so it names no file but one of the store.
    if wanted.len() != 64 || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(missing());
    }
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
    let read = tokio::task::spawn_blocking(move || safe_open::read(&path, MOST_BYTES)).await;
    let bytes = read.map_err(|_| missing())?.map_err(|_| missing())?;
    Ok((media, STANDARD.encode(bytes)))
}

fn store_of(call: &Call, realm: &RealmName) -> PathBuf {
    // The databases lie in a folder of the data directory, beside which the attachments lie.
    let books = call.shared.office().path_of(realm);
    let data = books.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    data.join("attachments").join(realm.as_str())
}

fn place(store: &Path, hash: &str) -> PathBuf {
    store.join(hash.get(..2).unwrap_or("00")).join(hash)
}

fn copy(store: &Path, usage: &Usage, realm: &RealmName, file: &Incoming) -> Result<Value, Problem> {
    let failed = |error: &dyn std::fmt::Display| refused(&file.name, &error.to_string());
    let size = file.bytes.len() as u64;
    let hash: String = Sha256::digest(&file.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = place(store, &hash);
    let folder = kept.parent().unwrap_or(store);
    crate::serve::make_private_directory(folder).map_err(|error| failed(&error))?;
    let folder = Folder::at(folder).map_err(|error| failed(&error))?;
    let name = std::ffi::OsStr::new(&hash);
    if !folder.has(name) {
        let blocks = size.next_multiple_of(BLOCK).max(BLOCK);
        let mut used = usage.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.entry(realm.clone()).or_insert_with(|| disk_bytes(store));
        if *used + blocks > MOST_IN_REALM {
            let why = format!("the project's attachments take {MOST_IN_REALM} bytes already");
            return Err(refused(&file.name, &why));
        }
        // Written beside, synced and renamed: a message must not refer to half a file.
        folder.replace(name, &file.bytes, 0o600).map_err(|error| failed(&error))?;
        *used += blocks;
    }
    let mut value = json!({
        "type": "file",
        "name": file.name,
        "size": size,
        "sha256": hash,
        "media_type": file.media,
    });
    if let Some(path) = &file.path {
        value["path"] = path.as_str().into();
    }
    Ok(value)
}

fn disk_bytes(store: &Path) -> u64 {
    let Ok(store) = Folder::at(store) else { return 0 };
    let folders = store.names(usize::MAX).unwrap_or_default();
    folders.iter().filter_map(|name| store.enter(name).ok()).map(|folder| folder.disk_bytes()).sum()
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
