//! Everything that the page changes: each action is one verb, executed under the name of the visitor that is signed in.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_engine::nouns::{
    Address, AgentId, ContactState, ConversationId, ConversationStatus, Json, MessageId, PeerKind,
    PermissionsPatch, Priority, RealmName, Seq, TokenRole,
};
use posthaste_engine::verbs::agents::SetState;
use posthaste_engine::verbs::contacts::Answer;
use posthaste_engine::verbs::conversations::{Close, Invite, Invitee, Join, Reopen};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::peers::{PutPeer, RemovePeer};
use posthaste_engine::verbs::reservations::{Release, Which};
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};
use posthaste_engine::verbs::turns::Say;
use posthaste_wire::control::TextContent;

use super::answers::DoorError;
use super::frame::{self, Section};
use super::query::{Given, param};
use super::sign_in::safe_next;
use super::visitor::Visitor;
use super::write::{self, Draft};
use super::{message, settings};
use posthaste_host::acks;
use posthaste_host::address;
use posthaste_host::keys;
use posthaste_host::units::parse_span;

/// The kind of an interruption; doors whose protocol has interruptions spell it in their own way.
const INTERRUPT: &str = "interrupt";

/// `POST /ui/do/{action}`.
pub(super) async fn act(
    visitor: Visitor,
    Path(params): Path<Vec<(String, String)>>,
    body: String,
) -> Response {
    let given = Given::new(&body);
    if let Err(error) = visitor.check_form(given.raw("word")) {
        return error.framed(&visitor).await;
    }
    match carry_out(&visitor, param(&params, "action"), &given).await {
        Ok(response) => response,
        Err(error) => error.framed(&visitor).await,
    }
}

async fn carry_out(visitor: &Visitor, action: &str, given: &Given) -> Result<Response, DoorError> {
    // A visitor that acts is in the directory, so that agents can answer.
    visitor.enter().await?;
    let said = match action {
        "send" => return send(visitor, given).await,
        "token" => return make_token(visitor, given).await,
        "interrupt" => return interrupt(visitor, given).await,
        "ack" => ack(visitor, given).await?,
        "read" => read(visitor, given).await?,
        "say" => say(visitor, given).await?,
        "invite" => invite(visitor, given).await?,
        "close" => close(visitor, given).await?,
        "reopen" => reopen(visitor, given).await?,
        "release" => release(visitor, given).await?,
        "resume" => resume(visitor, given).await?,
        "contact" => contact(visitor, given).await?,
        "revoke" => revoke(visitor, given).await?,
        "realm" => realm(visitor, given).await?,
        "peer" => peer(visitor, given).await?,
        "forget" => forget(visitor, given).await?,
        _ => return Err(DoorError::new(StatusCode::NOT_FOUND, "There is no such action.")),
    };
    Ok(back(visitor, given, said))
}

/// Redirects to where the form was, and names what was done in the address.
fn back(visitor: &Visitor, given: &Given, Done { word, otherwise }: Done) -> Response {
    let next = safe_next(given.get("next"), &visitor.to(&otherwise));
    let (next, anchor) = next.split_once('#').map_or((next.as_str(), ""), |(next, anchor)| (next, anchor));
    let mark = if next.contains('?') { '&' } else { '?' };
    let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
    Redirect::to(&format!("{next}{mark}done={word}{anchor}")).into_response()
}

/// What was done, and where to go if the form does not name a page.
struct Done {
    word: &'static str,
    otherwise: String,
}

fn done(word: &'static str, otherwise: impl Into<String>) -> Result<Done, DoorError> {
    Ok(Done { word, otherwise: otherwise.into() })
}

fn addresses(text: &str) -> Result<Vec<Address>, DoorError> {
    let words: Vec<&str> =
        text.split([',', '\n', ';']).map(str::trim).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(DoorError::bad("The message has no recipient."));
    }
    words
        .iter()
        .map(|word| {
            address::parse(word).map_err(|why| DoorError::bad(format!("“{word}” is not an address: {why}.")))
        })
        .collect()
}

fn message_of(draft: &Draft) -> Result<SendMessage, DoorError> {
    let conversation = match draft.conversation.trim() {
        "" => None,
        name => Some(ConversationId::new(name).map_err(|why| DoorError::bad(why.to_string()))?),
    };
    let within = conversation.map(|conversation| ConversationRef {
        conversation,
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::NameOnly { kind: "thread".to_owned() },
    });
    let subject = Some(draft.subject.trim().to_owned()).filter(|subject| !subject.is_empty());
    let priority = Priority::try_from(draft.priority).map_err(DoorError::bad)?;
    if draft.text.trim().is_empty() {
        return Err(DoorError::bad("The message has no text."));
    }
    Ok(SendMessage {
        subject,
        priority,
        within,
        ack_required: draft.ack,
        in_reply_to: draft.reply,
        ..SendMessage::text(addresses(&draft.to)?, draft.text.clone())
    })
}

/// Sends a message, and shows it with every recipient's receipt. A draft that is refused is shown again with the reason.
async fn send(visitor: &Visitor, given: &Given) -> Result<Response, DoorError> {
    let draft = Draft::back(given)?;
    let sent = match message_of(&draft) {
        Ok(verb) => visitor.engine.submit(&visitor.caller(), verb).await.map_err(DoorError::from),
        Err(error) => Err(error),
    };
    match sent {
        Ok(sent) => {
            Ok(Redirect::to(&visitor.to(&format!("/messages/{}?sent=1", sent.message.id))).into_response())
        }
        Err(error) => {
            let body = write::composer(visitor, &draft, None, Some(error.text()));
            let page = frame::render(visitor, Section::None, "Write", body, None).await;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

fn agent_in(given: &Given, name: &'static str) -> Result<AgentId, DoorError> {
    AgentId::new(given.needed(name)?).map_err(|why| DoorError::bad(why.to_string()))
}

fn conversation_in(given: &Given) -> Result<ConversationId, DoorError> {
    ConversationId::new(given.needed("conversation")?).map_err(|why| DoorError::bad(why.to_string()))
}

fn message_in(given: &Given) -> Result<MessageId, DoorError> {
    given.message("message")?.ok_or_else(|| DoorError::bad("Which message?"))
}

/// Sends an urgent message that asks to be acknowledged; on request the agent is paused as well.
async fn interrupt(visitor: &Visitor, given: &Given) -> Result<Response, DoorError> {
    let agent = agent_in(given, "agent")?;
    let text = given.needed("text")?.to_owned();
    if given.is_on("pause") {
        let verb =
            SetState { agent: agent.clone(), state: posthaste_engine::nouns::Agent::SUSPENDED.to_owned() };
        visitor.engine.submit(&visitor.caller(), verb).await?;
    }
    let verb = SendMessage {
        kind: INTERRUPT.to_owned(),
        subject: Some("Interrupt".to_owned()),
        priority: Priority::URGENT,
        ack_required: true,
        ..SendMessage::text(vec![Address::Agent(agent)], text)
    };
    let sent = visitor.engine.submit(&visitor.caller(), verb).await?;
    Ok(Redirect::to(&visitor.to(&format!("/messages/{}?sent=1", sent.message.id))).into_response())
}

async fn resume(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let agent = agent_in(given, "agent")?;
    let to = format!("/agents/{}", super::query::encoded(agent.as_str()));
    let verb = SetState { agent, state: posthaste_engine::nouns::Agent::IDLE.to_owned() };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("resumed", to)
}

/// Acknowledges the visitor's own delivery: a person does not acknowledge for others.
async fn ack(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    acks::acknowledge(&visitor.engine, &visitor.caller(), message_in(given)?, given.owned("response"))
        .await?;
    done("acked", "/inbox")
}

async fn read(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let verb = MarkRead { agent: visitor.me().clone(), message: message_in(given)?, unread: false };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("read", "/inbox")
}

/// Records a turn for all participants of a conversation. An administrator that does not participate joins first.
async fn say(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let conversation = conversation_in(given)?;
    let text = given.needed("text")?.replace("\r\n", "\n");
    let id = conversation.clone();
    let takes_part = visitor.read(move |view, caller| view.own_part(caller, &id)).await?.is_some();
    if !takes_part {
        let verb = Join { conversation: conversation.clone(), role: Some("observer".to_owned()) };
        visitor.engine.submit(&visitor.caller(), verb).await?;
    }
    let to = format!("/conversations/{}", super::query::encoded(conversation.as_str()));
    let verb = Say {
        conversation,
        thread: None,
        content_type: "text".to_owned(),
        content: Json::from_value(&serde_json::to_value(TextContent { text }).unwrap_or_default()),
        in_reply_to: None,
        visibility: None,
        meta: None,
    };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("said", to)
}

async fn invite(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let invitee = Invitee {
        agent: agent_in(given, "agent")?,
        role: given.owned("role"),
        permissions: PermissionsPatch::default(),
    };
    let verb = Invite { conversation: conversation_in(given)?, invitee };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("invited", "/conversations")
}

async fn close(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let verb = Close {
        conversation: conversation_in(given)?,
        status: given.get("status").and_then(ConversationStatus::from_word),
        reason: given.owned("reason"),
    };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("closed", "/conversations")
}

async fn reopen(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    visitor.engine.submit(&visitor.caller(), Reopen { conversation: conversation_in(given)? }).await?;
    done("reopened", "/conversations")
}

async fn release(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let number: Seq = given.seq("reservation")?.ok_or_else(|| DoorError::bad("Which reservation?"))?;
    let verb = Release { which: vec![Which::Number(number)], owner: given.agent("owner")? };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("released", "/reservations")
}

async fn contact(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let state = match given.get("answer") {
        Some("accept") => ContactState::Accepted,
        Some("block") => ContactState::Blocked,
        _ => return Err(DoorError::bad("Accept or block?")),
    };
    let verb = Answer { from: agent_in(given, "from")?, state, expires_at: None };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("contact", "/agents")
}

/// Makes a token; the engine refuses it to callers that are not administrators.
async fn make_token(visitor: &Visitor, given: &Given) -> Result<Response, DoorError> {
    let name = given.needed("name")?.to_owned();
    let role = given
        .get("role")
        .and_then(TokenRole::from_word)
        .ok_or_else(|| DoorError::bad("admin, user or agent?"))?;
    let expires_at = match given.get("expires") {
        Some(span) => {
            let span = parse_span(span).map_err(DoorError::bad)?;
            Some(visitor.now.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
        }
        None => None,
    };
    let secret = keys::new_token();
    let verb = CreateToken {
        hash: keys::hash(&secret).to_vec(),
        role,
        name: name.clone(),
        door: None,
        observe: given.get("observe").is_some(),
        expires_at,
    };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    let body = settings::shown(visitor, Some((&name, &secret))).await?;
    Ok(message::beside(visitor, Section::Settings, "Settings", body).await)
}

async fn revoke(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    visitor.engine.submit(&visitor.caller(), RevokeToken { id: given.needed("token")?.to_owned() }).await?;
    done("revoked", "/settings")
}

async fn realm(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let name = RealmName::new(given.needed("name")?).map_err(|why| DoorError::bad(why.to_string()))?;
    if !visitor.host.may_administer(&visitor.engine, &visitor.identity) {
        return Err(DoorError::new(StatusCode::FORBIDDEN, "Only administrators make realms."));
    }
    visitor.host.office().realm(&name).await?;
    done("realm", "/settings")
}

async fn peer(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let name = RealmName::new(given.needed("name")?).map_err(|why| DoorError::bad(why.to_string()))?;
    let url = given.needed("url")?.to_owned();
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(DoorError::bad("A peer’s address starts with http:// or https://."));
    }
    // Only the operator may have the environment's variables sent to a peer.
    if visitor.identity.is_operator()
        && let Some(swarm) = visitor.host.swarm(visitor.engine.realm())
    {
        swarm.trust_peer(&name, &url).map_err(DoorError::bad)?;
    }
    let verb = PutPeer {
        name,
        kind: given.get("kind").and_then(PeerKind::from_word).unwrap_or(PeerKind::Office),
        url: Some(url),
        token_ref: given.owned("token_ref"),
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    visitor.engine.submit(&visitor.caller(), verb).await?;
    done("peer", "/settings")
}

async fn forget(visitor: &Visitor, given: &Given) -> Result<Done, DoorError> {
    let name = RealmName::new(given.needed("peer")?).map_err(|why| DoorError::bad(why.to_string()))?;
    visitor.engine.submit(&visitor.caller(), RemovePeer { name }).await?;
    done("forgotten", "/settings")
}
