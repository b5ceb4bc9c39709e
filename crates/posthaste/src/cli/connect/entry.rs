//! What is written into a client's configuration, and what an earlier posthaste wrote there.

use std::path::{Path, PathBuf};

use posthaste_engine::nouns::RealmName;
use serde_json::{Map, Value, json};

use super::super::args::Client;
use super::quoted;

/// What the entry is called in every client's configuration.
const ENTRY: &str = "posthaste";
/// The variables that say which server is meant.
const VARIABLES: [&str; 2] = ["POSTHASTE_URL", "POSTHASTE_TOKEN"];

/// How a client reaches the server.
pub(super) enum Access {
    /// It starts `posthaste mcp`, which finds the token of this client and directory in the data directory.
    Command {
        /// The server, if it is not the data directory's own.
        server: Option<String>,
        /// The data directory, if it is not the usual one.
        data: Option<PathBuf>,
    },
    /// It connects, with the token in POSTHASTE_TOKEN.
    Http { url: String },
}

/// An entry of a client's configuration.
pub(super) struct Entry {
    pub(super) access: Access,
    pub(super) realm: Option<RealmName>,
}

/// A token that an earlier posthaste wrote into a client's file, or named there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Outdated {
    pub(super) token: String,
    /// The file that holds it, if it is not the client's own.
    pub(super) file: Option<PathBuf>,
}

impl Entry {
    /// The client's configuration with our entry among the others.
    pub(super) fn text(&self, client: Client, before: Option<&str>) -> Result<String, String> {
        match client {
            Client::Codex => self.toml(before),
            client => self.json_text(client, before),
        }
    }

    /// The program and its arguments. A team can share them: a path of this machine is among them only where it must be.
    fn command(&self, client: Client, server: Option<&str>, data: Option<&Path>) -> (String, Vec<String>) {
        let mut words = Vec::new();
        if let Some(data) = data {
            words.extend(["--data".to_owned(), data.to_string_lossy().into_owned()]);
        }
        if let Some(server) = server {
            words.extend(["--url".to_owned(), server.to_owned()]);
        }
        words.extend(["mcp".to_owned(), "--client".to_owned(), client.word().to_owned()]);
        if let Some(realm) = &self.realm {
            words.extend(["--realm".to_owned(), realm.to_string()]);
        }
        (program(), words)
    }

    fn json(&self, client: Client) -> Value {
        match &self.access {
            Access::Command { server, data } => {
                let (command, args) = self.command(client, server.as_deref(), data.as_deref());
                // Gemini hands its whole environment on, and would hand a name that is not set on as it stands.
                let reference = |name: &str| match client {
                    Client::ClaudeCode => Some(format!("${{{name}:-}}")),
                    Client::Vscode | Client::Cursor => Some(format!("${{env:{name}}}")),
                    Client::Gemini | Client::Codex => None,
                };
                let env: Map<String, Value> = VARIABLES
                    .iter()
                    .filter_map(|name| Some(((*name).to_owned(), reference(name)?.into())))
                    .collect();
                let mut entry = json!({ "command": command, "args": args });
                if client == Client::Vscode {
                    entry["type"] = "stdio".into();
                }
                if !env.is_empty() {
                    entry["env"] = env.into();
                }
                entry
            }
            Access::Http { url } => {
                let url = self.address(url);
                let token = match client {
                    Client::ClaudeCode | Client::Codex => "${POSTHASTE_TOKEN}",
                    Client::Vscode | Client::Cursor => "${env:POSTHASTE_TOKEN}",
                    Client::Gemini => "$POSTHASTE_TOKEN",
                };
                let headers = json!({ "Authorization": format!("Bearer {token}") });
                match client {
                    Client::Gemini => json!({ "httpUrl": url, "headers": headers }),
                    Client::Cursor => json!({ "url": url, "headers": headers }),
                    _ => json!({ "type": "http", "url": url, "headers": headers }),
                }
            }
        }
    }

    fn address(&self, url: &str) -> String {
        let realm = self.realm.as_ref().map(|realm| format!("/r/{realm}")).unwrap_or_default();
        format!("{url}{realm}/mcp")
    }

    fn json_text(&self, client: Client, before: Option<&str>) -> Result<String, String> {
        let list = if client == Client::Vscode { "servers" } else { "mcpServers" };
        let mut whole: Map<String, Value> = match before.map(str::trim).filter(|text| !text.is_empty()) {
            None => Map::new(),
            Some(text) => serde_json::from_str(text).map_err(|error| {
                format!(
                    "the file is not plain JSON ({error}); leave out --write and put the entry in by hand"
                )
            })?,
        };
        let servers = whole.entry(list).or_insert_with(|| json!({}));
        let Some(servers) = servers.as_object_mut() else {
            return Err(format!("`{list}` is not an object"));
        };
        servers.insert(ENTRY.to_owned(), self.json(client));
        Ok(format!("{:#}\n", Value::Object(whole)))
    }

    /// A TOML configuration with our table at the end, in place of an earlier one; nothing else is touched.
    fn toml(&self, before: Option<&str>) -> Result<String, String> {
        let before = before.unwrap_or_default();
        if let Err(error) = before.parse::<toml::Table>() {
            return Err(format!("the file is not TOML: {}", error.message()));
        }
        let head = format!("[mcp_servers.{ENTRY}]");
        let table = match &self.access {
            Access::Http { url } => format!(
                "{head}\nurl = {}\nbearer_token_env_var = \"POSTHASTE_TOKEN\"\n",
                quoted(&self.address(url))
            ),
            Access::Command { server, data } => {
                let (command, args) = self.command(Client::Codex, server.as_deref(), data.as_deref());
                let handed_on = Value::from(VARIABLES.as_slice());
                format!(
                    "{head}\ncommand = {}\nargs = {}\nenv_vars = {handed_on}\n",
                    quoted(&command),
                    Value::from(args)
                )
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
        let kept = if kept.trim().is_empty() { String::new() } else { format!("{}\n\n", kept.trim_end()) };
        Ok(format!("{kept}{table}"))
    }
}

/// This program as a client finds it: by its name if that leads here, else by its path.
fn program() -> String {
    let Ok(own) = std::env::current_exe().and_then(|path| path.canonicalize()) else {
        return ENTRY.to_owned();
    };
    let on_path = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|folder| folder.join(ENTRY)).find(|program| program.is_file())
    });
    match on_path.and_then(|found| found.canonicalize().ok()) {
        Some(found) if found == own => ENTRY.to_owned(),
        _ => own.to_string_lossy().into_owned(),
    }
}

/// The tokens in our entry of a client's file, in any form that was ever written.
pub(super) fn tokens_in(before: &str, data: &Path) -> Vec<Outdated> {
    let whole: Value = match serde_json::from_str(before) {
        Ok(whole) => whole,
        Err(_) => match before.parse::<toml::Table>() {
            Ok(table) => serde_json::to_value(table).unwrap_or_default(),
            Err(_) => return Vec::new(),
        },
    };
    let entries = ["mcpServers", "servers", "mcp_servers"].iter().map(|list| &whole[list][ENTRY]);
    let mut found = Vec::new();
    for entry in entries {
        for headers in ["headers", "http_headers"] {
            let bearer =
                entry[headers]["Authorization"].as_str().and_then(|text| text.strip_prefix("Bearer "));
            let token = bearer.map(str::trim).filter(|token| !token.is_empty() && !token.starts_with('$'));
            found.extend(token.map(|token| Outdated { token: token.to_owned(), file: None }));
        }
        let args: Vec<&str> =
            entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let file = args.iter().position(|word| *word == "--token-file").and_then(|at| args.get(at + 1));
        let Some(file) = file.map(PathBuf::from) else { continue };
        // Only the files that this program made: a file of the user's own may be in use elsewhere.
        if file.parent() == Some(&data.join("clients"))
            && let Ok(text) = std::fs::read_to_string(&file)
        {
            found.push(Outdated { token: text.trim().to_owned(), file: Some(file) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry { access: Access::Http { url: "https://mail.test".to_owned() }, realm: None }
    }

    #[test]
    fn others_entries_stay() {
        let before = r#"{"theme":"dark","mcpServers":{"other":{"command":"x"},"posthaste":{"url":"old"}}}"#;
        let text = entry().text(Client::Cursor, Some(before)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["theme"], "dark");
        assert_eq!(value["mcpServers"]["other"]["command"], "x");
        assert_eq!(value["mcpServers"]["posthaste"]["url"], "https://mail.test/mcp");
        assert_eq!(
            value["mcpServers"]["posthaste"]["headers"]["Authorization"],
            "Bearer ${env:POSTHASTE_TOKEN}"
        );
        assert!(entry().text(Client::Vscode, Some("{ // comment\n}")).is_err());
        assert!(entry().text(Client::Vscode, Some(r#"{"servers":[]}"#)).is_err());
    }

    #[test]
    fn a_toml_file_keeps_its_comments_and_gets_one_table() {
        let before = "# mine\nmodel = \"o\"\n\n[mcp_servers.posthaste]\nurl = \"old\"\n\n[mcp_servers.other]\ncommand = \"x\"\n";
        let once = entry().text(Client::Codex, Some(before)).unwrap();
        let twice = entry().text(Client::Codex, Some(&once)).unwrap();
        assert_eq!(once, twice, "writing it again changes nothing");
        assert!(once.starts_with("# mine\nmodel"), "{once}");
        assert_eq!(twice.matches("[mcp_servers.posthaste]").count(), 1);
        let table: toml::Table = twice.parse().unwrap();
        assert_eq!(table["mcp_servers"]["other"]["command"].as_str(), Some("x"));
        assert_eq!(
            table["mcp_servers"]["posthaste"]["bearer_token_env_var"].as_str(),
            Some("POSTHASTE_TOKEN")
        );
        assert!(entry().text(Client::Codex, None).unwrap().parse::<toml::Table>().is_ok());
        let local = Entry { access: Access::Command { server: None, data: None }, realm: None };
        assert!(local.text(Client::Codex, None).unwrap().parse::<toml::Table>().is_ok());
    }

    // F10: what an earlier version wrote is found, so that it can be ended.
    #[test]
    fn tokens_of_an_earlier_entry_are_found() {
        let data = tempfile::tempdir().unwrap();
        let clients = data.path().join("clients");
        std::fs::create_dir(&clients).unwrap();
        let file = clients.join("old.token");
        std::fs::write(&file, "ph_file\n").unwrap();
        let json = json!({ "mcpServers": { "posthaste": { "headers": { "Authorization": "Bearer ph_text" } },
            "other": { "headers": { "Authorization": "Bearer theirs" } } } });
        let found = tokens_in(&json.to_string(), data.path());
        assert_eq!(found, [Outdated { token: "ph_text".to_owned(), file: None }]);
        let toml = format!(
            "[mcp_servers.posthaste]\nargs = [\"mcp\", \"--token-file\", {}]\n",
            quoted(&file.to_string_lossy())
        );
        assert_eq!(
            tokens_in(&toml, data.path()),
            [Outdated { token: "ph_file".to_owned(), file: Some(file) }]
        );
        let now = entry().text(Client::ClaudeCode, None).unwrap();
        assert!(tokens_in(&now, data.path()).is_empty(), "a reference is no token");
    }
}
