//! The one writer of a realm's database. It takes a batch of commands, applies them in one transaction, commits, and publishes.
//!
//! `queue` is where commands wait, `window` says when a batch closes, `effects` and `fulltext` are what commands write,
//! `checkpoint` keeps the WAL short, `publish` is what happens after the sync.

mod checkpoint;
mod effects;
mod fulltext;
mod publish;
mod queue;
mod window;
mod write_cache;

pub(crate) use effects::{Effects, NewDelivery, NewTurn};
pub(crate) use queue::{CallerKey, FairQueue, Marker, QueuedCommand, Room, TAKE_AT_ONCE, Wanted};
pub(crate) use write_cache::WriteCache;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tracing::{debug, error, warn};

use self::checkpoint::Checkpointer;
use self::fulltext::UnindexedTexts;
use self::window::Batch;
use crate::error::{EngineError, Fault, Refusal};
use crate::file_identity::DatabaseFiles;
use crate::hub::Hub;
use crate::limits::{Limits, Rules};
use crate::liveness::Liveness;
use crate::lock::DirectoryLock;
use crate::log::{Record, Source};
use crate::meter::Meter;
use crate::nouns::{Millis, RealmName, Seq};
use crate::store::{Db, Position, check_position, exec, one, open_writer, passive_checkpoint};
use crate::usage;
use crate::verbs::{BatchState, Command, Decided, Outcome, Stop, Write};
use crate::views;

/// Why a realm accepts no more writes. Set once; read by health checks.
pub(crate) type Poison = Arc<OnceLock<String>>;

/// What a command is answered.
type Answer = Result<Outcome, EngineError>;

/// The writing side of a realm. Runs on its own thread.
pub(crate) struct Writer {
    realm: RealmName,
    db: Connection,
    rules: Rules,
    /// The time of the last event; time never runs backwards along the event log. Like everything that decides outcomes it
    /// can be read from the database, so a restart changes nothing.
    clock: Millis,
    effects: RefCell<Effects>,
    cache: RefCell<WriteCache>,
    hub: Arc<Hub>,
    meter: Arc<Meter>,
    liveness: Arc<Liveness>,
    poison: Poison,
    batch_limit: usize,
    batch_open: Duration,
    /// Callers that may come back for the next batch, and how long the last commit took.
    expected: usize,
    last_commit: Duration,
    checkpointer: Checkpointer,
    files: Arc<DatabaseFiles>,
    position: PositionFile,
    /// The directory stays locked while the writer may write into it.
    _lock: Option<Arc<DirectoryLock>>,
    #[cfg(feature = "testing")]
    watch: Option<crate::testing::Watch>,
}

impl Writer {
    /// Opens the database, creating it if it does not exist.
    #[expect(
        clippy::too_many_arguments,
        reason = "what the writer shares with the handles, each made by the engine"
    )]
    pub(crate) fn open(
        path: &Path,
        realm: RealmName,
        limits: &Limits,
        hub: Arc<Hub>,
        meter: Arc<Meter>,
        liveness: Arc<Liveness>,
        poison: Poison,
        lock: Option<Arc<DirectoryLock>>,
    ) -> Result<Self, Fault> {
        check_position(path)?;
        let mut db = open_writer(path)?;
        let checkpointer = Checkpointer::take_over(&mut db, path)?;
        // Another process's lock on the file is waited for as long as room in the queue is.
        db.busy_timeout(limits.queue_wait)?;
        let history = history_name(&db)?;
        let last = views::head(Db::new(&db))?;
        let sql = "SELECT at FROM events WHERE seq = ?1";
        let clock = one(Db::new(&db), sql, [last], |row| row.get(0))?.unwrap_or(0);
        // A clock that was put back while the server was down must not bring ids back.
        crate::stamp::ids_after(clock);
        let rules = views::rules(Db::new(&db))?;
        let texts = UnindexedTexts::read(&db)?;
        hub.start_at(last);
        Ok(Self {
            realm,
            db,
            rules,
            clock,
            effects: RefCell::new(Effects::after(last, texts)),
            cache: RefCell::default(),
            hub,
            meter,
            liveness,
            poison,
            batch_limit: limits.batch_commands.max(1),
            batch_open: limits.batch_open,
            expected: 0,
            last_commit: Duration::ZERO,
            checkpointer,
            files: Arc::new(DatabaseFiles::new(path)),
            position: PositionFile::new(path, history, last),
            _lock: lock,
            #[cfg(feature = "testing")]
            watch: None,
        })
    }

    /// The files that it writes into.
    pub(crate) fn files(&self) -> Arc<DatabaseFiles> {
        self.files.clone()
    }

    /// Lets a test look at each command before it is applied.
    #[cfg(feature = "testing")]
    pub(crate) fn watched(mut self, watch: crate::testing::Watch) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Starts the thread. It ends when the source does, after everything taken has been answered.
    pub(crate) fn start(mut self, mut source: impl Source) -> std::io::Result<JoinHandle<()>> {
        let name = format!("writer {}", self.realm);
        std::thread::Builder::new().name(name).spawn(move || {
            // A panic in a verb is caught with its batch; any other must not look like health.
            if catch_unwind(AssertUnwindSafe(|| self.run(&mut source))).is_err() {
                drop(self.set_poison("the writer panicked".to_owned()));
            }
        })
    }

    /// Commits batches until the source ends, on this thread.
    pub(crate) fn run(&mut self, source: &mut impl Source) {
        let mut batch = Vec::new();
        while source.take(&mut batch, self.batch_limit) {
            let opened = Instant::now();
            self.liveness.batch_begins();
            let (answers, was_busy) = match self.poison.get() {
                Some(reason) => {
                    (self.same_for_all(&batch, Fault::Poisoned { reason: reason.clone() }), false)
                }
                None => self.commit(&mut batch, opened, source),
            };
            if self.poison.get().is_none() {
                self.meter.note_batch(batch.len(), opened.elapsed());
            }
            let is_idle = batch.iter().all(|queued| matches!(queued.record.command, Command::Sweep(_)));
            let events = self.effects.get_mut().take_events();
            publish::publish(&self.hub, &self.meter, &mut batch, answers, events);
            if self.poison.get().is_none() {
                self.checkpointer.checkpoint_if_due(&self.db);
                self.note_position(is_idle);
            }
            if !was_busy {
                self.liveness.batch_ends();
            }
        }
        self.close();
    }

    /// Applies a batch and commits it; returns an answer for each command, and whether the database was locked by another
    /// process. Answers leave only after this returns, refusals too: a refusal may depend on a row of the same batch.
    ///
    /// If a command fails or panics, the batch is rolled back and its commands are committed one by one, so that only the
    /// failing one is left out.
    fn commit(
        &mut self,
        batch: &mut Vec<QueuedCommand>,
        opened: Instant,
        source: &mut impl Source,
    ) -> (Vec<Answer>, bool) {
        let committed = match self.transact(batch, Some((opened, source))) {
            Err(BatchError::Command(_)) if batch.len() > 1 => self.commit_one_by_one(batch),
            committed => committed,
        };
        // Nothing is acknowledged that went into files which are no longer there to be opened again.
        let committed = committed.and_then(|answers| match self.files.check() {
            Ok(()) => Ok(answers),
            Err(reason) => Err(BatchError::Storage(reason)),
        });
        match committed {
            Ok(answers) => (answers, false),
            Err(BatchError::Command(error)) => (vec![Err(error)], false),
            Err(BatchError::Busy) => {
                warn!(realm = %self.realm, "another process holds the database; a batch was refused");
                (self.same_for_all(batch, Refusal::Busy), true)
            }
            Err(BatchError::Storage(reason)) => {
                let poisoned = self.set_poison(reason);
                self.effects.get_mut().take_events();
                (self.same_for_all(batch, poisoned), false)
            }
        }
    }

    /// Each command in its own transaction. Those that fail are answered with their failure.
    fn commit_one_by_one(&mut self, batch: &mut Vec<QueuedCommand>) -> Result<Vec<Answer>, BatchError> {
        let mut answers = Vec::with_capacity(batch.len());
        for queued in std::mem::take(batch) {
            batch.push(queued);
            let mut alone = batch.split_off(batch.len() - 1);
            let committed = self.transact(&mut alone, None::<(Instant, &mut crate::log::Local)>);
            batch.append(&mut alone);
            match committed {
                Ok(mut answer) => answers.append(&mut answer),
                Err(BatchError::Command(error)) => answers.push(Err(error)),
                // Those before it are committed and must not be told otherwise.
                Err(BatchError::Busy) => answers.push(Err(Refusal::Busy.into())),
                Err(storage @ BatchError::Storage(_)) => return Err(storage),
            }
        }
        Ok(answers)
    }

    /// One transaction. With a source, commands that arrive meanwhile join the batch. An error rolls everything back.
    fn transact(
        &mut self,
        batch: &mut Vec<QueuedCommand>,
        source: Option<(Instant, &mut impl Source)>,
    ) -> Result<Vec<Answer>, BatchError> {
        let before = (self.clock, self.rules.clone());
        let applied =
            catch_unwind(AssertUnwindSafe(|| self.apply_and_commit(batch, source))).unwrap_or_else(|_| {
                error!(realm = %self.realm, "a command panicked; its batch is rolled back");
                Err(BatchError::Command(panicked()))
            });
        if applied.is_err() {
            self.effects.get_mut().roll_back();
            *self.cache.get_mut() = WriteCache::default();
            (self.clock, self.rules) = before;
            if !self.db.is_autocommit() {
                self.run_sql("ROLLBACK")?;
            }
        }
        applied
    }

    fn apply_and_commit(
        &mut self,
        batch: &mut Vec<QueuedCommand>,
        mut source: Option<(Instant, &mut impl Source)>,
    ) -> Result<Vec<Answer>, BatchError> {
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(|error| match error.sqlite_error_code() {
            // Nothing was tried yet, so nothing failed: the callers may try again.
            Some(ErrorCode::DatabaseBusy) => BatchError::Busy,
            _ => BatchError::Storage(error.to_string()),
        })?;
        let mut answers = Vec::with_capacity(batch.len());
        let mut is_awaited = false;
        loop {
            for queued in &batch[answers.len()..] {
                is_awaited |= queued.answer.is_some();
                answers.push(match queued.begin() {
                    true => self.apply(&queued.record)?,
                    false => Err(Refusal::Busy.into()),
                });
            }
            let Some((opened, source)) = &mut source else { break };
            let window = Batch {
                opened: *opened,
                commands: batch.len(),
                is_awaited: is_awaited || source.is_awaited(),
                expected: self.expected,
                max_open: self.batch_open,
                last_commit: self.last_commit,
            };
            if !self.fill(batch, &window, *source) {
                break;
            }
        }
        self.cache.get_mut().flush(&self.db)?;
        self.effects.get_mut().flush(&self.db)?;
        let started = Instant::now();
        self.run_sql("COMMIT")?;
        self.effects.get_mut().committed();
        if let Some((_, source)) = source {
            let answered = batch.iter().filter(|queued| queued.answer.is_some()).count();
            (self.expected, self.last_commit) = (answered + source.waiting(), started.elapsed());
        }
        Ok(answers)
    }

    /// Adds commands to a batch, waiting for them while its window is open; returns false once it closes.
    fn fill(&self, batch: &mut Vec<QueuedCommand>, window: &Batch, source: &mut impl Source) -> bool {
        let before = batch.len();
        if before >= self.batch_limit || window::is_overdue(Instant::now(), window) {
            return false;
        }
        source.top_up(batch, self.batch_limit);
        if batch.len() == before && !window::should_close(Instant::now(), window) {
            source.wait_until(window.deadline(), window.wanted());
            source.top_up(batch, self.batch_limit);
        }
        batch.len() > before
    }

    fn apply(&mut self, record: &Record) -> Result<Answer, BatchError> {
        #[cfg(feature = "testing")]
        if let Some(watch) = &mut self.watch {
            watch(record);
        }
        self.cache.get_mut().prepare_for(&self.db, record)?;
        self.effects.get_mut().prepare_for(&self.db, record.command.reads_messages())?;
        let now = self.clock.max(record.stamp.now);
        let last = self.effects.get_mut().last();
        let ids = Cell::new(0);
        let batch = BatchState {
            connection: &self.db,
            realm: &self.realm,
            rules: &self.rules,
            effects: &self.effects,
            cache: &self.cache,
        };
        let mut to = Write::new(&batch, &record.caller, &record.stamp, now, &ids);
        let answer = match apply_within_quota(&mut to, record, &self.hub) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::Refused(refusal)) => Err(refusal.into()),
            Err(Stop::Recorded(refusal, record)) => {
                record(&mut to)?;
                Err(refusal.into())
            }
            Err(Stop::Failed(error)) => {
                let error = BatchError::from(error);
                if let BatchError::Command(error) = &error {
                    let verb = record.command.word();
                    error!(realm = %self.realm, verb, %error, "a command failed and is left out");
                }
                return Err(error);
            }
        };
        let effects = self.effects.get_mut();
        if effects.last() > last {
            self.clock = now;
        }
        if let Some(rules) = effects.take_rules() {
            self.rules = rules;
        }
        effects.index_texts_if_due(&self.db)?;
        Ok(answer)
    }

    fn run_sql(&self, sql: &str) -> Result<(), BatchError> {
        self.db.execute_batch(sql).map_err(|error| BatchError::Storage(error.to_string()))
    }

    fn same_for_all(&self, batch: &[QueuedCommand], error: impl Into<EngineError> + Clone) -> Vec<Answer> {
        batch.iter().map(|_| Err(error.clone().into())).collect()
    }

    fn set_poison(&self, reason: String) -> Fault {
        error!(realm = %self.realm, reason, "a write failed; the realm is read-only until the office is restarted");
        let reason = self.poison.get_or_init(|| format!("a write failed: {reason}")).clone();
        Fault::Poisoned { reason }
    }

    /// Notes the position beside the file, now and then. When the realm is idle the WAL is checkpointed: a small realm must not
    /// live in its WAL alone.
    fn note_position(&mut self, is_idle: bool) {
        let last = self.effects.get_mut().last();
        if is_idle && self.position.checkpointed != last {
            self.position.checkpointed = last;
            self.checkpointer.join();
            if let Err(error) = passive_checkpoint(&self.db) {
                debug!(%error, "the WAL was not checkpointed while idle");
            }
        }
        if self.position.noted != Some(last) && (is_idle || self.position.at.elapsed() > NOTE_POSITION_EVERY)
        {
            self.position.write(last, false);
        }
    }

    fn close(&mut self) {
        self.checkpointer.join();
        if self.poison.get().is_some() {
            return;
        }
        // An empty WAL makes the next start quick; a full one would do.
        let checkpointed = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        match checkpointed {
            Ok(()) => {
                let last = self.effects.get_mut().last();
                self.position.write(last, true);
                debug!(realm = %self.realm, "the database is closed");
            }
            Err(error) => warn!(realm = %self.realm, %error, "the WAL was not checkpointed at the end"),
        }
    }
}

/// Carries a command out if its caller's account has room for it, and counts what it stored.
fn apply_within_quota(to: &mut Write<'_>, record: &Record, hub: &Hub) -> Decided<Outcome> {
    let (caller, command) = (&record.caller, &record.command);
    let weight = usage::weight(command);
    let checked = to.cache.borrow_mut().usage.check(to.db, caller, weight, to.rules)?;
    if let Err(refusal) = checked {
        // What recipients have already is recorded in any case; the sender's next message is queued and refused.
        match command {
            Command::RecordDelivered(_) => hub.fast_path().set_out(&caller.agent),
            _ => return Err(refusal.into()),
        }
    }
    let outcome = command.apply(to)?;
    let mut cache = to.cache.borrow_mut();
    if matches!(
        command,
        Command::Register(_) | Command::Update(_) | Command::Orphan(_) | Command::Unregister(_)
    ) {
        cache.usage.forget_accounts();
    }
    cache.usage.charge(to.db, caller, usage::stored(weight, &outcome))?;
    Ok(outcome)
}

/// The name of the event log, made with the database.
fn history_name(db: &Connection) -> Result<String, Fault> {
    let named = one(Db::new(db), "SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0))?;
    if let Some(name) = named {
        return Ok(name);
    }
    let name = crate::stamp::Stamp::new().id.to_string();
    exec(db, "INSERT INTO meta(key, value) VALUES('history', ?1)", [&name])?;
    Ok(name)
}

/// How often the position is noted while there is something to do.
const NOTE_POSITION_EVERY: Duration = Duration::from_secs(1);

/// The file beside the database that says how far it is.
struct PositionFile {
    database: PathBuf,
    history: String,
    /// The position that was noted last, and when.
    noted: Option<Seq>,
    at: Instant,
    /// The position up to which the WAL was checkpointed while idle.
    checkpointed: Seq,
}

impl PositionFile {
    fn new(database: &Path, history: String, last: Seq) -> Self {
        Self { database: database.to_owned(), history, noted: None, at: Instant::now(), checkpointed: last }
    }

    /// Notes a position that is durable.
    fn write(&mut self, seq: Seq, sync: bool) {
        (self.noted, self.at) = (Some(seq), Instant::now());
        let position = Position { history: self.history.clone(), seq };
        if let Err(error) = position.write(&self.database, sync) {
            warn!(%error, "the position of the database was not noted");
        }
    }
}

/// Why a transaction was rolled back.
enum BatchError {
    /// A command failed or panicked; the others need not.
    Command(EngineError),
    /// Another process holds the database at the moment.
    Busy,
    /// The database cannot be written.
    Storage(String),
}

impl From<rusqlite::Error> for BatchError {
    fn from(error: rusqlite::Error) -> Self {
        match is_storage(&error) {
            true => Self::Storage(error.to_string()),
            false => Self::Command(Fault::Internal { reason: error.to_string() }.into()),
        }
    }
}

fn panicked() -> EngineError {
    Fault::Internal { reason: "the command panicked".to_owned() }.into()
}

/// Whether an error says that the file itself failed, as opposed to one statement.
fn is_storage(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return false };
    // The plain SQLITE_ERROR, which has no variant of its own, is about what a statement said.
    if failure.extended_code & 0xff == rusqlite::ffi::SQLITE_ERROR {
        return false;
    }
    !matches!(
        failure.code,
        ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::ApiMisuse
            | ErrorCode::ParameterOutOfRange
    )
}
