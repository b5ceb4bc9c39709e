//! The runtime: delivers the messages of tasks to their agents and carries out the agents' replies.
//!
//! Everything that must survive is in the engine: messages, deliveries, runs and notes. An agent's queue is its undelivered
//! messages in the database; the queue in memory is a cache of it, loaded again after a restart.

mod actions;
pub mod definition;
mod drivers;
mod finish;
mod lifecycle;
mod mail_tasks;
mod messages;
mod open_runs;
mod other_doors;
mod outbox;
mod pending_replies;
mod questions;
mod receive;
mod registry;
mod run_state;
mod secrets;
mod steps;
pub(crate) mod task_events;
#[cfg(test)]
mod tests;
mod tools;
mod turns;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{AgentId, AgentKind, Caller, Millis, RunPhase, Seq, Taken, TaskId};
use posthaste_engine::verbs::agents::{Existing, Register};
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::verbs::runs::{Advance, Advanced};
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::mail::split;
use tokio::sync::{Notify, OwnedMutexGuard, watch};
use tokio_util::sync::CancellationToken;

use self::definition::Swarm;
use self::drivers::{AgentQueue, Driver};
pub(crate) use self::lifecycle::{OpenedTask, TaskError, TaskRequest};
pub(crate) use self::receive::ReceiveError;
use posthaste_wire::mail::definition::AgentDefinition;

use self::open_runs::OpenRuns;
pub(crate) use self::registry::{Entry, RegisterError};
pub(crate) use self::run_state::Finish;
use self::run_state::{AgentHost, RunKey, RunState};
use posthaste_host::http::outgoing::{Outgoing, OutgoingClients};
use posthaste_host::services::HostedSwarm;

/// The tag of messages that come through this door.
pub(crate) const VIA: &str = "swarm";
/// How often deadlines are checked.
const DEADLINE_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Runs per read of the database at start.
const RUN_PAGE: usize = 200;
/// Messages of a run per read of the database.
const MESSAGE_PAGE: usize = 1_000;

/// The hosted swarm, with a queue of turns for each of its agents.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) swarm: Arc<Swarm>,
    here: PathBuf,
    agents: HashMap<String, (Arc<AgentDefinition>, Arc<AgentQueue>)>,
    /// For requests to the addresses in the definition.
    outgoing: Outgoing,
    /// Stops its programs when the swarm is replaced.
    stop: CancellationToken,
}

impl Hosted {
    fn new(swarm: Swarm, here: PathBuf, outgoing: &Outgoing, stop: &CancellationToken) -> Self {
        let outgoing = outgoing.clone();
        let stop = stop.child_token();
        let queue = |agent: &AgentDefinition| {
            let driver = Driver::start(agent, &here, &outgoing, &stop);
            (agent.name.clone(), (Arc::new(agent.clone()), Arc::new(AgentQueue::new(agent, driver))))
        };
        let agents = swarm.agents.iter().map(queue).collect();
        Self { swarm: Arc::new(swarm), here, agents, outgoing, stop }
    }

    fn is_connected(&self, agent: &str) -> bool {
        self.agents.get(agent).is_some_and(|(_, queue)| queue.driver.is_connected())
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A run in memory, locked by one task at a time.
#[derive(Debug)]
pub(crate) struct RunCell {
    live: Arc<tokio::sync::Mutex<Slot>>,
    /// Announces new events to streams.
    pub(crate) news: watch::Sender<Seq>,
}

/// The state of a run in memory.
#[derive(Debug)]
enum Slot {
    /// Not loaded yet.
    Empty,
    /// The same state as in the database.
    Loaded(Box<RunState>),
    /// Removed from memory: the lock's holder has to look the run up again.
    Retired,
}

type RunGuard = OwnedMutexGuard<Slot>;

/// Executes the tasks of one realm. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runtime {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    hosted: ArcSwap<Hosted>,
    /// Programs and environment variables that the operator's file uses. A definition that is posted may use no others.
    machine_access: BTreeSet<String>,
    /// Addresses in the operator's file.
    addresses: BTreeSet<String>,
    runs: Mutex<OpenRuns>,
    /// Set when a message stays in its mailbox because its sender has the maximum number of open runs.
    deferred: AtomicBool,
    deadlines: Mutex<BTreeSet<(Millis, RunKey)>>,
    known: Mutex<HashSet<AgentId>>,
    ways: OutgoingClients,
    registry: registry::Registry,
    /// Wakes the delivery to other swarms when messages for them are written.
    outbox: Notify,
    stop: CancellationToken,
}

impl PartialOrd for RunKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RunKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (&self.instance, &self.name).cmp(&(&other.instance, &other.name))
    }
}

impl Runtime {
    /// Hosts a swarm in a realm and resumes the runs that were open.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn start(
        engine: Engine,
        swarm: Swarm,
        here: PathBuf,
        data: PathBuf,
        ways: OutgoingClients,
        stop: CancellationToken,
    ) -> Result<Self, EngineError> {
        let (machine_access, addresses) = (swarm.machine_access(), swarm.addresses());
        let hosted = Hosted::new(swarm, here, &ways.written, &stop);
        let registry = registry::Registry::open(&engine, &data).await?;
        let inner = Inner {
            engine,
            hosted: ArcSwap::from_pointee(hosted),
            machine_access,
            addresses,
            runs: Mutex::default(),
            deferred: AtomicBool::new(false),
            deadlines: Mutex::default(),
            known: Mutex::default(),
            ways,
            registry,
            outbox: Notify::new(),
            stop,
        };
        let runtime = Self { inner: Arc::new(inner) };
        runtime.enter_agents().await?;
        runtime.take_up().await?;
        tokio::spawn(runtime.clone().watch_deadlines());
        tokio::spawn(runtime.clone().route());
        tokio::spawn(runtime.clone().watch_peers());
        tokio::spawn(runtime.clone().follow_others());
        Ok(runtime)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn swarm(&self) -> Arc<Swarm> {
        self.inner.hosted.load().swarm.clone()
    }

    /// Replaces the definition.
    pub(crate) async fn replace(&self, text: &str) -> Result<String, String> {
        let here = self.inner.hosted.load().here.clone();
        let swarm = Swarm::from_text(text, &here).map_err(|error| error.to_string())?;
        if swarm.name != self.swarm().name {
            return Err(format!("field `json` this server hosts the swarm {:?}", self.swarm().name));
        }
        if let Some(access) = swarm.machine_access().difference(&self.inner.machine_access).next() {
            return Err(format!("field `json` has what the operator's file has not: {access}"));
        }
        let name = swarm.name.clone();
        let known = swarm.addresses().is_subset(&self.inner.addresses);
        let ways = &self.inner.ways;
        let outgoing = if known { &ways.written } else { &ways.named };
        let hosted = Hosted::new(swarm, here, outgoing, &self.inner.stop);
        self.inner.hosted.store(Arc::new(hosted));
        self.enter_agents().await.map_err(|error| error.to_string())?;
        Ok(name)
    }

    /// Registers the swarm's agents with the engine. Agents that connect by another door register themselves.
    async fn enter_agents(&self) -> Result<(), EngineError> {
        let hosted = self.inner.hosted.load_full();
        for (name, (_, queue)) in &hosted.agents {
            if queue.driver.is_connected() {
                continue;
            }
            if let Ok(id) = AgentId::new(name) {
                self.enter(id, AgentKind::Agent).await?;
            }
        }
        self.limit_reach(&hosted).await
    }

    /// Sets the engine's rules so that agents of other doors write only to their `comm_targets` within this swarm's tasks.
    /// For agents with a driver the runtime checks that itself.
    async fn limit_reach(&self, hosted: &Hosted) -> Result<(), EngineError> {
        let target = |listed: &String| match split(listed) {
            (name, Some(swarm)) if swarm == hosted.swarm.name => AgentId::new(name).ok(),
            _ => AgentId::new(listed).ok(),
        };
        let limited = |(name, (agent, queue)): (&String, &(Arc<AgentDefinition>, Arc<AgentQueue>))| {
            let id = AgentId::new(name).ok().filter(|_| queue.driver.is_connected())?;
            Some((id, agent.comm_targets.iter().filter_map(target).collect()))
        };
        let reach: BTreeMap<AgentId, BTreeSet<AgentId>> = hosted.agents.iter().filter_map(limited).collect();
        let rules = self.inner.engine.read(|view| view.rules()).await?;
        if rules.reach != reach {
            let rules = SetRules { rules: Rules { reach, ..rules } };
            self.inner.engine.submit(&Caller::admin(AgentId::office(), VIA), rules).await?;
        }
        Ok(())
    }

    /// Registers an agent or a user with the engine unless it is registered.
    async fn enter(&self, id: AgentId, kind: AgentKind) -> Result<(), EngineError> {
        if lock(&self.inner.known).contains(&id) {
            return Ok(());
        }
        let (caller, name) = (Caller::office(), id.clone());
        let there = self.inner.engine.read(move |view| view.agent(&caller, &name).map(drop)).await.is_ok();
        if !there {
            let owner = (kind != AgentKind::Agent).then(|| id.clone());
            let existing = Existing::TakeOver;
            let entry =
                Register { id: Some(id.clone()), kind: Some(kind), owner, existing, ..Register::default() };
            self.inner.engine.submit(&Caller::admin(AgentId::office(), VIA), entry).await?;
        }
        let mut known = lock(&self.inner.known);
        // Bounded: an entry that is missing costs one more read.
        if known.len() > 100_000 {
            known.clear();
        }
        known.insert(id);
        Ok(())
    }

    /// Resumes the runs that were open when the server stopped.
    async fn take_up(&self) -> Result<(), EngineError> {
        let mut after = 0;
        loop {
            let page = self
                .inner
                .engine
                .read(move |view| view.live_runs(&Caller::office(), after, RUN_PAGE))
                .await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            for run in page {
                let key = RunKey::new(&run.instance, &run.name);
                let (cell, mut guard) = self.hold(&key).await;
                if self.load(&key, &mut guard).await?.is_none() {
                    continue;
                }
                if let Slot::Loaded(live) = &mut *guard {
                    self.note_deadline(live);
                    self.start_turns(&cell, live);
                    self.check_idle(&cell, live).await;
                    self.retire(&cell, &mut guard);
                }
            }
        }
    }

    /// Locks a run.
    async fn hold(&self, key: &RunKey) -> (Arc<RunCell>, RunGuard) {
        loop {
            // Never refused without a maximum.
            if let Some(guard) = self.hold_within(key, usize::MAX).await {
                return guard;
            }
        }
    }

    /// Locks a run, unless it is not open and its caller already has `most` open runs.
    async fn hold_within(&self, key: &RunKey, most: usize) -> Option<(Arc<RunCell>, RunGuard)> {
        loop {
            let cell = lock(&self.inner.runs).enter(key, most)?;
            let guard = cell.live.clone().lock_owned().await;
            if !matches!(*guard, Slot::Retired) {
                return Some((cell, guard));
            }
        }
    }

    /// Loads a run from the database unless it is loaded. Returns the deliveries of an ended run that no agent will handle, or
    /// `None` if there is no such run.
    async fn load(&self, key: &RunKey, guard: &mut RunGuard) -> Result<Option<Vec<Taken>>, EngineError> {
        if matches!(**guard, Slot::Loaded(_)) {
            return Ok(Some(Vec::new()));
        }
        let (instance, name) = (key.instance.clone(), key.name.clone());
        let read = self.inner.engine.read(move |view| {
            let caller = Caller::office();
            let Some((run, task)) = view.run(&caller, &instance, &name)? else { return Ok(None) };
            let mut record = view.run_record(&caller, &run.task, 0, MESSAGE_PAGE)?;
            while record.more {
                let from = record.messages.last().map_or(0, |row| row.message.seq + 1);
                let next = view.run_record(&caller, &run.task, from, MESSAGE_PAGE)?;
                record.notes.extend(next.notes.into_iter().filter(|note| note.before >= from));
                record.messages.extend(next.messages);
                record.more = next.more;
            }
            Ok(Some((run, task, record)))
        });
        let Some((run, task, record)) = read.await? else { return Ok(None) };
        let hosted = self.inner.hosted.load();
        let host = |name: &str| match hosted.agents.get(name) {
            None => AgentHost::Foreign,
            Some((_, queue)) if queue.driver.is_connected() => AgentHost::OtherDoor,
            Some(_) => AgentHost::Runtime,
        };
        let (live, stale) = RunState::load(key.clone(), &run, &task, &record, &hosted.swarm.name, host);
        **guard = Slot::Loaded(Box::new(live));
        Ok(Some(stale))
    }

    /// Removes a run from memory if it has ended, is paused or waits for another swarm, and no caller waits for its end.
    fn retire(&self, cell: &Arc<RunCell>, guard: &mut RunGuard) {
        let Slot::Loaded(live) = &**guard else { return };
        let done = match live.phase {
            RunPhase::Running => live.is_at_rest() && !self.is_ours(live),
            RunPhase::Paused | RunPhase::Ended => {
                live.agents.values().all(|agent_state| agent_state.busy.is_none())
            }
        };
        if !done || live.is_awaited() {
            return;
        }
        self.forget_deadline(live);
        let mut runs = lock(&self.inner.runs);
        if runs.get(&live.key).is_some_and(|kept| Arc::ptr_eq(kept, cell)) {
            runs.remove(&live.key);
        }
        drop(runs);
        **guard = Slot::Retired;
    }

    /// Whether a run's task belongs to this swarm.
    fn is_ours(&self, live: &RunState) -> bool {
        let swarm = self.inner.engine.realm().as_str();
        live.owner.rsplit_once('@').is_some_and(|(_, owner)| owner == swarm)
    }

    /// Submits a step of a run.
    async fn advance(&self, step: Advance) -> Result<Advanced, EngineError> {
        self.inner.engine.submit(&Caller::admin(step.agent.clone(), VIA), step).await
    }

    fn note_deadline(&self, live: &RunState) {
        if let Some(deadline) = live.state.deadline {
            lock(&self.inner.deadlines).insert((deadline, live.key.clone()));
        }
    }

    fn forget_deadline(&self, live: &RunState) {
        if let Some(deadline) = live.state.deadline {
            lock(&self.inner.deadlines).remove(&(deadline, live.key.clone()));
        }
    }

    async fn watch_deadlines(self) {
        let mut tick = tokio::time::interval(DEADLINE_CHECK_INTERVAL);
        loop {
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            let now = stamp::now();
            loop {
                let due = {
                    let mut deadlines = lock(&self.inner.deadlines);
                    match deadlines.first() {
                        Some((at, _)) if *at <= now => deadlines.pop_first(),
                        _ => None,
                    }
                };
                let Some((at, key)) = due else { break };
                self.time_out(&key, at).await;
            }
        }
    }

    /// Whether an instance has open runs.
    pub(crate) fn is_running_for(&self, instance: &str) -> bool {
        lock(&self.inner.runs).has(instance)
    }

    /// The task and phase of a run in the database, and the run in memory if it is open.
    pub(crate) async fn watch(
        &self,
        instance: &str,
        name: &str,
    ) -> Result<Option<(TaskId, RunPhase, Option<Arc<RunCell>>)>, EngineError> {
        // Before the read, so that the cell announces everything that the read does not see.
        let cell = lock(&self.inner.runs).get(&RunKey::new(instance, name)).cloned();
        let (of, called) = (instance.to_owned(), name.to_owned());
        let found = self.inner.engine.read(move |view| view.run(&Caller::office(), &of, &called)).await?;
        Ok(found.map(|(run, _)| (run.task, run.phase, cell)))
    }

    /// Posts JSON to another swarm.
    pub(crate) async fn post_to(
        &self,
        url: &str,
        token: &str,
        body: &impl serde::Serialize,
        patience: Duration,
    ) -> Result<posthaste_host::http::outgoing::Answer, posthaste_host::http::outgoing::OutgoingError> {
        self.inner.ways.named.post_json(url, Some(token), body, patience).await
    }

    /// Number of runs in memory.
    pub(crate) fn live_count(&self) -> usize {
        lock(&self.inner.runs).len()
    }
}

/// Runs a call to its end, also when its future is dropped because the client's connection was cut. A step that was
/// written but not applied to the run in memory would leave its messages unhandled until a restart.
async fn uninterrupted<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(call).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The process is ending.
            Err(_) => std::future::pending().await,
        },
    }
}

fn new_cell() -> Arc<RunCell> {
    Arc::new(RunCell { live: Arc::new(tokio::sync::Mutex::new(Slot::Empty)), news: watch::Sender::new(0) })
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostedSwarm for Runtime {
    fn live_tasks(&self) -> usize {
        self.live_count()
    }

    fn trust_peer(&self, name: &posthaste_engine::nouns::RealmName, url: &str) -> Result<(), String> {
        self.registry().trust(name, url).map_err(|error| error.to_string())
    }
}
