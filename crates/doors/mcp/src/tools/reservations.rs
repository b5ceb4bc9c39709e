//! Reservations of paths. They are advisory: a conflict names the holder, until when and why, and refuses only on request.

use posthaste_engine::nouns::{AgentId, Audience, Caller, Millis, Reservation};
use posthaste_engine::verbs::reservations::{Release, Renew, Which};
use posthaste_engine::verbs::reservations::{ReserveEach, plain};
use posthaste_engine::views::ReservationQuery;
use posthaste_engine::{Refusal, stamp};
use posthaste_wire::mcp::answers::{
    Conflicts, ForcedRelease, Released, RenewedReservation, RenewedReservations, Reserved,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, within, yes};
use super::super::attachments::Given;
use super::super::call::{ALIVE, Call};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::{identity, mail};
use posthaste_host::projects::{Project, alias, below};

pub(in super::super) const LINES: &[Line] = &[
    tool!(file_reservation_paths(FileReservationPathsArgs), core, ADDS),
    tool!(renew_file_reservations(RenewFileReservationsArgs), core, ADDS),
    tool!(release_file_reservations(ReleaseFileReservationsArgs), core, ENDS),
    tool!(check_file_reservation_conflicts(CheckFileReservationConflictsArgs), full, READS),
    tool!(force_release_file_reservation(ForceReleaseFileReservationArgs), full, ENDS reaches_agents),
];

/// Announce that you will edit these paths or globs (relative to the project). Granted even on conflict unless fail_on_conflict; conflicts name the holders.
#[derive(Debug, Deserialize, JsonSchema)]
struct FileReservationPathsArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    paths: Vec<String>,
    #[serde(default = "int::<3600>")]
    ttl_seconds: i64,
    /// false: shared, conflicts with exclusive ones only
    #[serde(default = "yes")]
    exclusive: bool,
    reason: Option<String>,
    #[serde(default)]
    fail_on_conflict: bool,
    registration_token: Option<String>,
}

/// Prolong your reservations: those named by path or id, else all.
#[derive(Debug, Deserialize, JsonSchema)]
struct RenewFileReservationsArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    /// added to the present end
    #[serde(default = "int::<1800>")]
    extend_seconds: i64,
    #[serde(default)]
    paths: Vec<String>,
    /// ids from granted
    #[serde(default)]
    file_reservation_ids: Vec<i64>,
    registration_token: Option<String>,
}

/// Give reservations back: those named by path or id, else all.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReleaseFileReservationsArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    #[serde(default)]
    paths: Vec<String>,
    /// ids from granted
    #[serde(default)]
    file_reservation_ids: Vec<i64>,
    registration_token: Option<String>,
}

/// Who holds these paths, without reserving them. agent_name's own reservations do not count. With directory: which agents work there.
#[derive(Debug, Deserialize, JsonSchema)]
struct CheckFileReservationConflictsArgs {
    /// absolute path or slug
    project_key: String,
    paths: Vec<String>,
    agent_name: Option<String>,
    directory: Option<String>,
    /// false: shared, conflicts with exclusive ones only
    #[serde(default = "yes")]
    exclusive: bool,
    registration_token: Option<String>,
}

/// Release another agent's stale reservation. Refused while the holder shows signs of life.
#[derive(Debug, Deserialize, JsonSchema)]
struct ForceReleaseFileReservationArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    file_reservation_id: i64,
    /// send the former holder a message
    #[serde(default = "yes")]
    notify_previous: bool,
    /// text for the other agent
    note: Option<String>,
    registration_token: Option<String>,
}

/// The longest reservation, in seconds.
pub(super) const MAX_RESERVATION_SECONDS: i64 = 30 * 24 * 3600;
/// How long after it was made a reservation cannot be released by force.
const GRACE: Millis = 15 * 60 * 1000;
/// Paths that are looked up at once.
const MAX_CHECKED_PATHS: usize = 5_000;
/// Reservations read at once; one agent has no more in a project.
const MAX_RESERVATIONS: usize = 1_000;

async fn file_reservation_paths(call: &Call, args: FileReservationPathsArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let ttl = within("ttl_seconds", args.ttl_seconds, 1, MAX_RESERVATION_SECONDS)?;
    let reason = args.reason;
    let wanted = Wanted {
        paths: args.paths,
        ttl,
        exclusive: args.exclusive,
        only_if_free: args.fail_on_conflict,
        reason,
    };
    Ok(Answer::one(&reserve(call, &project, &caller, wanted).await?))
}

/// What is to be reserved.
pub(super) struct Wanted {
    pub(super) paths: Vec<String>,
    pub(super) ttl: i64,
    pub(super) exclusive: bool,
    pub(super) only_if_free: bool,
    pub(super) reason: Option<String>,
}

pub(super) async fn reserve(
    call: &Call,
    project: &Project,
    caller: &Caller,
    wanted: Wanted,
) -> Result<Reserved, DoorError> {
    if wanted.paths.is_empty() {
        let text = "paths is empty; name at least one path or glob, such as [\"src/app.py\", \"docs/**\"]";
        return Err(DoorError::new("EMPTY_PATHS", text));
    }
    let mut paths: Vec<String> = wanted.paths.iter().map(|path| inside(project, path)).collect();
    paths.dedup();
    let verb = ReserveEach {
        scope: project.scope(),
        paths,
        exclusive: wanted.exclusive,
        reason: wanted.reason,
        expires_at: stamp::now().saturating_add(wanted.ttl.saturating_mul(1000)),
        audience: Audience::Observers,
        only_if_free: wanted.only_if_free,
        meta: None,
    };
    let done = call.ask(project, caller, verb).await?;
    let granted = done.reservations.iter().map(|made| to_wire::granted(&made.reservation)).collect();
    let found = done.reservations.iter().flat_map(|made| &made.conflicts).chain(&done.in_the_way);
    Ok(Reserved { granted, conflicts: to_wire::conflicts(found) })
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

/// The reservations that an agent holds in a project.
async fn held(call: &Call, project: &Project, caller: &Caller) -> Result<Vec<Reservation>, DoorError> {
    let (asking, scope) = (caller.clone(), project.scope());
    let query = ReservationQuery {
        scope: Some(scope),
        owner: Some(caller.agent.clone()),
        limit: MAX_RESERVATIONS,
        ..ReservationQuery::default()
    };
    let page = call.look(project, caller, move |view| view.reservations(&asking, &query)).await?;
    Ok(page.items)
}

/// The reservations that are named by path or id, or all if none is.
fn named(project: &Project, held: Vec<Reservation>, paths: &[String], ids: &[i64]) -> Vec<Reservation> {
    if paths.is_empty() && ids.is_empty() {
        return held;
    }
    let paths: Vec<String> = paths.iter().map(|path| inside(project, path)).collect();
    held.into_iter()
        .filter(|held| ids.contains(&held.seq) || held.paths.iter().all(|path| paths.contains(path)))
        .collect()
}

async fn check_file_reservation_conflicts(
    call: &Call,
    args: CheckFileReservationConflictsArgs,
) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = match args.agent_name.as_deref() {
        // A caller that may not act as the agent is told what it may see itself.
        Some(name) => match call.act(&project, name, args.registration_token.as_deref()).await {
            Ok(agent) => agent,
            Err(_) => call.own(&project)?,
        },
        None => call.own(&project)?,
    };
    let paths: Vec<String> = args.paths.iter().map(|path| inside(&project, path)).collect();
    if paths.len() > MAX_CHECKED_PATHS {
        return Err(DoorError::new(
            "TOO_MANY",
            format!("{MAX_CHECKED_PATHS} paths at most are checked at once"),
        ));
    }
    let (scope, exclusive) = (project.scope(), args.exclusive);
    let asking = caller.clone();
    let found = call
        .look(&project, &caller, move |view| view.would_conflict(&asking, &scope, &paths, exclusive))
        .await?;
    let conflicts = to_wire::conflicts(found.iter());
    let mut working_here = None;
    if let Some(directory) = args.directory.as_deref().and_then(alias).filter(|_| !found.is_empty()) {
        let holders: Vec<AgentId> = found.iter().map(|conflict| conflict.holder.clone()).collect();
        let working = identity::working_in(call, &project, &directory, &holders).await?;
        working_here = Some(working.iter().map(ToString::to_string).collect());
    }
    Ok(Answer::one(&Conflicts { conflicts, working_here }))
}

async fn renew_file_reservations(call: &Call, args: RenewFileReservationsArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let extend =
        within("extend_seconds", args.extend_seconds, 1, MAX_RESERVATION_SECONDS)?.saturating_mul(1000);
    let held = held(call, &project, &caller).await?;
    let mut rows = Vec::new();
    for held in named(&project, held, &args.paths, &args.file_reservation_ids) {
        let latest = stamp::now().saturating_add(MAX_RESERVATION_SECONDS.saturating_mul(1000));
        let until = held.expires_at.saturating_add(extend).min(latest);
        let verb = Renew { which: Which::Number(held.seq), expires_at: until };
        let renewed = call.ask(&project, &caller, verb).await?.reservation;
        rows.push(RenewedReservation {
            id: held.seq,
            path_pattern: held.paths.join(" "),
            old_expires_ts: to_wire::time(held.expires_at),
            new_expires_ts: to_wire::time(renewed.expires_at),
        });
    }
    Ok(Answer::one(&RenewedReservations { renewed: rows.len(), file_reservations: rows }))
}

async fn release_file_reservations(
    call: &Call,
    args: ReleaseFileReservationsArgs,
) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let ids = &args.file_reservation_ids;
    Ok(Answer::one(&release(call, &project, &caller, &args.paths, ids).await?))
}

pub(super) async fn release(
    call: &Call,
    project: &Project,
    caller: &Caller,
    paths: &[String],
    ids: &[i64],
) -> Result<Released, DoorError> {
    let released = named(project, held(call, project, caller).await?, paths, ids);
    let which: Vec<Which> = released.iter().map(|held| Which::Number(held.seq)).collect();
    let mut released = 0;
    // An empty list would mean all there are, in every scope.
    if !which.is_empty() {
        released = call.ask(project, caller, Release { which, owner: None }).await?.len();
    }
    Ok(Released { released, released_at: to_wire::time(stamp::now()) })
}

async fn force_release_file_reservation(
    call: &Call,
    args: ForceReleaseFileReservationArgs,
) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let number = args.file_reservation_id;
    let asking = caller.clone();
    let query = ReservationQuery { after: number.saturating_sub(1), limit: 1, ..ReservationQuery::default() };
    let page = call.look(&project, &caller, move |view| view.reservations(&asking, &query)).await?;
    let Some(held) = page.items.into_iter().find(|held| held.seq == number) else {
        return Err(DoorError::new(
            "RESERVATION_NOT_FOUND",
            format!("there is no reservation {number} in force"),
        ));
    };
    if held.owner != caller.agent {
        check_stale(call, &project, &held).await?;
    }
    let verb = Release { which: vec![Which::Number(number)], owner: Some(held.owner.clone()) };
    call.ask(&project, &Caller::office(), verb).await?;
    let mut notified = false;
    if args.notify_previous && held.owner != caller.agent {
        let body = format!(
            "{} released your stale reservation of `{}`. {}",
            caller.agent,
            held.paths.join(" "),
            args.note.as_deref().unwrap_or_default()
        );
        let note = mail::note(&held.owner, "Your file reservation was released", body.trim(), false);
        // The release stands whether or not its former holder takes mail.
        notified = mail::post(call, &project, &caller, note, None, &Given::default()).await.is_ok();
    }
    Ok(Answer::one(&ForcedRelease {
        released: 1,
        released_at: to_wire::time(stamp::now()),
        reservation: to_wire::granted(&held),
        previous_holder: held.owner.to_string(),
        notified,
    }))
}

/// Refuses while the holder showed signs of life lately. A server that has just started has seen none yet.
async fn check_stale(call: &Call, project: &Project, held: &Reservation) -> Result<(), DoorError> {
    let now = stamp::now();
    let uptime = Millis::try_from(call.door.started().elapsed().as_millis()).unwrap_or(Millis::MAX);
    let holder = last_seen(call, project, &held.owner).await?;
    let quiet = now - holder.unwrap_or(0).max(now.saturating_sub(uptime));
    if quiet < ALIVE || now - held.issued_at < GRACE {
        let text = format!(
            "{} was active {} minutes ago, so its reservation of '{}' stands; ask it to release, or try again after {} minutes of silence",
            held.owner,
            quiet / 60_000,
            held.paths.join(" "),
            ALIVE / 60_000
        );
        return Err(DoorError::new("RESERVATION_ACTIVE", text));
    }
    Ok(())
}

/// When an agent last did anything that the server knows of.
pub(in super::super) async fn last_seen(
    call: &Call,
    project: &Project,
    agent: &AgentId,
) -> Result<Option<Millis>, DoorError> {
    let office = Caller::office();
    let (entry, seen) = match identity::seen(call, project, &office, agent.clone()).await {
        Ok(found) => found,
        // An agent that has left blocks no other.
        Err(problem) if problem.code == "AGENT_NOT_FOUND" => return Ok(None),
        Err(problem) => return Err(problem),
    };
    let author = agent.clone();
    let sent = project.engine.read(move |view| view.sent(&Caller::office(), &author, None, 1)).await;
    let wrote = match sent {
        Ok(page) => page.items.first().map(|sent| sent.message.at),
        Err(posthaste_engine::EngineError::Refused(Refusal::NoSuchAgent { .. })) => None,
        Err(error) => return Err(error.into()),
    };
    Ok([Some(entry.updated_at), seen.map(|seen| seen.seen_at), wrote].into_iter().flatten().max())
}
