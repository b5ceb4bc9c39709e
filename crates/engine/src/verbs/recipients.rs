//! Turning addresses into recipients: who is meant, who may know of whom, and who takes letters from whom.

use std::collections::{HashMap, HashSet};

use super::{Decided, Stop, Write, agents, contacts, mail};
use crate::acl;
use crate::error::Refusal;
use crate::nouns::{
    Address, Agent, AgentId, Bounds, ContactPolicy, ContactState, Fact, Millis, Privacy, RealmName,
    RecipientKind, ScopeId, Sight,
};
use crate::sight;
use crate::similar_names;
use crate::store::{Db, all, one, rows};

/// Somebody a letter goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) agent: AgentId,
    pub(super) copy: RecipientKind,
    /// The neighbour that the letter has to be carried to.
    pub(super) peer: Option<RealmName>,
}

/// Whom addresses came to.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) recipients: Vec<Recipient>,
    /// Those who were named, take no letters from the sender and were passed over.
    pub(super) refused: Vec<AgentId>,
}

/// Whether a recipient takes a sender's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// It does.
    Given,
    /// It has to be asked.
    Needed,
    /// It does not, and will not be asked.
    Denied,
}

/// Whether `to` takes letters from `from`. Contact policy travels with the recipient.
pub(crate) fn contact_allows(db: Db<'_>, from: &Agent, to: &Agent, now: Millis) -> rusqlite::Result<Consent> {
    // The office needs no consent. An agent that calls itself a part of the system does.
    if from.id == to.id || from.id.is_office() {
        return Ok(Consent::Given);
    }
    if !acl::let_pass(db, from, to)? {
        return Ok(Consent::Denied);
    }
    let contact = rows::contact_of(db, &from.id, &to.id)?;
    let in_force = contact.filter(|contact| contact.expires_at.is_none_or(|end| now < end));
    Ok(consent(in_force.map(|contact| contact.state), to.contact_policy))
}

/// What a contact in force, or none, means to a recipient of that policy.
fn consent(contact: Option<ContactState>, policy: ContactPolicy) -> Consent {
    match (contact, policy) {
        (Some(ContactState::Blocked), _) => Consent::Denied,
        (Some(ContactState::Accepted), _) | (_, ContactPolicy::Open) => Consent::Given,
        (_, ContactPolicy::Contacts) => Consent::Needed,
        (_, ContactPolicy::Closed) => Consent::Denied,
    }
}

/// Everyone a letter goes to, each once, in the order of the addresses. Someone who is named but cannot be reached
/// refuses the letter; a member of a group who cannot is passed over, and so is who is named and unwilling if that was
/// asked for and somebody else is reached.
pub(super) fn resolve(
    to: &mut Write<'_>,
    sender: &Agent,
    lists: [(&[Address], RecipientKind); 3],
    pass_over: bool,
) -> Decided<Found> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut refused: Vec<AgentId> = Vec::new();
    let mut named = HashSet::new();
    let mut groups = Groups::of(to, sender)?;
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
            let reached = match reach(to, sender, address, &mut groups) {
                Err(Stop::Refused(Refusal::ConsentBlocked { agent })) if pass_over => {
                    if !refused.contains(&agent) {
                        refused.push(agent);
                    }
                    continue;
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
        _ => Ok(Found { recipients: found, refused }),
    }
}

fn too_many_recipients(to: &Write<'_>) -> Stop {
    let what = "recipients; address a role, a scope or fewer agents, or have the operator raise the rule";
    Refusal::TooMany { what, limit: to.rules.recipients.into() }.into()
}

/// What finding the members of groups may cost, and what all of them are asked: read once for the whole message.
struct Groups<'a> {
    /// Groups, and members of groups, that may still be looked at.
    groups: u32,
    members: usize,
    /// What the caller is kept to.
    kept_to: Option<Bounds>,
    kin: acl::Kin<'a>,
    /// The same for the sender, if it is not the caller.
    sender_kin: acl::Kin<'a>,
    /// What the sender's contacts say; read with the first group.
    contacts: Option<HashMap<AgentId, (ContactState, Option<Millis>)>>,
}

impl<'a> Groups<'a> {
    fn of(to: &Write<'a>, sender: &Agent) -> Decided<Self> {
        let members = to.rules.recipients as usize;
        Ok(Self {
            groups: to.rules.groups,
            members: members + members / 4,
            kept_to: None,
            kin: acl::Kin::of(to.db, &to.caller.agent, None),
            sender_kin: acl::Kin::of(to.db, &sender.id, sender.parent.as_ref()),
            contacts: None,
        })
    }

    /// Takes one group more in hand.
    fn open(&mut self, to: &Write<'a>, sender: &Agent) -> Decided<()> {
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
        self.contacts = Some(all(to.db, sql, [&sender.id], read)?.into_iter().collect());
        if let Some(caller) = rows::any_agent(to.db, &to.caller.agent)? {
            self.kin = acl::Kin::of(to.db, &caller.id, caller.parent.as_ref());
            self.kept_to = caller.bounds;
        }
        Ok(())
    }

    /// Counts members that were looked at.
    fn look_at(&mut self, to: &Write<'_>, members: usize) -> Decided<()> {
        self.members = self.members.checked_sub(members).ok_or_else(|| too_many_recipients(to))?;
        Ok(())
    }

    /// Counts the messages that are looked through for one that asks for an answer.
    fn may_look_through(&mut self, to: &Write<'_>) -> Decided<bool> {
        self.look_at(to, LOOKED_THROUGH as usize / 4)?;
        Ok(true)
    }

    fn contact(&self, agent: &AgentId, now: Millis) -> Option<ContactState> {
        let (state, end) = self.contacts.as_ref()?.get(agent)?;
        end.is_none_or(|end| now < end).then_some(*state)
    }

    fn allows(&self, to: &Write<'_>, sender: &Agent, agent: &Agent) -> rusqlite::Result<bool> {
        let free = sender.id == agent.id || sender.id.is_office();
        Ok(free
            || (self.sender_kin.lets_pass(sender, agent)?
                && consent(self.contact(&agent.id, to.clock()), agent.contact_policy) == Consent::Given))
    }

    fn sees(&self, to: &Write<'_>, agent: &Agent) -> rusqlite::Result<bool> {
        sight::sees_agent_by(to.db, to.caller, self.kept_to.as_ref(), &self.kin, agent)
    }
}

fn reach<'a>(
    to: &mut Write<'a>,
    sender: &Agent,
    address: &Address,
    groups: &mut Groups<'a>,
) -> Decided<Vec<AgentId>> {
    if address.is_group() {
        groups.open(to, sender)?;
    }
    let most = groups.members;
    let group = match address {
        Address::Agent(id) => return direct(to, sender, id, groups).map(|id| vec![id]),
        Address::Remote { agent, realm } if realm == to.realm => {
            let id = AgentId::new(agent).map_err(Refusal::from)?;
            return direct(to, sender, &id, groups).map(|id| vec![id]);
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
            groups.look_at(to, members.len())?;
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
            let ids = sight::contacts_of(to.db, &sender.id, to.clock())?;
            ids.iter().filter_map(|id| rows::active_agent(to.db, id).transpose()).collect::<Result<_, _>>()?
        }
        Address::Public => {
            require_tier(sender, &[Privacy::Public])?;
            return public(to, sender, groups);
        }
    };
    groups.look_at(to, group.len())?;
    let mut willing = Vec::with_capacity(group.len());
    for agent in group {
        if groups.allows(to, sender, &agent)? && groups.sees(to, &agent)? {
            willing.push(agent.id);
        }
    }
    Ok(willing)
}

/// Everyone in the realm where neither side has blocked the other: what is said in public needs no consent.
fn public(to: &Write<'_>, sender: &Agent, groups: &mut Groups<'_>) -> Decided<Vec<AgentId>> {
    let everyone = select(to, "id <> ?1", [&sender.id], groups.members)?;
    groups.look_at(to, everyone.len())?;
    let sql = "SELECT sender FROM contacts WHERE recipient = ?1 AND state = 'blocked'
               UNION SELECT recipient FROM contacts WHERE sender = ?1 AND state = 'blocked'";
    let blocked: HashSet<AgentId> = all(to.db, sql, [&sender.id], |row| row.get(0))?.into_iter().collect();
    let mut reached = Vec::new();
    for agent in everyone {
        if !blocked.contains(&agent.id) && groups.sees(to, &agent)? {
            reached.push(agent.id);
        }
    }
    Ok(reached)
}

fn require_tier(sender: &Agent, allowed: &[Privacy]) -> Decided<()> {
    if allowed.contains(&sender.privacy) { Ok(()) } else { Err(Refusal::PrivacyMismatch.into()) }
}

fn direct(to: &mut Write<'_>, sender: &Agent, id: &AgentId, groups: &mut Groups<'_>) -> Decided<AgentId> {
    let id = &agents::meant(to, id)?;
    let agent = match rows::active_agent(to.db, id)? {
        Some(agent) => Some(agent),
        None => agents::expect(to, id)?.map(|entrance| entrance.write(to)).transpose()?,
    };
    let Some(agent) = agent else { return Err(unknown(to, id)?.into()) };
    // An agent that shows itself to few can be answered from another realm by those it wrote to.
    let known = sight::sees_agent(to.db, to.caller, &agent)?
        || (mail::is_foreign(to, &sender.id)? && has_written(to, &agent, sender)?);
    if !known {
        return Err(unknown(to, id)?.into());
    }
    match contact_allows(to.db, sender, &agent, to.clock())? {
        Consent::Given => Ok(agent.id),
        Consent::Denied => Err(Refusal::ConsentBlocked { agent: agent.id }.into()),
        Consent::Needed if groups.may_look_through(to)? && may_answer(to, sender, &agent)? => Ok(agent.id),
        Consent::Needed => {
            // The refusal leaves a contact request behind, so that the recipient can accept the sender.
            let asked = rows::contact_of(to.db, &sender.id, &agent.id)?;
            let refusal = Refusal::ConsentPending { agent: agent.id.clone() };
            if asked.is_some_and(|asked| asked.expires_at.is_none_or(|end| end > to.clock())) {
                return Err(refusal.into());
            }
            contacts::check_room(to, &agent.id)?;
            let (sender, agent) = (sender.id.clone(), agent.id);
            let request = move |to: &mut Write<'_>| {
                contacts::put(to, &sender, &agent, ContactState::Pending, None, None)?;
                let sight = Sight::Agents(Sight::list(vec![sender.clone(), agent.clone()]));
                let state = Some(ContactState::Pending);
                to.emit(Fact::ContactChanged { from: sender, to: agent, state }, sight).map(drop)
            };
            Err(Stop::Recorded(refusal, Box::new(request)))
        }
    }
}

/// Letters of somebody's that are looked through for one to the agent that wants to answer it.
const LOOKED_THROUGH: u32 = 1_000;

/// Whether somebody who wants to be asked has lately written to this sender by name: who writes to an agent that takes
/// letters from anybody takes its answers. Between two that both ask for consent, consent alone counts.
fn may_answer(to: &mut Write<'_>, sender: &Agent, agent: &Agent) -> rusqlite::Result<bool> {
    Ok(sender.contact_policy == ContactPolicy::Open && has_written(to, agent, sender)?)
}

/// Whether an agent has lately written to another by name.
fn has_written(to: &mut Write<'_>, agent: &Agent, sender: &Agent) -> rusqlite::Result<bool> {
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

/// The refusal for a name nobody has, with names like it.
fn unknown(to: &Write<'_>, id: &AgentId) -> Decided<Refusal> {
    // Who is in the address book is not told to other realms.
    let near = match mail::is_foreign(to, &to.caller.agent)? {
        true => Vec::new(),
        false => similar_names::find(to.db, to.caller, id.as_str())?,
    };
    Ok(Refusal::NoSuchAgent { agent: id.to_string(), near })
}

/// Agents in force, with what decides whether they are reached and nothing else: one more than `most` if there are more.
fn select(
    to: &Write<'_>,
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

fn scope_members(to: &Write<'_>, sender: &Agent, id: &ScopeId, most: usize) -> Decided<Vec<Agent>> {
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

fn below(to: &Write<'_>, id: &AgentId, depth: u32) -> rusqlite::Result<Vec<Agent>> {
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

fn above(to: &Write<'_>, sender: &Agent, depth: u32) -> rusqlite::Result<Vec<Agent>> {
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
