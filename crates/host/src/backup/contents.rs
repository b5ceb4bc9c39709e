//! What belongs to a backup besides the databases: where it lies in the data directory, and the names it has in the archive.

use std::ffi::OsStr;
use std::path::Path;

use posthaste_engine::nouns::RealmName;

use super::BackupError;
use crate::attachments;
use crate::keys::AdminKey;
use crate::safe_open::{self, Folder};

/// The longest file of keys.
pub(super) const MOST_KEY_BYTES: u64 = 1 << 20;
/// Files of keys in a data directory.
const MOST_KEYS: usize = 10_000;
/// Folders of keys: tokens that `connect` keeps for clients, and the keys of `posthaste airc`.
const KEY_FOLDERS: [&str; 2] = ["clients", "airc"];
/// Tokens of other swarms, one file for each realm.
const SWARM_TOKENS: &str = "swarm-tokens-";

/// A file in an archive, by its name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Database(RealmName),
    Attachment(RealmName, String),
    /// A key, by its path in the data directory.
    Key(String),
}

impl Member {
    pub fn name(&self) -> String {
        match self {
            Self::Database(realm) => format!("realms/{realm}.db"),
            Self::Attachment(realm, hash) => format!("attachments/{realm}/{}/{hash}", &hash[..2]),
            Self::Key(path) => format!("keys/{path}"),
        }
    }

    /// What a name means. Names that this program does not write mean nothing, so that none leads out of a directory.
    pub fn parse(name: &str) -> Option<Self> {
        let realm = |text: &str| RealmName::new(text).ok();
        let parts: Vec<&str> = name.split('/').collect();
        match parts[..] {
            ["realms", file] => Some(Self::Database(realm(file.strip_suffix(".db")?)?)),
            ["attachments", name, front, hash] if attachments::is_hash(hash) && hash.starts_with(front) => {
                (front.len() == 2).then_some(Self::Attachment(realm(name)?, hash.to_owned()))
            }
            ["keys", ref path @ ..] if is_key_path(path) => Some(Self::Key(path.join("/"))),
            _ => None,
        }
    }
}

/// Whether a path in the data directory is that of a key.
fn is_key_path(parts: &[&str]) -> bool {
    let plain = |part: &&str| {
        !part.is_empty()
            && !matches!(*part, "." | "..")
            && !part.contains(['/', '\\'])
            && !part.contains('\0')
    };
    if !parts.iter().all(plain) {
        return false;
    }
    match parts {
        [file] => *file == "admin.token" || (file.starts_with(SWARM_TOKENS) && file.ends_with(".json")),
        ["clients", _] | ["airc", _, _] => true,
        _ => false,
    }
}

/// The keys of a data directory, by their paths in it.
pub fn key_files(data: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let names = |folder: &Folder| folder.names(MOST_KEYS).unwrap_or_default();
    let Ok(top) = Folder::at(data) else { return found };
    let mut note = |parts: &[&OsStr]| {
        let parts: Option<Vec<&str>> = parts.iter().map(|part| part.to_str()).collect();
        if let Some(parts) = parts.filter(|parts| is_key_path(parts) && found.len() < MOST_KEYS)
            && data.join(parts.join("/")).is_file()
        {
            found.push(parts.join("/"));
        }
    };
    for name in names(&top) {
        note(&[&name]);
    }
    for folder in KEY_FOLDERS {
        let Ok(open) = top.enter(OsStr::new(folder)) else { continue };
        for name in names(&open) {
            note(&[OsStr::new(folder), &name]);
            for inner in open.enter(&name).map(|inner| names(&inner)).unwrap_or_default() {
                note(&[OsStr::new(folder), &name, &inner]);
            }
        }
    }
    found.sort();
    found
}

/// The bytes of a key.
pub(super) fn read_key(data: &Path, path: &str) -> Result<Vec<u8>, safe_open::OpenError> {
    safe_open::read(&data.join(path), MOST_KEY_BYTES)
}

/// A name for the admin key of a data directory that tells nothing of it.
pub fn admin_key_name(data: &Path) -> Option<String> {
    let key = AdminKey::look(data).ok()??;
    Some(key.seal("backup", "the name of this key").get(..16)?.to_owned())
}

/// Visits the files that messages of a realm carry, by the hashes that name them.
pub fn visit_attachments(
    data: &Path,
    realm: &RealmName,
    visit: &mut dyn FnMut(&Folder, &str) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let Ok(store) = Folder::at(&attachments::folder(data, realm)) else { return Ok(()) };
    for front in names(&store) {
        let Ok(inner) = store.enter(OsStr::new(&front)) else { continue };
        for hash in names(&inner).iter().filter(|hash| attachments::is_hash(hash) && hash[..2] == front) {
            visit(&inner, hash)?;
        }
    }
    Ok(())
}

fn names(folder: &Folder) -> Vec<String> {
    let names = folder.names(usize::MAX).unwrap_or_default();
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_an_archive_lead_nowhere_else() {
        let hash = "ab".repeat(32);
        let main = RealmName::new("main").unwrap();
        for member in [
            Member::Database(main.clone()),
            Member::Attachment(main, hash.clone()),
            Member::Key("admin.token".to_owned()),
            Member::Key("clients/a.token".to_owned()),
            Member::Key("airc/ann/key".to_owned()),
            Member::Key("swarm-tokens-main.json".to_owned()),
        ] {
            assert_eq!(Member::parse(&member.name()), Some(member));
        }
        for bad in [
            "realms/../x.db".to_owned(),
            "realms/main.db/x".to_owned(),
            "/etc/passwd".to_owned(),
            "keys/../admin.token".to_owned(),
            "keys/clients/..".to_owned(),
            "keys/posthaste.toml".to_owned(),
            "keys/airc/ann/x/y".to_owned(),
            format!("attachments/main/cd/{hash}"),
            format!("attachments/../ab/{hash}"),
            "attachments/main/ab/short".to_owned(),
        ] {
            assert_eq!(Member::parse(&bad), None, "{bad}");
        }
    }
}
