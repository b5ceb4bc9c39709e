//! Messages that a power cut left under a sender's temporary name: whole, but never delivered. They are reported, and
//! restored on request; the temporary file belongs to its sender and stays as it is.

use posthaste_wire::files::name::{FOREIGN_TEMP, FileName};
use posthaste_wire::files::{FileMessage, Stamp, check_agent};

use super::directory::MailDir;
use super::errors::FilesError;
use super::{reader, writer};

/// A temporary file younger than this may be about to be delivered.
const ORPHAN_AFTER: i128 = 60 * 1_000_000_000;

/// A message that never got its name.
#[derive(Clone, Debug)]
pub struct Orphan {
    /// The agent whose mailbox it is in.
    pub agent: String,
    /// The name it would have had.
    pub file: String,
    /// The sender.
    pub from: String,
    /// The subject.
    pub subject: String,
    bytes: Vec<u8>,
}

impl MailDir {
    /// Every message that was written but never delivered.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn orphans(&self) -> Result<Vec<Orphan>, FilesError> {
        let now = writer::now().nanos();
        let mut found = Vec::new();
        for agent in self.agents()? {
            let Some(mailbox) = self.mailbox(&agent)? else { continue };
            let Ok(content) = reader::read(&mailbox.directory, FOREIGN_TEMP) else { continue };
            if now - content.version.changed < ORPHAN_AFTER {
                continue;
            }
            let Ok(message) = FileMessage::parse(&content.bytes, &agent, FOREIGN_TEMP) else { continue };
            // A sender that follows the specification writes the field's text into the name.
            if Stamp::parse(&message.timestamp).is_none()
                || check_agent(&message.from).is_err()
                || message.to != agent
            {
                continue;
            }
            let file = format!("{}-{}.json", message.timestamp.replace(':', "-"), message.from);
            let archived = mailbox.archived()?.binary_search(&file).is_ok();
            if FileName::parse(&file).is_none() || archived || mailbox.version(&file).is_some() {
                continue;
            }
            let FileMessage { from, subject, .. } = message;
            found.push(Orphan { agent, file, from, subject, bytes: content.bytes });
        }
        Ok(found)
    }

    /// Writes a message under the name it should have had; false if that name is taken by now. The temporary file is copied,
    /// not renamed: its sender will write the next message over it.
    ///
    /// # Errors
    /// When the system fails.
    pub fn restore(&self, orphan: &Orphan) -> Result<bool, FilesError> {
        let mailbox = self.mailbox_or_make(&orphan.agent)?;
        let text = String::from_utf8_lossy(&orphan.bytes);
        let is_new = mailbox.write_as(&text, &orphan.file)?;
        mailbox.sync_names()?;
        Ok(is_new)
    }
}
