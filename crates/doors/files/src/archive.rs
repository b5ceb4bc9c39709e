//! Archival: messages older than a day by the stamp in their name are moved to the archive, never over another file.

use std::os::fd::OwnedFd;

use posthaste_wire::files::name::{self, FileName};
use posthaste_wire::files::{Stamp, flag};
use rustix::fs::{self as sys, AtFlags, FileType};
use rustix::io::Errno;

use super::directory::{MailDir, Mailbox, rename_new};
use super::errors::FilesError;
use super::reader::{self, FileVersion};
use super::writer;

/// How long a message stays in the mailbox.
const ARCHIVE_AFTER: i128 = 24 * 60 * 60 * 1_000_000_000;
/// How old our own temporary files must be to count as left by a crash.
const STALE_TEMP_AFTER: i128 = 10 * 60 * 1_000_000_000;

impl MailDir {
    /// Moves an agent's old messages into its archive and says which; when this returns, that is durable.
    ///
    /// # Errors
    /// For an invalid name, and when the system fails.
    pub fn archive(&self, agent: &str) -> Result<Vec<String>, FilesError> {
        match self.mailbox(agent)? {
            Some(mailbox) => mailbox.archive_old(|_| true),
            None => Ok(Vec::new()),
        }
    }
}

impl Mailbox {
    /// Moves old messages whose files match a condition.
    pub(super) fn archive_old(
        &self,
        matches: impl Fn(&FileVersion) -> bool,
    ) -> Result<Vec<String>, FilesError> {
        let cutoff = Stamp::nearest(writer::now().nanos() - ARCHIVE_AFTER);
        let mut archive = None;
        let mut moved = Vec::new();
        for file in self.names()? {
            let old = FileName::parse(&file).is_some_and(|name| name.stamp < cutoff);
            // Links, pipes and the like are not messages, whatever their names.
            if !old || !self.version(&file).is_some_and(|version| matches(&version)) {
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
            self.sync_names()?;
        }
        Ok(moved)
    }

    /// Moves one file. If the archive has a file of its name, the moved one is the same message and is dropped, or another
    /// and gets another name.
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
                // The one that is marked as read stays.
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

    /// Whether the file and the archived one of its name are the same message, apart from the flag.
    fn same_in(&self, archive: &OwnedFd, file: &str) -> bool {
        let text = |directory| {
            let bytes = reader::read(directory, file).ok()?.bytes;
            let text = String::from_utf8(bytes).ok()?;
            Some(flag::set_read(&text).unwrap_or(text))
        };
        let ours = text(&self.directory);
        ours.is_some() && ours == text(archive)
    }

    fn is_marked(&self, file: &str) -> bool {
        self.message(file).is_ok_and(|(message, _)| message.read)
    }

    /// Removes our own temporary files that a crash left behind, and no other writer's.
    pub(super) fn sweep_temps(&self) {
        let now = writer::now().nanos();
        let archive = self.archive().ok().flatten();
        for directory in [Some(&self.directory), archive.as_ref()].into_iter().flatten() {
            for temp in own_temps(directory) {
                let about = sys::statat(directory, &temp, AtFlags::SYMLINK_NOFOLLOW);
                let stale = about.is_ok_and(|about| {
                    FileType::from_raw_mode(about.st_mode).is_file()
                        && now - reader::version(&about).changed > STALE_TEMP_AFTER
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
