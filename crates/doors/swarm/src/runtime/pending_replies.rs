//! Replies whose actions are being carried out. The reply is written before its first action begins, and the beginning of
//! each action before the action, so that no action begins twice. After a crash the actions that ended are not repeated, the
//! one that was running is reported as uncertain, and the rest are carried out.

use posthaste_engine::EngineError;
use posthaste_engine::nouns::{AgentId, MessageId};
use posthaste_engine::verbs::runs::Advance;
use serde::{Deserialize, Serialize};

use super::definition::Swarm;
use super::drivers::Reply;
use super::run_state::{Note, RunKey, ToolCall};
use super::steps::step_of;
use super::tools::ActionResults;
use super::{Hosted, Runtime, actions};
use posthaste_wire::mail::definition::{ActionDefinition, AgentDefinition};

/// The result of an action that was running when the server stopped.
const UNCERTAIN: &str =
    "the server stopped while the action was under way, and it is not known whether it took effect";

/// A reply and the progress of its actions. Written in pieces: the first has the reply, later ones the progress since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingReply {
    /// The message that the agent is handling.
    pub(crate) message: MessageId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Results of actions that have ended, by their index among the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<(usize, Result<String, String>)>,
    /// The index of the action that was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<usize>,
}

impl PendingReply {
    pub(super) fn of(message: MessageId, reply: Reply) -> Self {
        let Reply { calls, text } = reply;
        Self { message, calls, text, ended: Vec::new(), begun: None }
    }

    /// Adds a later piece.
    pub(super) fn add(&mut self, later: &Self) {
        self.ended.extend(later.ended.iter().cloned());
        self.begun = later.begun.or(self.begun);
    }

    /// The result of an action, if it has ended or was running at a crash.
    fn known(&self, index: usize) -> Option<Result<String, String>> {
        let ended = self.ended.iter().find(|(at, _)| *at == index).map(|(_, result)| result.clone());
        // Actions before it have ended.
        let uncertain = || self.begun.filter(|begun| *begun == index).map(|_| Err(UNCERTAIN.to_owned()));
        ended.or_else(uncertain)
    }
}

/// The actions among an agent's calls that the runtime carries out, with their index.
pub(super) fn local_actions<'a>(
    swarm: &'a Swarm,
    agent: &'a AgentDefinition,
    calls: &'a [ToolCall],
) -> impl Iterator<Item = (usize, &'a ToolCall, &'a ActionDefinition)> {
    // Actions after the end of the task are not carried out.
    let ends = |call: &ToolCall| call.tool == "task_complete" && agent.can_complete_tasks;
    let calls = calls.iter().enumerate().take_while(move |(_, call)| !ends(call));
    calls.filter_map(|(index, call)| {
        let granted = agent.actions.contains(&call.tool) && !swarm.is_breakpoint(&call.tool);
        let action = swarm.action(&call.tool).filter(|_| granted)?;
        Some((index, call, action))
    })
}

impl Runtime {
    /// Carries out the actions of a reply, each once. Fails if their beginning cannot be written, for instance because the
    /// task has ended.
    pub(super) async fn run_actions(
        &self,
        hosted: &Hosted,
        key: &RunKey,
        agent: &AgentDefinition,
        pending_reply: PendingReply,
    ) -> Result<(Reply, ActionResults), EngineError> {
        let mut results = ActionResults::new();
        // After a restart the reply is in the database already.
        let mut piece = match pending_reply.begun {
            None => pending_reply.clone(),
            Some(_) => {
                PendingReply { calls: Vec::new(), text: None, ended: Vec::new(), ..pending_reply.clone() }
            }
        };
        for (index, call, action) in local_actions(&hosted.swarm, agent, &pending_reply.calls) {
            let result = match pending_reply.known(index) {
                Some(known) => known,
                None => {
                    piece.begun = Some(index);
                    self.write_piece(key, agent, &piece).await?;
                    let result = actions::run(action, &call.args, &hosted.here, &hosted.outgoing).await;
                    let ended = vec![(index, result.clone())];
                    piece = PendingReply { calls: Vec::new(), text: None, ended, ..piece };
                    result
                }
            };
            results.insert(call.call_id.clone(), result);
        }
        Ok((Reply { calls: pending_reply.calls, text: pending_reply.text }, results))
    }

    async fn write_piece(
        &self,
        key: &RunKey,
        agent: &AgentDefinition,
        piece: &PendingReply,
    ) -> Result<(), EngineError> {
        let note = Note { pending_reply: Some(piece.clone()), ..Note::default() };
        let agent = AgentId::new(&agent.name).unwrap_or_else(|_| AgentId::office());
        self.advance(Advance { agent, note: note.to_json(), ..step_of(key) }).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(n: usize) -> ToolCall {
        ToolCall { call_id: format!("call_{n}"), tool: "act".to_owned(), args: serde_json::Value::Null }
    }

    #[test]
    fn ended_actions_are_known_and_a_running_one_is_uncertain() {
        let message = MessageId(uuid::Uuid::nil());
        let reply = Reply { calls: (0..3).map(call).collect(), text: None };
        let mut pending_reply = PendingReply { begun: Some(0), ..PendingReply::of(message, reply) };
        assert_eq!(pending_reply.known(0), Some(Err(UNCERTAIN.to_owned())));
        let later = PendingReply {
            ended: vec![(0, Ok("done".to_owned()))],
            begun: Some(1),
            ..PendingReply::of(message, Reply::default())
        };
        pending_reply.add(&later);
        assert_eq!(pending_reply.known(0), Some(Ok("done".to_owned())));
        assert_eq!(pending_reply.known(1), Some(Err(UNCERTAIN.to_owned())));
        assert_eq!(pending_reply.known(2), None);
        assert_eq!(pending_reply.calls.len(), 3);
    }
}
