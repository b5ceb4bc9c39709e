//! Messages that a power cut left under a sender's temporary name: whole, but never delivered. They are reported, and
//! restored if somebody says so; the temporary file itself is its sender's and stays as it is.

use posthaste_wire::files::name::{FOREIGN_TEMP, FileName};
use posthaste_wire::files::{FileMessage, Stamp, check_agent};

use super::directory::MailDir;
use super::errors::FilesError;
use super::{look, post};

/// A temporary file younger than this may be about to be delivered.
const SETTLED: i128 = 60 * 1_000_000_000;

/// A message without its name.
#[derive(Clone, Debug)]
pub struct Orphan {
    /// Whose mailbox it lies in.
    pub agent: String,
    /// The name it would have had.
    pub file: String,
    /// Who sent it.
    pub from: String,
    /// Its heading.
    pub subject: String,
    bytes: Vec<u8>,
}

impl MailDir {
    /// Every message that was written but never delivered.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn orphans(&self) -> Result<Vec<Orphan>, FilesError> {
        let now = post::now().nanos();
        let mut found = Vec::new();
        for agent in self.agents()? {
            let Some(mailbox) = self.mailbox(&agent)? else { continue };
            let Ok(content) = look::read(&mailbox.directory, FOREIGN_TEMP) else { continue };
            if now - content.print.changed < SETTLED {
                continue;
            }
            let Ok(message) = FileMessage::parse(&content.bytes, &agent, FOREIGN_TEMP) else { continue };
            // A sender that follows the text puts the field's own spelling into the name.
            let readable = Stamp::parse(&message.timestamp).is_some();
            if !readable || check_agent(&message.from).is_err() || message.to != agent {
                continue;
            }
            let file = format!("{}-{}.json", message.timestamp.replace(':', "-"), message.from);
            let archived = mailbox.archived()?.binary_search(&file).is_ok();
            if FileName::parse(&file).is_none() || archived || mailbox.print(&file).is_some() {
                continue;
            }
            let FileMessage { from, subject, .. } = message;
            found.push(Orphan { agent, file, from, subject, bytes: content.bytes });
        }
        Ok(found)
    }

    /// Gives a message the name it should have had; false if somebody else was faster. It is a copy: the sender will write
    /// its next message over the temporary file, and would write over this one if it were the same file.
    ///
    /// # Errors
    /// When the system fails.
    pub fn restore(&self, orphan: &Orphan) -> Result<bool, FilesError> {
        let mailbox = self.mailbox_or_make(&orphan.agent)?;
        let text = String::from_utf8_lossy(&orphan.bytes);
        let placed = mailbox.put(&text, &orphan.file)?;
        mailbox.settle()?;
        Ok(placed)
    }
}
