//! Sending: `map/send` and the methods that send a message like it.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::nouns::{
    self, AgentId, Audience, Body, Caller, DeliveryState, Event, Fact, Json, MessageId, Seq,
};
use posthaste_engine::stamp;
use posthaste_engine::verbs::deliveries::MarkFailed;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage, SendReceipt};
use posthaste_engine::{Dispatch, Engine, Filter, Start, Step};
use posthaste_wire::map::message::{
    Delivered, Heading, InjectParams, InjectResult, Receipt, RequestResult, ScopeParams, SendMeta,
    SendParams, SendResult, To,
};
use posthaste_wire::map::{Address, Switch, codes};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::addresses::{self, Recipients};
use super::connection::{Answer, Connection, Reply};
use super::errors::DoorError;
use super::from_wire::{self, borrowed, params};
use super::registry::SessionRegistry;
use super::session::{Session, fresh};
use super::{connect, federation, to_wire};

/// How long `map/request` waits for its answer unless told otherwise, and at most.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_REQUEST: Duration = Duration::from_secs(600);

/// A message about to be sent.
#[derive(Debug)]
struct Draft {
    verb: SendMessage,
    /// The way of delivery that the sender named.
    semantic: String,
    /// Whether recipients that are not connected are skipped.
    best_effort: bool,
    /// Whether the sender asked for a delivery that may be lost when the server is killed.
    ephemeral: bool,
}

/// `map/send`.
pub(super) async fn send(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    best_effort: bool,
) -> Result<Reply, DoorError> {
    let given: SendParams<'_> = borrowed(given)?;
    let to = given.to.ok_or_else(|| DoorError::params("to: whom the message is for"))?;
    let recipients = addresses::resolve(at, session, Address::parse_text(to.get())?).await?;
    let broadcast =
        recipients.local.iter().any(|one| matches!(one, nouns::Address::Kind(_) | nouns::Address::All));
    if broadcast && !session.may(Switch::Broadcast) {
        return Err(DoorError::not_allowed(Switch::Broadcast));
    }
    post(at, session, &given, recipients, best_effort).await
}

/// Removes named recipients that are connected but receive no messages; the response lists them as failed. Refuses the
/// message if no recipient is left.
fn leave_out_not_receiving(at: &Connection, recipients: &mut Recipients) -> Result<Vec<AgentId>, DoorError> {
    let mut not_receiving = Vec::new();
    recipients.local.retain(|address| match address {
        nouns::Address::Agent(agent) if at.registry.is_not_receiving(agent) => {
            if !not_receiving.contains(agent) {
                not_receiving.push(agent.clone());
            }
            false
        }
        _ => true,
    });
    match not_receiving.first() {
        Some(agent) if recipients.local.is_empty() && recipients.federated.is_empty() => {
            Err(gets_nothing(agent))
        }
        _ => Ok(not_receiving),
    }
}

fn gets_nothing(agent: &AgentId) -> DoorError {
    DoorError::denied(format!("{agent} gets no messages: its messaging.canReceive is off"))
}

/// `map/broadcast`.
pub(super) async fn broadcast(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    best_effort: bool,
) -> Result<Reply, DoorError> {
    let to = to_wire::to_raw(&To::Broadcast { broadcast: true });
    let given = SendParams { to: Some(&to), ..borrowed(given)? };
    let recipients = addresses::resolve(at, session, vec![Address::Broadcast]).await?;
    post(at, session, &given, recipients, best_effort).await
}

/// `map/send/scope`: to the members of a scope, of the scopes below it on request, and to the sender if it is a member and
/// asks for it.
pub(super) async fn send_to_scope(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    best_effort: bool,
) -> Result<Reply, DoorError> {
    let asked: ScopeParams = params(given)?;
    let to = to_wire::to_raw(&To::Scope { scope: asked.scope_id.clone() });
    let given = SendParams { to: Some(&to), ..borrowed(given)? };
    let scope = from_wire::scope(&asked.scope_id)?;
    let mut scopes = vec![scope.clone()];
    let caller = session.caller();
    if asked.include_descendants {
        let caller = caller.clone();
        scopes = at.engine.read(move |view| view.writable_scopes(&caller, &scope)).await?;
    }
    let mut recipients = Recipients::default();
    if asked.exclude_sender == Some(false) {
        let own = caller.agent.clone();
        let own = at.engine.read(move |view| Ok(view.agent(&caller, &own).ok())).await?;
        let own = own.filter(|own| own.scopes.iter().any(|scope| scopes.contains(scope)));
        recipients.local.extend(own.map(|own| nouns::Address::Agent(own.id)));
    }
    recipients.local.extend(scopes.into_iter().map(nouns::Address::Scope));
    post(at, session, &given, recipients, best_effort).await
}

/// Queues a message; the answer follows.
async fn post(
    at: &mut Connection,
    session: &Arc<Session>,
    given: &SendParams<'_>,
    mut recipients: Recipients,
    best_effort: bool,
) -> Result<Reply, DoorError> {
    let links = federation::links(at, &recipients.federated)?;
    let not_receiving = leave_out_not_receiving(at, &mut recipients)?;
    let mut draft = draft(at, given, recipients.local, best_effort)?;
    draft.verb.not_receiving = not_receiving;
    speak(at, session).await?;
    let caller = session.caller();
    let pending = match draft.ephemeral && links.is_empty() {
        false => at.engine.enqueue(&caller, draft.verb).await?,
        true => match at.engine.dispatch(&caller, draft.verb).await? {
            Dispatch::Queued(pending) => pending,
            Dispatch::Delivered(sent) => {
                at.has_unrecorded = true;
                return Ok(Reply::Ready(Ok(answer(session, &sent, &draft.semantic, &[]))));
            }
        },
    };
    let (engine, session) = (at.engine.clone(), session.clone());
    let (semantic, best_effort) = (draft.semantic, draft.best_effort);
    Ok(Reply::Pipelined(Box::pin(async move {
        let mut sent = pending.answer().await?;
        if best_effort {
            give_up(&engine, &mut sent).await?;
        }
        let mut further = Vec::new();
        for (link, system, agent) in links {
            further
                .push(federation::forward(&engine, &link, &sent.message, &system, &agent, &semantic).await);
        }
        Ok(answer(&session, &sent, &semantic, &further))
    })))
}

/// Makes sure that the session can send: a session without agents sends in its own name.
async fn speak(at: &mut Connection, session: &Arc<Session>) -> Result<(), DoorError> {
    if !session.has_agents() {
        connect::list(at, session).await?;
    }
    Ok(())
}

fn draft(
    at: &Connection,
    given: &SendParams<'_>,
    to: Vec<nouns::Address>,
    best_effort: bool,
) -> Result<Draft, DoorError> {
    let meta: SendMeta = match &given.meta {
        None => SendMeta::default(),
        Some(meta) if meta.get() == "null" => SendMeta::default(),
        Some(meta) if meta.get().starts_with('{') => {
            serde_json::from_str(meta.get()).map_err(DoorError::params)?
        }
        Some(_) => return Err(DoorError::params("meta: an object")),
    };
    let heading: Heading = match &given.payload {
        Some(payload) if payload.get().starts_with('{') => {
            serde_json::from_str(payload.get()).unwrap_or_default()
        }
        _ => Heading::default(),
    };
    let word = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
    let delivery = word(&meta.delivery);
    let semantic = if best_effort {
        "best-effort".to_owned()
    } else {
        let draft = at.session.as_ref().is_some_and(|session| session.is_draft());
        delivery.clone().unwrap_or_else(|| to_wire::usual_semantic(draft).to_owned())
    };
    let ttl = [&meta.ttl_ms, &meta.ttl, &given.ttl_ms].into_iter().find_map(Option::as_ref);
    let expires_at = match ttl {
        None | Some(Value::Null) => None,
        Some(ttl) => match ttl.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "a time to live in whole milliseconds")]
            Some(ttl) if ttl > 0.0 => Some(stamp::now().saturating_add((ttl as i64).max(1))),
            _ => return Err(DoorError::params("ttlMs: a positive number of milliseconds")),
        },
    };
    let meta_text = given.meta.filter(|meta| meta.get() != "null");
    let within = meta.mail.as_ref().filter(|_| may_record(at)).and_then(within);
    let verb = SendMessage {
        kind: word(&heading.kind).or_else(|| given.message_type.clone()).unwrap_or_default(),
        subject: word(&heading.subject),
        body: match &given.payload {
            Some(payload) => Body::Json(from_wire::raw_json("payload", payload)?),
            // The turn that records the message needs a content, which is null without a payload.
            None if within.is_some() => Body::Json(Json::from_value(&Value::Null)),
            None => Body::Text(String::new()),
        },
        priority: from_wire::priority(meta.priority.as_ref().or(given.priority.as_ref())),
        ack_required: meta.require_ack == Some(Value::Bool(true))
            || delivery.as_deref() == Some("acknowledged"),
        expires_at,
        correlation: word(&meta.correlation_id),
        within,
        meta: to_wire::keep(given.to, meta_text, None)?,
        audience: Audience::Observers,
        allow_no_recipients: true,
        pass_over: true,
        ..SendMessage::text(to, "")
    };
    // A message is in the database before its answer unless the sender names a way of delivery that asks for less.
    let ephemeral =
        matches!(delivery.as_deref(), Some("fire-and-forget" | "best-effort" | "inject" | "interrupt"));
    Ok(Draft { verb, best_effort: semantic == "best-effort", ephemeral, semantic })
}

/// Whether messages of a connection may be recorded in a conversation: with the same permission as a turn.
fn may_record(at: &Connection) -> bool {
    at.door.keeps_mail() && at.session.as_ref().is_none_or(|session| session.may(Switch::JoinMail))
}

/// The conversation that a message asks to be recorded in. An unreadable reference is ignored and the message delivered.
fn within(mail: &Value) -> Option<ConversationRef> {
    let mail = mail.as_object()?;
    let text = |name: &str| mail.get(name).and_then(Value::as_str);
    let id = |name: &str| match mail.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(given) => given.as_str().map(Some),
    };
    Some(ConversationRef {
        conversation: nouns::ConversationId::new(text("conversationId")?).ok()?,
        thread: id("threadId")?.map(from_wire::thread),
        reply_to: id("inReplyTo")?.map(from_wire::turn),
        visibility: from_wire::visibility(mail.get("visibility")).ok()?,
        join: JoinMode::IfAllowed,
    })
}

/// The answer to a message. Recipients that receive no messages come after the others, those in other systems last.
fn answer(session: &Session, sent: &SendReceipt, semantic: &str, federated: &[Receipt<'_>]) -> Answer {
    let at = sent.message.at;
    let local = sent.receipts.iter().map(|receipt| (&receipt.agent, receipt.state));
    let refused = sent.refused.iter().map(|agent| (agent, DeliveryState::Failed));
    let mut receipts: Vec<Receipt<'_>> = Vec::with_capacity(sent.receipts.len());
    receipts.extend(local.chain(refused).map(|(agent, state)| to_wire::receipt(agent, state, semantic, at)));
    receipts.extend(federated.iter().cloned());
    let delivered = receipts.iter().filter(|receipt| receipt.status == DeliveryState::Delivered.as_str());
    let delivered = match session.is_draft() {
        true => Delivered::Count(delivered.count()),
        false => Delivered::Agents(delivered.map(|receipt| receipt.agent_id.clone()).collect()),
    };
    Answer::of(&SendResult { message_id: sent.message.id.to_string().into(), delivered, receipts })
}

/// Gives up the deliveries to recipients that are not connected, as the sender asked for best effort.
async fn give_up(engine: &Engine, sent: &mut SendReceipt) -> Result<(), DoorError> {
    for receipt in &mut sent.receipts {
        if receipt.state == DeliveryState::Queued {
            let reason = "not connected".to_owned();
            let verb = MarkFailed { agent: receipt.agent.clone(), message: sent.message.id, reason };
            let delivery = engine.submit(&Caller::office(), verb).await?;
            receipt.state = delivery.state;
        }
    }
    Ok(())
}

/// A message to one agent that the server composes, in the session's name.
pub(super) async fn plain(
    at: &mut Connection,
    session: &Arc<Session>,
    to: &AgentId,
    payload: &impl Serialize,
    meta: Option<&Value>,
) -> Result<SendReceipt, DoorError> {
    let address = to_wire::to_raw(&To::Agent { agent: to.to_string() });
    let payload = to_wire::to_raw(payload);
    let meta = meta.map(to_wire::to_raw);
    let given = SendParams {
        to: Some(&address),
        payload: Some(&payload),
        meta: meta.as_deref(),
        ..SendParams::default()
    };
    let draft = draft(at, &given, vec![nouns::Address::Agent(to.clone())], false)?;
    speak(at, session).await?;
    Ok(at.engine.submit(&session.caller(), draft.verb).await?)
}

/// `map/inject`: a message to an agent while it works.
pub(super) async fn inject(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    best_effort: bool,
) -> Result<Reply, DoorError> {
    let given: InjectParams = params(given)?;
    let id = match (&given.agent_id, &given.to) {
        (Some(id), _) => id.clone(),
        (None, Some(to)) => match Address::parse(to)?.as_slice() {
            [Address::Agent(id) | Address::Named(id)] => id.clone(),
            _ => return Err(DoorError::params("to: one agent")),
        },
        (None, None) => return Err(DoorError::params("agentId: whom it is for")),
    };
    let id = from_wire::agent(&id)?;
    if !session.may(Switch::Steer) && !session.owns(&id) {
        return Err(DoorError::denied("not allowed: lifecycle.canSteer"));
    }
    if at.registry.is_not_receiving(&id) {
        return Err(gets_nothing(&id));
    }
    let in_payload =
        given.payload.as_ref().and_then(|payload| payload.get("content")).or(given.payload.as_ref());
    let content = given.content.as_ref().or(in_payload).cloned();
    let content = content.ok_or_else(|| DoorError::params("content: what is put before the agent"))?;
    let in_meta = given.meta.as_ref().and_then(|meta| meta.get("delivery")).and_then(Value::as_str);
    let delivery = given.delivery.as_deref().or(in_meta);
    if !matches!(delivery, None | Some("interrupt" | "queue" | "best-effort" | "inject")) {
        return Err(DoorError::params("delivery: interrupt, queue or best-effort"));
    }
    let mut meta = match &given.meta {
        Some(Value::Object(meta)) => meta.clone(),
        _ => Map::new(),
    };
    let delivery = if best_effort { Some("best-effort") } else { delivery };
    meta.insert("delivery".to_owned(), delivery.unwrap_or("inject").into());
    meta.insert("injected".to_owned(), true.into());
    let mut sent = plain(at, session, &id, &content, Some(&Value::Object(meta))).await?;
    if delivery == Some("best-effort") {
        give_up(&at.engine, &mut sent).await?;
    }
    let injected = sent.receipts.iter().all(|receipt| receipt.state != DeliveryState::Failed);
    let delivery = match delivery {
        Some("interrupt") => "interrupt",
        Some("queue") => "queue",
        _ => "message",
    };
    let message_id = sent.message.id.to_string().into();
    Ok(Reply::Ready(Ok(Answer::of(&InjectResult { injected, delivery: delivery.into(), message_id }))))
}

/// `map/request`: a message and the answer to it.
pub(super) async fn request(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    best_effort: bool,
) -> Result<Reply, DoorError> {
    let given: SendParams<'_> = borrowed(given)?;
    let to = given.to.ok_or_else(|| DoorError::params("to: whom the request is for"))?;
    let mut recipients = addresses::resolve(at, session, Address::parse_text(to.get())?).await?;
    let not_receiving = leave_out_not_receiving(at, &mut recipients)?;
    let meta: Value = match given.meta.filter(|meta| meta.get() != "null") {
        Some(meta) => serde_json::from_str(meta.get()).map_err(DoorError::params)?,
        None => Value::Object(Map::new()),
    };
    let Value::Object(mut meta) = meta else { return Err(DoorError::params("meta: an object")) };
    let correlation = match meta.get("correlationId").and_then(Value::as_str) {
        Some(given) => given.to_owned(),
        None => fresh("request-"),
    };
    let timeout = timeout(&given, &meta)?;
    meta.insert("correlationId".to_owned(), correlation.as_str().into());
    meta.insert("expectsResponse".to_owned(), true.into());
    let meta = to_wire::to_raw(&meta);
    let given = SendParams { meta: Some(&meta), ..given };
    speak(at, session).await?;
    if !recipients.federated.is_empty() {
        federation::links(at, &recipients.federated)?;
        let why = "requests are not carried to other systems: send a message and take the answer as one";
        return Err(DoorError::new(codes::FEDERATION_UNAVAILABLE, why));
    }
    let mut draft = draft(at, &given, recipients.local, best_effort)?;
    draft.verb.not_receiving = not_receiving;
    let (caller, engine, best_effort) = (session.caller(), at.engine.clone(), draft.best_effort);
    let (asker, registry) = (caller.clone(), at.registry.clone());
    // The feed starts before the question is sent, so that no answer is missed.
    let filter = Filter::All(vec![
        Filter::Kinds(vec!["message.sent".to_owned()]),
        Filter::Correlations(vec![correlation]),
        Filter::Not(Box::new(Filter::Sources(vec![caller.agent.clone()]))),
    ]);
    let mut feed = at.engine.follow(&caller, filter, Start::Now, 16).await?;
    let pending = at.engine.enqueue(&caller, draft.verb).await?;
    Ok(Reply::Detached(Box::pin(async move {
        let mut sent = pending.answer().await?;
        if sent.receipts.is_empty() {
            return Err(DoorError::new(codes::ADDRESS_NOT_FOUND, "the request reaches no agent"));
        }
        if best_effort {
            give_up(&engine, &mut sent).await?;
            if sent.receipts.iter().all(|receipt| receipt.state == DeliveryState::Failed) {
                return Err(DoorError::new(codes::DELIVERY_FAILED, "no recipient is connected"));
            }
        }
        let answer = async {
            loop {
                if let Step::Event { event, .. } = feed.next().await?
                    && event.fact == Fact::MessageSent
                    && let Some(message) = event.message.clone()
                    && was_asked(&registry, &sent, &message.from)
                    && is_for(&engine, &asker, &event, message.seq).await?
                {
                    return Ok::<_, DoorError>(message);
                }
            }
        };
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => Ok(answered(sent.message.id, &*answer?)),
            Err(_) => Err(DoorError::new(codes::DELIVERY_FAILED, "no answer came in time")),
        }
    })))
}

/// How long a request waits for its answer, from any of the members that say so: no longer than the message itself lives.
fn timeout(given: &SendParams<'_>, meta: &Map<String, Value>) -> Result<Duration, DoorError> {
    let options = given.options.as_ref();
    let said = [
        given.timeout.as_ref(),
        given.timeout_ms.as_ref(),
        options.and_then(|options| options.get("timeout")),
        meta.get("timeout"),
        meta.get("ttlMs"),
        meta.get("ttl"),
    ];
    let Some(said) = said.into_iter().flatten().find(|said| !said.is_null()) else {
        return Ok(REQUEST_TIMEOUT);
    };
    let millis = said.as_u64().ok_or_else(|| DoorError::params("timeout: whole milliseconds"))?;
    Ok(Duration::from_millis(millis).min(LONGEST_REQUEST))
}

/// Whether an agent may answer a question: it is a recipient, or its session owns one.
fn was_asked(registry: &SessionRegistry, question: &SendReceipt, from: &AgentId) -> bool {
    let asked = |name: &AgentId| question.receipts.iter().any(|receipt| receipt.agent == *name);
    asked(from)
        || registry.sessions().iter().any(|session| {
            session.owns(from) && (asked(&session.participant) || session.agents().iter().any(asked))
        })
}

/// Whether the asker is a recipient of a message. The correlation id alone does not make it an answer, as it is no secret.
async fn is_for(engine: &Engine, asker: &Caller, event: &Event, seq: Seq) -> Result<bool, DoorError> {
    if event.reached.iter().flatten().any(|(agent, _)| *agent == asker.agent) {
        return Ok(true);
    }
    let asker = asker.clone();
    let found = engine.read(move |view| {
        let found = view.message_at(&asker, seq);
        Ok(found.is_ok_and(|found| found.deliveries.iter().any(|delivery| delivery.agent == asker.agent)))
    });
    Ok(found.await?)
}

fn answered(question: MessageId, answer: &nouns::Message) -> Answer {
    let message_id = question.to_string().into();
    let response = to_wire::message(answer, true);
    let payload = response.payload.clone();
    Answer::of(&RequestResult { message_id, response, payload })
}
