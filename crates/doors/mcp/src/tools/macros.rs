//! Several steps in one call, for agents that want to start quickly.

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::attachments::Given;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::contacts::{self, Wish};
use super::inbox::{self, Wanted};
use super::reservations::{self, Asked};
use super::{identity, mail, threads};

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        macro_start_session,
        core,
        ADDS,
        "Start here: open the project, register (or resume agent_name), reserve paths, read the inbox.",
        "human_key! program! model! task_description agent_name file_reservation_paths:texts file_reservation_reason=macro-session file_reservation_ttl_seconds:int=3600 inbox_limit:int=10 registration_token"
    ),
    tool!(
        macro_prepare_thread,
        full,
        ADDS,
        "Join a thread: register if need be, summarise it, read the inbox.",
        "project_key! thread_id! program! model! agent_name task_description register_if_missing:flag=true include_examples:flag=true inbox_limit:int=10 include_inbox_bodies:flag=false llm_mode:flag llm_model registration_token"
    ),
    tool!(
        macro_file_reservation_cycle,
        full,
        CYCLES,
        "Reserve paths and, with auto_release, give them back at once.",
        "project_key! agent_name! paths!:texts ttl_seconds:int=3600 exclusive:flag=true reason=macro-file_reservation auto_release:flag=false registration_token"
    ),
    tool!(
        macro_contact_handshake,
        full,
        ADDS reaches_agents,
        "Request contact, accept it for the target if you may act for it, send a welcome.",
        "project_key! requester target reason ttl_seconds:int=604800 auto_accept:flag=false welcome_subject welcome_body to_project requester_registration_token target_registration_token agent_name to_agent register_if_missing:flag=true program model task_description thread_id"
    ),
];

async fn macro_start_session(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.ensure(args.need("human_key")).await?;
    let agent = identity::register(call, &project, args.text("agent_name"), &args).await?;
    let caller = posthaste_engine::nouns::Caller::member(agent.id.clone(), super::super::call::VIA);
    let paths = args.texts("file_reservation_paths");
    let reserved = if paths.is_empty() {
        json!({ "granted": [], "conflicts": [] })
    } else {
        let asked = Asked {
            paths,
            ttl: args.within("file_reservation_ttl_seconds", 1, 30 * 24 * 3600)?.unwrap_or(3600),
            exclusive: true,
            only_if_free: false,
            reason: args.text("file_reservation_reason").map(str::to_owned),
        };
        reservations::reserve(call, &project, &caller, asked).await?
    };
    let inbox = inbox_of(call, &project, &caller, &args, false).await?;
    let profile = identity::profile_with_secret(call, &project, &agent);
    let secret = profile["registration_token"].clone();
    Ok(json!({
        "project": call.placed(&project),
        "agent": profile,
        "registration_token": secret,
        "file_reservations": reserved,
        "inbox": inbox,
    })
    .into())
}

async fn inbox_of(
    call: &Call,
    project: &posthaste_host::projects::Project,
    caller: &posthaste_engine::nouns::Caller,
    args: &Args,
    bodies: bool,
) -> Result<Vec<Value>, DoorError> {
    let limit = args.within("inbox_limit", 0, 1_000)?.unwrap_or(10);
    let Ok(limit @ 1..) = usize::try_from(limit) else { return Ok(Vec::new()) };
    let letters = inbox::letters(call, project, caller, Wanted { limit, ..Wanted::default() }).await?;
    Ok(letters.iter().map(|letter| to_wire::letter(project, letter, bodies)).collect())
}

async fn macro_prepare_thread(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let agent = match args.text("agent_name") {
        Some(name) if !args.flag("register_if_missing") => {
            let caller = call.act(&project, name, &args).await?;
            identity::seen(call, &project, &caller.clone(), caller.agent).await?.0
        }
        name => identity::register(call, &project, name, &args).await?,
    };
    let caller = posthaste_engine::nouns::Caller::member(agent.id.clone(), super::super::call::VIA);
    let examples = args.flag("include_examples");
    let viewers = [caller.clone()];
    let mut thread = threads::gist(call, &project, &viewers, args.need("thread_id"), 2_000, examples).await?;
    thread["total_messages"] = thread["summary"]["total_messages"].clone();
    let inbox = inbox_of(call, &project, &caller, &args, args.flag("include_inbox_bodies")).await?;
    Ok(json!({
        "project": to_wire::project(&project),
        "agent": identity::profile_with_secret(call, &project, &agent),
        "thread": thread,
        "inbox": inbox,
    })
    .into())
}

async fn macro_file_reservation_cycle(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let asked = Asked {
        paths: args.texts("paths"),
        ttl: args.within("ttl_seconds", 1, 30 * 24 * 3600)?.unwrap_or(3600),
        exclusive: args.flag("exclusive"),
        only_if_free: false,
        reason: args.text("reason").map(str::to_owned),
    };
    let reserved = reservations::reserve(call, &project, &caller, asked).await?;
    let released = match args.flag("auto_release") {
        true => reservations::release(call, &project, &caller, &args).await?,
        false => Value::Null,
    };
    Ok(json!({ "file_reservations": reserved, "released": released }).into())
}

async fn macro_contact_handshake(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let given = |first: &str, second: &str| args.text(first).or_else(|| args.text(second)).map(str::to_owned);
    let (Some(requester), Some(target)) = (given("requester", "agent_name"), given("target", "to_agent"))
    else {
        return Err(DoorError::new(
            "MISSING_ARGUMENT",
            "requester and target are needed (or agent_name and to_agent)",
        ));
    };
    if args.flag("register_if_missing") && args.text("program").is_some() {
        contacts::register_if_missing(call, &project, &requester, &args).await?;
    }
    let caller = call.act_with(&project, &requester, args.text("requester_registration_token")).await?;
    let ttl = args.within("ttl_seconds", 1, 10 * 365 * 24 * 3600)?.unwrap_or(604_800);
    let wish = Wish { to: &target, to_project: args.text("to_project"), reason: args.text("reason"), ttl };
    let request = contacts::request(call, &project, &caller, wish).await?;
    let response = match args.flag("auto_accept") {
        true => {
            let other = match args.text("to_project") {
                Some(key) => call.project(key).await?,
                None => project.clone(),
            };
            let accepter = call.act_with(&other, &target, args.text("target_registration_token")).await?;
            if other.realm() == project.realm() {
                contacts::respond(call, &other, &accepter, &requester, true, ttl).await?
            } else {
                json!({ "from": requester, "to": target, "approved": request["status"] == "approved", "expires_ts": null, "updated": 0 })
            }
        }
        false => Value::Null,
    };
    let welcome = match args.text("welcome_body").or_else(|| args.text("welcome_subject")) {
        None => Value::Null,
        Some(_) => {
            let to =
                posthaste_engine::nouns::AgentId::new(&target).map_err(posthaste_engine::Refusal::from)?;
            let about = args.text("welcome_subject").unwrap_or("Welcome");
            let mut note = mail::note(&to, about, args.text("welcome_body").unwrap_or_default(), false);
            note.within = args.text("thread_id").map(mail::in_thread).transpose()?;
            if let Some(key) = args.text("to_project") {
                let realm = call.project(key).await?.realm().clone();
                note.to = vec![posthaste_engine::nouns::Address::Remote { agent: target.clone(), realm }];
            }
            let sent = mail::post(call, &project, &caller, note, None, &Given::default()).await?;
            to_wire::sent(&project, &sent)
        }
    };
    Ok(json!({ "request": request, "response": response, "welcome_message": welcome }).into())
}
