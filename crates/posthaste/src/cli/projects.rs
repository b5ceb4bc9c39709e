//! `posthaste projects` and `posthaste realms`: which realm each path stands for, and what is in the realms. Also claims the
//! directory that `connect` runs in.

use posthaste_engine::nouns::RealmName;
use posthaste_wire::control::{
    ProjectClaimParams, ProjectClaimResult, ProjectListResult, ProjectMoveParams, ProjectMoveResult,
    ProjectPageParams, ProjectReleaseParams, ProjectReleaseResult, RealmListResult,
};
use serde::Serialize;

use super::args::{GlobalArgs, ProjectsCommand, RealmsCommand};
use super::exit::{Exit, Failure};
use super::output::{Output, Page, Style, Table, short_time, text_of};
use super::realm_access::{RealmAccess, with_realm};
use posthaste_host::projects::{alias, move_line, names_here, shell_word};
use posthaste_host::units::show_bytes;

pub(super) fn run(global: &GlobalArgs, command: &ProjectsCommand, output: &Output) -> Result<(), Failure> {
    match command {
        ProjectsCommand::List(realm) => with_realm(global, realm, async |realm| list(realm, output).await),
        ProjectsCommand::Move { path, to, realm } => {
            let path = name_of(path)?;
            with_realm(global, realm, async |realm| relocate(realm, path, to, output).await)
        }
        ProjectsCommand::Release { path, realm } => {
            let path = name_of(path)?;
            with_realm(global, realm, async |realm| release(realm, path, output).await)
        }
    }
}

pub(super) fn realms(global: &GlobalArgs, command: &RealmsCommand, output: &Output) -> Result<(), Failure> {
    match command {
        RealmsCommand::List(realm) => {
            with_realm(global, realm, async |realm| list_realms(realm, output).await)
        }
    }
}

/// A typed path made absolute; the address of a repository stays as it is.
fn name_of(typed: &str) -> Result<String, Failure> {
    if alias(typed).is_some() {
        return Ok(typed.to_owned());
    }
    let path = std::path::absolute(typed)?;
    path.to_str().and_then(alias).ok_or_else(|| {
        let text = format!("`{typed}` is neither a path nor the address of a repository");
        Failure::new(Exit::Usage, text)
    })
}

async fn list(realm: &RealmAccess, output: &Output) -> Result<(), Failure> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page: ProjectListResult =
            realm.call("project.list", ProjectPageParams { after, limit: None }).await?;
        rows.extend(page.projects);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if output.is_json() {
        return output.json(&Page::only("projects", &rows));
    }
    let mut table = Table::new(["PROJECT", "REALM", "AGENTS", "MESSAGES", "SINCE", "BY"]);
    for row in &rows {
        let by = row.by.as_deref().unwrap_or("serve").to_owned();
        let [agents, messages] = [row.agents, row.messages].map(text_of);
        let since = short_time(row.made_at.as_str());
        table.row([row.path.clone(), row.realm.clone(), agents, messages, since, by], Style::Plain);
    }
    Ok(output.table(&table)?)
}

async fn relocate(realm: &RealmAccess, path: String, to: &RealmName, output: &Output) -> Result<(), Failure> {
    let params = ProjectMoveParams { path, realm: to.to_string() };
    let moved: ProjectMoveResult = realm.call("project.move", params).await?;
    if output.is_json() {
        return output.json(&moved);
    }
    output.line(&shares(&moved.path, &moved.realm))?;
    if let Some(before) = &moved.before {
        let left = &before.realm;
        output.line(&format!(
            "what was written in realm {left} ({}) stays there: posthaste agents --realm {left}",
            counts(before.agents, before.messages)
        ))?;
    }
    Ok(())
}

async fn release(realm: &RealmAccess, path: String, output: &Output) -> Result<(), Failure> {
    let released: ProjectReleaseResult = realm.call("project.release", ProjectReleaseParams { path }).await?;
    if output.is_json() {
        return output.json(&released);
    }
    let ProjectReleaseResult { path, realm, above } = released;
    output.line(&format!("{path} is not claimed for realm {realm} any more; its mail stays in {realm}"))?;
    let next = match above {
        Some(above) => format!("new sessions in {path} belong to {}: realm {}", above.path, above.realm),
        None => format!("the next session that names {path} gets a realm of its own"),
    };
    Ok(output.line(&next)?)
}

async fn list_realms(realm: &RealmAccess, output: &Output) -> Result<(), Failure> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page: RealmListResult =
            realm.call("realm.list", ProjectPageParams { after, limit: None }).await?;
        rows.extend(page.realms);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if output.is_json() {
        return output.json(&Page::only("realms", &rows));
    }
    let mut table = Table::new(["REALM", "AGENTS", "MESSAGES", "SIZE", "PROJECTS"]);
    for row in &rows {
        let name = if row.default { format!("{} (default)", row.name) } else { row.name.clone() };
        let [agents, messages] = [row.agents, row.messages].map(text_of);
        let style = if row.problem.is_none() { Style::Plain } else { Style::Warning };
        table.row([name, agents, messages, show_bytes(row.bytes), row.projects.join(" ")], style);
    }
    Ok(output.table(&table)?)
}

fn shares(path: &str, realm: &str) -> String {
    format!("sessions in {path} share the address book of realm {realm}")
}

/// The numbers of agents and messages in a realm, in words.
fn counts(agents: Option<i64>, messages: Option<i64>) -> String {
    let many = |count: Option<i64>, one: &str| match count {
        Some(1) => format!("1 {one}"),
        Some(count) => format!("{count} {one}s"),
        None => format!("{one}s not counted"),
    };
    format!("{}, {}", many(agents, "agent"), many(messages, "message"))
}

/// What became of the claim of a work tree for the realm that a client is connected to.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Claimed {
    Done(ProjectClaimResult),
    Failed {
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        problem: String,
    },
}

/// Claims the work tree around this directory, or the directory itself. A failure is reported and does not undo the
/// connection.
pub(super) async fn claim_at(realm: Result<RealmAccess, Failure>) -> Claimed {
    let names = match std::env::current_dir() {
        Ok(here) => names_here(&here),
        Err(error) => return Claimed::Failed { path: None, problem: error.to_string() },
    };
    let path = names.first().cloned().unwrap_or_default();
    let done = async {
        let realm = realm?;
        let done = claim(&realm, names).await;
        realm.close().await;
        done
    };
    match done.await {
        Ok(claimed) => Claimed::Done(claimed),
        Err(failure) => Claimed::Failed { path: Some(path), problem: failure.error.to_string() },
    }
}

async fn claim(realm: &RealmAccess, names: Vec<String>) -> Result<ProjectClaimResult, Failure> {
    if names.is_empty() {
        return Err(Failure::new(Exit::Failed, "the path of this directory is not UTF-8"));
    }
    realm.call("project.claim", ProjectClaimParams { names }).await
}

impl Claimed {
    /// The lines that a person is shown.
    pub(super) fn lines(&self) -> Vec<String> {
        let claimed = match self {
            Self::Done(claimed) => claimed,
            Self::Failed { path, problem } => {
                let path = path.as_deref().unwrap_or_default();
                let word = shell_word(path);
                return vec![
                    format!("{path} was not claimed for a realm: {problem}"),
                    format!(
                        "sessions there get a realm of their own, until: posthaste projects move {word} REALM"
                    ),
                ];
            }
        };
        let ProjectClaimResult { path, realm, wanted_realm: wanted, .. } = claimed;
        let moved = |path: &str| {
            RealmName::new(wanted).map_or_else(|error| error.to_string(), |realm| move_line(path, &realm))
        };
        if !claimed.shared {
            return vec![
                format!(
                    "sessions in {path} go to realm {realm} ({}), where the agents of realm {wanted} are not",
                    counts(claimed.agents, claimed.messages)
                ),
                format!("to bring new sessions into realm {wanted}: {}", moved(path)),
            ];
        }
        let mut lines = vec![shares(path, realm)];
        if let Some(left) = &claimed.moved_from {
            lines.push(format!("before, they went to realm {left}, which has no messages"));
        }
        for apart in &claimed.apart {
            lines.push(format!("sessions in {apart} have a realm of their own, until: {}", moved(apart)));
        }
        lines
    }
}
