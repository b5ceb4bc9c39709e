//! Changing an agent's fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::states::{change_state, check_state};
use super::{check_bounds, check_may_change, check_parent, merge, shown, write};
use crate::account::Entering;
use crate::nouns::{Agent, AgentId, Bounds, ContactPolicy, Fact, Json, Privacy, Visibility};
use crate::sight;
use crate::store::rows;
use crate::verbs::scopes::{Joiner, Memberships};
use crate::verbs::{Decide, Decided, Write};

/// Changes the given fields of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// The agent.
    pub agent: AgentId,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Its role.
    #[serde(default)]
    pub role: Option<String>,
    /// The agent above it.
    #[serde(default)]
    pub parent: Option<AgentId>,
    /// Who may change it besides itself.
    #[serde(default)]
    pub owner: Option<AgentId>,
    /// Its state, under the rules of [`SetState`](super::SetState).
    #[serde(default)]
    pub state: Option<String>,
    /// Who may find it.
    #[serde(default)]
    pub visibility: Option<Visibility>,
    /// Whose first message it accepts.
    #[serde(default)]
    pub contact_policy: Option<ContactPolicy>,
    /// How widely it may address others.
    #[serde(default)]
    pub privacy: Option<Privacy>,
    /// Public keys.
    #[serde(default)]
    pub keys: Option<Json>,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Option<Json>,
    /// Limits on what it sees and writes to; merged into the present ones, member by member.
    #[serde(default)]
    pub bounds: Option<Bounds>,
    /// Other data.
    #[serde(default)]
    pub meta: Option<Json>,
    /// Whether `meta` is merged into the present one, member by member, or replaces it.
    #[serde(default)]
    pub merge_meta: bool,
}

impl Update {
    /// An update that changes nothing yet.
    #[must_use]
    pub fn of(agent: AgentId) -> Self {
        Self {
            agent,
            name: None,
            description: None,
            role: None,
            parent: None,
            owner: None,
            state: None,
            visibility: None,
            contact_policy: None,
            privacy: None,
            keys: None,
            capabilities: None,
            bounds: None,
            meta: None,
            merge_meta: false,
        }
    }

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Agent> + use<'v>> {
        let change = self.plan(to, to.agent_or_refuse(&self.agent)?, None)?;
        Ok(move |to: &mut Write<'_>| change.write(to))
    }

    /// Decides on the agent as it is once earlier parts of the command are written. `entering` says how the command registers
    /// it, if it does.
    pub(super) fn plan(
        &self,
        to: &Decide<'_>,
        mut agent: Agent,
        entering: Option<Entering<'_>>,
    ) -> Decided<Change> {
        check_may_change(to, &agent)?;
        if let Some(parent) = &self.parent {
            check_parent(to, &agent.id, parent)?;
        }
        // An agent that has ended may repeat that state together with other changes.
        let state = self.state.as_ref().filter(|state| !(agent.has_ended() && **state == agent.state));
        if let Some(state) = state {
            check_state(to, &agent, state)?;
        }
        check_bounds(to, self.bounds.as_ref())?;
        let mut changes = Map::new();
        let mut note = |field: &str, value: Value| drop(changes.insert(field.to_owned(), value));
        macro_rules! replace {
            ($($field:ident),+) => {$(
                if let Some(value) = &self.$field && agent.$field.as_ref() != Some(value) {
                    note(stringify!($field), serde_json::json!(value));
                    agent.$field = Some(value.clone());
                }
            )+};
        }
        replace!(name, description, role);
        // The event goes to all agents that see this one; its parent or owner may be hidden from them.
        for (field, value, present) in
            [("parent", &self.parent, &mut agent.parent), ("owner", &self.owner, &mut agent.owner)]
        {
            if let Some(value) = value
                && present.as_ref() != Some(value)
            {
                note(field, serde_json::json!(shown(to, Some(value))?));
                *present = Some(value.clone());
            }
        }
        macro_rules! set {
            ($($field:ident),+) => {$(
                if let Some(value) = self.$field && agent.$field != value {
                    note(stringify!($field), serde_json::json!(value));
                    agent.$field = value;
                }
            )+};
        }
        set!(visibility, contact_policy, privacy);
        macro_rules! replace_json {
            ($($field:ident),+) => {$(
                if let Some(value) = &self.$field && agent.$field.as_ref() != Some(value) {
                    note(stringify!($field), value.value());
                    agent.$field = Some(value.clone());
                }
            )+};
        }
        replace_json!(keys, capabilities);
        let mut bounded = Map::new();
        if let Some(given) = &self.bounds {
            let bounds = agent.bounds.clone().unwrap_or_default().patched(given);
            if agent.bounds.as_ref() != Some(&bounds) {
                bounded.insert("bounds".to_owned(), serde_json::json!(given));
                bounded.insert("bounds_in_force".to_owned(), serde_json::json!(bounds));
                agent.bounds = Some(bounds);
            }
        }
        if let Some(meta) = &self.meta {
            let merged = if self.merge_meta { merge(agent.meta.as_ref(), meta) } else { meta.clone() };
            if agent.meta.as_ref() != Some(&merged) {
                note("meta", meta.value());
                agent.meta = Some(merged);
            }
        }
        // Bounds are an event of their own.
        let changes: Vec<_> = [changes, bounded].into_iter().filter(|changes| !changes.is_empty()).collect();
        let mut memberships = Memberships::default();
        if !changes.is_empty() {
            agent.updated_at = to.now;
            if self.role.is_some() {
                memberships = Joiner::new(to, &agent, entering)?.by_role()?;
            }
        }
        Ok(Change { agent, changes, memberships, state: state.cloned() })
    }
}

/// An update that has been decided.
pub(super) struct Change {
    agent: Agent,
    changes: Vec<Map<String, Value>>,
    memberships: Memberships,
    state: Option<String>,
}

impl Change {
    /// The agent as it will be, but for its state and its scopes.
    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The scopes that it joins by its new role.
    pub(super) fn memberships(&self) -> &Memberships {
        &self.memberships
    }

    /// Returns the agent with its scopes.
    pub(super) fn write(self, to: &mut Write<'_>) -> rusqlite::Result<Agent> {
        let mut agent = self.agent;
        if !self.changes.is_empty() {
            write(to, &agent)?;
            let sight = sight::of_agent(to.db, &agent)?;
            for changes in self.changes {
                let changes = Json::from_value(&Value::Object(changes));
                to.emit(Fact::AgentUpdated { agent: agent.id.clone(), changes }, sight.clone())?;
            }
        }
        self.memberships.write(to, &agent)?;
        if let Some(state) = &self.state {
            agent = change_state(to, agent, state)?;
        }
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(agent)
    }
}
