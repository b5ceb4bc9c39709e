//! One call: who makes it, on which project, and as which agent.

use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, Caller, Millis, RealmName, TokenRole};
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::agents::{Bearer, Existing, Register};
use posthaste_engine::views::{AgentQuery, View, Viewed};
use posthaste_engine::{Engine, EngineError, Refusal, Versioned};
use posthaste_wire::mcp::answers::PlacedProject;
use posthaste_wire::mcp::notifications::ProgressParams;
use serde_json::Value;
use subtle::ConstantTimeEq;
use tokio::sync::mpsc;

use super::errors::{DoorError, did_you_mean, nearest, unknown_agent};
use crate::Door;
use posthaste_host::caller::Identity;
use posthaste_host::projects::{self, Found, MakeError, Maker, Project};

/// The tag of callers that come through this door.
pub(super) const VIA: &str = "mcp";
/// How long an agent counts as present after a call.
pub(super) const ALIVE: Millis = 30 * 60 * 1000;
/// Projects that the bearer of an agent's token may make, and the bearer of a user's.
const MOST_OF_AGENT: usize = 20;
const MOST_OF_USER: usize = 100;
/// Names with which an unknown name is compared.
const MOST_COMPARED: usize = 1_000;
/// Agents of one owner whose mail is looked at together.
const MOST_OWN: usize = 32;

/// Holders by realm and agent.
pub(super) type Holders = Versioned<(RealmName, AgentId), Arc<Holder>>;

/// What a call must show to act for an agent.
pub(super) struct Holder {
    owner: Option<AgentId>,
    /// The token under which it was registered.
    bearer: Option<AgentId>,
    secret: String,
}

/// The bearer of a token that makes a request.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(super) identity: Identity,
    /// The realm whose path the request came to.
    pub(super) home: Engine,
    /// Whether the request comes from this machine.
    pub(super) local: bool,
    /// The token on whose account the work is counted, if it is.
    pub(super) account: Option<String>,
}

/// Reports to the caller how far a long call has come.
#[derive(Clone)]
struct Progress {
    token: Value,
    reports: mpsc::Sender<ProgressParams>,
}

/// One call of a tool or for a resource.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) door: Door,
    pub(super) visitor: Visitor,
    progress: Option<Progress>,
}

impl Call {
    pub(super) fn new(door: Door, visitor: Visitor) -> Self {
        Self { door, visitor, progress: None }
    }

    /// Lets the call report its progress under the client's token.
    pub(super) fn report_progress(&mut self, token: Value) -> mpsc::Receiver<ProgressParams> {
        let (reports, receiver) = mpsc::channel(1);
        self.progress = Some(Progress { token, reports });
        receiver
    }

    /// Reports that `done` of `total` is done, if the client wants to know.
    pub(super) async fn progress(&self, done: f64, total: f64, message: String) {
        if let Some(Progress { token, reports }) = &self.progress {
            let params = ProgressParams { progress_token: token.clone(), progress: done, total, message };
            // A client that hung up needs no report.
            drop(reports.send(params).await);
        }
    }

    /// Whether the visitor runs a project: the whole server, or the realm that the project is in.
    pub(super) fn runs(&self, project: &Project) -> bool {
        let identity = &self.visitor.identity;
        identity.role == TokenRole::Admin
            && (identity.everywhere || project.realm() == self.visitor.home.realm())
    }

    pub(super) fn is_operator(&self) -> bool {
        self.visitor.identity.is_operator()
    }

    /// Whether the visitor came to the default realm's door.
    pub(super) fn at_default(&self) -> bool {
        self.visitor.home.realm() == self.door.default_realm()
    }

    /// The visitor as a caller of a project's realm. A name belongs to the realm of its token: in another realm the
    /// bearer is `name@realm`, so that it is not taken for an agent or token of the same name there. The rights that a
    /// token has beyond its bearer's own mail (running the realm, observing) belong to that realm, too.
    pub(super) fn own(&self, project: &Project) -> Result<Caller, DoorError> {
        let (identity, home) = (&self.visitor.identity, self.visitor.home.realm());
        if identity.everywhere || project.realm() == home {
            return Ok(identity.caller(VIA));
        }
        let name = AgentId::new(format!("{}@{home}", identity.name)).map_err(Refusal::from)?;
        Ok(Caller::member(name, VIA))
    }

    /// The same for registering agents, with the token that the engine's rule about names goes by. In another realm the
    /// visitor owns what it registers as `name@realm`, and that realm learns of the visitor's realm, so that no caller
    /// there registers under a name that owns agents.
    pub(super) async fn registrar(&self, project: &Project) -> Result<(Caller, Bearer), DoorError> {
        let (own, identity) = (self.own(project)?, &self.visitor.identity);
        if own.agent == identity.name {
            return Ok((own, identity.bearer()));
        }
        self.door.office().introduce(&project.engine, self.visitor.home.realm()).await?;
        let bearer = Bearer { name: own.agent.clone(), admin: false };
        Ok((own, bearer))
    }

    /// Whether the agent of the visitor's own name in another project's realm was entered by another token of the visitor's
    /// realm, before there was a token of that name: it is the visitor's to take.
    pub(super) async fn is_squatted(&self, project: &Project, id: &AgentId) -> bool {
        let (identity, home) = (&self.visitor.identity, self.visitor.home.realm());
        if *id != identity.name || identity.everywhere || project.realm() == home {
            return false;
        }
        let from_home = |bearer: &AgentId| {
            bearer
                .as_str()
                .rsplit_once('@')
                .is_some_and(|(name, realm)| realm == home.as_str() && name != id.as_str())
        };
        self.holder(project, id).await.is_ok_and(|holder| holder.bearer.as_ref().is_some_and(from_home))
    }

    /// The project that a call is about.
    pub(super) async fn project(&self, key: &str) -> Result<Project, DoorError> {
        let mut found = self.door.find_project(self.visitor.home.realm(), key).await?;
        if found.is_none() && self.is_operator() {
            found = self.any_project(key).await?;
        }
        match found {
            Some(found) => self.open(found).await,
            None => Err(self.no_such_project(key).await),
        }
    }

    /// Any realm or project, for the operator.
    async fn any_project(&self, key: &str) -> Result<Option<Found>, DoorError> {
        let found = self.door.find_project(self.door.default_realm(), key).await?;
        if found.is_some() {
            return Ok(found);
        }
        match RealmName::new(key) {
            Ok(name) if self.door.office().has_realm(&name) => Ok(Some(self.door.named(name).await?)),
            _ => Ok(None),
        }
    }

    /// Opens a project's realm, on the account of the visitor's token.
    async fn open(&self, found: Found) -> Result<Project, DoorError> {
        let home = &self.visitor.home;
        let engine = match found.realm == *home.realm() {
            true => home.clone(),
            false => self.door.visit(self.visitor.account.as_deref(), &found.realm).await?,
        };
        Ok(Project::new(engine, found))
    }

    async fn no_such_project(&self, key: &str) -> DoorError {
        let home = self.visitor.home.realm();
        let claims = self.door.claims_for(home, MOST_COMPARED).await.unwrap_or_default();
        let names: Vec<&str> =
            claims.iter().flat_map(|claim| [claim.alias.as_str(), claim.realm.as_str()]).collect();
        let near = nearest(key, names.into_iter());
        let hint = if near.is_empty() {
            "; ensure_project(human_key=<absolute path>) makes one".to_owned()
        } else {
            did_you_mean(&near)
        };
        DoorError::new("PROJECT_NOT_FOUND", format!("project '{key}' not found{hint}")).with_nearest(&near)
    }

    /// The project of that path, made if need be.
    pub(super) async fn ensure(&self, human_key: &str) -> Result<Project, DoorError> {
        let Some(alias) = projects::alias(human_key) else {
            let text = format!(
                "human_key must be an absolute path such as /srv/app (or a repository's address), not '{human_key}'"
            );
            return Err(DoorError::new("INVALID_PROJECT", text));
        };
        let identity = &self.visitor.identity;
        let most = match identity.role {
            TokenRole::Admin => None,
            TokenRole::User => Some(MOST_OF_USER),
            TokenRole::Agent => Some(MOST_OF_AGENT),
        };
        let maker = Maker { name: identity.name.clone(), most };
        let home = self.visitor.home.realm();
        match self.door.make_project(home, &alias, &maker).await {
            Ok(found) => self.open(found).await,
            Err(MakeError::Engine(error)) => Err(error.into()),
            Err(error @ (MakeError::TooMany(_) | MakeError::TooManyOfOne(_))) => {
                Err(DoorError::new("TOO_MANY", error.to_string()))
            }
        }
    }

    /// A project as its callers are shown it, with the realm it is in, and how others get there if it is one of its own.
    pub(super) fn placed(&self, project: &Project) -> PlacedProject {
        let (realm, home) = (project.realm(), self.door.default_realm());
        let note = (self.at_default() && realm != home).then(|| {
            let line = projects::move_line(&project.human_key, home);
            format!(
                "This project is in realm {realm}, where the agents of realm {home} are not: list_agents does not show \
                 them. The operator can bring new sessions into realm {home} with: {line}"
            )
        });
        PlacedProject { project: super::to_wire::project(project), realm: realm.to_string(), note }
    }

    /// The secret by which an agent's holder shows that it is the holder.
    pub(super) fn secret_of(&self, project: &Project, agent: &Agent) -> String {
        let words = ["mcp", project.realm().as_str(), agent.id.as_str(), &agent.created_at.to_string()];
        format!("pha_{}", self.door.admin().derive(&words))
    }

    /// The agent itself as a caller, if the visitor may act for it: with its secret, as its owner, or as an administrator.
    pub(super) async fn act(
        &self,
        project: &Project,
        name: &str,
        secret: Option<&str>,
    ) -> Result<Caller, DoorError> {
        let id = AgentId::new(name)
            .map_err(|why| DoorError::new("INVALID_NAME", format!("agent name '{name}': {why}")))?;
        let caller = Caller::member(id.clone(), VIA);
        let trusted = self.runs(project) || (self.door.trusts_local() && self.visitor.local);
        let own = self.own(project)?;
        if secret.is_some() || !(trusted || own.agent == id) {
            let holder = self.holder(project, &id).await?;
            match secret {
                Some(secret) => {
                    if !bool::from(holder.secret.as_bytes().ct_eq(secret.as_bytes())) {
                        let text =
                            format!("the token is not that of agent '{name}'; register_agent returns it");
                        return Err(DoorError::new("AUTHENTICATION_REQUIRED", text));
                    }
                }
                None if holder.owner.as_ref() == Some(&own.agent) => {}
                None => {
                    let text = format!(
                        "you may not act as '{name}': pass its registration_token (sender_token when sending), \
                         or register a name of your own with register_agent"
                    );
                    return Err(DoorError::new("AUTHENTICATION_REQUIRED", text));
                }
            }
        }
        if own.agent == id {
            self.reclaim(project, &id).await?;
        }
        project.engine.presences().beat(id, "available", None, ALIVE);
        Ok(caller)
    }

    /// Takes the agent of the visitor's own name from another token that entered it, so that nothing of what the visitor does
    /// under its name is shared with that token.
    async fn reclaim(&self, project: &Project, id: &AgentId) -> Result<(), DoorError> {
        let is_shared = |holder: &Holder| holder.bearer.as_ref().is_some_and(|bearer| bearer != id);
        if self.holder(project, id).await.is_ok_and(|holder| is_shared(&holder)) {
            let (existing, bearer) = (Existing::TakeOver, Some(self.visitor.identity.bearer()));
            let verb = Register { id: Some(id.clone()), existing, bearer, ..Register::default() };
            self.ask(project, &self.own(project)?, verb).await?;
        }
        Ok(())
    }

    /// Refuses a name that another token of the door's own realm has a claim to: other projects' realms do not know these
    /// tokens, although they open them.
    pub(super) async fn check_claim(&self, project: &Project, id: &AgentId) -> Result<(), EngineError> {
        let home = &self.visitor.home;
        if project.realm() == home.realm() {
            return Ok(());
        }
        let (realm, bearer, id) = (home.realm().clone(), self.visitor.identity.bearer(), id.clone());
        home.read(move |view| view.may_claim(&realm, &bearer, &id)).await
    }

    /// What a call must show to act for an agent, from the cache or the database.
    async fn holder(&self, project: &Project, agent: &AgentId) -> Result<Arc<Holder>, DoorError> {
        let holders = self.door.holders();
        let (version, key) = (project.engine.directory_version(), (project.realm().clone(), agent.clone()));
        if let Some(known) = holders.get(version, &key) {
            return Ok(known);
        }
        let (office, asked) = (Caller::office(), agent.clone());
        let found = project.engine.read(move |view| {
            let bearer = view.bearer_of(&office, &asked)?;
            Ok((view.agent(&office, &asked)?, bearer))
        });
        match found.await {
            Ok((found, bearer)) => {
                let secret = self.secret_of(project, &found);
                let holder = Arc::new(Holder { owner: found.owner, bearer, secret });
                holders.put(version, key, holder.clone());
                Ok(holder)
            }
            Err(error) => Err(self.explain(project, &self.own(project)?, error).await),
        }
    }

    /// The callers whose mail a call without an agent reads: for administrators the realm's, else the visitor's own and its
    /// agents'.
    pub(super) async fn viewers(
        &self,
        project: &Project,
        name: Option<&str>,
        secret: Option<&str>,
    ) -> Result<Vec<Caller>, DoorError> {
        if let Some(name) = name {
            return Ok(vec![self.act(project, name, secret).await?]);
        }
        let own = self.own(project)?;
        if self.runs(project) {
            return Ok(vec![own]);
        }
        let query = AgentQuery { owner: Some(own.agent.clone()), limit: MOST_OWN, ..AgentQuery::default() };
        let asking = own.clone();
        let agents = project.engine.read(move |view| view.agents(&asking, &query)).await?;
        let theirs = agents.items.into_iter().map(|agent| Caller::member(agent.id, VIA));
        Ok(theirs.chain([own.clone()]).collect())
    }

    /// Asks the project's realm for a change.
    pub(super) async fn ask<V: Verb>(
        &self,
        project: &Project,
        caller: &Caller,
        verb: V,
    ) -> Result<V::Outcome, DoorError> {
        match project.engine.submit(caller, verb).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(self.explain(project, caller, error).await),
        }
    }

    /// Reads the project's database.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        project: &Project,
        caller: &Caller,
        look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static,
    ) -> Result<T, DoorError> {
        match project.engine.read(look).await {
            Ok(found) => Ok(found),
            Err(error) => Err(self.explain(project, caller, error).await),
        }
    }

    /// The error, with the nearest names where an agent was not found.
    pub(super) async fn explain(&self, project: &Project, caller: &Caller, error: EngineError) -> DoorError {
        let EngineError::Refused(Refusal::NoSuchAgent { agent, .. }) = &error else { return error.into() };
        let caller = caller.clone();
        let query = AgentQuery { limit: 1_000, ..AgentQuery::default() };
        let known = project.engine.read(move |view| view.agents(&caller, &query)).await;
        let known = known.map(|page| page.items).unwrap_or_default();
        unknown_agent(agent, &nearest(agent, known.iter().map(|agent| agent.id.as_str())))
    }
}
