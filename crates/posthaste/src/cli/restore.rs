//! `posthaste restore`: brings realms back from a backup. Everything is unpacked, checked and made ready beside its place
//! first; then it is put there by renaming.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::store::{open_reader, open_writer};
use posthaste_engine::{DirectoryLock, Fault, database_path, stamp};
use serde::Serialize;

use super::args::{GlobalArgs, RestoreArgs};
use super::backup::{Bar, were};
use super::exit::{Exit, Failure};
use super::imported_tokens::ImportedTokens;
use super::interruptible;
use super::output::Output;
use super::replace_file::{close_to_others, refuse_to_replace, replace, settle, settle_new, with_tail};
use crate::config::Config;
use crate::serve::held;
use posthaste_host::attachments;
use posthaste_host::backup::{self, Manifest, Member, Unpacked, Watch};
use posthaste_host::safe_open::make_private_directory;

/// One realm on its way: what the backup calls it, and the name it gets.
#[derive(Clone, Debug)]
struct Move {
    from: RealmName,
    to: RealmName,
}

/// What became of the keys of a backup.
#[derive(Debug, Default, Serialize)]
struct Keys {
    #[serde(rename = "restored")]
    put: Vec<String>,
    /// The data directory has others in their place.
    kept: Vec<String>,
    /// The admin key here is another than the one of the backup.
    #[serde(rename = "another_admin_key")]
    another_admin: bool,
}

/// What `--json` prints. `realm` and `tokens` are those of the first realm.
#[derive(Serialize)]
struct Restored<'a> {
    file: &'a Path,
    realm: Option<&'a str>,
    realms: Vec<RestoredRealm<'a>>,
    tokens: Option<ImportedTokens>,
    keys: &'a Keys,
}

#[derive(Serialize)]
struct RestoredRealm<'a> {
    name: &'a RealmName,
    tokens: ImportedTokens,
}

pub(super) fn restore(global: &GlobalArgs, args: &RestoreArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &args.realm.office(), &|name| std::env::var_os(name))?;
    let data = &config.data.value;
    let is_database =
        backup::is_database(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let moves = match is_database {
        // A plain database does not say which realm it was.
        true => {
            let to = match &args.new_name {
                Some(name) => RealmName::new(name).map_err(|error| Failure::new(Exit::Usage, error))?,
                None => config.realm.value.clone(),
            };
            vec![Move { from: to.clone(), to }]
        }
        false => choose(&backup::read_head(&args.file)?.realms, args)?,
    };
    make_private_directory(data)?;
    let lock = match DirectoryLock::take(data) {
        Ok(lock) => Some(lock),
        Err(fault @ Fault::Locked { .. }) => {
            refuse_beside_server(data, &moves, fault)?;
            None
        }
        Err(fault) => return Err(held(fault)),
    };
    for realm in &moves {
        refuse_to_replace(&database_path(data, &realm.to), args.force)?;
    }
    for folder in [data.clone(), posthaste_engine::realms_in(data), data.join("attachments")] {
        make_private_directory(&folder)?;
        // One that was there before may be open to others.
        close_to_others(&folder)?;
    }
    let job = Job { data: data.clone(), moves, args: args.clone(), lock };
    let shown = output.clone();
    let (done, keys, manifest) = interruptible(move |stop| {
        let bar = Bar::new(&shown);
        job.run(is_database, Watch { stop, step: &|what, done, total| bar.step(what, done, total) })
    })?;
    tell(args, &done, &keys, &manifest, output)
}

/// Which realms of a backup are wanted, and under which names.
fn choose(held: &[RealmName], args: &RestoreArgs) -> Result<Vec<Move>, Failure> {
    let usage = |text: String| Err(Failure::new(Exit::Usage, text));
    let names = || held.iter().map(RealmName::as_str).collect::<Vec<_>>().join(", ");
    let named = |text: &str| RealmName::new(text).map_err(|error| Failure::new(Exit::Usage, error));
    if args.all {
        return Ok(held.iter().map(|name| Move { from: name.clone(), to: name.clone() }).collect());
    }
    let given = args.realm.realm.as_deref().map(named).transpose()?;
    let new_name = args.new_name.as_deref().map(named).transpose()?;
    let from = match (&given, held) {
        (Some(given), _) if held.contains(given) => given.clone(),
        // The only realm of a backup can be brought back under another name.
        (Some(given), [only]) if new_name.is_none() => {
            return Ok(vec![Move { from: only.clone(), to: given.clone() }]);
        }
        (Some(given), _) => return usage(format!("the backup has no realm {given}; it has {}", names())),
        (None, [only]) => only.clone(),
        (None, _) => {
            return usage(format!(
                "the backup holds {} realms ({}): choose one with --realm NAME, or all with --all",
                held.len(),
                names()
            ));
        }
    };
    let to = new_name.unwrap_or_else(|| from.clone());
    Ok(vec![Move { from, to }])
}

/// Beside a running server only realms can be made that it does not have: it opens them when it is first asked for them.
fn refuse_beside_server(data: &Path, moves: &[Move], fault: Fault) -> Result<(), Failure> {
    let there = |realm: &&Move| {
        let database = database_path(data, &realm.to);
        // A log or a noted position without a database: the server may have the realm open although its file is gone.
        database.exists() || with_tail(&database, "-wal").exists() || with_tail(&database, ".pos").exists()
    };
    match moves.iter().find(there) {
        None => Ok(()),
        Some(realm) => {
            let why = format!(
                "{fault}, and realm {} exists there. Stop the server first, or restore beside it under another name \
                 (--as NAME)",
                realm.to
            );
            Err(Failure::new(Exit::Held, why))
        }
    }
}

/// All that a restore needs on its thread. The directory is held for as long as it lasts.
struct Job {
    data: PathBuf,
    moves: Vec<Move>,
    args: RestoreArgs,
    lock: Option<DirectoryLock>,
}

type Done = BTreeMap<RealmName, ImportedTokens>;

impl Job {
    fn run(self, is_database: bool, watch: Watch<'_>) -> Result<(Done, Keys, Manifest), Failure> {
        let staging = tempfile::Builder::new().prefix(".restore-").tempdir_in(&self.data)?;
        let unpacked = match is_database {
            true => self.adopt(staging.path(), watch)?,
            false => {
                let wanted = |member: &Member| match member {
                    Member::Database(realm) | Member::Attachment(realm, _) => {
                        self.moves.iter().any(|one| one.from == *realm)
                    }
                    Member::Key(_) => true,
                };
                backup::unpack(&self.args.file, staging.path(), &wanted, watch)?
            }
        };
        let mut done = Done::new();
        for realm in &self.moves {
            let path = unpacked.database(&realm.from);
            done.insert(realm.to.clone(), self.prepare(&path, &realm.from, watch)?);
        }
        // From here on there are only renames, and Ctrl-C comes too late.
        let keys = self.put_keys(&unpacked)?;
        for realm in &self.moves {
            self.put_attachments(&unpacked.folder, realm)?;
            let (fresh, place) = (unpacked.database(&realm.from), database_path(&self.data, &realm.to));
            match self.lock {
                Some(_) => replace(&fresh, &place)?,
                None => settle_new(&fresh, &place)?,
            }
        }
        Ok((done, keys, unpacked.manifest))
    }

    /// A plain database, as backups were before they were archives.
    fn adopt(&self, staging: &Path, watch: Watch<'_>) -> Result<Unpacked, Failure> {
        let file = &self.args.file;
        let kept = open_reader(file).with_context(|| format!("cannot read {}", file.display()))?;
        backup::check_database(&kept, &file.display().to_string(), watch)?;
        let unpacked = Unpacked { manifest: Manifest::default(), folder: staging.to_owned() };
        for realm in &self.moves {
            let path = unpacked.database(&realm.from);
            make_private_directory(path.parent().unwrap_or(staging))?;
            backup::copy_database(&kept, &path, "copying", watch)?;
        }
        Ok(unpacked)
    }

    /// Checks a database and makes it another history: cursors into the old one must be told apart.
    fn prepare(&self, path: &Path, realm: &RealmName, watch: Watch<'_>) -> Result<ImportedTokens, Failure> {
        (watch.step)("checking", 0, 0);
        let database = open_reader(path)?;
        backup::check_database(&database, &format!("realm {realm} in {}", self.args.file.display()), watch)?;
        drop(database);
        let database = open_writer(path)?;
        let tokens = ImportedTokens::count(&database, self.args.without_tokens)?;
        database.execute(
            "UPDATE meta SET value = ?1 WHERE key = 'history'",
            [stamp::Stamp::new().id.to_string()],
        )?;
        database.pragma_update(None, "journal_mode", "delete")?;
        database.close().map_err(|(_, error)| error)?;
        Ok(tokens)
    }

    /// Files are named by their content, so those that are there already are the same, and others do no harm.
    fn put_attachments(&self, staging: &Path, realm: &Move) -> Result<(), Failure> {
        let target = attachments::folder(&self.data, &realm.to);
        backup::visit_attachments(staging, &realm.from, &mut |_, hash| {
            let from = attachments::place(&attachments::folder(staging, &realm.from), hash);
            let to = attachments::place(&target, hash);
            let put =
                make_private_directory(to.parent().unwrap_or(&target)).and_then(|()| fs::rename(&from, &to));
            put.map_err(|error| backup::BackupError::Io { what: to.display().to_string(), error })
        })?;
        Ok(())
    }

    /// Keys go where there are none; others are replaced with --force only, and never under a running server.
    fn put_keys(&self, unpacked: &Unpacked) -> Result<Keys, Failure> {
        let mut keys = Keys::default();
        for key in &unpacked.manifest.keys {
            let (from, to) = (unpacked.key(&key.path), self.data.join(&key.path));
            if let Some(parent) = to.parent().filter(|parent| *parent != self.data) {
                make_private_directory(parent)?;
            }
            if !to.exists() {
                settle_new(&from, &to)?;
            } else if fs::read(&to).is_ok_and(|there| fs::read(&from).is_ok_and(|kept| kept == there)) {
                continue;
            } else if self.args.force && self.lock.is_some() {
                settle(&from, &to)?;
            } else {
                keys.kept.push(key.path.clone());
                continue;
            }
            keys.put.push(key.path.clone());
        }
        let (theirs, ours) = (&unpacked.manifest.admin_key, backup::admin_key_name(&self.data));
        keys.another_admin = theirs.is_some() && *theirs != ours;
        Ok(keys)
    }
}

fn tell(
    args: &RestoreArgs,
    done: &Done,
    keys: &Keys,
    manifest: &Manifest,
    output: &Output,
) -> Result<(), Failure> {
    let names: Vec<&str> = done.keys().map(RealmName::as_str).collect();
    if output.is_json() {
        return output.json(&Restored {
            file: &args.file,
            realm: names.first().copied(),
            realms: done.iter().map(|(name, tokens)| RestoredRealm { name, tokens: *tokens }).collect(),
            tokens: done.values().next().copied(),
            keys,
        });
    }
    for tokens in done.values() {
        tokens.tell(output);
    }
    if !keys.put.is_empty() {
        eprintln!("keys restored: {}", keys.put.join(", "));
    }
    if !keys.kept.is_empty() {
        eprintln!(
            "kept, although the backup has others: {}; with the server stopped, --force replaces them",
            keys.kept.join(", ")
        );
    }
    if keys.another_admin {
        let how = match manifest.keys.is_empty() {
            true => "a backup made with --with-keys carries it over",
            false => "with the server stopped, --force puts it back",
        };
        eprintln!(
            "note: the data directory does not have the admin key of the backup: registration tokens that agents had from \
             the old server are not valid here ({how})"
        );
    }
    let missing: u64 = manifest.realms.iter().map(|realm| realm.attachments.missing).sum();
    if missing > 0 {
        eprintln!("warning: {} not there when the backup was made", were(missing, "attachment"));
    }
    for name in names {
        output.line(&format!("realm {name} is restored from {}", args.file.display()))?;
    }
    Ok(())
}
