//! Who may take a new name, at every door. A name belongs to the token that carries it, whether or not an agent has it; names
//! that the server, its administrators or the address language use are reserved.

use serde::{Deserialize, Serialize};

use super::expected::{OPERATOR, OPERATOR_WORD};
use super::write;
use crate::confusables::{bad_characters, skeleton, skeleton_of_shape};
use crate::error::Refusal;
use crate::names::slug;
use crate::nouns::{Agent, AgentId, Caller, Fact, Millis, RealmName};
use crate::sight;
use crate::store::{Db, one, rows};
use crate::verbs::{Decide, Decided, Write};

/// The caller's token, as far as names go. The door has checked it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bearer {
    /// The name on the token.
    pub name: AgentId,
    /// Whether it is an administrator's.
    pub admin: bool,
}

impl Bearer {
    /// Whether a display name is that of the token itself. Administrators' agents have names of their own.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        !self.admin && (self.name.as_str() == name || slug(self.name.as_str()) == slug(name))
    }
}

/// Names of the server and of its administrators.
const RESERVED: [&str; 3] = [OPERATOR, OPERATOR_WORD, "system"];
/// Words of the address language: groups, and the operator.
const WORDS: [&str; 10] = [
    "all",
    "broadcast",
    "everyone",
    "*",
    "parent",
    "children",
    "siblings",
    "ancestors",
    "descendants",
    OPERATOR_WORD,
];
/// What comes before a colon in an address.
const PREFIXES: [&str; 6] = ["agent", "scope", "role", "user", "admin", "system"];

/// Reason of the event that unregisters an agent whose name goes to the bearer of its token.
pub(crate) const RECLAIMED: &str = "taken by the bearer of its token";

/// A request for a name.
pub(crate) struct Claim<'a> {
    pub(crate) db: Db<'a>,
    pub(crate) realm: &'a RealmName,
    pub(crate) caller: &'a Caller,
    pub(crate) bearer: Option<&'a Bearer>,
    pub(crate) now: Millis,
}

impl<'a> Claim<'a> {
    pub(super) fn new(to: &'a Decide<'_>, bearer: Option<&'a Bearer>) -> Self {
        Self { db: to.db, realm: to.realm, caller: to.caller, bearer, now: to.clock() }
    }

    /// Whether the caller may register an agent under this name. Names that are in use keep working; this is about new ones.
    pub(crate) fn check(&self, id: &AgentId) -> Result<(), Taken> {
        self.check_form(id)?;
        self.check_claims(id)?;
        if is_server(self.caller) || self.is_own(id) || self.is_admin() {
            return Ok(());
        }
        self.check_agents(id)
    }

    /// Refuses names that other tokens have a claim to.
    pub(crate) fn check_claims(&self, id: &AgentId) -> Result<(), Taken> {
        if is_server(self.caller) || self.is_own(id) || self.is_admin() {
            return Ok(());
        }
        self.check_tokens(id)
    }

    /// Refuses names that no agent may have, or none of the caller's.
    fn check_form(&self, id: &AgentId) -> Result<(), Taken> {
        let name = id.as_str();
        if id.is_office() {
            return Err(Refusal::AgentExists { agent: id.clone() }.into());
        }
        if let Some(why) = bad_characters(name) {
            return bad(name, why);
        }
        if is_server(self.caller) {
            return Ok(());
        }
        let looks = [skeleton(name), skeleton_of_shape(name)];
        let is_like = |other: &str| looks.contains(&skeleton(other));
        if is_like(AgentId::office().as_str()) {
            return bad(name, "it is reserved for the server");
        }
        if let Some((_, realm)) = name.rsplit_once('@')
            && (!self.is_own(id) || self.is_peer(realm)?)
        {
            return bad(name, "a name with '@' is an agent of another realm");
        }
        // Also for administrators: mail to an agent of such a name would go elsewhere.
        if is_address(name) {
            return bad(name, "it is a word of the address language");
        }
        if self.is_own(id) || self.is_admin() {
            return Ok(());
        }
        if RESERVED.into_iter().any(is_like) {
            return bad(name, "it is reserved for administrators");
        }
        Ok(())
    }

    fn is_own(&self, id: &AgentId) -> bool {
        self.bearer.is_some_and(|bearer| bearer.name == *id)
    }

    fn is_admin(&self) -> bool {
        self.caller.rights.admin || self.bearer.is_some_and(|bearer| bearer.admin)
    }

    fn is_peer(&self, realm: &str) -> rusqlite::Result<bool> {
        let known = one(self.db, "SELECT 1 FROM peers WHERE name = ?1", [realm], |_| Ok(()))?;
        Ok(known.is_some() || realm == self.realm.as_str())
    }

    /// Refuses the name of another valid token, and one that looks like it.
    fn check_tokens(&self, id: &AgentId) -> Result<(), Taken> {
        let (looks, shape) = (skeleton(id.as_str()), skeleton_of_shape(id.as_str()));
        let sql = "SELECT max(name = ?3) FROM tokens WHERE skeleton IN (?1, ?2) AND name IS NOT ?4
                       AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?5)";
        let own = self.bearer.map(|bearer| &bearer.name);
        let found: Option<Option<bool>> =
            one(self.db, sql, (looks, shape, id, own, self.now), |row| row.get(0))?;
        match found.flatten() {
            Some(true) => Err(Refusal::AgentExists { agent: id.clone() }.into()),
            Some(false) => Err(Refusal::LooksTaken { agent: id.clone() }.into()),
            None => Ok(()),
        }
    }

    /// Refuses a name that looks like that of an agent which another token registered, and one under which another token's
    /// agents are owned: its holder could act for them. Names of the caller's own agents may look alike.
    fn check_agents(&self, id: &AgentId) -> Result<(), Taken> {
        let (looks, shape) = (skeleton(id.as_str()), skeleton_of_shape(id.as_str()));
        let sql = "SELECT 1 FROM agents WHERE skeleton IN (?1, ?2) AND id <> ?3 AND (retired_at IS NULL OR state = ?4)
                       AND (?5 IS NULL OR bearer IS NOT ?5) LIMIT 1";
        let own = self.bearer.map(|bearer| &bearer.name);
        if one(self.db, sql, (looks, shape, id, Agent::REVOKED, own), |_| Ok(()))?.is_some() {
            return Err(Refusal::LooksTaken { agent: id.clone() }.into());
        }
        let sql =
            "SELECT 1 FROM agents WHERE owner = ?1 AND id <> ?1 AND retired_at IS NULL AND bearer IS NOT ?2
                       AND bearer IS NOT ?1 LIMIT 1";
        match one(self.db, sql, (id, own), |_| Ok(()))? {
            Some(()) => Err(Refusal::AgentExists { agent: id.clone() }.into()),
            None => Ok(()),
        }
    }
}

/// Why a name is refused, or that the database failed.
pub(crate) enum Taken {
    Refused(Refusal),
    Failed(rusqlite::Error),
}

impl From<Refusal> for Taken {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rusqlite::Error> for Taken {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Taken> for crate::verbs::Stop {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Refused(refusal) => Self::Refused(refusal),
            Taken::Failed(error) => Self::Failed(error),
        }
    }
}

impl From<Taken> for crate::EngineError {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Refused(refusal) => refusal.into(),
            Taken::Failed(error) => error.into(),
        }
    }
}

fn bad(name: &str, why: &'static str) -> Result<(), Taken> {
    Err(Refusal::BadName { name: name.to_owned(), why }.into())
}

/// Whether the caller is the server itself: it registers stand-ins for remote agents, under names that no caller may take.
fn is_server(caller: &Caller) -> bool {
    caller.rights.admin && caller.agent.is_office()
}

fn is_address(name: &str) -> bool {
    let lower = name.to_lowercase();
    WORDS.contains(&lower.as_str())
        || lower.split_once(':').is_some_and(|(prefix, _)| PREFIXES.contains(&prefix))
}

/// Refuses a token's name that no agent may have, or that looks like another valid token's. Several tokens may carry one
/// name, and an administrator may create a token for an active agent.
pub(in crate::verbs) fn check_token(to: &Decide<'_>, name: &AgentId) -> Decided<()> {
    // A door that proves identities by itself vouches for names that were checked at registration.
    if is_server(to.caller) {
        return Ok(());
    }
    // An administrator may have further tokens under its own name; reserved names are not given to others.
    let own = Bearer { name: to.caller.agent.clone(), admin: false };
    let as_member = Caller::member(own.name.clone(), &to.caller.via);
    let claim = Claim { caller: &as_member, ..Claim::new(to, (own.name == *name).then_some(&own)) };
    claim.check_form(name)?;
    match claim.check_tokens(name) {
        Err(Taken::Refused(Refusal::AgentExists { .. })) => Ok(()),
        checked => checked.map_err(Into::into),
    }
}

/// The token under which the caller registers an agent. None for the server and administrators: what they register is the
/// agent's own. A door that passes no token vouches for the caller's name.
pub(super) fn bearer_for<'a>(to: &'a Decide<'_>, bearer: Option<&'a Bearer>) -> Option<&'a AgentId> {
    let admin = to.caller.rights.admin || bearer.is_some_and(|bearer| bearer.admin);
    (!admin).then(|| bearer.map_or(&to.caller.agent, |bearer| &bearer.name))
}

/// Notes under which token an agent is registered.
pub(super) fn note_bearer(to: &Write<'_>, id: &AgentId, bearer: &AgentId) -> rusqlite::Result<()> {
    let sql = "UPDATE agents SET skeleton = ?2, bearer = ?3 WHERE id = ?1";
    to.exec(sql, (id, skeleton(id.as_str()), bearer)).map(drop)
}

/// The token under which an agent was registered, if it is known.
pub(crate) fn bearer_of(db: Db<'_>, id: &AgentId) -> rusqlite::Result<Option<AgentId>> {
    let sql = "SELECT bearer FROM agents WHERE id = ?1 AND bearer IS NOT NULL";
    one(db, sql, [id], |row| row.get(0))
}

/// An agent that goes to the bearer of the token that carries its name, because another token registered it. Mail and contacts
/// stay with the name. What the former holder could act by goes: owner, parent, keys, the doors' data in `meta`, and the
/// secrets that are derived from the time of registration. Streams and sessions end as if it had left.
pub(in crate::verbs) struct Reclaim {
    agent: Agent,
}

impl Reclaim {
    /// None if the agent was registered under the token of its name.
    pub(in crate::verbs) fn decide(to: &Decide<'_>, before: &Agent) -> rusqlite::Result<Option<Self>> {
        match bearer_of(to.db, &before.id)? {
            Some(other) if other != before.id => {}
            _ => return Ok(None),
        }
        let agent = Agent {
            owner: None,
            parent: None,
            keys: None,
            meta: None,
            bounds: None,
            via: to.caller.via.clone(),
            state: Agent::REGISTERED.to_owned(),
            created_at: to.now.max(before.created_at + 1),
            updated_at: to.now,
            ..before.clone()
        };
        Ok(Some(Self { agent }))
    }

    /// The agent as it will be.
    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(in crate::verbs) fn write(self, to: &mut Write<'_>) -> rusqlite::Result<()> {
        let agent = self.agent;
        if let Some(before) = rows::any_agent(to.db, &agent.id)? {
            let sight = sight::of_agent(to.db, &before)?;
            let reason = Some(RECLAIMED.to_owned());
            let fact = Fact::AgentUnregistered { agent: agent.id.clone(), sort: agent.kind, reason };
            to.emit(fact, sight)?;
        }
        write(to, &agent)?;
        to.exec("UPDATE agents SET bearer = id WHERE id = ?1", [&agent.id])?;
        to.cache.borrow_mut().usage.forget_agents();
        let fact = Fact::AgentRegistered {
            agent: agent.id.clone(),
            sort: agent.kind,
            name: agent.name.clone(),
            role: agent.role.clone(),
            owner: None,
            state: agent.state.clone(),
            entry: Some(Box::new(Agent { scopes: rows::scopes_of(to.db, &agent.id)?, ..agent.clone() })),
        };
        let sight = sight::of_agent(to.db, &agent)?;
        to.emit(fact, sight).map(drop)
    }
}
