//! `posthaste connect`: the configuration that a coding agent's client needs to reach the server. It never holds a token: the
//! client starts `posthaste mcp`, which keeps one in the data directory, or names the variable that holds one.

mod entry;
mod file;

use std::path::{Path, PathBuf};

use posthaste_wire::control::{Token, TokenRevokeParams};
use serde::Serialize;
use serde_json::Value;

use self::entry::{Access, Entry};
use super::args::{Client, ConnectArgs, GlobalArgs, OfficeArgs};
use super::client_tokens::{self, ClientDirectory};
use super::exit::{Exit, Failure};
use super::output::Output;
use super::projects::{self, Claimed};
use super::realm_access::{Purpose, RealmAccess};
use super::runtime;
use super::target::{Source, Target, from_listen};
use crate::config::{Config, Origin};

/// What `--json` prints after a client's file was written.
#[derive(Serialize)]
struct Written<'a> {
    client: &'a str,
    file: &'a Path,
    backup: Option<PathBuf>,
    token: Option<String>,
    project: &'a Claimed,
}

/// What `--json` prints without `--write`.
#[derive(Serialize)]
struct Preview<'a> {
    client: &'a str,
    file: Option<String>,
    configuration: &'a str,
}

pub(super) fn run(global: &GlobalArgs, given: &ConnectArgs, output: &Output) -> Result<(), Failure> {
    let mut global = global.clone();
    if let Some(listen) = &given.listen {
        global.url = Some(from_listen(listen));
    }
    let flags = OfficeArgs { realm: given.realm.realm.clone(), ..OfficeArgs::default() };
    let target = Target::of(&global)?;
    let config = Config::load(&global, &flags, &|name| std::env::var_os(name))?;
    let file = usual_file(given)?;
    // What is there is read first: a file that cannot be merged changes nothing.
    let before = match &file {
        Some(path) if given.write => file::read(path)?,
        _ => None,
    };
    let place = ClientDirectory::here(given.client.word(), target.realm(&config))?;
    let access = access(given, &target, &config)?;
    let entry = Entry { access, realm: target.realm(&config) };
    let text = entry.text(given.client, before.as_deref()).map_err(|why| in_file(file.as_deref(), &why))?;
    let Some(path) = file.filter(|_| given.write) else {
        return preview(given, &entry, &text, output);
    };
    let outdated =
        before.as_deref().map(|before| entry::tokens_in(before, &config.data.value)).unwrap_or_default();
    let project = runtime()?.block_on(prepare(&config, &target, &place, given.name.as_deref(), &outdated))?;
    let backup = file::write(&path, before.as_deref(), &text, &outdated)?;
    let hint = token_hint(&entry, &target, &place, given.name.as_deref());
    if output.is_json() {
        let client = given.client.word();
        return output.json(&Written { client, file: &path, backup, token: hint, project: &project });
    }
    output.line(&format!("wrote {}", path.display()))?;
    if let Some(backup) = backup {
        output.line(&format!("what was there is in {}", backup.display()))?;
    }
    if let Some(hint) = hint {
        output.line(&format!("the client shows the token in POSTHASTE_TOKEN: {hint}"))?;
    }
    for line in project.lines() {
        output.line(&line)?;
    }
    Ok(())
}

/// Prints what would be written. Makes no token and no file.
fn preview(given: &ConnectArgs, entry: &Entry, text: &str, output: &Output) -> Result<(), Failure> {
    let file = usual_file(given)?;
    if given.write {
        return Err(Failure::new(Exit::Usage, "there is no home directory; name the file with --file"));
    }
    let shown = file.as_ref().map(|path| path.display().to_string());
    if output.is_json() {
        let client = given.client.word();
        return output.json(&Preview { client, file: shown, configuration: text });
    }
    eprintln!("# for {}; --write puts it there", shown.as_deref().unwrap_or("the client's configuration"));
    if matches!(entry.access, Access::Http { .. }) {
        eprintln!("# the client shows the token in POSTHASTE_TOKEN");
    }
    Ok(output.line(text.trim_end())?)
}

/// A server that is named is connected to; at the data directory's own the client starts `posthaste mcp`.
fn access(given: &ConnectArgs, target: &Target, config: &Config) -> Result<Access, Failure> {
    let data = (config.data.origin != Origin::Default).then(|| config.data.value.clone());
    if given.stdio || (target.url.is_none() && !given.http) {
        if let Some(url) = &target.url {
            return Ok(Access::Command { server: Some(url.clone()), data: None });
        }
        return Ok(Access::Command { server: None, data });
    }
    let url = match (&target.url, target.server(&config.data.value)?) {
        (Some(url), _) => url.clone(),
        (None, Some(server)) => server.url,
        (None, None) => {
            let scheme = if config.has_tls() { "https" } else { "http" };
            format!("{scheme}://{}", config.listen.value)
        }
    };
    Ok(Access::Http { url })
}

/// Claims the directory for the server's realm. For the data directory's own server it also sees to it that a token is kept
/// for this client in this directory, and ends those that the client's file held before.
async fn prepare(
    config: &Config,
    target: &Target,
    place: &ClientDirectory,
    name: Option<&str>,
    outdated: &[entry::Outdated],
) -> Result<Claimed, Failure> {
    let data = &config.data.value;
    if target.url.is_some() {
        return Ok(projects::claim_at(RealmAccess::open(config, target, Purpose::Look).await).await);
    }
    let realm = RealmAccess::open(config, target, Purpose::Make).await?;
    let done = async {
        for old in outdated {
            revoke(&realm, old.token.clone()).await;
            if let Some(file) =
                old.file.as_ref().filter(|file| file.parent() == Some(&client_tokens::folder(data)))
            {
                drop(std::fs::remove_file(file));
            }
        }
        let kept = place.kept(data)?;
        match &kept {
            Some(token) if name.is_none() && realm.knows(token).await? => {}
            _ => {
                place.make(&realm, data, name, true).await?;
                if let Some(token) = &kept {
                    revoke(&realm, token.clone()).await;
                }
            }
        }
        Ok::<_, Failure>(())
    }
    .await;
    if let Err(failure) = done {
        realm.close().await;
        return Err(failure);
    }
    Ok(projects::claim_at(Ok(realm)).await)
}

/// Revokes a token. One that the server does not know needs no revoking.
async fn revoke(realm: &RealmAccess, token: String) {
    let params = TokenRevokeParams { id: None, token: Some(token) };
    drop(realm.call::<Token>("token.revoke", params).await);
}

/// How to set the variable that the client's file refers to.
fn token_hint(entry: &Entry, target: &Target, place: &ClientDirectory, name: Option<&str>) -> Option<String> {
    let Access::Http { .. } = &entry.access else { return None };
    let server = match (&target.url_from, &target.url) {
        (Source::Context { name, .. }, _) => format!("--context {name} "),
        (_, Some(url)) => format!("--url {url} "),
        (_, None) => String::new(),
    };
    let name = name.map_or_else(|| place.name(), str::to_owned);
    Some(format!("export POSTHASTE_TOKEN=\"$(posthaste {server}token create --role user --name {name})\""))
}

/// The file that the client reads: in this project for those that have one there, else in the home directory.
fn usual_file(given: &ConnectArgs) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &given.file {
        return Ok(Some(std::path::absolute(path)?));
    }
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(PathBuf::from);
    let here = std::env::current_dir()?;
    Ok(match given.client {
        Client::ClaudeCode => Some(here.join(".mcp.json")),
        Client::Vscode => Some(here.join(".vscode").join("mcp.json")),
        Client::Codex => home.map(|home| home.join(".codex").join("config.toml")),
        Client::Gemini => home.map(|home| home.join(".gemini").join("settings.json")),
        Client::Cursor => home.map(|home| home.join(".cursor").join("mcp.json")),
    })
}

/// Why a client's file cannot be merged, with its name.
fn in_file(path: Option<&Path>, why: &str) -> Failure {
    let text = match path {
        Some(path) => format!("{}: {why}", path.display()),
        None => why.to_owned(),
    };
    Failure::new(Exit::Failed, text)
}

/// A value as a quoted word of JSON, which TOML takes as well.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
