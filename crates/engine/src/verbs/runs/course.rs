//! Writes a step of a run: messages, deliveries, turns and notes one by one, then what belongs to the run as a whole (its
//! row, its task, its conversation's counts).

use std::sync::{Arc, LazyLock};

use super::{Advance, Advanced, FORGOTTEN, Opening, RunMessage};
use crate::nouns::{
    AgentId, AgentKind, Audience, Body, Conversation, ConversationStatus, Fact, Json, Message, Permissions,
    Run, RunPhase, Seq, Sight, Task, TaskId, TaskStatus, Turn, TurnId, TurnSource, TurnVisibility,
};
use crate::sight;
use crate::store::{all, rows, short};
use crate::verbs::{Decide, Write, seen_keys};

/// What participants of a run's conversation may do.
static MAY: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string(&Permissions::for_role("worker")).unwrap_or_default());

/// The note of a delivery that no agent handled before the run ended.
const GIVEN_UP: &str = "the task ended";

/// A run while a command is applied to it.
pub(super) struct Course {
    run: Run,
    fresh: bool,
    place: Seq,
    /// The participants. Runs have few, so events list them.
    seeing: Vec<AgentId>,
    joined: i64,
    messages: Vec<(Arc<Message>, Vec<AgentId>)>,
    /// The phase in the database.
    previous: RunPhase,
    result: Option<Json>,
    /// Of a run that is not in the database yet.
    opening: Option<(Opening, AgentId)>,
}

impl Course {
    pub(super) fn start(
        to: &mut Write<'_>,
        mut run: Run,
        fresh: bool,
        step: &Advance,
    ) -> rusqlite::Result<Self> {
        let previous = if fresh { RunPhase::Running } else { run.phase };
        let place = to.next_seq();
        let (seeing, opening) = match &step.open {
            Some(opening) if fresh => {
                run.seq = place;
                let creator = step.messages.first().map_or(&step.agent, |draft| &draft.from);
                emit_beginning(to, &run, opening, step.messages.first().map(|draft| &draft.from), creator)?;
                (Vec::new(), Some((opening.clone(), creator.clone())))
            }
            _ => (participants(to, &run.task)?, None),
        };
        let (joined, messages) = (0, Vec::with_capacity(step.messages.len()));
        Ok(Self { run, fresh, place, seeing, joined, messages, previous, result: None, opening })
    }

    /// Writes the step. `taken` has the seqs of the messages that it takes.
    pub(super) fn apply(
        &mut self,
        to: &mut Write<'_>,
        step: &Advance,
        taken: &[Seq],
    ) -> rusqlite::Result<()> {
        to.set_actor(&step.agent);
        let before = self.run.phase;
        let run = &mut self.run;
        let opens = step.open.is_some();
        run.phase = step.phase.unwrap_or(if opens { RunPhase::Running } else { run.phase });
        if opens && (self.fresh || before != RunPhase::Running) {
            run.steps = 0;
        }
        run.steps += i64::from(step.steps);
        if step.state.is_some() {
            run.state.clone_from(&step.state);
        }
        for contributor in &step.contributors {
            self.contribute(to, contributor)?;
        }
        for (taken, seq) in step.took.iter().zip(taken) {
            let sql = "UPDATE deliveries SET state = 2, delivered_at = coalesce(delivered_at, ?3), read_at = ?3, note = ?4
                       WHERE agent = ?1 AND message = ?2";
            let note = step.forget.then_some(FORGOTTEN);
            to.exec(sql, (&taken.agent, seq, to.now, note))?;
        }
        for taken in &step.gave_up {
            let sql = "UPDATE deliveries SET state = 5, note = ?3 WHERE agent = ?1 AND state < 2
                       AND message = (SELECT seq FROM messages WHERE id = ?2)";
            to.exec(sql, (&taken.agent, taken.message, GIVEN_UP))?;
        }
        if let Some(note) = &step.note {
            self.run.notes += 1;
            let sql = "INSERT INTO run_notes(task, n, place, agent, at, note) VALUES(?1,?2,?3,?4,?5,?6)";
            let params = (&self.run.task, self.run.notes, to.next_seq(), &step.agent, to.now, note);
            to.exec(sql, params)?;
        }
        for draft in &step.messages {
            self.add_participants(to, draft)?;
            let message = self.post(to, draft)?;
            self.messages.push((message, draft.to.clone()));
        }
        if step.result.is_some() {
            self.result.clone_from(&step.result);
        }
        self.emit_phase(to, if self.fresh && opens { RunPhase::Running } else { before }, step)
    }

    /// Writes what belongs to the run as a whole.
    pub(super) fn finish(mut self, to: &mut Write<'_>) -> rusqlite::Result<Advanced> {
        let task = &self.run.task;
        let own =
            self.messages.iter().filter(|(message, _)| message.conversation.as_ref() == Some(task)).count();
        let turns = i64::try_from(own).unwrap_or(i64::MAX);
        if turns > 0 {
            let sql = "INSERT INTO turn_types(conversation, content_type, turns) VALUES(?1, 'text', ?2)
                       ON CONFLICT DO UPDATE SET turns = turns + ?2";
            to.exec(sql, (task, turns))?;
        }
        match self.opening.take() {
            Some((opening, creator)) => self.enter(to, &opening, &creator, turns)?,
            None => self.update(to, turns)?,
        }
        let Self { run, place, messages, fresh, .. } = self;
        Ok(Advanced { run, place, messages, opened: fresh, repeated: false })
    }

    fn enter(
        &self,
        to: &mut Write<'_>,
        opening: &Opening,
        creator: &AgentId,
        turns: i64,
    ) -> rusqlite::Result<()> {
        let run = &self.run;
        let sql = "INSERT INTO conversations(id, kind, status, subject, created_by, audience, participant_count, turn_count,
                       thread_count, created_at, updated_at, seq) VALUES(?1,'agent-task','active',?2,?3,'parties',?6,?7,0,?4,?4,?5)";
        let params = (&run.task, &opening.title, creator, to.now, self.place, self.joined, turns);
        to.exec(sql, params)?;
        let status = status_of(run.phase);
        let ended = status.is_final().then_some(to.now);
        let sql = "INSERT INTO tasks(id, title, status, owner, result, created_at, updated_at, ended_at, seq)
                   VALUES(?1,?2,?3,?4,?5,?6,?6,?7,?8)";
        let params = (&run.task, &opening.title, status, &opening.owner, &self.result, to.now, ended);
        let (id, title, status, owner, result, now, ended) = params;
        to.exec(sql, (id, title, status, owner, result, now, ended, self.place + 1))?;
        let sql = "INSERT INTO runs(task, instance, name, phase, steps, notes, state, seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)";
        let params =
            (&run.task, &run.instance, &run.name, run.phase, run.steps, run.notes, &run.state, run.seq);
        to.exec(sql, params).map(drop)
    }

    fn update(&self, to: &mut Write<'_>, turns: i64) -> rusqlite::Result<()> {
        let run = &self.run;
        if !self.messages.is_empty() {
            let sql = "UPDATE conversations SET participant_count = participant_count + ?2, turn_count = turn_count + ?3,
                           updated_at = ?4 WHERE id = ?1";
            to.exec(sql, (&run.task, self.joined, turns, to.now))?;
        }
        if run.phase != self.previous {
            let status = status_of(run.phase);
            let ended = status.is_final().then_some(to.now);
            let sql = "UPDATE tasks SET status = ?2, result = coalesce(?3, result), updated_at = ?4, ended_at = ?5 WHERE id = ?1";
            to.exec(sql, (&run.task, status, &self.result, to.now, ended))?;
        }
        let sql = "UPDATE runs SET phase = ?2, steps = ?3, notes = ?4, state = ?5 WHERE task = ?1";
        to.exec(sql, (&run.task, run.phase, run.steps, run.notes, &run.state)).map(drop)
    }

    /// Says that the run has ended, rests, or goes on.
    fn emit_phase(&self, to: &mut Write<'_>, before: RunPhase, step: &Advance) -> rusqlite::Result<()> {
        if self.run.phase == before {
            return Ok(());
        }
        let task = self.run.task.clone();
        let (current, previous) = (status_of(self.run.phase), status_of(before));
        let fact = match current {
            TaskStatus::Completed => Fact::TaskCompleted { task, result: step.result.clone() },
            _ => Fact::TaskStatusChanged { task, previous, current },
        };
        to.emit(fact, Sight::Agents(Sight::list(self.seeing.clone())))?;
        Ok(())
    }

    fn contribute(&self, to: &Write<'_>, contributor: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO task_contributors(task, contributor, place)
                   VALUES(?1, ?2, (SELECT count(*) FROM task_contributors WHERE task = ?1)) ON CONFLICT DO NOTHING";
        to.exec(sql, (&self.run.task, contributor)).map(drop)
    }

    /// Makes sender and recipients of a message participants.
    fn add_participants(&mut self, to: &Write<'_>, draft: &RunMessage) -> rusqlite::Result<()> {
        let others = draft.to.iter().chain(draft.away.iter().map(|(_, agent)| agent));
        let parties =
            std::iter::once((&draft.from, draft.from_kind)).chain(others.map(|a| (a, AgentKind::Agent)));
        for (agent, kind) in parties {
            if self.seeing.contains(agent) {
                continue;
            }
            let sql = "INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, joined, conversation_seq)
                       VALUES(?1,?2,?3,'worker',?4,?5,?6,?7) ON CONFLICT DO NOTHING";
            let run = &self.run;
            let params = (&run.task, agent, kind, MAY.as_str(), to.now, to.next_seq() - 1, run.seq);
            self.joined += i64::from(to.exec(sql, params)? > 0);
            self.seeing.push(agent.clone());
        }
        Ok(())
    }

    /// Writes a message, its deliveries and its turn.
    fn post(&self, to: &mut Write<'_>, draft: &RunMessage) -> rusqlite::Result<Arc<Message>> {
        let task = &self.run.task;
        let message = Arc::new(Message {
            seq: to.next_seq(),
            id: draft.id,
            from: draft.from.clone(),
            to: draft.addressed.clone(),
            kind: draft.kind.clone(),
            subject: Some(draft.subject.clone()),
            body: Body::Text(draft.body.clone()),
            priority: draft.priority,
            ack_required: false,
            expires_at: None,
            correlation: draft.correlation.clone(),
            conversation: Some(draft.elsewhere.as_ref().unwrap_or(task).clone()),
            thread: None,
            in_reply_to: draft.in_reply_to,
            task: Some(task.clone()),
            key: draft.key.clone(),
            envelope: None,
            meta: draft.meta.clone(),
            audience: Audience::Parties,
            via: to.caller.via.clone(),
            at: to.now,
        });
        to.insert_message(message.clone())?;
        if let Some(key) = &draft.key {
            seen_keys::store_message_key(to, &message.from, key, Vec::new(), message.seq)?;
        }
        let mut recipients = draft.to.clone();
        for agent in &draft.to {
            self.deliver(to, agent, &message)?;
        }
        for (peer, agent) in &draft.away {
            self.deliver(to, agent, &message)?;
            let sql = "INSERT INTO outbound(peer, message, agent) VALUES(?1, ?2, ?3)";
            to.exec(sql, (peer, message.seq, agent))?;
            recipients.push(agent.clone());
        }
        let sight = sight::of_message(to.db, &message, recipients)?;
        to.emit_of(Fact::MessageSent, message.clone(), None, sight)?;
        if draft.elsewhere.is_some() {
            return Ok(message);
        }
        let turn = Turn {
            seq: to.next_seq(),
            id: TurnId(to.fresh_id()),
            conversation: task.clone(),
            thread: None,
            author: message.from.clone(),
            content_type: "text".to_owned(),
            content: rows::text_content(&draft.body),
            in_reply_to: None,
            visibility: TurnVisibility::All,
            source: TurnSource::Intercepted(message.id),
            meta: None,
            at: to.now,
        };
        let sql = "INSERT INTO turns(seq, id, conversation, author, content_type, message, at, conversation_seq, author_hash, type_hash)
                   VALUES(?1,?2,?3,?4,'text',?5,?6,?7,?8,?9)";
        let (talk, author, kind) = (self.run.seq, short(turn.author.as_str()), short(&turn.content_type));
        let params =
            (turn.seq, turn.id, &turn.conversation, &turn.author, message.seq, to.now, talk, author, kind);
        to.exec(sql, params)?;
        let sight = Sight::Agents(Sight::list(self.seeing.clone()));
        to.emit_turn(Fact::TurnAdded { conversation: task.clone() }, Arc::new(turn), sight)?;
        Ok(message)
    }

    fn deliver(&self, to: &Write<'_>, agent: &AgentId, message: &Message) -> rusqlite::Result<()> {
        let sql = "INSERT INTO deliveries(agent, message, recipient_kind, kind, priority, state)
                   VALUES(?1, ?2, 'to', ?3, ?4, 0) ON CONFLICT DO NOTHING";
        let kind = rows::indexed_kind(&message.kind);
        to.exec(sql, (agent, message.seq, kind, message.priority)).map(drop)
    }
}

/// Emits the events with which a run begins.
fn emit_beginning(
    to: &mut Write<'_>,
    run: &Run,
    opening: &Opening,
    first: Option<&AgentId>,
    creator: &AgentId,
) -> rusqlite::Result<()> {
    let conversation = Conversation {
        id: run.task.clone(),
        kind: "agent-task".to_owned(),
        status: ConversationStatus::Active,
        subject: opening.title.clone(),
        parent: None,
        parent_turn: None,
        created_by: creator.clone(),
        audience: Audience::Parties,
        meta: None,
        participant_count: 0,
        turn_count: 0,
        thread_count: 0,
        created_at: to.now,
        updated_at: to.now,
        closed_at: None,
        seq: run.seq,
    };
    let sight = Sight::Agents(Sight::list(first.cloned().into_iter().collect()));
    to.emit(Fact::ConversationCreated { conversation: Box::new(conversation) }, sight.clone())?;
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
    let sql = "INSERT INTO task_contributors(task, contributor, place) VALUES(?1, ?2, 0)";
    to.exec(sql, (&task.id, &task.owner))?;
    to.emit(Fact::TaskCreated { task: Box::new(task) }, sight)?;
    Ok(())
}

fn status_of(phase: RunPhase) -> TaskStatus {
    match phase {
        RunPhase::Running => TaskStatus::InProgress,
        RunPhase::Paused => TaskStatus::Blocked,
        RunPhase::Ended => TaskStatus::Completed,
    }
}

fn participants(to: &Decide<'_>, task: &TaskId) -> rusqlite::Result<Vec<AgentId>> {
    let sql = "SELECT agent FROM participants WHERE conversation = ?1 AND left_at IS NULL ORDER BY agent LIMIT 1000";
    all(to.db, sql, [task], |row| row.get(0))
}
