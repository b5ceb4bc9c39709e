//! Projects and realms: which path means which realm, and what there is. For administrators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Timestamp;

/// Opens a realm, which is made if need be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealmOpenParams {
    /// Its name.
    pub name: String,
}

/// A realm that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealmOpenResult {
    /// Its name.
    pub name: String,
    /// Whether it was made.
    pub made: bool,
}

/// Asks for a page of projects or realms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectPageParams {
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Rows of one page; 200, which is also the maximum, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A page of the server's realms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealmListResult {
    /// The realms, by name.
    pub realms: Vec<RealmRow>,
    /// `after` of the next page, if there is one.
    pub next: Option<String>,
}

/// A realm and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealmRow {
    /// Its name.
    pub name: String,
    /// Whether it is the server's default realm.
    pub default: bool,
    /// Number of agents; null if it cannot be read.
    pub agents: Option<i64>,
    /// Number of messages; null if it cannot be read.
    pub messages: Option<i64>,
    /// Size of its database.
    pub bytes: u64,
    /// Paths and addresses that mean it, 20 at most.
    pub projects: Vec<String>,
    /// Why it cannot be read, if so.
    pub problem: Option<String>,
}

/// Claims a work tree for the realm of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectClaimParams {
    /// The work tree, then its other names (the first work tree of the repository, the repository's address).
    pub names: Vec<String>,
}

/// What a claimed work tree means now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectClaimResult {
    /// The work tree.
    pub path: String,
    /// The realm that it means.
    pub realm: String,
    /// The realm of the call.
    pub wanted_realm: String,
    /// Whether the two are the same.
    pub shared: bool,
    /// The realm that it meant before, if this changed it.
    pub moved_from: Option<String>,
    /// Number of agents in its realm; null if it cannot be read.
    pub agents: Option<i64>,
    /// Number of messages in its realm; null if it cannot be read.
    pub messages: Option<i64>,
    /// Paths below it that mean other realms, 20 at most.
    pub apart: Vec<String>,
}

/// A page of the projects of the caller's realm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectListResult {
    /// The projects, by path.
    pub projects: Vec<ProjectRow>,
    /// `after` of the next page, if there is one.
    pub next: Option<String>,
    /// The server's default realm.
    pub default_realm: String,
}

/// A path or address that means a realm, and what is in the realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRow {
    /// The path or address.
    pub path: String,
    /// The realm.
    pub realm: String,
    /// Number of agents in the realm; null if it cannot be read.
    pub agents: Option<i64>,
    /// Number of messages in the realm; null if it cannot be read.
    pub messages: Option<i64>,
    /// When it was claimed.
    pub made_at: Timestamp,
    /// The agent that claimed it.
    pub by: Option<String>,
    /// The realms that it meant before.
    pub former_realms: Vec<String>,
}

/// Changes the realm that a path means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectMoveParams {
    /// The path or address.
    pub path: String,
    /// The realm that it means from now on.
    pub realm: String,
}

/// A path that means another realm now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectMoveResult {
    /// The path or address.
    pub path: String,
    /// The realm that it means.
    pub realm: String,
    /// The realm that it meant before, if that is another.
    pub before: Option<FormerRealm>,
}

/// What is in a realm that a path no longer means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormerRealm {
    /// Number of agents; null if it cannot be read.
    pub agents: Option<i64>,
    /// Number of messages; null if it cannot be read.
    pub messages: Option<i64>,
    /// Why it cannot be read, if so.
    pub problem: Option<String>,
    /// Its name.
    pub realm: String,
}

/// Takes a claim back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectReleaseParams {
    /// The path or address.
    pub path: String,
}

/// A claim that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectReleaseResult {
    /// The path or address.
    pub path: String,
    /// The realm that it meant.
    pub realm: String,
    /// The claim of a directory above that holds for it now, if there is one.
    pub above: Option<ProjectAbove>,
}

/// A claim of a directory above.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectAbove {
    /// The directory.
    pub path: String,
    /// The realm that it means.
    pub realm: String,
}
