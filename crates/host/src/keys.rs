//! Secrets: the admin key in the data directory, and making, hashing and comparing tokens.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use posthaste_engine::stamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A new bearer token, which its bearer sees once.
pub fn new_token() -> String {
    format!("ph_{}", stamp::secret())
}

/// The hash of a token, which the database stores. Tokens are long and random, so a plain hash cannot be guessed back.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A name for a token that reveals nothing of it, as a key for counters.
pub fn short_name(token: &str) -> String {
    STANDARD_NO_PAD.encode(&hash(token)[..12])
}

/// The admin key of a data directory, which opens every realm.
#[derive(Clone)]
pub struct AdminKey {
    hash: [u8; 32],
    /// The key of seals, derived from the admin key under a label, so that the hash of the admin key, which is compared and
    /// looked up in many places, reveals nothing about seals.
    sealing: [u8; 32],
}

const SEALING: &[u8] = b"posthaste sealing key 1";

impl AdminKey {
    /// Its path in a data directory.
    pub fn path(data: &Path) -> PathBuf {
        data.join("admin.token")
    }

    /// Reads the key, or makes one that only the owner of the directory can read.
    pub fn open(data: &Path) -> io::Result<Self> {
        let path = Self::path(data);
        match Self::look(data)? {
            Some(key) => Ok(key),
            None => Self::of(&Self::make(&path)?).ok_or_else(|| unusable(&path, "the key cannot be used")),
        }
    }

    /// Reads the key if there is one. Errors name the file and say what to do.
    pub fn look(data: &Path) -> io::Result<Option<Self>> {
        let usable = |text: String| {
            Self::of(&text).ok_or_else(|| unusable(&Self::path(data), "the key cannot be used"))
        };
        Self::text(data)?.map(usable).transpose()
    }

    /// The content of the file, if there is one.
    fn text(data: &Path) -> io::Result<Option<String>> {
        let path = Self::path(data);
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
            Ok(_) => Err(unusable(
                &path,
                "the file is empty; put the key back from a backup made with --with-keys, or remove the file to have \
                 a new key made by `posthaste serve` (registration tokens of agents change with it)",
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }

    fn of(token: &str) -> Option<Self> {
        Some(Self { hash: hash(token), sealing: mac(token.as_bytes(), &[SEALING])? })
    }

    /// The key itself, for commands on the same machine. An error names the file.
    pub fn read(data: &Path) -> io::Result<String> {
        Self::text(data)?.ok_or_else(|| {
            let text = format!("{}: there is no such file", Self::path(data).display());
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }

    /// Whether this is the key. Takes the same time for every wrong one.
    pub fn fits(&self, token: &str) -> bool {
        hash(token).ct_eq(&self.hash).into()
    }

    /// Whether this is the hash of the key.
    pub fn has_hash(&self, hash: &[u8; 32]) -> bool {
        hash.ct_eq(&self.hash).into()
    }

    /// Seals a text, which only a server with this key can do. The purpose is sealed with it, so that
    /// a seal made for one purpose is worthless for another.
    pub fn seal(&self, purpose: &str, text: &str) -> String {
        let sealed = mac(&self.sealing, &[purpose.as_bytes(), &[0], text.as_bytes()]);
        sealed.map(|seal| hex(&seal)).unwrap_or_default()
    }

    /// Whether a seal is valid. Takes the same time for every wrong one.
    pub fn sealed(&self, purpose: &str, text: &str, seal: &str) -> bool {
        let right = self.seal(purpose, text);
        !right.is_empty() && right.as_bytes().ct_eq(seal.as_bytes()).into()
    }

    /// A secret that is derived from these words: always the same, and not stored.
    pub fn derive(&self, words: &[&str]) -> String {
        // Lengths first, so that different lists of words never give the same bytes.
        let text: String = words.iter().map(|word| format!("{}:{word}", word.len())).collect();
        self.seal("derived secret", &text)
    }

    fn make(path: &Path) -> io::Result<String> {
        let token = new_token();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        writeln!(file, "{token}")?;
        file.sync_all()?;
        Ok(token)
    }
}

/// HMAC-SHA256 over the parts. A key of any length is accepted, so there is always an answer.
fn mac(key: &[u8], parts: &[&[u8]]) -> Option<[u8; 32]> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).ok()?;
    for part in parts {
        mac.update(part);
    }
    Some(mac.finalize().into_bytes().into())
}

fn unusable(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{}: {why}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seals_are_not_made_with_the_hash_of_the_key() {
        let key = AdminKey::of("ph_secret").unwrap();
        let seal = key.seal("a purpose", "a text");
        assert!(key.sealed("a purpose", "a text", &seal));
        assert!(!key.sealed("another purpose", "a text", &seal));
        let parts: [&[u8]; 3] = [b"a purpose", &[0], b"a text"];
        let hash = hash("ph_secret");
        for guess in [&hash[..], hex(&hash).as_bytes(), b"ph_secret"] {
            assert_ne!(hex(&mac(guess, &parts).unwrap()), seal);
        }
        assert_ne!(key.sealing, hash);
    }

    #[test]
    fn the_key_is_made_once_and_only_its_owner_can_read_it() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(AdminKey::read(data.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
        let first = AdminKey::open(data.path()).unwrap();
        let token = AdminKey::read(data.path()).unwrap();
        assert!(first.fits(&token));
        assert!(!first.fits("ph_something_else"));
        assert!(AdminKey::open(data.path()).unwrap().fits(&token));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(AdminKey::path(data.path())).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    // F36: which file is empty is said, and by every command.
    #[test]
    fn an_empty_key_is_named_by_its_path() {
        let data = tempfile::tempdir().unwrap();
        fs::write(AdminKey::path(data.path()), "\n").unwrap();
        for error in [AdminKey::open(data.path()).unwrap_err(), AdminKey::read(data.path()).unwrap_err()] {
            assert!(error.to_string().contains("admin.token: the file is empty"), "{error}");
        }
    }
}
