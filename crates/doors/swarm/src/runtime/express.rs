//! Tasks that only the office's own agents work on: they answer at once and touch nothing else, so what will come of a
//! message can be thought through before anything is written, and written in one piece.

use std::sync::Arc;

use posthaste_engine::nouns::{Address, Audience, Body, Message, RunPhase, Seq, TaskId};
use posthaste_engine::stamp;
use posthaste_engine::verbs::runs::{Advance, RunMessage};

use super::drivers::Driver;
use super::intents::wanted;
use super::letters::{Draft, to_mail};
use super::live::{Incoming, Live};
use super::steps::{Ending, Move};
use super::tools::{ActionResults, Judge};
use super::turns::prepare;
use super::{Hosted, Runtime, VIA};

/// Turns that are thought through; a task that takes more is worked on as any other.
const MOST_TURNS: usize = 32;

impl Runtime {
    /// The steps up to the end of a task that is about to be opened, if nobody but the office's own agents takes part and
    /// nothing goes wrong on the way. Otherwise nothing, and the task is worked on step by step.
    pub(super) fn foresee(&self, live: &Live, opening: &Advance) -> Option<Vec<Advance>> {
        let hosted = self.inner.hosted.load();
        let mut scratch = Live::fresh(live.key.clone(), live.task.clone(), live.owner.clone());
        (scratch.phase, scratch.state) = (RunPhase::Running, live.state.clone());
        let mut place = 0;
        deliver(&mut scratch, &hosted, &opening.messages, &mut place)?;
        let mut steps = Vec::new();
        for _ in 0..MOST_TURNS {
            let (name, incoming) = scratch.next_turn()?;
            let (agent, desk) = hosted.agents.get(&name)?;
            let Driver::Builtin(own) = &desk.driver else { return None };
            if incoming.counts() {
                scratch.steps += 1;
                if scratch.steps > scratch.state.max_steps.unwrap_or(hosted.swarm.task_message_limit) {
                    return None;
                }
            }
            let reply = own.take(&prepare(&scratch, &hosted, agent, &incoming));
            if wanted(&hosted.swarm, agent, &reply.calls).next().is_some() {
                return None;
            }
            let plan = Judge {
                swarm: &hosted.swarm,
                agent,
                live: &scratch,
                in_hand: &incoming.mail,
                knows_swarm: &|_| false,
            }
            .judge(&reply.calls, reply.text.as_deref(), &ActionResults::new());
            let plain = plan.troubles == 0 && plan.answer.is_none() && plan.breakpoint.is_empty();
            if !plain {
                return None;
            }
            let in_hand = Some(incoming.clone());
            let (forget, note, calls, drafts) = (plan.forget, plan.note, reply.calls, plan.drafts);
            let mut mv = Move { agent: name.clone(), in_hand, forget, note, calls, drafts };
            if let Some(text) = plan.complete {
                let ending =
                    self.draw_end(&mut scratch, &hosted.swarm, &mut mv, Draft::completion(&name, text));
                ending.phase?;
                steps.push(self.draw_up(&mut scratch, &hosted.swarm, &mut mv, ending));
                return Some(steps);
            }
            let step = self.draw_up(&mut scratch, &hosted.swarm, &mut mv, Ending::default());
            scratch.seats.entry(name.clone()).or_default().busy = None;
            scratch.dealt_with(&name, incoming, mv.forget, mv.calls, mv.note.results);
            deliver(&mut scratch, &hosted, &step.messages, &mut place)?;
            steps.push(step);
        }
        None
    }
}

/// Puts letters that are not written yet into the queues of their recipients. Nothing if somebody else has a part in it.
fn deliver(scratch: &mut Live, hosted: &Hosted, letters: &[RunMessage], place: &mut Seq) -> Option<()> {
    for letter in letters {
        if !letter.away.is_empty() {
            return None;
        }
        *place += 1;
        let message = unwritten(letter, &scratch.task, *place);
        let mail = Arc::new(to_mail(&message, &scratch.key.name, &hosted.swarm.name));
        for agent in &letter.to {
            let (_, desk) = hosted.agents.get(agent.as_str())?;
            if !matches!(desk.driver, Driver::Builtin(_)) {
                return None;
            }
            scratch.enqueue(agent.as_str(), Incoming::of(&message, mail.clone()));
        }
    }
    Some(())
}

/// A letter as the books will have it, but for its place and time, which the office's own agents do not look at.
fn unwritten(letter: &RunMessage, task: &TaskId, seq: Seq) -> Message {
    Message {
        seq,
        id: letter.id,
        from: letter.from.clone(),
        to: letter.addressed.iter().filter(|to| !matches!(to, Address::Remote { .. })).cloned().collect(),
        kind: letter.kind.clone(),
        subject: Some(letter.subject.clone()),
        body: Body::Text(letter.body.clone()),
        priority: letter.priority,
        ack_required: false,
        expires_at: None,
        correlation: letter.correlation.clone(),
        conversation: Some(task.clone()),
        thread: None,
        in_reply_to: letter.in_reply_to,
        task: Some(task.clone()),
        key: None,
        envelope: None,
        meta: letter.meta.clone(),
        audience: Audience::Parties,
        via: VIA.into(),
        at: stamp::now(),
    }
}
