//! Moving runs along: one verb opens a run or lets it go on, takes letters in hand, sends what came of them, and ends it.

mod course;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::course::{Course, TakenMessages};
use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{
    Address, AgentId, AgentKind, ConversationId, Json, Message, MessageId, Priority, RealmName, Run,
    RunPhase, Seq, Taken, TaskId,
};
use crate::store::{message_key, one, rows};

/// Moves a run along, or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advance {
    /// On whose behalf it runs.
    pub instance: String,
    /// What it is called there.
    pub name: String,
    /// Opens the run if there is none, and lets it go on if it has ended or rests.
    #[serde(default)]
    pub open: Option<Opening>,
    /// Who moves it.
    pub agent: AgentId,
    /// The letters that are hereby dealt with; each can be taken once.
    #[serde(default)]
    pub took: Vec<Taken>,
    /// Whether what was taken is not to be remembered.
    #[serde(default)]
    pub forget: bool,
    /// Letters that nobody will deal with any more.
    #[serde(default)]
    pub gave_up: Vec<Taken>,
    /// What was done.
    #[serde(default)]
    pub note: Option<Json>,
    /// What is sent.
    #[serde(default)]
    pub letters: Vec<RunMessage>,
    /// How many letters count towards the run's limit.
    #[serde(default)]
    pub steps: u32,
    /// Where the run is now, if that changes.
    #[serde(default)]
    pub phase: Option<RunPhase>,
    /// What came of it, if it ends.
    #[serde(default)]
    pub result: Option<Json>,
    /// What whoever moves it along wants back, if that changes.
    #[serde(default)]
    pub state: Option<Json>,
    /// Who has had a part in it besides its owner.
    #[serde(default)]
    pub contributors: Vec<String>,
    /// Further steps of the same run: they happen with this one or not at all. What one of them takes in hand may be a
    /// letter that an earlier one sends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Advance>,
}

/// How a run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// Who answers for it.
    pub owner: String,
    /// What it is, in a line.
    #[serde(default)]
    pub title: Option<String>,
}

/// A letter of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMessage {
    /// Its name for ever.
    pub id: MessageId,
    /// Who sends it.
    pub from: AgentId,
    /// What sort of correspondent that is.
    pub from_kind: AgentKind,
    /// How it is aimed, as the sender put it.
    pub addressed: Vec<Address>,
    /// Who gets it here.
    #[serde(default)]
    pub to: Vec<AgentId>,
    /// Who gets it at a neighbour's, under the name by which it is addressed here.
    #[serde(default)]
    pub away: Vec<(RealmName, AgentId)>,
    /// What kind of letter it is.
    pub kind: String,
    /// Its heading.
    pub subject: String,
    /// What it says.
    pub body: String,
    /// How pressing it is.
    pub priority: Priority,
    /// Ties a question and its answers together.
    #[serde(default)]
    pub correlation: Option<String>,
    /// The sender's own name for it: taken once.
    #[serde(default)]
    pub key: Option<String>,
    /// What a door cannot express otherwise.
    #[serde(default)]
    pub meta: Option<Json>,
    /// The letter it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<MessageId>,
    /// Under the name of which other conversation it goes out. It is no turn of the run's own then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<ConversationId>,
}

/// What moving a run along gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The run as it is now.
    pub run: Run,
    /// Where in the history this happened; its note comes before whatever has this place.
    pub place: Seq,
    /// The letters as they were written down, each with those who get it here.
    pub letters: Vec<(Arc<Message>, Vec<AgentId>)>,
    /// Whether the run was opened by this.
    pub opened: bool,
    /// Whether a letter had been taken before under its key, so that nothing was done.
    pub repeated: bool,
}

impl Advance {
    /// How much room it takes in a queue, which is bounded like a message.
    #[must_use]
    pub fn weight(&self) -> usize {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
        let letter = |letter: &RunMessage| {
            let to = 64 * (letter.to.len() + letter.away.len() + letter.addressed.len());
            letter.subject.len() + letter.body.len() + json(&letter.meta) + to
        };
        let letters: usize = self.letters.iter().map(letter).sum();
        let further: usize = self.then.iter().map(Self::weight).sum();
        256 + json(&self.note) + json(&self.result) + json(&self.state) + letters + further
    }

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Advanced> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(move |to: &mut Write<'_>| match plan {
            Plan::Repeated(advanced) => Ok(*advanced),
            Plan::Advance { run, is_new, taken } => {
                let mut course = Course::start(to, *run, is_new, self, taken)?;
                for step in self.all_steps() {
                    course.take(to, step)?;
                }
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
        self.check_steps(&run)?;
        let taken = TakenMessages::check(to, self)?;
        for (peer, _) in self.all_letters().flat_map(|letter| &letter.away) {
            let known = one(to.db, "SELECT 1 FROM peers WHERE name = ?1", [peer], |_| Ok(()))?.is_some();
            if !known {
                return Err(Refusal::NoSuchPeer { peer: peer.to_string() }.into());
            }
        }
        Ok(Plan::Advance { run: Box::new(run), is_new, taken })
    }

    /// This step and those that go with it.
    fn all_steps(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.then)
    }

    fn all_letters(&self) -> impl Iterator<Item = &RunMessage> {
        self.all_steps().flat_map(|step| &step.letters)
    }

    /// Refuses further steps that are of another run, open it anew, have steps of their own, or come after its end.
    fn check_steps(&self, run: &Run) -> Decided<()> {
        let mut ended = self.phase == Some(RunPhase::Ended);
        for step in &self.then {
            let same = step.instance == self.instance && step.name == self.name;
            if !same || step.open.is_some() || !step.then.is_empty() {
                let why = "must be plain steps of the same run";
                return Err(Refusal::BadValue { field: "then", why }.into());
            }
            if ended {
                return Err(Refusal::TaskEnded { task: run.task.clone() }.into());
            }
            ended = step.phase == Some(RunPhase::Ended);
        }
        Ok(())
    }

    /// The answer if one of the letters was taken before.
    fn repeated(&self, to: &Decide<'_>, run: Option<&Run>) -> Decided<Option<Advanced>> {
        let Some(run) = run else { return Ok(None) };
        for letter in self.all_letters() {
            let Some(key) = &letter.key else { continue };
            let Some((_, seq)) = message_key(to.db, &letter.from, key)? else { continue };
            let Some(message) = rows::message_at(to.db, seq)? else { continue };
            if message.task.as_ref() == Some(&run.task) {
                let letters = vec![(Arc::new(message), Vec::new())];
                let run = run.clone();
                return Ok(Some(Advanced { run, place: seq, letters, opened: false, repeated: true }));
            }
        }
        Ok(None)
    }

    /// A run that is not there yet. Its task takes the run's name, unless that is somebody else's already.
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
        taken: TakenMessages,
    },
}

/// The note of a delivery whose message the recipient did not want to keep.
pub(crate) const FORGOTTEN: &str = "forgotten";

fn run_of(to: &Decide<'_>, instance: &str, name: &str) -> rusqlite::Result<Option<Run>> {
    let sql = "SELECT task, instance, name, phase, steps, notes, state, seq FROM runs WHERE instance = ?1 AND name = ?2";
    one(to.db, sql, (instance, name), rows::run)
}

/// The place of a letter that is waiting to be taken.
fn waiting(to: &Decide<'_>, taken: &Taken) -> Decided<Seq> {
    let sql = "SELECT d.message FROM messages m JOIN deliveries d ON d.agent = ?2 AND d.message = m.seq
               WHERE m.id = ?1 AND d.state < 2";
    one(to.db, sql, (taken.message, &taken.agent), |row| row.get(0))?
        .ok_or_else(|| Refusal::NoSuchMessage.into())
}
