//! Other systems: connecting to them, and routing messages there and on, with an eye on loops and distance.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use posthaste_engine::Engine;
use posthaste_engine::nouns::{Audience, Body, Json, Message};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::Announce;
use posthaste_wire::map::message::Receipt;
use posthaste_wire::map::{Address, codes};
use posthaste_wire::rpc::{self, Item};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_util::sync::CancellationToken;

use super::connection::{Answer, Connection, Reply};
use super::errors::DoorError;
use super::from_wire::{self, object_or_default, params, some_object};
use super::registry::SessionRegistry;
use super::session::Session;
use super::ws::SILENT_PINGS;
use super::{MAX_MESSAGE, addresses, connect, to_wire};
use crate::Door;
use posthaste_host::http::dial::{self, Endpoint};
use posthaste_host::http::reach::Scout;

/// How far a message may come.
const MAX_HOPS: u64 = 10;
/// How long another system may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

type Socket = tokio_tungstenite::WebSocketStream<dial::Stream>;

/// A connection to another system. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Tells it from others to the same system.
    id: u64,
    calls: mpsc::Sender<Call>,
}

#[derive(Debug)]
struct Call {
    method: &'static str,
    params: Value,
    answer: oneshot::Sender<Result<Value, DoorError>>,
}

impl Link {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    async fn call(&self, method: &'static str, params: Value) -> Result<Value, DoorError> {
        let gone = || DoorError::new(codes::FEDERATION_UNAVAILABLE, "the other system is gone");
        let (answer, wait) = oneshot::channel();
        // A place among the calls is part of the wait: a peer that takes nothing must not hold callers for ever.
        let called = async {
            self.calls.send(Call { method, params, answer }).await.map_err(|_| gone())?;
            wait.await.map_err(|_| gone())?
        };
        match tokio::time::timeout(PATIENCE, called).await {
            Ok(answer) => answer,
            Err(_) => Err(DoorError::new(codes::FEDERATION_UNAVAILABLE, "the other system does not answer")),
        }
    }
}

pub(super) fn unknown(system: &str) -> DoorError {
    let why = format!("there is no connection to the system {system}");
    DoorError::new(codes::FEDERATION_SYSTEM_NOT_FOUND, why)
}

/// What a session of acp-compat mode hears, however it tries.
pub(super) fn not_in_compat() -> DoorError {
    DoorError::new(codes::FEDERATION_UNAVAILABLE, "there is no federation in acp-compat mode")
}

/// The links that a message takes, or why it cannot.
pub(super) fn links(
    at: &Connection,
    elsewhere: &[(String, String)],
) -> Result<Vec<(Link, String, String)>, DoorError> {
    elsewhere
        .iter()
        .map(|(system, agent)| match at.registry.link(system) {
            Some(link) => Ok((link, system.clone(), agent.clone())),
            None => Err(unknown(system)),
        })
        .collect()
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectParams {
    system_id: String,
    endpoint: String,
    #[serde(default)]
    auth: Option<Value>,
}

/// `map/federation/connect`. The answer may take a while, so other calls go on meanwhile.
pub(super) fn connect(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Result<Reply, DoorError> {
    let asked: ConnectParams = params(given)?;
    if asked.system_id == at.engine.realm().as_str() {
        return Err(DoorError::new(codes::FEDERATION_ROUTE_REJECTED, "that is this system"));
    }
    let (engine, registry, session) = (at.engine.clone(), at.registry.clone(), session.clone());
    let (stop, door) = (at.door.stop().clone(), at.door.clone());
    let endpoint = Endpoint::parse(&asked.endpoint)
        .ok_or_else(|| DoorError::params("endpoint: a ws:// or wss:// address, without a password in it"))?;
    Ok(Reply::Detached(Box::pin(async move {
        let (mut socket, answer) =
            match tokio::time::timeout(PATIENCE, dial(&engine, &door, &endpoint, &asked)).await {
                Ok(dialled) => dialled?,
                Err(_) => {
                    return Err(DoorError::new(
                        codes::FEDERATION_UNAVAILABLE,
                        "the other system does not answer",
                    ));
                }
            };
        if let Some(required) = answer.get("authRequired") {
            // Closing is a courtesy.
            let _ = socket.close(None).await;
            return Ok(json!({ "connected": false, "authRequired": required }).into());
        }
        let info = answer.get("systemInfo").cloned().unwrap_or_default();
        if let Some(name) = info.get("systemId").and_then(Value::as_str)
            && name != asked.system_id
        {
            return Err(DoorError::new(
                codes::FEDERATION_SYSTEM_NOT_FOUND,
                format!("the system at {} is {name}", asked.endpoint),
            ));
        }
        let (calls, waiting) = mpsc::channel(64);
        let id = registry.add_link(&asked.system_id, |id| Link { id, calls });
        announce(&engine, &session, "federation.connected", &asked.system_id).await?;
        let way = (asked.system_id, id);
        let ends = Ends { stop, ping_every: door.ping_every() };
        tokio::spawn(carry(engine, registry, session, way, socket, waiting, ends));
        let name = answer.get("sessionId").cloned();
        Ok(json!({ "connected": true, "systemInfo": info, "sessionId": name }).into())
    })))
}

async fn announce(engine: &Engine, session: &Session, word: &str, system: &str) -> Result<(), DoorError> {
    let data = Json::from_value(&json!({ "systemId": system }));
    engine.submit(&session.caller(), Announce { word: word.to_owned(), data, to: None }).await?;
    Ok(())
}

/// Opens the connection and greets as a gateway.
async fn dial(
    engine: &Engine,
    door: &Door,
    endpoint: &Endpoint,
    asked: &ConnectParams,
) -> Result<(Socket, Value), DoorError> {
    let unavailable = |why: String| DoorError::new(codes::FEDERATION_UNAVAILABLE, why);
    let trust = door.trust().map_err(|error| unavailable(error.to_string()))?;
    let scout = Scout::new(door.reaches().named);
    let stream = endpoint.dial(&trust, &scout).await.map_err(|error| unavailable(error.to_string()))?;
    let config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE));
    let (mut socket, _) = tokio_tungstenite::client_async_with_config(&endpoint.url, stream, Some(config))
        .await
        .map_err(|error| unavailable(error.to_string()))?;
    let mut greeting = json!({
        "protocolVersion": 1, "participantType": "gateway", "name": engine.realm(),
    });
    if let Some(auth) = &asked.auth {
        greeting["auth"] = spelled(auth);
    }
    let call = json!({ "jsonrpc": "2.0", "id": 0, "method": "map/connect", "params": greeting }).to_string();
    socket.send(Frame::text(call)).await.map_err(|error| unavailable(error.to_string()))?;
    while let Some(frame) = socket.next().await {
        let Ok(Frame::Text(text)) = frame else { continue };
        for item in rpc::parse(&text, 1) {
            if let Item::Single(rpc::Message::Response { outcome, .. }) = item {
                let answer =
                    outcome.map_err(|error| DoorError::new(codes::FEDERATION_AUTH_FAILED, error.message))?;
                return Ok((socket, serde_json::from_str(answer.get()).unwrap_or_default()));
            }
        }
    }
    Err(unavailable("the other system hung up".to_owned()))
}

/// The credentials as `map/connect` has them: the SDK's gateways write `credentials`, and others read one of the rest.
fn spelled(auth: &Value) -> Value {
    let mut auth = auth.clone();
    let secret = ["credential", "credentials", "token"].iter().find_map(|name| auth.get(name)).cloned();
    if let (Value::Object(members), Some(secret)) = (&mut auth, secret) {
        members.insert("credential".to_owned(), secret);
    }
    auth
}

/// What ends a link.
struct Ends {
    stop: CancellationToken,
    ping_every: Duration,
}

/// Carries calls to another system and answers back, until one of the two goes.
async fn carry(
    engine: Engine,
    registry: Arc<SessionRegistry>,
    session: Arc<Session>,
    (system, id): (String, u64),
    mut socket: Socket,
    mut calls: mpsc::Receiver<Call>,
    Ends { stop, ping_every }: Ends,
) {
    let mut waiting: std::collections::HashMap<i64, oneshot::Sender<Result<Value, DoorError>>> =
        Default::default();
    let mut next = 1;
    let mut ping = tokio::time::interval(ping_every);
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ping.reset();
    let mut unanswered = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            call = calls.recv() => {
                let Some(call) = call else { break };
                let id = next;
                next += 1;
                waiting.retain(|_, answer| !answer.is_closed());
                waiting.insert(id, call.answer);
                let text = json!({ "jsonrpc": "2.0", "id": id, "method": call.method, "params": call.params });
                if !taken(&mut socket, Frame::text(text.to_string())).await { break }
            }
            // A system that vanished without a word is found out, and calls to it are refused at once.
            _ = ping.tick() => {
                if unanswered >= SILENT_PINGS || !taken(&mut socket, Frame::Ping(Default::default())).await {
                    break;
                }
                unanswered += 1;
            }
            frame = socket.next() => {
                unanswered = 0;
                match frame {
                    Some(Ok(Frame::Text(text))) => settle(&text, &mut waiting),
                    Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => {}
                }
            }
        }
    }
    // Another may have taken its place.
    if !registry.remove_link(&system, id) {
        return;
    }
    if let Err(failure) = announce(&engine, &session, "federation.disconnected", &system).await {
        tracing::debug!(system, why = failure.message, "the end of a link was not announced");
    }
}

/// Whether another system took a frame within the time it has for an answer.
async fn taken(socket: &mut Socket, frame: Frame) -> bool {
    matches!(tokio::time::timeout(PATIENCE, socket.send(frame)).await, Ok(Ok(())))
}

fn settle(
    text: &str,
    waiting: &mut std::collections::HashMap<i64, oneshot::Sender<Result<Value, DoorError>>>,
) {
    for item in rpc::parse(text, 100) {
        let Item::Single(rpc::Message::Response { id, outcome }) = item else { continue };
        let Some(answer) = id.as_json().parse().ok().and_then(|id: i64| waiting.remove(&id)) else {
            continue;
        };
        let outcome = match outcome {
            Ok(result) => Ok(serde_json::from_str(result.get()).unwrap_or_default()),
            Err(error) => Err(DoorError::new(error.code, error.message)),
        };
        // Whoever asked may have given up.
        let _ = answer.send(outcome);
    }
}

/// Sends a message that was accepted here on to an agent of another system, and says how it fared.
pub(super) async fn forward(
    engine: &Engine,
    link: &Link,
    message: &Message,
    system: &str,
    agent: &str,
    semantic: &str,
) -> Receipt<'static> {
    let us = engine.realm();
    let mut payload = serde_json::to_value(to_wire::message(message, true)).unwrap_or_default();
    payload["to"] = json!({ "agent": agent });
    let envelope = json!({
        "payload": payload,
        "federation": {
            "sourceSystem": us, "targetSystem": system, "hopCount": 1, "maxHops": MAX_HOPS, "path": [us],
            "originTimestamp": message.at, "correlationId": message.correlation,
        },
    });
    let routed = link.call("map/federation/route", json!({ "systemId": system, "envelope": envelope })).await;
    let status = match &routed {
        Ok(answer) if answer["delivered"].as_array().is_some_and(|list| !list.is_empty()) => "delivered",
        Ok(_) => "queued",
        Err(_) => "failed",
    };
    Receipt {
        agent_id: format!("{system}:agent:{agent}").into(),
        status: status.into(),
        semantic: semantic.to_owned().into(),
        timestamp: message.at,
        error: Some(routed.err().map(|failure| failure.message.into())),
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RouteParams {
    system_id: String,
    #[serde(default, deserialize_with = "some_object")]
    envelope: Option<Envelope>,
    #[serde(default)]
    message: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Envelope {
    #[serde(default)]
    payload: Value,
    #[serde(default, deserialize_with = "object_or_default")]
    federation: Way,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Way {
    source_system: Option<String>,
    target_system: Option<String>,
    hop_count: u64,
    max_hops: Option<u64>,
    path: Vec<String>,
    origin_timestamp: Option<i64>,
    correlation_id: Option<String>,
}

/// `map/federation/route`: a message that comes from or through another system, for us or for a third.
pub(super) async fn route(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Result<Reply, DoorError> {
    let asked: RouteParams = params(given)?;
    let us = at.engine.realm().to_string();
    let (message, way) = match (asked.envelope, asked.message) {
        (Some(envelope), _) => (envelope.payload, envelope.federation),
        (None, Some(message)) => (message, Way::default()),
        (None, None) => return Err(DoorError::params("envelope or message: what is to be routed")),
    };
    if !message.is_object() {
        return Err(DoorError::params("the message is an object"));
    }
    if way.hop_count >= way.max_hops.unwrap_or(MAX_HOPS).min(MAX_HOPS) {
        return Err(DoorError::new(codes::FEDERATION_MAX_HOPS_EXCEEDED, "the message has come too far"));
    }
    if way.path.contains(&us) {
        return Err(DoorError::new(codes::FEDERATION_LOOP_DETECTED, "the message has been here before"));
    }
    let target = way.target_system.clone().unwrap_or(asked.system_id);
    if target == us {
        return deliver(at, session, &message, &way).await;
    }
    let link = at.registry.link(&target).ok_or_else(|| unknown(&target))?;
    let mut path = way.path.clone();
    path.push(us.clone());
    let envelope = json!({
        "payload": message,
        "federation": {
            "sourceSystem": way.source_system.unwrap_or_else(|| us.clone()),
            "targetSystem": target,
            "hopCount": way.hop_count + 1,
            "maxHops": way.max_hops.unwrap_or(MAX_HOPS),
            "path": path,
            "originTimestamp": way.origin_timestamp,
            "correlationId": way.correlation_id,
        },
    });
    Ok(Reply::Detached(Box::pin(async move {
        let answer =
            link.call("map/federation/route", json!({ "systemId": target, "envelope": envelope })).await?;
        Ok(Answer::from(answer))
    })))
}

/// Hands a message from elsewhere to its recipients here. It is shown under its sender's federated name.
async fn deliver(
    at: &mut Connection,
    session: &Arc<Session>,
    message: &Value,
    way: &Way,
) -> Result<Reply, DoorError> {
    let recipients = addresses::resolve(at, session, Address::parse(&message["to"])?).await?;
    if !recipients.federated.is_empty() {
        return Err(DoorError::new(
            codes::FEDERATION_ROUTE_REJECTED,
            "the message is for yet another system",
        ));
    }
    connect::list(at, session).await?;
    let source =
        way.source_system.clone().or_else(|| session.name.clone()).unwrap_or_else(|| "unknown".to_owned());
    let from = message["from"].as_str().unwrap_or("unknown");
    let from = format!("{source}:agent:{from}");
    let raw = |value: &Value| (!value.is_null()).then(|| to_wire::to_raw(value));
    let (to, meta) = (raw(&message["to"]), raw(&message["meta"]));
    let verb = SendMessage {
        body: match message.get("payload") {
            Some(payload) => Body::Json(from_wire::json(payload)),
            None => Body::Text(String::new()),
        },
        priority: from_wire::priority(message.pointer("/meta/priority")),
        correlation: message.pointer("/meta/correlationId").and_then(Value::as_str).map(str::to_owned),
        meta: to_wire::keep(to.as_deref(), meta.as_deref(), Some(&from))?,
        audience: Audience::Observers,
        allow_no_recipients: true,
        ..SendMessage::text(recipients.local, "")
    };
    let caller = session.caller_as(session.participant.clone());
    let sent = at.engine.submit(&caller, verb).await?;
    let delivered: Vec<_> = sent
        .receipts
        .iter()
        .filter(|receipt| receipt.state == posthaste_engine::nouns::DeliveryState::Delivered)
        .map(|receipt| &receipt.agent)
        .collect();
    Ok(Reply::Ready(Ok(json!({
        "routed": true, "messageId": sent.message.id.to_string(), "delivered": delivered,
    })
    .into())))
}
