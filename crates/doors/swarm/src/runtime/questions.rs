//! Open questions between the swarms of one task, in the order in which they were asked. The swarm that was asked last has to
//! act when all local agents are idle.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_wire::mail::split;
use serde::{Deserialize, Serialize};

/// Maximum number of open questions of one run; they are part of its state, which is written with every step.
const MAX_OPEN: usize = 256;

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    /// From the agent with this address, in another swarm, to a local agent.
    From(String),
    /// From a local agent to an agent of the swarm with this name.
    To(String),
}

/// What a run knows about the other swarms that take part in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Questions {
    /// Swarms that local agents have written to.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    swarms: BTreeSet<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<Question>,
    /// The remote agent that a task of another swarm is completed for when it has no open question.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest: Option<String>,
}

/// The same in states that were written before questions had an order.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Unordered {
    remote: BTreeMap<String, u32>,
    asker: Option<String>,
    answered: bool,
}

impl Unordered {
    pub(super) fn into_questions(self) -> Questions {
        let mut questions = Questions { latest: self.asker.clone(), ..Questions::default() };
        if let Some(asker) = self.asker.filter(|_| !self.answered) {
            questions.open.push(Question::From(asker));
        }
        for (swarm, open) in self.remote {
            for _ in 0..open {
                questions.put(Question::To(swarm.clone()));
            }
            questions.swarms.insert(swarm);
        }
        questions
    }
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn put(&mut self, question: Question) {
        if self.open.len() < MAX_OPEN {
            self.open.push(question);
        }
    }

    /// Whether no further question from another swarm can be kept.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN
    }

    /// A local agent asks an agent of another swarm.
    pub(super) fn ask(&mut self, swarm: &str) {
        self.swarms.insert(swarm.to_owned());
        self.put(Question::To(swarm.to_owned()));
    }

    /// A local agent sends a remote agent a message that is no question. It answers the agent's newest question, or else the
    /// newest of the agent's swarm.
    pub(super) fn tell(&mut self, address: &str) {
        let Some(swarm) = split(address).1 else { return };
        self.swarms.insert(swarm.to_owned());
        let from = |question: &Question, fits: &dyn Fn(&str) -> bool| match question {
            Question::From(asker) => fits(asker),
            Question::To(_) => false,
        };
        let newest = |fits: &dyn Fn(&str) -> bool| self.open.iter().rposition(|one| from(one, fits));
        let at = newest(&|asker| asker == address).or_else(|| newest(&|asker| split(asker).1 == Some(swarm)));
        if let Some(at) = at {
            self.open.remove(at);
        }
    }

    /// A remote agent asks a local agent.
    pub(super) fn asked_by(&mut self, address: &str) {
        self.latest = Some(address.to_owned());
        self.put(Question::From(address.to_owned()));
    }

    /// Another swarm sends a message that is no question. It answers the oldest question to that swarm. If there is none, its
    /// sender becomes the agent that a completion answers.
    pub(super) fn told_by(&mut self, swarm: &str, address: Option<&str>) {
        let answered = self.forget_one_to(swarm);
        if let Some(address) = address.filter(|_| !answered) {
            self.latest = Some(address.to_owned());
        }
    }

    /// Removes the oldest question to a swarm, because it was answered or could not be delivered. False if there is none.
    pub(super) fn forget_one_to(&mut self, swarm: &str) -> bool {
        let at = self.open.iter().position(|one| matches!(one, Question::To(to) if to == swarm));
        at.map(|at| self.open.remove(at)).is_some()
    }

    /// Removes all open questions, because the task has ended.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    /// The swarms that local agents have written to.
    pub(super) fn swarms(&self) -> impl Iterator<Item = &String> {
        self.swarms.iter()
    }

    pub(super) fn has_written_to(&self, swarm: &str) -> bool {
        self.swarms.contains(swarm)
    }

    /// Whether a question to another swarm is open.
    pub(super) fn awaits_an_answer(&self) -> bool {
        self.open.iter().any(|one| matches!(one, Question::To(_)))
    }

    /// Whether no question is open in either direction.
    pub(super) fn are_settled(&self) -> bool {
        self.open.is_empty()
    }

    /// The remote agents that wait for an answer, one for each question, oldest first.
    pub(super) fn askers(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.open.iter().filter_map(|one| match one {
            Question::From(asker) => Some(asker.as_str()),
            Question::To(_) => None,
        })
    }

    /// The remote agents whose questions came after all open questions of local agents, newest first: no answer that is to come
    /// can help with them.
    pub(super) fn unanswered(&self) -> Vec<String> {
        let newest = self.open.iter().rev().map_while(|one| match one {
            Question::From(asker) => Some(asker.clone()),
            Question::To(_) => None,
        });
        newest.collect()
    }

    /// The remote agent that a completion answers when the completing agent handles a message of this sender: the sender, if it
    /// asked; else the newest asker; else the one that wrote last.
    pub(super) fn completed_for(&self, sender: Option<&str>) -> Option<&str> {
        let sender = sender.and_then(|sender| self.askers().find(|asker| *asker == sender));
        sender.or_else(|| self.askers().next_back()).or(self.latest.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_swarm_that_was_asked_last_has_to_act() {
        let mut here = Questions::default();
        here.asked_by("boss@north");
        assert_eq!(here.unanswered(), ["boss@north"]);
        here.ask("north");
        assert!(here.unanswered().is_empty() && here.awaits_an_answer());
        here.asked_by("helper@north");
        assert_eq!(here.unanswered(), ["helper@north"]);
        here.tell("helper@north");
        here.told_by("north", Some("helper@north"));
        assert_eq!(here.completed_for(None), Some("boss@north"), "an answer does not become a question");
        here.tell("clerk@north");
        assert!(here.are_settled(), "any agent of the asking swarm may be told");
        assert_eq!(here.completed_for(None), Some("helper@north"), "it was the last to ask");
    }

    #[test]
    fn a_completion_is_for_the_one_that_asked() {
        let mut here = Questions::default();
        here.asked_by("boss@north");
        here.asked_by("helper@north");
        assert_eq!(here.completed_for(Some("boss@north")), Some("boss@north"));
        assert_eq!(here.completed_for(Some("own")), Some("helper@north"));
        assert_eq!(here.askers().count(), 2);
    }

    #[test]
    fn states_of_older_servers_are_read() {
        let older = r#"{"remote":{"south":2,"west":0},"asker":"boss@north","answered":false}"#;
        let read: Unordered = serde_json::from_str(older).unwrap();
        let questions = read.into_questions();
        assert!(questions.has_written_to("west") && questions.awaits_an_answer());
        assert_eq!(questions.askers().collect::<Vec<_>>(), ["boss@north"]);
        assert_eq!(questions.open.len(), 3);
        let text = serde_json::to_string(&questions).unwrap();
        assert_eq!(serde_json::from_str::<Questions>(&text).unwrap(), questions);
    }

    #[test]
    fn open_questions_are_bounded() {
        let mut here = Questions::default();
        for _ in 0..2 * MAX_OPEN {
            here.ask("south");
        }
        assert!(here.is_full());
        assert_eq!(here.open.len(), MAX_OPEN);
    }
}
