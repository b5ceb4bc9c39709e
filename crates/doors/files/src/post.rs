//! Sending: a private file, made durable, gets a name that nobody has, and the directory is made durable. Only then is
//! it acknowledged.

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

/// The longest subject and body together; the same as any letter of the office.
pub const LARGEST: usize = 1 << 20;
/// A list of names up to this size is looked through for the last stamp; in a larger one the clock is trusted.
const SMALL_LIST: u64 = 1 << 20;
/// A stamp of ours that lies further ahead than this is somebody's clock gone wrong and not followed.
const TRUSTED_AHEAD: i128 = 60_000_000_000;

/// With more batches than this under way the disk has enough to do: there, one file after the other is quicker.
const EAGER_BATCHES: usize = 4;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// A message to be written.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Who sends it.
    pub from: String,
    /// For whom.
    pub to: String,
    /// What it is about.
    pub kind: Kind,
    /// How pressing it is.
    pub urgency: Urgency,
    /// Its heading.
    pub subject: String,
    /// What it says.
    pub body: String,
    /// When it was written, if not now. Decimals that are not given are ours to choose.
    pub at: Option<ParsedStamp>,
    /// What else to put into the file.
    pub extra: Map<String, Value>,
}

/// A file that is in its place, but not yet sure to stay there.
#[derive(Debug)]
pub struct Placed {
    /// The mailbox.
    pub mailbox: Arc<Mailbox>,
    /// The file's name.
    pub file: String,
}

/// A file that is whole, but has only a temporary name.
struct Fresh {
    temp: String,
    handle: std::fs::File,
}

/// A letter of a batch on its way to its name.
struct Waiting {
    mailbox: Arc<Mailbox>,
    fresh: Fresh,
    file: String,
}

impl Draft {
    /// Refuses what cannot be written.
    ///
    /// # Errors
    /// For names that are none and for too much text.
    pub fn check(&self) -> Result<(), FilesError> {
        check_agent(&self.from)?;
        check_agent(&self.to)?;
        let got = self.subject.len() + self.body.len();
        if got > LARGEST {
            return Err(FilesError::TooLarge { got, limit: LARGEST });
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
    /// For what cannot be written, and when the system fails; then nothing is in the mailbox.
    pub fn post(&self, draft: &Draft) -> Result<Placed, FilesError> {
        draft.check()?;
        let place = || {
            let mailbox = self.mailbox_or_make(&draft.to)?;
            let file = mailbox.place(draft)?;
            mailbox.settle()?;
            Ok(Placed { mailbox, file })
        };
        match place() {
            // The directory that we knew is gone; there may be another of its name.
            Err(FilesError::Failed { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                self.forget(&draft.to);
                place()
            }
            done => done,
        }
    }

    /// Sends several messages, each with its own answer; when this returns, those that succeeded are durable. The disk is
    /// set to work on all of them before the first is waited for, and one sync serves each mailbox.
    pub fn post_all(&self, drafts: &[Draft]) -> Vec<Result<Placed, FilesError>> {
        if let [draft] = drafts {
            return vec![self.post(draft)];
        }
        let batches = self.batches.fetch_add(1, Ordering::Relaxed) + 1;
        let results = self.post_batch(drafts, batches <= EAGER_BATCHES);
        self.batches.fetch_sub(1, Ordering::Relaxed);
        results
    }

    fn post_batch(&self, drafts: &[Draft], eager: bool) -> Vec<Result<Placed, FilesError>> {
        let mut results: Vec<Result<Placed, FilesError>> = match eager {
            true => {
                let written: Vec<_> = drafts.iter().map(|draft| self.begin(draft)).collect();
                written.into_iter().zip(drafts).map(|(waiting, draft)| finish(waiting?, draft)).collect()
            }
            false => drafts.iter().map(|draft| self.place(draft)).collect(),
        };
        let mut settled: Vec<(Arc<Mailbox>, Result<(), String>)> = Vec::new();
        for result in &mut results {
            let Ok(placed) = result else { continue };
            let known = settled.iter().find(|(mailbox, _)| Arc::ptr_eq(mailbox, &placed.mailbox));
            let outcome = match known {
                Some((_, outcome)) => outcome.clone(),
                None => {
                    let outcome = placed.mailbox.settle().map_err(|error| error.to_string());
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

    /// Puts one message of a batch into its place.
    fn place(&self, draft: &Draft) -> Result<Placed, FilesError> {
        draft.check()?;
        let mailbox = self.mailbox_or_make(&draft.to)?;
        let file = mailbox.place(draft)?;
        Ok(Placed { mailbox, file })
    }

    /// Writes a message under a temporary name and lets the disk begin with it.
    fn begin(&self, draft: &Draft) -> Result<Waiting, FilesError> {
        draft.check()?;
        let mailbox = self.mailbox_or_make(&draft.to)?;
        let (file, text) = mailbox.choose(draft);
        let fresh = mailbox.write(&text)?;
        // Dropping clean pages is not the point: asking for it starts the writing of dirty ones, all at once instead of
        // one after the other, so that the first sync finds most of the work done.
        let _ = sys::fadvise(&fresh.handle, 0, None, sys::Advice::DontNeed);
        Ok(Waiting { mailbox, fresh, file })
    }
}

/// Makes a letter of a batch durable and gives it its name.
fn finish(waiting: Waiting, draft: &Draft) -> Result<Placed, FilesError> {
    let Waiting { mailbox, fresh, file } = waiting;
    let synced = fresh.handle.sync_all();
    if let Err(error) = synced {
        mailbox.discard(&fresh.temp);
        return Err(FilesError::at(mailbox.path(), error));
    }
    match rename_new((&mailbox.directory, &fresh.temp), (&mailbox.directory, &file)) {
        Ok(()) => Ok(Placed { mailbox, file }),
        Err(Errno::EXIST) => {
            mailbox.discard(&fresh.temp);
            let file = mailbox.place(draft)?;
            Ok(Placed { mailbox, file })
        }
        Err(error) => {
            mailbox.discard(&fresh.temp);
            Err(FilesError::at(mailbox.path(), error))
        }
    }
}

impl Mailbox {
    /// Puts a message into its place. It is durable once the mailbox is settled.
    fn place(&self, draft: &Draft) -> Result<String, FilesError> {
        loop {
            let (file, text) = self.choose(draft);
            if self.put(&text, &file)? {
                return Ok(file);
            }
        }
    }

    /// Puts a text under a name unless that is taken. It is durable once the mailbox is settled.
    pub(super) fn put(&self, text: &str, file: &str) -> Result<bool, FilesError> {
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

    fn choose(&self, draft: &Draft) -> (String, String) {
        let stamp = self.next_stamp(draft.at);
        (FileName::write(stamp, &draft.from), draft.text(stamp))
    }

    /// A stamp after every one that we gave out here.
    fn next_stamp(&self, wanted: Option<ParsedStamp>) -> Stamp {
        let now = now();
        let mut issued = lock(&self.issued);
        let Some(wanted) = wanted else {
            let before = issued.now.or_else(|| self.last_written(now));
            let stamp = before.map_or(now, |before| now.max(before.next()));
            issued.now = Some(stamp);
            return stamp;
        };
        // What was said stays; what was left open is filled with the time, so that writers who name the same second do
        // not queue for the same names. The first half is drawn from, the second is room to count on.
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

    /// The last stamp of ours in the mailbox, if looking for it is cheap and its clock can be believed.
    fn last_written(&self, now: Stamp) -> Option<Stamp> {
        if self.list_bytes() > SMALL_LIST {
            return None;
        }
        let ahead = |stamp: &Stamp| stamp.nanos() - now.nanos() < TRUSTED_AHEAD;
        let names = self.names().ok()?;
        names.iter().rev().filter_map(|name| FileName::parse(name)).map(|name| name.stamp).find(ahead)
    }

    /// Writes a text into a new file that nobody else knows.
    fn write(&self, text: &str) -> Result<Fresh, FilesError> {
        write_temp(&self.directory, text)
            .map_err(|error| FilesError::at(self.path(), error))
            .map(|(temp, handle)| Fresh { temp, handle })
    }

    fn discard(&self, temp: &str) {
        // If even this fails, the sweep of old temporary files finds it later.
        let _ = sys::unlinkat(&self.directory, temp, AtFlags::empty());
    }
}

/// A new file of ours in a directory, written but not synced. On failure nothing is left.
pub(super) fn write_temp(directory: &OwnedFd, text: &str) -> std::io::Result<(String, std::fs::File)> {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
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
