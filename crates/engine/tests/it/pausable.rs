//! A realm whose writer a test can pause in the middle of a batch, or make panic.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, Json, RealmName, Seq};
use posthaste_engine::store::open_writer;
use posthaste_engine::testing::{Gathering, Watch, open_watched};
use posthaste_engine::verbs::Command;
use posthaste_engine::verbs::office::Announce;
use posthaste_engine::{Engine, EngineError, EngineGuard, Record};
use tempfile::TempDir;
use tokio::sync::mpsc as signals;
use tokio::task::JoinHandle;

const HOLD: &str = "hold the writer";
const PANIC: &str = "panic in the verb";

/// An open realm with a writer that can be paused.
pub struct PausableRealm {
    pub engine: Engine,
    guard: EngineGuard,
    directory: TempDir,
    stopped: signals::UnboundedReceiver<()>,
    go_on: mpsc::Sender<()>,
    /// How often the writer has started to apply a command.
    pub applied: Arc<AtomicUsize>,
}

impl PausableRealm {
    pub fn new(limits: Limits) -> Self {
        Self::with(limits, "")
    }

    /// With batches that also take commands that arrive while they are applied, as in production.
    pub fn gathering(limits: Limits) -> Self {
        Self::open(limits, "", Gathering::OnTheWay)
    }

    /// With additional schema, such as a trigger that fails.
    pub fn with(limits: Limits, schema: &str) -> Self {
        Self::open(limits, schema, Gathering::AtTheStart)
    }

    fn open(limits: Limits, schema: &str, gathering: Gathering) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("main.db");
        open_writer(&path).expect("db").execute_batch(schema).expect("a schema");
        let (tell, stopped) = signals::unbounded_channel();
        let (go_on, wait) = mpsc::channel();
        let applied = Arc::new(AtomicUsize::new(0));
        let count = applied.clone();
        let look = move |record: &Record| match &record.command {
            Command::Announce(said) if said.word == HOLD => {
                tell.send(()).expect("the test waits");
                // When the test ends, the writer continues.
                wait.recv().unwrap_or_default();
            }
            Command::Announce(said) if said.word == PANIC => panic!("requested by the test"),
            _ => {}
        };
        let watch: Watch = Box::new(move |record| {
            count.fetch_add(1, Ordering::Relaxed);
            look(record);
        });
        let (engine, guard) = open_watched(&path, realm_name(), limits, gathering, watch).expect("db");
        Self { engine, guard, directory, stopped, go_on, applied }
    }

    /// Queues a command at which the writer pauses.
    pub fn queue_hold(&self) -> JoinHandle<Result<Seq, EngineError>> {
        self.announce(HOLD)
    }

    /// Queues a command in which the writer panics.
    pub fn queue_panic(&self) -> JoinHandle<Result<Seq, EngineError>> {
        self.announce(PANIC)
    }

    /// Waits until the writer is paused.
    pub async fn stopped(&mut self) {
        self.stopped.recv().await.expect("a writer");
    }

    /// Pauses the writer in a batch of its own.
    pub async fn hold(&mut self) -> JoinHandle<Result<Seq, EngineError>> {
        let held = self.queue_hold();
        self.stopped().await;
        held
    }

    /// Resumes the writer.
    pub fn go_on(&self) {
        self.go_on.send(()).expect("a writer");
    }

    /// Waits until at least `commands` are in the queue.
    pub async fn queued(&self, commands: usize) {
        while self.engine.queue_depth() < commands {
            tokio::task::yield_now().await;
        }
    }

    /// Closes the database and returns its path.
    pub fn closed(self) -> (PathBuf, TempDir) {
        let Self { engine, guard, directory, go_on, .. } = self;
        drop((engine, go_on));
        guard.join();
        (directory.path().join("main.db"), directory)
    }

    fn announce(&self, word: &str) -> JoinHandle<Result<Seq, EngineError>> {
        let engine = self.engine.clone();
        let said = Announce { word: word.to_owned(), data: Json::new("{}").expect("JSON"), to: None };
        tokio::spawn(async move { engine.submit(&Caller::office(), said).await })
    }
}

pub fn realm_name() -> RealmName {
    RealmName::new("main").expect("a realm name")
}
