//! An agent's turn: the call of its driver, the reply, and what the runtime does with it.

use std::sync::Arc;

use posthaste_engine::nouns::RunPhase;
use posthaste_wire::mail::events::AgentFailed;
use posthaste_wire::mail::{AddressType, MsgType, split};
use posthaste_wire::mail::{events, subjects};

use super::drivers::{Driver, Reply, Turn};
use super::finish::MAX_TROUBLES;
use super::messages::MessageDraft;
use super::pending_replies::{PendingReply, local_actions};
use super::run_state::{Breakpoint, HistoryEntry, QueuedMessage, RunKey, RunState, ToolCall};
use super::steps::{StepDraft, StepEnd};
use super::tools::{ActionResults, Plan, ReplyPlanner, breakpoint_body};
use super::{Hosted, RunCell, RunGuard, Runtime, Slot};
use posthaste_wire::mail::definition::AgentDefinition;

impl Runtime {
    /// Starts a turn of every agent that is idle and has a queued message.
    pub(super) fn start_turns(&self, cell: &Arc<RunCell>, live: &mut RunState) {
        if live.phase != RunPhase::Running {
            return;
        }
        for (name, agent_state) in &mut live.agents {
            if let Some(queued) = agent_state.next() {
                tokio::spawn(self.clone().turn(
                    cell.clone(),
                    live.key.instance.clone(),
                    name.clone(),
                    queued,
                ));
            }
        }
    }

    async fn turn(self, cell: Arc<RunCell>, instance: Arc<str>, name: String, queued: QueuedMessage) {
        let hosted = self.inner.hosted.load_full();
        let Some((agent, queue)) = hosted.agents.get(&name).cloned() else {
            return self.fail(&cell, &hosted, &name, queued, "the swarm has no such agent any more").await;
        };
        let permit = queue.acquire(&instance, queued.tier, queued.seq).await;
        let mut guard = cell.live.clone().lock_owned().await;
        let Slot::Loaded(live) = &mut *guard else { return };
        if live.phase != RunPhase::Running {
            // Messages that are queued when a task pauses stay queued; when it ends they are given up.
            let agent_state = live.agents.entry(name).or_default();
            agent_state.busy = None;
            if live.phase == RunPhase::Paused {
                agent_state.push(queued);
            }
            return self.retire(&cell, &mut guard);
        }
        if queued.counts() {
            live.steps += 1;
            let most = live.state.max_steps.unwrap_or(hosted.swarm.task_message_limit);
            if live.steps > most {
                self.stop_at_limit(&cell, live, &hosted, &name, queued).await;
                self.start_turns(&cell, live);
                return self.retire(&cell, &mut guard);
            }
        }
        let key = live.key.clone();
        // The agent replied before the server stopped, and some of its actions may have been carried out.
        if let Some(pending_reply) = live.pending_replies.remove(&(name.clone(), queued.id)) {
            drop((guard, permit));
            return self.carry_on(&cell, &hosted, &key, &agent, queued, pending_reply).await;
        }
        let turn = prepare(live, &hosted, &agent, &queued);
        if let Driver::Builtin(own) = &queue.driver {
            // It replies at once, so the run stays locked.
            let reply = own.take(&turn);
            drop(permit);
            if local_actions(&hosted.swarm, &agent, &reply.calls).next().is_none() {
                let none = ActionResults::new();
                return self.conclude(&cell, guard, &hosted, &name, queued, reply, &none).await;
            }
            drop(guard);
            let pending_reply = PendingReply::of(queued.id, reply);
            return self.carry_on(&cell, &hosted, &key, &agent, queued, pending_reply).await;
        }
        drop(guard);
        let reply = tokio::select! {
            // The agent gets the message again after the restart.
            () = self.inner.stop.cancelled() => return,
            reply = queue.driver.take(&turn) => reply,
        };
        drop(permit);
        match reply {
            Ok(reply) => {
                let pending_reply = PendingReply::of(queued.id, reply);
                self.carry_on(&cell, &hosted, &key, &agent, queued, pending_reply).await;
            }
            Err(why) => self.fail(&cell, &hosted, &name, queued, &why).await,
        }
    }

    /// Carries out the actions of a reply, then the reply.
    async fn carry_on(
        &self,
        cell: &Arc<RunCell>,
        hosted: &Hosted,
        key: &RunKey,
        agent: &AgentDefinition,
        queued: QueuedMessage,
        pending_reply: PendingReply,
    ) {
        // An action is begun only after its beginning was written.
        let ran = self.run_actions(hosted, key, agent, pending_reply).await;
        let mut guard = cell.live.clone().lock_owned().await;
        let (reply, actions) = match ran {
            Ok(ran) => ran,
            Err(why) => {
                tracing::debug!(task = %key.name, agent = agent.name, %why, "actions were not begun");
                if let Slot::Loaded(live) = &mut *guard {
                    live.agents.entry(agent.name.clone()).or_default().busy = None;
                }
                return self.retire(cell, &mut guard);
            }
        };
        self.conclude(cell, guard, hosted, &agent.name, queued, reply, &actions).await;
    }

    /// Carries out a reply.
    #[expect(clippy::too_many_arguments, reason = "one turn is all of these")]
    async fn conclude(
        &self,
        cell: &Arc<RunCell>,
        mut guard: RunGuard,
        hosted: &Hosted,
        name: &str,
        queued: QueuedMessage,
        reply: Reply,
        actions: &ActionResults,
    ) {
        let Slot::Loaded(live) = &mut *guard else { return };
        let Some((agent, _)) = hosted.agents.get(name) else { return };
        if live.phase == RunPhase::Ended {
            // The task has ended meanwhile: the reply is dropped.
            live.agents.entry(name.to_owned()).or_default().busy = None;
            return self.retire(cell, &mut guard);
        }
        let plan = ReplyPlanner {
            swarm: &hosted.swarm,
            agent,
            live,
            in_hand: &queued.mail,
            knows_swarm: &|swarm| self.inner.registry.knows(swarm),
        }
        .plan(&reply.calls, reply.text.as_deref(), actions);
        self.carry_out(cell, live, hosted, name, queued, reply.calls, plan).await;
        self.start_turns(cell, live);
        self.check_idle(cell, live).await;
        self.retire(cell, &mut guard);
    }

    #[expect(clippy::too_many_arguments, reason = "one turn is all of these")]
    async fn carry_out(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        hosted: &Hosted,
        name: &str,
        queued: QueuedMessage,
        calls: Vec<ToolCall>,
        plan: Plan,
    ) {
        let Plan { note, drafts, complete, answer, breakpoint, forget, troubles } = plan;
        live.state.troubles = if troubles == 0 { 0 } else { live.state.troubles + troubles };
        let mut draft_step =
            StepDraft { agent: name.to_owned(), in_hand: Some(queued), forget, note, calls, drafts };
        let sender = draft_step.in_hand.as_ref().map_or("", |queued| &queued.mail.message.sender.address);
        let partly = complete.as_deref().and_then(|text| self.one_of_several(live, name, sender, text));
        if let Some(answer) = partly {
            draft_step.drafts.push(answer);
            self.step(cell, live, draft_step, StepEnd::default()).await;
            return;
        }
        if let Some(text) = complete {
            let end = MessageDraft::completion(name, text);
            return self.end(cell, live, draft_step, end).await;
        }
        if let Some(answer) = answer {
            return self.end(cell, live, draft_step, answer).await;
        }
        if live.state.troubles > MAX_TROUBLES {
            draft_step.drafts.clear();
            let why = "the agents keep making calls that cannot be carried out";
            return self.end_by_system(cell, live, subjects::TASK_ERROR, why, draft_step).await;
        }
        let mut phase = None;
        if !breakpoint.is_empty() {
            let body = breakpoint_body(&breakpoint);
            let (kind, to) = (MsgType::BroadcastComplete, ["all"]);
            let mut draft = MessageDraft::system(&hosted.swarm.name, kind, &to, subjects::BREAKPOINT, body);
            draft.here.clear();
            draft_step.drafts.push(draft);
            let calls = breakpoint.into_iter().map(|call| (call.call_id, call.tool)).collect();
            live.state.breakpoint = Some(Breakpoint { agent: name.to_owned(), calls });
            phase = Some(RunPhase::Paused);
        }
        let paused = phase.is_some();
        let ending = StepEnd { phase, ..StepEnd::default() };
        if let Some(advanced) = self.step(cell, live, draft_step, ending).await
            && paused
        {
            self.announce_end(live, &advanced);
        }
    }

    /// Tells the entrypoint that the task has reached its message limit, or ends the task if that was said often enough.
    async fn stop_at_limit(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        hosted: &Hosted,
        name: &str,
        queued: QueuedMessage,
    ) {
        live.state.troubles += 1;
        let mut draft_step = StepDraft {
            agent: name.to_owned(),
            in_hand: Some(queued.clone()),
            forget: true,
            ..StepDraft::default()
        };
        if live.state.troubles > MAX_TROUBLES {
            let why = "the task has reached its maximum of steps and was not completed";
            return self.end_by_system(cell, live, subjects::TASK_ERROR, why, draft_step).await;
        }
        let payload = &queued.mail.message;
        let body = format!(
            "the task has reached its maximum of steps; complete it now with what there is. \
             Not delivered any more: {} from {} to {name}, subject {:?}: {}",
            queued.mail.msg_type.as_str(),
            payload.sender.address,
            payload.subject,
            payload.body.chars().take(2_000).collect::<String>(),
        );
        let to = [live.state.entry.as_str()];
        let kind = MsgType::Response;
        draft_step.drafts.push(MessageDraft::system(
            &hosted.swarm.name,
            kind,
            &to,
            subjects::MAXIMUM_STEPS,
            body,
        ));
        self.step(cell, live, draft_step, StepEnd::default()).await;
    }

    /// Tells the sender that an agent could not be called. If the sender is a user, the task ends.
    async fn fail(&self, cell: &Arc<RunCell>, hosted: &Hosted, name: &str, queued: QueuedMessage, why: &str) {
        tracing::warn!(agent = name, why, "an agent cannot take its turn");
        let mut guard = cell.live.clone().lock_owned().await;
        let Slot::Loaded(live) = &mut *guard else { return };
        if live.phase == RunPhase::Ended {
            live.agents.entry(name.to_owned()).or_default().busy = None;
            return self.retire(cell, &mut guard);
        }
        let text = format!("the agent {name} could not be called: {why}");
        let mut draft_step = StepDraft {
            agent: name.to_owned(),
            in_hand: Some(queued.clone()),
            forget: true,
            ..StepDraft::default()
        };
        let details = AgentFailed { agent: name.to_owned(), error: why.to_owned() };
        draft_step.note.add_event(events::AGENT_ERROR, text.clone(), details);
        let sender = &queued.mail.message.sender;
        live.state.troubles += 1;
        let elsewhere = split(&sender.address).1.is_some_and(|swarm| swarm != hosted.swarm.name);
        if sender.address_type == AddressType::Agent
            && sender.address != name
            && live.state.troubles <= MAX_TROUBLES
        {
            let to = [sender.address.as_str()];
            let kind = MsgType::Response;
            let mut draft = MessageDraft::system(&hosted.swarm.name, kind, &to, subjects::AGENT_ERROR, text);
            if elsewhere {
                draft.here.clear();
            }
            draft_step.drafts.push(draft);
            self.step(cell, live, draft_step, StepEnd::default()).await;
        } else {
            self.end_by_system(cell, live, subjects::AGENT_ERROR, &text, draft_step).await;
        }
        self.start_turns(cell, live);
        self.check_idle(cell, live).await;
        self.retire(cell, &mut guard);
    }
}

/// The turn that an agent's driver gets.
fn prepare(live: &RunState, hosted: &Hosted, agent: &Arc<AgentDefinition>, queued: &QueuedMessage) -> Turn {
    let (mut memory, results) = match live.agents.get(&agent.name) {
        Some(agent_state) => (agent_state.memory.clone(), agent_state.newest_results()),
        None => (Vec::new(), Vec::new()),
    };
    if !queued.resumed {
        memory.push(HistoryEntry::Received(queued.mail.clone()));
    }
    Turn {
        swarm: hosted.swarm.clone(),
        agent: agent.clone(),
        task_id: live.key.name.clone(),
        in_hand: queued.mail.clone(),
        memory,
        results,
        resumed: queued.resumed,
        must_complete: queued.mail.message.subject == subjects::MAXIMUM_STEPS,
    }
}
