//! Agents: their entries, and the params and results of `map/agents/…`, `map/structure/graph` and `map/hierarchy.…`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::lenient::{object_or_default, or_default, present};
use super::permissions::PermissionOverrides;

/// An agent's entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// The participant that owns it.
    pub owner_id: Option<String>,
    /// Its state.
    pub state: String,
    /// Who may see it: `public`, `parent-only`, `scope` or `system`.
    pub visibility: String,
    /// The scopes it is a member of.
    pub scopes: Vec<String>,
    /// When it was registered and last changed.
    pub lifecycle: AgentTimes,
    /// Its metadata.
    pub metadata: Map<String, Value>,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it can do, as it declared.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub capabilities: Option<Value>,
    /// Whom it may see and exchange messages with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_overrides: Option<PermissionOverrides>,
    /// Where it runs, as it declared.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub environment: Option<Value>,
    /// A detailed description of what it can do.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub capability_descriptor: Option<Value>,
    /// An identity by which it is recognized when it registers again.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub persistent_identity: Option<Value>,
    /// The kind of entry, if it is not an agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// When an agent was registered and last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTimes {
    /// When it was registered, in Unix milliseconds.
    pub created_at: i64,
    /// When it last changed.
    pub last_active_at: i64,
}

/// The params of `map/agents/register` and `map/agents/spawn`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegisterParams {
    /// The id that it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Scopes to join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Who may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Value>,
    /// A detailed description of what it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_descriptor: Option<Value>,
    /// An identity by which it is recognized when it registers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_identity: Option<Value>,
    /// Whether to take over the agent with that identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_persistent_identity: Option<bool>,
    /// Metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Whom it may see and exchange messages with; see [`PermissionOverrides::read`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_overrides: Option<Value>,
    /// A first message to a spawned agent: a payload, or an object with `payload` and `meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_message: Option<Value>,
}

/// The result of `map/agents/register`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterResult {
    /// The agent.
    pub agent: Agent,
    /// True if it was registered before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<bool>,
    /// The session that had it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<ResumedFrom>,
}

/// The session that had an agent before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumedFrom {
    /// Its id.
    pub previous_session_id: String,
}

/// The result of `map/agents/spawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpawnResult {
    /// The agent.
    pub agent: Agent,
    /// The id of the first message to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

/// The params of the methods that name one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentParams {
    /// The agent.
    #[serde(alias = "id")]
    pub agent_id: String,
    /// Why, for `map/agents/unregister`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether `map/agents/stop` skips asking the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The result of `map/agents/unregister`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnregisterResult {
    /// The agent as it was.
    pub agent: Agent,
    /// Always true.
    pub unregistered: bool,
    /// Always true.
    pub success: bool,
}

/// The params of `map/agents/get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetParams {
    /// The agent.
    #[serde(alias = "id")]
    pub agent_id: String,
    /// Which relatives to include.
    #[serde(default, deserialize_with = "object_or_default")]
    pub include: Include,
}

/// Which relatives of an agent to include.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Include {
    /// Its parent.
    #[serde(deserialize_with = "or_default")]
    pub parent: bool,
    /// Its children.
    #[serde(deserialize_with = "or_default")]
    pub children: bool,
    /// Agents with the same parent.
    #[serde(deserialize_with = "or_default")]
    pub siblings: bool,
    /// Its parent and the parents of that.
    #[serde(deserialize_with = "or_default")]
    pub ancestors: bool,
    /// Its children and the children of those.
    #[serde(deserialize_with = "or_default")]
    pub descendants: bool,
    /// Number of levels up or down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
}

impl Include {
    /// Whether any relatives are included.
    #[must_use]
    pub fn any(&self) -> bool {
        self.parent || self.children || self.siblings || self.ancestors || self.descendants
    }
}

/// The result of `map/agents/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GetResult {
    /// The agent.
    pub agent: Agent,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Agent>,
    /// Its children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Agent>>,
    /// Agents with the same parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<Vec<Agent>>,
    /// Its parent and the parents of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ancestors: Option<Vec<Agent>>,
    /// Its children and the children of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descendants: Option<Vec<Agent>>,
}

/// The params of `map/agents/update`: the members that change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateParams {
    /// The agent.
    #[serde(alias = "id")]
    pub agent_id: String,
    /// Its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Who may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// Metadata, merged into what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Value>,
    /// Whom it may see and exchange messages with; see [`PermissionOverrides::read`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_overrides: Option<Value>,
}

/// The result of `map/agents/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateResult {
    /// The agent.
    pub agent: Agent,
    /// Always true.
    pub success: bool,
}

/// The result of `map/agents/stop`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopResult {
    /// Whether the agent was asked to stop before it counted as stopped.
    pub stopping: bool,
    /// Always true.
    pub stopped: bool,
    /// The agent.
    pub agent: Agent,
    /// Always true.
    pub success: bool,
}

/// The result of `map/agents/suspend`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuspendResult {
    /// Always true.
    pub suspended: bool,
    /// The agent.
    pub agent: Agent,
    /// Always true.
    pub success: bool,
}

/// The result of `map/agents/resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeResult {
    /// Always true.
    pub resumed: bool,
    /// The agent.
    pub agent: Agent,
    /// Always true.
    pub success: bool,
}

/// The params of `map/agents/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListParams {
    /// The filter.
    #[serde(deserialize_with = "object_or_default")]
    pub filter: AgentFilter,
    /// The same; some clients write the filter's members beside it.
    #[serde(flatten)]
    pub beside: AgentFilter,
    /// Page size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// The last agent of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Which agents to list. A member in the plural and its singular mean the same, as do one word and a list of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentFilter {
    /// Any of these states.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// The same.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<String>,
    /// Any of these roles.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The same.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub role: Vec<String>,
    /// Members of any of these scopes.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The same.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// Any of these tags in the capability descriptor.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Any of these accepted content types in the capability descriptor.
    #[serde(deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub accepts: Vec<String>,
    /// Children of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// With or without children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_children: Option<bool>,
    /// Agents of this participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// Agents of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// With this capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_id: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// With this persistent identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_id: Option<String>,
}

impl AgentFilter {
    /// Merges the members that were written beside the filter, and each singular into its plural.
    #[must_use]
    pub fn merged(mut self, mut beside: Self) -> Self {
        for (all, more) in [
            (&mut self.states, [&mut self.state, &mut beside.states, &mut beside.state]),
            (&mut self.roles, [&mut self.role, &mut beside.roles, &mut beside.role]),
            (&mut self.scopes, [&mut self.scope, &mut beside.scopes, &mut beside.scope]),
        ] {
            more.into_iter().for_each(|words| all.append(words));
        }
        self.tags.append(&mut beside.tags);
        self.accepts.append(&mut beside.accepts);
        Self {
            parent: self.parent.or(beside.parent),
            has_children: self.has_children.or(beside.has_children),
            owner_id: self.owner_id.or(beside.owner_id),
            session_id: self.session_id.or(beside.session_id),
            capability_id: self
                .capability_id
                .or(self.capability.take())
                .or(beside.capability_id)
                .or(beside.capability),
            persistent_id: self.persistent_id.or(beside.persistent_id),
            ..self
        }
    }
}

/// Reads a word or a list of words.
fn words<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(given)? {
        None => Vec::new(),
        Some(Written::One(word)) => vec![word],
        Some(Written::Many(words)) => words,
    })
}

/// The result of `map/agents/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The agents.
    pub agents: Vec<Agent>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The params of `map/structure/graph` and of `map/hierarchy.…`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GraphParams {
    /// The agent to start with.
    #[serde(alias = "agentId", alias = "root", skip_serializing_if = "Option::is_none")]
    pub root_agent_id: Option<String>,
    /// Number of levels up or down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// The result of `map/structure/graph`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GraphResult {
    /// The graph.
    Graph {
        /// The agents.
        nodes: Vec<Agent>,
        /// Who is whose parent.
        edges: Vec<Edge>,
    },
    /// A flat list, in acp-compat mode.
    Flat {
        /// The agents.
        agents: Vec<Agent>,
    },
}

/// That one agent is another's parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The parent.
    pub from: String,
    /// The child.
    pub to: String,
    /// Always `parent-child`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The result of `map/hierarchy.…`: one member, named like the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each variant is what its name says")]
pub enum Relatives {
    Parent(Option<Box<Agent>>),
    Children(Vec<Agent>),
    Siblings(Vec<Agent>),
    Ancestors(Vec<Agent>),
    Descendants(Vec<Agent>),
}

/// The result of `map/role.list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleListResult {
    /// The roles, in order.
    pub roles: Vec<String>,
}

/// The result of `map/env.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentListResult {
    /// The environments that agents declared.
    pub environments: Vec<AgentEnvironment>,
}

/// Where an agent runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEnvironment {
    /// The agent.
    pub agent_id: String,
    /// Its environment, as it declared.
    pub environment: Value,
}

/// The result of `map/user.list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserListResult {
    /// The users.
    pub users: Vec<User>,
}

/// A person, or a client that acts for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The id.
    pub id: String,
    /// The display name.
    pub name: Option<String>,
    /// `user`, `admin` or `client`.
    pub kind: String,
}
