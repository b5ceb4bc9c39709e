//! What a verb works with: [`Decide`] while it reads and may refuse, [`Write`] once it has decided.
//!
//! A verb's `decide` returns a closure over [`Write`]. Only that closure can write, and it cannot refuse: its errors are the
//! database's. So a refused verb has written nothing.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

use rusqlite::{Connection, Params};
use uuid::Uuid;

use crate::commit::{Effects, NewDelivery, NewTurn, WriteCache};
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{
    Agent, AgentId, Caller, Event, Fact, Message, Millis, Reached, RealmName, Seq, Sight, Turn,
};
use crate::sight;
use crate::stamp::{Stamp, derived};
use crate::store::{Db, exec, rows};

/// What is written about a refusal.
pub(crate) type RecordRefusal = Box<dyn FnOnce(&mut Write<'_>) -> rusqlite::Result<()>>;

/// Why a verb stopped.
pub(crate) enum Stop {
    /// The caller's request was refused; nothing was written.
    Refused(Refusal),
    /// The caller's request was refused, and that is recorded (a contact request, for example).
    Recorded(Refusal, RecordRefusal),
    /// The database failed.
    Failed(rusqlite::Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

/// What deciding gives.
pub(crate) type Decided<T> = Result<T, Stop>;

/// What the writer keeps between the commands of a batch and lends to each.
pub(crate) struct BatchState<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) realm: &'a RealmName,
    pub(crate) rules: &'a Rules,
    pub(crate) effects: &'a RefCell<Effects>,
    pub(crate) cache: &'a RefCell<WriteCache>,
}

/// One command while it is decided: queries, the caller, the command's stamp and the realm's rules.
pub(crate) struct Decide<'a> {
    /// The database inside the batch's transaction. Rows that earlier commands of the batch buffered may be missing where
    /// [`Command::reads_messages`](super::Command::reads_messages) says that the verb does not read them.
    pub(crate) db: Db<'a>,
    /// The caller.
    pub(crate) caller: &'a Caller,
    /// The command's time, moved up to the event log's last if a clock went backwards.
    pub(crate) now: Millis,
    /// The realm that the database belongs to.
    pub(crate) realm: &'a RealmName,
    /// The realm's rules.
    pub(crate) rules: &'a Rules,
    /// What the writer caches between commands.
    pub(crate) cache: &'a RefCell<WriteCache>,
    stamp: &'a Stamp,
    ids: &'a Cell<u64>,
    /// The seq of the last event that was emitted.
    last: Seq,
    /// Rows that earlier commands of the batch buffered, and where they go.
    buffered: Option<(&'a Connection, &'a RefCell<Effects>)>,
}

impl<'a> Decide<'a> {
    /// On a snapshot, for a caller that wants to know what a verb would decide.
    pub(crate) fn preview(
        db: Db<'a>,
        realm: &'a RealmName,
        caller: &'a Caller,
        now: Millis,
        rules: &'a Rules,
        (stamp, ids, cache): (&'a Stamp, &'a Cell<u64>, &'a RefCell<WriteCache>),
    ) -> Self {
        Self { db, caller, now, realm, rules, cache, stamp, ids, last: 0, buffered: None }
    }

    /// What the clock said when the command was stamped. Expiry is judged by it and not by the event log's time, which may be
    /// ahead of a clock that was put back: ends are set by the clock, too.
    pub(crate) fn clock(&self) -> Millis {
        self.stamp.now
    }

    /// A new id, derived from the command's.
    pub(crate) fn fresh_id(&self) -> Uuid {
        let id = derived(self.stamp.id, self.ids.get());
        self.ids.set(self.ids.get() + 1);
        id
    }

    /// The seq that the next event will have; rows that it creates carry it.
    pub(crate) fn next_seq(&self) -> Seq {
        self.last + 1
    }

    /// The same command for another caller, with that caller's rights.
    pub(crate) fn acting_as<'b>(&'b self, caller: &'b Caller) -> Decide<'b> {
        Decide { caller, ..*self }
    }

    /// Writes the rows that earlier commands buffered, for verbs that must see them.
    pub(crate) fn flush_rows(&self) -> rusqlite::Result<()> {
        match self.buffered {
            Some((connection, effects)) => effects.borrow_mut().flush_rows(connection),
            None => Ok(()),
        }
    }

    /// The agent the caller speaks for, which must be registered and active.
    pub(crate) fn acting_agent(&self) -> Decided<Agent> {
        self.agent_or_refuse(&self.caller.agent)
    }

    /// An agent that must be registered and active.
    pub(crate) fn agent_or_refuse(&self, id: &AgentId) -> Decided<Agent> {
        rows::active_agent(self.db, id)?
            .ok_or_else(|| Refusal::NoSuchAgent { agent: id.to_string(), near: Vec::new() }.into())
    }

    /// An active agent that is visible to the caller. A hidden one does not exist for the caller.
    pub(crate) fn known_agent(&self, id: &AgentId) -> Decided<Agent> {
        let agent = self.agent_or_refuse(id)?;
        if sight::sees_agent(self.db, self.caller, &agent)? {
            return Ok(agent);
        }
        Err(Refusal::NoSuchAgent { agent: id.to_string(), near: Vec::new() }.into())
    }

    /// Refuses callers that are not members of the realm.
    pub(crate) fn require_member(&self) -> Decided<()> {
        if self.caller.rights.member {
            Ok(())
        } else {
            Err(Refusal::NotAllowed { need: "to be a member of the realm" }.into())
        }
    }

    /// Refuses callers that are not administrators.
    pub(crate) fn require_admin(&self) -> Decided<()> {
        if self.caller.rights.admin {
            Ok(())
        } else {
            Err(Refusal::NotAllowed { need: "to run the office" }.into())
        }
    }
}

/// One command while it is written. Reads see what the command has written.
pub(crate) struct Write<'a> {
    decide: Decide<'a>,
    connection: &'a Connection,
    effects: &'a RefCell<Effects>,
    /// The agent that events name as actor, if not the caller.
    actor: Option<AgentId>,
}

impl<'a> Deref for Write<'a> {
    type Target = Decide<'a>;

    fn deref(&self) -> &Decide<'a> {
        &self.decide
    }
}

impl<'a> Write<'a> {
    pub(crate) fn new(
        batch: &BatchState<'a>,
        caller: &'a Caller,
        stamp: &'a Stamp,
        now: Millis,
        ids: &'a Cell<u64>,
    ) -> Self {
        let &BatchState { connection, realm, rules, effects, cache } = batch;
        let (db, last) = (Db::new(connection), effects.borrow().last());
        let buffered = Some((connection, effects));
        let decide = Decide { db, caller, now, realm, rules, cache, stamp, ids, last, buffered };
        Self { decide, connection, effects, actor: None }
    }

    /// Runs a cached statement that changes rows; returns how many.
    pub(crate) fn exec(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        exec(self.connection, sql, params)
    }

    /// Completes the database and drops cached conversations, for writes that change participants behind the cache.
    pub(crate) fn drop_cached_conversations(&self) -> rusqlite::Result<()> {
        self.cache.borrow_mut().drop_conversations(self.connection)
    }

    /// For the store of single-use keys, which numbers its own rows.
    pub(super) fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// Continues as another caller, with that caller's rights.
    pub(crate) fn acting_as<T>(&mut self, caller: &Caller, then: impl FnOnce(&mut Write<'_>) -> T) -> T {
        let mut inner = Write {
            decide: Decide { caller, ..self.decide },
            connection: self.connection,
            effects: self.effects,
            actor: self.actor.take(),
        };
        let done = then(&mut inner);
        let (last, actor) = (inner.decide.last, inner.actor.take());
        (self.decide.last, self.actor) = (last, actor);
        done
    }

    /// From here on events name this agent as actor. For commands that carry out what several agents did.
    pub(crate) fn set_actor(&mut self, agent: &AgentId) {
        self.actor = (*agent != self.caller.agent).then(|| agent.clone());
    }

    /// Replaces the realm's rules, from the next command on.
    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.effects.borrow_mut().set_rules(rules);
    }

    /// Inserts a message.
    pub(crate) fn insert_message(&mut self, message: Arc<Message>) -> rusqlite::Result<()> {
        let mut effects = self.effects.borrow_mut();
        effects.note_text(message.subject.as_deref(), message.body.as_str());
        effects.add_message(self.connection, message)
    }

    /// Inserts the delivery of a message to one recipient.
    pub(crate) fn insert_delivery(&mut self, delivery: NewDelivery) -> rusqlite::Result<()> {
        self.effects.borrow_mut().add_delivery(self.connection, delivery)
    }

    /// Inserts a turn.
    pub(crate) fn insert_turn(&mut self, turn: NewTurn) -> rusqlite::Result<()> {
        let mut effects = self.effects.borrow_mut();
        if turn.message.is_none() {
            effects.note_text(None, turn.turn.content.as_str());
        }
        effects.add_turn(self.connection, turn)
    }

    /// Brings the full-text index up to date.
    pub(crate) fn index_texts(&mut self) -> rusqlite::Result<()> {
        self.effects.borrow_mut().index_texts(self.connection)
    }

    /// Emits an event that is visible to `sight`.
    pub(crate) fn emit(&mut self, fact: Fact, sight: Sight) -> rusqlite::Result<Seq> {
        self.push(fact, sight, None, (None, None), None)
    }

    /// Emits an event that an earlier one caused.
    pub(crate) fn emit_because(
        &mut self,
        cause: Option<Seq>,
        fact: Fact,
        sight: Sight,
    ) -> rusqlite::Result<Seq> {
        // Only an event of the past can be a cause.
        let cause = cause.filter(|cause| (1..=self.last).contains(cause));
        self.push(fact, sight, cause, (None, None), None)
    }

    /// Emits an event about a message.
    pub(crate) fn emit_of(
        &mut self,
        fact: Fact,
        message: Arc<Message>,
        cause: Option<Seq>,
        sight: Sight,
    ) -> rusqlite::Result<Seq> {
        self.push(fact, sight, cause, (Some(message), None), None)
    }

    /// Emits the event of a message that is sent now.
    pub(crate) fn emit_sent(
        &mut self,
        message: Arc<Message>,
        reached: Box<[Reached]>,
        sight: Sight,
    ) -> rusqlite::Result<Seq> {
        self.push(Fact::MessageSent, sight, None, (Some(message), None), Some(reached))
    }

    /// Emits an event about a turn.
    pub(crate) fn emit_turn(&mut self, fact: Fact, turn: Arc<Turn>, sight: Sight) -> rusqlite::Result<Seq> {
        self.push(fact, sight, None, (None, Some(turn)), None)
    }

    fn push(
        &mut self,
        fact: Fact,
        sight: Sight,
        cause: Option<Seq>,
        (message, turn): (Option<Arc<Message>>, Option<Arc<Turn>>),
        reached: Option<Box<[Reached]>>,
    ) -> rusqlite::Result<Seq> {
        let seq = self.next_seq();
        self.decide.last = seq;
        self.effects.borrow_mut().add_event(Event {
            seq,
            at: self.now,
            actor: self.actor.as_ref().unwrap_or(&self.caller.agent).clone(),
            cause,
            fact,
            message,
            turn,
            sight,
            reached,
        });
        Ok(seq)
    }
}
