//! `posthaste connect`: the configuration that a coding agent's client needs to reach this office.

use std::fs;
use std::path::{Path, PathBuf};

use posthaste_engine::names::slug;
use posthaste_engine::stamp;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Map, Value, json};

use super::args::{Client, ConnectArgs, GlobalArgs, OfficeArgs};
use super::desk::Desk;
use super::exit::{Exit, Failure};
use super::output::Output;
use super::{projects, runtime};
use crate::config::Config;
use crate::projects::git::WorkTree;
use crate::safe_open::Folder;
use crate::serve::{Whereabouts, make_private_directory};

/// What the entry is called in every client's configuration.
const ENTRY: &str = "posthaste";

pub(super) fn run(global: &GlobalArgs, given: &ConnectArgs, output: &Output) -> Result<(), Failure> {
    let office = OfficeArgs {
        realm: given.realm.realm.clone(),
        listen: given.listen.clone(),
        ..OfficeArgs::default()
    };
    let config = Config::load(global, &office, &|name| std::env::var_os(name))?;
    let url = url(&config, given);
    let place = place(given)?;
    // What is there is read before a token is made, so that a file we cannot read costs none.
    let before = match &place {
        Some(path) if given.write => read(path)?,
        _ => None,
    };
    let name = given.name.clone().unwrap_or_else(|| default_name(given));
    let token = match given.stdio {
        true => None,
        false => Some(runtime()?.block_on(make_token(&config, &name))?),
    };
    // A file in a project is one that teams commit: it refers to the token and does not hold it.
    let shared = given.write && place.as_deref().is_some_and(|path| is_shared(given.client, path));
    let access = match token {
        None => Access::Operator,
        Some(token) if shared => Access::File(keep_token(&config.data.value, &name, &token)?),
        Some(token) => Access::Token(token),
    };
    let entry = Entry { url: &url, access, data: &config.data.value, realm: given.realm.realm.as_deref() };
    let text = match given.client {
        Client::Codex => codex(before.as_deref(), &entry)?,
        client => json_text(client, before.as_deref(), &entry)?,
    };
    let shown = place.as_ref().map(|path| path.display().to_string());
    if !given.write {
        let project = runtime()?.block_on(projects::claim_here(&config));
        if output.is_json() {
            return output.json(&json!({
                "client": given.client.word(), "file": shown, "configuration": text, "project": project.json(),
            }));
        }
        for line in project.lines() {
            eprintln!("# {line}");
        }
        if matches!(entry.access, Access::Token(_)) {
            eprintln!("# holds a token: do not commit it; --write keeps tokens out of files in a project");
        }
        eprintln!("# for {}", shown.as_deref().unwrap_or("the client's configuration"));
        return Ok(output.line(text.trim_end())?);
    }
    let Some(path) = place else {
        return Err(Failure::new(Exit::Usage, "there is no home directory; name the file with --file"));
    };
    let backup = write(&path, before.as_deref(), &text)?;
    let project = runtime()?.block_on(projects::claim_here(&config));
    if output.is_json() {
        return output.json(&json!({
            "client": given.client.word(), "file": path, "backup": backup, "project": project.json(),
        }));
    }
    output.line(&format!("wrote {}", path.display()))?;
    if let Some(backup) = backup {
        output.line(&format!("what was there is in {}", backup.display()))?;
    }
    for line in project.lines() {
        output.line(&line)?;
    }
    Ok(())
}

/// Where the office is, or will be.
fn url(config: &Config, given: &ConnectArgs) -> String {
    let scheme = if config.has_tls() { "https" } else { "http" };
    let configured = format!("{scheme}://{}", config.listen.value);
    let base = match &given.listen {
        Some(_) => configured,
        None => Whereabouts::read(&config.data.value).map_or(configured, |office| office.url),
    };
    match &given.realm.realm {
        Some(_) => format!("{base}/r/{}/mcp", config.realm.value),
        None => format!("{base}/mcp"),
    }
}

async fn make_token(config: &Config, name: &str) -> Result<String, Failure> {
    let desk = Desk::open(config).await?;
    let made = desk.call("token.create", json!({ "role": "user", "name": name })).await;
    desk.close().await;
    Ok(made?["token"].as_str().unwrap_or_default().to_owned())
}

/// The file that the client reads: in this project for those that have one there, else in the home directory.
fn place(given: &ConnectArgs) -> Result<Option<PathBuf>, Failure> {
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

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Exit::Failed, format!("{}: {error}", path.display()))),
    }
}

/// Keeps what was there beside, then writes; the token makes it a file for its owner only.
fn write(path: &Path, before: Option<&str>, text: &str) -> Result<Option<PathBuf>, Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let backup = match before {
        None => None,
        Some(before) => {
            let stamp = to_rfc3339(stamp::now()).replace(['-', ':', '.'], "");
            let backup = folder.join(format!("{name}.{stamp}.bak"));
            private(&backup, before)?;
            Some(backup)
        }
    };
    let fresh = folder.join(format!("{name}.posthaste-new"));
    private(&fresh, text)?;
    fs::rename(&fresh, path)?;
    Ok(backup)
}

fn private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()
}

/// Whether a client's file is one that teams commit: those that lie in a project, and any in a git work tree.
fn is_shared(client: Client, path: &Path) -> bool {
    let in_project = matches!(client, Client::ClaudeCode | Client::Vscode);
    in_project || path.parent().is_some_and(|folder| WorkTree::around(folder).is_some())
}

/// A token of a project's client is named for the project, so that its bearers can be told apart.
fn default_name(given: &ConnectArgs) -> String {
    let client = given.client.word();
    let here = std::env::current_dir().ok();
    let top = here.map(|here| WorkTree::around(&here).map_or(here, |tree| tree.top));
    let project = top.as_deref().and_then(Path::file_name).map(|name| slug(&name.to_string_lossy()));
    match (given.client, project) {
        (Client::ClaudeCode | Client::Vscode, Some(project)) => format!("{client}-{project}"),
        _ => client.to_owned(),
    }
}

/// Keeps a token in the data directory, for its owner only.
fn keep_token(data: &Path, name: &str, token: &str) -> Result<PathBuf, Failure> {
    let folder = std::path::absolute(data)?.join("clients");
    make_private_directory(&folder)?;
    let file = format!("{}-{}.token", slug(name), to_rfc3339(stamp::now()).replace(['-', ':', '.'], ""));
    let open = Folder::at(&folder)
        .and_then(|open| open.replace(file.as_ref(), format!("{token}\n").as_bytes(), 0o600));
    open.map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", folder.display())))?;
    Ok(folder.join(file))
}

/// How a client shows who it is.
enum Access {
    /// It starts posthaste itself, with the rights of the data directory's owner.
    Operator,
    /// It starts posthaste, which reads the token from this file.
    File(PathBuf),
    /// It connects with this token.
    Token(String),
}

/// How to reach the office.
struct Entry<'a> {
    url: &'a str,
    access: Access,
    data: &'a Path,
    realm: Option<&'a str>,
}

impl Entry<'_> {
    fn command(&self) -> (String, Vec<String>) {
        let program = std::env::current_exe()
            .map_or_else(|_| ENTRY.to_owned(), |path| path.to_string_lossy().into_owned());
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut words = vec!["--data".to_owned(), path(self.data), "mcp".to_owned()];
        if let Some(realm) = self.realm {
            words.extend(["--realm".to_owned(), realm.to_owned()]);
        }
        if let Access::File(file) = &self.access {
            words.extend(["--token-file".to_owned(), path(file)]);
        }
        (program, words)
    }

    fn json(&self, client: Client) -> Value {
        let Access::Token(token) = &self.access else {
            let (command, args) = self.command();
            return json!({ "command": command, "args": args });
        };
        let headers = json!({ "Authorization": format!("Bearer {token}") });
        match client {
            Client::Gemini => json!({ "httpUrl": self.url, "headers": headers }),
            Client::Cursor => json!({ "url": self.url, "headers": headers }),
            _ => json!({ "type": "http", "url": self.url, "headers": headers }),
        }
    }
}

/// A JSON configuration with our entry among the others.
fn json_text(client: Client, before: Option<&str>, entry: &Entry<'_>) -> Result<String, Failure> {
    let list = if client == Client::Vscode { "servers" } else { "mcpServers" };
    let mut whole: Map<String, Value> = match before.map(str::trim).filter(|text| !text.is_empty()) {
        None => Map::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            let why = format!(
                "the file is not plain JSON ({error}); leave out --write and put the entry in by hand"
            );
            Failure::new(Exit::Failed, why)
        })?,
    };
    let servers = whole.entry(list).or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else {
        return Err(Failure::new(Exit::Failed, format!("`{list}` in the file is not an object")));
    };
    servers.insert(ENTRY.to_owned(), entry.json(client));
    Ok(format!("{:#}\n", Value::Object(whole)))
}

/// A TOML configuration with our table at the end, in place of an earlier one; nothing else is touched.
fn codex(before: Option<&str>, entry: &Entry<'_>) -> Result<String, Failure> {
    let before = before.unwrap_or_default();
    if let Err(error) = before.parse::<toml::Table>() {
        return Err(Failure::new(Exit::Failed, format!("the file is not TOML: {}", error.message())));
    }
    let quoted = |text: &str| Value::from(text).to_string();
    let head = format!("[mcp_servers.{ENTRY}]");
    let table = match &entry.access {
        Access::Token(token) => format!(
            "{head}\nurl = {}\nhttp_headers = {{ \"Authorization\" = {} }}\n",
            quoted(entry.url),
            quoted(&format!("Bearer {token}"))
        ),
        Access::Operator | Access::File(_) => {
            let (command, args) = entry.command();
            format!("{head}\ncommand = {}\nargs = {}\n", quoted(&command), Value::from(args))
        }
    };
    let mut kept = String::new();
    let mut ours = false;
    for line in before.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            ours = trimmed == head || trimmed.starts_with(&format!("[mcp_servers.{ENTRY}."));
        }
        if !ours {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let gap = if kept.trim().is_empty() { "" } else { "\n" };
    Ok(format!("{}{gap}{table}", if kept.trim().is_empty() { "" } else { &kept }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<'static> {
        let access = Access::Token("ph_x".to_owned());
        Entry { url: "http://127.0.0.1:7678/mcp", access, data: Path::new("/data"), realm: None }
    }

    #[test]
    fn others_entries_stay() {
        let before = r#"{"theme":"dark","mcpServers":{"other":{"command":"x"},"posthaste":{"url":"old"}}}"#;
        let text = json_text(Client::Cursor, Some(before), &entry()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["theme"], "dark");
        assert_eq!(value["mcpServers"]["other"]["command"], "x");
        assert_eq!(value["mcpServers"]["posthaste"]["url"], "http://127.0.0.1:7678/mcp");
        assert_eq!(value["mcpServers"]["posthaste"]["headers"]["Authorization"], "Bearer ph_x");
        assert!(json_text(Client::Vscode, Some("{ // comment\n}"), &entry()).is_err());
        assert!(json_text(Client::Vscode, Some(r#"{"servers":[]}"#), &entry()).is_err());
    }

    #[test]
    fn a_toml_file_keeps_its_comments_and_gets_one_table() {
        let before = "# mine\nmodel = \"o\"\n\n[mcp_servers.posthaste]\nurl = \"old\"\n\n[mcp_servers.other]\ncommand = \"x\"\n";
        let once = codex(Some(before), &entry()).unwrap();
        let twice = codex(Some(&once), &entry()).unwrap();
        assert!(once.starts_with("# mine\nmodel"), "{once}");
        assert_eq!(twice.matches("[mcp_servers.posthaste]").count(), 1);
        let table: toml::Table = twice.parse().unwrap();
        assert_eq!(table["mcp_servers"]["other"]["command"].as_str(), Some("x"));
        assert_eq!(
            table["mcp_servers"]["posthaste"]["http_headers"]["Authorization"].as_str(),
            Some("Bearer ph_x")
        );
        assert!(codex(None, &entry()).unwrap().parse::<toml::Table>().is_ok());
    }
}
