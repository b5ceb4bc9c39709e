//! Runs: one verb opens or resumes a run, takes messages, sends new ones, and ends it.

mod course;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::course::Course;
use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{
    Address, AgentId, AgentKind, ConversationId, Json, Message, MessageId, Priority, RealmName, Run,
    RunPhase, Seq, Taken, TaskId,
};
use crate::store::{message_key, one, rows};

/// One step of a run; all or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advance {
    /// The instance that it runs for.
    pub instance: String,
    /// The run's name in that instance.
    pub name: String,
    /// Opens the run if it does not exist, and resumes it if it has ended or is paused.
    #[serde(default)]
    pub open: Option<Opening>,
    /// The agent that takes the step.
    pub agent: AgentId,
    /// The messages that the step handles; each can be taken once.
    #[serde(default)]
    pub took: Vec<Taken>,
    /// Whether the agent does not keep the messages it took.
    #[serde(default)]
    pub forget: bool,
    /// Messages that no agent will handle any more.
    #[serde(default)]
    pub gave_up: Vec<Taken>,
    /// What was done.
    #[serde(default)]
    pub note: Option<Json>,
    /// What is sent.
    #[serde(default)]
    pub messages: Vec<RunMessage>,
    /// How many messages count towards the run's limit.
    #[serde(default)]
    pub steps: u32,
    /// The run's new phase, if it changes.
    #[serde(default)]
    pub phase: Option<RunPhase>,
    /// The result, if the run ends.
    #[serde(default)]
    pub result: Option<Json>,
    /// The runtime's own state of the run, if it changes.
    #[serde(default)]
    pub state: Option<Json>,
    /// Contributors besides the owner.
    #[serde(default)]
    pub contributors: Vec<String>,
}

/// How a run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// The owner of the task.
    pub owner: String,
    /// The task's title.
    #[serde(default)]
    pub title: Option<String>,
}

/// A message of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMessage {
    /// Its id.
    pub id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The sender's kind.
    pub from_kind: AgentKind,
    /// The addresses, as the sender gave them.
    pub addressed: Vec<Address>,
    /// Recipients in this realm.
    #[serde(default)]
    pub to: Vec<AgentId>,
    /// Recipients at peers, under the names that they have here.
    #[serde(default)]
    pub away: Vec<(RealmName, AgentId)>,
    /// The kind of message.
    pub kind: String,
    /// Its subject.
    pub subject: String,
    /// Its body.
    pub body: String,
    /// Its priority.
    pub priority: Priority,
    /// Ties a question and its answers together.
    #[serde(default)]
    pub correlation: Option<String>,
    /// The sender's idempotency key.
    #[serde(default)]
    pub key: Option<String>,
    /// What a door cannot express otherwise.
    #[serde(default)]
    pub meta: Option<Json>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<MessageId>,
    /// Another conversation that it belongs to by name. Then it is no turn of the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<ConversationId>,
}

/// What a step gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The run as it is now.
    pub run: Run,
    /// The seq of its first event; its note precedes that event.
    pub place: Seq,
    /// The messages as they were sent, each with its recipients in this realm.
    pub messages: Vec<(Arc<Message>, Vec<AgentId>)>,
    /// Whether the run was opened by this.
    pub opened: bool,
    /// Whether a message had been sent before under its key, so that nothing was done.
    pub repeated: bool,
}

impl Advance {
    /// How much room it takes in a queue, which is bounded like a message.
    #[must_use]
    pub fn weight(&self) -> usize {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
        let draft = |draft: &RunMessage| {
            let to = 64 * (draft.to.len() + draft.away.len() + draft.addressed.len());
            draft.subject.len() + draft.body.len() + json(&draft.meta) + to
        };
        let messages: usize = self.messages.iter().map(draft).sum();
        256 + json(&self.note) + json(&self.result) + json(&self.state) + messages
    }

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Advanced> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(move |to: &mut Write<'_>| match plan {
            Plan::Repeated(advanced) => Ok(*advanced),
            Plan::Advance { run, is_new, taken } => {
                let mut course = Course::start(to, *run, is_new, self)?;
                course.apply(to, self, &taken)?;
                course.finish(to)
            }
        })
    }

    fn plan(&self, to: &Decide<'_>) -> Decided<Plan> {
        to.require_admin()?;
        let found = run_of(to, &self.instance, &self.name)?;
        let is_new = found.is_none();
        if let Some(repeated) = self.repeated(to, found.as_ref())? {
            return Ok(Plan::Repeated(Box::new(repeated)));
        }
        let run = match (found, &self.open) {
            (Some(run), None) if run.phase == RunPhase::Ended => {
                return Err(Refusal::TaskEnded { task: run.task }.into());
            }
            (Some(run), _) => run,
            (None, Some(_)) => self.new_run(to)?,
            (None, None) => {
                let task = TaskId::new(&self.name).map_err(Refusal::from)?;
                return Err(Refusal::NoSuchTask { task }.into());
            }
        };
        let taken = self.check_taken(to)?;
        for (peer, _) in self.messages.iter().flat_map(|draft| &draft.away) {
            let known = one(to.db, "SELECT 1 FROM peers WHERE name = ?1", [peer], |_| Ok(()))?.is_some();
            if !known {
                return Err(Refusal::NoSuchPeer { peer: peer.to_string() }.into());
            }
        }
        Ok(Plan::Advance { run: Box::new(run), is_new, taken })
    }

    /// The seqs of the messages that the step takes, in its order. Refuses messages that are not waiting, or that the step
    /// takes twice.
    fn check_taken(&self, to: &Decide<'_>) -> Decided<Vec<Seq>> {
        for (at, taken) in self.took.iter().enumerate() {
            if self.took[..at].contains(taken) {
                return Err(Refusal::NoSuchMessage.into());
            }
        }
        self.took.iter().map(|taken| waiting(to, taken)).collect()
    }

    /// The outcome of the earlier step if one of the messages was sent before.
    fn repeated(&self, to: &Decide<'_>, run: Option<&Run>) -> Decided<Option<Advanced>> {
        let Some(run) = run else { return Ok(None) };
        for draft in &self.messages {
            let Some(key) = &draft.key else { continue };
            let Some((_, seq)) = message_key(to.db, &draft.from, key)? else { continue };
            let Some(message) = rows::message_at(to.db, seq)? else { continue };
            if message.task.as_ref() == Some(&run.task) {
                let messages = vec![(Arc::new(message), Vec::new())];
                let run = run.clone();
                return Ok(Some(Advanced { run, place: seq, messages, opened: false, repeated: true }));
            }
        }
        Ok(None)
    }

    /// A run that does not exist yet. Its task takes the run's name, unless another conversation has it.
    fn new_run(&self, to: &Decide<'_>) -> Decided<Run> {
        let plain = TaskId::new(&self.name).map_err(Refusal::from)?;
        let taken = |id: &TaskId| one(to.db, "SELECT 1 FROM conversations WHERE id = ?1", [id], |_| Ok(()));
        let task = match taken(&plain)? {
            None => plain,
            Some(()) => {
                let own = TaskId::new(format!("{}~{}", self.name, self.instance)).map_err(Refusal::from)?;
                if taken(&own)?.is_some() {
                    return Err(Refusal::TaskExists { task: own }.into());
                }
                own
            }
        };
        Ok(Run {
            task,
            instance: self.instance.clone(),
            name: self.name.clone(),
            phase: RunPhase::Running,
            steps: 0,
            notes: 0,
            state: None,
            seq: to.next_seq(),
        })
    }
}

/// What was decided about a run.
enum Plan {
    /// One of its messages was sent before under its key.
    Repeated(Box<Advanced>),
    Advance {
        run: Box<Run>,
        is_new: bool,
        /// The seqs of the messages that it takes.
        taken: Vec<Seq>,
    },
}

/// The note of a delivery whose message the recipient did not want to keep.
pub(crate) const FORGOTTEN: &str = "forgotten";

fn run_of(to: &Decide<'_>, instance: &str, name: &str) -> rusqlite::Result<Option<Run>> {
    let sql = "SELECT task, instance, name, phase, steps, notes, state, seq FROM runs WHERE instance = ?1 AND name = ?2";
    one(to.db, sql, (instance, name), rows::run)
}

/// The seq of a message that is waiting to be taken.
fn waiting(to: &Decide<'_>, taken: &Taken) -> Decided<Seq> {
    let sql = "SELECT d.message FROM messages m JOIN deliveries d ON d.agent = ?2 AND d.message = m.seq
               WHERE m.id = ?1 AND d.state < 2";
    one(to.db, sql, (taken.message, &taken.agent), |row| row.get(0))?
        .ok_or_else(|| Refusal::NoSuchMessage.into())
}
