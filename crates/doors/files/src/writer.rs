//! Sending: a temporary file is synced and renamed to an unused name, and the directory is synced. Only then is the
//! message acknowledged.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_engine::stamp;
use posthaste_wire::files::name::{TEMP_PREFIX, TEMP_SUFFIX};
use posthaste_wire::files::stamp::ParsedStamp;
use posthaste_wire::files::{FileMessage, FileName, Kind, Stamp, Urgency, check_agent};
use rustix::fs::{self as sys, AtFlags, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value};

use super::directory::{MailDir, Mailbox, file_mode, lock, rename_new};
use super::errors::FilesError;

/// The longest subject and body together, as for any message of the server.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// In a directory up to this size the last stamp is searched; in a larger one the clock is trusted.
const MAX_LIST_BYTES_TO_SCAN: u64 = 1 << 20;
/// A stamp further ahead of the clock than this, in nanoseconds, is ignored: it comes from a wrong clock.
const MAX_CLOCK_LEAD: i128 = 60_000_000_000;

/// With more batches than this in progress the disk is busy, and writing one file after the other is faster.
const MAX_EAGER_BATCHES: usize = 4;

static TEMP_COUNT: AtomicU64 = AtomicU64::new(0);

/// A message to be written.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The type.
    pub kind: Kind,
    /// The priority.
    pub urgency: Urgency,
    /// The subject.
    pub subject: String,
    /// The body.
    pub body: String,
    /// When it was written, if not now. Missing decimals are filled in.
    pub at: Option<ParsedStamp>,
    /// Further members of the file.
    pub extra: Map<String, Value>,
}

/// A message file that was written.
#[derive(Debug)]
pub struct SentFile {
    /// The mailbox.
    pub mailbox: Arc<Mailbox>,
    /// The file's name.
    pub file: String,
}

/// A complete file that has only a temporary name.
struct TempFile {
    temp: String,
    handle: std::fs::File,
}

/// A message of a batch that has only a temporary file.
struct PendingFile {
    mailbox: Arc<Mailbox>,
    fresh: TempFile,
    file: String,
}

impl Draft {
    /// Refuses messages that cannot be written.
    ///
    /// # Errors
    /// For invalid names and for too much text.
    pub fn check(&self) -> Result<(), FilesError> {
        check_agent(&self.from)?;
        check_agent(&self.to)?;
        let got = self.subject.len() + self.body.len();
        if got > MAX_MESSAGE_BYTES {
            return Err(FilesError::TooLarge { got, limit: MAX_MESSAGE_BYTES });
        }
        Ok(())
    }

    fn text(&self, stamp: Stamp) -> String {
        let message = FileMessage {
            from: self.from.clone(),
            to: self.to.clone(),
            kind: self.kind.as_str().to_owned(),
            subject: self.subject.clone(),
            body: Value::String(self.body.clone()),
            timestamp: stamp.to_string(),
            read: false,
            priority: self.urgency.as_str().to_owned(),
            extra: self.extra.clone(),
        };
        message.to_text()
    }
}

impl MailDir {
    /// Sends one message; when this returns, it is durable.
    ///
    /// # Errors
    /// For messages that cannot be written, and when the system fails; then nothing is in the mailbox.
    pub fn send(&self, draft: &Draft) -> Result<SentFile, FilesError> {
        draft.check()?;
        let write = || {
            let mailbox = self.mailbox_or_make(&draft.to)?;
            let file = mailbox.write_new(draft)?;
            mailbox.sync_names()?;
            Ok(SentFile { mailbox, file })
        };
        match write() {
            // The open directory was removed; there may be another of its name.
            Err(FilesError::Failed { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                self.forget(&draft.to);
                write()
            }
            done => done,
        }
    }

    /// Sends several messages, each with its own answer; when this returns, those that succeeded are durable. The disk is
    /// set to work on all of them before the first is waited for, and one sync serves each mailbox.
    pub fn send_all(&self, drafts: &[Draft]) -> Vec<Result<SentFile, FilesError>> {
        if let [draft] = drafts {
            return vec![self.send(draft)];
        }
        let batches = self.batches.fetch_add(1, Ordering::Relaxed) + 1;
        let results = self.send_batch(drafts, batches <= MAX_EAGER_BATCHES);
        self.batches.fetch_sub(1, Ordering::Relaxed);
        results
    }

    fn send_batch(&self, drafts: &[Draft], eager: bool) -> Vec<Result<SentFile, FilesError>> {
        let mut results: Vec<Result<SentFile, FilesError>> = match eager {
            true => {
                let written: Vec<_> = drafts.iter().map(|draft| self.begin(draft)).collect();
                written.into_iter().zip(drafts).map(|(waiting, draft)| finish(waiting?, draft)).collect()
            }
            false => drafts.iter().map(|draft| self.write_unsynced(draft)).collect(),
        };
        let mut settled: Vec<(Arc<Mailbox>, Result<(), String>)> = Vec::new();
        for result in &mut results {
            let Ok(placed) = result else { continue };
            let known = settled.iter().find(|(mailbox, _)| Arc::ptr_eq(mailbox, &placed.mailbox));
            let outcome = match known {
                Some((_, outcome)) => outcome.clone(),
                None => {
                    let outcome = placed.mailbox.sync_names().map_err(|error| error.to_string());
                    settled.push((placed.mailbox.clone(), outcome.clone()));
                    outcome
                }
            };
            if let Err(why) = outcome {
                *result = Err(FilesError::at(placed.mailbox.path(), std::io::Error::other(why)));
            }
        }
        results
    }

    /// Writes one message of a batch; the directory is synced later.
    fn write_unsynced(&self, draft: &Draft) -> Result<SentFile, FilesError> {
        draft.check()?;
        let mailbox = self.mailbox_or_make(&draft.to)?;
        let file = mailbox.write_new(draft)?;
        Ok(SentFile { mailbox, file })
    }

    /// Writes a message under a temporary name and starts its write-back.
    fn begin(&self, draft: &Draft) -> Result<PendingFile, FilesError> {
        draft.check()?;
        let mailbox = self.mailbox_or_make(&draft.to)?;
        let (file, text) = mailbox.name_and_text(draft);
        let fresh = mailbox.write(&text)?;
        // This advice starts writing the dirty pages of all files at once instead of one after the other, so that the first
        // sync finds most of the work done.
        let _ = sys::fadvise(&fresh.handle, 0, None, sys::Advice::DontNeed);
        Ok(PendingFile { mailbox, fresh, file })
    }
}

/// Syncs a message of a batch and gives it its name.
fn finish(waiting: PendingFile, draft: &Draft) -> Result<SentFile, FilesError> {
    let PendingFile { mailbox, fresh, file } = waiting;
    let synced = fresh.handle.sync_all();
    if let Err(error) = synced {
        mailbox.discard(&fresh.temp);
        return Err(FilesError::at(mailbox.path(), error));
    }
    match rename_new((&mailbox.directory, &fresh.temp), (&mailbox.directory, &file)) {
        Ok(()) => Ok(SentFile { mailbox, file }),
        Err(Errno::EXIST) => {
            mailbox.discard(&fresh.temp);
            let file = mailbox.write_new(draft)?;
            Ok(SentFile { mailbox, file })
        }
        Err(error) => {
            mailbox.discard(&fresh.temp);
            Err(FilesError::at(mailbox.path(), error))
        }
    }
}

impl Mailbox {
    /// Writes a message under an unused name. It is durable once the mailbox is synced.
    fn write_new(&self, draft: &Draft) -> Result<String, FilesError> {
        loop {
            let (file, text) = self.name_and_text(draft);
            if self.write_as(&text, &file)? {
                return Ok(file);
            }
        }
    }

    /// Writes a text under a name; false if the name is taken. It is durable once the mailbox is synced.
    pub(super) fn write_as(&self, text: &str, file: &str) -> Result<bool, FilesError> {
        if sys::statat(&self.directory, file, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(false);
        }
        let fresh = self.write(text)?;
        let placed = match fresh.handle.sync_all() {
            Ok(()) => rename_new((&self.directory, &fresh.temp), (&self.directory, file)).map_err(Into::into),
            Err(error) => Err(error),
        };
        match placed {
            Ok(()) => Ok(true),
            Err(error) => {
                self.discard(&fresh.temp);
                match error.kind() {
                    std::io::ErrorKind::AlreadyExists => Ok(false),
                    _ => Err(FilesError::at(self.path().join(file), error)),
                }
            }
        }
    }

    fn name_and_text(&self, draft: &Draft) -> (String, String) {
        let stamp = self.next_stamp(draft.at);
        (FileName::write(stamp, &draft.from), draft.text(stamp))
    }

    /// A stamp after all that were issued in this mailbox.
    fn next_stamp(&self, wanted: Option<ParsedStamp>) -> Stamp {
        let now = now();
        let mut issued = lock(&self.issued);
        let Some(wanted) = wanted else {
            let before = issued.now.or_else(|| self.last_written(now));
            let stamp = before.map_or(now, |before| now.max(before.next()));
            issued.now = Some(stamp);
            return stamp;
        };
        // The given digits stay; missing decimals are filled with the current time, so that writers that name the same second
        // do not compete for the same names. Only the first half of that range is used; the second leaves room to count up.
        let open = 10_i128.pow(u32::from(9 - wanted.decimals.min(9)));
        let fill = now.nanos().rem_euclid((open / 2).max(1));
        let first = Stamp::nearest(wanted.stamp.nanos() + fill);
        let range = wanted.stamp.nanos()..wanted.stamp.nanos() + open.max(1_000_000);
        let stamp = match issued.named {
            Some(before) if range.contains(&before.nanos()) => first.max(before.next()),
            _ => first,
        };
        issued.named = Some(stamp);
        stamp
    }

    /// The last stamp in the mailbox, if the directory is small, ignoring stamps of wrong clocks.
    fn last_written(&self, now: Stamp) -> Option<Stamp> {
        if self.list_bytes() > MAX_LIST_BYTES_TO_SCAN {
            return None;
        }
        let ahead = |stamp: &Stamp| stamp.nanos() - now.nanos() < MAX_CLOCK_LEAD;
        let names = self.names().ok()?;
        names.iter().rev().filter_map(|name| FileName::parse(name)).map(|name| name.stamp).find(ahead)
    }

    /// Writes a text into a new temporary file.
    fn write(&self, text: &str) -> Result<TempFile, FilesError> {
        write_temp(&self.directory, text)
            .map_err(|error| FilesError::at(self.path(), error))
            .map(|(temp, handle)| TempFile { temp, handle })
    }

    fn discard(&self, temp: &str) {
        // If this fails, the file is removed with other old temporary files later.
        let _ = sys::unlinkat(&self.directory, temp, AtFlags::empty());
    }
}

/// Writes a new temporary file, without a sync. On failure nothing is left.
pub(super) fn write_temp(directory: &OwnedFd, text: &str) -> std::io::Result<(String, std::fs::File)> {
    let count = TEMP_COUNT.fetch_add(1, Ordering::Relaxed);
    let temp = format!("{TEMP_PREFIX}{}-{count}-{:x}{TEMP_SUFFIX}", std::process::id(), now().nanos());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut handle = std::fs::File::from(sys::openat(directory, &temp, flags, file_mode(directory))?);
    match handle.write_all(text.as_bytes()) {
        Ok(()) => Ok((temp, handle)),
        Err(error) => {
            let _ = sys::unlinkat(directory, &temp, AtFlags::empty());
            Err(error)
        }
    }
}

/// Now, to the nanosecond.
pub(super) fn now() -> Stamp {
    Stamp::nearest(stamp::now_nanos())
}
