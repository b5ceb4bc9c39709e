//! `posthaste token`: makes, lists and revokes access tokens.

use posthaste_engine::stamp;
use posthaste_wire::control::{
    NoParams, Token, TokenCreateParams, TokenCreateResult, TokenListResult, TokenRevokeParams,
    TokenRole as Role,
};
use serde::Serialize;

use super::args::{GlobalArgs, TokenCommand, TokenCreateArgs, TokenRole};
use super::client_tokens;
use super::exit::{Exit, Failure};
use super::output::{Output, Page, Style, Table, printable, short_time, text_of};
use super::realm_access::{Purpose, RealmAccess, with_realm_for};
use super::send::from_now;
use super::table::distinct_prefix;

/// A token in a list, as `--json` prints it.
#[derive(Serialize)]
struct ListedToken<'a> {
    #[serde(flatten)]
    token: &'a Token,
    /// The client and directory of this machine that it was made for.
    made_for: Option<&'a String>,
}

pub(super) fn run(global: &GlobalArgs, command: &TokenCommand, output: &Output) -> Result<(), Failure> {
    let (realm, purpose) = match command {
        TokenCommand::Create(create) => (&create.realm, Purpose::Make),
        TokenCommand::List(realm) | TokenCommand::Revoke { realm, .. } => (realm, Purpose::Look),
    };
    with_realm_for(purpose, global, realm, async |realm| match command {
        TokenCommand::Create(create) => make(realm, create, output).await,
        TokenCommand::List(_) => list(global, realm, output).await,
        TokenCommand::Revoke { id, name, yes, .. } => {
            revoke(realm, id.as_deref(), name.as_deref(), *yes, output).await
        }
    })
}

async fn make(realm: &RealmAccess, create: &TokenCreateArgs, output: &Output) -> Result<(), Failure> {
    let role = match create.role {
        TokenRole::Admin => Role::Admin,
        TokenRole::User => Role::User,
        TokenRole::Agent => Role::Agent,
    };
    let params = TokenCreateParams {
        role,
        name: create.name.clone(),
        observe: create.observe,
        expires_at: create.expires.map(from_now),
    };
    let made: TokenCreateResult = realm.call("token.create", params).await?;
    if output.is_json() {
        return output.json(&made);
    }
    // The token and nothing else, so that a script can take it as it is.
    Ok(output.line(&made.token)?)
}

async fn list(global: &GlobalArgs, realm: &RealmAccess, output: &Output) -> Result<(), Failure> {
    let TokenListResult { tokens } = realm.call("token.list", NoParams {}).await?;
    // Only this machine knows which client a token was made for.
    let clients = client_tokens::known(global);
    let rows: Vec<ListedToken<'_>> =
        tokens.iter().map(|token| ListedToken { token, made_for: clients.get(&token.id) }).collect();
    if output.is_json() {
        return output.json(&Page::only("tokens", &rows));
    }
    let mut table = Table::new(["ID", "ROLE", "NAME", "DOOR", "MADE", "ENDS", "STATE", "FOR"]);
    let ids: Vec<&str> = tokens.iter().map(|token| token.id.as_str()).collect();
    // A person needs enough of an id to revoke the token by it; a script gets all of it.
    let shown = if output.is_terminal() { distinct_prefix(&ids) } else { usize::MAX };
    for ListedToken { token, made_for } in &rows {
        let state = state_of(token);
        let style = if state == "valid" { Style::Plain } else { Style::Dim };
        let role = text_of(token.role);
        let row = [
            token.id.chars().take(shown).collect(),
            if token.observe { format!("{role}, observes") } else { role },
            token.name.clone(),
            token.door.as_deref().unwrap_or("all").to_owned(),
            short_time(token.created_at.as_str()),
            short_time(token.expires_at.as_deref()),
            state.to_owned(),
            made_for.cloned().unwrap_or_default(),
        ];
        table.row(row, style);
    }
    Ok(output.table(&table)?)
}

fn state_of(token: &Token) -> &'static str {
    let now = posthaste_wire::time::to_rfc3339(stamp::now());
    let ended = token.expires_at.as_ref().is_some_and(|end| *end <= now);
    match (token.revoked_at.is_some(), ended) {
        (true, _) => "revoked",
        (false, true) => "expired",
        (false, false) => "valid",
    }
}

async fn revoke(
    realm: &RealmAccess,
    id: Option<&str>,
    name: Option<&str>,
    yes: bool,
    output: &Output,
) -> Result<(), Failure> {
    let TokenListResult { tokens } = realm.call("token.list", NoParams {}).await?;
    let chosen = match (id, name) {
        (_, Some(name)) => by_name(&tokens, name, yes)?,
        (Some(id), None) => vec![by_id(&tokens, id)?],
        (None, None) => return Err(Failure::new(Exit::Usage, "which? give an id or --name")),
    };
    let mut revoked: Vec<Token> = Vec::new();
    for token in &chosen {
        let params = TokenRevokeParams { id: Some(token.id.clone()), token: None };
        revoked.push(realm.call("token.revoke", params).await?);
    }
    if output.is_json() {
        return match (name, revoked.as_slice()) {
            (None, [one]) => output.json(one),
            _ => output.json(&Page::only("tokens", &revoked)),
        };
    }
    for Token { id, name, .. } in &revoked {
        output.line(&printable(&format!("{id} ({name}) is revoked")))?;
    }
    Ok(())
}

/// The token with an id, or the only one whose id begins so.
fn by_id<'a>(tokens: &'a [Token], id: &str) -> Result<&'a Token, Failure> {
    if let Some(exact) = tokens.iter().find(|token| token.id == id) {
        return Ok(exact);
    }
    let begins = |token: &&Token| !id.is_empty() && token.id.starts_with(id);
    let alike: Vec<&Token> = tokens.iter().filter(begins).collect();
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
fn by_name<'a>(tokens: &'a [Token], name: &str, yes: bool) -> Result<Vec<&'a Token>, Failure> {
    let valid = |token: &&Token| token.name == name && state_of(token) == "valid";
    let chosen: Vec<&Token> = tokens.iter().filter(valid).collect();
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
fn listed(tokens: &[&Token]) -> String {
    let one = |token: &&Token| format!("{} (made {})", token.id, short_time(token.created_at.as_str()));
    tokens.iter().take(8).map(one).collect::<Vec<_>>().join(", ")
}
