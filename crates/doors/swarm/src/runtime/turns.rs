//! An agent's turn: what it is handed, what it answers, what that comes to, and who is called next.

use std::sync::Arc;

use posthaste_engine::nouns::RunPhase;
use posthaste_wire::mail::{AddressType, MsgType, split};
use posthaste_wire::mail::{events, subjects};
use serde_json::json;

use super::definition::AgentDefinition;
use super::drivers::{Driver, Reply, Turn};
use super::ends::MOST_TROUBLES;
use super::intents::{Intent, wanted};
use super::letters::Draft;
use super::live::{Breakpoint, Incoming, Key, Live, Memory, ToolCall};
use super::steps::{Ending, Move};
use super::tools::{ActionResults, Judge, Plan, breakpoint_body};
use super::{Held, Hosted, RunCell, Runtime, Slot};

impl Runtime {
    /// Calls every agent that is free and has mail.
    pub(super) fn pump_all(&self, cell: &Arc<RunCell>, live: &mut Live) {
        if live.phase != RunPhase::Running {
            return;
        }
        for (name, seat) in &mut live.seats {
            if let Some(incoming) = seat.next() {
                tokio::spawn(self.clone().turn(
                    cell.clone(),
                    live.key.instance.clone(),
                    name.clone(),
                    incoming,
                ));
            }
        }
    }

    async fn turn(self, cell: Arc<RunCell>, instance: Arc<str>, name: String, incoming: Incoming) {
        let hosted = self.inner.hosted.load_full();
        let Some((agent, desk)) = hosted.agents.get(&name).cloned() else {
            return self.fail(&cell, &hosted, &name, incoming, "the swarm has no such agent any more").await;
        };
        let hand = desk.hand(&instance, incoming.tier, incoming.seq).await;
        let mut held = cell.live.clone().lock_owned().await;
        let Slot::Loaded(live) = &mut *held else { return };
        if live.phase != RunPhase::Running {
            // What waits when a task pauses goes on waiting; what waits when it ends was given up.
            let seat = live.seats.entry(name).or_default();
            seat.busy = None;
            if live.phase == RunPhase::Paused {
                seat.push(incoming);
            }
            return self.retire(&cell, &mut held);
        }
        if incoming.counts() {
            live.steps += 1;
            let most = live.state.max_steps.unwrap_or(hosted.swarm.task_message_limit);
            if live.steps > most {
                self.stop_at_limit(&cell, live, &hosted, &name, incoming).await;
                self.pump_all(&cell, live);
                return self.retire(&cell, &mut held);
            }
        }
        let key = live.key.clone();
        // It had answered before the office stopped, and some of what it called for may have been done.
        if let Some(intent) = live.intents.remove(&(name.clone(), incoming.id)) {
            drop((held, hand));
            return self.carry_on(&cell, &hosted, &key, &agent, incoming, intent).await;
        }
        let turn = prepare(live, &hosted, &agent, &incoming);
        if let Driver::Builtin(own) = &desk.driver {
            // It answers at once, so the run need not be let go of.
            let reply = own.take(&turn);
            drop(hand);
            if wanted(&hosted.swarm, &agent, &reply.calls).next().is_none() {
                let none = ActionResults::new();
                return self.conclude(&cell, held, &hosted, &name, incoming, reply, &none).await;
            }
            drop(held);
            let intent = Intent::of(incoming.id, reply);
            return self.carry_on(&cell, &hosted, &key, &agent, incoming, intent).await;
        }
        drop(held);
        let reply = tokio::select! {
            // What an agent has in hand when the office closes is handed to it again afterwards.
            () = self.inner.stop.cancelled() => return,
            reply = desk.driver.take(&turn) => reply,
        };
        drop(hand);
        match reply {
            Ok(reply) => {
                let intent = Intent::of(incoming.id, reply);
                self.carry_on(&cell, &hosted, &key, &agent, incoming, intent).await;
            }
            Err(why) => self.fail(&cell, &hosted, &name, incoming, &why).await,
        }
    }

    /// Carries out the actions among an agent's calls, and then all that it answered.
    async fn carry_on(
        &self,
        cell: &Arc<RunCell>,
        hosted: &Hosted,
        key: &Key,
        agent: &AgentDefinition,
        incoming: Incoming,
        intent: Intent,
    ) {
        // Nothing is known of an action whose beginning could not be written down, so it is not begun.
        let ran = self.run_actions(hosted, key, agent, intent).await;
        let mut held = cell.live.clone().lock_owned().await;
        let (reply, actions) = match ran {
            Ok(ran) => ran,
            Err(why) => {
                tracing::debug!(task = %key.name, agent = agent.name, %why, "actions were not begun");
                if let Slot::Loaded(live) = &mut *held {
                    live.seats.entry(agent.name.clone()).or_default().busy = None;
                }
                return self.retire(cell, &mut held);
            }
        };
        self.conclude(cell, held, hosted, &agent.name, incoming, reply, &actions).await;
    }

    /// Carries out what an agent answered.
    #[expect(clippy::too_many_arguments, reason = "one turn is all of these")]
    async fn conclude(
        &self,
        cell: &Arc<RunCell>,
        mut held: Held,
        hosted: &Hosted,
        name: &str,
        incoming: Incoming,
        reply: Reply,
        actions: &ActionResults,
    ) {
        let Slot::Loaded(live) = &mut *held else { return };
        let Some((agent, _)) = hosted.agents.get(name) else { return };
        if live.phase == RunPhase::Ended {
            // The task ended meanwhile: what it says goes nowhere.
            live.seats.entry(name.to_owned()).or_default().busy = None;
            return self.retire(cell, &mut held);
        }
        let plan = Judge {
            swarm: &hosted.swarm,
            agent,
            live,
            in_hand: &incoming.mail,
            knows_swarm: &|swarm| self.inner.registry.knows(swarm),
        }
        .judge(&reply.calls, reply.text.as_deref(), actions);
        self.carry_out(cell, live, hosted, name, incoming, reply.calls, plan).await;
        self.pump_all(cell, live);
        self.rest(cell, live).await;
        self.retire(cell, &mut held);
    }

    #[expect(clippy::too_many_arguments, reason = "one turn is all of these")]
    async fn carry_out(
        &self,
        cell: &Arc<RunCell>,
        live: &mut Live,
        hosted: &Hosted,
        name: &str,
        incoming: Incoming,
        calls: Vec<ToolCall>,
        plan: Plan,
    ) {
        let Plan { note, drafts, complete, answer, breakpoint, forget, troubles } = plan;
        live.state.troubles = if troubles == 0 { 0 } else { live.state.troubles + troubles };
        let mut mv = Move { agent: name.to_owned(), in_hand: Some(incoming), forget, note, calls, drafts };
        let sender = mv.in_hand.as_ref().map_or("", |incoming| &incoming.mail.message.sender.address);
        let partly = complete.as_deref().and_then(|text| self.one_of_several(live, name, sender, text));
        if let Some(answer) = partly {
            mv.drafts.push(answer);
            self.step(cell, live, mv, Ending::default()).await;
            return;
        }
        if let Some(text) = complete {
            let end = Draft::completion(name, text);
            return self.end(cell, live, mv, end).await;
        }
        if let Some(answer) = answer {
            return self.end(cell, live, mv, answer).await;
        }
        if live.state.troubles > MOST_TROUBLES {
            mv.drafts.clear();
            let why = "the agents keep making calls that cannot be carried out";
            return self.end_by_system(cell, live, subjects::TASK_ERROR, why, mv).await;
        }
        let mut phase = None;
        if !breakpoint.is_empty() {
            let body = breakpoint_body(&breakpoint);
            let (kind, to) = (MsgType::BroadcastComplete, ["all"]);
            let mut draft = Draft::system(&hosted.swarm.name, kind, &to, subjects::BREAKPOINT, body);
            draft.here.clear();
            mv.drafts.push(draft);
            let calls = breakpoint.into_iter().map(|call| (call.call_id, call.tool)).collect();
            live.state.breakpoint = Some(Breakpoint { agent: name.to_owned(), calls });
            phase = Some(RunPhase::Paused);
        }
        let paused = phase.is_some();
        let ending = Ending { phase, ..Ending::default() };
        if let Some(advanced) = self.step(cell, live, mv, ending).await
            && paused
        {
            self.announce_end(live, &advanced);
        }
    }

    /// Stops a task that has taken as many messages as it may.
    async fn stop_at_limit(
        &self,
        cell: &Arc<RunCell>,
        live: &mut Live,
        hosted: &Hosted,
        name: &str,
        incoming: Incoming,
    ) {
        live.state.troubles += 1;
        let mut mv =
            Move { agent: name.to_owned(), in_hand: Some(incoming.clone()), forget: true, ..Move::default() };
        if live.state.troubles > MOST_TROUBLES {
            let why = "the task has reached its maximum of steps and was not completed";
            return self.end_by_system(cell, live, subjects::TASK_ERROR, why, mv).await;
        }
        let payload = &incoming.mail.message;
        let body = format!(
            "the task has reached its maximum of steps; complete it now with what there is. \
             Not delivered any more: {} from {} to {name}, subject {:?}: {}",
            incoming.mail.msg_type.as_str(),
            payload.sender.address,
            payload.subject,
            payload.body.chars().take(2_000).collect::<String>(),
        );
        let to = [live.state.entry.as_str()];
        let kind = MsgType::Response;
        mv.drafts.push(Draft::system(&hosted.swarm.name, kind, &to, subjects::MAXIMUM_STEPS, body));
        self.step(cell, live, mv, Ending::default()).await;
    }

    /// Tells whoever asked that an agent could not be called; if that is a person, the task ends.
    async fn fail(&self, cell: &Arc<RunCell>, hosted: &Hosted, name: &str, incoming: Incoming, why: &str) {
        tracing::warn!(agent = name, why, "an agent cannot take its turn");
        let mut held = cell.live.clone().lock_owned().await;
        let Slot::Loaded(live) = &mut *held else { return };
        if live.phase == RunPhase::Ended {
            live.seats.entry(name.to_owned()).or_default().busy = None;
            return self.retire(cell, &mut held);
        }
        let text = format!("the agent {name} could not be called: {why}");
        let mut mv =
            Move { agent: name.to_owned(), in_hand: Some(incoming.clone()), forget: true, ..Move::default() };
        mv.note.tell(events::AGENT_ERROR, text.clone(), json!({ "agent": name, "error": why }));
        let sender = &incoming.mail.message.sender;
        live.state.troubles += 1;
        let elsewhere = split(&sender.address).1.is_some_and(|swarm| swarm != hosted.swarm.name);
        if sender.address_type == AddressType::Agent
            && sender.address != name
            && live.state.troubles <= MOST_TROUBLES
        {
            let to = [sender.address.as_str()];
            let kind = MsgType::Response;
            let mut draft = Draft::system(&hosted.swarm.name, kind, &to, subjects::AGENT_ERROR, text);
            if elsewhere {
                draft.here.clear();
            }
            mv.drafts.push(draft);
            self.step(cell, live, mv, Ending::default()).await;
        } else {
            self.end_by_system(cell, live, subjects::AGENT_ERROR, &text, mv).await;
        }
        self.pump_all(cell, live);
        self.rest(cell, live).await;
        self.retire(cell, &mut held);
    }
}

/// What an agent is handed.
pub(super) fn prepare(
    live: &Live,
    hosted: &Hosted,
    agent: &Arc<AgentDefinition>,
    incoming: &Incoming,
) -> Turn {
    let (mut memory, results) = match live.seats.get(&agent.name) {
        Some(seat) => (seat.memory.clone(), seat.newest_results()),
        None => (Vec::new(), Vec::new()),
    };
    if !incoming.resumed {
        memory.push(Memory::Heard(incoming.mail.clone()));
    }
    Turn {
        swarm: hosted.swarm.clone(),
        agent: agent.clone(),
        task_id: live.key.name.clone(),
        in_hand: incoming.mail.clone(),
        memory,
        results,
        resumed: incoming.resumed,
        must_complete: incoming.mail.message.subject == subjects::MAXIMUM_STEPS,
    }
}
