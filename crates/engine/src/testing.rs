//! Test access to the writer: batches made by hand, and a hook for each command. Only built with the feature `testing`,
//! which no program enables.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::commit::QueuedCommand;
use crate::commit::{Poison, Writer};
use crate::engine::{Engine, EngineGuard};
use crate::error::{EngineError, Fault};
use crate::hub::Hub;
use crate::limits::Limits;
use crate::liveness::Liveness;
use crate::log::{Local, Record, Source};
use crate::meter::Meter;
use crate::nouns::{AgentId, RealmName};
use crate::store::{exec, open_writer};
use crate::verbs::Outcome;
use crate::verbs::mail::{RecordDelivered, SendMessage};

/// Called on the writer's thread for each command, inside the transaction, before the command is applied. It may block,
/// which delays the writer, or panic, as if the verb had.
pub type Watch = Box<dyn FnMut(&Record) + Send>;

/// The result of a command.
pub type Answer = Result<Outcome, EngineError>;

/// Which commands a batch contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// Only commands that were queued when it began, so that a test knows which batch a command is in.
    AtTheStart,
    /// Also commands that arrive while the batch is applied, as in production.
    OnTheWay,
}

/// Opens a database like [`Engine::open`], with a hook for each command.
///
/// # Errors
/// When the file cannot be used.
pub fn open_watched(
    path: &Path,
    realm: RealmName,
    limits: Limits,
    gathering: Gathering,
    watch: Watch,
) -> Result<(Engine, EngineGuard), Fault> {
    Engine::open_with(path, realm, limits, None, |writer, source| match gathering {
        Gathering::AtTheStart => writer.watched(watch).start(AtTheStart(source)),
        Gathering::OnTheWay => writer.watched(watch).start(source),
    })
}

/// A queue that adds nothing to a batch once it is taken.
struct AtTheStart(Local);

impl Source for AtTheStart {
    fn take(&mut self, batch: &mut Vec<QueuedCommand>, limit: usize) -> bool {
        let taken = self.0.take(batch, limit);
        while self.0.waiting() > 0 && batch.len() < limit {
            self.0.top_up(batch, limit);
        }
        taken
    }

    fn top_up(&mut self, _batch: &mut Vec<QueuedCommand>, _limit: usize) {}

    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

/// Submits a command with a stamp chosen by the test.
///
/// # Errors
/// As [`Engine::submit`].
pub async fn submit_record(engine: &Engine, record: Record) -> Answer {
    engine.submit_record(record).await
}

/// The command by which the fast path records a message that it has delivered.
#[must_use]
pub fn record_delivered(message: SendMessage, recipients: Vec<AgentId>) -> RecordDelivered {
    RecordDelivered::new(message, recipients)
}

/// Applies stamped commands to the database at a path, one transaction per batch, as a restarted server would, and
/// returns the answer to each. A new database gets the given event log id, which is random otherwise.
///
/// # Errors
/// When the file cannot be used.
pub fn apply_batches(
    path: &Path,
    realm: RealmName,
    history: &str,
    batches: Vec<Vec<Record>>,
) -> Result<Vec<Answer>, Fault> {
    let db = open_writer(path)?;
    exec(&db, "INSERT INTO meta(key, value) VALUES('history', ?1) ON CONFLICT DO NOTHING", [history])?;
    drop(db);
    let limits = Limits::default();
    let hub = Arc::new(Hub::new(&limits));
    let meter = Arc::new(Meter::new());
    let liveness = Liveness::new(limits.readers);
    let mut writer = Writer::open(path, realm, &limits, hub, meter, liveness, Poison::default(), None)?;
    let mut answers = Vec::new();
    let mut work = |record| {
        let (answer, wait) = oneshot::channel();
        answers.push(wait);
        QueuedCommand::unbounded(record, Some(answer))
    };
    let batches: Vec<Vec<QueuedCommand>> =
        batches.into_iter().map(|batch| batch.into_iter().map(&mut work).collect()).collect();
    writer.run(&mut ByHand { batches: batches.into_iter() });
    let fetch = |mut wait: oneshot::Receiver<Answer>| wait.try_recv().unwrap_or(Err(Fault::Closing.into()));
    Ok(answers.into_iter().map(fetch).collect())
}

/// Batches exactly as the test made them.
struct ByHand {
    batches: std::vec::IntoIter<Vec<QueuedCommand>>,
}

impl Source for ByHand {
    fn take(&mut self, batch: &mut Vec<QueuedCommand>, _limit: usize) -> bool {
        batch.extend(self.batches.next().into_iter().flatten());
        !batch.is_empty()
    }

    fn top_up(&mut self, _batch: &mut Vec<QueuedCommand>, _limit: usize) {}
}
