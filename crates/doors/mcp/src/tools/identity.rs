//! Projects and the agents in them: who is here, under which name.

use posthaste_engine::names::memorable;
use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Json};
use posthaste_engine::presence::Presence;
use posthaste_engine::verbs::agents::{Bearer, Existing, Register, Unregister};
use posthaste_engine::views::AgentQuery;
use posthaste_engine::{EngineError, Refusal, stamp};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{ALIVE, Call, VIA};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use posthaste_host::projects::{Project, alias, below};

pub(in super::super) const LINES: &[Line] = &[
    tool!(health_check, core, READS, "Whether the office answers, and its limits.", ""),
    tool!(
        ensure_project,
        core,
        SETS,
        "Open the project of a working directory (absolute path). Call first; repeating is harmless.",
        "human_key! identity_mode"
    ),
    tool!(
        register_agent,
        core,
        ADDS,
        "Become an agent of the project, or resume one by name. Without a name one is made up. Returns registration_token: keep it to prove who you are.",
        "project_key! program! model! name task_description attachments_policy=auto registration_token"
    ),
    tool!(
        create_agent_identity,
        full,
        ADDS,
        "Register a new agent under a name nobody has, near name_hint if given.",
        "project_key! program! model! name_hint task_description attachments_policy=auto"
    ),
    tool!(
        whois,
        core,
        READS,
        "One agent's profile and contact policy.",
        "project_key! agent_name! include_recent_commits:flag=true commit_limit:int=5 registration_token"
    ),
    tool!(
        list_agents,
        core,
        READS,
        "Who can be written to in this project, through every door of the office.",
        "project_key! limit:int=100 after"
    ),
    tool!(
        deregister_agent,
        full,
        ENDS,
        "Retire an agent. Its mail stays; registering the name again brings it back.",
        "project_key! agent_name! registration_token"
    ),
];

/// What a name may look like when it is asked for.
const LONGEST_NAME: usize = 128;
/// Where an agent's entry says in which directory it works.
const DIRECTORY: &str = "directory";
/// Agents that are looked through for those of a directory: pages, and agents of one.
const MOST_PAGES: usize = 10;
const PAGE: usize = 500;
/// Made-up names that are tried before giving up.
const NAME_TRIES: u64 = 200;

async fn health_check(call: &Call, _: Args) -> Result<Answer, DoorError> {
    let report = call.door.check_health().await;
    let limits = call.door.office().limits();
    let host = call.visitor.home.path().display().to_string();
    Ok(json!({
        "status": if report.problem.is_none() { "ok" } else { "unhealthy" },
        "reason": report.problem,
        "environment": "posthaste",
        "version": env!("CARGO_PKG_VERSION"),
        "http_host": null,
        "http_port": null,
        "database_url": if call.runs_office() { Value::from(format!("sqlite://{host}")) } else { Value::Null },
        "realm": call.visitor.home.realm(),
        "limits": { "message_bytes": limits.message_bytes, "page": limits.page },
    })
    .into())
}

async fn ensure_project(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.ensure(args.need("human_key")).await?;
    Ok(call.placed(&project).into())
}

async fn register_agent(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let agent = register(call, &project, args.text("name"), &args).await?;
    Ok(with_secret(call, &project, &agent).into())
}

async fn create_agent_identity(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    if let Some(hint) = args.text("name_hint").filter(|hint| check_name(hint).is_ok()) {
        let (caller, bearer) = call.registrar(&project).await?;
        let verb = Register { existing: Existing::Refuse, ..entry(bearer, hint, &args)? };
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
            Ok(registered) => return Ok(with_secret(call, &project, &registered.agent).into()),
            Err(error) if taken(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let agent = made_up(call, &project, &args).await?;
    Ok(with_secret(call, &project, &agent).into())
}

/// Registers under a name, taking it over if it is the visitor's, or under a made-up one.
pub(in super::super) async fn register(
    call: &Call,
    project: &Project,
    name: Option<&str>,
    args: &Args,
) -> Result<Agent, DoorError> {
    let Some(name) = name else { return made_up(call, project, args).await };
    check_name(name)?;
    let (own, bearer) = call.registrar(project).await?;
    let mut verb = Register { existing: Existing::TakeOver, ..entry(bearer, name, args)? };
    let id = AgentId::new(name).map_err(Refusal::from)?;
    // With its own secret an agent comes back whoever registered it.
    let mut caller = match args.token() {
        Some(token) => match call.act_with(project, name, Some(token)).await {
            Ok(caller) => caller,
            // Nobody of that name: there is nothing to prove.
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

async fn made_up(call: &Call, project: &Project, args: &Args) -> Result<Agent, DoorError> {
    let (caller, bearer) = call.registrar(project).await?;
    // Any number will do to start from, as long as others start elsewhere.
    let start = to_wire::number(&[&stamp::secret()]).unsigned_abs();
    for number in start..start.saturating_add(NAME_TRIES) {
        let verb =
            Register { existing: Existing::Refuse, ..entry(bearer.clone(), &memorable(number), args)? };
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
    if starts && name.chars().all(plain) && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    let text = format!(
        "'{name}' cannot be an agent's name: letters, digits, '.', '_' and '-', starting with a letter or digit, \
         at most {LONGEST_NAME}; such as BlueLake or worker_42"
    );
    Err(DoorError::new("INVALID_NAME", text))
}

fn entry(bearer: Bearer, name: &str, args: &Args) -> Result<Register, DoorError> {
    let id = AgentId::new(name).map_err(Refusal::from)?;
    let mut meta = json!({
        "program": args.need("program"),
        "model": args.need("model"),
        "attachments_policy": args.text("attachments_policy").unwrap_or("auto"),
    });
    // Where the agent works, so that the guard of that directory recognises it.
    let named = args.text("human_key").or_else(|| args.text("project_key"));
    if let Some(directory) = named.and_then(alias) {
        meta[DIRECTORY] = directory.into();
    }
    Ok(Register {
        id: Some(id),
        kind: Some(AgentKind::Agent),
        name: Some(name.to_owned()),
        description: args.text("task_description").map(str::to_owned),
        meta: Some(Json::from_value(&meta)),
        bearer: Some(bearer),
        ..Register::default()
    })
}

fn with_secret(call: &Call, project: &Project, agent: &Agent) -> Value {
    let mut profile = to_wire::profile(project, agent, None);
    profile["registration_token"] = call.secret_of(project, agent).into();
    profile["shell"] = format!("export POSTHASTE_AGENT={}", agent.id).into();
    profile
}

/// The agents that say they work in a directory, below it or above it, as far as the visitor may speak for them. Those
/// that gave no sign of life lately are left out unless they are in `holders`.
pub(in super::super) async fn working_in(
    call: &Call,
    project: &Project,
    directory: &str,
    holders: &[AgentId],
) -> Result<Vec<AgentId>, DoorError> {
    let own = call.own(project)?;
    let near = |place: &str| {
        place == directory || below(place, directory).is_some() || below(directory, place).is_some()
    };
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = agents(call, project, after.take(), PAGE).await?;
        after = page.last().filter(|_| page.len() >= PAGE).map(|(agent, _)| agent.id.clone());
        for (agent, seen) in page {
            let ours = call.runs(project) || agent.owner.as_ref() == Some(&own.agent);
            let here = to_wire::said(&agent, DIRECTORY).as_str().is_some_and(near);
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

/// The profile as `macro_start_session` and the like show it.
pub(in super::super) fn profile_with_secret(call: &Call, project: &Project, agent: &Agent) -> Value {
    with_secret(call, project, agent)
}

async fn whois(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let id = AgentId::new(args.need("agent_name")).map_err(Refusal::from)?;
    if args.token().is_some() {
        call.act(&project, id.as_str(), &args).await?;
    }
    args.within("commit_limit", 0, 100)?;
    let caller = call.own(&project)?;
    let (agent, seen) = seen(call, &project, &caller, id).await?;
    let mut profile = to_wire::profile(&project, &agent, seen.as_ref());
    profile["contact_policy"] = to_wire::policy(&agent).into();
    // Mail is not kept in a repository, so there are no commits to show.
    profile["recent_commits"] = json!([]);
    Ok(profile.into())
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

async fn list_agents(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let limit = args.within("limit", 1, 1_000)?.unwrap_or(100);
    let after = args.text("after").map(AgentId::new).transpose().map_err(Refusal::from)?;
    let rows = agents(call, &project, after, usize::try_from(limit).unwrap_or(100)).await?;
    let row = |(agent, seen): &(Agent, Option<Presence>)| {
        let mut row = to_wire::profile(&project, agent, seen.as_ref());
        row["door"] = agent.via.as_str().into();
        row["kind"] = json!(agent.kind);
        row["role"] = json!(agent.role);
        row["online"] = (seen.is_some() || project.engine.is_attached(&agent.id)).into();
        row["contact_policy"] = to_wire::policy(agent).into();
        row
    };
    Ok(Answer::list(&rows.iter().map(row).collect::<Vec<_>>(), "No agents that you can see."))
}

async fn deregister_agent(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let verb = Unregister { agent: caller.agent.clone(), reason: None, cause: None };
    let gone = call.ask(&project, &caller, verb).await?;
    project.engine.presences().leave(&gone.id);
    Ok(json!({ "agent": gone.id, "retired": true, "retired_at": gone.retired_at.map(to_wire::time) }).into())
}
