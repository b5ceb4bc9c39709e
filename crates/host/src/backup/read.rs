//! Reading a backup: every byte is compared with the manifest before anything is put in its place.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use posthaste_engine::nouns::RealmName;
use tar::Archive;

use super::container::{Entry, entries};
use super::contents::{MOST_KEY_BYTES, Member};
use super::write::private_file;
use super::{Attachments, BackupError, HEAD, Hash, Head, MANIFEST, Manifest, VERSION, Watch};
use crate::attachments;
use crate::safe_open::make_private_directory;

/// The longest description of an archive. A realm takes about 300 bytes in it.
const MOST_JSON: u64 = 64 << 20;

/// An archive in a directory of its own: its files have the names they have in the archive.
#[derive(Debug)]
pub struct Unpacked {
    pub manifest: Manifest,
    pub folder: PathBuf,
}

impl Unpacked {
    pub fn database(&self, realm: &RealmName) -> PathBuf {
        self.folder.join(Member::Database(realm.clone()).name())
    }

    pub fn key(&self, path: &str) -> PathBuf {
        self.folder.join(Member::Key(path.to_owned()).name())
    }
}

/// Whether a file is a plain database, as backups were before they were archives.
pub fn is_database(path: &Path) -> io::Result<bool> {
    let mut front = [0; 16];
    match File::open(path)?.read_exact(&mut front) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| &front == b"SQLite format 3\0"),
    }
}

/// What an archive says it is.
pub fn read_head(path: &Path) -> Result<Head, BackupError> {
    let file = File::open(path).map_err(BackupError::io(path.display()))?;
    let not = |why: String| BackupError::NotABackup { what: path.display().to_string(), why };
    let mut archive = Archive::new(BufReader::new(file));
    let first = entries(&mut archive).and_then(|mut all| all.next().transpose());
    let Some(mut entry) = first.map_err(|error| not(error.to_string()))?.filter(|entry| entry.name == HEAD)
    else {
        return Err(not("it is neither a database nor an archive of one".to_owned()));
    };
    let head: Head = json(&mut entry).map_err(|error| not(error.to_string()))?;
    match head.version {
        1..=VERSION => Ok(head),
        found => Err(BackupError::Newer { found }),
    }
}

/// Reads an archive to its end and checks every byte of it.
pub fn check(path: &Path, watch: Watch<'_>) -> Result<Manifest, BackupError> {
    go_through(path, &|_| None, watch)
}

/// Checks an archive and writes the members that are wanted into a new directory.
pub fn unpack(
    path: &Path,
    into: &Path,
    wanted: &dyn Fn(&Member) -> bool,
    watch: Watch<'_>,
) -> Result<Unpacked, BackupError> {
    let place = |member: &Member| wanted(member).then(|| into.join(member.name()));
    let manifest = go_through(path, &place, watch)?;
    Ok(Unpacked { manifest, folder: into.to_owned() })
}

/// What was found on the way.
#[derive(Default)]
struct Found {
    databases: HashMap<RealmName, (u64, Hash)>,
    attachments: HashMap<RealmName, Attachments>,
    keys: HashMap<String, (u64, Hash)>,
}

fn go_through(
    path: &Path,
    place: &dyn Fn(&Member) -> Option<PathBuf>,
    watch: Watch<'_>,
) -> Result<Manifest, BackupError> {
    read_head(path)?;
    let file = File::open(path).map_err(BackupError::io(path.display()))?;
    let total = file.metadata().map_err(BackupError::io(path.display()))?.len();
    let mut archive = Archive::new(BufReader::with_capacity(1 << 18, file));
    let damaged = |why: String| BackupError::Damaged { what: path.display().to_string(), why };
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it is cut off".to_owned()),
        // What the reader of archives finds wrong has no kind of its own.
        io::ErrorKind::InvalidData | io::ErrorKind::Other => damaged(error.to_string()),
        _ => BackupError::io(path.display())(error),
    };
    let (mut found, mut manifest, mut done) = (Found::default(), None, 0);
    for entry in entries(&mut archive).map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        watch.check()?;
        if entry.name == MANIFEST {
            manifest = Some(json::<Manifest>(&mut entry).map_err(broken)?);
            continue;
        }
        let member = Member::parse(&entry.name);
        // Members of later versions are passed over, their bytes with them.
        let target = member.as_ref().and_then(place);
        let mut out = target.as_deref().map(make).transpose()?;
        let hash = entry.copy(&mut |piece| {
            done += piece.len() as u64;
            (watch.step)("reading", done, total);
            watch.go_on()?;
            out.as_mut().map_or(Ok(()), |file| file.write_all(piece))
        });
        let hash = hash.map_err(broken)?;
        if let Some(file) = out {
            file.sync_all().map_err(BackupError::io(&entry.name))?;
        }
        if let Some(member) = member {
            found.note(member, &entry.name, entry.size, hash).map_err(damaged)?;
        }
    }
    let manifest = manifest.ok_or_else(|| damaged("it is cut off: its manifest is missing".to_owned()))?;
    found.compare(&manifest).map_err(damaged)?;
    Ok(manifest)
}

fn make(path: &Path) -> Result<File, BackupError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    make_private_directory(parent).and_then(|()| private_file(path)).map_err(BackupError::io(path.display()))
}

/// The JSON of an entry.
fn json<T: serde::de::DeserializeOwned>(entry: &mut Entry<'_, impl Read>) -> io::Result<T> {
    let name = entry.name.clone();
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}"));
    if entry.size > MOST_JSON {
        return Err(bad("it is too large".to_owned()));
    }
    let mut text = Vec::new();
    entry.copy(&mut |piece| {
        text.extend_from_slice(piece);
        Ok(())
    })?;
    serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))
}

impl Found {
    fn note(&mut self, member: Member, name: &str, size: u64, hash: Hash) -> Result<(), String> {
        let again = match member {
            Member::Database(realm) => self.databases.insert(realm, (size, hash)).is_some(),
            Member::Attachment(_, named) if named != hash || size > attachments::MOST_BYTES => {
                return Err(format!("{name} is not what its name says"));
            }
            Member::Attachment(realm, _) => {
                let kept = self.attachments.entry(realm).or_default();
                kept.files += 1;
                kept.bytes += size;
                false
            }
            Member::Key(_) if size > MOST_KEY_BYTES => return Err(format!("{name} is too large")),
            Member::Key(path) => self.keys.insert(path, (size, hash)).is_some(),
        };
        match again {
            true => Err(format!("{name} comes twice")),
            false => Ok(()),
        }
    }

    /// Says what is not as the manifest has it.
    fn compare(mut self, manifest: &Manifest) -> Result<(), String> {
        for realm in &manifest.realms {
            let name = &realm.name;
            if self.databases.remove(name) != Some((realm.bytes, realm.sha256.clone())) {
                return Err(format!("the database of realm {name} is missing or changed"));
            }
            let kept = self.attachments.remove(name).unwrap_or_default();
            if (kept.files, kept.bytes) != (realm.attachments.files, realm.attachments.bytes) {
                return Err(format!("attachments of realm {name} are missing or were added"));
            }
        }
        for key in &manifest.keys {
            if self.keys.remove(&key.path) != Some((key.bytes, key.sha256.clone())) {
                return Err(format!("the key {} is missing or changed", key.path));
            }
        }
        match self.databases.is_empty() && self.attachments.is_empty() && self.keys.is_empty() {
            true => Ok(()),
            false => Err("it holds files that its manifest does not name".to_owned()),
        }
    }
}
