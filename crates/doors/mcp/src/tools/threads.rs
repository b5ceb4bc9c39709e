//! Search in mail, and summaries of threads.

use std::collections::BTreeMap;

use posthaste_engine::nouns::{Caller, ConversationId, Seq};
use posthaste_engine::summary::{Line as SaidLine, summarise};
use posthaste_engine::views::{SearchQuery, Tracked, View, Viewed};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mcp::answers::{
    ExampleMessage, Mention, SearchHit, SummaryAggregate, ThreadAnswer, ThreadSummaries, ThreadSummary,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, limit, within};
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(search_messages(SearchMessagesArgs), core, READS),
    tool!(summarize_thread(SummarizeThreadArgs), core, READS),
];

/// Full-text search over mail you may see: words, "phrases", prefix*, AND, OR, NOT. Hits carry a snippet.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchMessagesArgs {
    /// absolute path or slug
    project_key: String,
    query: String,
    #[serde(default = "int::<20>")]
    limit: i64,
    agent_name: Option<String>,
    registration_token: Option<String>,
}

/// Participants, key points and action items of a thread, or of several parted by commas.
#[derive(Debug, Deserialize, JsonSchema)]
struct SummarizeThreadArgs {
    /// absolute path or slug
    project_key: String,
    thread_id: String,
    #[serde(default)]
    include_examples: bool,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    llm_mode: Option<bool>,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    llm_model: Option<String>,
    /// messages read of each thread
    #[serde(default = "int::<50>")]
    per_thread_limit: i64,
    agent_name: Option<String>,
    registration_token: Option<String>,
}

/// Messages of one thread that are read.
const MAX_MESSAGES: usize = 2_000;
/// Threads summarised at once.
const MAX_THREADS: usize = 20;
/// Messages shown as examples.
const MAX_EXAMPLES: usize = 3;
/// Names that several summaries mention most.
const MAX_TOP_MENTIONS: usize = 10;

async fn search_messages(call: &Call, args: SearchMessagesArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let viewers =
        call.viewers(&project, args.agent_name.as_deref(), args.registration_token.as_deref()).await?;
    let limit = limit(args.limit)?;
    let text = args.query;
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
        // A query that cannot be read finds nothing; agents try many forms.
        Err(EngineError::Refused(Refusal::BadQuery { .. })) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut seen = std::collections::HashSet::new();
    let mut rows = Vec::new();
    for hit in hits {
        let Some(message) = hit.message.filter(|message| seen.insert(message.seq)) else { continue };
        rows.push(SearchHit {
            id: message.seq,
            subject: to_wire::subject(&message),
            importance: to_wire::importance(message.priority).to_owned(),
            ack_required: i32::from(message.ack_required),
            created_ts: to_wire::event_time(message.at, message.seq),
            thread_id: message.conversation.as_ref().map(ToString::to_string),
            from: message.from.to_string(),
            snippet: hit.snippet,
        });
    }
    rows.truncate(limit);
    Ok(Answer::wrapped(rows))
}

async fn summarize_thread(call: &Call, args: SummarizeThreadArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let viewers =
        call.viewers(&project, args.agent_name.as_deref(), args.registration_token.as_deref()).await?;
    let limit = within("per_thread_limit", args.per_thread_limit, 1, MAX_MESSAGES as i64)?;
    let limit = usize::try_from(limit).unwrap_or(50);
    let ids: Vec<&str> = args.thread_id.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    if ids.is_empty() || ids.len() > MAX_THREADS {
        return Err(DoorError::new(
            "INVALID_THREAD_ID",
            format!("thread_id names 1 to {MAX_THREADS} threads"),
        ));
    }
    let examples = args.include_examples;
    let mut threads = Vec::new();
    for id in &ids {
        threads.push(summary(call, &project, &viewers, id, limit, examples).await?);
    }
    match <[ThreadAnswer; 1]>::try_from(threads) {
        Ok([one]) => Ok(Answer::one(&one)),
        Err(threads) => Ok(Answer::one(&aggregated(threads))),
    }
}

/// Several summaries, and what they have in common.
fn aggregated(mut threads: Vec<ThreadAnswer>) -> ThreadSummaries {
    let mut mentions: BTreeMap<String, usize> = BTreeMap::new();
    for mention in threads.iter().flat_map(|thread| &thread.summary.mentions) {
        *mentions.entry(mention.name.clone()).or_default() += mention.count;
    }
    let mut top_mentions: Vec<Mention> =
        mentions.into_iter().map(|(name, count)| Mention { name, count }).collect();
    top_mentions.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    top_mentions.truncate(MAX_TOP_MENTIONS);
    let texts = |of: fn(&ThreadSummary) -> &Vec<String>| {
        threads.iter().flat_map(|thread| of(&thread.summary)).cloned().collect()
    };
    let action_items = texts(|summary| &summary.action_items);
    let key_points = texts(|summary| &summary.key_points);
    for thread in &mut threads {
        thread.examples = None;
    }
    ThreadSummaries { threads, aggregate: SummaryAggregate { top_mentions, action_items, key_points } }
}

/// The summary of a thread, as far as the viewers may read it.
pub(super) async fn summary(
    call: &Call,
    project: &Project,
    viewers: &[Caller],
    id: &str,
    limit: usize,
    examples: bool,
) -> Result<ThreadAnswer, DoorError> {
    let messages = messages(call, project, viewers, id, limit).await?;
    let texts: Vec<(String, String)> = messages
        .iter()
        .map(|found| (found.message.from.to_string(), to_wire::body(&found.message)))
        .collect();
    let lines: Vec<SaidLine<'_>> = texts.iter().map(|(author, text)| SaidLine { author, text }).collect();
    let made = summarise(&lines);
    let open = made.actions.iter().filter(|action| !action.done).count();
    let example = |found: &Tracked| ExampleMessage {
        id: found.message.seq,
        subject: to_wire::subject(&found.message),
        from: found.message.from.to_string(),
        created_ts: to_wire::event_time(found.message.at, found.message.seq),
    };
    let examples = if examples { MAX_EXAMPLES } else { 0 };
    Ok(ThreadAnswer {
        thread_id: id.to_owned(),
        examples: Some(messages.iter().rev().take(examples).map(example).collect()),
        total_messages: None,
        summary: ThreadSummary {
            participants: made.participants,
            key_points: made.key_points,
            done_actions: made.actions.len() - open,
            action_items: made.actions.into_iter().map(|action| action.text).collect(),
            decisions: made.decisions,
            open_questions: made.open_questions,
            total_messages: messages.len(),
            open_actions: open,
            mentions: made.mentions.into_iter().map(|(name, count)| Mention { name, count }).collect(),
        },
    })
}

/// The latest messages of a thread in order; a thread named by a message's number starts with that message.
pub(in super::super) async fn messages(
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
    if let Some(first) = root.and_then(|root| view.message_at(viewer, root).ok()) {
        found.insert(first.message.seq, first);
    }
    // The latest are kept.
    let page = view.latest_correspondence(viewer, conversation, MAX_MESSAGES)?;
    found.extend(page.items.into_iter().map(|tracked| (tracked.message.seq, tracked)));
    while found.len() > MAX_MESSAGES {
        found.pop_first();
    }
    Ok(())
}
