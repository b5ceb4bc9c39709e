//! A step of a run: prepared, written by the engine, and applied to the run in memory.

use std::sync::Arc;

use posthaste_engine::nouns::{Address, AgentId, Json, Message, RunPhase, Taken};
use posthaste_engine::verbs::runs::{Advance, Advanced};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mail::events::DeliveryFailed;
use posthaste_wire::mail::{AddressType, MsgType, split};
use posthaste_wire::mail::{events, subjects};

use super::definition::Swarm;
use super::finish::MAX_TROUBLES;
use super::messages::{MessageDraft, to_mail};
use super::run_state::{Note, QueuedMessage, RunKey, RunState, ToolCall};
use super::{RunCell, Runtime, Slot};

/// A step before it is written: the agent, the message that it handled, and what results from that.
#[derive(Debug, Default)]
pub(super) struct StepDraft {
    pub(super) agent: String,
    pub(super) in_hand: Option<QueuedMessage>,
    pub(super) forget: bool,
    pub(super) note: Note,
    pub(super) calls: Vec<ToolCall>,
    pub(super) drafts: Vec<MessageDraft>,
}

/// How a step changes the run as a whole.
#[derive(Debug, Default)]
pub(super) struct StepEnd {
    pub(super) phase: Option<RunPhase>,
    pub(super) result: Option<Json>,
    /// Messages that no agent will handle any more.
    pub(super) gave_up: Vec<Taken>,
}

impl Runtime {
    /// The command for a step. Updates the open questions by what the step sends.
    pub(super) fn build_step(
        &self,
        live: &mut RunState,
        swarm: &Swarm,
        draft_step: &mut StepDraft,
        ending: StepEnd,
    ) -> Advance {
        let drafts = std::mem::take(&mut draft_step.drafts);
        for draft in &drafts {
            note_remote(live, draft, &swarm.name);
        }
        let mover = AgentId::new(&draft_step.agent).unwrap_or_else(|_| AgentId::office());
        let in_hand = draft_step.in_hand.as_ref();
        draft_step.note.took = in_hand.map(|queued| queued.id);
        let empty = draft_step.note.events.is_empty() && draft_step.note.results.is_empty();
        let mut messages = drafts.into_iter().map(|draft| draft.into_message(swarm)).collect();
        live.answer_source(&mut messages);
        if ending.result.is_some() {
            live.state.questions.close();
        }
        Advance {
            took: in_hand
                .map(|queued| Taken { agent: mover.clone(), message: queued.id })
                .into_iter()
                .collect(),
            agent: mover,
            forget: draft_step.forget,
            gave_up: ending.gave_up,
            note: if empty { None } else { draft_step.note.to_json() },
            messages,
            steps: in_hand.map_or(0, |queued| u32::from(queued.counts())),
            phase: ending.phase,
            result: ending.result,
            state: live.state_json(),
            ..step_of(&live.key)
        }
    }

    /// Writes a step and applies it. `None` if it was too late for it, or if it could not be written.
    pub(super) async fn step(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        mut draft_step: StepDraft,
        ending: StepEnd,
    ) -> Option<Advanced> {
        let before = (live.state.source.clone(), live.state.questions.clone());
        let step = self.build_step(live, &self.swarm(), &mut draft_step, ending);
        let StepDraft { agent, in_hand, forget, note, calls, drafts: _ } = draft_step;
        let advanced = self.advance(step).await;
        if advanced.is_err() {
            // Nothing was sent, so nothing was asked or answered.
            (live.state.source, live.state.questions) = before;
        }
        if let Some(agent_state) = live.agents.get_mut(&agent)
            && agent_state.busy == in_hand.as_ref().map(|queued| queued.id)
        {
            agent_state.busy = None;
        }
        match advanced {
            Ok(advanced) => {
                if let Some(queued) = in_hand {
                    live.add_turn(&agent, queued, forget, calls, note.results);
                }
                self.settle(cell, live, &advanced);
                Some(advanced)
            }
            Err(EngineError::Refused(refusal @ (Refusal::TaskEnded { .. } | Refusal::NoSuchMessage))) => {
                tracing::debug!(task = %live.task, agent, %refusal, "a step came too late");
                None
            }
            Err(EngineError::Refused(refusal)) => {
                // The agent is told; the message that it handled stays unhandled until that is written.
                tracing::warn!(task = %live.task, agent, %refusal, "a step was refused");
                self.after_refusal(cell, live, &agent, in_hand, &refusal).await
            }
            Err(error) => {
                tracing::error!(task = %live.task, %error, "a step cannot be written");
                None
            }
        }
    }

    /// Tells an agent that its step was refused as a whole, for instance because it is too large.
    async fn after_refusal(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        agent: &str,
        in_hand: Option<QueuedMessage>,
        refusal: &Refusal,
    ) -> Option<Advanced> {
        let swarm = self.swarm();
        let mover = AgentId::new(agent).unwrap_or_else(|_| AgentId::office());
        live.state.troubles += 1;
        let ends = live.state.troubles > MAX_TROUBLES || swarm.agent(agent).is_none();
        let mut draft = match ends {
            true => MessageDraft::system(
                &swarm.name,
                MsgType::BroadcastComplete,
                &["all"],
                subjects::TASK_ERROR,
                refusal.to_string(),
            ),
            false => MessageDraft::system(
                &swarm.name,
                MsgType::Response,
                &[agent],
                subjects::TOOL_CALL_ERROR,
                refusal.to_string(),
            ),
        };
        let mut notices = Vec::new();
        if ends {
            draft.here.clear();
            notices = self.notices(live, &swarm, &draft, None);
            live.state.questions.close();
        }
        let drafts = std::iter::once(draft).chain(notices);
        let mut messages = drafts.map(|draft| draft.into_message(&swarm)).collect();
        live.answer_source(&mut messages);
        let step = Advance {
            took: in_hand.iter().map(|one| Taken { agent: mover.clone(), message: one.id }).collect(),
            agent: mover,
            messages,
            phase: ends.then_some(RunPhase::Ended),
            state: live.state_json(),
            ..step_of(&live.key)
        };
        let advanced = self.advance(step).await.ok()?;
        self.settle(cell, live, &advanced);
        if ends {
            self.announce_end(live, &advanced);
        }
        Some(advanced)
    }

    /// Applies a written step to the run in memory.
    pub(super) fn settle(&self, cell: &Arc<RunCell>, live: &mut RunState, advanced: &Advanced) {
        let hosted = self.inner.hosted.load();
        live.task = advanced.run.task.clone();
        live.phase = advanced.run.phase;
        let mut last = advanced.place;
        for (message, agents) in &advanced.messages {
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
                    live.agents.entry(agent.to_string()).or_default().unanswered += 1;
                } else if hosted.agents.contains_key(agent.as_str()) {
                    live.enqueue(agent.as_str(), QueuedMessage::of(message, mail.clone()));
                }
            }
        }
        cell.news.send_replace(last);
    }

    /// Tells an agent that its message did not reach another swarm.
    pub(super) async fn undelivered(
        &self,
        instance: &str,
        task: &str,
        message: &Message,
        swarm: &str,
        why: &str,
    ) {
        let sender = message.from.as_str();
        let key = super::RunKey::new(instance, task);
        let (cell, mut guard) = self.hold(&key).await;
        if !matches!(self.load(&key, &mut guard).await, Ok(Some(_))) {
            if let Slot::Empty = *guard {
                super::lock(&self.inner.runs).remove(&key);
                *guard = Slot::Retired;
            }
            return;
        }
        let Slot::Loaded(live) = &mut *guard else { return };
        if live.phase != RunPhase::Ended {
            if MsgType::parse(&message.kind).is_some_and(is_question) {
                live.state.questions.forget_one_to(swarm);
            }
            let own = self.swarm();
            let mut draft_step = StepDraft::default();
            draft_step.note.add_event(
                events::INTERSWARM_ERROR,
                format!("a message did not reach {swarm}"),
                DeliveryFailed { swarm: swarm.to_owned(), error: why.to_owned() },
            );
            if own.agent(sender).is_some() {
                let text = format!("your message did not reach the swarm {swarm}: {why}");
                let kind = MsgType::Response;
                draft_step.drafts.push(MessageDraft::system(
                    &own.name,
                    kind,
                    &[sender],
                    subjects::ROUTER_ERROR,
                    text,
                ));
            }
            self.step(&cell, live, draft_step, StepEnd::default()).await;
            self.start_turns(&cell, live);
            self.check_idle(&cell, live).await;
        }
        self.retire(&cell, &mut guard);
    }
}

/// Updates the open questions by a message that is sent to other swarms.
fn note_remote(live: &mut RunState, draft: &MessageDraft, own: &str) {
    if draft.extra.notice {
        return;
    }
    for recipient in &draft.recipients {
        let Some(swarm) = split(&recipient.address).1.filter(|swarm| *swarm != own) else { continue };
        if recipient.address_type != AddressType::Agent {
            continue;
        }
        match is_question(draft.kind) {
            true => live.state.questions.ask(swarm),
            false => live.state.questions.tell(&recipient.address),
        }
    }
}

/// Whether a message of this kind expects an answer.
pub(super) fn is_question(kind: MsgType) -> bool {
    matches!(kind, MsgType::Request | MsgType::Interrupt)
}

/// An empty step of a run.
pub(super) fn step_of(key: &RunKey) -> Advance {
    Advance {
        instance: key.instance.to_string(),
        name: key.name.to_string(),
        open: None,
        agent: AgentId::office(),
        took: Vec::new(),
        forget: false,
        gave_up: Vec::new(),
        note: None,
        messages: Vec::new(),
        steps: 0,
        phase: None,
        result: None,
        state: None,
        contributors: Vec::new(),
    }
}
