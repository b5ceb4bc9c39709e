//! Agents that connect by another door: their messages in a task's conversation continue the task.

use std::sync::atomic::Ordering;
use std::time::Duration;

use posthaste_engine::nouns::{
    AgentId, Caller, Event, Fact, Message, RealmName, RunPhase, TaskId, TaskStatus,
};
use posthaste_engine::{Filter, Start, Step};
use posthaste_wire::mail::subjects;
use posthaste_wire::mail::{MailAddress, MsgType, Owner};
use tokio::time::MissedTickBehavior;

use super::messages::{MessageDraft, principal, to_mail};
use super::run_state::{QueuedMessage, RunKey};
use super::steps::{StepDraft, StepEnd};
use super::{Runtime, Slot, VIA};

/// Events that are buffered for this subscription; beyond that it reads the database.
const FEED_BUFFER: usize = 1_024;
/// How often messages are retried whose sender had too many open runs.
const DEFERRED_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Pages of each agent's unread messages that are read for that.
const DEFERRED_PAGES: usize = 5;

impl Runtime {
    /// Follows messages and task changes of agents of other doors.
    pub(super) async fn follow_others(self) {
        let filter = Filter::Kinds(vec![
            "message.sent".to_owned(),
            "task.status".to_owned(),
            "task.completed".to_owned(),
            "peer.changed".to_owned(),
            "peer.removed".to_owned(),
        ]);
        let caller = Caller::office();
        let Ok(mut feed) = self.inner.engine.follow(&caller, filter, Start::Now, FEED_BUFFER).await else {
            return;
        };
        // Messages that were written before the subscription.
        self.take_waiting_messages(usize::MAX).await;
        let mut again = tokio::time::interval(DEFERRED_RETRY_INTERVAL);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let step = tokio::select! {
                () = self.inner.stop.cancelled() => return,
                step = feed.next() => step,
                _ = again.tick() => {
                    if self.inner.deferred.swap(false, Ordering::Relaxed) {
                        self.take_waiting_messages(DEFERRED_PAGES).await;
                    }
                    continue;
                }
            };
            match step {
                Ok(Step::Event { event, .. }) => self.on_event(&event).await,
                Ok(_) => {}
                Err(error) => {
                    return tracing::warn!(%error, "agents of other doors cannot be followed any more");
                }
            }
        }
    }

    async fn on_event(&self, event: &Event) {
        let hosted = self.inner.hosted.load();
        let actor = event.actor.as_str();
        // The runtime knows what its own agents do.
        if event.actor.is_office() || (hosted.agents.contains_key(actor) && !hosted.is_connected(actor)) {
            return;
        }
        drop(hosted);
        match (&event.fact, &event.message) {
            (Fact::MessageSent, Some(message)) if message.via != VIA => {
                let handled = match &message.conversation {
                    Some(task) if self.inner.hosted.load().is_connected(message.from.as_str()) => {
                        self.continue_by_message(task, message).await
                    }
                    _ => false,
                };
                if !handled {
                    self.take_message(message).await;
                }
            }
            (Fact::TaskStatusChanged { task, current, .. }, _) if current.is_final() => {
                self.end_from_outside(task, *current, None).await;
            }
            (Fact::TaskCompleted { task, result }, _) => {
                let said = result.as_ref().map(|json| match json.value() {
                    serde_json::Value::String(text) => text,
                    other => other.to_string(),
                });
                self.end_from_outside(task, TaskStatus::Completed, said).await;
            }
            (Fact::PeerChanged { peer, .. } | Fact::PeerRemoved { peer }, _) => {
                let Ok(peer) = RealmName::new(peer) else { return };
                let runtime = self.clone();
                // In a task of its own, because it asks the peer for its card.
                tokio::spawn(async move {
                    if !runtime.adopt(&peer).await {
                        runtime.inner.registry.forget(peer.as_str());
                        runtime.fail_unknown_peers().await;
                    }
                });
            }
            _ => {}
        }
    }

    /// Handles a message that an agent of another door wrote into the conversation of a task. False if the agent takes no part
    /// in that task.
    async fn continue_by_message(&self, task: &TaskId, message: &Message) -> bool {
        let Some((key, owner)) = self.run_of_task(task).await else { return false };
        let (cell, mut guard) = self.hold(&key).await;
        if !matches!(self.load(&key, &mut guard).await, Ok(Some(_))) {
            return false;
        }
        // Every sender can name the conversation; only agents that the task has asked take part in it.
        if let Slot::Loaded(live) = &*guard
            && !live.agents.contains_key(message.from.as_str())
        {
            self.retire(&cell, &mut guard);
            return false;
        }
        let swarm = self.swarm();
        if let Slot::Loaded(live) = &mut *guard
            && live.phase == RunPhase::Running
        {
            let sender = message.from.to_string();
            if let Some(agent_state) = live.agents.get_mut(&sender) {
                agent_state.unanswered = 0;
            }
            let mail = std::sync::Arc::new(to_mail(message, &key.name, &swarm.name));
            let may_end = swarm.agent(&sender).is_some_and(|agent| agent.can_complete_tasks);
            let user = Owner::parse(&owner).map(|owner| principal_of(&owner, &swarm));
            let to_user = message.to.iter().any(|to| match to {
                posthaste_engine::nouns::Address::Agent(id) => Some(id) == user.as_ref(),
                _ => false,
            });
            let ends = message.kind == MsgType::BroadcastComplete.as_str() || to_user;
            // A task of one question ends with any agent's answer.
            if (may_end && ends) || (live.state.direct && to_user) {
                let end = MessageDraft::completion(&sender, mail.message.body.clone());
                self.end(&cell, live, StepDraft { agent: sender, ..StepDraft::default() }, end).await;
            } else if ends {
                let why = "users get what the supervisor completes the task with; answer the agent that asked you instead";
                let to = [sender.as_str()];
                let draft = MessageDraft::system(
                    &swarm.name,
                    MsgType::Response,
                    &to,
                    subjects::IMPROPER_RESPONSE,
                    why,
                );
                let draft_step = StepDraft { drafts: vec![draft], ..StepDraft::default() };
                self.step(&cell, live, draft_step, StepEnd::default()).await;
            } else {
                let hosted = self.inner.hosted.load_full();
                for to in &message.to {
                    let posthaste_engine::nouns::Address::Agent(id) = to else { continue };
                    if hosted.is_connected(id.as_str()) {
                        live.agents.entry(id.to_string()).or_default().unanswered += 1;
                    } else if swarm.agent(id.as_str()).is_some() {
                        live.enqueue(id.as_str(), QueuedMessage::of(message, mail.clone()));
                    }
                }
                cell.news.send_replace(message.seq);
                self.start_turns(&cell, live);
                self.check_idle(&cell, live).await;
            }
        }
        self.retire(&cell, &mut guard);
        true
    }

    /// Ends a run whose task was ended through another door.
    async fn end_from_outside(&self, task: &TaskId, status: TaskStatus, said: Option<String>) {
        let Some((key, _)) = self.run_of_task(task).await else { return };
        // A run that ended here is not in memory any more.
        let known = super::lock(&self.inner.runs).get(&key).is_some();
        if !known {
            return;
        }
        let (cell, mut guard) = self.hold(&key).await;
        if let Slot::Loaded(live) = &mut *guard
            && live.phase == RunPhase::Running
        {
            let (subject, usual) = match status {
                TaskStatus::Completed => (subjects::TASK_COMPLETE, "the task was completed"),
                _ => (subjects::TASK_ERROR, "the task was given up"),
            };
            let body = said.unwrap_or_else(|| usual.to_owned());
            self.end_by_system(&cell, live, subject, &body, StepDraft::default()).await;
        }
        if let Slot::Empty = *guard {
            super::lock(&self.inner.runs).remove(&key);
            *guard = Slot::Retired;
        }
        self.retire(&cell, &mut guard);
    }

    pub(super) async fn run_of_task(&self, task: &TaskId) -> Option<(RunKey, String)> {
        let id = task.clone();
        let found = self.inner.engine.read(move |view| view.run_of_task(&Caller::office(), &id)).await;
        let (run, task) = found.ok()??;
        Some((RunKey::new(&run.instance, &run.name), task.owner))
    }
}

fn principal_of(owner: &Owner, swarm: &super::Swarm) -> AgentId {
    let address_type = match owner.role {
        posthaste_wire::mail::OwnerRole::Admin => posthaste_wire::mail::AddressType::Admin,
        _ => posthaste_wire::mail::AddressType::User,
    };
    principal(swarm, &MailAddress { address_type, address: owner.id.clone() }).0
}
