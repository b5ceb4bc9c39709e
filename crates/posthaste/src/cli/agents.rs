//! `posthaste agents`, `agent`, `register`, `contacts` and `whoami`: the directory of agents, and the contacts between them.

use posthaste_wire::control::{
    AgentKind, AgentParams, AgentRemoveParams, AgentRemoveResult, AgentResult, AgentsParams, AgentsResult,
    Contact, ContactEndResult, ContactParams, ContactState, ContactsParams, ContactsResult, PageSize,
    RegisterParams, RegisterResult,
};
use serde::Serialize;

use super::args::{
    AgentCommand, ContactCommand, ContactsArgs, GlobalArgs, ListArgs, RealmArgs, RegisterArgs,
};
use super::context;
use super::exit::Failure;
use super::output::{Output, Page, Style, Table, short_time, text_of};
use super::realm_access::{Purpose, RealmAccess, agent, with_realm, with_realm_for};

pub(super) fn agents(global: &GlobalArgs, args: &ListArgs, output: &Output) -> Result<(), Failure> {
    with_realm(global, &args.realm, async |realm| {
        let params = AgentsParams { after: args.next.clone(), limit: PageSize(args.limit as usize) };
        let page: AgentsResult = realm.call("agents", params).await?;
        if output.is_json() {
            return output.json(&page);
        }
        let mut table = Table::new(["ID", "KIND", "NAME", "ROLE", "STATE", "CONNECTED", "DOOR", "SINCE"]);
        for listed in &page.agents {
            let one = &listed.agent;
            let connected = if listed.connected { "yes" } else { "no" }.to_owned();
            let row = [
                one.id.clone(),
                text_of(one.kind),
                text_of(&one.name),
                text_of(&one.role),
                one.state.clone(),
                connected,
                text_of(&one.door),
                short_time(one.created_at.as_str()),
            ];
            table.row(row, Style::Plain);
        }
        output.table(&table)?;
        args.say_more(page.next.as_ref());
        Ok(())
    })
}

pub(super) fn agent_command(
    global: &GlobalArgs,
    command: &AgentCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        AgentCommand::Show { name, realm } => show(global, realm, name, output),
        AgentCommand::Remove { name, force, realm } => remove(global, realm, name, *force, output),
    }
}

fn show(global: &GlobalArgs, realm: &RealmArgs, name: &str, output: &Output) -> Result<(), Failure> {
    with_realm(global, realm, async |realm| {
        let found: AgentResult = realm.call("agent", AgentParams { agent: name.to_owned() }).await?;
        if output.is_json() {
            return output.json(&found);
        }
        let (listed, one) = (&found.listed, &found.listed.agent);
        let connected = match listed.connected {
            true => format!("yes, by {}", listed.connected_by.join(", ")),
            false => "no".to_owned(),
        };
        let rows = [
            ("id", one.id.clone()),
            ("kind", text_of(one.kind)),
            ("name", text_of(&one.name)),
            ("role", text_of(&one.role)),
            ("state", one.state.clone()),
            ("connected", connected),
            ("last seen", short_time(listed.last_seen.as_deref())),
            ("door", text_of(&one.door)),
            ("owner", text_of(&one.owner)),
            ("unread", text_of(found.unread)),
            ("not delivered", text_of(found.waiting)),
            ("since", short_time(one.created_at.as_str())),
        ];
        let mut table = Table::bare();
        for (what, value) in rows {
            if !value.is_empty() && value != "-" {
                table.row([what.to_owned(), value], Style::Plain);
            }
        }
        Ok(output.table(&table)?)
    })
}

fn remove(
    global: &GlobalArgs,
    realm: &RealmArgs,
    name: &str,
    force: bool,
    output: &Output,
) -> Result<(), Failure> {
    with_realm(global, realm, async |realm| {
        let params = AgentRemoveParams { agent: name.to_owned(), force };
        let done: AgentRemoveResult = realm.call("agent.remove", params).await?;
        if output.is_json() {
            return output.json(&done);
        }
        output
            .line(&format!("{name} is removed from the address book; its messages stay in the event log"))?;
        if let Some(waiting) = done.waiting.filter(|waiting| *waiting > 0) {
            output.line(&format!("{waiting} of its messages were not delivered"))?;
        }
        for token in &done.tokens {
            output.line(&format!(
                "a valid token carries this name, so mail to it waits again; to end that: posthaste token revoke {token}"
            ))?;
        }
        Ok(())
    })
}

pub(super) fn register(global: &GlobalArgs, args: &RegisterArgs, output: &Output) -> Result<(), Failure> {
    with_realm_for(Purpose::Make, global, &args.realm, async |realm| {
        let id = match &args.name {
            Some(name) => name.clone(),
            None => realm.whoami().await?.name,
        };
        let kind = args.kind.as_deref().map(|kind| match kind {
            "user" => AgentKind::User,
            _ => AgentKind::Agent,
        });
        let params =
            RegisterParams { id: Some(id), name: args.display_name.clone(), role: args.role.clone(), kind };
        let entry: RegisterResult = realm.call("register", params).await?;
        if output.is_json() {
            return output.json(&entry);
        }
        let how = if entry.resumed { "was registered already" } else { "is registered" };
        Ok(output.line(&format!("{} {how}", entry.agent.id))?)
    })
}

pub(super) fn whoami(global: &GlobalArgs, args: &RealmArgs, output: &Output) -> Result<(), Failure> {
    with_realm(global, args, async |realm| {
        let me = realm.whoami().await?;
        if output.is_json() {
            return output.json(&me);
        }
        let server = context::chosen_server(global, &args.office())?;
        let address = server.address();
        let role = text_of(me.role);
        Ok(output.line(&format!("{} ({role}) in {} at {address}, {}", me.name, me.realm, server.named))?)
    })
}

pub(super) fn contacts(global: &GlobalArgs, args: &ContactsArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm_args(), async |realm| {
        let params = |other: &str, reason: Option<&String>| ContactParams {
            agent: who.clone(),
            other: other.to_owned(),
            reason: reason.cloned(),
        };
        let (method, params) = match &args.command {
            None => return list_contacts(realm, who.clone(), output).await,
            Some(ContactCommand::End { other }) => {
                let ended: ContactEndResult =
                    realm.call_as(who.as_deref(), "contact.end", params(other, None)).await?;
                return show_contact(&ended, other, "ended", output);
            }
            Some(ContactCommand::Ask { other, reason }) => ("contact.ask", params(other, reason.as_ref())),
            Some(ContactCommand::Accept { other }) => ("contact.accept", params(other, None)),
            Some(ContactCommand::Block { other }) => ("contact.block", params(other, None)),
        };
        let contact: Contact = realm.call_as(who.as_deref(), method, &params).await?;
        show_contact(&contact, &params.other, &text_of(contact.state), output)
    })
}

fn show_contact(answer: &impl Serialize, other: &str, state: &str, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(answer);
    }
    Ok(output.line(&format!("{other}: {state}"))?)
}

async fn list_contacts(realm: &RealmAccess, who: Option<String>, output: &Output) -> Result<(), Failure> {
    let known: ContactsResult = realm.call("contacts", ContactsParams { agent: who }).await?;
    if output.is_json() {
        return output.json(&Page::only("contacts", &known.contacts));
    }
    let mut table = Table::new(["FROM", "TO", "STATE", "REASON", "SINCE"]);
    for one in &known.contacts {
        let style = match one.state {
            ContactState::Pending => Style::Warning,
            ContactState::Blocked => Style::Dim,
            ContactState::Accepted => Style::Plain,
        };
        let since = short_time(one.updated_at.as_str());
        table.row([one.from.clone(), one.to.clone(), text_of(one.state), text_of(&one.reason), since], style);
    }
    Ok(output.table(&table)?)
}
