//! Reading mailboxes, which other programs write to: links are not followed, no read blocks, large files are not read, and
//! one invalid file hides no other.

use std::os::fd::OwnedFd;

use posthaste_wire::files::name;
use posthaste_wire::files::{FileMessage, NotAMessage};
use rustix::fs::{self as sys, AtFlags, FileType};

use super::directory::{MailDir, Mailbox};
use super::errors::FilesError;
use posthaste_host::safe_open::{self, OpenError};

/// The largest file that is read: a message of the largest size with most characters escaped.
pub(super) const MAX_FILE_BYTES: u64 = 4 << 20;

/// Identifies a version of a file, so that a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileVersion {
    /// The file's number.
    pub(super) inode: u64,
    /// When its content last changed, in nanoseconds.
    pub(super) changed: i128,
    /// How large it is.
    pub(super) size: i64,
}

/// Why a file is not taken as a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// It no longer exists.
    #[error("it is gone")]
    Gone,
    /// A link.
    #[error("a symbolic link, which is not followed")]
    Link,
    /// A directory, a pipe, a socket, a device.
    #[error("not a regular file")]
    NotAFile,
    /// Too large to be a message.
    #[error("{0} bytes, which is more than a message may have")]
    TooLarge(u64),
    /// The system does not allow to read it.
    #[error("{0}")]
    Unreadable(String),
    /// It was read, but is not a message.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
}

/// A file's contents.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The file's version.
    pub(super) version: FileVersion,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// A message in a mailbox.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file's name.
    pub file: String,
    /// Its contents.
    pub message: FileMessage,
}

/// The contents of a mailbox.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The messages, in the order of their names.
    pub entries: Vec<Entry>,
    /// Files that are not messages, and why.
    pub skipped: Vec<(String, SkipReason)>,
}

impl MailDir {
    /// Everything in an agent's mailbox; empty if it has none.
    ///
    /// # Errors
    /// For an invalid name, and when the directory cannot be read.
    pub fn inbox(&self, agent: &str) -> Result<Inbox, FilesError> {
        let mut inbox = Inbox::default();
        let Some(mailbox) = self.mailbox(agent)? else { return Ok(inbox) };
        for file in mailbox.names()? {
            match mailbox.message(&file) {
                Ok((message, _)) => inbox.entries.push(Entry { file, message }),
                // Archived or removed meanwhile.
                Err(SkipReason::Gone) => {}
                Err(reason) => inbox.skipped.push((file, reason)),
            }
        }
        Ok(inbox)
    }
}

impl MailDir {
    /// One message of an agent, in its mailbox or in its archive; `None` if there is none.
    ///
    /// # Errors
    /// For invalid names, and for a file that is not a message.
    pub fn look_up(&self, agent: &str, file: &str) -> Result<Option<FileMessage>, FilesError> {
        if !name::is_plain(file) {
            return Err(FilesError::BadFile(file.chars().take(255).collect()));
        }
        let Some(mailbox) = self.mailbox(agent)? else { return Ok(None) };
        let broken = |reason: SkipReason| {
            FilesError::at(mailbox.path().join(file), std::io::Error::other(reason.to_string()))
        };
        match mailbox.message(file) {
            Ok((message, _)) => return Ok(Some(message)),
            Err(SkipReason::Gone) => {}
            Err(reason) => return Err(broken(reason)),
        }
        let Some(archive) = mailbox.archive()? else { return Ok(None) };
        match read(&archive, file) {
            Ok(content) => match FileMessage::parse(&content.bytes, agent, file) {
                Ok(message) => Ok(Some(message)),
                Err(why) => Err(broken(why.into())),
            },
            Err(SkipReason::Gone) => Ok(None),
            Err(reason) => Err(broken(reason)),
        }
    }
}

impl Mailbox {
    /// One file of the mailbox, as a message.
    pub(super) fn message(&self, file: &str) -> Result<(FileMessage, FileVersion), SkipReason> {
        let content = read(&self.directory, file)?;
        Ok((FileMessage::parse(&content.bytes, self.agent(), file)?, content.version))
    }

    /// The version of a file; `None` if there is no regular file of that name.
    pub(super) fn version(&self, file: &str) -> Option<FileVersion> {
        let about = sys::statat(&self.directory, file, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        FileType::from_raw_mode(about.st_mode).is_file().then(|| version(&about))
    }
}

/// Reads a file of a directory.
pub(super) fn read(directory: &OwnedFd, file: &str) -> Result<Content, SkipReason> {
    if !name::is_plain(file) && file != name::FOREIGN_TEMP {
        return Err(SkipReason::Unreadable("not a plain name".to_owned()));
    }
    let content = safe_open::read_at(directory, file.as_ref(), MAX_FILE_BYTES)?;
    Ok(Content { version: version(&content.about), bytes: content.bytes })
}

impl From<OpenError> for SkipReason {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Missing => Self::Gone,
            OpenError::Link => Self::Link,
            OpenError::NotAFile => Self::NotAFile,
            OpenError::TooLarge(size) => Self::TooLarge(size),
            other @ (OpenError::NotADirectory
            | OpenError::OtherDevice
            | OpenError::BadName
            | OpenError::Io(_)) => Self::Unreadable(other.to_string()),
        }
    }
}

/// Whether a directory has a regular file of that name.
pub(super) fn exists(directory: &OwnedFd, file: &str) -> bool {
    sys::statat(directory, file, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|about| FileType::from_raw_mode(about.st_mode).is_file())
}

pub(super) fn version(about: &sys::Stat) -> FileVersion {
    FileVersion {
        inode: about.st_ino,
        changed: i128::from(about.st_mtime) * 1_000_000_000 + i128::from(about.st_mtime_nsec),
        size: about.st_size,
    }
}
