//! Files that messages carry: their bytes in the data directory under their hash, and their name, size, hash and type in
//! the message. The same rules for every door: what may be attached, how much of it a realm keeps, and which callers may
//! read it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use posthaste_engine::nouns::{Caller, Json, Message, MessageId, RealmName, Seq};
use posthaste_engine::{Engine, EngineError};
use posthaste_wire::control::{FileData, FileLink, StoredFile};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::safe_open::{self, Folder};

/// Bytes of one file.
pub const MOST_BYTES: u64 = 10 << 20;
/// Files in one message.
pub const MAX_FILES: usize = 20;
/// Bytes of all files of one realm, in blocks of 4 KiB.
const MOST_IN_REALM: u64 = 1 << 30;
/// Bytes of all files that come in one request: in base64 they must fit the longest request that is read.
pub const MAX_REQUEST_BYTES: u64 = 1_500_000;
const BLOCK: u64 = 4 << 10;
/// The longest name and media type, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_TYPE: usize = 127;
/// Where files are downloaded: `/{message}/{sha256}` follows.
pub const DOWNLOAD_PATH: &str = "/x-posthaste/attachments";
/// The member of a message's metadata that lists its files.
const MEMBER: &str = "attachments";

/// A file as a message names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    pub name: String,
    pub size: u64,
    pub sha256: String,
    #[serde(default = "any_type")]
    pub media_type: String,
}

/// A file as it comes in.
#[derive(Debug)]
pub struct Incoming {
    pub name: String,
    /// The path it was named by.
    pub path: Option<String>,
    pub media: String,
    pub bytes: Vec<u8>,
}

/// Why a file was not taken or is not handed out.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("a message carries {MAX_FILES} files at most")]
    TooMany,
    #[error("'{name}' cannot be attached: {why}")]
    Refused { name: String, why: String },
    #[error("there is no such attachment in this agent's mail")]
    Missing,
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the server failed on an attachment")]
    Failed,
}

impl AttachError {
    pub fn refused(name: &str, why: impl std::fmt::Display) -> Self {
        Self::Refused { name: name.to_owned(), why: why.to_string() }
    }
}

impl Incoming {
    /// A file whose bytes came in base64, from the members of a JSON object: `{name, data, media_type?}`.
    pub fn received(given: &Map<String, Value>) -> Result<Self, AttachError> {
        Self::decode(&FileData::from_members(given.clone()))
    }

    /// A file whose bytes came in base64.
    pub fn decode(given: &FileData) -> Result<Self, AttachError> {
        let name = given.name.as_str();
        if !is_plain(name) {
            return Err(AttachError::refused(name, "'name' must be a plain file name of 1 to 255 bytes"));
        }
        let Some(data) = &given.data else {
            return Err(AttachError::refused(name, "'data' must hold its bytes in base64"));
        };
        let too_large = || AttachError::refused(name, format!("it is larger than {MOST_BYTES} bytes"));
        if data.len() as u64 / 4 * 3 > MOST_BYTES + 3 {
            return Err(too_large());
        }
        let data: String = data.split_ascii_whitespace().collect();
        let bytes = STANDARD
            .decode(&data)
            .or_else(|_| STANDARD_NO_PAD.decode(&data))
            .map_err(|_| AttachError::refused(name, "'data' is not base64"))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(too_large());
        }
        let media = match given.media_type.as_deref() {
            None => media_type(name).to_owned(),
            Some(media) if is_media_type(media) => media.to_owned(),
            Some(_) => return Err(AttachError::refused(name, "'media_type' must be like image/png")),
        };
        Ok(Self { name: name.to_owned(), path: None, media, bytes })
    }
}

/// Bytes of each realm's files, counted on first use.
#[derive(Clone, Debug, Default)]
pub struct Usage(Arc<Mutex<HashMap<RealmName, u64>>>);

/// Stores the files of a message, and returns the entries that name them in the message.
pub async fn keep(usage: &Usage, engine: &Engine, files: Vec<Incoming>) -> Result<Vec<Value>, AttachError> {
    if files.len() > MAX_FILES {
        return Err(AttachError::TooMany);
    }
    let (store, usage, realm) = (store_of(engine), usage.clone(), engine.realm().clone());
    let kept = tokio::task::spawn_blocking(move || {
        files.iter().map(|file| store_file(&store, &usage, &realm, file)).collect()
    });
    kept.await.map_err(|_| AttachError::Failed)?
}

/// The metadata of a message that carries these files.
pub fn into_meta(kept: Vec<Value>) -> Option<Json> {
    if kept.is_empty() {
        return None;
    }
    let meta = Map::from_iter([(MEMBER.to_owned(), Value::Array(kept))]);
    Some(Json::from_value(&Value::Object(meta)))
}

/// The files that a message carries; those with an invalid entry are left out.
pub fn of(message: &Message) -> Vec<Attached> {
    message.meta.as_ref().map(|meta| of_meta(meta.as_str())).unwrap_or_default()
}

/// The files that a message's metadata names.
pub fn of_meta(meta: &str) -> Vec<Attached> {
    // Most messages carry none, and their metadata need not be parsed to know it.
    if !meta.contains("\"attachments\"") {
        return Vec::new();
    }
    let mut meta: Value = serde_json::from_str(meta).unwrap_or_default();
    let Some(Value::Array(files)) = meta.get_mut(MEMBER).map(Value::take) else { return Vec::new() };
    let files = files.into_iter().take(MAX_FILES);
    let files = files.filter_map(|file| serde_json::from_value::<Attached>(file).ok());
    files
        .filter(|file| is_hash(&file.sha256) && is_plain(&file.name) && is_media_type(&file.media_type))
        .collect()
}

/// Which message carries a file.
#[derive(Clone, Copy, Debug)]
pub enum Carrier {
    Id(MessageId),
    Seq(Seq),
}

/// A file that a message carries, for callers that may read the message: one of them suffices.
pub async fn fetch(
    engine: &Engine,
    viewers: Vec<Caller>,
    carrier: Carrier,
    hash: &str,
) -> Result<(Attached, Vec<u8>), AttachError> {
    let wanted = hash.to_ascii_lowercase();
    // The entry may have come through any door, so only the hash leads to a file, and only to one of the store.
    if !is_hash(&wanted) {
        return Err(AttachError::Missing);
    }
    let asked = wanted.clone();
    let file = engine
        .read(move |view| {
            let found = viewers.iter().find_map(|viewer| match carrier {
                Carrier::Id(id) => view.message(viewer, id).ok(),
                Carrier::Seq(seq) => view.message_at(viewer, seq).ok(),
            });
            Ok(found.and_then(|found| of(&found.message).into_iter().find(|file| file.sha256 == asked)))
        })
        .await?
        .ok_or(AttachError::Missing)?;
    let path = place(&store_of(engine), &wanted);
    let read = tokio::task::spawn_blocking(move || safe_open::read(&path, MOST_BYTES)).await;
    let bytes = read.map_err(|_| AttachError::Failed)?.map_err(|_| AttachError::Missing)?;
    Ok((file, bytes))
}

/// The files of a message, with the paths below the address of the server (below `/r/REALM` of a realm that is not the
/// default one) where a party of the message downloads them with its token.
pub fn links(message: &Message) -> Vec<FileLink> {
    links_below(message, &format!("{DOWNLOAD_PATH}/{}", message.id))
}

/// The same for a door that has download paths of its own.
pub fn links_below(message: &Message, path: &str) -> Vec<FileLink> {
    let link = |file: Attached| FileLink {
        url: format!("{path}/{}", file.sha256),
        name: file.name,
        size: file.size,
        media_type: file.media_type,
        sha256: file.sha256,
    };
    of(message).into_iter().map(link).collect()
}

/// [`links`] as JSON values.
pub fn shown(message: &Message) -> Vec<Value> {
    links(message).iter().map(to_value).collect()
}

/// [`links_below`] as JSON values.
pub fn shown_below(message: &Message, path: &str) -> Vec<Value> {
    links_below(message, path).iter().map(to_value).collect()
}

/// Plain data with text keys: writing it as JSON cannot fail.
fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The files of a message as text, one line for each.
pub fn described(message: &Message) -> Vec<String> {
    let line = |file: Attached| {
        let Attached { name, size, sha256, media_type } = file;
        format!("{name} ({media_type}, {size} bytes): {DOWNLOAD_PATH}/{}/{sha256}", message.id)
    };
    of(message).into_iter().map(line).collect()
}

/// Where a data directory keeps the files of a realm.
pub fn folder(data: &Path, realm: &RealmName) -> PathBuf {
    data.join("attachments").join(realm.as_str())
}

/// The path of a file in a realm's folder.
pub fn place(store: &Path, hash: &str) -> PathBuf {
    store.join(hash.get(..2).unwrap_or("00")).join(hash)
}

/// Whether a text is a SHA-256 in lower-case hex.
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a name is that of a file, without a path.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !matches!(name, "." | "..")
        && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'))
}

fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.len() <= LONGEST_TYPE && text.split_once('/').is_some_and(|(kind, sort)| token(kind) && token(sort))
}

fn any_type() -> String {
    "application/octet-stream".to_owned()
}

fn store_of(engine: &Engine) -> PathBuf {
    // The databases lie in a folder of the data directory, beside which the attachments lie.
    let data = engine.path().parent().and_then(Path::parent).unwrap_or(Path::new("."));
    folder(data, engine.realm())
}

fn store_file(store: &Path, usage: &Usage, realm: &RealmName, file: &Incoming) -> Result<Value, AttachError> {
    let failed = |error: &dyn std::fmt::Display| AttachError::refused(&file.name, error);
    let size = file.bytes.len() as u64;
    let hash: String = Sha256::digest(&file.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = place(store, &hash);
    let folder = kept.parent().unwrap_or(store);
    crate::safe_open::make_private_directory(folder).map_err(|error| failed(&error))?;
    let folder = Folder::at(folder).map_err(|error| failed(&error))?;
    let name = std::ffi::OsStr::new(&hash);
    if !folder.has(name) {
        let blocks = size.next_multiple_of(BLOCK).max(BLOCK);
        let mut used = usage.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.entry(realm.clone()).or_insert_with(|| disk_bytes(store));
        if *used + blocks > MOST_IN_REALM {
            let why = format!("the project's attachments take {MOST_IN_REALM} bytes already");
            return Err(AttachError::refused(&file.name, why));
        }
        // Written to another name, synced and renamed: a message must not refer to half a file.
        folder.replace(name, &file.bytes, 0o600).map_err(|error| failed(&error))?;
        *used += blocks;
    }
    Ok(to_value(&StoredFile {
        kind: "file".to_owned(),
        name: file.name.clone(),
        size,
        sha256: hash,
        media_type: file.media.clone(),
        path: file.path.clone(),
    }))
}

fn disk_bytes(store: &Path) -> u64 {
    let Ok(store) = Folder::at(store) else { return 0 };
    let folders = store.names(usize::MAX).unwrap_or_default();
    folders.iter().filter_map(|name| store.enter(name).ok()).map(|folder| folder.disk_bytes()).sum()
}

/// The type that a file's name suggests.
pub fn media_type(name: &str) -> &'static str {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_valid_entries_of_a_message_are_its_files() {
        let hash = "ab".repeat(32);
        let file = |name: &str, hash: &str| json!({ "name": name, "size": 3, "sha256": hash });
        let names = |files: Value| -> Vec<String> {
            let meta = json!({ "attachments": files }).to_string();
            of_meta(&meta).into_iter().map(|file| file.name).collect()
        };
        assert_eq!(names(json!([file("a.txt", &hash)])), ["a.txt"]);
        for bad in [file("../a", &hash), file("a", "../../secret"), file("a", &hash.to_uppercase()), json!(7)]
        {
            assert!(names(json!([bad])).is_empty(), "{bad}");
        }
        assert!(names(json!("none")).is_empty());
        assert!(of_meta("{\"attachments\"").is_empty());
        assert_eq!(names(json!(vec![file("a", &hash); 50])).len(), MAX_FILES);
    }
}
