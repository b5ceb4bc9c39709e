//! A session: its participant, its agents, its capabilities and its subscriptions. It outlives its connection while it can be
//! resumed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_engine::nouns::{AgentId, AgentKind, Caller, Rights, TokenRole};
use posthaste_engine::{Engine, EngineError, Refusal, VerifiedAt, stamp};
use posthaste_wire::Id;
use posthaste_wire::map::session::{ParticipantData, SessionInfo};
use posthaste_wire::map::{Capabilities, Mode, Switch};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Line;
use super::subscription::Subscription;
use super::{RESUME_WINDOW, VIA};
use posthaste_host::caller::Identity;

/// Prefix of generated participant ids.
pub(super) const PARTICIPANT: &str = "participant-";
/// Maximum number of callers as which one session follows events: each one checks each event.
const MAX_FOLLOWERS: usize = 16;
/// How long delivery tasks may take to end after their connection.
const DELIVERY_END_TIMEOUT: Duration = Duration::from_secs(1);

/// Which vocabulary a session is answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The SDK's.
    Sdk,
    /// The draft's.
    Draft(Mode),
}

/// The type of a participant, as it declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Client,
    Agent,
    Gateway,
    System,
}

impl Part {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "client" => Self::Client,
            "agent" => Self::Agent,
            "gateway" => Self::Gateway,
            "system" => Self::System,
            _ => return None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Agent => "agent",
            Self::Gateway => "gateway",
            Self::System => "system",
        }
    }

    /// The kind of the participant's own entry.
    pub(super) fn kind(self) -> AgentKind {
        match self {
            Self::Client | Self::Agent => AgentKind::Client,
            Self::Gateway => AgentKind::Gateway,
            Self::System => AgentKind::System,
        }
    }
}

/// What happens to a session's agents when its connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// They are unregistered.
    Unregister,
    /// They stay registered, without an owner.
    Orphan,
    /// They are kept for a while.
    Grace(Duration),
}

/// The member of an agent's metadata that stores the policy of its session, so that it applies after a restart, too.
pub(super) const POLICY: &str = "disconnectPolicy";

impl Policy {
    /// The policy of sessions that ask for none.
    pub(super) const DEFAULT: Self = Self::Grace(RESUME_WINDOW);

    /// As it is stored with an agent: a word, or milliseconds.
    pub(super) fn to_value(self) -> Value {
        match self {
            Self::Unregister => "unregister".into(),
            Self::Orphan => "orphan".into(),
            Self::Grace(window) => u64::try_from(window.as_millis()).unwrap_or(u64::MAX).into(),
        }
    }

    /// Reads a stored policy; agents without one have the default.
    pub(super) fn from_value(value: Option<&Value>) -> Self {
        match value {
            Some(Value::String(word)) if word == "unregister" => Self::Unregister,
            Some(Value::String(word)) if word == "orphan" => Self::Orphan,
            Some(Value::Number(millis)) => {
                millis.as_u64().map_or(Self::DEFAULT, |millis| Self::Grace(Duration::from_millis(millis)))
            }
            _ => Self::DEFAULT,
        }
    }
}

/// One participant.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) participant: AgentId,
    pub(super) part: Part,
    pub(super) name: Option<String>,
    pub(super) identity: Identity,
    pub(super) policy: Policy,
    /// Whether others hear that it disconnected.
    pub(super) notify: bool,
    pub(super) created_at: i64,
    /// Tasks that deliver messages to its agents, on any of its connections.
    pub(super) carriers: TaskTracker,
    /// Whether it has a chosen name, which another token may get.
    chosen: bool,
    /// The version of [`Session::names_seen`] at which its names were last found to be its own.
    reviewed: VerifiedAt,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    dialect: Dialect,
    agents: Vec<AgentId>,
    slots: HashMap<AgentId, CancellationToken>,
    subscriptions: HashMap<String, Arc<Subscription>>,
    capabilities: Arc<Capabilities>,
    token: String,
    line: Option<Line>,
    /// Number of connections so far, by which a timer of an earlier one recognizes a later one.
    epoch: u64,
    closed_at: Option<i64>,
    listed: bool,
}

impl Inner {
    /// Tells the session's subscriptions that its names changed.
    fn tell_names_changed(&self) {
        self.subscriptions.values().for_each(|subscription| subscription.names_changed());
    }
}

/// What is fixed when a session begins.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) participant: AgentId,
    /// Whether the participant chose that name, which is not the one on its token.
    pub(super) chosen: bool,
    pub(super) part: Part,
    pub(super) name: Option<String>,
    pub(super) identity: Identity,
    pub(super) dialect: Dialect,
    pub(super) policy: Policy,
    pub(super) notify: bool,
    pub(super) capabilities: Arc<Capabilities>,
}

impl Session {
    pub(super) fn new(opening: Opening) -> Self {
        let Opening { participant, chosen, part, name, identity, dialect, policy, notify, capabilities } =
            opening;
        Self {
            id: fresh("session-"),
            chosen: chosen && participant != identity.name && identity.role != TokenRole::Admin,
            participant,
            part,
            name,
            identity,
            policy,
            notify,
            created_at: stamp::now(),
            carriers: TaskTracker::new(),
            reviewed: VerifiedAt::default(),
            inner: Mutex::new(Inner {
                dialect,
                agents: Vec::new(),
                slots: HashMap::new(),
                subscriptions: HashMap::new(),
                capabilities,
                token: String::new(),
                line: None,
                epoch: 0,
                closed_at: None,
                listed: false,
            }),
        }
    }

    /// The agent that it acts as: its first agent, or the participant itself.
    pub(super) fn actor(&self) -> AgentId {
        self.lock().agents.first().unwrap_or(&self.participant).clone()
    }

    /// The caller that the engine sees.
    pub(super) fn caller(&self) -> Caller {
        self.caller_as(self.actor())
    }

    /// The caller for one of its agents.
    pub(super) fn caller_as(&self, agent: AgentId) -> Caller {
        let admin = self.part == Part::System && self.is_operator();
        let observe = self.identity.observe && self.may(Switch::Observe);
        Caller { agent, rights: Rights { member: true, observe, admin }, via: VIA.to_owned() }
    }

    /// The callers as which it follows events: the one it acts as, its other agents and the participant. An observer sees nearly
    /// everything as the first.
    pub(super) fn followers(&self) -> Vec<Caller> {
        let first = self.caller();
        if first.rights.observe {
            return vec![first];
        }
        let mut names = self.agents();
        names.truncate(MAX_FOLLOWERS - 1);
        names.push(self.participant.clone());
        let others = names.into_iter().filter(|name| *name != first.agent);
        let others: Vec<Caller> = others.map(|name| self.caller_as(name)).collect();
        std::iter::once(first).chain(others).collect()
    }

    /// The caller of mail's methods, which have switches of their own: `canObserve` does not apply there, and administrators are
    /// not participants of every conversation.
    pub(super) fn mail_caller(&self) -> Caller {
        let rights = Rights { member: true, observe: self.identity.observe, admin: false };
        Caller { agent: self.actor(), rights, via: VIA.to_owned() }
    }

    /// The caller that changes tasks. Administrators may change all tasks, others those that they take part in.
    pub(super) fn task_caller(&self) -> Caller {
        if self.is_operator() { self.steering() } else { self.caller() }
    }

    /// The caller that changes an agent: the agent itself if it belongs to the session.
    pub(super) fn caller_for(&self, agent: &AgentId) -> Caller {
        if self.owns(agent) { self.caller_as(agent.clone()) } else { self.caller() }
    }

    /// An administrator's rights in this participant's name, for actions on agents of others that its capabilities allow.
    pub(super) fn steering(&self) -> Caller {
        Caller::admin(self.actor(), VIA)
    }

    /// Data of the events that announce that the participant connected or disconnected.
    pub(super) fn participant_data(&self, resumed: Option<bool>) -> ParticipantData {
        ParticipantData {
            participant_id: self.participant.to_string(),
            participant_type: self.part.as_str().to_owned(),
            name: self.name.clone(),
            resumed,
        }
    }

    pub(super) fn is_operator(&self) -> bool {
        self.identity.role == TokenRole::Admin
    }

    pub(super) fn may(&self, switch: Switch) -> bool {
        self.lock().capabilities.allows(switch)
    }

    /// Whether it and its agents get messages.
    pub(super) fn receives(&self) -> bool {
        self.may(Switch::Receive)
    }

    pub(super) fn capabilities(&self) -> Arc<Capabilities> {
        self.lock().capabilities.clone()
    }

    /// Sets the given switches and returns all of them.
    pub(super) fn change_capabilities(&self, given: &serde_json::Map<String, Value>) -> Arc<Capabilities> {
        let mut inner = self.lock();
        inner.capabilities = Arc::new(inner.capabilities.changed(given));
        inner.capabilities.clone()
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.lock().dialect
    }

    /// Switches to acp-compat mode.
    pub(super) fn become_compat(&self) {
        self.lock().dialect = Dialect::Draft(Mode::AcpCompat);
    }

    pub(super) fn is_draft(&self) -> bool {
        matches!(self.dialect(), Dialect::Draft(_))
    }

    pub(super) fn is_compat(&self) -> bool {
        self.dialect() == Dialect::Draft(Mode::AcpCompat)
    }

    pub(super) fn has_agents(&self) -> bool {
        !self.lock().agents.is_empty()
    }

    pub(super) fn agents(&self) -> Vec<AgentId> {
        self.lock().agents.clone()
    }

    /// The version of its names: another when they may have gone to other holders.
    pub(super) fn names_seen(&self, engine: &Engine) -> u64 {
        // A chosen name need not be registered, so another holder may get it without a reassignment.
        if self.chosen { engine.directory_version() } else { engine.names_reassigned() }
    }

    /// Gives up agents whose names other holders have now; fails if that holds for its own. Cheap while no name changes holders.
    pub(super) async fn review(&self, engine: &Engine) -> Result<(), EngineError> {
        let seen = self.names_seen(engine);
        if self.reviewed.is(seen) {
            return Ok(());
        }
        if self.chosen {
            let (participant, bearer) = (self.participant.clone(), self.identity.bearer());
            let realm = engine.realm().clone();
            let is_ours = engine.read(move |view| {
                let holder = view.bearer_of(&Caller::office(), &participant)?;
                let gone = view.agent(&Caller::office(), &participant).is_err();
                let free = view.may_claim(&realm, &bearer, &participant).is_ok();
                Ok(free && (gone || holder.is_none_or(|holder| holder == bearer.name)))
            });
            if !is_ours.await? {
                // Its streams and calls end; a new connection gets another name.
                if let Some(line) = self.line() {
                    line.stop.cancel();
                }
                let agent = self.participant.to_string();
                return Err(Refusal::NoSuchAgent { agent, near: Vec::new() }.into());
            }
        }
        let (agents, participant) = (self.agents(), self.participant.clone());
        if !agents.is_empty() {
            let lost = engine.read(move |view| {
                let is_ours = |id: &AgentId| {
                    let entry = view.agent(&Caller::office(), id);
                    entry.is_ok_and(|agent| agent.owner.as_ref() == Some(&participant))
                };
                Ok(agents.into_iter().filter(|id| !is_ours(id)).collect::<Vec<_>>())
            });
            lost.await?.iter().for_each(|agent| self.remove_agent(agent));
        }
        self.reviewed.set(seen);
        Ok(())
    }

    pub(super) fn owns(&self, agent: &AgentId) -> bool {
        *agent == self.participant || self.lock().agents.contains(agent)
    }

    /// Adds an agent, and the token that stops its deliveries.
    pub(super) fn add_agent(&self, agent: AgentId, slot: CancellationToken) {
        let mut inner = self.lock();
        if !inner.agents.contains(&agent) {
            inner.agents.push(agent.clone());
            inner.tell_names_changed();
        }
        if let Some(before) = inner.slots.insert(agent, slot) {
            before.cancel();
        }
    }

    /// Adds the token that stops deliveries to the participant itself.
    pub(super) fn add_slot(&self, slot: CancellationToken) {
        if let Some(before) = self.lock().slots.insert(self.participant.clone(), slot) {
            before.cancel();
        }
    }

    /// Whether the participant itself is registered.
    pub(super) fn is_listed(&self) -> bool {
        self.lock().listed
    }

    pub(super) fn set_listed(&self) {
        self.lock().listed = true;
    }

    pub(super) fn remove_agent(&self, agent: &AgentId) {
        let mut inner = self.lock();
        let before = inner.agents.len();
        inner.agents.retain(|other| other != agent);
        if inner.agents.len() != before {
            inner.tell_names_changed();
        }
        if let Some(slot) = inner.slots.remove(agent) {
            slot.cancel();
        }
    }

    pub(super) fn subscriptions(&self) -> Vec<Arc<Subscription>> {
        self.lock().subscriptions.values().cloned().collect()
    }

    pub(super) fn subscription(&self, id: &str) -> Option<Arc<Subscription>> {
        self.lock().subscriptions.get(id).cloned()
    }

    /// Adds a subscription; false if there are `most` already.
    pub(super) fn add_subscription(&self, subscription: Arc<Subscription>, most: usize) -> bool {
        let mut inner = self.lock();
        if inner.subscriptions.len() >= most {
            return false;
        }
        inner.subscriptions.insert(subscription.id.clone(), subscription);
        true
    }

    pub(super) fn remove_subscription(&self, id: &str) -> Option<Arc<Subscription>> {
        self.lock().subscriptions.remove(id)
    }

    /// Attaches a connection and returns a new resume token.
    pub(super) fn attach(&self, line: Line) -> String {
        let mut inner = self.lock();
        inner.epoch += 1;
        inner.line = Some(line);
        inner.token = fresh("resume_") + &stamp::secret()[..32];
        inner.token.clone()
    }

    /// Detaches the connection and returns its number; `None` if there is none.
    pub(super) fn detach(&self) -> Option<u64> {
        let mut inner = self.lock();
        let line = inner.line.take()?;
        line.stop.cancel();
        inner.slots.clear();
        inner.closed_at = Some(stamp::now());
        Some(inner.epoch)
    }

    /// Waits until the delivery tasks of its agents have ended. They were cancelled with the connection; until they end, the
    /// agents count as connected.
    pub(super) async fn carriers_gone(&self) {
        self.carriers.close();
        // A connection that was attached meanwhile has delivery tasks of its own.
        let _ = tokio::time::timeout(DELIVERY_END_TIMEOUT, self.carriers.wait()).await;
        self.carriers.reopen();
    }

    /// Whether no connection was attached since that one was lost.
    pub(super) fn is_gone_since(&self, epoch: u64) -> bool {
        let inner = self.lock();
        inner.line.is_none() && inner.epoch == epoch
    }

    pub(super) fn is_live(&self) -> bool {
        self.lock().line.is_some()
    }

    pub(super) fn line(&self) -> Option<Line> {
        self.lock().line.clone()
    }

    pub(super) fn token(&self) -> String {
        self.lock().token.clone()
    }

    pub(super) fn info(&self) -> SessionInfo {
        let inner = self.lock();
        let closed_at = inner.closed_at.filter(|_| inner.line.is_none());
        SessionInfo {
            id: self.id.clone(),
            created_at: self.created_at,
            last_active_at: closed_at.unwrap_or_else(stamp::now),
            closed_at,
            participant_id: None,
            participant_type: None,
            agents: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new id.
pub(super) fn fresh(prefix: &str) -> String {
    Id(stamp::Stamp::new().id.as_u128()).prefixed(prefix).to_string()
}
