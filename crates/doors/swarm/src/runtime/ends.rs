//! How a turn of a task ends: by one of its agents, by the system, or because nobody has anything left to do; and who is
//! told.

use std::sync::Arc;

use posthaste_engine::nouns::{Address, Json, RunPhase};
use posthaste_engine::verbs::runs::Advanced;
use posthaste_wire::mail::{AddressType, MailAddress, MsgType, Owner, split};
use posthaste_wire::mail::{events, subjects};
use serde_json::{Value, json};

use super::definition::Swarm;
use super::letters::{Draft, Extra, to_mail};
use super::live::{Finish, Key, Live};
use super::steps::{Ending, Move};
use super::{RunCell, Runtime};

/// How often the system speaks up in a row before it ends the task.
pub(super) const MOST_TROUBLES: u32 = 8;

impl Runtime {
    /// Ends a turn of the task with a message of one of its agents.
    pub(super) async fn end(&self, cell: &Arc<RunCell>, live: &mut Live, mut mv: Move, end: Draft) {
        let ending = self.draw_end(live, &self.swarm(), &mut mv, end);
        if let Some(advanced) = self.step(cell, live, mv, ending).await {
            self.announce_end(live, &advanced);
        }
    }

    /// What is sent and given up when a turn of the task ends.
    pub(super) fn draw_end(&self, live: &mut Live, swarm: &Swarm, mv: &mut Move, end: Draft) -> Ending {
        let in_hand = mv.in_hand.as_ref().map(|incoming| incoming.id);
        mv.drafts.retain(|draft| draft.kind != MsgType::BroadcastComplete);
        // What is sent in the same breath as the end reaches nobody here, unless somebody elsewhere is to have it.
        mv.drafts.retain(|draft| draft.here.is_empty());
        let result = Json::from_value(&Value::from(end.body.as_str()));
        let sender = mv.in_hand.as_ref().map(|incoming| incoming.mail.message.sender.address.clone());
        let notices = self.notices(live, swarm, &end, sender.as_deref());
        mv.drafts.push(end);
        mv.drafts.extend(notices);
        let gave_up = live.abandon(in_hand);
        // A person's message that nobody has looked at keeps the task going.
        let phase = (!live.has_unheard_person()).then_some(RunPhase::Ended);
        live.state.questions.close();
        Ending { phase, result: Some(result), gave_up }
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
    pub(super) fn notices(
        &self,
        live: &Live,
        swarm: &Swarm,
        end: &Draft,
        in_hand: Option<&str>,
    ) -> Vec<Draft> {
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
            let questions = &live.state.questions;
            // The system tells every agent that waits; an agent that completes answers the last one that does.
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

    /// Tells those who wait what the task ended with.
    pub(super) fn announce_end(&self, live: &mut Live, advanced: &Advanced) {
        if let Some(finish) = self.finish_of(&live.key, advanced) {
            live.finish(&finish);
        }
    }

    /// What a task ended with.
    pub(super) fn finish_of(&self, key: &Key, advanced: &Advanced) -> Option<Finish> {
        let swarm = self.inner.engine.realm().as_str();
        let (message, _) = advanced.messages.iter().rev().find(|(message, _)| {
            message.kind == MsgType::BroadcastComplete.as_str()
                || message.to.iter().any(|to| matches!(to, Address::Agent(_)))
                    && message.kind == MsgType::Response.as_str()
        })?;
        Some(Finish { mail: Arc::new(to_mail(message, &key.name, swarm)) })
    }

    /// Speaks up when nobody has anything left to do in a task that has not ended.
    pub(super) async fn rest(&self, cell: &Arc<RunCell>, live: &mut Live) {
        if live.phase != RunPhase::Running || !live.is_idle() {
            return;
        }
        let swarm = self.swarm();
        self.tell_askers(cell, live, &swarm.name).await;
        if !live.is_at_rest() || !self.is_ours(live) {
            return;
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
        self.step(cell, live, mv, Ending::default()).await;
        self.pump_all(cell, live);
    }

    /// Tells agents of other swarms that their questions will not be answered: no agent here has anything in hand, and
    /// nothing was asked after them that could still help.
    async fn tell_askers(&self, cell: &Arc<RunCell>, live: &mut Live, swarm: &str) {
        let mut drafts = Vec::new();
        for asker in live.state.questions.unanswered() {
            if !self.can_tell(&asker) {
                live.state.questions.tell(&asker);
                continue;
            }
            let why = "the agents that were asked have ended their turns without an answer";
            let mut draft = Draft::system(swarm, MsgType::Response, &[&asker], subjects::TASK_ERROR, why);
            draft.here.clear();
            drafts.push(draft);
        }
        if !drafts.is_empty() {
            let mv = Move { drafts, ..Move::default() };
            self.step(cell, live, mv, Ending::default()).await;
        }
    }

    /// Whether an agent of another swarm can be written to.
    fn can_tell(&self, address: &str) -> bool {
        split(address).1.is_some_and(|swarm| self.inner.registry.knows(swarm))
    }

    /// The answer to one of several questions that other swarms have asked in their task: the agent that completes it is
    /// done with that one, and the others are still to be answered.
    pub(super) fn one_of_several(
        &self,
        live: &Live,
        agent: &str,
        in_hand: &str,
        text: &str,
    ) -> Option<Draft> {
        if self.is_ours(live) || live.state.questions.askers().count() < 2 {
            return None;
        }
        let asker = live.state.questions.completed_for(Some(in_hand)).filter(|asker| self.can_tell(asker))?;
        Some(Draft {
            kind: MsgType::Response,
            recipients: vec![MailAddress::agent(asker)],
            ..Draft::completion(agent, text.to_owned())
        })
    }
}
