//! The one owner of a realm's file: gathers commands, applies them in one transaction, commits, tells the hub, answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tracing::{debug, error, warn};

use crate::courtesy::Courtesy;
use crate::error::{EngineError, Fault, Refusal};
use crate::files::Files;
use crate::fold::Folding;
use crate::gather::Gather;
use crate::hub::Hub;
use crate::limits::{Limits, Rules};
use crate::lock::DirectoryLock;
use crate::memory::Memory;
use crate::meter::Meter;
use crate::nouns::{Event, Millis, RealmName, Seq};
use crate::source::{Record, Source, Work};
use crate::store::{Position, Tail, check_position, exec, fold, one, open_writer, write_history};
use crate::usage;
use crate::verbs::{Apply, Command, Halt, Outcome, Pen};
use crate::views;
use crate::vitals::Vitals;

/// Why a realm takes no more writes. Set once; shared with everyone who asks about health.
pub(crate) type Poison = Arc<OnceLock<String>>;

/// Commands and lines of history that a writer in no hurry deals with before it gives way. Rows and lines are written by
/// sixteen.
const STRETCH: usize = 16;
const LINES: usize = 4 * STRETCH;

/// What became of one command.
type Answer = Result<Outcome, EngineError>;

/// The writing side of a realm. Lives on its own thread.
pub(crate) struct Writer {
    realm: RealmName,
    db: Connection,
    rules: Rules,
    /// The last place in the history that is committed.
    last: Seq,
    /// The time of the last event; time never runs backwards along the history. Like everything that decides outcomes
    /// it can be read from the books, so that a restart changes nothing.
    clock: Millis,
    /// What the full-text index has still to follow.
    tail: Tail,
    memory: Memory,
    hub: Arc<Hub>,
    meter: Arc<Meter>,
    vitals: Arc<Vitals>,
    poison: Poison,
    batch_limit: usize,
    gather: Gather,
    courtesy: Courtesy,
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
            one(&db, "SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0))?;
        let history = match named {
            Some(history) => history,
            None => {
                let name = crate::stamp::Stamp::new().id.to_string();
                exec(&db, "INSERT INTO meta(key, value) VALUES('history', ?1)", [&name])?;
                name
            }
        };
        let last = views::head(&db)?;
        let clock = one(&db, "SELECT at FROM events WHERE seq = ?1", [last], |row| row.get(0))?.unwrap_or(0);
        // A clock that was put back while nobody looked must not bring ids back.
        crate::stamp::ids_after(clock);
        let rules = views::rules(&db)?;
        let files = Arc::new(Files::of(path));
        let tail = Tail::of(&db)?;
        hub.start_at(last);
        Ok(Self {
            realm,
            db,
            rules,
            last,
            clock,
            tail,
            memory: Memory::default(),
            hub,
            meter,
            vitals,
            poison,
            batch_limit: limits.batch_commands.max(1),
            gather: Gather::default(),
            courtesy: Courtesy::default(),
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

    /// Applies a batch and commits it. Answers leave only after this returns, yes and no alike: a refusal may rest on a
    /// row of the same batch.
    fn settle(&mut self, batch: &mut Vec<Work>, source: &mut impl Source) -> Result<Settled, Fault> {
        // Verbs check before they write, so a command that has to be taken back is rare: only a batch that has one pays
        // for being able to.
        let tried = match self.attempt(batch, Pace::Trusting, source) {
            Err(Setback::TakeBack(_)) => self.attempt(batch, Pace::Careful, source),
            tried => tried,
        };
        match tried {
            // Nothing is acknowledged that went into files which are no longer there to be opened again.
            Ok(settled) => match self.files.check() {
                Ok(()) => Ok(settled),
                Err(reason) => Err(self.give_up(reason)),
            },
            Err(Setback::Busy) => {
                warn!(realm = %self.realm, "somebody else holds the file; a batch was turned away");
                Ok(Settled::turned_away(batch.len()))
            }
            Err(Setback::TakeBack(reason)) => {
                Err(self.give_up(format!("a command could not be taken back: {reason}")))
            }
            Err(Setback::Storage(reason)) => Err(self.give_up(reason)),
        }
    }

    /// One try at a batch. A setback takes everything back.
    fn attempt(
        &mut self,
        batch: &mut Vec<Work>,
        pace: Pace,
        source: &mut impl Source,
    ) -> Result<Settled, Setback> {
        let before = (self.last, self.clock, self.tail, self.rules.clone());
        let tried = self.apply_all(batch, pace, source).and_then(|settled| {
            let started = Instant::now();
            self.run_sql("COMMIT")?;
            self.gather.committed(settled.answers.len(), source.waiting(), started.elapsed());
            Ok(settled)
        });
        if tried.is_err() {
            self.memory.forget();
            (self.last, self.clock, self.tail, self.rules) = before;
            if !self.db.is_autocommit() {
                self.run_sql("ROLLBACK")?;
            }
        }
        tried
    }

    fn apply_all(
        &mut self,
        batch: &mut Vec<Work>,
        pace: Pace,
        source: &mut impl Source,
    ) -> Result<Settled, Setback> {
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(|error| match error.sqlite_error_code() {
            // Nothing was tried yet, so nothing failed: the callers may come again.
            Some(ErrorCode::DatabaseBusy) => Setback::Busy,
            _ => Setback::Storage(error.to_string()),
        })?;
        let answers = Vec::with_capacity(batch.len());
        let mut settled = Settled { answers, events: Vec::new(), turned_away: false };
        self.gather.begin(batch.len());
        let most = self.gather.most(self.batch_limit);
        let mut nobody_waits = true;
        // What comes while others are applied goes with them: those whose answers left with the last sync are back by
        // now, and one sync serves them all.
        while settled.answers.len() < batch.len() {
            let more = &batch[settled.answers.len()..];
            nobody_waits &= more.iter().all(|work| work.answer.is_none());
            for work in more {
                if !work.take_up() {
                    settled.answers.push(Err(Refusal::Busy.into()));
                    continue;
                }
                match pace {
                    Pace::Trusting => self.memory.make_ready(&self.db, &work.record)?,
                    // What is taken back must not be remembered.
                    Pace::Careful => {}
                }
                let answer = match pace {
                    Pace::Trusting => match self.apply_one(&work.record, &mut settled.events)? {
                        Applied::Stands(answer) => answer,
                        Applied::InVain(why) => return Err(Setback::TakeBack(why.to_string())),
                    },
                    Pace::Careful => self.apply_or_take_back(&work.record, &mut settled.events)?,
                };
                settled.answers.push(answer);
                // After the command that makes it long enough, wherever batches begin and end: the same commands give
                // the same books.
                if self.tail.is_long() {
                    self.memory.rows.write_down(&self.db)?;
                    self.tail.index(&self.db, self.last)?;
                }
                if nobody_waits && settled.answers.len().is_multiple_of(STRETCH) {
                    self.memory.rows.write_down(&self.db)?;
                    self.courtesy.give_way();
                }
            }
            source.top_up(batch, most);
            while settled.answers.len() == batch.len() && batch.len() < most && self.gather.waits(batch.len())
            {
                source.top_up(batch, most);
            }
        }
        self.memory.write_down(&self.db)?;
        for lines in settled.events.chunks(LINES) {
            write_history(&self.db, lines)?;
            if nobody_waits {
                self.courtesy.give_way();
            }
        }
        Ok(settled)
    }

    /// Applies one command such that the rest of its batch can go on without it.
    fn apply_or_take_back(
        &mut self,
        record: &Record,
        events: &mut Vec<Arc<Event>>,
    ) -> Result<Answer, Setback> {
        let before = (self.last, self.clock, self.tail, self.rules.clone());
        let told = events.len();
        // What others did must not be forgotten with it.
        self.memory.write_down(&self.db)?;
        self.run_sql("SAVEPOINT command")?;
        let answer = match self.apply_one(record, events)? {
            Applied::Stands(answer) => answer,
            Applied::InVain(why) => {
                self.run_sql("ROLLBACK TO command")?;
                (self.last, self.clock, self.tail, self.rules) = before;
                self.memory.forget();
                events.truncate(told);
                Err(why)
            }
        };
        self.run_sql("RELEASE command")?;
        Ok(answer)
    }

    fn apply_one(&mut self, record: &Record, events: &mut Vec<Arc<Event>>) -> Result<Applied, Setback> {
        #[cfg(feature = "testing")]
        if let Some(watch) = &mut self.watch {
            watch(record);
        }
        let now = self.clock.max(record.stamp.now);
        let last = self.last;
        let (changes, told) = (self.own_changes(), events.len());
        let pen = Pen {
            rules: &mut self.rules,
            last: &mut self.last,
            events: &mut *events,
            tail: &mut self.tail,
            memory: &mut self.memory,
        };
        let mut apply = Apply::new(&self.db, &self.realm, &record.caller, &record.stamp, now, pen);
        let applied = apply_within_quota(&mut apply, record, &self.hub);
        if self.last > last {
            self.clock = now;
        }
        Ok(match applied {
            Ok(outcome) => Applied::Stands(Ok(outcome)),
            Err(Halt::Noted(refusal)) => Applied::Stands(Err(refusal.into())),
            Err(Halt::Refused(refusal)) if self.own_changes() == changes && events.len() == told => {
                Applied::Stands(Err(refusal.into()))
            }
            // Whoever refuses late must leave no trace either.
            Err(Halt::Refused(refusal)) => Applied::InVain(refusal.into()),
            Err(Halt::Failed(error)) if is_storage(&error) => {
                return Err(Setback::Storage(error.to_string()));
            }
            Err(Halt::Failed(error)) => {
                let verb = record.command.word();
                error!(realm = %self.realm, verb, %error, "a command failed and is left out");
                Applied::InVain(Fault::Internal { reason: error.to_string() }.into())
            }
        })
    }

    /// Changes to the books, but for rows that had waited for the command to look at them.
    fn own_changes(&self) -> u64 {
        self.db.total_changes() - self.memory.rows.changes()
    }

    fn run_sql(&self, sql: &str) -> Result<(), Setback> {
        self.db.execute_batch(sql).map_err(|error| Setback::Storage(error.to_string()))
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
            if work.record.command.is_slow_letter() {
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
        if idle && self.notes.folded != self.last {
            self.notes.folded = self.last;
            self.folding.join();
            if let Err(error) = fold(&self.db) {
                debug!(%error, "the log was not folded while idle");
            }
        }
        if self.notes.seq != Some(self.last) && (idle || self.notes.at.elapsed() > NOTE_EVERY) {
            self.notes.write(self.last, false);
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
                self.notes.write(self.last, true);
                debug!(realm = %self.realm, "the db are closed");
            }
            Err(error) => warn!(realm = %self.realm, %error, "the log was not folded into the db"),
        }
    }
}

/// Carries a command out if its caller's account has room for it, and counts what it stored.
fn apply_within_quota(to: &mut Apply<'_>, record: &Record, hub: &Hub) -> crate::verbs::Applied<Outcome> {
    let (caller, command) = (&record.caller, &record.command);
    let weight = usage::weight(command);
    if let Err(refusal) = to.memory.usage.check(to.db, caller, weight, to.rules)? {
        // What recipients have already is written down in any case; the sender's next takes the slow road and is refused.
        match command.letter().is_some_and(|letter| !letter.handed.is_empty()) {
            true => hub.fast_path().set_out(&caller.agent),
            false => return Err(refusal.into()),
        }
    }
    let outcome = command.apply(to)?;
    if matches!(
        command,
        Command::Register(_) | Command::Update(_) | Command::Orphan(_) | Command::Unregister(_)
    ) {
        to.memory.usage.forget_accounts();
    }
    to.memory.usage.charge(to.db, caller, usage::stored(weight, &outcome))?;
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

/// Whether each command of a batch can be taken back by itself.
#[derive(Clone, Copy)]
enum Pace {
    /// Only all together.
    Trusting,
    /// Each.
    Careful,
}

/// What one command came to.
enum Applied {
    /// What it did stands, if it did anything.
    Stands(Answer),
    /// What it did must be taken back.
    InVain(EngineError),
}

/// Why an attempt at a batch was taken back.
enum Setback {
    /// One command has to be taken back, for this reason; the others need not.
    TakeBack(String),
    /// Another process holds the file at the moment.
    Busy,
    /// The file cannot be written.
    Storage(String),
}

/// Rows are written many at a time: if one of them fails, whose it is shows when each command is applied by itself.
impl From<rusqlite::Error> for Setback {
    fn from(error: rusqlite::Error) -> Self {
        match is_storage(&error) {
            true => Self::Storage(error.to_string()),
            false => Self::TakeBack(error.to_string()),
        }
    }
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
