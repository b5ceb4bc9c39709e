//! What the whole fleet shares: where the office is, the ledger, what time it is in the run, and what was done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::chance::Chance;
use super::ledger::{Ledger, Outcome, Sitting};
use super::mark::Mark;
use super::plan::Plan;
use posthaste::cli::exit::Failure;

/// The swarm that the office hosts, and so the realm that everything happens in.
pub(super) const REALM: &str = "soak";

pub(super) struct Field {
    pub(super) address: String,
    /// Of whoever runs the office.
    pub(super) token: String,
    /// The agents' own tokens; empty where a door has none.
    pub(super) tokens: Vec<String>,
    /// The conversations' ids.
    pub(super) conversations: Vec<String>,
    pub(super) mail: PathBuf,
    pub(super) plan: Plan,
    pub(super) ledger: Ledger,
    pub(super) seed: u64,
    /// How long each agent waits between two things it does, about.
    pub(super) pause: Duration,
    /// Nobody begins anything new.
    pub(super) ending: CancellationToken,
    /// Everybody leaves.
    pub(super) closing: CancellationToken,
    pub(super) deeds: Deeds,
    /// How many letters each agent has acknowledged, and how many reservations it holds: both with an answer.
    pub(super) acked: Vec<AtomicU64>,
    pub(super) held: Vec<AtomicU64>,
    /// How often the office has been killed.
    epoch: AtomicU64,
    /// How often it was killed or opened again; it is open while this is even.
    phase: AtomicU64,
    sittings: AtomicU64,
    /// What the office said when it refused, and how often.
    refusals: Mutex<BTreeMap<String, u64>>,
    by_door: Mutex<BTreeMap<&'static str, DoorCount>>,
}

/// What was sent by one door.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct DoorCount {
    pub(super) agents: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) unanswered: u64,
}

macro_rules! deeds {
    ($($name:ident),+) => {
        /// What was done besides sending.
        #[derive(Debug, Default)]
        pub(super) struct Deeds { $(pub(super) $name: AtomicU64),+ }

        impl Deeds {
            pub(super) fn all(&self) -> BTreeMap<&'static str, u64> {
                [$((stringify!($name), self.$name.load(Ordering::Relaxed))),+].into()
            }
        }
    };
}

deeds!(
    joins,
    farewells,
    crashes,
    half_sent,
    naps,
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

impl Field {
    #[expect(clippy::too_many_arguments, reason = "each is one field")]
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
            deeds: Deeds::default(),
            acked,
            held,
            epoch: AtomicU64::new(0),
            phase: AtomicU64::new(0),
            sittings: AtomicU64::new(0),
            refusals: Mutex::default(),
            by_door: Mutex::new(by_door),
        }
    }

    /// Chance of an agent's own.
    pub(super) fn chance(&self, me: u32) -> Chance {
        Chance::new(self.seed, 1_000_000 + u64::from(me))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The office is dead and not yet open again.
    pub(super) fn office_died(&self) {
        self.phase.fetch_add(1, Ordering::AcqRel);
        self.epoch.store(self.ledger.office_died(), Ordering::Release);
    }

    /// It is open again.
    pub(super) fn office_opened(&self) {
        self.phase.fetch_add(1, Ordering::AcqRel);
    }

    /// What to compare later with [`Self::was_open_since`].
    pub(super) fn phase(&self) -> u64 {
        self.phase.load(Ordering::Acquire)
    }

    /// Whether the office has been open all the time since then.
    pub(super) fn was_open_since(&self, phase: u64) -> bool {
        phase.is_multiple_of(2) && self.phase() == phase
    }

    /// A connection broke. That is the office's fault only if it was alive; whoever is killed is noticed a moment later.
    pub(super) async fn connection_broke(&self, me: u32, phase: u64, why: &Failure) {
        tokio::time::sleep(Duration::from_millis(700)).await;
        if self.was_open_since(phase) && !self.closing.is_cancelled() {
            let text = format!("{}: {}", self.plan.name(me), why.error);
            self.ledger.find("door: a connection broke", text);
        }
    }

    /// A reading that nobody has begun yet.
    pub(super) fn sitting(&self) -> Sitting {
        Sitting::Number(self.sittings.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// What became of a letter; `why` is what the office said if it refused.
    pub(super) fn settle(&self, mark: Mark, outcome: Outcome, why: &str) {
        self.ledger.settle(mark, outcome);
        let door = self.plan.agent(mark.channel.from).door.word();
        let mut by_door = self.by_door.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_door.entry(door).or_default();
        match outcome {
            Outcome::Acked => count.acknowledged += 1,
            Outcome::Refused => count.refused += 1,
            Outcome::Unknown => count.unanswered += 1,
        }
        drop(by_door);
        if outcome == Outcome::Refused {
            self.refused(why, &mark.to_string());
        }
    }

    /// The office refused something. Nothing in a soak is meant to be refused, but that it has too much to do.
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

    /// Waits, or until nothing new is to be begun. True if there is more to do.
    pub(super) async fn rest(&self, span: Duration) -> bool {
        tokio::select! {
            () = self.ending.cancelled() => false,
            () = tokio::time::sleep(span) => !self.ending.is_cancelled(),
        }
    }

    /// Waits, or until everybody leaves. True if there is time left.
    pub(super) async fn linger(&self, span: Duration) -> bool {
        tokio::select! {
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(span) => !self.closing.is_cancelled(),
        }
    }
}

/// Counts one.
pub(super) fn tick(deed: &AtomicU64) {
    deed.fetch_add(1, Ordering::Relaxed);
}
