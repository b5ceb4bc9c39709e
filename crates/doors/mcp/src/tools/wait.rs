//! Waiting for mail instead of polling.

use std::time::{Duration, Instant};

use posthaste_engine::nouns::{Caller, Seq};
use posthaste_engine::views::InboxMessage;
use posthaste_engine::{Filter, Start};
use posthaste_wire::mcp::answers::Waited;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, limit, within, yes};
use super::super::call::{ALIVE, Call};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::inbox::{self, Wanted};
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[tool!(wait_for_mail(WaitForMailArgs), core, READS)];

/// Wait until unread mail is there (at once if it is) or timeout_seconds pass. Pass the cursor back as after_id to wait for newer mail only.
#[derive(Debug, Deserialize, JsonSchema)]
struct WaitForMailArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    /// 0 to 600
    #[serde(default = "int::<30>")]
    timeout_seconds: i64,
    /// only messages newer than this id
    after_id: Option<i64>,
    #[serde(default = "int::<20>")]
    limit: i64,
    #[serde(default = "yes")]
    include_bodies: bool,
    registration_token: Option<String>,
}

/// The longest wait, in seconds.
pub(super) const MAX_WAIT_SECONDS: i64 = 600;
/// How often a waiting caller counts as present, and is told that the wait goes on if it wants to know.
const HEARTBEAT: Duration = Duration::from_secs(5);

async fn wait_for_mail(call: &Call, args: WaitForMailArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let seconds = within("timeout_seconds", args.timeout_seconds, 0, MAX_WAIT_SECONDS)?;
    let limit = limit(args.limit)?;
    let found = wait(call, &project, &caller, args.after_id, limit, seconds).await?;
    Ok(Answer::one(&waited(&project, &found, args.after_id, args.include_bodies)))
}

pub(super) fn waited(project: &Project, found: &[InboxMessage], after: Option<Seq>, bodies: bool) -> Waited {
    let newest = found.iter().map(|found| found.message.seq).max();
    Waited {
        count: found.len(),
        messages: to_wire::inbox(project, found, bodies),
        timed_out: found.is_empty(),
        cursor: newest.or(after),
    }
}

/// Unread messages after a seq, as soon as there are any.
pub(super) async fn wait(
    call: &Call,
    project: &Project,
    caller: &Caller,
    after: Option<Seq>,
    limit: usize,
    seconds: i64,
) -> Result<Vec<InboxMessage>, DoorError> {
    let wanted = Wanted { limit, unread: true, after, ..Wanted::default() };
    // Listening starts before looking, so that nothing can come in between.
    let sent = Filter::Kinds(vec!["message.sent".to_owned()]);
    let mut feed = project.engine.follow(caller, sent, Start::Now, 64).await?;
    let found = inbox::messages(call, project, caller, wanted.clone()).await?;
    if !found.is_empty() || seconds == 0 {
        return Ok(found);
    }
    let (start, whole) = (Instant::now(), Duration::from_secs(seconds.unsigned_abs()));
    let deadline = tokio::time::sleep(whole);
    let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            step = feed.next() => {
                step?;
                let found = inbox::messages(call, project, caller, wanted.clone()).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            () = &mut deadline => return Ok(Vec::new()),
            () = call.door.stop().cancelled() => return Ok(Vec::new()),
            _ = beat.tick() => {
                // An agent that waits is present.
                project.engine.presences().beat(caller.agent.clone(), "available", None, ALIVE);
                let text = format!("no mail for {} yet", caller.agent);
                call.progress(start.elapsed().as_secs_f64(), whole.as_secs_f64(), text).await;
            }
        }
    }
}
