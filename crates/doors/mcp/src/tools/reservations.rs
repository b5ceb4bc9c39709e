//! Leases on paths. Advisory: a conflict is told, with who, until when and why, and never in the way unless asked.

use posthaste_engine::nouns::{AgentId, Audience, Caller, Millis, Reservation};
use posthaste_engine::verbs::reservations::{Release, Renew, Which};
use posthaste_engine::verbs::reservations::{ReserveEach, plain};
use posthaste_engine::views::ReservationQuery;
use posthaste_engine::{Refusal, stamp};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::attachments::Given;
use super::super::call::{ALIVE, Call};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::{identity, mail};
use posthaste_host::projects::{Project, alias, below};

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        file_reservation_paths,
        core,
        ADDS,
        "Announce that you will edit these paths or globs (relative to the project). Granted even on conflict unless fail_on_conflict; conflicts name the holders.",
        "project_key! agent_name! paths!:texts ttl_seconds:int=3600 exclusive:flag=true reason fail_on_conflict:flag=false registration_token"
    ),
    tool!(
        renew_file_reservations,
        core,
        ADDS,
        "Prolong your reservations: those named by path or id, else all.",
        "project_key! agent_name! extend_seconds:int=1800 paths:texts file_reservation_ids:ints registration_token"
    ),
    tool!(
        release_file_reservations,
        core,
        ENDS,
        "Give reservations back: those named by path or id, else all.",
        "project_key! agent_name! paths:texts file_reservation_ids:ints registration_token"
    ),
    tool!(
        check_file_reservation_conflicts,
        full,
        READS,
        "Who holds these paths, without reserving them. agent_name's own reservations do not count. With directory: which agents work there.",
        "project_key! paths!:texts agent_name directory exclusive:flag=true registration_token"
    ),
    tool!(
        force_release_file_reservation,
        full,
        ENDS reaches_agents,
        "Release another agent's stale reservation. Refused while the holder shows signs of life.",
        "project_key! agent_name! file_reservation_id!:int notify_previous:flag=true note registration_token"
    ),
];

/// The longest lease, in seconds.
const LONGEST_LEASE: i64 = 30 * 24 * 3600;
/// How long after its last letter or lease an agent counts as alive.
const GRACE: Millis = 15 * 60 * 1000;
/// Paths that are looked up at once.
const MOST_CHECKED: usize = 5_000;
/// Leases read at once; one agent has no more in a project.
const MOST_LEASES: usize = 1_000;

async fn file_reservation_paths(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let ttl = args.within("ttl_seconds", 1, LONGEST_LEASE)?.unwrap_or(3600);
    let reason = args.text("reason").map(str::to_owned);
    let asked = Asked {
        paths: args.texts("paths"),
        ttl,
        exclusive: args.flag("exclusive"),
        only_if_free: args.flag("fail_on_conflict"),
        reason,
    };
    reserve(call, &project, &caller, asked).await.map(Answer::from)
}

/// What is to be reserved.
pub(in super::super) struct Asked {
    pub(in super::super) paths: Vec<String>,
    pub(in super::super) ttl: i64,
    pub(in super::super) exclusive: bool,
    pub(in super::super) only_if_free: bool,
    pub(in super::super) reason: Option<String>,
}

pub(in super::super) async fn reserve(
    call: &Call,
    project: &Project,
    caller: &Caller,
    asked: Asked,
) -> Result<Value, DoorError> {
    if asked.paths.is_empty() {
        let text = "paths is empty; name at least one path or glob, such as [\"src/app.py\", \"docs/**\"]";
        return Err(DoorError::new("EMPTY_PATHS", text));
    }
    let mut paths: Vec<String> = asked.paths.iter().map(|path| inside(project, path)).collect();
    paths.dedup();
    let verb = ReserveEach {
        scope: project.scope(),
        paths,
        exclusive: asked.exclusive,
        reason: asked.reason,
        expires_at: stamp::now().saturating_add(asked.ttl.saturating_mul(1000)),
        audience: Audience::Observers,
        only_if_free: asked.only_if_free,
        meta: None,
    };
    let done = call.ask(project, caller, verb).await?;
    let granted: Vec<Value> =
        done.reservations.iter().map(|lease| to_wire::granted(&lease.reservation)).collect();
    let found = done.reservations.iter().flat_map(|lease| &lease.conflicts).chain(&done.in_the_way);
    Ok(json!({ "granted": granted, "conflicts": to_wire::conflicts(found) }))
}

/// A path as the project has it: what lies below the project's own path is relative to it, and a relative path starts
/// where the caller said that it is.
fn inside(project: &Project, path: &str) -> String {
    let path = path.trim();
    if let Some(rest) = below(path, &project.human_key) {
        return plain(rest);
    }
    let elsewhere = path.starts_with('/') || path.contains("://");
    match project.base.is_empty() || elsewhere {
        true => plain(path),
        false => plain(&format!("{}/{path}", escaped(&project.base))),
    }
}

/// A path as a pattern that means just it.
fn escaped(path: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
    path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// The leases that an agent holds in a project.
async fn held(call: &Call, project: &Project, caller: &Caller) -> Result<Vec<Reservation>, DoorError> {
    let (asking, scope) = (caller.clone(), project.scope());
    let query = ReservationQuery {
        scope: Some(scope),
        owner: Some(caller.agent.clone()),
        limit: MOST_LEASES,
        ..ReservationQuery::default()
    };
    let page = call.look(project, caller, move |view| view.reservations(&asking, &query)).await?;
    Ok(page.items)
}

/// Those of the leases that are named, or all if none is.
fn named(project: &Project, held: Vec<Reservation>, args: &Args) -> Vec<Reservation> {
    let (paths, ids) = (args.texts("paths"), args.wholes("file_reservation_ids"));
    if paths.is_empty() && ids.is_empty() {
        return held;
    }
    let paths: Vec<String> = paths.iter().map(|path| inside(project, path)).collect();
    held.into_iter()
        .filter(|lease| ids.contains(&lease.seq) || lease.paths.iter().all(|path| paths.contains(path)))
        .collect()
}

async fn check_file_reservation_conflicts(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = match args.text("agent_name") {
        // A visitor that may not act as the agent is told what it may see itself.
        Some(name) => match call.act(&project, name, &args).await {
            Ok(agent) => agent,
            Err(_) => call.own(&project)?,
        },
        None => call.own(&project)?,
    };
    let paths: Vec<String> = args.texts("paths").iter().map(|path| inside(&project, path)).collect();
    if paths.len() > MOST_CHECKED {
        return Err(DoorError::new("TOO_MANY", format!("{MOST_CHECKED} paths at most are checked at once")));
    }
    let (scope, exclusive) = (project.scope(), args.flag("exclusive"));
    let asking = caller.clone();
    let found = call
        .look(&project, &caller, move |view| view.would_conflict(&asking, &scope, &paths, exclusive))
        .await?;
    let mut answer = json!({ "conflicts": to_wire::conflicts(found.iter()) });
    if let Some(directory) = args.text("directory").and_then(alias).filter(|_| !found.is_empty()) {
        let holders: Vec<AgentId> = found.iter().map(|conflict| conflict.holder.clone()).collect();
        answer["working_here"] = json!(identity::working_in(call, &project, &directory, &holders).await?);
    }
    Ok(answer.into())
}

async fn renew_file_reservations(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let extend = args.within("extend_seconds", 1, LONGEST_LEASE)?.unwrap_or(1800).saturating_mul(1000);
    let mut rows = Vec::new();
    for lease in named(&project, held(call, &project, &caller).await?, &args) {
        let latest = stamp::now().saturating_add(LONGEST_LEASE.saturating_mul(1000));
        let until = lease.expires_at.saturating_add(extend).min(latest);
        let verb = Renew { which: Which::Number(lease.seq), expires_at: until };
        let renewed = call.ask(&project, &caller, verb).await?.reservation;
        rows.push(json!({
            "id": lease.seq,
            "path_pattern": lease.paths.join(" "),
            "old_expires_ts": to_wire::time(lease.expires_at),
            "new_expires_ts": to_wire::time(renewed.expires_at),
        }));
    }
    Ok(json!({ "renewed": rows.len(), "file_reservations": rows }).into())
}

async fn release_file_reservations(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    release(call, &project, &caller, &args).await.map(Answer::from)
}

pub(in super::super) async fn release(
    call: &Call,
    project: &Project,
    caller: &Caller,
    args: &Args,
) -> Result<Value, DoorError> {
    let leases = named(project, held(call, project, caller).await?, args);
    let which: Vec<Which> = leases.iter().map(|lease| Which::Number(lease.seq)).collect();
    let mut released = 0;
    // An empty list would mean all there are, in every scope.
    if !which.is_empty() {
        released = call.ask(project, caller, Release { which, owner: None }).await?.len();
    }
    Ok(json!({ "released": released, "released_at": to_wire::time(stamp::now()) }))
}

async fn force_release_file_reservation(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let number = args.whole("file_reservation_id").unwrap_or_default();
    let asking = caller.clone();
    let query = ReservationQuery { after: number.saturating_sub(1), limit: 1, ..ReservationQuery::default() };
    let page = call.look(&project, &caller, move |view| view.reservations(&asking, &query)).await?;
    let Some(lease) = page.items.into_iter().find(|lease| lease.seq == number) else {
        return Err(DoorError::new(
            "RESERVATION_NOT_FOUND",
            format!("there is no reservation {number} in force"),
        ));
    };
    if lease.owner != caller.agent {
        check_stale(call, &project, &lease).await?;
    }
    let verb = Release { which: vec![Which::Number(number)], owner: Some(lease.owner.clone()) };
    call.ask(&project, &Caller::office(), verb).await?;
    let mut notified = false;
    if args.flag("notify_previous") && lease.owner != caller.agent {
        let body = format!(
            "{} released your stale reservation of `{}`. {}",
            caller.agent,
            lease.paths.join(" "),
            args.text("note").unwrap_or_default()
        );
        let note = mail::note(&lease.owner, "Your file reservation was released", body.trim(), false);
        // The release stands whether or not its former holder takes mail.
        notified = mail::post(call, &project, &caller, note, None, &Given::default()).await.is_ok();
    }
    Ok(json!({
        "released": 1,
        "released_at": to_wire::time(stamp::now()),
        "reservation": to_wire::granted(&lease),
        "previous_holder": lease.owner,
        "notified": notified,
    })
    .into())
}

/// Refuses while the holder has been heard of lately. An office that has just started has heard of nobody yet.
async fn check_stale(call: &Call, project: &Project, lease: &Reservation) -> Result<(), DoorError> {
    let now = stamp::now();
    let uptime = Millis::try_from(call.door.started().elapsed().as_millis()).unwrap_or(Millis::MAX);
    let holder = last_seen(call, project, &lease.owner).await?;
    let quiet = now - holder.unwrap_or(0).max(now.saturating_sub(uptime));
    if quiet < ALIVE || now - lease.issued_at < GRACE {
        let text = format!(
            "{} was active {} minutes ago, so its reservation of '{}' stands; ask it to release, or try again after {} minutes of silence",
            lease.owner,
            quiet / 60_000,
            lease.paths.join(" "),
            ALIVE / 60_000
        );
        return Err(DoorError::new("RESERVATION_ACTIVE", text));
    }
    Ok(())
}

/// When an agent last did anything that the office knows of.
pub(in super::super) async fn last_seen(
    call: &Call,
    project: &Project,
    agent: &AgentId,
) -> Result<Option<Millis>, DoorError> {
    let office = Caller::office();
    let (entry, seen) = match identity::seen(call, project, &office, agent.clone()).await {
        Ok(found) => found,
        // Who has left holds nobody up.
        Err(problem) if problem.code == "AGENT_NOT_FOUND" => return Ok(None),
        Err(problem) => return Err(problem),
    };
    let who = agent.clone();
    let sent = project.engine.read(move |view| view.sent(&Caller::office(), &who, None, 1)).await;
    let wrote = match sent {
        Ok(page) => page.items.first().map(|letter| letter.message.at),
        Err(posthaste_engine::EngineError::Refused(Refusal::NoSuchAgent { .. })) => None,
        Err(error) => return Err(error.into()),
    };
    Ok([Some(entry.updated_at), seen.map(|seen| seen.seen_at), wrote].into_iter().flatten().max())
}
