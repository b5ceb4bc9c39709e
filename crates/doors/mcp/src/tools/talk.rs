//! Conversations and their turns, which the other doors share.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{
    AgentId, Audience, Conversation, ConversationId, Json, Turn, TurnId, TurnVisibility,
};
use posthaste_engine::verbs::conversations::{Close, Create, Invitee};
use posthaste_engine::verbs::turns::Say;
use posthaste_engine::views::{ConversationQuery, TurnQuery};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::{markdown, to_wire};
use posthaste_host::plain_text::{compact, spoken};

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        open_conversation,
        full,
        ADDS reaches_agents,
        "Open a conversation with participants; all doors of the office can join in.",
        "project_key! agent_name! participants:texts conversation_id subject kind=multi-agent first_turn registration_token"
    ),
    tool!(
        list_conversations,
        full,
        READS,
        "Conversations an agent takes part in, latest first.",
        "project_key! agent_name! limit:int=20 before:int registration_token"
    ),
    tool!(
        add_turn,
        full,
        ADDS reaches_agents,
        "Say something in a conversation. visible_to limits who may read it.",
        "project_key! agent_name! conversation_id! text! in_reply_to visible_to:texts registration_token"
    ),
    tool!(
        list_turns,
        full,
        READS,
        "What was said in a conversation, in order (or latest first).",
        "project_key! agent_name! conversation_id! limit:int=50 after newest_first:flag=false registration_token"
    ),
    tool!(
        close_conversation,
        full,
        ENDS,
        "End a conversation for everybody.",
        "project_key! agent_name! conversation_id! reason registration_token"
    ),
];

fn talk(args: &Args) -> Result<ConversationId, DoorError> {
    Ok(ConversationId::new(args.need("conversation_id")).map_err(Refusal::from)?)
}

fn agents(names: Vec<String>) -> Result<Vec<AgentId>, DoorError> {
    Ok(names.iter().map(AgentId::new).collect::<Result<_, _>>().map_err(Refusal::from)?)
}

fn turn_id(text: &str) -> Result<TurnId, DoorError> {
    let id = uuid::Uuid::parse_str(text);
    id.map(TurnId).map_err(|_| DoorError::new("TURN_NOT_FOUND", format!("'{text}' is not a turn's id")))
}

async fn open_conversation(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let invitee = |agent| Invitee { agent, role: None, permissions: Default::default() };
    let first = args.text("first_turn").map(|text| {
        markdown::check(text)?;
        Ok::<_, DoorError>(posthaste_engine::verbs::turns::FirstTurn {
            content_type: "text".to_owned(),
            content: words(text),
            visibility: None,
        })
    });
    let verb = Create {
        id: args.text("conversation_id").map(ConversationId::new).transpose().map_err(Refusal::from)?,
        kind: args.need("kind").to_owned(),
        subject: args.text("subject").map(str::to_owned),
        parent: None,
        parent_turn: None,
        participants: agents(args.texts("participants"))?.into_iter().map(invitee).collect(),
        first: first.transpose()?,
        audience: Audience::Parties,
        meta: None,
    };
    let created = call.ask(&project, &caller, verb).await?;
    Ok(shown(&created.conversation).into())
}

async fn list_conversations(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let query = ConversationQuery {
        participant: Some(caller.agent.clone()),
        newest_first: true,
        cursor: args.id("before"),
        limit: usize::try_from(args.within("limit", 1, 1_000)?.unwrap_or(20)).unwrap_or(20),
        ..ConversationQuery::default()
    };
    let asking = caller.clone();
    let page = call.look(&project, &caller, move |view| view.conversations(&asking, &query)).await?;
    Ok(Answer::list(&page.items.iter().map(shown).collect::<Vec<_>>(), "No conversations."))
}

async fn add_turn(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    markdown::check(args.need("text"))?;
    let visible_to = agents(args.texts("visible_to"))?;
    let verb = Say {
        conversation: talk(&args)?,
        thread: None,
        content_type: "text".to_owned(),
        content: words(args.need("text")),
        in_reply_to: args.text("in_reply_to").map(turn_id).transpose()?,
        visibility: (!visible_to.is_empty()).then_some(TurnVisibility::Agents(visible_to)),
        meta: None,
    };
    let turn = call.ask(&project, &caller, verb).await?;
    Ok(said(&turn).into())
}

async fn list_turns(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let place = args.text("after").map(turn_id).transpose()?;
    let newest_first = args.flag("newest_first");
    let query = TurnQuery {
        after: place.filter(|_| !newest_first),
        before: place.filter(|_| newest_first),
        newest_first,
        limit: usize::try_from(args.within("limit", 1, 1_000)?.unwrap_or(50)).unwrap_or(50),
        ..TurnQuery::default()
    };
    let (asking, id) = (caller.clone(), talk(&args)?);
    let page = call.look(&project, &caller, move |view| view.turns(&asking, &id, &query)).await?;
    let turns: Vec<Value> = page.items.iter().map(said).collect();
    Ok(json!({ "conversation_id": args.need("conversation_id"), "turns": turns, "next": page.next }).into())
}

async fn close_conversation(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let reason = args.text("reason").map(str::to_owned);
    let closed =
        call.ask(&project, &caller, Close { conversation: talk(&args)?, status: None, reason }).await?;
    Ok(shown(&closed).into())
}

fn words(text: &str) -> Json {
    Json::from_value(&json!({ "text": text }))
}

fn shown(conversation: &Conversation) -> Value {
    json!({
        "conversation_id": conversation.id,
        "kind": conversation.kind,
        "status": conversation.status,
        "subject": conversation.subject,
        "created_by": conversation.created_by,
        "participants": conversation.participant_count,
        "turns": conversation.turn_count,
        "created_ts": to_wire::time(conversation.created_at),
        "updated_ts": to_wire::time(conversation.updated_at),
        "place": conversation.seq,
    })
}

fn said(turn: &Turn) -> Value {
    let content = turn.content.value();
    let said = content.get("text").and_then(Value::as_str).or_else(|| spoken(&content));
    let text = said.map_or_else(|| compact(turn.content.as_str()), str::to_owned);
    json!({
        "turn_id": turn.id,
        "from": turn.author,
        "content_type": turn.content_type,
        "text": text,
        "in_reply_to": turn.in_reply_to,
        "created_ts": to_wire::placed(turn.at, turn.seq),
    })
}
