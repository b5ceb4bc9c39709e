//! The end of a turn of a task: by an agent, by the system, or because no agent has anything left to do; and the messages
//! that tell other swarms of it.

use std::sync::Arc;

use posthaste_engine::nouns::{Address, Json, RunPhase};
use posthaste_engine::verbs::runs::Advanced;
use posthaste_wire::mail::events::TaskFailed;
use posthaste_wire::mail::{AddressType, MailAddress, MsgType, Owner, split};
use posthaste_wire::mail::{events, subjects};
use serde_json::Value;

use super::definition::Swarm;
use super::messages::{MessageDraft, MessageMeta, to_mail};
use super::run_state::{Finish, RunKey, RunState};
use super::steps::{StepDraft, StepEnd};
use super::{RunCell, Runtime};

/// Maximum number of consecutive system messages about mistakes; after that the system ends the task.
pub(super) const MAX_TROUBLES: u32 = 8;

impl Runtime {
    /// Ends a turn of the task with a message of one of its agents.
    pub(super) async fn end(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        mut draft_step: StepDraft,
        end: MessageDraft,
    ) {
        let ending = self.build_end(live, &self.swarm(), &mut draft_step, end);
        if let Some(advanced) = self.step(cell, live, draft_step, ending).await {
            self.announce_end(live, &advanced);
        }
    }

    /// Prepares the end of a turn: adds the messages that are sent, and returns what is given up.
    pub(super) fn build_end(
        &self,
        live: &mut RunState,
        swarm: &Swarm,
        draft_step: &mut StepDraft,
        end: MessageDraft,
    ) -> StepEnd {
        let in_hand = draft_step.in_hand.as_ref().map(|queued| queued.id);
        draft_step.drafts.retain(|draft| draft.kind != MsgType::BroadcastComplete);
        // Messages of the same reply to local agents are dropped; messages to other swarms are sent.
        draft_step.drafts.retain(|draft| draft.here.is_empty());
        let result = Json::from_value(&Value::from(end.body.as_str()));
        let sender = draft_step.in_hand.as_ref().map(|queued| queued.mail.message.sender.address.clone());
        let notices = self.notices(live, swarm, &end, sender.as_deref());
        draft_step.drafts.push(end);
        draft_step.drafts.extend(notices);
        let gave_up = live.abandon(in_hand);
        // A queued message of a user keeps the task running.
        let phase = (!live.has_unread_user_message()).then_some(RunPhase::Ended);
        StepEnd { phase, result: Some(result), gave_up }
    }

    /// Ends a turn of the task because it cannot go on.
    pub(super) async fn end_by_system(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        subject: &str,
        why: &str,
        mut draft_step: StepDraft,
    ) {
        let swarm = self.swarm();
        let mut end = MessageDraft::system(&swarm.name, MsgType::BroadcastComplete, &["all"], subject, why);
        end.here.clear();
        let details = TaskFailed { error: why.to_owned() };
        draft_step.note.add_event(events::TASK_ERROR, why, details);
        self.end(cell, live, draft_step, end).await;
    }

    /// The messages that tell other swarms of the end: every contributor for a task of this swarm, else the one that asked.
    pub(super) fn notices(
        &self,
        live: &RunState,
        swarm: &Swarm,
        end: &MessageDraft,
        in_hand: Option<&str>,
    ) -> Vec<MessageDraft> {
        let notice = |address: String, subject: &str, notice: bool| MessageDraft {
            kind: MsgType::Response,
            sender: end.sender.clone(),
            recipients: vec![MailAddress::agent(address)],
            here: Vec::new(),
            subject: subject.to_owned(),
            body: end.body.clone(),
            own_id: None,
            key: None,
            extra: MessageMeta { notice, ..MessageMeta::default() },
        };
        if !self.is_ours(live) {
            let questions = &live.state.questions;
            // The system answers every remote agent that waits; an agent that completes answers one of them.
            let askers: Vec<&str> = match end.sender.address_type {
                AddressType::Agent => questions.completed_for(in_hand).into_iter().collect(),
                _ => questions.askers().collect(),
            };
            let known = askers.into_iter().filter(|asker| self.can_tell(asker));
            return known.map(|asker| notice(asker.to_owned(), subjects::TASK_COMPLETE, false)).collect();
        }
        let contributing =
            live.contributors.iter().filter_map(|text| Owner::parse(text)).map(|owner| owner.swarm);
        let mut told: Vec<String> = contributing.chain(live.state.questions.swarms().cloned()).collect();
        told.sort_unstable();
        told.dedup();
        told.retain(|other| *other != swarm.name && self.inner.registry.knows(other));
        let to =
            |other: String| notice(format!("{}@{other}", swarm.entrypoint), subjects::TASK_COMPLETE, true);
        told.into_iter().map(to).collect()
    }

    /// Sends the end of the turn to the callers that wait for it.
    pub(super) fn announce_end(&self, live: &mut RunState, advanced: &Advanced) {
        if let Some(finish) = self.finish_of(&live.key, advanced) {
            live.finish(&finish);
        }
    }

    /// The message that ended a turn.
    pub(super) fn finish_of(&self, key: &RunKey, advanced: &Advanced) -> Option<Finish> {
        let swarm = self.inner.engine.realm().as_str();
        let (message, _) = advanced.messages.iter().rev().find(|(message, _)| {
            message.kind == MsgType::BroadcastComplete.as_str()
                || message.to.iter().any(|to| matches!(to, Address::Agent(_)))
                    && message.kind == MsgType::Response.as_str()
        })?;
        Some(Finish { mail: Arc::new(to_mail(message, &key.name, swarm)) })
    }

    /// Tells a supervisor when no agent has anything left to do in a task that has not ended.
    pub(super) async fn check_idle(&self, cell: &Arc<RunCell>, live: &mut RunState) {
        if live.phase != RunPhase::Running || !live.is_idle() {
            return;
        }
        let swarm = self.swarm();
        self.tell_askers(cell, live, &swarm.name).await;
        if !live.is_at_rest() || !self.is_ours(live) {
            return;
        }
        live.state.troubles += 1;
        if live.state.troubles > MAX_TROUBLES {
            let why = "no agent has anything left to do in this task, and no agent completed it";
            return self.end_by_system(cell, live, subjects::TASK_ERROR, why, StepDraft::default()).await;
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
        let why = "no agent has anything left to do in this task; call task_complete, or ask another agent for more";
        let draft =
            MessageDraft::system(&swarm.name, MsgType::Response, &[&entry], subjects::TASK_ERROR, why);
        let draft_step = StepDraft { drafts: vec![draft], ..StepDraft::default() };
        self.step(cell, live, draft_step, StepEnd::default()).await;
        self.start_turns(cell, live);
    }

    /// Tells agents of other swarms that their questions will not be answered: all local agents are idle, and no question that
    /// was asked after theirs is open.
    async fn tell_askers(&self, cell: &Arc<RunCell>, live: &mut RunState, swarm: &str) {
        let mut drafts = Vec::new();
        for asker in live.state.questions.unanswered() {
            if !self.can_tell(&asker) {
                live.state.questions.tell(&asker);
                continue;
            }
            let why = "the agents that were asked have ended their turns without an answer";
            let mut draft =
                MessageDraft::system(swarm, MsgType::Response, &[&asker], subjects::TASK_ERROR, why);
            draft.here.clear();
            drafts.push(draft);
        }
        if !drafts.is_empty() {
            let draft_step = StepDraft { drafts, ..StepDraft::default() };
            self.step(cell, live, draft_step, StepEnd::default()).await;
        }
    }

    /// Whether the swarm of a remote agent is registered.
    fn can_tell(&self, address: &str) -> bool {
        split(address).1.is_some_and(|swarm| self.inner.registry.knows(swarm))
    }

    /// In a task of another swarm with several open questions, a completion answers only one of them. Returns that answer.
    pub(super) fn one_of_several(
        &self,
        live: &RunState,
        agent: &str,
        in_hand: &str,
        text: &str,
    ) -> Option<MessageDraft> {
        if self.is_ours(live) || live.state.questions.askers().count() < 2 {
            return None;
        }
        let asker = live.state.questions.completed_for(Some(in_hand)).filter(|asker| self.can_tell(asker))?;
        Some(MessageDraft {
            kind: MsgType::Response,
            recipients: vec![MailAddress::agent(asker)],
            ..MessageDraft::completion(agent, text.to_owned())
        })
    }
}
