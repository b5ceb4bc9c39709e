//! `posthaste token`: keys to the server.

use std::time::Duration;

use posthaste_engine::stamp;
use serde_json::{Value, json};

use super::args::{GlobalArgs, TokenCommand, TokenCreateArgs, TokenRole};
use super::clients;
use super::desk::{Desk, Purpose, at_desk_for};
use super::exit::Failure;
use super::mail_args::DeskArgs;
use super::output::{Output, Style, Table};

pub(super) fn run(global: &GlobalArgs, command: &TokenCommand, output: &Output) -> Result<(), Failure> {
    let (realm, purpose) = match command {
        TokenCommand::Create(create) => (&create.realm, Purpose::Make),
        TokenCommand::List(realm) | TokenCommand::Revoke { realm, .. } => (realm, Purpose::Look),
    };
    let realm = DeskArgs { realm: realm.realm.clone() };
    at_desk_for(purpose, global, &realm, async |desk| match command {
        TokenCommand::Create(create) => make(desk, create, output).await,
        TokenCommand::List(_) => list(global, desk, output).await,
        TokenCommand::Revoke { id, .. } => revoke(desk, id, output).await,
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
        return output.json(&answer["tokens"]);
    }
    let mut table = Table::new(["ID", "ROLE", "NAME", "DOOR", "MADE", "ENDS", "STATE", "FOR"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let now = posthaste_wire::time::to_rfc3339(stamp::now());
    for token in answer["tokens"].as_array().into_iter().flatten() {
        let ended = token["expires_at"].as_str().is_some_and(|end| end <= now.as_str());
        let (state, style) = match (token["revoked_at"].is_string(), ended) {
            (true, _) => ("revoked", Style::Dim),
            (false, true) => ("expired", Style::Dim),
            (false, false) => ("valid", Style::Plain),
        };
        let cells = ["id", "role", "name", "created_at", "expires_at"].map(|field| text(&token[field]));
        let [id, role, name, made, ends] = cells;
        let role = if token["observe"] == true { format!("{role}, observes") } else { role };
        let door = token["door"].as_str().unwrap_or("all").to_owned();
        let made_for = token["made_for"].as_str().unwrap_or_default().to_owned();
        table.row([id, role, name, door, made, ends, state.to_owned(), made_for], style);
    }
    Ok(output.table(&table)?)
}

async fn revoke(desk: &Desk, id: &str, output: &Output) -> Result<(), Failure> {
    let revoked = desk.call("token.revoke", json!({ "id": id })).await?;
    if output.is_json() {
        return output.json(&revoked);
    }
    Ok(output.line(&format!("{id} opens no door any more"))?)
}
