//! The sender of a message: a registered agent, the server, a peer's agent, or an agent that is registered with its message.

use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, AgentKind, Caller, ContactPolicy, Privacy, Visibility};
use crate::store::{one, rows};
use crate::verbs::agents::{self, Entrance};
use crate::verbs::{Decide, Decided};

/// The sender of a message.
pub(in crate::verbs) struct Sender {
    pub(in crate::verbs) agent: Agent,
    /// Its registration, if the message is its first act.
    pub(in crate::verbs) entrance: Option<Entrance>,
    /// A peer's agent acts with the rights of a member and without being registered.
    pub(super) guest: Option<Caller>,
}

impl Sender {
    /// The sender of the caller's message.
    pub(super) fn of(to: &Decide<'_>) -> Decided<Self> {
        let (id, admin) = (&to.caller.agent, to.caller.rights.admin);
        if admin && id.is_office() {
            return Ok(Self { agent: unregistered(id), entrance: None, guest: None });
        }
        if admin && is_foreign(to, id)? {
            // The server submits it, but visibility and consent are those of an outsider to this realm. It takes replies.
            let (kind, contact_policy) = (AgentKind::Agent, ContactPolicy::Open);
            let agent = Agent { kind, contact_policy, ..unregistered(id) };
            let guest = Some(Caller::member(id.clone(), &to.caller.via));
            return Ok(Self { agent, entrance: None, guest });
        }
        // An administrator writes under any name; a new one is registered with its first message.
        let entrance = match admin && rows::active_agent(to.db, id)?.is_none() {
            true => agents::enter_sender(to, id)?,
            false => None,
        };
        let agent = match &entrance {
            Some(entrance) => entrance.agent().clone(),
            None => to.acting_agent()?,
        };
        if agent.is_suspended() {
            return Err(Refusal::WrongState { agent: agent.id, state: agent.state }.into());
        }
        Ok(Self { agent, entrance, guest: None })
    }

    /// Whether it is a new holder of its name, to which the former holder's contacts and message keys do not pass.
    pub(in crate::verbs) fn reuses_name(&self) -> bool {
        self.entrance.as_ref().is_some_and(Entrance::reuses_name)
    }
}

/// Whether a name is that of a peer's agent.
pub(in crate::verbs) fn is_foreign(to: &Decide<'_>, id: &AgentId) -> rusqlite::Result<bool> {
    let Some((_, realm)) = id.as_str().rsplit_once('@') else { return Ok(false) };
    Ok(one(to.db, "SELECT 1 FROM peers WHERE name = ?1", [realm], |_| Ok(()))?.is_some())
}

/// A sender that is not registered.
fn unregistered(id: &AgentId) -> Agent {
    Agent {
        id: id.clone(),
        kind: AgentKind::System,
        name: None,
        description: None,
        role: None,
        parent: None,
        owner: None,
        state: Agent::IDLE.to_owned(),
        visibility: Visibility::Public,
        contact_policy: ContactPolicy::Closed,
        privacy: Privacy::Public,
        keys: None,
        capabilities: None,
        bounds: None,
        meta: None,
        via: String::new(),
        scopes: Vec::new(),
        created_at: 0,
        updated_at: 0,
        retired_at: None,
        born: 0,
    }
}
