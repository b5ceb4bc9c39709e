//! `posthaste context`: servers by name, and which one commands use.

use std::io::{IsTerminal, Read};

use posthaste_engine::nouns::RealmName;
use serde::Serialize;
use std::path::PathBuf;

use super::args::read_token;
use super::args::{ContextAddArgs, ContextCommand, GlobalArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table, text_of};
use super::target::contexts::{Context, Contexts, hint};
use super::target::{Target, checked};
use crate::config::Config;
use crate::serve::Whereabouts;

/// The longest token that is read from standard input.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

pub(super) fn run(global: &GlobalArgs, command: &ContextCommand, output: &Output) -> Result<(), Failure> {
    match command {
        ContextCommand::Add(given) => add(global, given, output),
        ContextCommand::List => list(output),
        ContextCommand::Use { name, .. } => choose(name.as_deref(), output),
        ContextCommand::Show { name: Some(name) } => show_one(name, output),
        ContextCommand::Show { name: None } => show(global, output),
        ContextCommand::Remove { name } => remove(name, output),
    }
}

fn add(global: &GlobalArgs, given: &ContextAddArgs, output: &Output) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if given.name.is_empty() || given.name.len() > 64 || !given.name.chars().all(is_plain) {
        let text = format!("{:?} is not a name for a context: use a-z, A-Z, 0-9, - _ and .", given.name);
        return Err(Failure::new(Exit::Usage, text));
    }
    let url = checked(&given.address)?;
    let realm = given.realm.as_deref().map(RealmName::new).transpose();
    let realm = realm.map_err(|error| Failure::new(Exit::Usage, format!("--realm: {error}")))?;
    let mut contexts = Contexts::load()?;
    if contexts.contexts.contains_key(&given.name) && !given.force {
        let text = format!("there is a context {} already; --force replaces it", given.name);
        return Err(Failure::new(Exit::Usage, text));
    }
    let token = token(global)?;
    let has_token = token.is_some();
    contexts.contexts.insert(given.name.clone(), Context { url: url.clone(), token, realm });
    let file = contexts.save()?;
    if output.is_json() {
        return output.json(&Added { name: &given.name, url: &url, token: has_token, file });
    }
    output.line(&format!("{} is {url}; kept in {}", given.name, file.display()))?;
    if !has_token {
        eprintln!("no token is kept with it: give one with --token-file FILE, or on standard input");
    }
    Ok(())
}

/// The token of the flags, else of standard input, unless that is a terminal.
fn token(global: &GlobalArgs) -> Result<Option<String>, Failure> {
    if let Some(token) = &global.token {
        return Ok(Some(token.trim().to_owned()));
    }
    if let Some(file) = &global.token_file {
        return read_token(file).map(Some);
    }
    let input = std::io::stdin();
    if input.is_terminal() {
        return Ok(None);
    }
    let mut text = String::new();
    input.lock().take(MAX_TOKEN_BYTES).read_to_string(&mut text)?;
    let token = text.trim();
    if token.contains(char::is_whitespace) {
        return Err(Failure::new(
            Exit::Usage,
            "standard input holds more than one word; a token is expected",
        ));
    }
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

fn list(output: &Output) -> Result<(), Failure> {
    let contexts = Contexts::load()?;
    let current = contexts.current.as_deref();
    if output.is_json() {
        let rows: Vec<Row<'_>> =
            contexts.contexts.iter().map(|(name, context)| Row::new(name, context, current)).collect();
        return output.json(&rows);
    }
    let mut table = Table::new(["", "NAME", "URL", "REALM", "TOKEN"]);
    for (name, context) in &contexts.contexts {
        let is_current = current == Some(name);
        let realm = context.realm.as_ref().map_or("-".to_owned(), ToString::to_string);
        let token = context.token.as_deref().map_or("-".to_owned(), hint);
        let style = if is_current { Style::Bold } else { Style::Plain };
        let star = if is_current { "*" } else { "" };
        table.row([star.to_owned(), name.clone(), context.url.clone(), realm, token], style);
    }
    Ok(output.table(&table)?)
}

/// A context as it is shown.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    url: &'a str,
    realm: Option<&'a RealmName>,
    /// The beginning of the token.
    token: Option<String>,
    current: bool,
}

impl<'a> Row<'a> {
    fn new(name: &'a str, context: &'a Context, current: Option<&str>) -> Self {
        Self {
            name,
            url: &context.url,
            realm: context.realm.as_ref(),
            token: context.token.as_deref().map(hint),
            current: current == Some(name),
        }
    }
}

/// A context that was added, as `--json` prints it.
#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    url: &'a str,
    token: bool,
    file: PathBuf,
}

/// The context in use, as `--json` prints it.
#[derive(Serialize)]
struct Chosen<'a> {
    current: Option<&'a str>,
    url: Option<String>,
}

/// A context that was removed, as `--json` prints it.
#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a str,
    was_current: bool,
}

fn choose(name: Option<&str>, output: &Output) -> Result<(), Failure> {
    let mut contexts = Contexts::load()?;
    let url = name.map(|name| contexts.get(name).map(|context| context.url.clone())).transpose()?;
    contexts.current = name.map(str::to_owned);
    contexts.save()?;
    if output.is_json() {
        return output.json(&Chosen { current: name, url });
    }
    let server = match (name, url) {
        (Some(name), Some(url)) => format!("{name} ({url})"),
        _ => "the server of the data directory".to_owned(),
    };
    Ok(output.line(&format!("commands talk to {server} from now on"))?)
}

fn show_one(name: &str, output: &Output) -> Result<(), Failure> {
    let contexts = Contexts::load()?;
    let row = Row::new(name, contexts.get(name)?, contexts.current.as_deref());
    if output.is_json() {
        return output.json(&row);
    }
    show_members(
        [
            ("name", text_of(row.name)),
            ("url", text_of(row.url)),
            ("realm", text_of(row.realm)),
            ("token", text_of(&row.token)),
            ("current", text_of(row.current)),
        ],
        output,
    )
}

fn show(global: &GlobalArgs, output: &Output) -> Result<(), Failure> {
    let server = chosen_server(global, &OfficeArgs::default())?;
    if output.is_json() {
        return output.json(&server);
    }
    show_members(
        [
            ("url", text_of(&server.url)),
            ("named", server.named.clone()),
            ("token", text_of(&server.token)),
            ("token named", server.token_named.clone()),
            ("realm", text_of(&server.realm)),
            ("data", text_of(&server.data)),
        ],
        output,
    )
}

fn show_members<const N: usize>(members: [(&str, String); N], output: &Output) -> Result<(), Failure> {
    let mut table = Table::bare();
    for (member, value) in members {
        table.row([member.to_owned(), value], Style::Plain);
    }
    Ok(output.table(&table)?)
}

/// The server that commands use under these flags, and how it was chosen.
#[derive(Serialize)]
pub(super) struct ChosenServer {
    /// Its address; null if commands work on the data directory themselves.
    pub(super) url: Option<String>,
    /// Where it was named.
    pub(super) named: String,
    /// The beginning of the token.
    token: Option<String>,
    token_named: String,
    realm: Option<RealmName>,
    data: PathBuf,
}

impl ChosenServer {
    /// The address of the server, or the data directory.
    pub(super) fn address(&self) -> String {
        self.url.clone().unwrap_or_else(|| text_of(&self.data))
    }
}

/// The server that commands use under these flags. Calls no server.
pub(super) fn chosen_server(global: &GlobalArgs, flags: &OfficeArgs) -> Result<ChosenServer, Failure> {
    let target = Target::of(global)?;
    let config = Config::load(global, flags, &|name| std::env::var_os(name))?;
    let running = Whereabouts::live(&config.data.value).map(|running| running.url);
    let (url, named) = match (&target.url, &running) {
        (Some(url), _) => (Some(url.clone()), target.url_from.describe()),
        (None, Some(url)) => (Some(url.clone()), "by the data directory, whose server is running".to_owned()),
        (None, None) => (None, "no server is running; commands work on the data directory itself".to_owned()),
    };
    let is_own = url == running;
    let (token, token_named) = match (&target.token, &target.token_from) {
        (Some(token), Some(from)) => (Some(hint(token)), from.describe()),
        _ if is_own => (None, "the admin key of the data directory".to_owned()),
        _ => (None, "none".to_owned()),
    };
    let realm = target.realm(&config);
    Ok(ChosenServer { url, named, token, token_named, realm, data: config.data.value })
}

fn remove(name: &str, output: &Output) -> Result<(), Failure> {
    let mut contexts = Contexts::load()?;
    contexts.get(name)?;
    contexts.contexts.remove(name);
    let was_current = contexts.current.as_deref() == Some(name);
    if was_current {
        contexts.current = None;
    }
    contexts.save()?;
    if output.is_json() {
        return output.json(&Removed { removed: name, was_current });
    }
    output.line(&format!("{name} is forgotten"))?;
    if was_current {
        eprintln!("commands talk to the server of the data directory from now on");
    }
    Ok(())
}
