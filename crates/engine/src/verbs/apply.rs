//! What a verb works with while it is applied: the books, the command's stamp, and the pen that writes history.

use std::sync::Arc;

use rusqlite::Connection;
use uuid::Uuid;

use crate::error::Refusal;
use crate::limits::Rules;
use crate::memory::Memory;
use crate::nouns::{
    Agent, AgentId, Caller, Event, Fact, Message, Millis, Reached, RealmName, Seq, Sight, Turn,
};
use crate::sight;
use crate::stamp::{Stamp, derived};
use crate::store::{Tail, rows};

/// Why a verb stopped.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The caller's to mend; whatever was written is taken back.
    Refused(Refusal),
    /// The caller's to mend; what was written to say so stays.
    Noted(Refusal),
    /// The books failed.
    Failed(rusqlite::Error),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rusqlite::Error> for Halt {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

pub(crate) type Applied<T> = Result<T, Halt>;

/// What the writer holds between the commands of a batch and lends to each.
pub(crate) struct Pen<'a> {
    pub(crate) rules: &'a mut Rules,
    pub(crate) last: &'a mut Seq,
    pub(crate) events: &'a mut Vec<Arc<Event>>,
    pub(crate) tail: &'a mut Tail,
    pub(crate) memory: &'a mut Memory,
}

/// One command being applied.
pub(crate) struct Apply<'a> {
    /// The books, inside the batch's transaction.
    pub(crate) db: &'a Connection,
    /// Who asks.
    pub(crate) caller: &'a Caller,
    /// When: the command's time, moved up to the history's last if a clock went backwards.
    pub(crate) now: Millis,
    /// The realm the books belong to.
    pub(crate) realm: &'a RealmName,
    /// The realm's rules.
    pub(crate) rules: &'a mut Rules,
    stamp: &'a Stamp,
    ids: u64,
    /// Who does what is told, if not the caller itself.
    actor: Option<AgentId>,
    /// The last place in the history that is taken. Held by the writer between commands.
    last: &'a mut Seq,
    /// What has happened in this batch. Held by the writer until the commit.
    events: &'a mut Vec<Arc<Event>>,
    /// What is not in the full-text index yet. Held by the writer between commands.
    tail: &'a mut Tail,
    /// What is remembered of the books. Held by the writer between commands.
    pub(crate) memory: &'a mut Memory,
}

impl<'a> Apply<'a> {
    pub(crate) fn new(
        db: &'a Connection,
        realm: &'a RealmName,
        caller: &'a Caller,
        stamp: &'a Stamp,
        now: Millis,
        state: Pen<'a>,
    ) -> Self {
        let Pen { rules, last, events, tail, memory } = state;
        Self { db, realm, caller, now, rules, stamp, ids: 0, actor: None, last, events, tail, memory }
    }

    /// What the clock said when the command was made. Whether something has lapsed is judged by it and not by the
    /// history's time, which a clock that was put back is behind: who sets an end to something goes by the clock too.
    pub(crate) fn clock(&self) -> Millis {
        self.stamp.now
    }

    /// A new id, derived from the command's.
    pub(crate) fn fresh_id(&mut self) -> Uuid {
        let id = derived(self.stamp.id, self.ids);
        self.ids += 1;
        id
    }

    /// The place that the next event will take; rows made by that event carry it.
    pub(crate) fn next_seq(&self) -> Seq {
        *self.last + 1
    }

    /// From here on the history says that this agent did it. For commands that carry out what several did.
    pub(crate) fn is_done_by(&mut self, agent: &AgentId) {
        self.actor = (*agent != self.caller.agent).then(|| agent.clone());
    }

    /// Goes on as another caller, with that caller's rights.
    pub(crate) fn acting_as<T>(&mut self, caller: &Caller, then: impl FnOnce(&mut Apply<'_>) -> T) -> T {
        let mut inner = Apply {
            db: self.db,
            caller,
            now: self.now,
            realm: self.realm,
            rules: &mut *self.rules,
            stamp: self.stamp,
            ids: self.ids,
            actor: self.actor.take(),
            last: &mut *self.last,
            events: &mut *self.events,
            tail: &mut *self.tail,
            memory: &mut *self.memory,
        };
        let done = then(&mut inner);
        let (ids, actor) = (inner.ids, inner.actor.take());
        (self.ids, self.actor) = (ids, actor);
        done
    }

    /// Notes a text that the full-text index has to follow.
    pub(crate) fn note_text(&mut self, subject: Option<&str>, body: &str) {
        self.tail.note(subject, body);
    }

    /// Brings the full-text index up to everything that has happened.
    pub(crate) fn index_texts(&mut self) -> rusqlite::Result<()> {
        self.tail.index(self.db, *self.last)
    }

    /// Writes a line of history that anyone in `sight` may see.
    pub(crate) fn tell(&mut self, fact: Fact, sight: Sight) -> rusqlite::Result<Seq> {
        self.write(fact, sight, None, None, None)
    }

    /// Writes a line of history that an earlier one led to.
    pub(crate) fn tell_because(
        &mut self,
        cause: Option<Seq>,
        fact: Fact,
        sight: Sight,
    ) -> rusqlite::Result<Seq> {
        // Only what has happened can be a cause.
        self.write(fact, sight, cause.filter(|cause| (1..=*self.last).contains(cause)), None, None)
    }

    /// Writes a line of history about a letter.
    pub(crate) fn tell_of(
        &mut self,
        fact: Fact,
        message: Arc<Message>,
        cause: Option<Seq>,
        sight: Sight,
    ) -> rusqlite::Result<Seq> {
        self.write(fact, sight, cause, Some(message), None)
    }

    /// Writes the line of history of a letter that is sent now.
    pub(crate) fn tell_sent(
        &mut self,
        message: Arc<Message>,
        reached: Box<[Reached]>,
        sight: Sight,
    ) -> rusqlite::Result<Seq> {
        self.push(Fact::MessageSent, sight, None, (Some(message), None), Some(reached))
    }

    /// Writes a line of history about a turn.
    pub(crate) fn tell_turn(&mut self, fact: Fact, turn: Arc<Turn>, sight: Sight) -> rusqlite::Result<Seq> {
        self.write(fact, sight, None, None, Some(turn))
    }

    fn write(
        &mut self,
        fact: Fact,
        sight: Sight,
        cause: Option<Seq>,
        message: Option<Arc<Message>>,
        turn: Option<Arc<Turn>>,
    ) -> rusqlite::Result<Seq> {
        self.push(fact, sight, cause, (message, turn), None)
    }

    fn push(
        &mut self,
        fact: Fact,
        sight: Sight,
        cause: Option<Seq>,
        (message, turn): (Option<Arc<Message>>, Option<Arc<Turn>>),
        reached: Option<Box<[Reached]>>,
    ) -> rusqlite::Result<Seq> {
        // The writer puts the line into the books, many at a time, before the commit; no verb reads the history.
        let seq = self.next_seq();
        *self.last = seq;
        self.events.push(Arc::new(Event {
            seq,
            at: self.now,
            actor: self.actor.as_ref().unwrap_or(&self.caller.agent).clone(),
            cause,
            fact,
            message,
            turn,
            sight,
            reached,
            rendered: Default::default(),
        }));
        Ok(seq)
    }

    /// The agent the caller speaks for, which must be in the address book and in force.
    pub(crate) fn acting_agent(&self) -> Applied<Agent> {
        self.agent_or_refuse(&self.caller.agent)
    }

    /// An agent that must be in the address book and in force.
    pub(crate) fn agent_or_refuse(&self, id: &AgentId) -> Applied<Agent> {
        rows::active_agent(self.db, id)?
            .ok_or_else(|| Refusal::NoSuchAgent { agent: id.to_string(), near: Vec::new() }.into())
    }

    /// An agent that must be in force and that the caller may know of. A hidden one does not exist for the caller.
    pub(crate) fn known_agent(&self, id: &AgentId) -> Applied<Agent> {
        let agent = self.agent_or_refuse(id)?;
        if sight::sees_agent(self.db, self.caller, &agent)? {
            return Ok(agent);
        }
        Err(Refusal::NoSuchAgent { agent: id.to_string(), near: Vec::new() }.into())
    }

    /// Refuses callers that do not belong to the realm.
    pub(crate) fn require_member(&self) -> Applied<()> {
        if self.caller.rights.member {
            Ok(())
        } else {
            Err(Refusal::NotAllowed { need: "to be a member of the realm" }.into())
        }
    }

    /// Refuses callers that do not run the office.
    pub(crate) fn require_admin(&self) -> Applied<()> {
        if self.caller.rights.admin {
            Ok(())
        } else {
            Err(Refusal::NotAllowed { need: "to run the office" }.into())
        }
    }
}
