//! `posthaste backup` and `posthaste restore`: a realm in one file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use posthaste_engine::store::{check_integrity, forget_position, open_reader, open_writer};
use posthaste_engine::{DirectoryLock, books_of, stamp};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use serde_json::json;

use super::args::{BackupArgs, GlobalArgs, RestoreArgs};
use super::carried_tokens::Carried;
use super::exit::{Exit, Failure};
use super::human::show_bytes;
use super::interruptible;
use super::output::Output;
use crate::config::Config;
use crate::serve::{held, make_private_directory};

/// Pages copied between two looks at the progress bar.
const PAGES: i32 = 1_024;

/// Copies a realm while the office goes on. The copy shows one moment: reading never waits for writing.
pub(super) fn back_up(global: &GlobalArgs, args: &BackupArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &args.realm.office(), &|name| std::env::var_os(name))?;
    let source = books_of(&config.data.value, &config.realm.value);
    if !source.exists() {
        return Err(Failure::new(
            Exit::Usage,
            format!("there is no realm {} in {}", config.realm.value, config.data.value.display()),
        ));
    }
    refuse_to_replace(&args.file, args.force)?;
    let books = open_reader(&source)?;
    // A held read transaction pins the moment; without it a busy writer would make the copy start over and over.
    books.execute_batch("BEGIN; SELECT count(*) FROM meta;").context("cannot read the books")?;
    let (file, shown) = (args.file.clone(), output.clone());
    interruptible(move |stop| {
        let fresh = beside(&file, "partial");
        let copied = copy(&books, &fresh, "backing up", &shown, stop).and_then(|()| settle(&fresh, &file));
        tidy_up(copied, &fresh)
    })?;
    let bytes = fs::metadata(&args.file)?.len();
    if output.is_json() {
        return output.json(&json!({ "file": args.file, "realm": config.realm.value, "bytes": bytes }));
    }
    Ok(output.line(&format!("{} ({})", args.file.display(), show_bytes(bytes)))?)
}

/// Puts a backup in a realm's place. The office must be closed: its lock is taken for as long as this lasts.
pub(super) fn restore(global: &GlobalArgs, args: &RestoreArgs, output: &Output) -> Result<(), Failure> {
    let (args, without_tokens) = (&args.backup, args.without_tokens);
    let config = Config::load(global, &args.realm.office(), &|name| std::env::var_os(name))?;
    let data = &config.data.value;
    let target = books_of(data, &config.realm.value);
    let kept = open_reader(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    if let Some(problem) = check_integrity(&kept)?.first() {
        return Err(Failure::new(Exit::Unhealthy, format!("{} is damaged: {problem}", args.file.display())));
    }
    let is_realm: bool = kept.query_row(
        "SELECT count(*) = 2 FROM sqlite_schema WHERE name IN ('meta', 'events')",
        [],
        |row| row.get(0),
    )?;
    if !is_realm {
        return Err(Failure::new(Exit::Usage, format!("{} is not a backup of a realm", args.file.display())));
    }
    for directory in [data.clone(), posthaste_engine::realms_in(data)] {
        make_private_directory(&directory)?;
        // One that was there before may be open to others.
        close_to_others(&directory)?;
    }
    let lock = DirectoryLock::take(data).map_err(held)?;
    refuse_to_replace(&target, args.force)?;
    let shown = output.clone();
    let tokens = interruptible(move |stop| {
        let fresh = beside(&target, "restored");
        let copied = copy(&kept, &fresh, "restoring", &shown, stop)
            .and_then(|()| begin_history(&fresh, without_tokens))
            .and_then(|tokens| replace(&fresh, &target).map(|()| tokens));
        drop(lock);
        tidy_up(copied, &fresh)
    })?;
    tokens.tell(output);
    if output.is_json() {
        return output
            .json(&json!({ "file": args.file, "realm": config.realm.value, "tokens": tokens.json() }));
    }
    Ok(output.line(&format!("realm {} is restored from {}", config.realm.value, args.file.display()))?)
}

fn copy(
    from: &Connection,
    to: &Path,
    what: &'static str,
    output: &Output,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    drop(fs::remove_file(to));
    let mut target = Connection::open(to).with_context(|| format!("cannot write {}", to.display()))?;
    make_private(to)?;
    {
        let backup = Backup::new(from, &mut target)?;
        let mut bar = None;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::new(Exit::Interrupted, "interrupted; nothing was changed"));
            }
            let step = backup.step(PAGES)?;
            let progress = backup.progress();
            let (pages, left) = (u64::try_from(progress.pagecount), u64::try_from(progress.remaining));
            if let (Ok(pages), Ok(left)) = (pages, left) {
                bar.get_or_insert_with(|| output.progress(what, pages))
                    .set_position(pages.saturating_sub(left));
            }
            match step {
                StepResult::Done => break,
                StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(20)),
                _ => {}
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }
    // A copy of books in WAL mode stays in that mode; as a single file it must not need a log beside it.
    target.pragma_update(None, "journal_mode", "delete")?;
    target.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Restored books are another history from here on: cursors into the old one must be told apart.
fn begin_history(path: &Path, without_tokens: bool) -> Result<Carried, Failure> {
    let books = open_writer(path)?;
    let tokens = Carried::look(&books, without_tokens)?;
    books
        .execute("UPDATE meta SET value = ?1 WHERE key = 'history'", [stamp::Stamp::new().id.to_string()])?;
    books.pragma_update(None, "journal_mode", "delete")?;
    books.close().map_err(|(_, error)| error)?;
    Ok(tokens)
}

/// Puts new books in the place of old ones. What the old ones had in their log must not be read into the new ones.
pub(super) fn replace(fresh: &Path, target: &Path) -> Result<(), Failure> {
    for tail in ["-wal", "-shm"] {
        match fs::remove_file(with_tail(target, tail)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    forget_position(target)?;
    settle(fresh, target)
}

/// Leaves nothing half-made behind.
pub(super) fn tidy_up<T>(copied: Result<T, Failure>, fresh: &Path) -> Result<T, Failure> {
    if copied.is_err() {
        for tail in ["", "-wal", "-shm", "-journal"] {
            drop(fs::remove_file(with_tail(fresh, tail)));
        }
    }
    copied
}

/// Moves a finished file into its place so that it survives a power cut from then on.
pub(super) fn settle(fresh: &Path, place: &Path) -> Result<(), Failure> {
    File::open(fresh)?.sync_all()?;
    fs::rename(fresh, place)?;
    if let Some(directory) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// The same, unless something is in that place.
pub(super) fn settle_new(fresh: &Path, place: &Path) -> Result<(), Failure> {
    File::open(fresh)?.sync_all()?;
    // A second name is given only where there is none.
    fs::hard_link(fresh, place).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Held, format!("{} was made meanwhile", place.display()))
        }
        _ => error.into(),
    })?;
    fs::remove_file(fresh)?;
    if let Some(directory) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

pub(super) fn refuse_to_replace(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        return Err(Failure::new(Exit::Usage, format!("{} exists; --force replaces it", path.display())));
    }
    Ok(())
}

pub(super) fn beside(path: &Path, tail: &str) -> PathBuf {
    with_tail(path, &format!(".{tail}"))
}

fn with_tail(path: &Path, tail: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(tail);
    name.into()
}

/// Mail is for its owner's eyes, in a backup too.
/// Leaves a directory to its owner.
fn close_to_others(directory: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(directory)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode & 0o7700))?;
        }
    }
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
