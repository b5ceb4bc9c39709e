//! Marking as read: the flag changes and no other byte does, in the mailbox or, if somebody moved the file meanwhile, in
//! the archive; never does a file that was moved come back.

use std::os::fd::OwnedFd;

use posthaste_wire::files::{flag, name};
use rustix::fs::{self as sys, AtFlags};
use rustix::io::Errno;

use super::directory::{MailDir, Mailbox, exchange};
use super::errors::FilesError;
use super::look::{self, Odd};
use super::post::write_temp;

/// How marking went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It is marked now.
    Now,
    /// It was marked before.
    Before,
    /// There is no such message.
    Missing,
}

impl MailDir {
    /// Marks a message as read; when this returns, that is durable.
    ///
    /// # Errors
    /// For names that are none, for a file that is no message, and when the system fails.
    pub fn mark_read(&self, agent: &str, file: &str) -> Result<Marked, FilesError> {
        let Some(mailbox) = self.mailbox(agent)? else {
            return if name::is_plain(file) { Ok(Marked::Missing) } else { Err(bad(file)) };
        };
        mailbox.mark_read(file)
    }
}

impl Mailbox {
    pub(super) fn mark_read(&self, file: &str) -> Result<Marked, FilesError> {
        if !name::is_plain(file) {
            return Err(bad(file));
        }
        // Moved between the two looks means that it is in the archive by the second; back again would be somebody's
        // game, which ends after a few rounds.
        for _ in 0..4 {
            match mark(&self.directory, file)
                .map_err(|error| FilesError::at(self.path().join(file), error))?
            {
                Marked::Missing => {}
                Marked::Now => {
                    self.settle()?;
                    return Ok(Marked::Now);
                }
                Marked::Before => return Ok(Marked::Before),
            }
            let Some(archive) = self.archive()? else { return Ok(Marked::Missing) };
            let place = self.path().join(name::ARCHIVE).join(file);
            match mark(&archive, file).map_err(|error| FilesError::at(&place, error))? {
                Marked::Missing => {}
                Marked::Now => {
                    sys::fsync(&archive).map_err(|error| FilesError::at(place, error))?;
                    return Ok(Marked::Now);
                }
                Marked::Before => return Ok(Marked::Before),
            }
            if self.print(file).is_none() {
                break;
            }
        }
        Ok(Marked::Missing)
    }
}

fn mark(directory: &OwnedFd, file: &str) -> std::io::Result<Marked> {
    let content = match look::read(directory, file) {
        Ok(content) => content,
        Err(Odd::Gone) => return Ok(Marked::Missing),
        Err(odd) => return Err(std::io::Error::other(odd.to_string())),
    };
    let not_json = || std::io::Error::other("not a message");
    let text = String::from_utf8(content.bytes).map_err(|_| not_json())?;
    let Some(marked) = flag::set_read(&text) else {
        let whole = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
        return if whole { Ok(Marked::Before) } else { Err(not_json()) };
    };
    let (temp, handle) = write_temp(directory, &marked)?;
    let exchanged = handle.sync_all().and_then(|()| Ok(exchange(directory, &temp, file)?));
    // After the exchange this is the old text, before it the new one; either way it is ours to take away.
    let _ = sys::unlinkat(directory, &temp, AtFlags::empty());
    match exchanged {
        Ok(()) => Ok(Marked::Now),
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(Marked::Missing),
        Err(error) => Err(error),
    }
}

fn bad(file: &str) -> FilesError {
    FilesError::BadFile(file.chars().take(255).collect())
}
