//! Other systems: connecting to them, and routing messages to and through them, with limits on hops and loops.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use posthaste_engine::Engine;
use posthaste_engine::nouns::{Audience, Body, DeliveryState, Message};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::Announce;
use posthaste_wire::map::federation::{
    ConnectParams, ConnectResult, Envelope, GatewayParams, GatewayResult, Route, RouteParams, RouteResult,
    SystemData,
};
use posthaste_wire::map::message::{Receipt, To};
use posthaste_wire::map::{Address, codes};
use posthaste_wire::rpc::{self, Item, RequestId};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_util::sync::CancellationToken;

use super::connection::{Answer, Connection, Reply};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::nouns::stored;
use super::registry::SessionRegistry;
use super::session::Session;
use super::ws::SILENT_PINGS;
use super::{MAX_MESSAGE, addresses, connect, to_wire};
use crate::Door;
use posthaste_host::http::egress_policy::Resolver;
use posthaste_host::http::tls_client::{self, Endpoint};

/// Maximum number of systems that a message may pass.
const MAX_HOPS: u64 = 10;
/// How long another system may take to answer.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);

type Socket = tokio_tungstenite::WebSocketStream<tls_client::Stream>;

/// A connection to another system. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Distinguishes it from other links to the same system.
    id: u64,
    calls: mpsc::Sender<Call>,
}

/// A `map/federation/route` on its way to another system.
#[derive(Debug)]
struct Call {
    params: RouteParams,
    answer: oneshot::Sender<Result<Value, DoorError>>,
}

impl Link {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    async fn route(&self, params: RouteParams) -> Result<Value, DoorError> {
        let gone = || DoorError::new(codes::FEDERATION_UNAVAILABLE, "the other system is gone");
        let (answer, wait) = oneshot::channel();
        // The timeout covers the queue, too: a peer that reads nothing must not hold callers for ever.
        let called = async {
            self.calls.send(Call { params, answer }).await.map_err(|_| gone())?;
            wait.await.map_err(|_| gone())?
        };
        match tokio::time::timeout(PEER_TIMEOUT, called).await {
            Ok(answer) => answer,
            Err(_) => Err(DoorError::new(codes::FEDERATION_UNAVAILABLE, "the other system does not answer")),
        }
    }
}

pub(super) fn unknown(system: &str) -> DoorError {
    let why = format!("there is no connection to the system {system}");
    DoorError::new(codes::FEDERATION_SYSTEM_NOT_FOUND, why)
}

/// The error of acp-compat mode for everything that would reach another system.
pub(super) fn not_in_compat() -> DoorError {
    DoorError::new(codes::FEDERATION_UNAVAILABLE, "there is no federation in acp-compat mode")
}

/// The links to the systems of recipients.
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
        let (mut socket, peer) =
            match tokio::time::timeout(PEER_TIMEOUT, dial(&engine, &door, &endpoint, &asked)).await {
                Ok(dialled) => dialled?,
                Err(_) => {
                    return Err(DoorError::new(
                        codes::FEDERATION_UNAVAILABLE,
                        "the other system does not answer",
                    ));
                }
            };
        if let Some(auth_required) = peer.auth_required {
            // The peer learns of the end of the connection either way.
            let _ = socket.close(None).await;
            return Ok(Answer::of(&ConnectResult::Refused { connected: false, auth_required }));
        }
        let info = peer.system_info;
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
        let name = (asked.system_id, id);
        let ends = Ends { stop, ping_every: door.ping_every() };
        tokio::spawn(carry(engine, registry, session, name, socket, waiting, ends));
        Ok(Answer::of(&ConnectResult::Connected {
            connected: true,
            system_info: info,
            session_id: peer.session_id,
        }))
    })))
}

async fn announce(engine: &Engine, session: &Session, word: &str, system: &str) -> Result<(), DoorError> {
    let data = stored(&SystemData { system_id: system.to_owned() });
    engine.submit(&session.caller(), Announce { word: word.to_owned(), data, to: None }).await?;
    Ok(())
}

/// Opens the connection and greets as a gateway.
async fn dial(
    engine: &Engine,
    door: &Door,
    endpoint: &Endpoint,
    asked: &ConnectParams,
) -> Result<(Socket, GatewayResult), DoorError> {
    let unavailable = |why: String| DoorError::new(codes::FEDERATION_UNAVAILABLE, why);
    let trust = door.trusted_roots().map_err(|error| unavailable(error.to_string()))?;
    let scout = Resolver::new(door.egress_policy().named);
    let stream = endpoint.dial(&trust, &scout).await.map_err(|error| unavailable(error.to_string()))?;
    let config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE));
    let (mut socket, _) = tokio_tungstenite::client_async_with_config(&endpoint.url, stream, Some(config))
        .await
        .map_err(|error| unavailable(error.to_string()))?;
    let greeting = to_wire::to_raw(&GatewayParams {
        protocol_version: 1,
        participant_type: "gateway".to_owned(),
        name: engine.realm().to_string(),
        auth: asked.auth.as_ref().map(with_credential),
    });
    let call = rpc::write_request(&RequestId::from(0), "map/connect", Some(&greeting));
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

/// Credentials with the secret in `credential` too: the SDK's gateways write `credentials`, and servers read different names.
fn with_credential(auth: &Value) -> Value {
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
                let params = to_wire::to_raw(&call.params);
                let text = rpc::write_request(&id.into(), "map/federation/route", Some(&params));
                if !taken(&mut socket, Frame::text(text)).await { break }
            }
            // A system that does not answer pings counts as gone, and calls to it are refused at once.
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
    // A newer link to the same system stays.
    if !registry.remove_link(&system, id) {
        return;
    }
    if let Err(error) = announce(&engine, &session, "federation.disconnected", &system).await {
        tracing::debug!(system, why = error.message, "the end of a link was not announced");
    }
}

/// Whether another system took a frame within the time it has for an answer.
async fn taken(socket: &mut Socket, frame: Frame) -> bool {
    matches!(tokio::time::timeout(PEER_TIMEOUT, socket.send(frame)).await, Ok(Ok(())))
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
        // The caller may have given up.
        let _ = answer.send(outcome);
    }
}

/// Sends a message that was accepted here to an agent of another system, and returns the receipt.
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
    payload["to"] = serde_json::to_value(To::Agent { agent: agent.to_owned() }).unwrap_or_default();
    let federation = Route {
        source_system: Some(us.to_string()),
        target_system: Some(system.to_owned()),
        hop_count: 1,
        max_hops: Some(MAX_HOPS),
        path: vec![us.to_string()],
        origin_timestamp: Some(message.at),
        correlation_id: message.correlation.clone(),
    };
    let envelope = Some(Envelope { payload, federation });
    let routed = link.route(RouteParams { system_id: system.to_owned(), envelope, message: None }).await;
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
        error: Some(routed.err().map(|error| error.message.into())),
    }
}

/// `map/federation/route`: a message that comes from or through another system, for us or for a third.
pub(super) async fn route(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Result<Reply, DoorError> {
    let asked: RouteParams = params(given)?;
    let us = at.engine.realm().to_string();
    let (message, hops) = match (asked.envelope, asked.message) {
        (Some(envelope), _) => (envelope.payload, envelope.federation),
        (None, Some(message)) => (message, Route::default()),
        (None, None) => return Err(DoorError::params("envelope or message: what is to be routed")),
    };
    if !message.is_object() {
        return Err(DoorError::params("the message is an object"));
    }
    if hops.hop_count >= hops.max_hops.unwrap_or(MAX_HOPS).min(MAX_HOPS) {
        return Err(DoorError::new(codes::FEDERATION_MAX_HOPS_EXCEEDED, "the message has come too far"));
    }
    if hops.path.contains(&us) {
        return Err(DoorError::new(codes::FEDERATION_LOOP_DETECTED, "the message has been here before"));
    }
    let target = hops.target_system.clone().unwrap_or(asked.system_id);
    if target == us {
        return deliver(at, session, &message, &hops).await;
    }
    let link = at.registry.link(&target).ok_or_else(|| unknown(&target))?;
    let mut path = hops.path;
    path.push(us.clone());
    let federation = Route {
        source_system: Some(hops.source_system.unwrap_or(us)),
        target_system: Some(target.clone()),
        hop_count: hops.hop_count + 1,
        max_hops: Some(hops.max_hops.unwrap_or(MAX_HOPS)),
        path,
        origin_timestamp: hops.origin_timestamp,
        correlation_id: hops.correlation_id,
    };
    let envelope = Some(Envelope { payload: message, federation });
    Ok(Reply::Detached(Box::pin(async move {
        let answer = link.route(RouteParams { system_id: target, envelope, message: None }).await?;
        Ok(Answer::from(answer))
    })))
}

/// Sends a message of another system to its local recipients, under its sender's federated name.
async fn deliver(
    at: &mut Connection,
    session: &Arc<Session>,
    message: &Value,
    hops: &Route,
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
        hops.source_system.clone().or_else(|| session.name.clone()).unwrap_or_else(|| "unknown".to_owned());
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
    let delivered = sent.receipts.iter().filter(|receipt| receipt.state == DeliveryState::Delivered);
    Ok(Reply::Ready(Ok(Answer::of(&RouteResult {
        routed: true,
        message_id: sent.message.id.to_string(),
        delivered: delivered.map(|receipt| receipt.agent.to_string()).collect(),
    }))))
}
