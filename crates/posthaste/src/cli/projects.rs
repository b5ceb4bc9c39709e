//! `posthaste projects` and `posthaste realms`: which path stands for which realm, and what there is. And what `connect`
//! does for the directory it is run in.

use posthaste_engine::nouns::RealmName;
use serde_json::{Value, json};

use super::args::{GlobalArgs, ProjectsCommand, RealmsCommand};
use super::desk::{Desk, at_desk};
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table, short_time, text_of};
use posthaste_host::projects::{alias, move_line, names_here, shell_word};
use posthaste_host::units::show_bytes;

pub(super) fn run(global: &GlobalArgs, command: &ProjectsCommand, output: &Output) -> Result<(), Failure> {
    match command {
        ProjectsCommand::List(desk) => at_desk(global, desk, async |desk| list(desk, output).await),
        ProjectsCommand::Move { path, to, desk } => {
            let path = name_of(path)?;
            at_desk(global, desk, async |desk| relocate(desk, &path, to, output).await)
        }
        ProjectsCommand::Release { path, desk } => {
            let path = name_of(path)?;
            at_desk(global, desk, async |desk| release(desk, &path, output).await)
        }
    }
}

pub(super) fn realms(global: &GlobalArgs, command: &RealmsCommand, output: &Output) -> Result<(), Failure> {
    match command {
        RealmsCommand::List(desk) => at_desk(global, desk, async |desk| list_realms(desk, output).await),
    }
}

/// A path as it was typed, made absolute; the address of a repository stays as it is.
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

/// All rows of a paged list.
async fn pages(desk: &Desk, method: &str, rows: &str) -> Result<Vec<Value>, Failure> {
    let (mut all, mut after) = (Vec::new(), Value::Null);
    loop {
        let mut answer = desk.call(method, json!({ "after": after })).await?;
        if let Some(page) = answer[rows].as_array_mut() {
            all.append(page);
        }
        after = answer["next"].take();
        if after.is_null() {
            return Ok(all);
        }
    }
}

async fn list(desk: &Desk, output: &Output) -> Result<(), Failure> {
    let rows = pages(desk, "project.list", "projects").await?;
    if output.is_json() {
        return output.json(&json!({ "projects": rows, "next": null }));
    }
    let mut table = Table::new(["PROJECT", "REALM", "AGENTS", "MESSAGES", "SINCE", "BY"]);
    for row in &rows {
        let [path, realm, agents, messages] =
            ["path", "realm", "agents", "messages"].map(|field| text_of(&row[field]));
        let by = row["by"].as_str().unwrap_or("serve").to_owned();
        table.row([path, realm, agents, messages, short_time(&row["made_at"]), by], Style::Plain);
    }
    Ok(output.table(&table)?)
}

async fn relocate(desk: &Desk, path: &str, realm: &RealmName, output: &Output) -> Result<(), Failure> {
    let moved = desk.call("project.move", json!({ "path": path, "realm": realm })).await?;
    if output.is_json() {
        return output.json(&moved);
    }
    output.line(&shares(&text_of(&moved["path"]), &text_of(&moved["realm"])))?;
    let before = &moved["before"];
    if let Some(left) = before["realm"].as_str() {
        output.line(&format!(
            "what was written in realm {left} ({}) stays there: posthaste agents --realm {left}",
            held(before)
        ))?;
    }
    Ok(())
}

async fn release(desk: &Desk, path: &str, output: &Output) -> Result<(), Failure> {
    let released = desk.call("project.release", json!({ "path": path })).await?;
    if output.is_json() {
        return output.json(&released);
    }
    let [path, realm] = ["path", "realm"].map(|field| text_of(&released[field]));
    output.line(&format!("{path} is not claimed for realm {realm} any more; its mail stays in {realm}"))?;
    let next = match (released["above"]["path"].as_str(), released["above"]["realm"].as_str()) {
        (Some(above), Some(realm)) => format!("new sessions in {path} belong to {above}: realm {realm}"),
        _ => format!("the next session that names {path} gets a realm of its own"),
    };
    Ok(output.line(&next)?)
}

async fn list_realms(desk: &Desk, output: &Output) -> Result<(), Failure> {
    let rows = pages(desk, "realm.list", "realms").await?;
    if output.is_json() {
        return output.json(&json!({ "realms": rows, "next": null }));
    }
    let mut table = Table::new(["REALM", "AGENTS", "MESSAGES", "SIZE", "PROJECTS"]);
    for row in &rows {
        let [mut name, agents, messages] = ["name", "agents", "messages"].map(|field| text_of(&row[field]));
        if row["default"] == true {
            name.push_str(" (default)");
        }
        let paths: Vec<String> = row["projects"].as_array().into_iter().flatten().map(text_of).collect();
        let size = show_bytes(row["bytes"].as_u64().unwrap_or(0));
        let style = if row["problem"].is_null() { Style::Plain } else { Style::Warning };
        table.row([name, agents, messages, size, paths.join(" ")], style);
    }
    Ok(output.table(&table)?)
}

fn shares(path: &str, realm: &str) -> String {
    format!("sessions in {path} share the address book of realm {realm}")
}

fn held(counts: &Value) -> String {
    let many = |field: &str, one: &str| match counts[field].as_i64() {
        Some(1) => format!("1 {one}"),
        Some(count) => format!("{count} {one}s"),
        None => format!("{one}s not counted"),
    };
    format!("{}, {}", many("agents", "agent"), many("messages", "message"))
}

/// Claims the work tree around a directory (or the directory) for the realm that a client is connected to.
#[derive(Clone, Debug)]
pub(super) struct Claimed(Value);

/// Claims this directory's work tree at a server. What goes wrong does not undo the connection: it is told.
pub(super) async fn claim_at(desk: Result<Desk, Failure>) -> Claimed {
    let names = match std::env::current_dir() {
        Ok(here) => names_here(&here),
        Err(error) => return Claimed(json!({ "problem": error.to_string() })),
    };
    let done = async {
        let desk = desk?;
        let done = claim(&desk, &names).await;
        desk.close().await;
        done
    };
    let path = names.first().cloned().unwrap_or_default();
    Claimed(
        done.await.unwrap_or_else(|failure| json!({ "path": path, "problem": failure.error.to_string() })),
    )
}

async fn claim(desk: &Desk, names: &[String]) -> Result<Value, Failure> {
    if names.is_empty() {
        return Err(Failure::new(Exit::Failed, "the path of this directory is not UTF-8"));
    }
    desk.call("project.claim", json!({ "names": names })).await
}

impl Claimed {
    pub(super) fn json(&self) -> &Value {
        &self.0
    }

    /// What a person is told.
    pub(super) fn lines(&self) -> Vec<String> {
        let [path, realm, wanted] =
            ["path", "realm", "wanted_realm"].map(|field| self.0[field].as_str().unwrap_or_default());
        if let Some(problem) = self.0["problem"].as_str() {
            let word = shell_word(path);
            return vec![
                format!("{path} was not claimed for a realm: {problem}"),
                format!(
                    "sessions there get a realm of their own, until: posthaste projects move {word} REALM"
                ),
            ];
        }
        let moved = |path: &str| {
            RealmName::new(wanted).map_or_else(|error| error.to_string(), |realm| move_line(path, &realm))
        };
        if self.0["shared"] != true {
            return vec![
                format!(
                    "sessions in {path} go to realm {realm} ({}), where the agents of realm {wanted} are not",
                    held(&self.0)
                ),
                format!("to bring new sessions into realm {wanted}: {}", moved(path)),
            ];
        }
        let mut lines = vec![shares(path, realm)];
        if let Some(left) = self.0["moved_from"].as_str() {
            lines.push(format!("before, they went to realm {left}, which has no messages"));
        }
        for apart in self.0["apart"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            lines.push(format!("sessions in {apart} have a realm of their own, until: {}", moved(apart)));
        }
        lines
    }
}
