//! Marking as read: the flag changes and no other byte does, in the mailbox or, if the file was moved meanwhile, in the
//! archive. A file that was moved is never put back.

use std::os::fd::OwnedFd;

use posthaste_wire::files::{flag, name};
use rustix::fs::{self as sys, AtFlags};
use rustix::io::Errno;

use super::directory::{MailDir, Mailbox, exchange};
use super::errors::FilesError;
use super::reader::{self, SkipReason};
use super::writer::write_temp;

/// The outcome of marking a message as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkOutcome {
    /// It is marked now.
    Marked,
    /// It was marked before.
    AlreadyMarked,
    /// There is no such message.
    Missing,
}

impl MailDir {
    /// Marks a message as read; when this returns, that is durable.
    ///
    /// # Errors
    /// For invalid names, for a file that is not a message, and when the system fails.
    pub fn mark_read(&self, agent: &str, file: &str) -> Result<MarkOutcome, FilesError> {
        let Some(mailbox) = self.mailbox(agent)? else {
            return if name::is_plain(file) { Ok(MarkOutcome::Missing) } else { Err(bad(file)) };
        };
        mailbox.mark_read(file)
    }
}

impl Mailbox {
    pub(super) fn mark_read(&self, file: &str) -> Result<MarkOutcome, FilesError> {
        if !name::is_plain(file) {
            return Err(bad(file));
        }
        // A file that is moved between the two attempts is in the archive by the second. One that is moved back and forth
        // is given up after a few rounds.
        for _ in 0..4 {
            match mark(&self.directory, file)
                .map_err(|error| FilesError::at(self.path().join(file), error))?
            {
                MarkOutcome::Missing => {}
                MarkOutcome::Marked => {
                    self.sync_names()?;
                    return Ok(MarkOutcome::Marked);
                }
                MarkOutcome::AlreadyMarked => return Ok(MarkOutcome::AlreadyMarked),
            }
            let Some(archive) = self.archive()? else { return Ok(MarkOutcome::Missing) };
            let path = self.path().join(name::ARCHIVE).join(file);
            match mark(&archive, file).map_err(|error| FilesError::at(&path, error))? {
                MarkOutcome::Missing => {}
                MarkOutcome::Marked => {
                    sys::fsync(&archive).map_err(|error| FilesError::at(path, error))?;
                    return Ok(MarkOutcome::Marked);
                }
                MarkOutcome::AlreadyMarked => return Ok(MarkOutcome::AlreadyMarked),
            }
            if self.version(file).is_none() {
                break;
            }
        }
        Ok(MarkOutcome::Missing)
    }
}

fn mark(directory: &OwnedFd, file: &str) -> std::io::Result<MarkOutcome> {
    let content = match reader::read(directory, file) {
        Ok(content) => content,
        Err(SkipReason::Gone) => return Ok(MarkOutcome::Missing),
        Err(reason) => return Err(std::io::Error::other(reason.to_string())),
    };
    let not_json = || std::io::Error::other("not a message");
    let text = String::from_utf8(content.bytes).map_err(|_| not_json())?;
    let Some(marked) = flag::set_read(&text) else {
        let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
        return if is_object { Ok(MarkOutcome::AlreadyMarked) } else { Err(not_json()) };
    };
    let (temp, handle) = write_temp(directory, &marked)?;
    let exchanged = handle.sync_all().and_then(|()| Ok(exchange(directory, &temp, file)?));
    // After the exchange this is the old text, before it the new one; either way it is to be removed.
    let _ = sys::unlinkat(directory, &temp, AtFlags::empty());
    match exchanged {
        Ok(()) => Ok(MarkOutcome::Marked),
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(MarkOutcome::Missing),
        Err(error) => Err(error),
    }
}

fn bad(file: &str) -> FilesError {
    FilesError::BadFile(file.chars().take(255).collect())
}
