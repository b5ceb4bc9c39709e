//! Actions are begun once: what an agent answered is written down before the first action that it calls for begins, and
//! each beginning before the action itself. After a crash those that ended are not repeated, one that was under way is
//! told of as uncertain, and the rest are begun.

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

/// What an agent is told of an action of which nobody knows how it ended.
const UNCERTAIN: &str =
    "the server stopped while the action was under way, and it is not known whether it took effect";

/// What an agent answered, and how far it has been carried out. Written down in pieces: the first has the answer, later
/// ones what has come to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingReply {
    /// The message that the agent has in hand.
    pub(crate) message: MessageId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Actions that have ended, by their places among the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<(usize, Result<String, String>)>,
    /// The action that was begun last.
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

    /// What is known of an action.
    fn known(&self, place: usize) -> Option<Result<String, String>> {
        let ended = self.ended.iter().find(|(at, _)| *at == place).map(|(_, result)| result.clone());
        // Those before it have ended.
        let uncertain = || self.begun.filter(|begun| *begun == place).map(|_| Err(UNCERTAIN.to_owned()));
        ended.or_else(uncertain)
    }
}

/// The actions among an agent's calls that are carried out here, with their places.
pub(super) fn wanted<'a>(
    swarm: &'a Swarm,
    agent: &'a AgentDefinition,
    calls: &'a [ToolCall],
) -> impl Iterator<Item = (usize, &'a ToolCall, &'a ActionDefinition)> {
    // What comes after the end of the task is not carried out.
    let ends = |call: &ToolCall| call.tool == "task_complete" && agent.can_complete_tasks;
    let calls = calls.iter().enumerate().take_while(move |(_, call)| !ends(call));
    calls.filter_map(|(place, call)| {
        let granted = agent.actions.contains(&call.tool) && !swarm.is_breakpoint(&call.tool);
        let action = swarm.action(&call.tool).filter(|_| granted)?;
        Some((place, call, action))
    })
}

impl Runtime {
    /// Carries out the actions that an answer calls for, each once. An error if that cannot be written down, for instance
    /// because the task has ended.
    pub(super) async fn run_actions(
        &self,
        hosted: &Hosted,
        key: &RunKey,
        agent: &AgentDefinition,
        pending_reply: PendingReply,
    ) -> Result<(Reply, ActionResults), EngineError> {
        let mut results = ActionResults::new();
        // After a restart the answer is in the books already.
        let mut piece = match pending_reply.begun {
            None => pending_reply.clone(),
            Some(_) => {
                PendingReply { calls: Vec::new(), text: None, ended: Vec::new(), ..pending_reply.clone() }
            }
        };
        for (place, call, action) in wanted(&hosted.swarm, agent, &pending_reply.calls) {
            let result = match pending_reply.known(place) {
                Some(known) => known,
                None => {
                    piece.begun = Some(place);
                    self.write_piece(key, agent, &piece).await?;
                    let result = actions::run(action, &call.args, &hosted.here, &hosted.outgoing).await;
                    let ended = vec![(place, result.clone())];
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
    fn what_ended_is_known_what_was_under_way_is_uncertain_and_the_rest_is_still_to_do() {
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
