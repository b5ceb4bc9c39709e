//! `posthaste token`: keys to the server.

use std::time::Duration;

use posthaste_engine::stamp;
use serde_json::{Value, json};

use super::args::{GlobalArgs, TokenCommand, TokenCreateArgs, TokenRole};
use super::clients;
use super::desk::{Desk, Purpose, at_desk_for};
use super::exit::{Exit, Failure};
use super::mail_args::DeskArgs;
use super::output::{Output, Style, Table, printable, short_time, text_of};
use super::table::telling;

pub(super) fn run(global: &GlobalArgs, command: &TokenCommand, output: &Output) -> Result<(), Failure> {
    let (realm, purpose) = match command {
        TokenCommand::Create(create) => (&create.realm, Purpose::Make),
        TokenCommand::List(realm) | TokenCommand::Revoke { realm, .. } => (realm, Purpose::Look),
    };
    let realm = DeskArgs { realm: realm.realm.clone() };
    at_desk_for(purpose, global, &realm, async |desk| match command {
        TokenCommand::Create(create) => make(desk, create, output).await,
        TokenCommand::List(_) => list(global, desk, output).await,
        TokenCommand::Revoke { id, name, yes, .. } => {
            revoke(desk, id.as_deref(), name.as_deref(), *yes, output).await
        }
    })
}

async fn make(desk: &Desk, create: &TokenCreateArgs, output: &Output) -> Result<(), Failure> {
    let role = match create.role {
        TokenRole::Admin => "admin",
        TokenRole::User => "user",
        TokenRole::Agent => "agent",
    };
    let expires_at = create.expires.map(from_now);
    let made = desk
        .call(
            "token.create",
            json!({ "role": role, "name": create.name, "observe": create.observe, "expires_at": expires_at }),
        )
        .await?;
    if output.is_json() {
        return output.json(&made);
    }
    // The token and nothing else, so that a script can take it as it is.
    Ok(output.line(made["token"].as_str().unwrap_or_default())?)
}

fn from_now(span: Duration) -> i64 {
    stamp::now().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

async fn list(global: &GlobalArgs, desk: &Desk, output: &Output) -> Result<(), Failure> {
    let mut answer = desk.call("token.list", json!({})).await?;
    // What a token of this machine's clients was made for is known here only.
    let clients = clients::known(global);
    for token in answer["tokens"].as_array_mut().into_iter().flatten() {
        let made_for = token["id"].as_str().and_then(|id| clients.get(id));
        token["made_for"] = json!(made_for);
    }
    if output.is_json() {
        return output.json(&json!({ "tokens": answer["tokens"], "next": null }));
    }
    let mut table = Table::new(["ID", "ROLE", "NAME", "DOOR", "MADE", "ENDS", "STATE", "FOR"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let ids = answer["tokens"].as_array().into_iter().flatten().filter_map(|token| token["id"].as_str());
    // A person needs enough of an id to revoke the token by it; a script gets all of it.
    let telling = if output.is_terminal() { telling(&ids.collect::<Vec<_>>()) } else { usize::MAX };
    for token in answer["tokens"].as_array().into_iter().flatten() {
        let state = state_of(token);
        let style = if state == "valid" { Style::Plain } else { Style::Dim };
        let [id, role, name] = ["id", "role", "name"].map(|field| text(&token[field]));
        let [made, ends] = ["created_at", "expires_at"].map(|field| short_time(&token[field]));
        let id = id.chars().take(telling).collect();
        let role = if token["observe"] == true { format!("{role}, observes") } else { role };
        let door = token["door"].as_str().unwrap_or("all").to_owned();
        let made_for = token["made_for"].as_str().unwrap_or_default().to_owned();
        table.row([id, role, name, door, made, ends, state.to_owned(), made_for], style);
    }
    Ok(output.table(&table)?)
}

fn state_of(token: &Value) -> &'static str {
    let now = posthaste_wire::time::to_rfc3339(stamp::now());
    let ended = token["expires_at"].as_str().is_some_and(|end| end <= now.as_str());
    match (token["revoked_at"].is_string(), ended) {
        (true, _) => "revoked",
        (false, true) => "expired",
        (false, false) => "valid",
    }
}

async fn revoke(
    desk: &Desk,
    id: Option<&str>,
    name: Option<&str>,
    yes: bool,
    output: &Output,
) -> Result<(), Failure> {
    let answer = desk.call("token.list", json!({})).await?;
    let tokens = answer["tokens"].as_array().map_or(&[][..], Vec::as_slice);
    let chosen = match (id, name) {
        (_, Some(name)) => by_name(tokens, name, yes)?,
        (Some(id), None) => vec![by_id(tokens, id)?],
        (None, None) => return Err(Failure::new(Exit::Usage, "which? give an id or --name")),
    };
    let mut revoked = Vec::new();
    for token in &chosen {
        revoked.push(desk.call("token.revoke", json!({ "id": token["id"] })).await?);
    }
    if output.is_json() {
        return match (name, revoked.as_slice()) {
            (None, [one]) => output.json(one),
            _ => output.json(&json!({ "tokens": revoked, "next": null })),
        };
    }
    for token in &revoked {
        let [id, name] = ["id", "name"].map(|field| text_of(&token[field]));
        output.line(&printable(&format!("{id} ({name}) is revoked")))?;
    }
    Ok(())
}

/// The token with an id, or the only one whose id begins so.
fn by_id<'a>(tokens: &'a [Value], id: &str) -> Result<&'a Value, Failure> {
    if let Some(exact) = tokens.iter().find(|token| token["id"] == id) {
        return Ok(exact);
    }
    let begins =
        |token: &&Value| !id.is_empty() && token["id"].as_str().is_some_and(|whole| whole.starts_with(id));
    let alike: Vec<&Value> = tokens.iter().filter(begins).collect();
    match alike.as_slice() {
        [] => Err(Failure::new(Exit::NotFound, format!("there is no token {id}"))),
        [one] => Ok(one),
        several => {
            let text =
                format!("the ids of several tokens begin with {id}: {}; give more of it", listed(several));
            Err(Failure::new(Exit::Usage, text))
        }
    }
}

/// The valid tokens of a name. Several are revoked only if that was asked for.
fn by_name<'a>(tokens: &'a [Value], name: &str, yes: bool) -> Result<Vec<&'a Value>, Failure> {
    let valid = |token: &&Value| token["name"] == name && state_of(token) == "valid";
    let chosen: Vec<&Value> = tokens.iter().filter(valid).collect();
    match chosen.len() {
        0 => Err(Failure::new(Exit::NotFound, format!("there is no valid token of the name {name}"))),
        1 => Ok(chosen),
        _ if yes => Ok(chosen),
        count => {
            let text = format!(
                "{count} valid tokens have the name {name}: {}; --yes revokes them all",
                listed(&chosen)
            );
            Err(Failure::new(Exit::Usage, text))
        }
    }
}

/// The first of them, with when they were made.
fn listed(tokens: &[&Value]) -> String {
    let one =
        |token: &&Value| format!("{} (made {})", text_of(&token["id"]), short_time(&token["created_at"]));
    tokens.iter().take(8).map(one).collect::<Vec<_>>().join(", ")
}
