//! An agent's turn: what it is handed, what it answers, what that comes to, and who is called next.

use std::sync::Arc;

use posthaste_engine::nouns::{Address, AgentId, Json, RunPhase, Taken};
use posthaste_engine::verbs::runs::{Advance, Advanced};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mail::words::{events, subjects};
use posthaste_wire::mail::{AddressType, MailAddress, MsgType, Owner, split};
use serde_json::{Value, json};

use super::drivers::{Driver, Reply, Turn};
use super::letters::{Draft, Extra, to_mail};
use super::live::{Breakpoint, Finish, Incoming, Live, Memory, Note, ToolCall};
use super::tools::{ActionResults, Judge, Plan, breakpoint_body};
use super::{Held, Hosted, RunCell, Runtime, Slot, actions};

/// How often the system speaks up in a row before it ends the task.
const MOST_TROUBLES: u32 = 8;

/// Part of a step that has been prepared: who moves, with what in hand, and what is to be written down.
#[derive(Debug, Default)]
pub(super) struct Move {
    pub(super) agent: String,
    pub(super) in_hand: Option<Incoming>,
    pub(super) forget: bool,
    pub(super) note: Note,
    pub(super) calls: Vec<ToolCall>,
    pub(super) drafts: Vec<Draft>,
}

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
        let turn = prepare(live, &hosted, &agent, &incoming);
        if let Driver::Builtin(_) = desk.driver {
            // It answers at once, so the run need not be let go of.
            let reply = desk.driver.take(&turn).await.unwrap_or_default();
            drop(hand);
            let actions = self.run_actions(&hosted, &agent, &reply).await;
            return self.conclude(&cell, held, &hosted, &name, incoming, reply, &actions).await;
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
                let actions = self.run_actions(&hosted, &agent, &reply).await;
                let held = cell.live.clone().lock_owned().await;
                self.conclude(&cell, held, &hosted, &name, incoming, reply, &actions).await;
            }
            Err(why) => self.fail(&cell, &hosted, &name, incoming, &why).await,
        }
    }

    /// Carries out the actions among an agent's calls.
    async fn run_actions(
        &self,
        hosted: &Hosted,
        agent: &super::AgentDefinition,
        reply: &Reply,
    ) -> ActionResults {
        let mut results = ActionResults::new();
        for call in &reply.calls {
            if call.tool == "task_complete" && agent.can_complete_tasks {
                break;
            }
            let granted = agent.actions.contains(&call.tool) && !hosted.swarm.is_breakpoint(&call.tool);
            let Some(action) = hosted.swarm.action(&call.tool).filter(|_| granted) else { continue };
            let result = actions::run(action, &call.args, &hosted.here, &hosted.outgoing).await;
            results.insert(call.call_id.clone(), result);
        }
        results
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
        if let Some(text) = complete {
            let end = Draft {
                kind: MsgType::BroadcastComplete,
                sender: MailAddress::agent(name),
                recipients: vec![MailAddress::all()],
                here: Vec::new(),
                subject: subjects::TASK_COMPLETE.to_owned(),
                body: text,
                own_id: None,
                key: None,
                extra: Extra::default(),
            };
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
        if let Some(advanced) = self.step(cell, live, mv, phase, None, Vec::new()).await
            && paused
        {
            self.announce_end(live, &advanced);
        }
    }

    /// Ends a turn of the task with a message of one of its agents.
    pub(super) async fn end(&self, cell: &Arc<RunCell>, live: &mut Live, mut mv: Move, end: Draft) {
        let in_hand = mv.in_hand.as_ref().map(|incoming| incoming.id);
        mv.drafts.retain(|draft| draft.kind != MsgType::BroadcastComplete);
        // What is sent in the same breath as the end reaches nobody here, unless somebody elsewhere is to have it.
        mv.drafts.retain(|draft| draft.here.is_empty());
        let result = Json::from_value(&Value::from(end.body.as_str()));
        let notices = self.notices(live, &end);
        mv.drafts.push(end);
        mv.drafts.extend(notices);
        let gave_up = live.abandon(in_hand);
        // A person's message that nobody has looked at keeps the task going.
        let phase = (!live.has_unheard_person()).then_some(RunPhase::Ended);
        live.state.remote.values_mut().for_each(|open| *open = 0);
        if let Some(advanced) = self.step(cell, live, mv, phase, Some(result), gave_up).await {
            self.announce_end(live, &advanced);
        }
    }

    /// Ends a turn of the task because it cannot go on.
    pub(super) async fn end_by_system(
        &self,
        cell: &Arc<RunCell>,
        live: &mut Live,
        subject: &str,
        why: &str,
        mut mv: Move,
    ) {
        let swarm = self.swarm();
        let mut end = Draft::system(&swarm.name, MsgType::BroadcastComplete, &["all"], subject, why);
        end.here.clear();
        let details = json!({ "error": why });
        mv.note.tell(events::TASK_ERROR, why, details);
        self.end(cell, live, mv, end).await;
    }

    /// What other swarms are told when the task ends: all that had a part in it, or the one that asked.
    fn notices(&self, live: &mut Live, end: &Draft) -> Vec<Draft> {
        let swarm = self.swarm();
        let notice = |address: String, subject: &str, notice: bool| Draft {
            kind: MsgType::Response,
            sender: end.sender.clone(),
            recipients: vec![MailAddress::agent(address)],
            here: Vec::new(),
            subject: subject.to_owned(),
            body: end.body.clone(),
            own_id: None,
            key: None,
            extra: Extra { notice, ..Extra::default() },
        };
        if !self.is_ours(live) {
            let asker = live
                .state
                .asker
                .clone()
                .filter(|_| !live.state.answered || end.sender.address_type == AddressType::Agent);
            live.state.answered = true;
            let known = |asker: &String| split(asker).1.is_some_and(|swarm| self.inner.registry.knows(swarm));
            return asker
                .filter(known)
                .map(|asker| notice(asker, subjects::TASK_COMPLETE, false))
                .into_iter()
                .collect();
        }
        let contributing =
            live.contributors.iter().filter_map(|text| Owner::parse(text)).map(|owner| owner.swarm);
        let mut told: Vec<String> = contributing.chain(live.state.remote.keys().cloned()).collect();
        told.sort_unstable();
        told.dedup();
        told.retain(|other| *other != swarm.name && self.inner.registry.knows(other));
        let to =
            |other: String| notice(format!("{}@{other}", swarm.entrypoint), subjects::TASK_COMPLETE, true);
        told.into_iter().map(to).collect()
    }

    /// Writes a step down. Nothing if it was too late for it.
    pub(super) async fn step(
        &self,
        cell: &Arc<RunCell>,
        live: &mut Live,
        mv: Move,
        phase: Option<RunPhase>,
        result: Option<Json>,
        gave_up: Vec<Taken>,
    ) -> Option<Advanced> {
        let swarm = self.swarm();
        let Move { agent, in_hand, forget, mut note, calls, drafts } = mv;
        for draft in &drafts {
            note_remote(live, draft, &swarm.name);
        }
        let mover = AgentId::new(&agent).unwrap_or_else(|_| AgentId::office());
        let took: Vec<Taken> =
            in_hand.iter().map(|incoming| Taken { agent: mover.clone(), message: incoming.id }).collect();
        note.took = in_hand.as_ref().map(|incoming| incoming.id);
        let empty = note.events.is_empty() && note.results.is_empty();
        let mut letters: Vec<_> = drafts.into_iter().map(|draft| draft.into_letter(&swarm)).collect();
        let asked = live.answer_letter(&mut letters);
        let step = Advance {
            agent: mover,
            took,
            forget,
            gave_up,
            note: if empty { None } else { note.to_json() },
            letters,
            steps: in_hand.as_ref().map_or(0, |incoming| u32::from(incoming.counts())),
            phase,
            result,
            state: live.state_json(),
            ..self.step_of(live)
        };
        let advanced = self.advance(step).await;
        if advanced.is_err() {
            live.state.letter = asked;
        }
        if let Some(seat) = live.seats.get_mut(&agent)
            && seat.busy == in_hand.as_ref().map(|incoming| incoming.id)
        {
            seat.busy = None;
        }
        match advanced {
            Ok(advanced) => {
                if let Some(incoming) = in_hand {
                    if !forget && !incoming.resumed {
                        live.remember(&agent, Memory::Heard(incoming.mail));
                    }
                    live.remember(&agent, Memory::Did(calls, note.results));
                }
                self.settle(cell, live, &advanced);
                Some(advanced)
            }
            Err(EngineError::Refused(refusal @ (Refusal::TaskEnded { .. } | Refusal::NoSuchMessage))) => {
                tracing::debug!(task = %live.task, agent, %refusal, "a step came too late");
                None
            }
            Err(EngineError::Refused(refusal)) => {
                // Whatever it was, the agent can be told; the letter itself stays where it is until then.
                tracing::warn!(task = %live.task, agent, %refusal, "a step was refused");
                self.after_refusal(cell, live, &agent, in_hand, &refusal).await
            }
            Err(error) => {
                tracing::error!(task = %live.task, %error, "a step cannot be written");
                None
            }
        }
    }

    /// Tells an agent that what it wanted sent was refused as a whole, for instance because it is too large.
    async fn after_refusal(
        &self,
        cell: &Arc<RunCell>,
        live: &mut Live,
        agent: &str,
        in_hand: Option<Incoming>,
        refusal: &Refusal,
    ) -> Option<Advanced> {
        let swarm = self.swarm();
        let mover = AgentId::new(agent).unwrap_or_else(|_| AgentId::office());
        live.state.troubles += 1;
        let ends = live.state.troubles > MOST_TROUBLES || swarm.agent(agent).is_none();
        let mut draft = match ends {
            true => Draft::system(
                &swarm.name,
                MsgType::BroadcastComplete,
                &["all"],
                subjects::TASK_ERROR,
                refusal.to_string(),
            ),
            false => Draft::system(
                &swarm.name,
                MsgType::Response,
                &[agent],
                subjects::TOOL_CALL_ERROR,
                refusal.to_string(),
            ),
        };
        if ends {
            draft.here.clear();
        }
        let mut letters = vec![draft.into_letter(&swarm)];
        live.answer_letter(&mut letters);
        let step = Advance {
            took: in_hand.iter().map(|one| Taken { agent: mover.clone(), message: one.id }).collect(),
            agent: mover,
            letters,
            phase: ends.then_some(RunPhase::Ended),
            state: live.state_json(),
            ..self.step_of(live)
        };
        let advanced = self.advance(step).await.ok()?;
        self.settle(cell, live, &advanced);
        if ends {
            self.announce_end(live, &advanced);
        }
        Some(advanced)
    }

    /// Takes what was written down over into memory.
    pub(super) fn settle(&self, cell: &Arc<RunCell>, live: &mut Live, advanced: &Advanced) {
        let hosted = self.inner.hosted.load();
        live.task = advanced.run.task.clone();
        live.phase = advanced.run.phase;
        let mut last = advanced.place;
        for (message, agents) in &advanced.letters {
            last = message.seq;
            if message.to.iter().any(|to| matches!(to, Address::Remote { .. })) {
                self.inner.outbox.notify_one();
            }
            if agents.is_empty() {
                continue;
            }
            let mail = Arc::new(to_mail(message, &live.key.name, &hosted.swarm.name));
            for agent in agents {
                if hosted.is_connected(agent.as_str()) {
                    live.seats.entry(agent.to_string()).or_default().unanswered += 1;
                } else if hosted.agents.contains_key(agent.as_str()) {
                    live.enqueue(agent.as_str(), Incoming::of(message, mail.clone()));
                }
            }
        }
        cell.news.send_replace(last);
    }

    /// Tells those who wait what the task ended with.
    fn announce_end(&self, live: &mut Live, advanced: &Advanced) {
        let swarm = self.inner.engine.realm().as_str();
        let end = advanced.letters.iter().rev().find(|(message, _)| {
            message.kind == MsgType::BroadcastComplete.as_str()
                || message.to.iter().any(|to| matches!(to, Address::Agent(_)))
                    && message.kind == MsgType::Response.as_str()
        });
        if let Some((message, _)) = end {
            let mail = Arc::new(to_mail(message, &live.key.name, swarm));
            live.finish(&Finish { mail });
        }
    }

    /// Speaks up when nobody has anything left to do in a task that has not ended.
    pub(super) async fn rest(&self, cell: &Arc<RunCell>, live: &mut Live) {
        if live.phase != RunPhase::Running || !live.is_at_rest() {
            return;
        }
        let swarm = self.swarm();
        if !self.is_ours(live) {
            return self.rest_abroad(cell, live, &swarm.name).await;
        }
        live.state.troubles += 1;
        if live.state.troubles > MOST_TROUBLES {
            let why = "nobody has anything left to do in this task, and no agent completed it";
            return self.end_by_system(cell, live, subjects::TASK_ERROR, why, Move::default()).await;
        }
        let can_end = |name: &str| swarm.agent(name).is_some_and(|agent| agent.can_complete_tasks);
        let entry = match live.state.direct || can_end(&live.state.entry) {
            true => live.state.entry.clone(),
            false => swarm
                .agents
                .iter()
                .find(|agent| agent.can_complete_tasks)
                .map_or_else(|| swarm.entrypoint.clone(), |agent| agent.name.clone()),
        };
        let why = "nobody has anything left to do in this task; call task_complete, or ask somebody for more";
        let draft = Draft::system(&swarm.name, MsgType::Response, &[&entry], subjects::TASK_ERROR, why);
        let mv = Move { drafts: vec![draft], ..Move::default() };
        self.step(cell, live, mv, None, None, Vec::new()).await;
        self.pump_all(cell, live);
    }

    /// A task of another swarm rests here once its question is answered; if it is not, whoever asked is told.
    async fn rest_abroad(&self, cell: &Arc<RunCell>, live: &mut Live, swarm: &str) {
        let known = |asker: &String| split(asker).1.is_some_and(|swarm| self.inner.registry.knows(swarm));
        let Some(asker) = live.state.asker.clone().filter(|_| !live.state.answered).filter(known) else {
            return;
        };
        live.state.answered = true;
        let mut draft = Draft::system(
            swarm,
            MsgType::Response,
            &[&asker],
            subjects::TASK_ERROR,
            "the agents that were asked have ended their turns without an answer",
        );
        draft.here.clear();
        let mv = Move { drafts: vec![draft], ..Move::default() };
        self.step(cell, live, mv, None, None, Vec::new()).await;
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
        self.step(cell, live, mv, None, None, Vec::new()).await;
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
            self.step(cell, live, mv, None, None, Vec::new()).await;
        } else {
            self.end_by_system(cell, live, subjects::AGENT_ERROR, &text, mv).await;
        }
        self.pump_all(cell, live);
        self.rest(cell, live).await;
        self.retire(cell, &mut held);
    }

    /// Tells an agent that its letter did not reach another swarm.
    pub(super) async fn undelivered(&self, instance: &str, task: &str, sender: &str, swarm: &str, why: &str) {
        let key = super::Key::new(instance, task);
        let (cell, mut held) = self.hold(&key).await;
        if !matches!(self.load(&key, &mut held).await, Ok(Some(_))) {
            if let Slot::Empty = *held {
                super::lock(&self.inner.runs).remove(&key);
                *held = Slot::Retired;
            }
            return;
        }
        let Slot::Loaded(live) = &mut *held else { return };
        if live.phase != RunPhase::Ended {
            if let Some(open) = live.state.remote.get_mut(swarm) {
                *open = open.saturating_sub(1);
            }
            let own = self.swarm();
            let mut mv = Move::default();
            mv.note.tell(
                events::INTERSWARM_ERROR,
                format!("a message did not reach {swarm}"),
                json!({ "swarm": swarm, "error": why }),
            );
            if own.agent(sender).is_some() {
                let text = format!("your message did not reach the swarm {swarm}: {why}");
                let kind = MsgType::Response;
                mv.drafts.push(Draft::system(&own.name, kind, &[sender], subjects::ROUTER_ERROR, text));
            }
            self.step(&cell, live, mv, None, None, Vec::new()).await;
            self.pump_all(&cell, live);
            self.rest(&cell, live).await;
        }
        self.retire(&cell, &mut held);
    }
}

/// What an agent is handed.
fn prepare(live: &Live, hosted: &Hosted, agent: &Arc<super::AgentDefinition>, incoming: &Incoming) -> Turn {
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

/// Keeps count of what other swarms were asked and told.
fn note_remote(live: &mut Live, draft: &Draft, own: &str) {
    if draft.extra.notice {
        return;
    }
    for recipient in &draft.recipients {
        let Some(swarm) = split(&recipient.address).1.filter(|swarm| *swarm != own) else { continue };
        if recipient.address_type != AddressType::Agent {
            continue;
        }
        let open = live.state.remote.entry(swarm.to_owned()).or_default();
        if matches!(draft.kind, MsgType::Request | MsgType::Interrupt) {
            *open += 1;
        }
        let asked_there = live.state.asker.as_deref().and_then(|asker| split(asker).1) == Some(swarm);
        if asked_there {
            live.state.answered = true;
        }
    }
}
