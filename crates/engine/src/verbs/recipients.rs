//! Resolves addresses to recipients: which agents are meant, which of them the caller may know of, and which take messages
//! from the sender.

use std::collections::{HashMap, HashSet};

use super::agents::{self, Entrance};
use super::mail::{self, Sender};
use super::{Decide, Decided, Stop, Write, contacts};
use crate::acl;
use crate::error::Refusal;
use crate::nouns::{
    Address, Agent, AgentId, Bounds, ContactPolicy, ContactState, Fact, Millis, Privacy, RealmName,
    RecipientKind, ScopeId, Sight,
};
use crate::sight;
use crate::similar_names;
use crate::store::{Db, all, one, rows};

/// A recipient of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) agent: AgentId,
    pub(super) copy: RecipientKind,
    /// The peer that the message must be relayed to.
    pub(super) peer: Option<RealmName>,
}

/// What addresses resolve to.
#[derive(Default)]
pub(super) struct Found {
    pub(super) recipients: Vec<Recipient>,
    /// Agents that were named, take no messages from the sender and were passed over.
    pub(super) refused: Vec<AgentId>,
    /// Recipients that are not registered yet but expected. They are registered before the message is written.
    pub(super) entrances: Vec<Entrance>,
}

/// Whether a recipient takes a sender's messages. The recipient's contact policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// It does.
    Given,
    /// It must be asked first.
    Needed,
    /// It does not, and will not be asked.
    Denied,
}

/// Whether `to` takes messages from `from`, where that does not depend on a contact.
fn consent_without_contact(db: Db<'_>, from: &Agent, to: &Agent) -> rusqlite::Result<Option<Consent>> {
    // The server needs no consent. An agent whose kind is system does.
    if from.id == to.id || from.id.is_office() {
        return Ok(Some(Consent::Given));
    }
    Ok((!acl::let_pass(db, from, to)?).then_some(Consent::Denied))
}

/// What a valid contact, or none, means to a recipient with that policy.
fn consent(contact: Option<ContactState>, policy: ContactPolicy) -> Consent {
    match (contact, policy) {
        (Some(ContactState::Blocked), _) => Consent::Denied,
        (Some(ContactState::Accepted), _) | (_, ContactPolicy::Open) => Consent::Given,
        (_, ContactPolicy::Contacts) => Consent::Needed,
        (_, ContactPolicy::Closed) => Consent::Denied,
    }
}

/// All recipients of a message, each once, in the order of the addresses. A named agent that cannot be reached refuses the
/// message; a member of a group that cannot is passed over. With `pass_over`, so is a named agent that takes no messages from
/// the sender, if there are other recipients.
pub(super) fn resolve(
    to: &Decide<'_>,
    sender: &Sender,
    lists: [(&[Address], RecipientKind); 3],
    pass_over: bool,
) -> Decided<Found> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut refused: Vec<AgentId> = Vec::new();
    let mut named = HashSet::new();
    let mut search = Search::new(to, sender);
    for (addresses, copy) in lists {
        for address in addresses {
            // The same address again reaches the same agents.
            if !named.insert(address) {
                continue;
            }
            let peer = match address {
                Address::Remote { realm, .. } if realm != to.realm => Some(realm),
                _ => None,
            };
            let reached = match search.reach(address) {
                Err(Stop::Refused(Refusal::ConsentBlocked { agent })) if pass_over => {
                    if !refused.contains(&agent) {
                        refused.push(agent);
                    }
                    continue;
                }
                Err(Stop::Recorded(refusal, record)) => {
                    return Err(record_with(refusal, search.entrances, record));
                }
                reached => reached?,
            };
            for agent in reached {
                if seen.insert(agent.clone()) {
                    found.push(Recipient { agent, copy, peer: peer.cloned() });
                }
            }
        }
    }
    if found.len() > to.rules.recipients as usize {
        return Err(too_many_recipients(to));
    }
    match refused.first() {
        Some(agent) if found.is_empty() => Err(Refusal::ConsentBlocked { agent: agent.clone() }.into()),
        _ => Ok(Found { recipients: found, refused, entrances: search.entrances }),
    }
}

/// A recorded refusal that registers agents first: what it records may refer to them.
pub(super) fn record_with(
    refusal: Refusal,
    entrances: Vec<Entrance>,
    record: impl FnOnce(&mut Write<'_>) -> rusqlite::Result<()> + 'static,
) -> Stop {
    let record = move |to: &mut Write<'_>| {
        for entrance in entrances {
            entrance.write(to)?;
        }
        record(to)
    };
    Stop::Recorded(refusal, Box::new(record))
}

fn too_many_recipients(to: &Decide<'_>) -> Stop {
    let what = "recipients; address a role, a scope or fewer agents, or have the operator raise the rule";
    Refusal::TooMany { what, limit: to.rules.recipients.into() }.into()
}

/// The search for one message's recipients: what it may still cost, and what is read once for all addresses.
struct Search<'s, 'a> {
    to: &'s Decide<'a>,
    sender: &'s Sender,
    /// Groups, and members of groups, that may still be looked at.
    groups: u32,
    members: usize,
    /// The caller's bounds.
    bounds: Option<Bounds>,
    kin: acl::Kin<'a>,
    /// The same for the sender, if it is not the caller.
    sender_kin: acl::Kin<'a>,
    /// The sender's contacts; read with the first group.
    contacts: Option<HashMap<AgentId, (ContactState, Option<Millis>)>>,
    entrances: Vec<Entrance>,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(to: &'s Decide<'a>, sender: &'s Sender) -> Self {
        let members = to.rules.recipients as usize;
        Self {
            to,
            sender,
            groups: to.rules.groups,
            members: members + members / 4,
            bounds: None,
            kin: acl::Kin::of(to.db, &to.caller.agent, None),
            sender_kin: acl::Kin::of(to.db, &sender.agent.id, sender.agent.parent.as_ref()),
            contacts: None,
            entrances: Vec::new(),
        }
    }

    fn reach(&mut self, address: &Address) -> Decided<Vec<AgentId>> {
        let (to, sender) = (self.to, &self.sender.agent);
        if address.is_group() {
            self.open_group()?;
        }
        let most = self.members;
        let group = match address {
            Address::Agent(id) => return self.direct(id).map(|id| vec![id]),
            Address::Remote { agent, realm } if realm == to.realm => {
                let id = AgentId::new(agent).map_err(Refusal::from)?;
                return self.direct(&id).map(|id| vec![id]);
            }
            Address::Remote { agent, realm } => {
                let known = one(to.db, "SELECT 1 FROM peers WHERE name = ?1", [realm], |_| Ok(()))?.is_some();
                if !known {
                    return Err(Refusal::NoSuchPeer { peer: realm.to_string() }.into());
                }
                return Ok(vec![AgentId::new(format!("{agent}@{realm}")).map_err(Refusal::from)?]);
            }
            Address::Scope(scope) => scope_members(to, sender, scope, most)?,
            Address::Role { role, within: None } => {
                select(to, "role = ?1 AND id <> ?2", (role, &sender.id), most)?
            }
            Address::Role { role, within: Some(scope) } => {
                let members = scope_members(to, sender, scope, most)?;
                self.look_at(members.len())?;
                members.into_iter().filter(|agent| agent.role.as_deref() == Some(role)).collect()
            }
            Address::Parent => match &sender.parent {
                Some(parent) => rows::active_agent(to.db, parent)?.into_iter().collect(),
                None => Vec::new(),
            },
            Address::Children { depth } => below(to, &sender.id, depth.unwrap_or(1))?,
            Address::Descendants { depth } => below(to, &sender.id, depth.unwrap_or(u32::MAX))?,
            Address::Siblings => match &sender.parent {
                Some(parent) => select(to, "parent = ?1 AND id <> ?2", (parent, &sender.id), most)?,
                None => Vec::new(),
            },
            Address::Ancestors { depth } => above(to, sender, depth.unwrap_or(u32::MAX))?,
            Address::Kind(kind) => select(to, "kind = ?1 AND id <> ?2", (kind, &sender.id), most)?,
            Address::All => select(to, "id <> ?1", [&sender.id], most)?,
            Address::Contacts => {
                require_tier(sender, &[Privacy::Public, Privacy::Contacts])?;
                // Contacts of a name's former holder are not the sender's.
                let ids = match self.sender.reuses_name() {
                    true => Vec::new(),
                    false => sight::contacts_of(to.db, &sender.id, to.clock())?,
                };
                let active = |id: &AgentId| rows::active_agent(to.db, id).transpose();
                ids.iter().filter_map(active).collect::<Result<_, _>>()?
            }
            Address::Public => {
                require_tier(sender, &[Privacy::Public])?;
                return self.public();
            }
        };
        self.look_at(group.len())?;
        let mut willing = Vec::with_capacity(group.len());
        for agent in group {
            if self.allows(&agent)? && self.sees(&agent)? {
                willing.push(agent.id);
            }
        }
        Ok(willing)
    }

    /// Counts a group and reads what is asked of all members of groups.
    fn open_group(&mut self) -> Decided<()> {
        let to = self.to;
        let Some(left) = self.groups.checked_sub(1) else {
            let what = "groups of recipients in one message";
            return Err(Refusal::TooMany { what, limit: to.rules.groups.into() }.into());
        };
        self.groups = left;
        if self.contacts.is_some() {
            return Ok(());
        }
        let sql = "SELECT recipient, state, expires_at FROM contacts WHERE sender = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
        let mut contacts: HashMap<AgentId, (ContactState, _)> =
            all(to.db, sql, [&self.sender.agent.id], read)?.into_iter().collect();
        if self.sender.reuses_name() {
            contacts.retain(|_, (state, _)| *state == ContactState::Blocked);
        }
        self.contacts = Some(contacts);
        if let Some(caller) = rows::any_agent(to.db, &to.caller.agent)? {
            self.kin = acl::Kin::of(to.db, &caller.id, caller.parent.as_ref());
            self.bounds = caller.bounds;
        }
        Ok(())
    }

    /// Counts members that were looked at.
    fn look_at(&mut self, members: usize) -> Decided<()> {
        self.members = self.members.checked_sub(members).ok_or_else(|| too_many_recipients(self.to))?;
        Ok(())
    }

    fn contact(&self, agent: &AgentId, now: Millis) -> Option<ContactState> {
        let (state, end) = self.contacts.as_ref()?.get(agent)?;
        end.is_none_or(|end| now < end).then_some(*state)
    }

    fn allows(&self, agent: &Agent) -> rusqlite::Result<bool> {
        let sender = &self.sender.agent;
        let free = sender.id == agent.id || sender.id.is_office();
        Ok(free
            || (self.sender_kin.lets_pass(sender, agent)?
                && consent(self.contact(&agent.id, self.to.clock()), agent.contact_policy) == Consent::Given))
    }

    fn sees(&self, agent: &Agent) -> rusqlite::Result<bool> {
        sight::sees_agent_by(self.to.db, self.to.caller, self.bounds.as_ref(), &self.kin, agent)
    }

    /// All agents of the realm where neither side has blocked the other: public messages need no consent.
    fn public(&mut self) -> Decided<Vec<AgentId>> {
        let (to, sender) = (self.to, &self.sender.agent.id);
        let mut agents = select(to, "id <> ?1", [sender], self.members)?;
        // Agents that are registered with this message are part of the realm, too.
        if !self.entrances.is_empty() {
            agents.extend(self.entrances.iter().map(|entrance| entrance.agent().clone()));
            agents.sort_by(|one, other| one.id.cmp(&other.id));
        }
        self.look_at(agents.len())?;
        // What others agreed with a name's former holder, blocks included, does not bind the new one.
        let sql = "SELECT sender FROM contacts WHERE recipient = ?1 AND state = 'blocked' AND NOT ?2
                   UNION SELECT recipient FROM contacts WHERE sender = ?1 AND state = 'blocked'";
        let blocked = all(to.db, sql, (sender, self.sender.reuses_name()), |row| row.get(0))?;
        let blocked: HashSet<AgentId> = blocked.into_iter().collect();
        let mut reached = Vec::new();
        for agent in agents {
            if !blocked.contains(&agent.id) && self.sees(&agent)? {
                reached.push(agent.id);
            }
        }
        Ok(reached)
    }

    /// The agent that a name means, if it is active, is the new sender itself, or is expected. An expected agent is registered
    /// with the message.
    fn named(&mut self, id: &AgentId) -> Decided<Option<Named>> {
        let old = |agent| Named { agent, reuses_name: false };
        if let Some(entrance) = self.sender.entrance.as_ref().filter(|entrance| entrance.agent().id == *id) {
            return Ok(Some(Named::of(entrance)));
        }
        if let Some(agent) = rows::active_agent(self.to.db, id)? {
            return Ok(Some(old(agent)));
        }
        if let Some(entrance) = self.entrances.iter().find(|entrance| entrance.agent().id == *id) {
            return Ok(Some(Named::of(entrance)));
        }
        let Some(entrance) = agents::expect(self.to, id)? else { return Ok(None) };
        let named = Named::of(&entrance);
        self.entrances.push(entrance);
        Ok(Some(named))
    }

    fn direct(&mut self, id: &AgentId) -> Decided<AgentId> {
        let (to, sender) = (self.to, &self.sender.agent);
        let id = &agents::meant(to, id)?;
        let Some(named) = self.named(id)? else { return Err(unknown(to, id)?.into()) };
        let agent = &named.agent;
        // A hidden agent can be answered from another realm by those it wrote to.
        let known = sight::sees_agent(to.db, to.caller, agent)?
            || (mail::is_foreign(to, &sender.id)? && has_written(to, agent, sender)?);
        if !known {
            return Err(unknown(to, id)?.into());
        }
        let contact = match named.reuses_name {
            true => None,
            false => rows::contact_of(to.db, &sender.id, &agent.id)?
                .filter(|contact| !self.sender.reuses_name() || contact.state == ContactState::Blocked),
        };
        let in_force =
            contact.as_ref().filter(|contact| contact.expires_at.is_none_or(|end| to.clock() < end));
        let given = match consent_without_contact(to.db, sender, agent)? {
            Some(consent) => consent,
            None => consent(in_force.map(|contact| contact.state), agent.contact_policy),
        };
        match given {
            Consent::Given => return Ok(named.agent.id),
            Consent::Denied => return Err(Refusal::ConsentBlocked { agent: named.agent.id }.into()),
            Consent::Needed => {}
        }
        // Counts the messages that are looked through.
        self.look_at(LOOKED_THROUGH as usize / 4)?;
        if may_answer(to, sender, agent)? {
            return Ok(named.agent.id);
        }
        let refusal = Refusal::ConsentPending { agent: agent.id.clone() };
        if in_force.is_some() {
            let nothing = |_: &mut Write<'_>| Ok(());
            return Err(Stop::Recorded(refusal, Box::new(nothing)));
        }
        // The refusal leaves a contact request behind, so that the recipient can accept the sender.
        if !named.reuses_name {
            contacts::check_room(to, &agent.id)?;
        }
        let (sender, agent) = (sender.id.clone(), named.agent.id);
        let request = move |to: &mut Write<'_>| {
            contacts::put(to, &sender, &agent, ContactState::Pending, None, None)?;
            let sight = Sight::Agents(Sight::list(vec![sender.clone(), agent.clone()]));
            let state = Some(ContactState::Pending);
            to.emit(Fact::ContactChanged { from: sender, to: agent, state }, sight).map(drop)
        };
        Err(Stop::Recorded(refusal, Box::new(request)))
    }
}

/// A recipient that was named.
struct Named {
    agent: Agent,
    /// Whether it is a new holder of the name, whose contacts are none.
    reuses_name: bool,
}

impl Named {
    fn of(entrance: &Entrance) -> Self {
        Self { agent: entrance.agent().clone(), reuses_name: entrance.reuses_name() }
    }
}

fn require_tier(sender: &Agent, allowed: &[Privacy]) -> Decided<()> {
    if allowed.contains(&sender.privacy) { Ok(()) } else { Err(Refusal::PrivacyMismatch.into()) }
}

/// Messages of a recipient that are looked through for one to the sender.
const LOOKED_THROUGH: u32 = 1_000;

/// Whether a recipient that asks for consent has lately written to this sender by name: an agent that writes to one with an
/// open contact policy takes its answers. Between two agents that both ask for consent, consent alone counts.
fn may_answer(to: &Decide<'_>, sender: &Agent, agent: &Agent) -> rusqlite::Result<bool> {
    Ok(sender.contact_policy == ContactPolicy::Open && has_written(to, agent, sender)?)
}

/// Whether an agent has lately written to another by name.
fn has_written(to: &Decide<'_>, agent: &Agent, sender: &Agent) -> rusqlite::Result<bool> {
    to.flush_rows()?;
    let sql = "SELECT m.recipients FROM (SELECT seq, recipients FROM messages WHERE sender = ?1 AND seq > ?3
                   ORDER BY seq DESC LIMIT ?4) m
               JOIN deliveries d ON d.agent = ?2 AND d.message = m.seq";
    let born = sender.born.max(agent.born);
    let found: Vec<String> =
        all(to.db, sql, (&agent.id, &sender.id, born, LOOKED_THROUGH), |row| row.get(0))?;
    let named = |text: &String| {
        let to: Vec<Address> = serde_json::from_str(text).unwrap_or_default();
        to.iter().any(|address| match address {
            Address::Agent(id) => *id == sender.id,
            Address::Remote { agent, realm } => format!("{agent}@{realm}") == sender.id.as_str(),
            _ => false,
        })
    };
    Ok(found.iter().any(named))
}

/// The refusal of an unknown name, with names like it.
fn unknown(to: &Decide<'_>, id: &AgentId) -> Decided<Refusal> {
    // Other realms are not told the names of agents.
    let near = match mail::is_foreign(to, &to.caller.agent)? {
        true => Vec::new(),
        false => similar_names::find(to.db, to.caller, id.as_str())?,
    };
    Ok(Refusal::NoSuchAgent { agent: id.to_string(), near })
}

/// Active agents, with only the columns that decide whether they are reached: one more than `most` if there are more.
fn select(
    to: &Decide<'_>,
    condition: &str,
    params: impl rusqlite::Params,
    most: usize,
) -> rusqlite::Result<Vec<Agent>> {
    let sql = format!(
        "SELECT {} FROM agents WHERE {condition} AND retired_at IS NULL ORDER BY id",
        rows::AGENT_IN_GROUP
    );
    let mut query = to.db.prepare(&sql)?;
    query.query_map(params, rows::agent)?.take(most.saturating_add(1)).collect()
}

fn scope_members(to: &Decide<'_>, sender: &Agent, id: &ScopeId, most: usize) -> Decided<Vec<Agent>> {
    let scope = rows::scope_by_id(to.db, id)?;
    let scope = match scope {
        Some(scope) if sight::sees_scope(to.db, to.caller, &scope)? => scope,
        _ => return Err(Refusal::NoSuchScope { scope: id.clone() }.into()),
    };
    if let Some(need) = acl::bar_to_scope(to.db, to.caller, sender, &scope)? {
        return Err(Refusal::NotAllowed { need }.into());
    }
    let members = "id IN (SELECT agent FROM scope_members WHERE scope = ?1) AND id <> ?2";
    Ok(select(to, members, (id, &sender.id), most)?)
}

fn below(to: &Decide<'_>, id: &AgentId, depth: u32) -> rusqlite::Result<Vec<Agent>> {
    if depth == 0 {
        return Ok(Vec::new());
    }
    let sql = format!(
        "WITH RECURSIVE down(below, n) AS (
             SELECT id, 1 FROM agents WHERE parent = ?1
             UNION SELECT a.id, down.n + 1 FROM agents a JOIN down ON a.parent = down.below WHERE down.n < ?2)
         SELECT {} FROM agents WHERE id IN (SELECT below FROM down) AND id <> ?1 AND retired_at IS NULL ORDER BY id",
        rows::AGENT
    );
    all(to.db, &sql, (id, depth.min(64)), rows::agent)
}

fn above(to: &Decide<'_>, sender: &Agent, depth: u32) -> rusqlite::Result<Vec<Agent>> {
    let mut found: Vec<Agent> = Vec::new();
    let mut next = sender.parent.clone();
    while let Some(id) = next
        && found.len() < depth.min(64) as usize
    {
        let Some(agent) = rows::active_agent(to.db, &id)? else { break };
        next = agent.parent.clone();
        found.push(agent);
    }
    Ok(found)
}
