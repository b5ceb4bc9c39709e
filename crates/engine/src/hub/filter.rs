//! Which events a subscriber wants. Built once by a door, evaluated for every event.

use std::fmt;
use std::sync::Arc;

use crate::acl;
use crate::nouns::{Address, Agent, AgentId, ConversationId, Event, Fact, Priority, ScopeId, ThreadId};
use crate::store::{Db, one, rows};
use crate::views::View;

/// A condition that only a door can evaluate.
#[derive(Clone)]
pub struct Test(pub Arc<dyn Fn(&Event) -> bool + Send + Sync>);

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Test")
    }
}

/// A condition on an agent's entry that only a door can evaluate.
#[derive(Clone)]
pub struct AgentTest(pub Arc<dyn Fn(&Agent) -> bool + Send + Sync>);

impl fmt::Debug for AgentTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentTest")
    }
}

/// A condition on events.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All of these; everything if empty.
    All(Vec<Filter>),
    /// One of these; nothing if empty.
    Any(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
    /// The event's kind is one of these; `agent.*` and `*` are wildcards.
    Kinds(Vec<String>),
    /// Caused by one of these agents.
    Actors(Vec<AgentId>),
    /// Caused by one of these agents, about one of them, or about a message that names one of them.
    Concerning(Vec<AgentId>),
    /// Caused by an agent with one of these roles.
    Roles(Vec<String>),
    /// About one of these scopes or a descendant, addressed to one, or, if the event concerns no scope, from a member.
    Scopes(Vec<ScopeId>),
    /// From one of these agents: see [`Event::source`].
    Sources(Vec<AgentId>),
    /// From an agent whose entry satisfies the condition.
    SourceAgent(AgentTest),
    /// From this agent or one that it owns.
    OwnedBy(AgentId),
    /// About a message of one of these priorities.
    Priorities(Vec<Priority>),
    /// About a message with one of these correlations.
    Correlations(Vec<String>),
    /// About this conversation.
    Conversation(ConversationId),
    /// About this thread, or a turn in it.
    Thread(ThreadId),
    /// About this participant of a conversation, or one of its turns.
    Participant(AgentId),
    /// About a turn with this content type.
    ContentType(String),
    /// Concerning an agent below this one.
    Below(AgentId),
    /// Concerning an agent above this one.
    Above(AgentId),
    /// The door's own condition.
    Test(Test),
}

impl Filter {
    /// Everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Whether the filter needs the database.
    #[must_use]
    pub fn needs_database(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::needs_database),
            Self::Not(part) => part.needs_database(),
            Self::Roles(_)
            | Self::Scopes(_)
            | Self::SourceAgent(_)
            | Self::OwnedBy(_)
            | Self::Below(_)
            | Self::Above(_) => true,
            _ => false,
        }
    }

    /// Whether an event matches. Without a view, conditions that need the database do not match.
    #[must_use]
    pub fn matches(&self, event: &Event, view: Option<&View<'_>>) -> bool {
        let message = event.message.as_deref();
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(event, view)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(event, view)),
            Self::Not(part) => !part.matches(event, view),
            Self::Kinds(patterns) => patterns.iter().any(|pattern| fits(pattern, event.fact.kind())),
            Self::Actors(agents) => agents.contains(&event.actor),
            Self::Concerning(agents) => concerned(event).any(|agent| agents.contains(agent)),
            Self::Priorities(tiers) => message.is_some_and(|message| tiers.contains(&message.priority)),
            Self::Correlations(words) => message
                .and_then(|message| message.correlation.as_ref())
                .is_some_and(|word| words.contains(word)),
            Self::Conversation(id) => event.fact.conversation() == Some(id),
            Self::Thread(id) => match &event.fact {
                Fact::ThreadCreated { thread } => thread.id == *id,
                _ => event.turn.as_ref().is_some_and(|turn| turn.thread == Some(*id)),
            },
            Self::Participant(agent) => match &event.fact {
                Fact::ParticipantJoined { participant } => participant.agent == *agent,
                Fact::ParticipantLeft { agent: left, .. } => left == agent,
                Fact::ConversationCreated { conversation } => conversation.created_by == *agent,
                Fact::ConversationClosed { by, .. } | Fact::ConversationReopened { by, .. } => by == agent,
                _ => event.turn.as_ref().is_some_and(|turn| turn.author == *agent),
            },
            Self::ContentType(word) => event.turn.as_ref().is_some_and(|turn| turn.content_type == *word),
            Self::Test(test) => (test.0)(event),
            Self::Sources(agents) => agents.contains(event.source()),
            Self::Roles(_)
            | Self::Scopes(_)
            | Self::SourceAgent(_)
            | Self::OwnedBy(_)
            | Self::Below(_)
            | Self::Above(_) => view.is_some_and(|view| self.ask(event, view).unwrap_or(false)),
        }
    }

    fn ask(&self, event: &Event, view: &View<'_>) -> rusqlite::Result<bool> {
        let db = view.db;
        match self {
            Self::Roles(roles) => {
                let actor = rows::any_agent(db, &event.actor)?;
                Ok(actor.and_then(|actor| actor.role).is_some_and(|role| roles.contains(&role)))
            }
            Self::Scopes(scopes) => {
                let concerned = scopes_of(event);
                for scope in scopes {
                    let fits = match concerned.is_empty() {
                        true => rows::is_member(db, scope, event.source())?,
                        false => any_within(db, &concerned, scope)?,
                    };
                    if fits {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::SourceAgent(test) => {
                let source = rows::any_agent(db, event.source())?;
                Ok(source.is_some_and(|source| (test.0)(&source)))
            }
            Self::OwnedBy(owner) => {
                let sql = "SELECT 1 FROM agents WHERE id = ?1 AND owner = ?2";
                let source = event.source();
                Ok(source == owner || one(db, sql, (source, owner), |_| Ok(()))?.is_some())
            }
            Self::Below(top) => {
                for agent in concerned(event) {
                    if acl::is_below(db, agent, top)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Above(bottom) => {
                for agent in concerned(event) {
                    if acl::is_below(db, bottom, agent)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}

fn concerned(event: &Event) -> impl Iterator<Item = &AgentId> {
    let message = event.message.iter();
    let parties = message.flat_map(|message| std::iter::once(&message.from).chain(named(&message.to)));
    std::iter::once(&event.actor).chain(event.fact.about()).chain(parties)
}

fn named(to: &[Address]) -> impl Iterator<Item = &AgentId> {
    to.iter().filter_map(|address| match address {
        Address::Agent(agent) => Some(agent),
        _ => None,
    })
}

/// The scopes that an event is about or that its message is addressed to.
fn scopes_of(event: &Event) -> Vec<&ScopeId> {
    match &event.fact {
        Fact::ScopeCreated { scope } => vec![&scope.id],
        Fact::ScopeDeleted { scope, .. }
        | Fact::ScopeJoined { scope, .. }
        | Fact::ScopeLeft { scope, .. } => vec![scope],
        _ => event.message.iter().flat_map(|message| &message.to).filter_map(Address::scope).collect(),
    }
}

/// Whether one of these scopes is `top` or a descendant of it.
fn any_within(db: Db<'_>, scopes: &[&ScopeId], top: &ScopeId) -> rusqlite::Result<bool> {
    let sql = "WITH RECURSIVE up(id, n) AS (
                   SELECT ?1, 0
                   UNION SELECT s.parent, up.n + 1 FROM scopes s JOIN up ON s.id = up.id
                   WHERE s.parent IS NOT NULL AND up.n < 64)
               SELECT 1 FROM up WHERE id = ?2";
    for scope in scopes {
        if *scope == top || one(db, sql, (scope, top), |_| Ok(()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn fits(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => kind.starts_with(start),
        None => pattern == kind,
    }
}
