//! A realm in a temporary directory, and short ways of saying who does what.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Address, AgentId, Caller, RealmName};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::mail::{Send, Sent};
use posthaste_engine::{Engine, EngineGuard};
use tempfile::TempDir;

/// An open realm that goes away with the test.
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
        let (engine, guard) = Engine::open(&path, realm, limits).expect("books");
        Self { engine, guard: Some(guard), directory }
    }

    /// Closes the books and opens them again, as after a restart.
    pub fn reopened(self) -> Self {
        let Self { engine, guard, directory } = self;
        let limits = engine.limits().clone();
        let path = engine.path().to_owned();
        drop(engine);
        if let Some(guard) = guard {
            guard.join();
        }
        let realm = RealmName::new("main").expect("a realm name");
        let (engine, guard) = Engine::open(&path, realm, limits).expect("books");
        Self { engine, guard: Some(guard), directory }
    }

    /// Registers an agent under its own name.
    pub async fn agent(&self, name: &str) -> Caller {
        self.register(name, Register::default()).await
    }

    /// Registers an agent with particulars.
    pub async fn register(&self, name: &str, given: Register) -> Caller {
        let caller = member(name);
        let verb = Register { id: Some(id(name)), ..given };
        self.engine.submit(&caller, verb).await.expect("a free name");
        caller
    }

    /// Sends a line of prose to one agent.
    pub async fn send(&self, from: &Caller, to: &str, text: &str) -> Sent {
        self.engine.submit(from, Send::text(vec![Address::Agent(id(to))], text)).await.expect("a letter")
    }
}

pub fn id(name: &str) -> AgentId {
    AgentId::new(name).expect("an agent id")
}

pub fn member(name: &str) -> Caller {
    Caller::member(id(name), "test")
}
