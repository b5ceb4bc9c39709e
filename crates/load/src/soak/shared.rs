//! What the whole fleet shares: the server's address, the ledger, the phase of the run, and counters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::ledger::{Ledger, Outcome, ReaderSession};
use super::plan::Plan;
use super::rng::Rng;
use super::tag::Tag;
use posthaste::cli::exit::Failure;

/// The name of the hosted swarm, and so of the default realm.
pub(super) const REALM: &str = "soak";

pub(super) struct Shared {
    pub(super) address: String,
    /// The operator's token.
    pub(super) token: String,
    /// The agents' own tokens; empty where a door has none.
    pub(super) tokens: Vec<String>,
    /// The conversations' ids.
    pub(super) conversations: Vec<String>,
    pub(super) mail: PathBuf,
    pub(super) plan: Plan,
    pub(super) ledger: Ledger,
    pub(super) seed: u64,
    /// About how long each agent waits between two actions.
    pub(super) pause: Duration,
    /// Cancelled when agents are to begin nothing new.
    pub(super) ending: CancellationToken,
    /// Cancelled when agents are to leave.
    pub(super) closing: CancellationToken,
    pub(super) actions: Actions,
    /// How many messages each agent has acknowledged, and how many reservations it holds, as far as the server confirmed it.
    pub(super) acked: Vec<AtomicU64>,
    pub(super) held: Vec<AtomicU64>,
    /// How often the server was killed.
    epoch: AtomicU64,
    /// How often it was killed or started again; it runs while this is even.
    phase: AtomicU64,
    sessions: AtomicU64,
    /// Texts of refusals, and how often each came.
    refusals: Mutex<BTreeMap<String, u64>>,
    by_door: Mutex<BTreeMap<&'static str, DoorCount>>,
}

/// Messages sent through one door.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct DoorCount {
    pub(super) agents: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) unanswered: u64,
}

macro_rules! actions {
    ($($name:ident),+) => {
        /// Counters of actions other than sending.
        #[derive(Debug, Default)]
        pub(super) struct Actions { $(pub(super) $name: AtomicU64),+ }

        impl Actions {
            pub(super) fn all(&self) -> BTreeMap<&'static str, u64> {
                [$((stringify!($name), self.$name.load(Ordering::Relaxed))),+].into()
            }
        }
    };
}

actions!(
    joins,
    disconnects,
    crashes,
    half_sent,
    pauses,
    turns,
    tasks,
    tasks_looked_at,
    acks,
    reserved,
    released,
    searches,
    files_taken,
    files_written_in_two,
    events_followed,
    presence
);

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "each is one shared")]
    pub(super) fn new(
        address: String,
        token: String,
        tokens: Vec<String>,
        conversations: Vec<String>,
        mail: PathBuf,
        plan: Plan,
        seed: u64,
        rate: u32,
    ) -> Self {
        let mut by_door: BTreeMap<&'static str, DoorCount> = BTreeMap::new();
        for agent in &plan.agents {
            by_door.entry(agent.door.word()).or_default().agents += 1;
        }
        let zeros = || plan.agents.iter().map(|_| AtomicU64::new(0)).collect();
        let (acked, held) = (zeros(), zeros());
        let pause = Duration::from_secs_f64(plan.agents.len() as f64 / f64::from(rate));
        Self {
            address,
            token,
            tokens,
            conversations,
            mail,
            plan,
            ledger: Ledger::default(),
            seed,
            pause,
            ending: CancellationToken::new(),
            closing: CancellationToken::new(),
            actions: Actions::default(),
            acked,
            held,
            epoch: AtomicU64::new(0),
            phase: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            refusals: Mutex::default(),
            by_door: Mutex::new(by_door),
        }
    }

    /// A random number generator for one agent.
    pub(super) fn rng(&self, me: u32) -> Rng {
        Rng::new(self.seed, 1_000_000 + u64::from(me))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes that the server was killed and does not run yet.
    pub(super) fn server_killed(&self) {
        self.phase.fetch_add(1, Ordering::AcqRel);
        self.epoch.store(self.ledger.server_killed(), Ordering::Release);
    }

    /// Notes that it runs again.
    pub(super) fn server_started(&self) {
        self.phase.fetch_add(1, Ordering::AcqRel);
    }

    /// The phase, for [`Self::was_open_since`].
    pub(super) fn phase(&self) -> u64 {
        self.phase.load(Ordering::Acquire)
    }

    /// Whether the server has run all the time since that phase.
    pub(super) fn was_open_since(&self, phase: u64) -> bool {
        phase.is_multiple_of(2) && self.phase() == phase
    }

    /// Reports a broken connection, unless the server was killed: a kill is noticed a moment after the connection breaks.
    pub(super) async fn connection_broke(&self, me: u32, phase: u64, why: &Failure) {
        tokio::time::sleep(Duration::from_millis(700)).await;
        if self.was_open_since(phase) && !self.closing.is_cancelled() {
            let text = format!("{}: {}", self.plan.name(me), why.error);
            self.ledger.find("door: a connection broke", text);
        }
    }

    /// A new reader session.
    pub(super) fn session(&self) -> ReaderSession {
        ReaderSession::Numbered(self.sessions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Notes the outcome of a message; `why` is the text of a refusal.
    pub(super) fn settle(&self, tag: Tag, outcome: Outcome, why: &str) {
        self.ledger.settle(tag, outcome);
        let door = self.plan.agent(tag.channel.from).door.word();
        let mut by_door = self.by_door.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_door.entry(door).or_default();
        match outcome {
            Outcome::Acked => count.acknowledged += 1,
            Outcome::Refused => count.refused += 1,
            Outcome::Unknown => count.unanswered += 1,
        }
        drop(by_door);
        if outcome == Outcome::Refused {
            self.refused(why, &tag.to_string());
        }
    }

    /// Notes a refusal. It is a finding unless the server was busy, since nothing in a soak should be refused.
    pub(super) fn refused(&self, why: &str, what: &str) {
        let short: String = why.chars().take(120).collect();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < 50 || refusals.contains_key(&short) {
            *refusals.entry(short).or_default() += 1;
        }
        drop(refusals);
        if !why.to_lowercase().contains("busy") {
            self.ledger.find("door: refused", format!("{what}: {why}"));
        }
    }

    pub(super) fn refusals(&self) -> BTreeMap<String, u64> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn by_door(&self) -> BTreeMap<&'static str, DoorCount> {
        self.by_door.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits; shorter if agents are to begin nothing new. True if there is more to do.
    pub(super) async fn rest(&self, span: Duration) -> bool {
        tokio::select! {
            () = self.ending.cancelled() => false,
            () = tokio::time::sleep(span) => !self.ending.is_cancelled(),
        }
    }

    /// Waits; shorter if agents are to leave. True if there is time left.
    pub(super) async fn linger(&self, span: Duration) -> bool {
        tokio::select! {
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(span) => !self.closing.is_cancelled(),
        }
    }
}

/// Increments a counter.
pub(super) fn tick(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
