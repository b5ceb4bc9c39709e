//! The one owner of a realm's file: gathers commands, applies them in one transaction, commits, tells the hub, answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::{Connection, ErrorCode};
use tracing::{debug, error, warn};

use crate::error::{EngineError, Fault};
use crate::hub::Hub;
use crate::limits::{Limits, Rules};
use crate::meter::Meter;
use crate::nouns::{Event, Millis, RealmName, Seq};
use crate::source::{Source, Work};
use crate::store::{exec, one, open_writer};
use crate::verbs::{Apply, Halt, Outcome, Pen};
use crate::views;

/// Why a realm takes no more writes. Set once; shared with everyone who asks about health.
pub(crate) type Poison = Arc<OnceLock<String>>;

/// What became of one command.
type Answer = Result<Outcome, EngineError>;

/// The writing side of a realm. Lives on its own thread.
pub(crate) struct Writer {
    realm: RealmName,
    books: Connection,
    rules: Rules,
    /// The last place in the history that is committed.
    last: Seq,
    /// The time of the last event; time never runs backwards along the history.
    clock: Millis,
    hub: Arc<Hub>,
    meter: Arc<Meter>,
    poison: Poison,
    batch_limit: usize,
}

impl Writer {
    /// Opens the books, making them if they are not there.
    pub(crate) fn open(
        path: &Path,
        realm: RealmName,
        limits: &Limits,
        hub: Arc<Hub>,
        meter: Arc<Meter>,
        poison: Poison,
    ) -> Result<Self, Fault> {
        let books = open_writer(path)?;
        let named: Option<String> =
            one(&books, "SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0))?;
        if named.is_none() {
            let name = crate::stamp::Stamp::new().id.to_string();
            exec(&books, "INSERT INTO meta(key, value) VALUES('history', ?1)", [name])?;
        }
        let last = views::head(&books)?;
        let clock =
            one(&books, "SELECT at FROM events WHERE seq = ?1", [last], |row| row.get(0))?.unwrap_or(0);
        let rules = views::rules(&books)?;
        hub.start_at(last);
        Ok(Self { realm, books, rules, last, clock, hub, meter, poison, batch_limit: limits.batch_commands })
    }

    /// Starts the thread. It ends when the source does, after everything taken has been answered.
    pub(crate) fn start(mut self, mut source: impl Source) -> std::io::Result<JoinHandle<()>> {
        let name = format!("writer {}", self.realm);
        std::thread::Builder::new().name(name).spawn(move || self.run(&mut source))
    }

    fn run(&mut self, source: &mut impl Source) {
        let mut batch = Vec::new();
        while source.take(&mut batch, self.batch_limit) {
            let started = Instant::now();
            // A panic in a verb must not leave callers waiting for ever on a thread that is gone.
            let settled = match self.poison.get() {
                Some(reason) => Err(Fault::Poisoned { reason: reason.clone() }),
                None => catch_unwind(AssertUnwindSafe(|| self.settle(&batch)))
                    .unwrap_or_else(|_| Err(self.give_up("the writer panicked".to_owned()))),
            };
            if settled.is_ok() {
                self.meter.note_batch(batch.len(), started.elapsed());
            }
            self.answer(&mut batch, settled);
        }
        self.close();
    }

    /// Applies a batch and commits it. Answers leave only after this returns, yes and no alike: a refusal may rest on a
    /// row of the same batch.
    fn settle(&mut self, batch: &[Work]) -> Result<Settled, Fault> {
        let mut left_out: Vec<Option<EngineError>> = batch.iter().map(|_| None).collect();
        loop {
            match self.attempt(batch, &left_out) {
                Ok(settled) => return Ok(settled),
                Err(Setback::LeaveOut(index, why)) => left_out[index] = Some(why),
                Err(Setback::Storage(reason)) => return Err(self.give_up(reason)),
            }
        }
    }

    /// One try at a batch without the commands already left out. A setback takes everything back.
    fn attempt(&mut self, batch: &[Work], left_out: &[Option<EngineError>]) -> Result<Settled, Setback> {
        let before = (self.last, self.clock, self.rules.clone());
        let tried = self.apply_all(batch, left_out);
        let tried = match tried {
            Ok(settled) => match self.books.execute_batch("COMMIT") {
                Ok(()) => Ok(settled),
                Err(error) => Err(Setback::Storage(error.to_string())),
            },
            Err(setback) => Err(setback),
        };
        if tried.is_err() {
            (self.last, self.clock, self.rules) = before;
            if !self.books.is_autocommit()
                && let Err(error) = self.books.execute_batch("ROLLBACK")
            {
                return Err(Setback::Storage(error.to_string()));
            }
        }
        tried
    }

    fn apply_all(&mut self, batch: &[Work], left_out: &[Option<EngineError>]) -> Result<Settled, Setback> {
        self.books.execute_batch("BEGIN IMMEDIATE").map_err(|error| Setback::Storage(error.to_string()))?;
        let mut settled = Settled { answers: Vec::with_capacity(batch.len()), events: Vec::new() };
        for (index, work) in batch.iter().enumerate() {
            if let Some(why) = &left_out[index] {
                settled.answers.push(Err(why.clone()));
                continue;
            }
            let record = &work.record;
            self.clock = self.clock.max(record.stamp.now);
            let changes = self.books.total_changes();
            let pen = Pen { rules: &mut self.rules, last: &mut self.last, events: &mut settled.events };
            let mut apply =
                Apply::new(&self.books, &self.realm, &record.caller, &record.stamp, self.clock, pen);
            match record.command.apply(&mut apply) {
                Ok(outcome) => settled.answers.push(Ok(outcome)),
                Err(Halt::Noted(refusal)) => settled.answers.push(Err(refusal.into())),
                Err(Halt::Refused(refusal)) if self.books.total_changes() == changes => {
                    settled.answers.push(Err(refusal.into()));
                }
                // Verbs check before they write, so this is rare; whoever refuses late must leave no trace either.
                Err(Halt::Refused(refusal)) => return Err(Setback::LeaveOut(index, refusal.into())),
                Err(Halt::Failed(error)) if is_storage(&error) => {
                    return Err(Setback::Storage(error.to_string()));
                }
                Err(Halt::Failed(error)) => {
                    let verb = record.command.word();
                    error!(realm = %self.realm, verb, %error, "a command failed and was left out");
                    return Err(Setback::LeaveOut(
                        index,
                        Fault::Internal { reason: error.to_string() }.into(),
                    ));
                }
            }
        }
        Ok(settled)
    }

    fn answer(&self, batch: &mut Vec<Work>, settled: Result<Settled, Fault>) {
        let mut news = None;
        let answers: Vec<Answer> = match settled {
            Ok(Settled { mut answers, events }) => {
                for outcome in answers.iter_mut().flatten() {
                    self.hub.hand_over(outcome);
                }
                news = self.hub.keep(events);
                answers
            }
            Err(fault) => batch.iter().map(|_| Err(fault.clone().into())).collect(),
        };
        for (work, answer) in batch.drain(..).zip(answers) {
            self.meter.note_answer(work.record.command.word(), &answer);
            drop(work.room);
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
        let reason = self.poison.get_or_init(|| reason).clone();
        Fault::Poisoned { reason }
    }

    fn close(&mut self) {
        if self.poison.get().is_some() {
            return;
        }
        // Folding the log into the file makes the next start quick; the log alone would do.
        let folded = self.books.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        match folded {
            Ok(()) => debug!(realm = %self.realm, "the books are closed"),
            Err(error) => warn!(realm = %self.realm, %error, "the log was not folded into the books"),
        }
    }
}

/// A batch that has been applied.
struct Settled {
    answers: Vec<Answer>,
    events: Vec<Arc<Event>>,
}

/// Why an attempt at a batch was taken back.
enum Setback {
    /// One command cannot be applied; the others can.
    LeaveOut(usize, EngineError),
    /// The file cannot be written.
    Storage(String),
}

/// Whether an error says that the file itself failed, as opposed to one statement.
fn is_storage(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return false };
    !matches!(
        failure.code,
        ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::ApiMisuse
            | ErrorCode::ParameterOutOfRange
    )
}
