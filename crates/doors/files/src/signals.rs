//! Files next to the mail directory: hooks, which are read and never written, and nudges, of which only the latest is kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use posthaste_wire::files::signals::{HOOKS_DIR, Hook, LATEST_NUDGE_FILE, NUDGE_TYPES, NUDGES_DIR, Nudge};
use posthaste_wire::files::{check_agent, name};
use rustix::fs::{self as sys, FileType, Mode, OFlags};

use super::directory::make_all;
use super::errors::FilesError;
use super::{reader, writer};
use posthaste_host::safe_open::Folder;
use posthaste_host::services::{MailSignals, NudgeDraft, SignalError};

/// Hooks or nudges that are read.
const MAX_SIGNALS: usize = 10_000;

/// The state directory that mail, hooks and nudges share.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// The parent of a mail directory. Only a directory called `mail` has hooks and nudges next to it.
    #[must_use]
    pub fn of(mail: &Path) -> Option<Self> {
        let is_mail = mail.file_name().is_some_and(|name| name == "mail");
        let path = mail.parent().filter(|_| is_mail)?;
        Some(Self { path: path.to_owned() })
    }

    /// The state directory at a path.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where hooks are.
    #[must_use]
    pub fn hooks_path(&self) -> PathBuf {
        self.path.join(HOOKS_DIR)
    }

    /// Where nudges are.
    #[must_use]
    pub fn nudges_path(&self) -> PathBuf {
        self.path.join(NUDGES_DIR)
    }

    /// Every file that may be a hook or a nudge.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let hooks = agents_in(&self.hooks_path())
            .into_iter()
            .map(|agent| self.hooks_path().join(agent + name::JSON_SUFFIX));
        let flat = agents_in(&self.nudges_path())
            .into_iter()
            .map(|agent| self.nudges_path().join(agent + name::JSON_SUFFIX));
        let nested = names_in(&self.nudges_path()).into_iter();
        let nested = nested.map(|agent| self.nudges_path().join(agent).join(LATEST_NUDGE_FILE));
        let is_file = |path: &PathBuf| {
            sys::lstat(path).is_ok_and(|about| FileType::from_raw_mode(about.st_mode).is_file())
        };
        let nested = nested.filter(is_file);
        hooks.chain(flat).chain(nested).collect()
    }

    /// Every hook that can be read, by agent.
    #[must_use]
    pub fn hooks(&self) -> Vec<Hook> {
        let mut hooks: Vec<Hook> = agents_in(&self.hooks_path())
            .into_iter()
            .filter_map(|agent| {
                let bytes = read(&self.hooks_path(), &format!("{agent}.json"))?;
                Hook::parse(&bytes, &agent)
            })
            .collect();
        hooks.sort_by(|a, b| a.agent.cmp(&b.agent));
        hooks
    }

    /// The latest nudge to an agent, in either of the files that peers write.
    #[must_use]
    pub fn nudge_of(&self, agent: &str) -> Option<Nudge> {
        check_agent(agent).ok()?;
        let nudges = self.nudges_path();
        let latest = read(&nudges.join(agent), LATEST_NUDGE_FILE).and_then(|bytes| Nudge::parse(&bytes));
        let flat = read(&nudges, &format!("{agent}.json")).and_then(|bytes| Nudge::parse(&bytes));
        match (latest, flat) {
            (Some(a), Some(b)) => Some(if b.timestamp > a.timestamp { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Nudges an agent, replacing its earlier nudge. When this returns, it is durable.
    ///
    /// # Errors
    /// For invalid names, for an unknown type, and when the system fails.
    pub fn nudge(&self, to: &str, nudge: &Nudge) -> Result<(), FilesError> {
        check_agent(to)?;
        check_agent(&nudge.from)?;
        if !NUDGE_TYPES.contains(&nudge.kind.as_str()) {
            return Err(FilesError::BadWord {
                field: "type",
                given: nudge.kind.clone(),
                words: &NUDGE_TYPES,
            });
        }
        let got = nudge.message.len();
        if got > writer::MAX_MESSAGE_BYTES {
            return Err(FilesError::TooLarge { got, limit: writer::MAX_MESSAGE_BYTES });
        }
        let path = self.nudges_path().join(to);
        let write = || -> std::io::Result<()> {
            make_all(&path)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = sys::open(&path, flags, Mode::empty())?;
            let (temp, handle) = writer::write_temp(&directory, &nudge.to_text())?;
            let written = handle
                .sync_all()
                .and_then(|()| Ok(sys::renameat(&directory, &temp, &directory, LATEST_NUDGE_FILE)?));
            if written.is_err() {
                let _ = sys::unlinkat(&directory, &temp, sys::AtFlags::empty());
            }
            written?;
            Ok(sys::fsync(&directory)?)
        };
        write().map_err(|error| FilesError::at(&path, error))
    }
}

impl MailSignals for StateDir {
    fn hooks(&self) -> Vec<Hook> {
        self.hooks()
    }

    fn nudge(&self, to: &str, draft: NudgeDraft<'_>) -> Result<Nudge, SignalError> {
        let nudge = nudge_now(draft.from, draft.kind, draft.message, draft.requires_response);
        match self.nudge(to, &nudge) {
            Ok(()) => Ok(nudge),
            Err(error) if error.is_usage() => Err(SignalError::Invalid(error.to_string())),
            Err(error) => Err(SignalError::Failed(error.to_string())),
        }
    }
}

/// A nudge as of now.
#[must_use]
pub fn nudge_now(from: &str, kind: &str, message: &str, requires_response: bool) -> Nudge {
    Nudge {
        from: from.to_owned(),
        kind: kind.to_owned(),
        message: message.to_owned(),
        timestamp: writer::now().to_string(),
        requires_response,
    }
}

/// The names in a directory that is not a link.
fn names_in(directory: &Path) -> Vec<OsString> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else { return Vec::new() };
    let folder = Folder::at(parent).and_then(|parent| parent.enter(name));
    folder.and_then(|folder| folder.names(MAX_SIGNALS)).unwrap_or_default()
}

fn agents_in(directory: &Path) -> Vec<String> {
    let names = names_in(directory).into_iter().filter_map(|name| name.into_string().ok());
    let stems = names.filter_map(|file| file.strip_suffix(name::JSON_SUFFIX).map(str::to_owned));
    stems.filter(|agent| check_agent(agent).is_ok()).collect()
}

/// The contents of a regular file.
pub(super) fn read_at(path: &Path) -> Option<Vec<u8>> {
    read(path.parent()?, path.file_name()?.to_str()?)
}

fn read(directory: &Path, file: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = sys::open(directory, flags, Mode::empty()).ok()?;
    Some(reader::read(&directory, file).ok()?.bytes)
}
