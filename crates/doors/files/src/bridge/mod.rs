//! The bridge: keeps a mail directory and a realm in step, both ways. One task does everything in turn; its state can be
//! rebuilt from the database and the directory, so it may stop at any time and lose nothing.

mod convert;
mod intake;
mod mailbox_state;
mod outlet;
mod reconcile;
mod signals;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use posthaste_engine::nouns::{AgentId, Caller};
use posthaste_engine::{Engine, Feed, Filter, Start, Step};
use tokio_util::sync::CancellationToken;

use self::mailbox_state::MailboxState;
use self::watch::{Change, Watch};
use super::directory::{MailDir, Mailbox};
use super::errors::FilesError;
use super::signals::StateDir;

/// How often the directory is scanned for changes that no notification told of.
const SWEEP_EVERY: Duration = Duration::from_secs(2);
/// Every this many sweeps, one compares every file's version and not only names.
const DEEP_EVERY: u32 = 30;
/// Events that are handled together.
const EVENTS_AT_ONCE: usize = 256;
/// Agents that are known to be registered.
const MAX_KNOWN_AGENTS: usize = 65_536;
/// Files that arrived more recently than this, in nanoseconds, are not archived even if their name is old.
const MIN_TIME_IN_MAILBOX: i128 = 10 * 60 * 1_000_000_000;

/// Settings of the bridge.
#[derive(Clone, Debug)]
pub struct BridgeOptions {
    /// The directory of mailboxes.
    pub mail_dir: PathBuf,
    /// How often old mail is archived.
    pub archive_every: Duration,
    /// Whether other accounts may make mailboxes in it.
    pub shared: bool,
    /// Agents of other doors that get their messages as files, too.
    pub agents: Vec<String>,
}

/// A bridge that is ready to run.
#[derive(Debug)]
pub struct Bridge {
    engine: Engine,
    mail: Arc<MailDir>,
    state: Option<StateDir>,
    watch: Watch,
    feed: Feed,
    mailboxes: HashMap<String, MailboxState>,
    /// Files that are read when nothing else is to be done, so that a large mailbox delays no other.
    backlog: VecDeque<Backlog>,
    /// Agents that are registered.
    agents: HashSet<String>,
    signals: HashMap<PathBuf, Vec<u8>>,
    /// Agents of other doors that get their messages as files, too.
    opted_in: HashSet<String>,
    archive_every: Duration,
    /// The accounts whose mailboxes are used; all if `None`.
    owners: Option<Vec<u32>>,
    /// Mailboxes of other accounts that were logged.
    foreign: HashSet<String>,
    /// Whether the next sweep compares every file's version.
    deep: bool,
    /// Whether it was logged that the engine accepts no messages.
    is_failing: bool,
}

/// Mailboxes of other accounts that are logged.
const MAX_FOREIGN_WARNINGS: usize = 1_000;

/// The accounts whose mailboxes are used in a directory that is not shared: the process's, root and its owner.
fn owners_of(mail: &MailDir) -> Result<Vec<u32>, BridgeError> {
    let (about, us) = (mail.about()?, rustix::process::geteuid().as_raw());
    let is_ours = us == 0 || about.st_uid == us || about.st_uid == 0;
    if !is_ours || about.st_mode & 0o022 != 0 {
        return Err(BridgeError::Host(mail.path().to_owned()));
    }
    Ok(vec![us, 0, about.st_uid])
}

/// Files of a mailbox, or of its archive, that wait to be read.
#[derive(Debug)]
struct Backlog {
    agent: String,
    files: VecDeque<String>,
    archived: bool,
}

/// Why a bridge cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The directory.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// Its owner or mode.
    #[error(
        "{0} can be written by other accounts, which could take any agent's mail by making a mailbox of its name; \
         make it yours alone (chmod go-w), or allow it with --mail-dir-shared"
    )]
    Host(PathBuf),
    /// Watching it.
    #[error("cannot watch the mail directory: {0}")]
    Watch(#[from] notify::Error),
    /// The database.
    #[error(transparent)]
    Engine(#[from] posthaste_engine::EngineError),
}

impl Bridge {
    /// Opens the directory, making it if it does not exist, and begins to watch it.
    ///
    /// # Errors
    /// When it cannot be opened or watched.
    pub async fn open(engine: Engine, options: BridgeOptions) -> Result<Self, BridgeError> {
        let path = options.mail_dir;
        let mail = Arc::new(MailDir::open_or_make(&path)?);
        let owners = if options.shared { None } else { Some(owners_of(&mail)?) };
        // Events name files by the path that is watched, so it must have no links in it.
        let path = path.canonicalize().map_err(|error| FilesError::at(&path, error))?;
        let state = StateDir::of(&path);
        let state_path = state.as_ref().and_then(|_| path.parent());
        let watch = Watch::new(&path, state_path)?;
        let kinds = ["message.sent", "message.read", "message.acked"].map(str::to_owned).to_vec();
        // Older messages are found by reconciling each mailbox.
        let feed = engine.follow(&Caller::office(), Filter::Kinds(kinds), Start::Now, EVENTS_AT_ONCE).await?;
        Ok(Self {
            engine,
            mail,
            state,
            watch,
            feed,
            mailboxes: HashMap::new(),
            backlog: VecDeque::new(),
            agents: HashSet::new(),
            signals: HashMap::new(),
            opted_in: options.agents.into_iter().collect(),
            archive_every: options.archive_every,
            owners,
            foreign: HashSet::new(),
            deep: true,
            is_failing: false,
        })
    }

    /// Whether an agent gets its messages as files: agents that came by files, and those that the operator named. For any
    /// other agent a directory of its name is only a way to write to it, since senders make one.
    async fn takes_files(&self, agent: &AgentId) -> bool {
        self.opted_in.contains(agent.as_str()) || self.door_of(agent).await.as_deref() == Some(convert::VIA)
    }

    /// The door that an agent came by, if it is registered.
    async fn door_of(&self, agent: &AgentId) -> Option<String> {
        let name = agent.clone();
        let entry = self.engine.read(move |view| view.agent(&Caller::office(), &name)).await;
        entry.ok().map(|entry| entry.via)
    }

    /// Whether a mailbox was made by an account that may make one. Logs once if not.
    fn is_trusted(&mut self, mailbox: &Mailbox) -> bool {
        let Some(owners) = &self.owners else { return true };
        let Some(owner) = mailbox.owner() else { return false };
        if owners.contains(&owner) {
            return true;
        }
        if self.foreign.len() < MAX_FOREIGN_WARNINGS && self.foreign.insert(mailbox.agent().to_owned()) {
            let mailbox = mailbox.agent();
            tracing::warn!(mailbox, owner, "passed over: another account made it (see --mail-dir-shared)");
        }
        false
    }

    /// Runs until it is told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        self.begin_signals();
        self.report_orphans().await;
        self.sweep().await;
        let mut sweep = tokio::time::interval_at(tokio::time::Instant::now() + SWEEP_EVERY, SWEEP_EVERY);
        let first = tokio::time::Instant::now() + self.archive_every;
        let mut archive = tokio::time::interval_at(first, self.archive_every);
        let mut sweeps = 0_u32;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changes = self.watch.next() => self.handle_changes(changes).await,
                step = self.feed.next() => match step {
                    Ok(step) => self.handle_events(step).await,
                    // The engine closes.
                    Err(_) => return,
                },
                _ = sweep.tick() => {
                    sweeps += 1;
                    self.deep |= sweeps.is_multiple_of(DEEP_EVERY);
                    self.sweep().await;
                }
                _ = archive.tick() => self.archive().await,
                () = std::future::ready(()), if !self.backlog.is_empty() => self.work_on_backlog().await,
            }
            if self.watch.has_missed() {
                self.deep = true;
                self.sweep().await;
            }
        }
    }

    /// Handles an event together with others that are ready.
    async fn handle_events(&mut self, first: Step) {
        let mut steps = vec![first];
        while steps.len() < EVENTS_AT_ONCE
            && let Some(Ok(step)) = self.feed.next().now_or_never()
        {
            steps.push(step);
        }
        self.follow(steps).await;
    }

    async fn handle_changes(&mut self, changes: HashSet<Change>) {
        let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut mailboxes = BTreeSet::new();
        for change in changes {
            match change {
                Change::File { agent, file } => {
                    files.entry(agent).or_default().insert(file);
                }
                Change::Mailbox(agent) => {
                    mailboxes.insert(agent);
                }
                Change::Signal(path) => self.signal(path).await,
            }
        }
        for agent in mailboxes {
            self.open_mailbox(&agent).await;
        }
        for (agent, files) in files {
            if self.mailboxes.contains_key(&agent) {
                self.read_files(&agent, files.into_iter().collect(), false).await;
            } else {
                self.open_mailbox(&agent).await;
            }
        }
    }

    /// Logs messages that a power cut left undelivered.
    async fn report_orphans(&self) {
        let mail = self.mail.clone();
        let found = tokio::task::spawn_blocking(move || mail.orphans()).await;
        for orphan in found.into_iter().flatten().flatten() {
            tracing::warn!(
                mailbox = orphan.agent,
                file = orphan.file,
                "a whole message was never delivered; `posthaste doctor --restore` delivers it"
            );
        }
    }

    /// Archives old messages, for agents that do not do it themselves.
    async fn archive(&mut self) {
        let agents: Vec<String> = self.mailboxes.keys().cloned().collect();
        for agent in agents {
            let Some(state) = self.mailboxes.get(&agent) else { continue };
            let mailbox = state.mailbox.clone();
            let moved = tokio::task::spawn_blocking(move || {
                mailbox.sweep_temps();
                let now = super::writer::now().nanos();
                mailbox.archive_old(|version| now - version.changed > MIN_TIME_IN_MAILBOX)
            });
            match moved.await {
                Ok(Ok(moved)) => {
                    let Some(state) = self.mailboxes.get_mut(&agent) else { continue };
                    for file in &moved {
                        if let Some(known) = state.known.get_mut(file.as_str()) {
                            known.archived = true;
                        }
                    }
                    if !moved.is_empty() {
                        tracing::info!(mailbox = agent, count = moved.len(), "archived");
                    }
                }
                Ok(Err(error)) => tracing::warn!(mailbox = agent, %error, "cannot be archived"),
                Err(_) => {}
            }
        }
    }
}
