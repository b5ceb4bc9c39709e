//! Moving runs along: one verb opens a run or lets it go on, takes letters in hand, sends what came of them, and ends it.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::{Applied, Apply, mail};
use crate::error::Refusal;
use crate::nouns::{
    Address, AgentId, AgentKind, Audience, Body, Conversation, ConversationId, ConversationStatus, Fact,
    Json, Message, MessageId, Permissions, Priority, RealmName, Run, RunPhase, Seq, Sight, Taken, Task,
    TaskId, TaskStatus, Turn, TurnId, TurnSource, TurnVisibility,
};
use crate::sight;
use crate::store::{all, exec, one, rows};

/// What participants of a run's conversation may do.
static MAY: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string(&Permissions::for_role("worker")).unwrap_or_default());

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
    pub letters: Vec<RunLetter>,
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
pub struct RunLetter {
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
    /// How much room it takes in a queue.
    pub(crate) fn weight(&self) -> usize {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
        let letter = |letter: &RunLetter| {
            let to = 64 * (letter.to.len() + letter.away.len() + letter.addressed.len());
            letter.subject.len() + letter.body.len() + json(&letter.meta) + to
        };
        let letters: usize = self.letters.iter().map(letter).sum();
        256 + json(&self.note) + json(&self.result) + json(&self.state) + letters
    }

    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Advanced> {
        to.require_admin()?;
        let found = run_of(to, &self.instance, &self.name)?;
        let fresh = found.is_none();
        if let Some(repeated) = self.repeated(to, found.as_ref())? {
            return Ok(repeated);
        }
        let mut run = match (found, &self.open) {
            (Some(run), None) if run.phase == RunPhase::Ended => {
                return Err(Refusal::TaskEnded { task: run.task }.into());
            }
            (Some(run), _) => run,
            (None, Some(_)) => self.planned(to)?,
            (None, None) => {
                let task = TaskId::new(&self.name).map_err(Refusal::from)?;
                return Err(Refusal::NoSuchTask { task }.into());
            }
        };
        let took = self.took.iter().map(|taken| waiting(to, taken)).collect::<Applied<Vec<_>>>()?;
        for (peer, _) in self.letters.iter().flat_map(|letter| &letter.away) {
            let known = one(to.books, "SELECT 1 FROM peers WHERE name = ?1", [peer], |_| Ok(()))?.is_some();
            if !known {
                return Err(Refusal::NoSuchPeer { peer: peer.to_string() }.into());
            }
        }

        let previous = if fresh { RunPhase::Ended } else { run.phase };
        run.phase = self.phase.unwrap_or(if self.open.is_some() { RunPhase::Running } else { run.phase });
        run.steps = if self.open.is_some() && previous != RunPhase::Running { 0 } else { run.steps };
        run.steps += i64::from(self.steps);
        run.state = self.state.clone().or(run.state);
        let (place, mut seeing) = match &self.open {
            Some(opening) if fresh => self.begin(to, &mut run, opening)?,
            _ => (to.next_seq(), participants(to, &run.task)?),
        };
        for contributor in &self.contributors {
            contribute(to, &run.task, contributor)?;
        }
        for (taken, seq) in self.took.iter().zip(took) {
            let sql = "UPDATE deliveries SET state = 2, delivered_at = coalesce(delivered_at, ?3), read_at = ?3, note = ?4
                       WHERE agent = ?1 AND message = ?2";
            let note = self.forget.then_some(FORGOTTEN);
            exec(to.books, sql, (&taken.agent, seq, to.now, note))?;
        }
        for taken in &self.gave_up {
            let sql =
                "UPDATE deliveries SET state = 5, note = 'the task ended' WHERE agent = ?1 AND state < 2
                       AND message = (SELECT seq FROM messages WHERE id = ?2)";
            exec(to.books, sql, (&taken.agent, taken.message))?;
        }
        if let Some(note) = &self.note {
            run.notes += 1;
            let sql = "INSERT INTO run_notes(task, n, place, agent, at, note) VALUES(?1,?2,?3,?4,?5,?6)";
            exec(to.books, sql, (&run.task, run.notes, to.next_seq(), &self.agent, to.now, note))?;
        }
        let mut letters = Vec::with_capacity(self.letters.len());
        let mut joined = 0;
        for letter in &self.letters {
            joined += seat(to, &run, letter, &mut seeing)?;
            letters.push((post(to, &run, letter, &seeing)?, letter.to.clone()));
        }
        if !letters.is_empty() {
            let own = self.letters.iter().filter(|letter| letter.elsewhere.is_none()).count();
            let turns = i64::try_from(own).unwrap_or(i64::MAX);
            let sql = "UPDATE conversations SET participant_count = participant_count + ?2, turn_count = turn_count + ?3,
                           updated_at = ?4 WHERE id = ?1";
            exec(to.books, sql, (&run.task, joined, turns, to.now))?;
            let sql = "INSERT INTO turn_types(conversation, content_type, turns) VALUES(?1, 'text', ?2)
                       ON CONFLICT DO UPDATE SET turns = turns + ?2";
            exec(to.books, sql, (&run.task, turns))?;
        }
        write(to, &run, fresh)?;
        if !fresh && run.phase != previous {
            self.moved(to, &run, previous, &seeing)?;
        } else if fresh && run.phase == RunPhase::Ended {
            self.moved(to, &run, RunPhase::Running, &seeing)?;
        }
        Ok(Advanced { run, place, letters, opened: fresh, repeated: false })
    }

    /// The answer if one of the letters was taken before.
    fn repeated(&self, to: &Apply<'_>, run: Option<&Run>) -> Applied<Option<Advanced>> {
        let Some(run) = run else { return Ok(None) };
        for letter in &self.letters {
            let Some(key) = &letter.key else { continue };
            let sql = "SELECT message FROM message_keys WHERE sender = ?1 AND key = ?2";
            let Some(seq) = one(to.books, sql, (&letter.from, key), |row| row.get(0))? else { continue };
            let Some(message) = rows::message_at(to.books, seq)? else { continue };
            if message.task.as_ref() == Some(&run.task) {
                let letters = vec![(Arc::new(message), Vec::new())];
                let run = run.clone();
                return Ok(Some(Advanced { run, place: seq, letters, opened: false, repeated: true }));
            }
        }
        Ok(None)
    }

    /// A run that is not there yet. Its task takes the run's name, unless that is somebody else's already.
    fn planned(&self, to: &Apply<'_>) -> Applied<Run> {
        let plain = TaskId::new(&self.name).map_err(Refusal::from)?;
        let taken =
            |id: &TaskId| one(to.books, "SELECT 1 FROM conversations WHERE id = ?1", [id], |_| Ok(()));
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

    /// Writes the task and its conversation; says where that begins and who takes part so far.
    fn begin(&self, to: &mut Apply<'_>, run: &mut Run, opening: &Opening) -> Applied<(Seq, Vec<AgentId>)> {
        let place = to.next_seq();
        let seeing: Vec<AgentId> = match self.letters.first() {
            Some(letter) => vec![letter.from.clone()],
            None => Vec::new(),
        };
        let conversation = Conversation {
            id: run.task.clone(),
            kind: "agent-task".to_owned(),
            status: ConversationStatus::Active,
            subject: opening.title.clone(),
            parent: None,
            parent_turn: None,
            created_by: seeing.first().unwrap_or(&self.agent).clone(),
            audience: Audience::Parties,
            meta: None,
            participant_count: 0,
            turn_count: 0,
            thread_count: 0,
            created_at: to.now,
            updated_at: to.now,
            closed_at: None,
            seq: place,
        };
        let sql = "INSERT INTO conversations(id, kind, status, subject, created_by, audience, participant_count, turn_count,
                       thread_count, created_at, updated_at, seq) VALUES(?1,'agent-task','active',?2,?3,'parties',0,0,0,?4,?4,?5)";
        let params = (&conversation.id, &conversation.subject, &conversation.created_by, to.now, place);
        exec(to.books, sql, params)?;
        let sight = Sight::Agents(Sight::list(seeing.clone()));
        to.tell(Fact::ConversationCreated { conversation: Box::new(conversation) }, sight.clone())?;
        let task = Task {
            id: run.task.clone(),
            title: opening.title.clone(),
            description: None,
            status: TaskStatus::InProgress,
            owner: opening.owner.clone(),
            assignee: None,
            contributors: vec![opening.owner.clone()],
            result: None,
            meta: None,
            created_at: to.now,
            updated_at: to.now,
            ended_at: None,
            seq: to.next_seq(),
        };
        let sql = "INSERT INTO tasks(id, title, status, owner, created_at, updated_at, seq)
                   VALUES(?1,?2,'in_progress',?3,?4,?4,?5)";
        exec(to.books, sql, (&task.id, &task.title, &task.owner, to.now, task.seq))?;
        let sql = "INSERT INTO task_contributors(task, contributor, place) VALUES(?1, ?2, 0)";
        exec(to.books, sql, (&task.id, &task.owner))?;
        to.tell(Fact::TaskCreated { task: Box::new(task) }, sight)?;
        run.seq = place;
        Ok((place, Vec::new()))
    }

    /// Notes on the task that the run has ended, rests, or goes on.
    fn moved(&self, to: &mut Apply<'_>, run: &Run, previous: RunPhase, seeing: &[AgentId]) -> Applied<()> {
        let (status, before) = (status_of(run.phase), status_of(previous));
        let sql = "UPDATE tasks SET status = ?2, result = coalesce(?3, result), updated_at = ?4, ended_at = ?5 WHERE id = ?1";
        let ended = status.is_final().then_some(to.now);
        exec(to.books, sql, (&run.task, status, &self.result, to.now, ended))?;
        let sight = Sight::Agents(Sight::list(seeing.to_vec()));
        let task = run.task.clone();
        let fact = match status {
            TaskStatus::Completed => Fact::TaskCompleted { task, result: self.result.clone() },
            _ => Fact::TaskStatusChanged { task, previous: before, current: status },
        };
        to.tell(fact, sight)?;
        Ok(())
    }
}

/// How a delivery is marked whose letter the recipient did not want to remember.
pub(crate) const FORGOTTEN: &str = "forgotten";

fn status_of(phase: RunPhase) -> TaskStatus {
    match phase {
        RunPhase::Running => TaskStatus::InProgress,
        RunPhase::Paused => TaskStatus::Blocked,
        RunPhase::Ended => TaskStatus::Completed,
    }
}

fn run_of(to: &Apply<'_>, instance: &str, name: &str) -> rusqlite::Result<Option<Run>> {
    let sql = "SELECT task, instance, name, phase, steps, notes, state, seq FROM runs WHERE instance = ?1 AND name = ?2";
    one(to.books, sql, (instance, name), rows::run)
}

/// The place of a letter that is waiting to be taken.
fn waiting(to: &Apply<'_>, taken: &Taken) -> Applied<Seq> {
    let sql = "SELECT d.message FROM messages m JOIN deliveries d ON d.agent = ?2 AND d.message = m.seq
               WHERE m.id = ?1 AND d.state < 2";
    one(to.books, sql, (taken.message, &taken.agent), |row| row.get(0))?
        .ok_or_else(|| Refusal::NoSuchMessage.into())
}

/// Those who take part. Runs have few agents, so there is no need to ask for each listener.
fn participants(to: &Apply<'_>, task: &TaskId) -> rusqlite::Result<Vec<AgentId>> {
    let sql = "SELECT agent FROM participants WHERE conversation = ?1 AND left_at IS NULL LIMIT 1000";
    all(to.books, sql, [task], |row| row.get(0))
}

/// Makes sender and recipients of a letter take part; says how many did not before.
fn seat(to: &Apply<'_>, run: &Run, letter: &RunLetter, seeing: &mut Vec<AgentId>) -> rusqlite::Result<i64> {
    let mut joined = 0;
    let others = letter.to.iter().chain(letter.away.iter().map(|(_, agent)| agent));
    let parties =
        std::iter::once((&letter.from, letter.from_kind)).chain(others.map(|a| (a, AgentKind::Agent)));
    for (agent, kind) in parties {
        if seeing.contains(agent) {
            continue;
        }
        let sql = "INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, joined, conversation_seq)
                   VALUES(?1,?2,?3,'worker',?4,?5,?6,?7) ON CONFLICT DO NOTHING";
        let params = (&run.task, agent, kind, MAY.as_str(), to.now, to.next_seq() - 1, run.seq);
        joined += i64::from(exec(to.books, sql, params)? > 0);
        seeing.push(agent.clone());
    }
    Ok(joined)
}

/// Writes a letter, its copies and its turn.
fn post(to: &mut Apply<'_>, run: &Run, letter: &RunLetter, seeing: &[AgentId]) -> Applied<Arc<Message>> {
    let message = Message {
        seq: to.next_seq(),
        id: letter.id,
        from: letter.from.clone(),
        to: letter.addressed.clone(),
        kind: letter.kind.clone(),
        subject: Some(letter.subject.clone()),
        body: Body::Text(letter.body.clone()),
        priority: letter.priority,
        ack_required: false,
        expires_at: None,
        correlation: letter.correlation.clone(),
        conversation: Some(letter.elsewhere.clone().unwrap_or_else(|| run.task.clone())),
        thread: None,
        in_reply_to: letter.in_reply_to,
        task: Some(run.task.clone()),
        key: letter.key.clone(),
        envelope: None,
        meta: letter.meta.clone(),
        audience: Audience::Parties,
        via: to.caller.via.clone(),
        at: to.now,
    };
    mail::insert(to, &message)?;
    if let Some(key) = &letter.key {
        let sql = "INSERT INTO message_keys(sender, key, digest, message) VALUES(?1, ?2, x'', ?3) ON CONFLICT DO NOTHING";
        exec(to.books, sql, (&message.from, key, message.seq))?;
    }
    let mut recipients = letter.to.clone();
    for agent in &letter.to {
        copy(to, agent, &message)?;
    }
    for (peer, agent) in &letter.away {
        copy(to, agent, &message)?;
        let sql = "INSERT INTO outbound(peer, message, agent) VALUES(?1, ?2, ?3)";
        exec(to.books, sql, (peer, message.seq, agent))?;
        recipients.push(agent.clone());
    }
    let message = Arc::new(message);
    let sight = sight::of_message(&message, recipients);
    to.tell_of(Fact::MessageSent, message.clone(), None, sight)?;
    if letter.elsewhere.is_some() {
        return Ok(message);
    }
    let turn = Turn {
        seq: to.next_seq(),
        id: TurnId(to.fresh_id()),
        conversation: run.task.clone(),
        thread: None,
        author: message.from.clone(),
        content_type: "text".to_owned(),
        content: rows::letter_content(&letter.body),
        in_reply_to: None,
        visibility: TurnVisibility::All,
        source: TurnSource::Intercepted(message.id),
        meta: None,
        at: to.now,
    };
    let sql = "INSERT INTO turns(seq, id, conversation, author, content_type, message, at) VALUES(?1,?2,?3,?4,'text',?5,?6)";
    exec(to.books, sql, (turn.seq, turn.id, &turn.conversation, &turn.author, message.seq, to.now))?;
    let sight = Sight::Agents(Sight::list(seeing.to_vec()));
    to.tell_turn(Fact::TurnAdded { conversation: run.task.clone() }, Arc::new(turn), sight)?;
    Ok(message)
}

fn copy(to: &Apply<'_>, agent: &AgentId, message: &Message) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO deliveries(agent, message, copy, kind, priority, state) VALUES(?1, ?2, 'to', ?3, ?4, 0)
               ON CONFLICT DO NOTHING";
    exec(to.books, sql, (agent, message.seq, &message.kind, message.priority)).map(drop)
}

fn contribute(to: &Apply<'_>, task: &TaskId, contributor: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO task_contributors(task, contributor, place)
               VALUES(?1, ?2, (SELECT count(*) FROM task_contributors WHERE task = ?1)) ON CONFLICT DO NOTHING";
    exec(to.books, sql, (task, contributor)).map(drop)
}

fn write(to: &Apply<'_>, run: &Run, fresh: bool) -> rusqlite::Result<()> {
    if fresh {
        let sql = "INSERT INTO runs(task, instance, name, phase, steps, notes, state, seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)";
        let params =
            (&run.task, &run.instance, &run.name, run.phase, run.steps, run.notes, &run.state, run.seq);
        return exec(to.books, sql, params).map(drop);
    }
    let sql = "UPDATE runs SET phase = ?2, steps = ?3, notes = ?4, state = ?5 WHERE task = ?1";
    exec(to.books, sql, (&run.task, run.phase, run.steps, run.notes, &run.state)).map(drop)
}
