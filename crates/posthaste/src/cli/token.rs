//! `posthaste token`: keys to the office.

use std::time::Duration;

use posthaste_engine::stamp;
use serde_json::{Value, json};

use super::args::{GlobalArgs, TokenCommand, TokenCreateArgs, TokenRole};
use super::desk::Desk;
use super::exit::Failure;
use super::output::{Output, Style, Table};
use super::runtime;
use crate::config::Config;

pub(super) fn run(global: &GlobalArgs, command: &TokenCommand, output: &Output) -> Result<(), Failure> {
    let realm = match command {
        TokenCommand::Create(create) => &create.realm,
        TokenCommand::List(realm) | TokenCommand::Revoke { realm, .. } => realm,
    };
    let config = Config::load(global, &realm.office(), &|name| std::env::var_os(name))?;
    runtime()?.block_on(async {
        let desk = Desk::open(&config).await?;
        let done = match command {
            TokenCommand::Create(create) => make(&desk, create, output).await,
            TokenCommand::List(_) => list(&desk, output).await,
            TokenCommand::Revoke { id, .. } => revoke(&desk, id, output).await,
        };
        desk.close().await;
        done
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

async fn list(desk: &Desk, output: &Output) -> Result<(), Failure> {
    let answer = desk.call("token.list", json!({})).await?;
    if output.is_json() {
        return output.json(&answer["tokens"]);
    }
    let mut table = Table::new(["ID", "ROLE", "NAME", "DOOR", "MADE", "ENDS", "STATE"]);
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
        table.row([id, role, name, door, made, ends, state.to_owned()], style);
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
