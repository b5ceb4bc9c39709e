//! `posthaste context`: servers by name, and which one is meant.

use std::io::{IsTerminal, Read};

use posthaste_engine::nouns::RealmName;
use serde_json::{Value, json};

use super::args::{ContextAddArgs, ContextCommand, GlobalArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::mail_args::read_token;
use super::output::{Output, Style, Table};
use super::target::contexts::{Context, Contexts, hint};
use super::target::{Target, checked};
use crate::config::Config;
use crate::serve::Whereabouts;

/// The longest token that is read from standard input.
const MOST_TOKEN: u64 = 64 << 10;

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
        let text = format!("{:?} is not a name for a context: use letters, digits, - _ and .", given.name);
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
        return output.json(&json!({ "name": given.name, "url": url, "token": has_token, "file": file }));
    }
    output.line(&format!("{} is {url}; kept in {}", given.name, file.display()))?;
    if !has_token {
        eprintln!("no token is kept with it: give one with --token-file FILE, or on standard input");
    }
    Ok(())
}

/// The token of the flags, else what stands on standard input, unless that is a terminal.
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
    input.lock().take(MOST_TOKEN).read_to_string(&mut text)?;
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
        let rows: Vec<Value> =
            contexts.contexts.iter().map(|(name, context)| as_json(name, context, current)).collect();
        return output.json(&rows);
    }
    let mut table = Table::new(["", "NAME", "URL", "REALM", "TOKEN"]);
    for (name, context) in &contexts.contexts {
        let is_current = current == Some(name);
        let realm = context.realm.as_ref().map_or("-".to_owned(), ToString::to_string);
        let token = context.token.as_deref().map_or("-".to_owned(), hint);
        let style = if is_current { Style::Bold } else { Style::Plain };
        let mark = if is_current { "*" } else { "" };
        table.row([mark.to_owned(), name.clone(), context.url.clone(), realm, token], style);
    }
    Ok(output.table(&table)?)
}

fn as_json(name: &str, context: &Context, current: Option<&str>) -> Value {
    json!({
        "name": name, "url": context.url, "realm": context.realm, "token": context.token.as_deref().map(hint),
        "current": current == Some(name),
    })
}

fn choose(name: Option<&str>, output: &Output) -> Result<(), Failure> {
    let mut contexts = Contexts::load()?;
    let url = name.map(|name| contexts.get(name).map(|context| context.url.clone())).transpose()?;
    contexts.current = name.map(str::to_owned);
    contexts.save()?;
    if output.is_json() {
        return output.json(&json!({ "current": name, "url": url }));
    }
    let server = match (name, url) {
        (Some(name), Some(url)) => format!("{name} ({url})"),
        _ => "the server of the data directory".to_owned(),
    };
    Ok(output.line(&format!("commands talk to {server} from now on"))?)
}

fn show_one(name: &str, output: &Output) -> Result<(), Failure> {
    let contexts = Contexts::load()?;
    let value = as_json(name, contexts.get(name)?, contexts.current.as_deref());
    if output.is_json() {
        return output.json(&value);
    }
    let mut table = Table::bare();
    for field in ["name", "url", "realm", "token", "current"] {
        table.row([field.to_owned(), plain(&value[field])], Style::Plain);
    }
    Ok(output.table(&table)?)
}

fn show(global: &GlobalArgs, output: &Output) -> Result<(), Failure> {
    let value = meant(global, &OfficeArgs::default())?;
    if output.is_json() {
        return output.json(&value);
    }
    let mut table = Table::bare();
    for field in ["url", "named", "token", "token_named", "realm", "data"] {
        table.row([field.replace('_', " "), plain(&value[field])], Style::Plain);
    }
    Ok(output.table(&table)?)
}

/// Which server commands talk to as things stand, and why. Asks no server.
pub(super) fn meant(global: &GlobalArgs, office: &OfficeArgs) -> Result<Value, Failure> {
    let target = Target::of(global)?;
    let config = Config::load(global, office, &|name| std::env::var_os(name))?;
    let data = &config.data.value;
    let running = Whereabouts::live(data).map(|running| running.url);
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
    Ok(json!({
        "url": url, "named": named, "token": token, "token_named": token_named,
        "realm": target.realm(&config), "data": data,
    }))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
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
        return output.json(&json!({ "removed": name, "was_current": was_current }));
    }
    output.line(&format!("{name} is forgotten"))?;
    if was_current {
        eprintln!("commands talk to the server of the data directory from now on");
    }
    Ok(())
}
