//! Writing a backup: each database is copied at one moment, checked, and put into the archive with the files of its messages.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::nouns::RealmName;
use posthaste_engine::store::{check_position, open_reader};
use posthaste_engine::{DirectoryLock, Fault, database_path, stamp};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::container::TarWriter;
use super::contents::{Member, admin_key_name, key_files, read_key, visit_attachments};
use super::{
    Attachments, BackupError, HEAD, Head, KeyPart, MANIFEST, Manifest, RealmPart, VERSION, Watch,
    check_database, interruptibly,
};
use crate::attachments;

/// Pages copied between two looks at the watcher.
const PAGES: i32 = 1_024;

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Plan {
    pub data: PathBuf,
    pub realms: Vec<RealmName>,
    /// Whether the keys of the data directory go along.
    pub keys: bool,
    /// A directory for the copy of one database at a time.
    pub scratch: PathBuf,
}

/// Writes an archive and says what it holds. The realms may be in use: the copy of each shows one moment.
pub fn write(plan: &Plan, out: impl Write, watch: Watch<'_>) -> Result<Manifest, BackupError> {
    let made_at = stamp::now();
    let time = u64::try_from(made_at / 1_000).unwrap_or(0);
    let mut archive = Archive { tar: TarWriter::new(out, time), watch };
    let head = Head {
        format: "posthaste-backup".to_owned(),
        version: VERSION,
        made_at,
        by: concat!("posthaste ", env!("CARGO_PKG_VERSION")).to_owned(),
        realms: plan.realms.clone(),
    };
    archive.json(HEAD, &head)?;
    let mut manifest =
        Manifest { version: VERSION, admin_key: admin_key_name(&plan.data), ..Manifest::default() };
    for realm in &plan.realms {
        manifest.realms.push(archive.realm(plan, realm)?);
    }
    if plan.keys {
        for path in key_files(&plan.data) {
            let bytes = read_key(&plan.data, &path)
                .map_err(|error| BackupError::io(&path)(io::Error::other(error.to_string())))?;
            let sha256 = archive.bytes(&Member::Key(path.clone()).name(), &bytes)?;
            manifest.keys.push(KeyPart { path, bytes: bytes.len() as u64, sha256 });
        }
    }
    archive.json(MANIFEST, &manifest)?;
    archive.tar.finish().map_err(BackupError::io("the backup"))?;
    Ok(manifest)
}

struct Archive<'a, W> {
    tar: TarWriter<W>,
    watch: Watch<'a>,
}

impl<W: Write> Archive<'_, W> {
    fn json(&mut self, name: &str, value: &impl serde::Serialize) -> Result<(), BackupError> {
        let text =
            serde_json::to_vec_pretty(value).map_err(io::Error::other).map_err(BackupError::io(name))?;
        self.bytes(name, &text).map(drop)
    }

    fn bytes(&mut self, name: &str, mut bytes: &[u8]) -> Result<String, BackupError> {
        let (size, watch) = (bytes.len() as u64, self.watch);
        self.tar.entry(name, size, &mut bytes, &mut |_| watch.go_on()).map_err(BackupError::io(name))
    }

    fn realm(&mut self, plan: &Plan, realm: &RealmName) -> Result<RealmPart, BackupError> {
        let what = format!("realm {realm}");
        let copy = plan.scratch.join("copy.db");
        refuse_what_is_lost(&plan.data, realm)?;
        let db = open_reader(&database_path(&plan.data, realm)).map_err(|fault| unusable(&what, fault))?;
        copy_database(&db, &copy, "copying", self.watch).map_err(|error| named(error, &what))?;
        drop(db);
        (self.watch.step)("checking", 0, 0);
        let db = open_reader(&copy).map_err(|fault| unusable(&what, fault))?;
        check_database(&db, &what, self.watch)?;
        let missing = count_missing(&db, &plan.data, realm, self.watch)?;
        drop(db);
        let (bytes, sha256) = self.file(&Member::Database(realm.clone()).name(), &copy)?;
        fs::remove_file(&copy).map_err(BackupError::io(copy.display()))?;
        let mut kept = Attachments { missing, ..Attachments::default() };
        visit_attachments(&plan.data, realm, &mut |folder, hash| {
            self.watch.check()?;
            let name = Member::Attachment(realm.clone(), hash.to_owned()).name();
            let damaged = |why: String| BackupError::Damaged { what: name.clone(), why };
            let bytes = folder
                .read(hash.as_ref(), attachments::MOST_BYTES)
                .map_err(|error| damaged(error.to_string()))?;
            if self.bytes(&name, &bytes)? != hash {
                let why = "its content is not what its name says; remove the file, or bring it back from an \
                           earlier backup";
                return Err(damaged(why.to_owned()));
            }
            kept.files += 1;
            kept.bytes += bytes.len() as u64;
            (self.watch.step)("attachments", kept.files, 0);
            Ok(())
        })?;
        Ok(RealmPart { name: realm.clone(), bytes, sha256, attachments: kept })
    }

    fn file(&mut self, name: &str, path: &Path) -> Result<(u64, String), BackupError> {
        let mut file = File::open(path).map_err(BackupError::io(path.display()))?;
        let size = file.metadata().map_err(BackupError::io(path.display()))?.len();
        let (watch, mut done) = (self.watch, 0);
        let hash = self.tar.entry(name, size, &mut file as &mut dyn Read, &mut |count| {
            done += count;
            (watch.step)("writing", done, size);
            watch.go_on()
        });
        Ok((size, hash.map_err(BackupError::io(name))?))
    }
}

/// A database that lacks what it acknowledged is no good backup. Of one that is in use only its server can tell.
fn refuse_what_is_lost(data: &Path, realm: &RealmName) -> Result<(), BackupError> {
    if matches!(DirectoryLock::take(data), Err(Fault::Locked { .. })) {
        return Ok(());
    }
    check_position(&database_path(data, realm))
        .map_err(|fault| BackupError::Damaged { what: format!("realm {realm}"), why: fault.to_string() })
}

fn unusable(what: &str, fault: Fault) -> BackupError {
    match fault {
        Fault::Database { reason } => BackupError::Damaged { what: what.to_owned(), why: reason },
        other => BackupError::Database(other),
    }
}

fn named(error: BackupError, what: &str) -> BackupError {
    match error {
        BackupError::Damaged { why, .. } => BackupError::Damaged { what: what.to_owned(), why },
        other => other,
    }
}

/// Copies a database at one moment. A held read transaction pins it; without that a busy writer would make the copy start
/// over and over.
pub fn copy_database(
    from: &Connection,
    to: &Path,
    what: &'static str,
    watch: Watch<'_>,
) -> Result<(), BackupError> {
    from.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    let copied = copy_pinned(from, to, what, watch);
    // The connection is closed or used for reading next; either ends the transaction's hold.
    let ended = from.execute_batch("COMMIT").map_err(BackupError::from);
    copied.and(ended)
}

fn copy_pinned(
    from: &Connection,
    to: &Path,
    what: &'static str,
    watch: Watch<'_>,
) -> Result<(), BackupError> {
    private_file(to).map_err(BackupError::io(to.display()))?;
    let mut target = Connection::open(to)?;
    {
        let backup = Backup::new(from, &mut target)?;
        loop {
            watch.check()?;
            let step = backup.step(PAGES)?;
            let progress = backup.progress();
            let (pages, left) = (u64::try_from(progress.pagecount), u64::try_from(progress.remaining));
            if let (Ok(pages), Ok(left)) = (pages, left) {
                (watch.step)(what, pages.saturating_sub(left), pages);
            }
            match step {
                StepResult::Done => break,
                StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(20)),
                _ => {}
            }
        }
    }
    // A copy of a database in WAL mode stays in that mode; as a single file it must not need a log beside it.
    target.pragma_update(None, "journal_mode", "delete")?;
    target.close().map_err(|(_, error)| error.into())
}

/// A new file that only its owner can read.
pub fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Counts the files that messages name and that are not in the store. What a message says of its files is its sender's
/// word, so this is worth a warning and no more.
fn count_missing(
    db: &Connection,
    data: &Path,
    realm: &RealmName,
    watch: Watch<'_>,
) -> Result<u64, BackupError> {
    let store = attachments::folder(data, realm);
    interruptibly(db, watch.stop, |db| -> Result<u64, BackupError> {
        let mut missing = 0;
        let mut naming = db.prepare("SELECT meta FROM messages WHERE instr(meta, '\"attachments\"') > 0")?;
        let mut rows = naming.query([])?;
        while let Some(row) = rows.next()? {
            let meta: String = row.get(0)?;
            let files = attachments::of_meta(&meta);
            missing +=
                files.iter().filter(|file| !attachments::place(&store, &file.sha256).exists()).count() as u64;
        }
        Ok(missing)
    })
}
