//! The identities of a data directory: private keys, sessions, and known reservations.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use posthaste_engine::stamp;
use posthaste_wire::airc::Handle;
use posthaste_wire::signing::SecretKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::exit::{Exit, Failure};
use posthaste_host::safe_open::make_private_directory;

/// One identity's folder.
#[derive(Clone, Debug)]
pub(super) struct Keyring {
    folder: PathBuf,
    pub(super) handle: Handle,
}

/// The token that a registry issued.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) registry: String,
    pub(super) token: String,
}

impl Keyring {
    /// The folder of a handle, whether or not it exists.
    pub(super) fn of(data: &Path, handle: Handle) -> Self {
        Self { folder: data.join("airc").join(handle.as_str()), handle }
    }

    /// The named identity, or the only one.
    pub(super) fn find(data: &Path, named: Option<&str>) -> Result<Self, Failure> {
        let usage = |text: String| Failure::new(Exit::Usage, text);
        if let Some(named) = named {
            let handle = Handle::parse(named).map_err(|error| usage(format!("{named}: {error}")))?;
            let found = Self::of(data, handle);
            return match found.path("key").exists() {
                true => Ok(found),
                false => {
                    Err(usage(format!("there is no key for {named}; `posthaste airc register` makes one")))
                }
            };
        }
        let mut known = Vec::new();
        for entry in fs::read_dir(data.join("airc")).into_iter().flatten().flatten() {
            if let Some(handle) = entry.file_name().to_str().and_then(|name| Handle::parse(name).ok()) {
                known.push(Self::of(data, handle));
            }
        }
        known.retain(|one| one.path("key").exists());
        match known.len() {
            0 => {
                Err(usage("there is no identity yet; `posthaste airc register HANDLE` makes one".to_owned()))
            }
            1 => Ok(known.remove(0)),
            _ => {
                let names: Vec<&str> = known.iter().map(|one| one.handle.as_str()).collect();
                Err(usage(format!("which of {}? say so with --as", names.join(", "))))
            }
        }
    }

    /// The key that signs messages, and the one that may replace it; made if they do not exist.
    pub(super) fn make(&self) -> Result<(SecretKey, SecretKey), Failure> {
        make_private_directory(&self.folder)?;
        for name in ["key", "recovery.key"] {
            if !self.path(name).exists() {
                let seed = Sha256::digest(format!("{}{}{}", stamp::secret(), stamp::secret(), name));
                let text: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
                write_private(&self.path(name), &text)?;
            }
        }
        Ok((self.key()?, self.read_key("recovery.key")?))
    }

    /// The key that signs messages.
    pub(super) fn key(&self) -> Result<SecretKey, Failure> {
        self.read_key("key")
    }

    fn read_key(&self, name: &str) -> Result<SecretKey, Failure> {
        let path = self.path(name);
        let bad = || Failure::new(Exit::Failed, format!("{} does not hold a key", path.display()));
        let text = fs::read_to_string(&path)?;
        let text = text.trim();
        let byte = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let seed: Option<Vec<u8>> = (0..64).step_by(2).map(byte).collect();
        let seed: [u8; 32] =
            seed.filter(|_| text.len() == 64).and_then(|seed| seed.try_into().ok()).ok_or_else(bad)?;
        Ok(SecretKey::from_seed(&seed))
    }

    pub(super) fn session(&self) -> Session {
        self.read("session.json").unwrap_or_default()
    }

    pub(super) fn keep_session(&self, session: &Session) -> Result<(), Failure> {
        self.write("session.json", session)
    }

    /// A file of this identity, if it exists and can be read.
    pub(super) fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(&fs::read_to_string(self.path(name)).ok()?).ok()
    }

    /// Writes a file of this identity under another name and renames it, so that no reader sees half of it.
    pub(super) fn write(&self, name: &str, value: &impl Serialize) -> Result<(), Failure> {
        let fresh = self.path(&format!("{name}.new"));
        drop(fs::remove_file(&fresh));
        write_private(&fresh, &serde_json::to_string_pretty(value)?)?;
        Ok(fs::rename(fresh, self.path(name))?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}
