//! Several steps in one call, for agents that want to start quickly.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Address, AgentId, Caller};
use posthaste_wire::mcp::answers::{
    self, ContactAnswer, Handshake, InboxMessage, ReservationCycle, Reserved,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, within, yes};
use super::super::attachments::Given;
use super::super::call::{Call, VIA};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::contacts::{self, MAX_CONTACT_SECONDS, Wish};
use super::identity::{self, Registration};
use super::reservations::{self, MAX_RESERVATION_SECONDS, Wanted};
use super::{inbox, mail, threads};
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(macro_start_session(MacroStartSessionArgs), core, ADDS),
    tool!(macro_prepare_thread(MacroPrepareThreadArgs), full, ADDS),
    tool!(macro_file_reservation_cycle(MacroFileReservationCycleArgs), full, CYCLES),
    tool!(macro_contact_handshake(MacroContactHandshakeArgs), full, ADDS reaches_agents),
];

/// Start here: open the project, register (or resume agent_name), reserve paths, read the inbox.
#[derive(Debug, Deserialize, JsonSchema)]
struct MacroStartSessionArgs {
    /// absolute path of the working directory
    human_key: String,
    /// the client, such as claude-code
    program: String,
    model: String,
    task_description: Option<String>,
    agent_name: Option<String>,
    #[serde(default)]
    file_reservation_paths: Vec<String>,
    #[serde(default = "session_reason")]
    file_reservation_reason: String,
    #[serde(default = "int::<3600>")]
    file_reservation_ttl_seconds: i64,
    #[serde(default = "int::<10>")]
    inbox_limit: i64,
    registration_token: Option<String>,
}

/// Join a thread: register if need be, summarise it, read the inbox.
#[derive(Debug, Deserialize, JsonSchema)]
struct MacroPrepareThreadArgs {
    /// absolute path or slug
    project_key: String,
    thread_id: String,
    /// the client, such as claude-code
    program: String,
    model: String,
    agent_name: Option<String>,
    task_description: Option<String>,
    #[serde(default = "yes")]
    register_if_missing: bool,
    #[serde(default = "yes")]
    include_examples: bool,
    #[serde(default = "int::<10>")]
    inbox_limit: i64,
    #[serde(default)]
    include_inbox_bodies: bool,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    llm_mode: Option<bool>,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    llm_model: Option<String>,
    registration_token: Option<String>,
}

/// Reserve paths and, with auto_release, give them back at once.
#[derive(Debug, Deserialize, JsonSchema)]
struct MacroFileReservationCycleArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    paths: Vec<String>,
    #[serde(default = "int::<3600>")]
    ttl_seconds: i64,
    /// false: shared, conflicts with exclusive ones only
    #[serde(default = "yes")]
    exclusive: bool,
    #[serde(default = "cycle_reason")]
    reason: String,
    #[serde(default)]
    auto_release: bool,
    registration_token: Option<String>,
}

/// Request contact, accept it for the target if you may act for it, send a welcome.
#[derive(Debug, Deserialize, JsonSchema)]
struct MacroContactHandshakeArgs {
    /// absolute path or slug
    project_key: String,
    requester: Option<String>,
    target: Option<String>,
    reason: Option<String>,
    #[serde(default = "int::<604_800>")]
    ttl_seconds: i64,
    #[serde(default)]
    auto_accept: bool,
    welcome_subject: Option<String>,
    welcome_body: Option<String>,
    /// project of to_agent, if another
    to_project: Option<String>,
    requester_registration_token: Option<String>,
    target_registration_token: Option<String>,
    /// same as requester
    agent_name: Option<String>,
    /// same as target
    to_agent: Option<String>,
    #[serde(default = "yes")]
    register_if_missing: bool,
    /// the client, such as claude-code
    program: Option<String>,
    model: Option<String>,
    task_description: Option<String>,
    thread_id: Option<String>,
}

fn session_reason() -> String {
    "macro-session".to_owned()
}

fn cycle_reason() -> String {
    "macro-file_reservation".to_owned()
}

async fn macro_start_session(call: &Call, args: MacroStartSessionArgs) -> Result<Answer, DoorError> {
    let project = call.ensure(&args.human_key).await?;
    let registration = Registration {
        program: &args.program,
        model: &args.model,
        task_description: args.task_description.as_deref(),
        directory: Some(&args.human_key),
        secret: args.registration_token.as_deref(),
        ..Registration::default()
    };
    let agent = identity::register(call, &project, args.agent_name.as_deref(), &registration).await?;
    let caller = Caller::member(agent.id.clone(), VIA);
    let file_reservations = if args.file_reservation_paths.is_empty() {
        Reserved::default()
    } else {
        let ttl = args.file_reservation_ttl_seconds;
        let wanted = Wanted {
            paths: args.file_reservation_paths,
            ttl: within("file_reservation_ttl_seconds", ttl, 1, MAX_RESERVATION_SECONDS)?,
            exclusive: true,
            only_if_free: false,
            reason: Some(args.file_reservation_reason),
        };
        reservations::reserve(call, &project, &caller, wanted).await?
    };
    let inbox = inbox_of(call, &project, &caller, args.inbox_limit, false).await?;
    let agent = identity::registered(call, &project, &agent);
    Ok(Answer::one(&answers::Session {
        project: call.placed(&project),
        registration_token: agent.registration_token.clone(),
        agent,
        file_reservations,
        inbox,
    }))
}

async fn inbox_of(
    call: &Call,
    project: &Project,
    caller: &Caller,
    limit: i64,
    bodies: bool,
) -> Result<Vec<InboxMessage>, DoorError> {
    let limit = within("inbox_limit", limit, 0, 1_000)?;
    let Ok(limit @ 1..) = usize::try_from(limit) else { return Ok(Vec::new()) };
    let wanted = inbox::Wanted { limit, ..inbox::Wanted::default() };
    let found = inbox::messages(call, project, caller, wanted).await?;
    Ok(to_wire::inbox(project, &found, bodies))
}

async fn macro_prepare_thread(call: &Call, args: MacroPrepareThreadArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let secret = args.registration_token.as_deref();
    let agent = match args.agent_name.as_deref() {
        Some(name) if !args.register_if_missing => {
            let caller = call.act(&project, name, secret).await?;
            identity::seen(call, &project, &caller.clone(), caller.agent).await?.0
        }
        name => {
            let registration = Registration {
                program: &args.program,
                model: &args.model,
                task_description: args.task_description.as_deref(),
                directory: Some(&args.project_key),
                secret,
                ..Registration::default()
            };
            identity::register(call, &project, name, &registration).await?
        }
    };
    let caller = Caller::member(agent.id.clone(), VIA);
    let examples = args.include_examples;
    let viewers = [caller.clone()];
    let mut thread = threads::summary(call, &project, &viewers, &args.thread_id, 2_000, examples).await?;
    thread.total_messages = Some(thread.summary.total_messages);
    let inbox = inbox_of(call, &project, &caller, args.inbox_limit, args.include_inbox_bodies).await?;
    Ok(Answer::one(&answers::PreparedThread {
        project: to_wire::project(&project),
        agent: identity::registered(call, &project, &agent),
        thread,
        inbox,
    }))
}

async fn macro_file_reservation_cycle(
    call: &Call,
    args: MacroFileReservationCycleArgs,
) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let wanted = Wanted {
        paths: args.paths.clone(),
        ttl: within("ttl_seconds", args.ttl_seconds, 1, MAX_RESERVATION_SECONDS)?,
        exclusive: args.exclusive,
        only_if_free: false,
        reason: Some(args.reason),
    };
    let file_reservations = reservations::reserve(call, &project, &caller, wanted).await?;
    let released = match args.auto_release {
        true => Some(reservations::release(call, &project, &caller, &args.paths, &[]).await?),
        false => None,
    };
    Ok(Answer::one(&ReservationCycle { file_reservations, released }))
}

async fn macro_contact_handshake(call: &Call, args: MacroContactHandshakeArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let (requester, target) = (args.requester.or(args.agent_name), args.target.or(args.to_agent));
    let (Some(requester), Some(target)) = (requester, target) else {
        return Err(DoorError::new(
            "MISSING_ARGUMENT",
            "requester and target are needed (or agent_name and to_agent)",
        ));
    };
    if args.register_if_missing
        && let Some(program) = &args.program
    {
        let registration = Registration {
            program,
            model: args.model.as_deref().unwrap_or_default(),
            task_description: args.task_description.as_deref(),
            directory: Some(&args.project_key),
            ..Registration::default()
        };
        contacts::register_if_missing(call, &project, &requester, &registration).await?;
    }
    let caller = call.act(&project, &requester, args.requester_registration_token.as_deref()).await?;
    let ttl = within("ttl_seconds", args.ttl_seconds, 1, MAX_CONTACT_SECONDS)?;
    let to_project = args.to_project.as_deref();
    let wish = Wish { to: &target, to_project, reason: args.reason.as_deref(), ttl };
    let request = contacts::request(call, &project, &caller, wish).await?;
    let response = match args.auto_accept {
        true => {
            let other = match to_project {
                Some(key) => call.project(key).await?,
                None => project.clone(),
            };
            let accepter = call.act(&other, &target, args.target_registration_token.as_deref()).await?;
            Some(if other.realm() == project.realm() {
                contacts::respond(call, &other, &accepter, &requester, true, ttl).await?
            } else {
                ContactAnswer {
                    from: requester,
                    to: target.clone(),
                    approved: request.status == "approved",
                    expires_ts: None,
                    updated: 0,
                }
            })
        }
        false => None,
    };
    let welcome_message = match (&args.welcome_subject, &args.welcome_body) {
        (None, None) => None,
        (about, body) => {
            let to = AgentId::new(&target).map_err(Refusal::from)?;
            let about = about.as_deref().unwrap_or("Welcome");
            let mut note = mail::note(&to, about, body.as_deref().unwrap_or_default(), false);
            note.within = args.thread_id.as_deref().map(mail::in_thread).transpose()?;
            if let Some(key) = to_project {
                let realm = call.project(key).await?.realm().clone();
                note.to = vec![Address::Remote { agent: target, realm }];
            }
            let sent = mail::post(call, &project, &caller, note, None, &Given::default()).await?;
            Some(to_wire::sent(&project, &sent))
        }
    };
    Ok(Answer::one(&Handshake { request, response, welcome_message }))
}
