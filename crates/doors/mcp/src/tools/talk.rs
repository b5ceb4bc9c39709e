//! Conversations and their turns, which the other doors share.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{
    AgentId, Audience, Conversation, ConversationId, Json, Turn, TurnId, TurnVisibility,
};
use posthaste_engine::verbs::conversations::{Close, Create, Invitee};
use posthaste_engine::verbs::turns::Say;
use posthaste_engine::views::{ConversationQuery, TurnQuery};
use posthaste_wire::mcp::answers::{ConversationRow, TurnList, TurnRow};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::super::answer::Answer;
use super::super::arguments::{id, int, limit};
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::meta::{self, TurnContent};
use super::super::table::{Line, tool};
use super::super::{markdown, to_wire};
use posthaste_host::plain_text::{compact, spoken};

pub(in super::super) const LINES: &[Line] = &[
    tool!(open_conversation(OpenConversationArgs), full, ADDS reaches_agents),
    tool!(list_conversations(ListConversationsArgs), full, READS),
    tool!(add_turn(AddTurnArgs), full, ADDS reaches_agents),
    tool!(list_turns(ListTurnsArgs), full, READS),
    tool!(close_conversation(CloseConversationArgs), full, ENDS),
];

/// Open a conversation with participants; all doors of the server can join in.
#[derive(Debug, Deserialize, JsonSchema)]
struct OpenConversationArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    #[serde(default)]
    participants: Vec<String>,
    conversation_id: Option<String>,
    subject: Option<String>,
    #[serde(default = "multi_agent")]
    kind: String,
    first_turn: Option<String>,
    registration_token: Option<String>,
}

/// Conversations an agent takes part in, latest first.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListConversationsArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    #[serde(default = "int::<20>")]
    limit: i64,
    /// place of the last row of the page before
    before: Option<i64>,
    registration_token: Option<String>,
}

/// Say something in a conversation. visible_to limits who may read it.
#[derive(Debug, Deserialize, JsonSchema)]
struct AddTurnArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    conversation_id: String,
    text: String,
    /// turn_id
    in_reply_to: Option<String>,
    #[serde(default)]
    visible_to: Vec<String>,
    registration_token: Option<String>,
}

/// What was said in a conversation, in order (or latest first).
#[derive(Debug, Deserialize, JsonSchema)]
struct ListTurnsArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    conversation_id: String,
    #[serde(default = "int::<50>")]
    limit: i64,
    /// last turn_id of the page before
    after: Option<String>,
    #[serde(default)]
    newest_first: bool,
    registration_token: Option<String>,
}

/// End a conversation for all participants.
#[derive(Debug, Deserialize, JsonSchema)]
struct CloseConversationArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    conversation_id: String,
    reason: Option<String>,
    registration_token: Option<String>,
}

fn multi_agent() -> String {
    "multi-agent".to_owned()
}

fn conversation_id(text: &str) -> Result<ConversationId, DoorError> {
    Ok(ConversationId::new(text).map_err(Refusal::from)?)
}

fn agents(names: Vec<String>) -> Result<Vec<AgentId>, DoorError> {
    Ok(names.iter().map(AgentId::new).collect::<Result<_, _>>().map_err(Refusal::from)?)
}

fn turn_id(text: &str) -> Result<TurnId, DoorError> {
    let id = uuid::Uuid::parse_str(text);
    id.map(TurnId).map_err(|_| DoorError::new("TURN_NOT_FOUND", format!("'{text}' is not a turn's id")))
}

async fn open_conversation(call: &Call, args: OpenConversationArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let invitee = |agent| Invitee { agent, role: None, permissions: Default::default() };
    let first = args.first_turn.as_deref().map(|text| {
        markdown::check(text)?;
        Ok::<_, DoorError>(posthaste_engine::verbs::turns::FirstTurn {
            content_type: "text".to_owned(),
            content: words(text),
            visibility: None,
        })
    });
    let verb = Create {
        id: args.conversation_id.as_deref().map(conversation_id).transpose()?,
        kind: args.kind,
        subject: args.subject,
        parent: None,
        parent_turn: None,
        participants: agents(args.participants)?.into_iter().map(invitee).collect(),
        first: first.transpose()?,
        audience: Audience::Parties,
        meta: None,
    };
    let created = call.ask(&project, &caller, verb).await?;
    Ok(Answer::one(&conversation_row(&created.conversation)))
}

async fn list_conversations(call: &Call, args: ListConversationsArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let query = ConversationQuery {
        participant: Some(caller.agent.clone()),
        newest_first: true,
        cursor: id(args.before),
        limit: limit(args.limit)?,
        ..ConversationQuery::default()
    };
    let asking = caller.clone();
    let page = call.look(&project, &caller, move |view| view.conversations(&asking, &query)).await?;
    Ok(Answer::list(&page.items.iter().map(conversation_row).collect::<Vec<_>>(), "No conversations."))
}

async fn add_turn(call: &Call, args: AddTurnArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    markdown::check(&args.text)?;
    let visible_to = agents(args.visible_to)?;
    let verb = Say {
        conversation: conversation_id(&args.conversation_id)?,
        thread: None,
        content_type: "text".to_owned(),
        content: words(&args.text),
        in_reply_to: args.in_reply_to.as_deref().map(turn_id).transpose()?,
        visibility: (!visible_to.is_empty()).then_some(TurnVisibility::Agents(visible_to)),
        meta: None,
    };
    let turn = call.ask(&project, &caller, verb).await?;
    Ok(Answer::one(&turn_row(&turn)))
}

async fn list_turns(call: &Call, args: ListTurnsArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let place = args.after.as_deref().map(turn_id).transpose()?;
    let newest_first = args.newest_first;
    let query = TurnQuery {
        after: place.filter(|_| !newest_first),
        before: place.filter(|_| newest_first),
        newest_first,
        limit: limit(args.limit)?,
        ..TurnQuery::default()
    };
    let (asking, id) = (caller.clone(), conversation_id(&args.conversation_id)?);
    let page = call.look(&project, &caller, move |view| view.turns(&asking, &id, &query)).await?;
    Ok(Answer::one(&TurnList {
        conversation_id: args.conversation_id,
        turns: page.items.iter().map(turn_row).collect(),
        next: page.next.map(|id| id.to_string()),
    }))
}

async fn close_conversation(call: &Call, args: CloseConversationArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let reason = args.reason;
    let closed = call
        .ask(
            &project,
            &caller,
            Close { conversation: conversation_id(&args.conversation_id)?, status: None, reason },
        )
        .await?;
    Ok(Answer::one(&conversation_row(&closed)))
}

fn words(text: &str) -> Json {
    meta::json(&TurnContent { text })
}

fn conversation_row(conversation: &Conversation) -> ConversationRow {
    ConversationRow {
        conversation_id: conversation.id.to_string(),
        kind: conversation.kind.clone(),
        status: conversation.status.as_str().to_owned(),
        subject: conversation.subject.clone(),
        created_by: conversation.created_by.to_string(),
        participants: conversation.participant_count,
        turns: conversation.turn_count,
        created_ts: to_wire::time(conversation.created_at),
        updated_ts: to_wire::time(conversation.updated_at),
        place: conversation.seq,
    }
}

fn turn_row(turn: &Turn) -> TurnRow {
    let content = turn.content.value();
    let text = content.get("text").and_then(Value::as_str).or_else(|| spoken(&content));
    TurnRow {
        turn_id: turn.id.to_string(),
        from: turn.author.to_string(),
        content_type: turn.content_type.clone(),
        text: text.map_or_else(|| compact(turn.content.as_str()), str::to_owned),
        in_reply_to: turn.in_reply_to.map(|id| id.to_string()),
        created_ts: to_wire::event_time(turn.at, turn.seq),
    }
}
