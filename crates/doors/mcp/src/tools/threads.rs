//! Looking for mail, and the gist of threads.

use std::collections::BTreeMap;

use posthaste_engine::nouns::{Caller, ConversationId, Seq};
use posthaste_engine::summary::{Line as Said, summarise};
use posthaste_engine::views::{SearchQuery, Tracked, View, Viewed};
use posthaste_engine::{EngineError, Refusal};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        search_messages,
        core,
        READS,
        "Full-text search over mail you may see: words, \"phrases\", prefix*, AND, OR, NOT. Hits carry a snippet.",
        "project_key! query! limit:int=20 agent_name registration_token"
    ),
    tool!(
        summarize_thread,
        core,
        READS,
        "Participants, key points and action items of a thread, or of several parted by commas.",
        "project_key! thread_id! include_examples:flag=false llm_mode:flag llm_model per_thread_limit:int=50 agent_name registration_token"
    ),
];

/// Letters of one thread that are read.
const MOST_LETTERS: usize = 2_000;
/// Threads summarised at once.
const MOST_THREADS: usize = 20;
/// Letters shown as examples.
const EXAMPLES: usize = 3;

async fn search_messages(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let viewers = call.viewers(&project, args.text("agent_name"), args.token()).await?;
    let limit = usize::try_from(args.within("limit", 1, 1_000)?.unwrap_or(20)).unwrap_or(20);
    let text = args.need("query").to_owned();
    let found = project.engine.read(move |view| {
        let mut hits = Vec::new();
        for viewer in &viewers {
            let query = SearchQuery { text: text.clone(), limit, ..SearchQuery::default() };
            hits.extend(view.search(viewer, &query)?.hits);
        }
        Ok(hits)
    });
    let hits = match found.await {
        Ok(hits) => hits,
        // A query that cannot be read finds nothing; agents try all sorts of things.
        Err(EngineError::Refused(Refusal::BadQuery { .. })) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut seen = std::collections::HashSet::new();
    let mut rows = Vec::new();
    for hit in hits {
        let Some(message) = hit.message.filter(|message| seen.insert(message.seq)) else { continue };
        rows.push(json!({
            "id": message.seq,
            "subject": to_wire::subject(&message),
            "importance": to_wire::importance(message.priority),
            "ack_required": i32::from(message.ack_required),
            "created_ts": to_wire::placed(message.at, message.seq),
            "thread_id": message.conversation,
            "from": message.from,
            "snippet": hit.snippet,
        }));
    }
    rows.truncate(limit);
    Ok(Answer::wrapped(rows))
}

async fn summarize_thread(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let viewers = call.viewers(&project, args.text("agent_name"), args.token()).await?;
    let limit = args.within("per_thread_limit", 1, MOST_LETTERS as i64)?.unwrap_or(50);
    let limit = usize::try_from(limit).unwrap_or(50);
    let ids: Vec<&str> =
        args.need("thread_id").split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    if ids.is_empty() || ids.len() > MOST_THREADS {
        return Err(DoorError::new(
            "INVALID_THREAD_ID",
            format!("thread_id names 1 to {MOST_THREADS} threads"),
        ));
    }
    let examples = args.flag("include_examples");
    let mut threads = Vec::new();
    for id in &ids {
        threads.push(gist(call, &project, &viewers, id, limit, examples).await?);
    }
    if let [one] = threads.as_mut_slice() {
        return Ok(one.take().into());
    }
    let gather = |member: &str| -> Vec<Value> {
        threads
            .iter()
            .flat_map(|thread| thread["summary"][member].as_array().cloned().unwrap_or_default())
            .collect()
    };
    let mut mentions: BTreeMap<String, i64> = BTreeMap::new();
    for mention in gather("mentions") {
        let name = mention["name"].as_str().unwrap_or_default().to_owned();
        *mentions.entry(name).or_default() += mention["count"].as_i64().unwrap_or(0);
    }
    let mut top: Vec<(String, i64)> = mentions.into_iter().collect();
    top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let top: Vec<Value> =
        top.into_iter().take(10).map(|(name, count)| json!({ "name": name, "count": count })).collect();
    let aggregate = json!({
        "top_mentions": top,
        "action_items": gather("action_items"),
        "key_points": gather("key_points"),
    });
    let threads: Vec<Value> = threads
        .iter()
        .map(|thread| json!({ "thread_id": thread["thread_id"], "summary": thread["summary"] }))
        .collect();
    Ok(json!({ "threads": threads, "aggregate": aggregate }).into())
}

/// What a thread came to, as far as the viewers may read it.
pub(in super::super) async fn gist(
    call: &Call,
    project: &Project,
    viewers: &[Caller],
    id: &str,
    limit: usize,
    examples: bool,
) -> Result<Value, DoorError> {
    let letters = letters(call, project, viewers, id, limit).await?;
    let texts: Vec<(String, String)> = letters
        .iter()
        .map(|letter| (letter.message.from.to_string(), to_wire::body(&letter.message)))
        .collect();
    let lines: Vec<Said<'_>> = texts.iter().map(|(author, text)| Said { author, text }).collect();
    let made = summarise(&lines);
    let open = made.actions.iter().filter(|action| !action.done).count();
    let shown = |letter: &Tracked| {
        json!({
            "id": letter.message.seq,
            "subject": to_wire::subject(&letter.message),
            "from": letter.message.from,
            "created_ts": to_wire::placed(letter.message.at, letter.message.seq),
        })
    };
    let shown: Vec<Value> = match examples {
        true => letters.iter().rev().take(EXAMPLES).map(shown).collect(),
        false => Vec::new(),
    };
    let actions: Vec<&str> = made.actions.iter().map(|action| action.text.as_str()).collect();
    let mentions: Vec<Value> =
        made.mentions.iter().map(|(name, count)| json!({ "name": name, "count": count })).collect();
    Ok(json!({
        "thread_id": id,
        "summary": {
            "participants": made.participants,
            "key_points": made.key_points,
            "action_items": actions,
            "decisions": made.decisions,
            "open_questions": made.open_questions,
            "total_messages": letters.len(),
            "open_actions": open,
            "done_actions": made.actions.len() - open,
            "mentions": mentions,
        },
        "examples": shown,
    }))
}

/// The latest letters of a thread in order; a thread named by a message's number starts with that message.
pub(in super::super) async fn letters(
    call: &Call,
    project: &Project,
    viewers: &[Caller],
    id: &str,
    limit: usize,
) -> Result<Vec<Tracked>, DoorError> {
    let conversation = ConversationId::new(id)
        .map_err(|why| DoorError::new("INVALID_THREAD_ID", format!("thread_id '{id}': {why}")))?;
    let (viewers, root) = (viewers.to_vec(), id.parse::<Seq>().ok());
    let Some(first) = viewers.first().cloned() else { return Ok(Vec::new()) };
    let mut found = call
        .look(project, &first, move |view| {
            let mut found = BTreeMap::new();
            for viewer in &viewers {
                collect(view, viewer, &conversation, root, &mut found)?;
            }
            Ok(found.into_values().collect::<Vec<Tracked>>())
        })
        .await?;
    let surplus = found.len().saturating_sub(limit);
    found.drain(..surplus);
    Ok(found)
}

fn collect(
    view: &View<'_>,
    viewer: &Caller,
    conversation: &ConversationId,
    root: Option<Seq>,
    found: &mut BTreeMap<Seq, Tracked>,
) -> Viewed<()> {
    if let Some(letter) = root.and_then(|root| view.message_at(viewer, root).ok()) {
        found.insert(letter.message.seq, letter);
    }
    // The latest count most, so the earliest give way.
    let page = view.latest_correspondence(viewer, conversation, MOST_LETTERS)?;
    found.extend(page.items.into_iter().map(|letter| (letter.message.seq, letter)));
    while found.len() > MOST_LETTERS {
        found.pop_first();
    }
    Ok(())
}
