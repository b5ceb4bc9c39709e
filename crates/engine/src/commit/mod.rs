//! The one owner of a realm's file: gathers commands, applies them in one transaction, commits, tells the hub, answers.

mod checkpoint;
mod effects;
mod fulltext;
mod window;
mod write_cache;

pub(crate) use effects::{Effects, NewDelivery, NewTurn};
pub(crate) use write_cache::WriteCache;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tracing::{debug, error, warn};

use self::checkpoint::Folding;
use self::fulltext::UnindexedTexts;
use self::window::Gather;
use crate::error::{EngineError, Fault, Refusal};
use crate::files::Files;
use crate::hub::Hub;
use crate::limits::{Limits, Rules};
use crate::lock::DirectoryLock;
use crate::log::{Record, Source, Work};
use crate::meter::Meter;
use crate::nouns::{Event, Millis, RealmName, Seq};
use crate::store::{Db, Position, check_position, exec, fold, one, open_writer};
use crate::usage;
use crate::verbs::{BatchState, Command, Outcome, Stop, Write};
use crate::views;
use crate::vitals::Vitals;

/// Why a realm takes no more writes. Set once; shared with everyone who asks about health.
pub(crate) type Poison = Arc<OnceLock<String>>;

/// What became of one command.
type Answer = Result<Outcome, EngineError>;

/// The writing side of a realm. Lives on its own thread.
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
    vitals: Arc<Vitals>,
    poison: Poison,
    batch_limit: usize,
    gather: Gather,
    folding: Folding,
    files: Arc<Files>,
    notes: Notes,
    /// The directory stays taken for as long as somebody may write into it.
    _held: Option<Arc<DirectoryLock>>,
    #[cfg(feature = "testing")]
    watch: Option<crate::testing::Watch>,
}

impl Writer {
    /// Opens the books, making them if they are not there.
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
        vitals: Arc<Vitals>,
        poison: Poison,
        held: Option<Arc<DirectoryLock>>,
    ) -> Result<Self, Fault> {
        check_position(path)?;
        let mut db = open_writer(path)?;
        let folding = Folding::of(&mut db, path)?;
        // Somebody else's lock on the file is waited for as long as a place in the queue is.
        db.busy_timeout(limits.queue_wait)?;
        let named: Option<String> =
            one(Db::new(&db), "SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0))?;
        let history = match named {
            Some(history) => history,
            None => {
                let name = crate::stamp::Stamp::new().id.to_string();
                exec(&db, "INSERT INTO meta(key, value) VALUES('history', ?1)", [&name])?;
                name
            }
        };
        let last = views::head(Db::new(&db))?;
        let clock =
            one(Db::new(&db), "SELECT at FROM events WHERE seq = ?1", [last], |row| row.get(0))?.unwrap_or(0);
        // A clock that was put back while nobody looked must not bring ids back.
        crate::stamp::ids_after(clock);
        let rules = views::rules(Db::new(&db))?;
        let files = Arc::new(Files::of(path));
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
            vitals,
            poison,
            batch_limit: limits.batch_commands.max(1),
            gather: Gather::default(),
            folding,
            files,
            notes: Notes { path: path.to_owned(), history, seq: None, folded: last, at: Instant::now() },
            _held: held,
            #[cfg(feature = "testing")]
            watch: None,
        })
    }

    /// The files that it writes into.
    pub(crate) fn files(&self) -> Arc<Files> {
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
            // Verbs are caught one batch at a time; whatever else fails must not look like health.
            if catch_unwind(AssertUnwindSafe(|| self.run(&mut source))).is_err() {
                drop(self.give_up("the writer panicked".to_owned()));
            }
        })
    }

    /// Works until the source ends, on this thread.
    pub(crate) fn run(&mut self, source: &mut impl Source) {
        let mut batch = Vec::new();
        while source.take(&mut batch, self.gather.most(self.batch_limit)) {
            let started = Instant::now();
            self.vitals.batch_begins();
            // A panic in a verb must not leave callers waiting for ever on a thread that is gone.
            let settled = match self.poison.get() {
                Some(reason) => Err(Fault::Poisoned { reason: reason.clone() }),
                None => catch_unwind(AssertUnwindSafe(|| self.settle(&mut batch, source)))
                    .unwrap_or_else(|_| Err(self.give_up("the writer panicked".to_owned()))),
            };
            if settled.is_ok() {
                self.meter.note_batch(batch.len(), started.elapsed());
            }
            let turned_away = settled.as_ref().is_ok_and(|settled| settled.turned_away);
            let idle = batch.iter().all(|work| matches!(work.record.command, Command::Sweep(_)));
            self.answer(&mut batch, settled);
            if self.poison.get().is_none() {
                self.folding.go_on(&self.db);
                self.note_position(idle);
            }
            if !turned_away {
                self.vitals.batch_ends();
            }
        }
        self.close();
    }

    /// Applies a batch and commits it. Answers leave only after this returns, refusals too: a refusal may depend on a row of
    /// the same batch. If a command fails or panics, the batch is rolled back and its commands are applied one transaction
    /// each, so that only the failing one is left out.
    fn settle(&mut self, batch: &mut Vec<Work>, source: &mut impl Source) -> Result<Settled, Fault> {
        let answers = match self.try_batch(batch, Some(source)) {
            Err(BatchError::Command(_)) if batch.len() > 1 => self.settle_one_by_one(batch),
            Err(BatchError::Command(error)) => Ok(vec![Err(error)]),
            tried => tried,
        };
        match answers {
            // Nothing is acknowledged that went into files which are no longer there to be opened again.
            Ok(answers) => match self.files.check() {
                Ok(()) => {
                    let events = self.effects.get_mut().take_events();
                    Ok(Settled { answers, events, turned_away: false })
                }
                Err(reason) => Err(self.give_up(reason)),
            },
            Err(BatchError::Busy) => {
                warn!(realm = %self.realm, "another process holds the database; a batch was refused");
                Ok(Settled::turned_away(batch.len()))
            }
            Err(BatchError::Command(error)) => Err(self.give_up(error.to_string())),
            Err(BatchError::Storage(reason)) => Err(self.give_up(reason)),
        }
    }

    fn settle_one_by_one(&mut self, batch: &mut Vec<Work>) -> Result<Vec<Answer>, BatchError> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut done = Vec::with_capacity(batch.len());
        for work in batch.drain(..) {
            let mut alone = vec![work];
            let answer = match self.try_batch(&mut alone, None::<&mut crate::log::Local>) {
                Ok(answer) => Ok(answer),
                Err(BatchError::Command(error)) => Ok(vec![Err(error)]),
                Err(error) => Err(error),
            };
            done.append(&mut alone);
            answers.push(answer);
        }
        *batch = done;
        let mut all = Vec::with_capacity(batch.len());
        for answer in answers {
            all.append(&mut answer?);
        }
        Ok(all)
    }

    /// One transaction with everything in it. An error rolls all of it back.
    fn try_batch(
        &mut self,
        batch: &mut Vec<Work>,
        source: Option<&mut impl Source>,
    ) -> Result<Vec<Answer>, BatchError> {
        let (last, texts) = {
            let effects = self.effects.borrow();
            (effects.last(), effects.texts())
        };
        let before = (self.clock, self.rules.clone());
        let committed_events = self.effects.get_mut().take_events();
        let tried = catch_unwind(AssertUnwindSafe(|| self.apply_all(batch, source)))
            .unwrap_or_else(|_| Err(BatchError::Command(panicked())));
        if tried.is_err() {
            *self.effects.get_mut() = Effects::after(last, texts);
            self.cache.get_mut().forget();
            (self.clock, self.rules) = before;
            if !self.db.is_autocommit() {
                self.run_sql("ROLLBACK")?;
            }
        }
        self.effects.get_mut().put_back_events(committed_events);
        tried
    }

    fn apply_all(
        &mut self,
        batch: &mut Vec<Work>,
        source: Option<&mut impl Source>,
    ) -> Result<Vec<Answer>, BatchError> {
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(|error| match error.sqlite_error_code() {
            // Nothing was tried yet, so nothing failed: the callers may try again.
            Some(ErrorCode::DatabaseBusy) => BatchError::Busy,
            _ => BatchError::Storage(error.to_string()),
        })?;
        let mut answers = Vec::with_capacity(batch.len());
        self.gather.begin(batch.len());
        let most = self.gather.most(self.batch_limit);
        let mut source = source;
        // Commands that arrive while others are applied join the batch, so that one sync serves them all.
        while answers.len() < batch.len() {
            for work in &batch[answers.len()..] {
                if !work.take_up() {
                    answers.push(Err(Refusal::Busy.into()));
                    continue;
                }
                answers.push(self.apply_one(&work.record)?);
                self.effects.get_mut().index_texts_if_due(&self.db)?;
            }
            let Some(source) = &mut source else { break };
            source.top_up(batch, most);
            while answers.len() == batch.len() && batch.len() < most && self.gather.waits(batch.len()) {
                source.top_up(batch, most);
            }
        }
        self.cache.get_mut().flush(&self.db)?;
        self.effects.get_mut().flush(&self.db)?;
        let started = Instant::now();
        self.run_sql("COMMIT")?;
        if let Some(source) = source {
            self.gather.committed(answers.len(), source.waiting(), started.elapsed());
        }
        Ok(answers)
    }

    fn apply_one(&mut self, record: &Record) -> Result<Answer, BatchError> {
        #[cfg(feature = "testing")]
        if let Some(watch) = &mut self.watch {
            watch(record);
        }
        self.cache.get_mut().prepare_for(&self.db, record)?;
        self.effects.get_mut().prepare_for(&self.db, record.command.reads_messages())?;
        let now = self.clock.max(record.stamp.now);
        let (last, changes) = (self.effects.borrow().last(), self.db.total_changes());
        let ids = Cell::new(0);
        let batch = BatchState {
            connection: &self.db,
            realm: &self.realm,
            rules: &self.rules,
            effects: &self.effects,
            cache: &self.cache,
        };
        let mut to = Write::new(&batch, &record.caller, &record.stamp, now, &ids);
        let applied = match apply_within_quota(&mut to, record, &self.hub) {
            Ok(outcome) => Ok(outcome),
            // TRANSITION: until every verb decides before it writes.
            Err(Stop::Refused(refusal))
                if self.db.total_changes() != changes || self.effects.borrow().last() != last =>
            {
                return Err(BatchError::Command(refusal.into()));
            }
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
        if self.effects.borrow().last() > last {
            self.clock = now;
        }
        if let Some(rules) = self.effects.get_mut().take_rules() {
            self.rules = rules;
        }
        Ok(applied)
    }

    fn run_sql(&self, sql: &str) -> Result<(), BatchError> {
        self.db.execute_batch(sql).map_err(|error| BatchError::Storage(error.to_string()))
    }

    fn answer(&self, batch: &mut Vec<Work>, settled: Result<Settled, Fault>) {
        let mut news = None;
        let answers: Vec<Answer> = match settled {
            Ok(Settled { mut answers, mut events, .. }) => {
                self.hub.question(&events);
                for outcome in answers.iter_mut().flatten() {
                    self.hub.deliver(outcome, &mut events);
                }
                news = self.hub.keep(events);
                answers
            }
            Err(fault) => batch.iter().map(|_| Err(fault.clone().into())).collect(),
        };
        for (work, answer) in batch.drain(..).zip(answers) {
            if work.record.command.sends() {
                self.hub.fast_path().arrived(&work.record.caller.agent);
            }
            self.meter.note_answer(work.record.command.word(), &answer);
            drop((work.room, work.share));
            if let Some(waiting) = work.answer {
                // A caller that went away does not need its answer; what it asked for is done.
                drop(waiting.send(answer));
            }
        }
        // Last, because callers need not wait until thousands of followers are awake.
        if let Some(last) = news {
            self.hub.call(last);
        }
    }

    fn give_up(&self, reason: String) -> Fault {
        error!(realm = %self.realm, reason, "a write failed; the realm is read-only until the office is restarted");
        let reason = self.poison.get_or_init(|| format!("a write failed: {reason}")).clone();
        Fault::Poisoned { reason }
    }

    /// Notes beside the file how far it is, now and then. When nothing was asked for since the last sweep, the log is folded:
    /// a small realm must not live in its log alone.
    fn note_position(&mut self, idle: bool) {
        let last = self.effects.get_mut().last();
        if idle && self.notes.folded != last {
            self.notes.folded = last;
            self.folding.join();
            if let Err(error) = fold(&self.db) {
                debug!(%error, "the log was not folded while idle");
            }
        }
        if self.notes.seq != Some(last) && (idle || self.notes.at.elapsed() > NOTE_EVERY) {
            self.notes.write(last, false);
        }
    }

    fn close(&mut self) {
        self.folding.join();
        if self.poison.get().is_some() {
            return;
        }
        // Folding the log into the file makes the next start quick; the log alone would do.
        let folded = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        match folded {
            Ok(()) => {
                let last = self.effects.get_mut().last();
                self.notes.write(last, true);
                debug!(realm = %self.realm, "the db are closed");
            }
            Err(error) => warn!(realm = %self.realm, %error, "the log was not folded into the db"),
        }
    }
}

/// Carries a command out if its caller's account has room for it, and counts what it stored.
fn apply_within_quota(to: &mut Write<'_>, record: &Record, hub: &Hub) -> crate::verbs::Decided<Outcome> {
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

/// How often the position is noted while there is something to do.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// What is noted beside the file.
struct Notes {
    path: PathBuf,
    history: String,
    /// The position that was noted last, when it was, and up to where the log was folded while idle.
    seq: Option<Seq>,
    at: Instant,
    folded: Seq,
}

impl Notes {
    /// Notes a position that is durable.
    fn write(&mut self, seq: Seq, sync: bool) {
        (self.seq, self.at) = (Some(seq), Instant::now());
        let position = Position { history: self.history.clone(), seq };
        if let Err(error) = position.write(&self.path, sync) {
            warn!(%error, "the position of the database was not noted");
        }
    }
}

/// A batch that has been applied.
struct Settled {
    answers: Vec<Answer>,
    events: Vec<Arc<Event>>,
    /// Whether nothing was done, because another process holds the file.
    turned_away: bool,
}

impl Settled {
    /// A batch of which nothing was done.
    fn turned_away(commands: usize) -> Self {
        let answers = (0..commands).map(|_| Err(Refusal::Busy.into())).collect();
        Self { answers, events: Vec::new(), turned_away: true }
    }
}

/// Why a batch was rolled back.
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
    // The plain SQLITE_ERROR, which has no name of its own, is about what a statement said.
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
