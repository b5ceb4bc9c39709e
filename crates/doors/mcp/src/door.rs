//! The door's state: the host, the sessions, and which agent a token registered last.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_host::Host;

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

/// Handed to every request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    host: Host,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    options: Options,
    sessions: Sessions,
    holders: Holders,
}

impl Door {
    /// A door without sessions yet.
    pub fn new(host: Host, options: Options) -> Self {
        let state = State { options, sessions: Sessions::default(), holders: Holders::default() };
        Self { host, state: Arc::new(state) }
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
        &self.state.sessions
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
