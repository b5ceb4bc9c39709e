//! Projects and the agents in them.

use posthaste_engine::names::memorable;
use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller};
use posthaste_engine::presence::Presence;
use posthaste_engine::verbs::agents::{Bearer, Existing, Register, Unregister};
use posthaste_engine::views::AgentQuery;
use posthaste_engine::{EngineError, Refusal, stamp};
use posthaste_wire::mcp::answers::{
    DeregisteredAgent, Health, HealthLimits, ListedAgent, RegisteredAgent, ResourceAgent, WhoisAnswer,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, limit, within, yes};
use super::super::call::{ALIVE, Call, VIA};
use super::super::errors::DoorError;
use super::super::meta::{self, AgentMeta, DIRECTORY};
use super::super::table::{Line, tool};
use super::super::to_wire;
use posthaste_host::projects::{Project, alias, below};

pub(in super::super) const LINES: &[Line] = &[
    tool!(health_check(HealthCheckArgs), core, READS),
    tool!(ensure_project(EnsureProjectArgs), core, SETS),
    tool!(register_agent(RegisterAgentArgs), core, ADDS),
    tool!(create_agent_identity(CreateAgentIdentityArgs), full, ADDS),
    tool!(whois(WhoisArgs), core, READS),
    tool!(list_agents(ListAgentsArgs), core, READS),
    tool!(deregister_agent(DeregisterAgentArgs), full, ENDS),
];

/// Whether the server answers, and its limits.
#[derive(Debug, Deserialize, JsonSchema)]
struct HealthCheckArgs {}

/// Open the project of a working directory (absolute path). Call first; repeating is harmless.
#[derive(Debug, Deserialize, JsonSchema)]
struct EnsureProjectArgs {
    /// absolute path of the working directory
    human_key: String,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    identity_mode: Option<String>,
}

/// Become an agent of the project, or resume one by name. Without a name one is made up. Returns registration_token: keep it to prove who you are.
#[derive(Debug, Deserialize, JsonSchema)]
struct RegisterAgentArgs {
    /// absolute path or slug
    project_key: String,
    /// the client, such as claude-code
    program: String,
    model: String,
    name: Option<String>,
    task_description: Option<String>,
    #[serde(default = "automatic")]
    attachments_policy: String,
    registration_token: Option<String>,
}

/// Register a new agent under an unused name, near name_hint if given.
#[derive(Debug, Deserialize, JsonSchema)]
struct CreateAgentIdentityArgs {
    /// absolute path or slug
    project_key: String,
    /// the client, such as claude-code
    program: String,
    model: String,
    name_hint: Option<String>,
    task_description: Option<String>,
    #[serde(default = "automatic")]
    attachments_policy: String,
}

/// One agent's profile and contact policy.
#[derive(Debug, Deserialize, JsonSchema)]
struct WhoisArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    #[serde(default = "yes")]
    include_recent_commits: bool,
    /// ignored
    #[serde(default = "int::<5>")]
    commit_limit: i64,
    registration_token: Option<String>,
}

/// Who can be written to in this project, through every door of the server.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListAgentsArgs {
    /// absolute path or slug
    project_key: String,
    #[serde(default = "int::<100>")]
    limit: i64,
    /// last name of the page before
    after: Option<String>,
}

/// Retire an agent. Its mail stays; registering the name again brings it back.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeregisterAgentArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    registration_token: Option<String>,
}

fn automatic() -> String {
    "auto".to_owned()
}

/// The longest name that can be asked for.
const MAX_NAME_BYTES: usize = 128;
/// Agents that are searched for those of a directory: pages, and agents per page.
const MAX_PAGES: usize = 10;
const AGENTS_PER_PAGE: usize = 500;
/// Made-up names that are tried before giving up.
const NAME_TRIES: u64 = 200;

async fn health_check(call: &Call, _: HealthCheckArgs) -> Result<Answer, DoorError> {
    let report = call.door.check_health().await;
    let limits = call.door.office().limits();
    let path = call.visitor.home.path().display();
    Ok(Answer::one(&Health {
        status: if report.problem.is_none() { "ok" } else { "unhealthy" }.to_owned(),
        reason: report.problem,
        environment: "posthaste".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        http_host: None,
        http_port: None,
        database_url: call.is_operator().then(|| format!("sqlite://{path}")),
        realm: call.visitor.home.realm().to_string(),
        limits: HealthLimits { message_bytes: limits.message_bytes, page: limits.page },
    }))
}

async fn ensure_project(call: &Call, args: EnsureProjectArgs) -> Result<Answer, DoorError> {
    let project = call.ensure(&args.human_key).await?;
    Ok(Answer::one(&call.placed(&project)))
}

async fn register_agent(call: &Call, args: RegisterAgentArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let registration = Registration {
        program: &args.program,
        model: &args.model,
        task_description: args.task_description.as_deref(),
        attachments_policy: Some(&args.attachments_policy),
        directory: Some(&args.project_key),
        secret: args.registration_token.as_deref(),
    };
    let agent = register(call, &project, args.name.as_deref(), &registration).await?;
    Ok(Answer::one(&registered(call, &project, &agent)))
}

async fn create_agent_identity(call: &Call, args: CreateAgentIdentityArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let registration = Registration {
        program: &args.program,
        model: &args.model,
        task_description: args.task_description.as_deref(),
        attachments_policy: Some(&args.attachments_policy),
        directory: Some(&args.project_key),
        secret: None,
    };
    if let Some(hint) = args.name_hint.as_deref().filter(|hint| check_name(hint).is_ok()) {
        let (caller, bearer) = call.registrar(&project).await?;
        let verb = Register { existing: Existing::Refuse, ..entry(bearer, hint, &registration)? };
        let taken = |error: &EngineError| {
            let refusal = error.refusal();
            matches!(refusal, Some(Refusal::AgentExists { .. } | Refusal::LooksTaken { .. }))
        };
        let claimed = match &verb.id {
            Some(id) => call.check_claim(&project, id).await,
            None => Ok(()),
        };
        let entered = match claimed {
            Ok(()) => project.engine.submit(&caller, verb).await,
            Err(error) => Err(error),
        };
        match entered {
            Ok(entered) => return Ok(Answer::one(&registered(call, &project, &entered.agent))),
            Err(error) if taken(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let agent = made_up(call, &project, &registration).await?;
    Ok(Answer::one(&registered(call, &project, &agent)))
}

/// Registers under a name, taking it over if it is the caller's, or under a made-up one.
pub(super) async fn register(
    call: &Call,
    project: &Project,
    name: Option<&str>,
    registration: &Registration<'_>,
) -> Result<Agent, DoorError> {
    let Some(name) = name else { return made_up(call, project, registration).await };
    check_name(name)?;
    let (own, bearer) = call.registrar(project).await?;
    let mut verb = Register { existing: Existing::TakeOver, ..entry(bearer, name, registration)? };
    let id = AgentId::new(name).map_err(Refusal::from)?;
    // With its own secret an agent comes back, no matter which token registered it.
    let mut caller = match registration.secret {
        Some(secret) => match call.act(project, name, Some(secret)).await {
            Ok(caller) => caller,
            // There is no agent of that name, so there is nothing to prove.
            Err(problem) if problem.code == "AGENT_NOT_FOUND" => own,
            Err(problem) => return Err(problem),
        },
        None => own,
    };
    if !caller.is(&id) {
        call.check_claim(project, &id).await?;
        if call.is_squatted(project, &id).await {
            verb.owner = Some(caller.agent.clone());
            verb.bearer = Some(Bearer { name: id.clone(), admin: false });
            caller = Caller::member(id, VIA);
        }
    }
    let registered = call.ask(project, &caller, verb).await?;
    project.engine.presences().beat(registered.agent.id.clone(), "available", None, ALIVE);
    Ok(registered.agent)
}

async fn made_up(
    call: &Call,
    project: &Project,
    registration: &Registration<'_>,
) -> Result<Agent, DoorError> {
    let (caller, bearer) = call.registrar(project).await?;
    // A random start, so that callers that register at once try different names.
    let start = to_wire::number(&[&stamp::secret()]).unsigned_abs();
    for number in start..start.saturating_add(NAME_TRIES) {
        let verb = Register {
            existing: Existing::Refuse,
            ..entry(bearer.clone(), &memorable(number), registration)?
        };
        match project.engine.submit(&caller, verb).await {
            Ok(registered) => {
                project.engine.presences().beat(registered.agent.id.clone(), "available", None, ALIVE);
                return Ok(registered.agent);
            }
            Err(EngineError::Refused(Refusal::AgentExists { .. } | Refusal::LooksTaken { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(DoorError::new("NAME_TAKEN", "no free name was found; give one with 'name'"))
}

fn check_name(name: &str) -> Result<(), DoorError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && name.chars().all(plain) && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let text = format!(
        "'{name}' cannot be an agent's name: alphanumeric characters, '.', '_' and '-', starting with an alphanumeric one, \
         at most {MAX_NAME_BYTES}; such as BlueLake or worker_42"
    );
    Err(DoorError::new("INVALID_NAME", text))
}

/// What an agent gives to be registered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registration<'a> {
    pub(super) program: &'a str,
    pub(super) model: &'a str,
    pub(super) task_description: Option<&'a str>,
    pub(super) attachments_policy: Option<&'a str>,
    /// The project as it was named: its path, if the agent works there.
    pub(super) directory: Option<&'a str>,
    /// The secret of the agent that is resumed.
    pub(super) secret: Option<&'a str>,
}

fn entry(bearer: Bearer, name: &str, given: &Registration<'_>) -> Result<Register, DoorError> {
    let id = AgentId::new(name).map_err(Refusal::from)?;
    let meta = AgentMeta {
        program: given.program,
        model: given.model,
        attachments_policy: given.attachments_policy.unwrap_or("auto"),
        directory: given.directory.and_then(alias),
    };
    Ok(Register {
        id: Some(id),
        kind: Some(AgentKind::Agent),
        name: Some(name.to_owned()),
        description: given.task_description.map(str::to_owned),
        meta: Some(meta::json(&meta)),
        bearer: Some(bearer),
        ..Register::default()
    })
}

/// An agent's profile with its secret, for the caller that registered it.
pub(super) fn registered(call: &Call, project: &Project, agent: &Agent) -> RegisteredAgent {
    RegisteredAgent {
        profile: to_wire::profile(project, agent, None),
        registration_token: call.secret_of(project, agent),
        shell: format!("export POSTHASTE_AGENT={}", agent.id),
    }
}

/// The agents that say they work in a directory, below it or above it, as far as the caller may speak for them. Agents
/// that gave no sign of life lately are left out unless they are in `holders`.
pub(in super::super) async fn working_in(
    call: &Call,
    project: &Project,
    directory: &str,
    holders: &[AgentId],
) -> Result<Vec<AgentId>, DoorError> {
    let own = call.own(project)?;
    let near = |other: &str| {
        other == directory || below(other, directory).is_some() || below(directory, other).is_some()
    };
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = agents(call, project, after.take(), AGENTS_PER_PAGE).await?;
        after = page.last().filter(|_| page.len() >= AGENTS_PER_PAGE).map(|(agent, _)| agent.id.clone());
        for (agent, seen) in page {
            let ours = call.runs(project) || agent.owner.as_ref() == Some(&own.agent);
            let here = to_wire::said(&agent, DIRECTORY).is_some_and(|directory| near(&directory));
            let active =
                seen.is_some() || project.engine.is_attached(&agent.id) || holders.contains(&agent.id);
            if ours && here && active {
                found.push(agent.id);
            }
        }
        if after.is_none() {
            break;
        }
    }
    Ok(found)
}

async fn whois(call: &Call, args: WhoisArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let id = AgentId::new(&args.agent_name).map_err(Refusal::from)?;
    if args.registration_token.is_some() {
        call.act(&project, id.as_str(), args.registration_token.as_deref()).await?;
    }
    within("commit_limit", args.commit_limit, 0, 100)?;
    let caller = call.own(&project)?;
    let (agent, seen) = seen(call, &project, &caller, id).await?;
    Ok(Answer::one(&WhoisAnswer {
        profile: to_wire::profile(&project, &agent, seen.as_ref()),
        contact_policy: to_wire::policy(&agent).to_owned(),
        recent_commits: [],
    }))
}

/// An agent and its last sign of life.
pub(in super::super) async fn seen(
    call: &Call,
    project: &Project,
    caller: &Caller,
    id: AgentId,
) -> Result<(Agent, Option<Presence>), DoorError> {
    let (asking, engine) = (caller.clone(), project.engine.clone());
    call.look(project, caller, move |view| {
        let agent = view.agent(&asking, &id)?;
        let seen = engine.presences().of(view, &asking, &agent)?;
        Ok((agent, seen))
    })
    .await
}

/// The agents of a project, by name.
pub(in super::super) async fn agents(
    call: &Call,
    project: &Project,
    after: Option<AgentId>,
    limit: usize,
) -> Result<Vec<(Agent, Option<Presence>)>, DoorError> {
    let caller = call.own(project)?;
    let (asking, engine) = (caller.clone(), project.engine.clone());
    call.look(project, &caller, move |view| {
        let query = AgentQuery { after, limit, ..AgentQuery::default() };
        let mut found = Vec::new();
        for agent in view.agents(&asking, &query)?.items {
            let seen = engine.presences().of(view, &asking, &agent)?;
            found.push((agent, seen));
        }
        Ok(found)
    })
    .await
}

async fn list_agents(call: &Call, args: ListAgentsArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let limit = limit(args.limit)?;
    let after = args.after.map(AgentId::new).transpose().map_err(Refusal::from)?;
    let rows = agents(call, &project, after, limit).await?;
    let row = |(agent, seen): &(Agent, Option<Presence>)| ListedAgent {
        agent: listed(&project, agent, seen.as_ref()),
        kind: agent.kind.as_str().to_owned(),
        role: agent.role.clone(),
        online: seen.is_some() || project.engine.is_attached(&agent.id),
        contact_policy: to_wire::policy(agent).to_owned(),
    };
    Ok(Answer::list(&rows.iter().map(row).collect::<Vec<_>>(), "No agents that you can see."))
}

/// An agent with the door that it came through.
pub(in super::super) fn listed(project: &Project, agent: &Agent, seen: Option<&Presence>) -> ResourceAgent {
    ResourceAgent { profile: to_wire::profile(project, agent, seen), door: agent.via.to_string() }
}

async fn deregister_agent(call: &Call, args: DeregisterAgentArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let verb = Unregister { agent: caller.agent.clone(), reason: None, cause: None };
    let gone = call.ask(&project, &caller, verb).await?;
    project.engine.presences().leave(&gone.id);
    Ok(Answer::one(&DeregisteredAgent {
        agent: gone.id.to_string(),
        retired: true,
        retired_at: gone.retired_at.map(to_wire::time),
    }))
}
