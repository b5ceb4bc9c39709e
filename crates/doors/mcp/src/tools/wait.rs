//! Waiting for mail instead of asking again and again.

use std::time::{Duration, Instant};

use posthaste_engine::nouns::{Caller, Seq};
use posthaste_engine::views::InboxMessage;
use posthaste_engine::{Filter, Start};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{ALIVE, Call};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::inbox::{self, Wanted};
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[tool!(
    wait_for_mail,
    core,
    READS,
    "Wait until unread mail is there (at once if it is) or timeout_seconds pass. Pass the cursor back as after_id to wait for newer mail only.",
    "project_key! agent_name! timeout_seconds:int=30 after_id:int limit:int=20 include_bodies:flag=true registration_token"
)];

/// The longest wait, in seconds.
pub(in super::super) const LONGEST_WAIT: i64 = 600;
/// How often a caller that wants to know is told that the wait goes on.
const BEAT: Duration = Duration::from_secs(5);

async fn wait_for_mail(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let seconds = args.within("timeout_seconds", 0, LONGEST_WAIT)?.unwrap_or(30);
    let limit = usize::try_from(args.within("limit", 1, 1_000)?.unwrap_or(20)).unwrap_or(20);
    let letters = wait(call, &project, &caller, args.whole("after_id"), limit, seconds).await?;
    Ok(waited(&project, &letters, args.whole("after_id"), args.flag("include_bodies")).into())
}

pub(in super::super) fn waited(
    project: &Project,
    letters: &[InboxMessage],
    after: Option<Seq>,
    bodies: bool,
) -> Value {
    let newest = letters.iter().map(|letter| letter.message.seq).max();
    let rows: Vec<Value> = letters.iter().map(|letter| to_wire::letter(project, letter, bodies)).collect();
    json!({
        "count": rows.len(),
        "messages": rows,
        "timed_out": letters.is_empty(),
        "cursor": newest.or(after),
    })
}

/// Unread letters after a place, as soon as there are any.
pub(in super::super) async fn wait(
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
    let found = inbox::letters(call, project, caller, wanted.clone()).await?;
    if !found.is_empty() || seconds == 0 {
        return Ok(found);
    }
    let (start, whole) = (Instant::now(), Duration::from_secs(seconds.unsigned_abs()));
    let deadline = tokio::time::sleep(whole);
    let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + BEAT, BEAT);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            step = feed.next() => {
                step?;
                let found = inbox::letters(call, project, caller, wanted.clone()).await?;
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
