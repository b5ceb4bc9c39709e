//! The door's state: the host, the sessions that rmcp keeps, and which agent a token registered last.

use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use axum::extract::FromRef;
use posthaste_host::{Host, WeakHost};

use super::call::Holders;
use super::sessions::Sessions;

/// Tools that the door lists. All can be called.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ToolSet {
    /// Those that most agents need.
    Core,
    /// All of them.
    #[default]
    Full,
}

impl ToolSet {
    /// The set's name in settings and resources.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Full => "full",
        }
    }
}

/// What the door is given besides the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Tools that are listed.
    pub tools: ToolSet,
    /// Whether bearers of a token on this machine may act for any agent.
    pub trust_local: bool,
}

/// Handed to every request and session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    host: Host,
    state: Arc<State>,
}

/// A handle that keeps neither the door nor the host: the door's sessions have one, and the door has them.
#[derive(Clone, Debug)]
pub(super) struct WeakDoor {
    host: WeakHost,
    state: Weak<State>,
}

#[derive(Debug)]
struct State {
    options: Options,
    sessions: OnceLock<Sessions>,
    holders: Holders,
}

impl WeakDoor {
    pub(super) fn upgrade(&self) -> Option<Door> {
        Some(Door { host: self.host.upgrade()?, state: self.state.upgrade()? })
    }
}

impl Door {
    /// A door without sessions yet.
    pub fn new(host: Host, options: Options) -> Self {
        let state = State { options, sessions: OnceLock::new(), holders: Holders::default() };
        Self { host, state: Arc::new(state) }
    }

    pub(super) fn downgrade(&self) -> WeakDoor {
        WeakDoor { host: self.host.downgrade(), state: Arc::downgrade(&self.state) }
    }

    pub(super) fn tool_set(&self) -> ToolSet {
        self.state.options.tools
    }

    pub(super) fn trusts_local(&self) -> bool {
        self.state.options.trust_local
    }

    pub(super) fn holders(&self) -> &Holders {
        &self.state.holders
    }

    pub(super) fn sessions(&self) -> &Sessions {
        self.state.sessions.get_or_init(|| Sessions::new(self))
    }
}

impl Deref for Door {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl FromRef<Door> for Host {
    fn from_ref(door: &Door) -> Self {
        door.host.clone()
    }
}
