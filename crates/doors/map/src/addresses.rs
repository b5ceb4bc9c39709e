//! MAP's addresses as the engine's: participants are looked up in the session registry, bare words in the database.

use posthaste_engine::nouns::{self, AgentId, AgentKind};
use posthaste_wire::map::{Address, Class, codes};

use super::connection::Connection;
use super::errors::DoorError;
use super::session::Session;
use super::{federation, from_wire};

/// The recipients of a message: local addresses, and agents of other systems.
#[derive(Debug, Default)]
pub(super) struct Recipients {
    pub(super) local: Vec<nouns::Address>,
    /// System and agent.
    pub(super) federated: Vec<(String, String)>,
}

pub(super) async fn resolve(
    at: &Connection,
    session: &Session,
    addresses: Vec<Address>,
) -> Result<Recipients, DoorError> {
    let mut recipients = Recipients::default();
    for address in addresses {
        let local = match address {
            Address::Named(word) => named(at, session, &word).await?,
            Address::Agent(id) => agent(at, &id)?,
            Address::Scope(id) => nouns::Address::Scope(from_wire::scope(&id)?),
            Address::Role { role, within } => {
                let within = within.as_deref().map(from_wire::scope).transpose()?;
                nouns::Address::Role { role, within }
            }
            Address::Parent => nouns::Address::Parent,
            Address::Children { depth } => nouns::Address::Children { depth },
            Address::Siblings => nouns::Address::Siblings,
            Address::Ancestors { depth } => nouns::Address::Ancestors { depth },
            Address::Descendants { depth } => nouns::Address::Descendants { depth },
            Address::Broadcast | Address::Participants(Class::Agents) => {
                // Every agent, whichever door it came by, but none of the participants behind them.
                let kinds = [AgentKind::Agent, AgentKind::User, AgentKind::Admin];
                recipients.local.extend(kinds.map(nouns::Address::Kind));
                continue;
            }
            // For the server itself, which has it in its event log.
            Address::System => continue,
            Address::Participant(id) => agent(at, &id)?,
            Address::Participants(Class::All) => nouns::Address::All,
            Address::Participants(Class::Clients) => nouns::Address::Kind(AgentKind::Client),
            Address::Federated { system, target } => {
                if system == at.engine.realm().as_str() {
                    Box::pin(resolve(at, session, vec![*target])).await?.local.into_iter().for_each(|one| {
                        recipients.local.push(one);
                    });
                    continue;
                }
                if session.is_compat() {
                    return Err(federation::not_in_compat());
                }
                let Address::Agent(agent) = *target else {
                    return Err(DoorError::params("only agents of other systems can be addressed"));
                };
                recipients.federated.push((system, agent));
                continue;
            }
        };
        recipients.local.push(local);
    }
    Ok(recipients)
}

/// An agent, or the agent of the participant that is connected under that id.
fn agent(at: &Connection, id: &str) -> Result<nouns::Address, DoorError> {
    let id = AgentId::new(id)?;
    let id = at.registry.participant(&id).map_or(id, |session| session.actor());
    Ok(nouns::Address::Agent(id))
}

/// A bare word is an agent, or a scope if one has that name; never a guess between the two.
async fn named(at: &Connection, session: &Session, word: &str) -> Result<nouns::Address, DoorError> {
    let direct = agent(at, word)?;
    let nouns::Address::Agent(id) = &direct else { return Ok(direct) };
    let (caller, id, scope) = (session.caller(), id.clone(), from_wire::scope(word)?);
    let asked = scope.clone();
    let (is_agent, is_scope) = at
        .engine
        .read(move |view| Ok((view.agent(&caller, &id).is_ok(), view.scope(&caller, &asked).is_ok())))
        .await?;
    match (is_agent, is_scope) {
        (true, true) => Err(DoorError::new(
            codes::ADDRESS_AMBIGUOUS,
            format!("{word} is an agent and a scope; say which: {{agent}} or {{scope}}"),
        )),
        (false, true) => Ok(nouns::Address::Scope(scope)),
        _ => Ok(direct),
    }
}
