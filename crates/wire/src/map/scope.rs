//! Scopes: their entries, and the params and results of `map/scopes/…`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent::Agent;
use super::lenient::present;

/// A scope's entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// Its id.
    pub id: String,
    /// How agents become members.
    pub join_policy: String,
    /// Who may see that it exists.
    pub visibility: String,
    /// Who may send messages to it.
    pub send_policy: String,
    /// Who may see messages to it.
    pub message_visibility: String,
    /// Whether it is deleted with its last member.
    pub auto_delete: bool,
    /// The agent that created it.
    pub created_by: String,
    /// When it was created, in Unix milliseconds.
    pub created_at: i64,
    /// Its metadata.
    pub metadata: Map<String, Value>,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The scope it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Roles that join automatically.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_join_roles: Vec<String>,
    /// Whether it was declared to outlive its members.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub persistent: Option<Value>,
}

/// The params of `map/scopes/create`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateParams {
    /// The id that it gets.
    #[serde(alias = "id", skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The scope it is part of.
    #[serde(alias = "parentId", skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How agents become members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_policy: Option<String>,
    /// Roles that join automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_join_roles: Option<Vec<String>>,
    /// Who may see that it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// Who may see messages to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_visibility: Option<String>,
    /// Who may send messages to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<String>,
    /// Whether it outlives its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    /// Whether it is deleted with its last member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_delete: Option<bool>,
    /// Metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The params of the methods that name one scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeParams {
    /// The scope.
    #[serde(alias = "id")]
    pub scope_id: String,
    /// The agent that joins or leaves; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether `map/scopes/delete` deletes the scopes below it too.
    #[serde(default)]
    pub delete_descendants: bool,
    /// Whether `map/scopes/members` lists members of the scopes below it too.
    #[serde(default)]
    pub include_descendants: bool,
    /// Page size of `map/scopes/members`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// The last member of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `map/scopes/create` and `map/scopes/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeResult {
    /// The scope.
    pub scope: Scope,
}

/// The result of `map/scopes/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeleteResult {
    /// The scope as it was.
    pub scope: Scope,
    /// Always true.
    pub deleted: bool,
    /// Always true.
    pub success: bool,
}

/// The params of `map/scopes/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListParams {
    /// Scopes that are part of this one.
    #[serde(alias = "parentId", skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Page size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// The last scope of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `map/scopes/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The result of `map/scopes/join` and `map/scopes/leave`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MembershipResult {
    /// The scope.
    pub scope: Scope,
    /// The agent.
    pub agent: Agent,
    /// True if it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<bool>,
    /// True if it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<bool>,
    /// Always true.
    pub success: bool,
}

/// The result of `map/scopes/members`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembersResult {
    /// The ids of the members.
    pub members: Vec<String>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
