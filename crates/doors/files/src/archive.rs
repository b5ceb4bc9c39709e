//! Archival: what has lain for a day by the stamp in its name is moved out of the way, and never over something else.

use std::os::fd::OwnedFd;

use posthaste_wire::files::name::{self, FileName};
use posthaste_wire::files::{Stamp, flag};
use rustix::fs::{self as sys, AtFlags, FileType};
use rustix::io::Errno;

use super::directory::{MailDir, Mailbox, rename_new};
use super::errors::FilesError;
use super::look::{self, Print};
use super::post;

/// How long a message stays in the mailbox.
const DAY: i128 = 24 * 60 * 60 * 1_000_000_000;
/// How long one of our own temporary files may lie before it counts as forgotten.
const STALE_TEMP: i128 = 10 * 60 * 1_000_000_000;

impl MailDir {
    /// Moves an agent's old messages into its archive and says which; when this returns, that is durable.
    ///
    /// # Errors
    /// For a name that is none, and when the system fails.
    pub fn archive(&self, agent: &str) -> Result<Vec<String>, FilesError> {
        match self.mailbox(agent)? {
            Some(mailbox) => mailbox.archive_old(|_| true),
            None => Ok(Vec::new()),
        }
    }
}

impl Mailbox {
    /// Moves old messages that `fit` as well.
    pub(super) fn archive_old(&self, fit: impl Fn(&Print) -> bool) -> Result<Vec<String>, FilesError> {
        let cutoff = Stamp::nearest(post::now().nanos() - DAY);
        let mut archive = None;
        let mut moved = Vec::new();
        for file in self.names()? {
            let old = FileName::parse(&file).is_some_and(|name| name.stamp < cutoff);
            // Links, pipes and the like are nobody's message, whatever they are called.
            if !old || !self.print(&file).is_some_and(|print| fit(&print)) {
                continue;
            }
            let archive = match &mut archive {
                Some(archive) => archive,
                none => none.insert(self.archive_or_make()?),
            };
            if self.move_into(archive, &file)? {
                moved.push(file);
            }
        }
        if let Some(archive) = archive {
            sys::fsync(&archive).map_err(|error| FilesError::at(self.path().join(name::ARCHIVE), error))?;
            self.settle()?;
        }
        Ok(moved)
    }

    /// Moves one file. One that is there already under its name is the same message and goes, or another and keeps its own.
    fn move_into(&self, archive: &OwnedFd, file: &str) -> Result<bool, FilesError> {
        let broken = |error: Errno| FilesError::at(self.path().join(file), error);
        let mut target = file.to_owned();
        loop {
            match rename_new((&self.directory, file), (archive, &target)) {
                Ok(()) => return Ok(true),
                Err(Errno::NOENT) => return Ok(false),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(broken(error)),
            }
            if target == file && self.same_in(archive, file) {
                // The one that is marked stays.
                if self.is_marked(file) {
                    sys::renameat(&self.directory, file, archive, file).map_err(broken)?;
                } else {
                    sys::unlinkat(&self.directory, file, AtFlags::empty()).map_err(broken)?;
                }
                return Ok(true);
            }
            let Some(parsed) = FileName::parse(&target) else { return Ok(false) };
            target = FileName::write(parsed.stamp.next(), &parsed.from);
        }
    }

    /// Whether the file and the archived one of its name say the same, but for the flag.
    fn same_in(&self, archive: &OwnedFd, file: &str) -> bool {
        let text = |directory| {
            let bytes = look::read(directory, file).ok()?.bytes;
            let text = String::from_utf8(bytes).ok()?;
            Some(flag::set_read(&text).unwrap_or(text))
        };
        let ours = text(&self.directory);
        ours.is_some() && ours == text(archive)
    }

    fn is_marked(&self, file: &str) -> bool {
        self.message(file).is_ok_and(|(message, _)| message.read)
    }

    /// Takes away temporary files of ours that a crash left behind. Never anybody else's.
    pub(super) fn sweep_temps(&self) {
        let now = post::now().nanos();
        let archive = self.archive().ok().flatten();
        for directory in [Some(&self.directory), archive.as_ref()].into_iter().flatten() {
            for temp in own_temps(directory) {
                let about = sys::statat(directory, &temp, AtFlags::SYMLINK_NOFOLLOW);
                let stale = about.is_ok_and(|about| {
                    FileType::from_raw_mode(about.st_mode).is_file()
                        && now - look::print(&about).changed > STALE_TEMP
                });
                if stale {
                    let _ = sys::unlinkat(directory, &temp, AtFlags::empty());
                }
            }
        }
    }
}

fn own_temps(directory: &OwnedFd) -> Vec<String> {
    let Ok(entries) = sys::Dir::read_from(directory) else { return Vec::new() };
    let names =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|temp| name::is_own_temp(temp)).collect()
}
