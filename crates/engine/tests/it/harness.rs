//! A realm in a temporary directory, and short helpers for the verbs and views that most tests use.

use std::fmt::Debug;

use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::{
    Address, AgentId, Audience, Caller, ContactState, ConversationId, Event, Json, Millis, RealmName,
    ScopeId, Turn, TurnVisibility,
};
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::contacts::{Answer, Ask};
use posthaste_engine::verbs::conversations::{Create, Created, Invitee};
use posthaste_engine::verbs::mail::{SendMessage, SendReceipt};
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::verbs::scopes::{CreateScope, JoinScope};
use posthaste_engine::verbs::turns::Say;
use posthaste_engine::views::{InboxMessage, InboxQuery, View, Viewed};
use posthaste_engine::{Engine, EngineGuard, Filter, Refusal, Step, stamp};
use tempfile::TempDir;

/// An open realm, removed at the end of the test.
pub struct Realm {
    pub engine: Engine,
    guard: Option<EngineGuard>,
    pub directory: TempDir,
}

impl Realm {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("main.db");
        let realm = RealmName::new("main").expect("a realm name");
        let (engine, guard) = Engine::open(&path, realm, limits).expect("db");
        Self { engine, guard: Some(guard), directory }
    }

    /// Closes the database and opens it again, as after a restart.
    pub fn reopened(self) -> Self {
        let Self { engine, guard, directory } = self;
        let limits = engine.limits().clone();
        let path = engine.path().to_owned();
        drop(engine);
        if let Some(guard) = guard {
            guard.join();
        }
        let realm = RealmName::new("main").expect("a realm name");
        let (engine, guard) = Engine::open(&path, realm, limits).expect("db");
        Self { engine, guard: Some(guard), directory }
    }

    /// Submits a verb that must be granted.
    pub async fn ask<V: Verb>(&self, caller: &Caller, verb: V) -> V::Outcome {
        self.engine.submit(caller, verb).await.expect("granted")
    }

    /// Submits a verb that must be refused, and returns the refusal.
    pub async fn refused<V: Verb>(&self, caller: &Caller, verb: V) -> Refusal
    where
        V::Outcome: Debug,
    {
        let error = self.engine.submit(caller, verb).await.expect_err("refused");
        error.refusal().expect("a refusal and not a fault").clone()
    }

    /// Reads what the caller may read.
    pub fn see<T>(&self, look: impl FnOnce(&View<'_>) -> Viewed<T>) -> T {
        self.engine.read_blocking(look).expect("shown")
    }

    /// Reads what must not be shown, and returns the refusal.
    pub fn hidden<T: Debug>(&self, look: impl FnOnce(&View<'_>) -> Viewed<T>) -> Refusal {
        let error = self.engine.read_blocking(look).expect_err("hidden");
        error.refusal().expect("a refusal and not a fault").clone()
    }

    /// Registers an agent under its own name.
    pub async fn agent(&self, name: &str) -> Caller {
        self.register(name, Register::default()).await
    }

    /// Registers several agents under their own names.
    pub async fn agents<const N: usize>(&self, names: [&str; N]) -> [Caller; N] {
        for name in names {
            self.agent(name).await;
        }
        names.map(member)
    }

    /// Registers an agent with the given properties.
    pub async fn register(&self, name: &str, given: Register) -> Caller {
        let caller = member(name);
        let verb = Register { id: Some(id(name)), ..given };
        self.engine.submit(&caller, verb).await.expect("a free name");
        caller
    }

    /// Sends a text message to one agent.
    pub async fn send(&self, from: &Caller, to: &str, text: &str) -> SendReceipt {
        self.ask(from, message(to, text)).await
    }

    /// Creates a scope with members, all added by its creator.
    pub async fn scope(&self, creator: &Caller, name: &str, given: CreateScope, members: &[&str]) -> ScopeId {
        let scope = self.ask(creator, CreateScope { id: Some(scope(name)), ..given }).await.id;
        for member in members {
            self.ask(creator, JoinScope { scope: scope.clone(), agent: id(member) }).await;
        }
        scope
    }

    /// Opens a conversation that only its participants may read.
    pub async fn conversation(&self, opener: &Caller, name: &str, others: &[&str]) -> Created {
        self.ask(opener, conversation(name, others)).await
    }

    /// Adds a turn visible to all readers of the conversation.
    pub async fn say(&self, speaker: &Caller, name: &str, text: &str) -> Turn {
        self.ask(speaker, say(name, text)).await
    }

    /// Makes two agents each other's contacts.
    pub async fn befriend(&self, one: &Caller, other: &Caller) {
        self.ask(one, Ask { to: other.agent.clone(), reason: None, expires_at: None }).await;
        self.ask(other, answer(&one.agent, ContactState::Accepted)).await;
    }

    /// Changes the realm's rules.
    pub async fn rules(&self, rules: Rules) {
        self.ask(&admin(), SetRules { rules }).await;
    }

    /// An agent's inbox, oldest first, as the agent sees it.
    pub fn inbox(&self, of: &str) -> Vec<InboxMessage> {
        let query = InboxQuery {
            order: posthaste_engine::views::InboxOrder::Oldest,
            limit: 1_000,
            ..InboxQuery::default()
        };
        self.see(|view| view.inbox(&member(of), &id(of), &query)).items
    }

    /// The texts of an agent's messages, oldest first.
    pub fn mail(&self, of: &str) -> Vec<String> {
        self.inbox(of).iter().map(|item| item.message.body.as_str().to_owned()).collect()
    }

    /// The kinds of the events that a caller reads from the event log.
    pub fn replayed(&self, caller: &Caller) -> Vec<&'static str> {
        let replay = self.see(|view| view.events(caller, 0, &Filter::everything(), 1_000));
        replay.events.iter().map(|event| event.fact.kind()).collect()
    }

    /// All events of a feed up to now.
    pub async fn drain(
        &self,
        feed: &mut posthaste_engine::Feed,
        caller: &Caller,
    ) -> Vec<std::sync::Arc<Event>> {
        use posthaste_engine::nouns::Fact;
        let to = Some(vec![caller.agent.clone()]);
        let end = posthaste_engine::verbs::office::Announce { word: "end".into(), data: json("{}"), to };
        self.ask(&admin(), end).await;
        let mut events = Vec::new();
        loop {
            match feed.next().await.expect("a step") {
                Step::Event { event, .. } if matches!(&event.fact, Fact::Announced { word, .. } if word == "end") =>
                {
                    return events;
                }
                Step::Event { event, .. } => events.push(event),
                Step::Overflow(lost) => panic!("this feed was always read: {lost:?}"),
            }
        }
    }

    /// Waits until the clock has passed `time`, which must be near.
    pub async fn passed(&self, time: Millis) {
        while stamp::now() <= time {
            tokio::task::yield_now().await;
        }
    }
}

/// A time that comes soon, but not before a verb is done.
pub fn soon() -> Millis {
    stamp::now() + 400
}

/// A time after the end of the test.
pub fn later() -> Millis {
    stamp::now() + 3_600_000
}

pub fn id(name: &str) -> AgentId {
    AgentId::new(name).expect("an agent id")
}

pub fn conversation_id(name: &str) -> ConversationId {
    ConversationId::new(name).expect("a conversation id")
}

pub fn scope(name: &str) -> ScopeId {
    ScopeId::new(name).expect("a scope id")
}

pub fn realm(name: &str) -> RealmName {
    RealmName::new(name).expect("a realm name")
}

pub fn json(text: &str) -> Json {
    Json::new(text).expect("JSON")
}

pub fn member(name: &str) -> Caller {
    Caller::member(id(name), "test")
}

pub fn observer(name: &str) -> Caller {
    Caller::observer(id(name), "test")
}

pub fn admin() -> Caller {
    Caller::admin(id("boss"), "test")
}

pub fn to(name: &str) -> Address {
    Address::Agent(id(name))
}

/// A text message to one agent.
pub fn message(name: &str, text: &str) -> SendMessage {
    SendMessage::text(vec![to(name)], text)
}

pub fn answer(from: &AgentId, state: ContactState) -> Answer {
    Answer { from: from.clone(), state, expires_at: None }
}

/// A conversation of the caller with others; only its participants may read it.
pub fn conversation(name: &str, others: &[&str]) -> Create {
    Create {
        id: Some(conversation_id(name)),
        kind: "multi-agent".into(),
        subject: None,
        parent: None,
        parent_turn: None,
        participants: others.iter().map(|other| invitee(other)).collect(),
        first: None,
        audience: Audience::Parties,
        meta: None,
    }
}

pub fn invitee(name: &str) -> Invitee {
    Invitee { agent: id(name), role: None, permissions: Default::default() }
}

/// A turn visible to all readers.
pub fn say(name: &str, text: &str) -> Say {
    Say {
        conversation: conversation_id(name),
        thread: None,
        content_type: "text".into(),
        content: Json::from_value(&serde_json::json!({ "text": text })),
        in_reply_to: None,
        visibility: None,
        meta: None,
    }
}

/// A turn with the given visibility.
pub fn say_to(name: &str, text: &str, visibility: TurnVisibility) -> Say {
    Say { visibility: Some(visibility), ..say(name, text) }
}

/// Names of agents, for comparing.
pub fn names<'a>(ids: impl IntoIterator<Item = &'a AgentId>) -> Vec<&'a str> {
    ids.into_iter().map(AgentId::as_str).collect()
}

/// A registration with a name and nothing else.
pub fn named(name: &str) -> Register {
    Register { id: Some(id(name)), ..Register::default() }
}
