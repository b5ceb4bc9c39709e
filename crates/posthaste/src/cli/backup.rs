//! `posthaste backup`: realms, the files of their messages and, if wanted, the keys of the data directory, in one file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::{database_path, list_realms};
use serde::Serialize;

use super::args::{BackupArgs, GlobalArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::output::Output;
use super::replace_file::{refuse_to_replace, settle};
use super::target::Target;
use super::{interruptible, runtime};
use crate::config::Config;
use posthaste_host::backup::{self, BackupError, Manifest, Plan, RealmPart, Watch};
use posthaste_host::units::show_bytes;

/// Writes a backup beside its place, checks it, and puts it there. The server may be running.
pub(super) fn back_up(global: &GlobalArgs, args: &BackupArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &args.realm.office(), &|name| std::env::var_os(name))?;
    let target = Target::of(global)?;
    refuse_to_replace(&args.file, args.force)?;
    let scratch = Scratch::beside(&args.file)?;
    let (manifest, left_out) = match target.url {
        Some(_) => {
            let fetched = fetch(&config, args, &target, &scratch, output)?;
            (fetched, LeftOut { unsent_keys: true, ..LeftOut::default() })
        }
        None => {
            let realms = chosen(&config, args)?;
            let left_out = LeftOut::of(global, &config, &realms, args);
            let data = config.data.value.clone();
            let plan = Plan { data, realms, keys: args.with_keys, scratch: scratch.path().to_owned() };
            (make(plan, scratch.file(), output)?, left_out)
        }
    };
    // Only what was read again and found whole takes the place of an earlier backup.
    let (fresh, shown) = (scratch.file(), output.clone());
    interruptible(move |stop| {
        let bar = Bar::new(&shown);
        Ok(backup::check(&fresh, Watch { stop, step: &|what, done, total| bar.step(what, done, total) })?)
    })?;
    settle(&scratch.file(), &args.file)?;
    tell(args, &manifest, &left_out, output)
}

/// A directory beside the backup's place, gone when the command ends however it ends.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn beside(file: &Path) -> Result<Self, Failure> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = tempfile::Builder::new().prefix(".posthaste-backup-").tempdir_in(parent);
        Ok(Self(made.with_context(|| format!("cannot write in {}", parent.display()))?))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("backup")
    }
}

/// A progress bar that is made anew for each thing that is done.
pub(super) struct Bar<'a> {
    output: &'a Output,
    shown: std::sync::Mutex<Option<(&'static str, indicatif::ProgressBar)>>,
}

impl<'a> Bar<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, shown: std::sync::Mutex::new(None) }
    }

    pub(super) fn step(&self, what: &'static str, done: u64, total: u64) {
        let mut shown = self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if shown.as_ref().is_none_or(|(before, _)| *before != what)
            && let Some((_, bar)) = shown.replace((what, self.output.progress(what, total)))
        {
            bar.finish_and_clear();
        }
        if let Some((_, bar)) = shown.as_ref() {
            bar.set_length(total.max(done));
            bar.set_position(done);
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        let shown = self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, bar)) = shown.as_ref() {
            bar.finish_and_clear();
        }
    }
}

fn chosen(config: &Config, args: &BackupArgs) -> Result<Vec<RealmName>, Failure> {
    let (data, realm) = (&config.data.value, &config.realm.value);
    if args.all {
        let realms = list_realms(data)?;
        return match realms.is_empty() {
            true => Err(Failure::new(Exit::Usage, format!("there are no realms in {}", data.display()))),
            false => Ok(realms),
        };
    }
    if !database_path(data, realm).exists() {
        return Err(Failure::new(Exit::NotFound, format!("there is no realm {realm} in {}", data.display())));
    }
    Ok(vec![realm.clone()])
}

fn make(plan: Plan, file: PathBuf, output: &Output) -> Result<Manifest, Failure> {
    let shown = output.clone();
    interruptible(move |stop| {
        let bar = Bar::new(&shown);
        let watch = Watch { stop, step: &|what, done, total| bar.step(what, done, total) };
        let out = backup::private_file(&file).with_context(|| format!("cannot write {}", file.display()))?;
        let manifest = backup::write(&plan, BufWriter::with_capacity(1 << 18, out), watch);
        manifest.map_err(|error| with_advice(error, &plan).into())
    })
}

/// What to do about a realm that cannot be backed up.
fn with_advice(error: BackupError, plan: &Plan) -> BackupError {
    match error {
        BackupError::Damaged { what, why } => {
            let why = format!(
                "{why}. Nothing was written and an earlier backup is kept; `posthaste --data {} doctor` says what can be done",
                plan.data.display()
            );
            BackupError::Damaged { what, why }
        }
        other => other,
    }
}

/// Asks a running server for the archive.
fn fetch(
    config: &Config,
    args: &BackupArgs,
    target: &Target,
    scratch: &Scratch,
    output: &Output,
) -> Result<Manifest, Failure> {
    if args.with_keys {
        let why =
            "keys are not sent over the network; run `posthaste backup --with-keys` on the server's machine";
        return Err(Failure::new(Exit::Usage, why));
    }
    let Some(server) = target.server(&config.data.value)? else {
        return Err(Failure::new(Exit::Usage, "no server is named"));
    };
    let client = server.client()?;
    let realm = target.realm(config).map(|realm| format!("/r/{realm}")).unwrap_or_default();
    let all = if args.all { "?all=true" } else { "" };
    let path = format!("{realm}{}{all}", posthaste_wire::control::BACKUP_PATH);
    let bar = Bar::new(output);
    runtime()?.block_on(async {
        let mut file = backup::private_file(&scratch.file())?;
        let mut done = 0;
        let mut take = |piece: &[u8]| {
            done += piece.len() as u64;
            bar.step("fetching", done, 0);
            file.write_all(piece)
        };
        let taken = tokio::select! {
            taken = client.download(&path, &mut take) => taken,
            _ = tokio::signal::ctrl_c() => Err(BackupError::Stopped.into()),
        };
        taken.map_err(|failure| match failure.exit {
            Exit::Unreachable if done > 0 => {
                let why = "the server broke the backup off, and its log says why (`posthaste doctor` there finds a \
                           damaged realm); nothing was written";
                Failure::new(Exit::Failed, why)
            }
            _ => failure,
        })
    })?;
    let (file, quiet) = (scratch.file(), std::sync::atomic::AtomicBool::new(false));
    Ok(backup::check(&file, Watch { stop: &quiet, step: &|_, _, _| {} })?)
}

/// A backup that was written, as `--json` prints it.
#[derive(Serialize)]
struct Written<'a> {
    file: &'a Path,
    /// The first realm: from the time when a backup held one.
    realm: Option<&'a RealmName>,
    realms: &'a [RealmPart],
    keys: Vec<&'a str>,
    bytes: u64,
    left_out: &'a LeftOut,
}

/// What the data directory has and the backup does not.
#[derive(Default, Serialize)]
struct LeftOut {
    realms: Vec<RealmName>,
    keys: usize,
    /// The realm that keeps the list of projects, if it is not in the backup.
    #[serde(skip)]
    projects: Option<RealmName>,
    /// Whether a server sent the backup over the network, which is without its keys.
    #[serde(skip)]
    unsent_keys: bool,
}

impl LeftOut {
    fn of(global: &GlobalArgs, config: &Config, realms: &[RealmName], args: &BackupArgs) -> Self {
        let data = &config.data.value;
        let mut others = list_realms(data).unwrap_or_default();
        others.retain(|realm| !realms.contains(realm));
        // The default realm is the one that is configured; a flag may have named another for this command.
        let usual = Config::load(global, &OfficeArgs::default(), &|name| std::env::var_os(name));
        let default = usual.map_or_else(|_| RealmName::main(), |usual| usual.realm.value);
        let projects = others.contains(&default).then_some(default);
        let keys = if args.with_keys { 0 } else { backup::key_files(data).len() };
        Self { realms: others, projects, keys, unsent_keys: false }
    }

    fn tell(&self) {
        if !self.realms.is_empty() {
            let names: Vec<&str> = self.realms.iter().map(RealmName::as_str).take(10).collect();
            eprintln!(
                "left out: {} ({}); --all takes them along",
                counted(self.realms.len() as u64, "other realm"),
                names.join(", ")
            );
        }
        if let Some(realm) = &self.projects {
            eprintln!("left out: the list of projects, which realm {realm} keeps");
        }
        if self.unsent_keys {
            eprintln!(
                "left out: the keys of the server, which are not sent over the network; `posthaste backup --with-keys` on \
                 its machine takes them along"
            );
        }
        if self.keys > 0 {
            eprintln!(
                "left out: {} (admin.token and others). With another admin key the registration tokens of \
                 agents change and sessions of the page end; --with-keys takes the keys along and makes the backup \
                 a secret",
                counted(self.keys as u64, "key file")
            );
        }
    }
}

fn tell(args: &BackupArgs, manifest: &Manifest, left_out: &LeftOut, output: &Output) -> Result<(), Failure> {
    let bytes = std::fs::metadata(&args.file)?.len();
    if output.is_json() {
        return output.json(&Written {
            file: &args.file,
            realm: manifest.realms.first().map(|realm| &realm.name),
            realms: &manifest.realms,
            keys: manifest.keys.iter().map(|key| key.path.as_str()).collect(),
            bytes,
            left_out,
        });
    }
    left_out.tell();
    let missing: u64 = manifest.realms.iter().map(|realm| realm.attachments.missing).sum();
    if missing > 0 {
        eprintln!("warning: {} named by messages and not in the data directory", were(missing, "attachment"));
    }
    if !manifest.keys.is_empty() {
        eprintln!(
            "{} holds {}: it is a secret, since its reader can act as the operator",
            args.file.display(),
            counted(manifest.keys.len() as u64, "key file")
        );
    }
    let files: u64 = manifest.realms.iter().map(|realm| realm.attachments.files).sum();
    let realms = match &manifest.realms[..] {
        [one] => format!("realm {}", one.name),
        many => counted(many.len() as u64, "realm"),
    };
    let files = counted(files, "attachment");
    let text = format!("{} ({}, {realms}, {files})", args.file.display(), show_bytes(bytes));
    Ok(output.line(&text)?)
}

/// A number with its noun, like `1 realm` or `2 realms`.
fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The same with its verb.
pub(super) fn were(number: u64, noun: &str) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { "was" } else { "were" })
}
