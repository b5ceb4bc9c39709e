//! `posthaste export` and `posthaste import`: a whole realm as lines of JSON.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::store::{PortableError, count_rows, open_reader, open_writer, read_rows, write_rows};
use posthaste_engine::{DirectoryLock, Fault, database_path};
use serde::Serialize;

use super::args::GlobalArgs;
use super::args::{ExportArgs, ImportArgs};
use super::exit::{Exit, Failure, OutputError};
use super::imported_tokens::ImportedTokens;
use super::interruptible;
use super::output::Output;
use super::replace_file::{beside, make_private, refuse_to_replace, replace, settle, settle_new, tidy_up};
use super::target::Target as Meant;
use crate::config::Config;
use crate::serve::held;
use posthaste_host::safe_open::make_private_directory;

/// Rows between two looks at the progress bar.
const STRIDE: u64 = 512;

/// Where the lines go.
enum Target {
    Screen,
    File { fresh: PathBuf, place: PathBuf },
}

/// What `export --json` prints.
#[derive(Serialize)]
struct Exported<'a> {
    file: &'a Path,
    rows: u64,
}

/// What `import --json` prints.
#[derive(Serialize)]
struct Imported<'a> {
    realm: &'a RealmName,
    rows: u64,
    tokens: ImportedTokens,
}

pub(super) fn export(global: &GlobalArgs, args: &ExportArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &args.realm.office(), &|name| std::env::var_os(name))?;
    let target = match args.file == Path::new("-") {
        true => Target::Screen,
        false => {
            refuse_to_replace(&args.file, args.force)?;
            Target::File { fresh: beside(&args.file, "partial"), place: args.file.clone() }
        }
    };
    let meant = Meant::of(global)?;
    let rows = match meant.url.is_some() || meant.token.is_some() {
        true => fetch(&config, &meant, &target)?,
        false => copy_out(&config, &target, output)?,
    };
    match (&target, output.is_json()) {
        (Target::Screen, _) => Ok(()),
        (Target::File { place, .. }, true) => output.json(&Exported { file: place, rows }),
        (Target::File { place, .. }, false) => {
            Ok(output.line(&format!("{} ({rows} rows)", place.display()))?)
        }
    }
}

/// Reads the database of the data directory, whether or not a server has it open: reading never waits for writing.
fn copy_out(config: &Config, target: &Target, output: &Output) -> Result<u64, Failure> {
    let (data, realm) = (&config.data.value, config.realm.value.to_string());
    let source = database_path(data, &config.realm.value);
    if !source.exists() {
        let text = format!("there is no realm {realm} in {}", data.display());
        return Err(Failure::new(Exit::NotFound, text));
    }
    let database = open_reader(&source)?;
    let bar = output.progress("exporting", count_rows(&database)?);
    let (fresh, place) = match target {
        Target::Screen => (None, None),
        Target::File { fresh, place } => (Some(fresh.clone()), Some(place.clone())),
    };
    interruptible(move |stop| {
        let mut each = |row: u64| {
            if row.is_multiple_of(STRIDE) {
                bar.set_position(row);
            }
            !stop.load(Ordering::Relaxed)
        };
        let (Some(fresh), Some(place)) = (fresh, place) else {
            let mut out = BufWriter::new(io::stdout().lock());
            return write_rows(&database, &realm, &mut out, &mut each).map_err(|error| match error {
                PortableError::Stream(error) => OutputError(error).into(),
                other => failure(other),
            });
        };
        let written = private_file(&fresh).and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 18, file);
            write_rows(&database, &realm, &mut out, &mut each).map_err(failure)
        });
        bar.finish_and_clear();
        match written {
            Ok(rows) => tidy_up(settle(&fresh, &place), &fresh).map(|()| rows),
            Err(error) => tidy_up(Err(error), &fresh).map(|()| 0),
        }
    })
}

/// Asks a server for its lines. A caller that shows a token is that token's bearer, so the database is not read past it.
fn fetch(config: &Config, meant: &Meant, target: &Target) -> Result<u64, Failure> {
    let Some(server) = meant.server(&config.data.value)? else {
        let text = "a token is given, but no server is running that could check it; start one with `posthaste serve`, or \
                    leave the token out to read the data directory as its owner";
        return Err(Failure::new(Exit::Unreachable, text));
    };
    let client = server.client()?;
    let realm = meant.realm(config).map(|realm| format!("/r/{realm}")).unwrap_or_default();
    let path = format!("{realm}{}", posthaste_wire::control::EXPORT_PATH);
    super::runtime()?.block_on(async {
        let mut rows = Counted::default();
        match target {
            Target::Screen => {
                client
                    .download(&path, &mut |piece| {
                        rows.look(piece);
                        io::stdout().lock().write_all(piece)
                    })
                    .await?;
            }
            Target::File { fresh, place } => {
                let mut file = private_file(fresh)?;
                let taken = client
                    .download(&path, &mut |piece| {
                        rows.look(piece);
                        file.write_all(piece)
                    })
                    .await;
                let whole = taken.and_then(|()| match rows.is_sealed() {
                    true => settle(fresh, place),
                    false => Err(Failure::new(Exit::Failed, "the answer was cut off; nothing was written")),
                });
                tidy_up(whole, fresh)?;
            }
        }
        Ok(rows.lines.saturating_sub(2))
    })
}

/// Counts lines and remembers how the last one began.
#[derive(Default)]
struct Counted {
    lines: u64,
    tail: Vec<u8>,
}

impl Counted {
    fn look(&mut self, piece: &[u8]) {
        self.lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(200)..]);
        let cut = self.tail.len().saturating_sub(200);
        self.tail.drain(..cut);
    }

    fn is_sealed(&self) -> bool {
        let text = String::from_utf8_lossy(&self.tail);
        text.ends_with('\n')
            && text.trim_end().lines().last().is_some_and(|line| line.starts_with("{\"end\""))
    }
}

/// Makes a realm of the lines. The data directory is locked meanwhile; beside a running server only a realm
/// that it does not have yet can be made, which it opens when it is first asked for it.
pub(super) fn import(global: &GlobalArgs, args: &ImportArgs, output: &Output) -> Result<(), Failure> {
    let flags = super::args::OfficeArgs { realm: args.realm.clone(), ..Default::default() };
    let config = Config::load(global, &flags, &|name| std::env::var_os(name))?;
    let data = &config.data.value;
    let place = database_path(data, &config.realm.value);
    let (input, bytes): (Box<dyn BufRead + Send>, u64) = match args.file == Path::new("-") {
        true => (Box::new(BufReader::new(io::stdin())), 0),
        false => {
            let file =
                File::open(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
            let bytes = file.metadata()?.len();
            (Box::new(BufReader::with_capacity(1 << 18, file)), bytes)
        }
    };
    make_private_directory(data)?;
    make_private_directory(&posthaste_engine::realms_in(data))?;
    let lock = match DirectoryLock::take(data) {
        Ok(lock) => Some(lock),
        Err(Fault::Locked { .. }) if !place.exists() => None,
        Err(fault) => return Err(held(fault)),
    };
    refuse_to_replace(&place, args.force)?;
    let bar = output.progress("importing", bytes);
    let without_tokens = args.without_tokens;
    let (rows, tokens) = interruptible(move |stop| {
        // Without the lock another import may be at it, too.
        let fresh = beside(&place, &format!("{}.imported", std::process::id()));
        let made = read_in(&fresh, input, without_tokens, stop, &bar);
        bar.finish_and_clear();
        let put = |fresh: &Path| match lock {
            Some(_) => replace(fresh, &place),
            None => settle_new(fresh, &place),
        };
        let made = tidy_up(made.and_then(|made| put(&fresh).map(|()| made)), &fresh);
        drop(lock);
        made
    })?;
    tokens.tell(output);
    let realm = &config.realm.value;
    if output.is_json() {
        return output.json(&Imported { realm, rows, tokens });
    }
    Ok(output.line(&format!("realm {realm} is made of {rows} rows"))?)
}

fn read_in(
    fresh: &Path,
    input: Box<dyn BufRead + Send>,
    without_tokens: bool,
    stop: &AtomicBool,
    bar: &indicatif::ProgressBar,
) -> Result<(u64, ImportedTokens), Failure> {
    for tail in ["", "-wal", "-shm", "-journal"] {
        let mut name = fresh.as_os_str().to_owned();
        name.push(tail);
        drop(std::fs::remove_file(name));
    }
    let mut database = open_writer(fresh)?;
    make_private(fresh)?;
    let mut input = BufReader::new(Metered { input, bar: bar.clone() });
    let rows =
        read_rows(&mut database, &mut input, &mut |_| !stop.load(Ordering::Relaxed)).map_err(failure)?;
    let tokens = ImportedTokens::count(&database, without_tokens)?;
    // As a single file it must not need a log beside it.
    database.pragma_update(None, "journal_mode", "delete")?;
    database.close().map_err(|(_, error)| error)?;
    Ok((rows, tokens))
}

/// A stream that moves the bar along.
struct Metered {
    input: Box<dyn BufRead + Send>,
    bar: indicatif::ProgressBar,
}

impl io::Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

fn private_file(path: &Path) -> Result<File, Failure> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    make_private(path)?;
    Ok(file)
}

fn failure(error: PortableError) -> Failure {
    let exit = match &error {
        PortableError::Stopped => Exit::Interrupted,
        PortableError::Damaged { .. } => Exit::Usage,
        PortableError::Stream(_) | PortableError::Database(_) => Exit::Failed,
    };
    Failure::new(exit, error)
}
