//! Messages from other swarms: checked and added to the run that they belong to.

use posthaste_engine::nouns::{AgentId, Caller, Json, RunPhase, Taken, TaskId};
use posthaste_engine::verbs::runs::{Advance, Opening};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mail::events::InterswarmReceived;
use posthaste_wire::mail::{AddressType, Interswarm, MailAddress, Owner, OwnerRole, split};
use posthaste_wire::mail::{events, subjects};
use serde_json::Value;

use super::messages::{MessageDraft, MessageMeta};
use super::open_runs::MAX_RUNS;
use super::run_state::{Note, RunKey, RunState, SavedState};
use super::steps::is_question;
use super::{RunCell, Runtime, Slot, uninterrupted};

/// Maximum number of contributing instances that are looked up for one message.
const MAX_CONTRIBUTOR_LOOKUPS: usize = 16;

/// Why a message from another swarm is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error("{0}")]
    Bad(String),
    #[error("{0}")]
    NotFound(String),
    #[error("this token's swarm has {most} tasks open here, which is as many as may be; try again later")]
    TooMany { most: usize },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn bad<T>(why: impl Into<String>) -> Result<T, ReceiveError> {
    Err(ReceiveError::Bad(why.into()))
}

impl Runtime {
    /// Receives a message that opens a task here, or continues one. Returns the instance that runs it. Completes even if the
    /// caller drops the call.
    pub(crate) async fn forward(&self, caller: &str, wrapper: Interswarm) -> Result<Owner, ReceiveError> {
        let (runtime, caller) = (self.clone(), caller.to_owned());
        uninterrupted(async move { runtime.receive_forward(&caller, wrapper).await }).await
    }

    /// Receives a message for a task that this swarm works on. Returns the instance that runs it. Completes even if the
    /// caller drops the call.
    pub(crate) async fn back(&self, caller: &str, wrapper: Interswarm) -> Result<Owner, ReceiveError> {
        let (runtime, caller) = (self.clone(), caller.to_owned());
        uninterrupted(async move { runtime.receive_back(&caller, wrapper).await }).await
    }

    async fn receive_forward(&self, caller: &str, wrapper: Interswarm) -> Result<Owner, ReceiveError> {
        let names = self.check(&wrapper)?;
        let own = self.swarm().name.clone();
        let runner = Owner { role: OwnerRole::Swarm, id: caller.to_owned(), swarm: own.clone() };
        if wrapper.task_owner.swarm == own {
            // A task of this swarm cannot be opened by another.
            return self.receive_back(caller, wrapper).await;
        }
        self.receive(runner, wrapper, names, true).await
    }

    async fn receive_back(&self, caller: &str, wrapper: Interswarm) -> Result<Owner, ReceiveError> {
        let names = self.check(&wrapper)?;
        let own = self.swarm().name.clone();
        let local = |one: &&Owner| one.swarm == own;
        let mut candidates: Vec<Owner> = Vec::new();
        let calling = Owner { role: OwnerRole::Swarm, id: caller.to_owned(), swarm: own.clone() };
        if wrapper.task_contributors.contains(&calling) {
            candidates.push(calling);
        }
        // A user's instance runs only the tasks that it owns.
        let people =
            wrapper.task_contributors.iter().filter(local).filter(|one| one.role != OwnerRole::Swarm);
        candidates.extend(people.filter(|one| **one == wrapper.task_owner).cloned());
        // A task of a third swarm, in which a local agent asked the calling swarm.
        let others =
            wrapper.task_contributors.iter().filter(local).filter(|one| one.role == OwnerRole::Swarm);
        let others: Vec<Owner> =
            others.filter(|one| one.id != caller).take(MAX_CONTRIBUTOR_LOOKUPS).cloned().collect();
        if wrapper.task_owner.swarm == own && !candidates.contains(&wrapper.task_owner) {
            candidates.push(wrapper.task_owner.clone());
        }
        if candidates.is_empty() && others.is_empty() {
            return Err(ReceiveError::NotFound(
                "no instance of this swarm contributes to the task".to_owned(),
            ));
        }
        let asked = others.into_iter().map(|runner| (runner, true));
        for (runner, must_be_asked) in candidates.into_iter().map(|runner| (runner, false)).chain(asked) {
            let (instance, name) = (runner.instance(), wrapper.payload.task_id.to_lowercase());
            let found =
                self.inner.engine.read(move |view| view.run(&Caller::office(), &instance, &name)).await?;
            let Some((run, _)) = found else { continue };
            let state = run.state.as_ref().map(SavedState::read).unwrap_or_default();
            if !must_be_asked || state.questions.has_written_to(&wrapper.source_swarm) {
                return self.receive(runner, wrapper, names, false).await;
            }
        }
        Err(ReceiveError::NotFound(format!("task not found: {}", wrapper.payload.task_id)))
    }

    /// Refuses messages that are not for this swarm. Returns the local recipients.
    fn check(&self, wrapper: &Interswarm) -> Result<Vec<String>, ReceiveError> {
        let swarm = self.swarm();
        if !swarm.enable_interswarm {
            return bad("this swarm takes no messages from others");
        }
        if wrapper.target_swarm != swarm.name {
            return bad(format!("field `message.target_swarm` must be {:?}", swarm.name));
        }
        if wrapper.source_swarm == swarm.name {
            return bad("field `message.source_swarm` names this swarm");
        }
        let sender = &wrapper.payload.sender;
        if let Some(other) = split(&sender.address).1
            && other != wrapper.source_swarm
        {
            return bad("field `message.payload.sender.address` is not of the source swarm");
        }
        if !matches!(sender.address_type, AddressType::Agent | AddressType::System) {
            return bad("field `message.payload.sender.address_type` must be agent or system between swarms");
        }
        let mut names: Vec<String> = Vec::new();
        for recipient in &wrapper.payload.recipients {
            let (name, other) = split(&recipient.address);
            if other.is_some_and(|other| other != swarm.name) {
                continue;
            }
            if name == "all" {
                names.extend(swarm.agents.iter().map(|agent| agent.name.clone()));
            } else if swarm.agent(name).is_some() {
                names.push(name.to_owned());
            } else if wrapper.payload.subject != subjects::TASK_COMPLETE {
                return Err(ReceiveError::NotFound(format!("there is no agent {name:?} in this swarm")));
            }
        }
        names.dedup();
        if names.is_empty() && wrapper.payload.subject != subjects::TASK_COMPLETE {
            return bad("field `message.payload` names no agent of this swarm");
        }
        Ok(names)
    }

    async fn receive(
        &self,
        runner: Owner,
        wrapper: Interswarm,
        names: Vec<String>,
        may_open: bool,
    ) -> Result<Owner, ReceiveError> {
        let task_id = wrapper.payload.task_id.to_lowercase();
        let key = RunKey::new(&runner.instance(), &task_id);
        let guard = self.hold_within(&key, MAX_RUNS).await;
        let (cell, mut guard) = guard.ok_or(ReceiveError::TooMany { most: MAX_RUNS })?;
        let stale = self.load(&key, &mut guard).await?;
        if stale.is_none() {
            if !may_open {
                super::lock(&self.inner.runs).remove(&key);
                *guard = Slot::Retired;
                return Err(ReceiveError::NotFound(format!("task not found: {task_id}")));
            }
            let task = TaskId::new(&task_id).map_err(|error| EngineError::from(Refusal::from(error)))?;
            let live = RunState::fresh(key.clone(), task, wrapper.task_owner.to_string());
            *guard = Slot::Loaded(Box::new(live));
        }
        let Slot::Loaded(live) = &mut *guard else { return bad("the task is not at hand") };
        let opened = stale.is_none();
        let took =
            self.take_in(&cell, live, &runner, wrapper, names, opened, stale.unwrap_or_default()).await;
        if took.is_ok() {
            self.start_turns(&cell, live);
            self.check_idle(&cell, live).await;
        } else if opened {
            live.phase = RunPhase::Ended;
        }
        self.retire(&cell, &mut guard);
        took.map(|()| runner)
    }

    #[expect(clippy::too_many_arguments, reason = "one message is all of these")]
    async fn take_in(
        &self,
        cell: &std::sync::Arc<RunCell>,
        live: &mut RunState,
        runner: &Owner,
        wrapper: Interswarm,
        names: Vec<String>,
        opened: bool,
        stale: Vec<Taken>,
    ) -> Result<(), ReceiveError> {
        let swarm = self.swarm();
        if live.owner != wrapper.task_owner.to_string() {
            return bad("field `message.task_owner` is not the task's owner");
        }
        let source = wrapper.source_swarm.as_str();
        let ours = self.is_ours(live);
        if ours && !opened {
            let asked = live.state.questions.has_written_to(source);
            let contributes = live.contributors.iter().any(|one| one.ends_with(&format!("@{source}")));
            if !asked && !contributes {
                return Err(ReceiveError::NotFound(format!("{source} has no part in that task")));
            }
        }
        // Messages after the end of a task of this swarm are dropped, as for local agents.
        if ours && live.phase == RunPhase::Ended {
            return Ok(());
        }
        let over = wrapper.payload.subject == subjects::TASK_COMPLETE && source == wrapper.task_owner.swarm;
        let before = (live.state.clone(), live.phase);
        let payload = wrapper.payload;
        let sender = match payload.sender.address_type {
            AddressType::System => MailAddress { address: source.to_owned(), ..payload.sender.clone() },
            _ => MailAddress::agent(match split(&payload.sender.address) {
                (_, Some(_)) => payload.sender.address.clone(),
                (name, None) => format!("{name}@{source}"),
            }),
        };
        let by_agent = (sender.address_type == AddressType::Agent).then_some(sender.address.as_str());
        match by_agent.filter(|_| is_question(wrapper.msg_type)) {
            Some(_) if live.state.questions.is_full() => {
                return bad("too many questions of other swarms wait for an answer in this task");
            }
            Some(asker) => live.state.questions.asked_by(asker),
            None => live.state.questions.told_by(source, by_agent),
        }
        if live.state.entry.is_empty() {
            live.state =
                SavedState { entry: names.first().cloned().unwrap_or_default(), ..live.state.clone() };
        }
        let extra = MessageMeta {
            // The source that was checked, not the one that the payload names.
            sender_swarm: payload.sender_swarm.as_ref().map(|_| source.to_owned()),
            recipient_swarms: payload.recipient_swarms.clone(),
            routing_info: payload.routing_info.clone(),
            ..MessageMeta::default()
        };
        let draft = MessageDraft {
            kind: wrapper.msg_type,
            sender,
            recipients: payload.recipients.iter().map(|one| localized(one, &swarm.name)).collect(),
            here: if over { Vec::new() } else { names },
            subject: payload.subject.clone(),
            body: payload.body.clone(),
            own_id: Some(payload.own_id.clone()),
            key: Some(format!("{source}/{}", wrapper.message_id)),
            extra,
        };
        let mut note = Note::default();
        let details =
            InterswarmReceived { source_swarm: source.to_owned(), message_id: wrapper.message_id.clone() };
        note.add_event(events::INTERSWARM_RECEIVED, format!("a message came from {source}"), details);
        let mut contributors: Vec<String> =
            wrapper.task_contributors.iter().map(ToString::to_string).collect();
        contributors.push(runner.to_string());
        contributors.retain(|one| !live.contributors.contains(one));
        let mut gave_up = stale;
        let phase = match over {
            true => {
                live.state.questions.close();
                gave_up.extend(live.abandon(None));
                Some(RunPhase::Ended)
            }
            false => Some(RunPhase::Running),
        };
        let title = Some(payload.subject.chars().take(200).collect());
        let step = Advance {
            open: Some(Opening { owner: live.owner.clone(), title }),
            agent: AgentId::office(),
            gave_up,
            note: note.to_json(),
            messages: vec![draft.into_message(&swarm)],
            phase,
            result: over.then(|| Json::from_value(&Value::from(payload.body.as_str()))),
            state: live.state_json(),
            contributors: contributors.clone(),
            ..super::steps::step_of(&live.key)
        };
        match self.advance(step).await {
            Ok(advanced) => {
                if before.1 != RunPhase::Running {
                    live.steps = 0;
                }
                live.contributors.extend(contributors);
                if !advanced.repeated {
                    self.settle(cell, live, &advanced);
                } else {
                    live.state = before.0;
                }
                Ok(())
            }
            Err(error) => {
                (live.state, live.phase) = before;
                Err(error.into())
            }
        }
    }
}

/// Removes this swarm's name from an address.
fn localized(address: &MailAddress, own: &str) -> MailAddress {
    match split(&address.address) {
        (name, Some(swarm)) if swarm == own => MailAddress { address: name.to_owned(), ..address.clone() },
        _ => address.clone(),
    }
}
