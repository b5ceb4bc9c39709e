//! Reading what lies in a mailbox, whatever somebody put there: links are not followed, nothing blocks, nothing large is
//! swallowed, and one odd file hides no other.

use std::os::fd::OwnedFd;

use posthaste_wire::files::name;
use posthaste_wire::files::{FileMessage, NotAMessage};
use rustix::fs::{self as sys, AtFlags, FileType};

use super::directory::{MailDir, Mailbox};
use super::errors::FilesError;
use posthaste_host::safe_open::{self, OpenError};

/// The largest file that is looked into: a letter of the largest size in the most wasteful spelling but one.
pub(super) const LARGEST_FILE: u64 = 4 << 20;

/// Which file it was, so that a change can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Print {
    /// The file's number.
    pub(super) inode: u64,
    /// When its content last changed, in nanoseconds.
    pub(super) changed: i128,
    /// How large it is.
    pub(super) size: i64,
}

/// Why a file is left where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Odd {
    /// It is gone again.
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
    /// The system does not let us read it.
    #[error("{0}")]
    Unreadable(String),
    /// Read, but not a message.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
}

/// What a file says.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Which file it was.
    pub(super) print: Print,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// A message in a mailbox.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file's name.
    pub file: String,
    /// What it says.
    pub message: FileMessage,
}

/// What a look into a mailbox gave.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The messages, in the order of their names.
    pub entries: Vec<Entry>,
    /// Files that were passed over, and why.
    pub odd: Vec<(String, Odd)>,
}

impl MailDir {
    /// Everything in an agent's mailbox; nothing if it has none.
    ///
    /// # Errors
    /// For a name that is none, and when the directory cannot be read.
    pub fn inbox(&self, agent: &str) -> Result<Inbox, FilesError> {
        let mut inbox = Inbox::default();
        let Some(mailbox) = self.mailbox(agent)? else { return Ok(inbox) };
        for file in mailbox.names()? {
            match mailbox.message(&file) {
                Ok((message, _)) => inbox.entries.push(Entry { file, message }),
                // Archived, or taken away, while we were looking.
                Err(Odd::Gone) => {}
                Err(odd) => inbox.odd.push((file, odd)),
            }
        }
        Ok(inbox)
    }
}

impl MailDir {
    /// One message of an agent's, in its mailbox or in its archive; nothing if there is none.
    ///
    /// # Errors
    /// For names that are none, and for a file that is no message.
    pub fn look_up(&self, agent: &str, file: &str) -> Result<Option<FileMessage>, FilesError> {
        if !name::is_plain(file) {
            return Err(FilesError::BadFile(file.chars().take(255).collect()));
        }
        let Some(mailbox) = self.mailbox(agent)? else { return Ok(None) };
        let broken =
            |odd: Odd| FilesError::at(mailbox.path().join(file), std::io::Error::other(odd.to_string()));
        match mailbox.message(file) {
            Ok((message, _)) => return Ok(Some(message)),
            Err(Odd::Gone) => {}
            Err(odd) => return Err(broken(odd)),
        }
        let Some(archive) = mailbox.archive()? else { return Ok(None) };
        match read(&archive, file) {
            Ok(content) => match FileMessage::parse(&content.bytes, agent, file) {
                Ok(message) => Ok(Some(message)),
                Err(why) => Err(broken(why.into())),
            },
            Err(Odd::Gone) => Ok(None),
            Err(odd) => Err(broken(odd)),
        }
    }
}

impl Mailbox {
    /// One file of the mailbox, as a message.
    pub(super) fn message(&self, file: &str) -> Result<(FileMessage, Print), Odd> {
        let content = read(&self.directory, file)?;
        Ok((FileMessage::parse(&content.bytes, self.agent(), file)?, content.print))
    }

    /// Which file bears a name now; nothing if none does, or none that is regular.
    pub(super) fn print(&self, file: &str) -> Option<Print> {
        let about = sys::statat(&self.directory, file, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        FileType::from_raw_mode(about.st_mode).is_file().then(|| print(&about))
    }
}

/// Reads a file of a directory.
pub(super) fn read(directory: &OwnedFd, file: &str) -> Result<Content, Odd> {
    if !name::is_plain(file) && file != name::FOREIGN_TEMP {
        return Err(Odd::Unreadable("not a plain name".to_owned()));
    }
    let content = safe_open::read_at(directory, file.as_ref(), LARGEST_FILE)?;
    Ok(Content { print: print(&content.about), bytes: content.bytes })
}

impl From<OpenError> for Odd {
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

pub(super) fn print(about: &sys::Stat) -> Print {
    Print {
        inode: about.st_ino,
        changed: i128::from(about.st_mtime) * 1_000_000_000 + i128::from(about.st_mtime_nsec),
        size: about.st_size,
    }
}
