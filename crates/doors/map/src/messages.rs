//! Delivery of messages to connected agents: `map/message`, and its record in the database.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;

use posthaste_engine::nouns::{AgentId, Caller, DeliveryState, Message, MessageId};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkDelivered};
use posthaste_engine::{Engine, EngineError, MailboxStream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::connection::Line;
use super::session::Session;
use super::to_wire;
use posthaste_host::acks;
use posthaste_wire::map::message::Delivery;
use posthaste_wire::rpc::Notification;
use serde_json::value::RawValue;

/// Deliveries recorded with one command.
const DELIVERIES_PER_COMMAND: usize = 64;

/// Opens an agent's mailbox on a connection. Nothing is delivered before `go`, so that the agent learns its name first. For a
/// session that receives no messages nothing is delivered; messages stay queued in the database.
pub(super) async fn open(
    engine: &Engine,
    session: &Arc<Session>,
    line: &Line,
    agent: &AgentId,
) -> Result<(CancellationToken, oneshot::Sender<()>), EngineError> {
    let mailbox = engine.attach(&session.caller_as(agent.clone()), agent).await?;
    let (go, gone) = oneshot::channel();
    let stop = line.stop.child_token();
    if !session.receives() {
        return Ok((stop, go));
    }
    let (engine, line, end) = (engine.clone(), line.clone(), stop.clone());
    let (carriers, session) = (session.carriers.clone(), session.clone());
    carriers.spawn(async move {
        let mut mailbox = mailbox;
        if gone.await.is_ok() {
            // Pinned here and given references: moving the future into the call would store it twice while it waits.
            let delivering = pin!(deliver(&engine, &session, &line, &mut mailbox));
            end.run_until_cancelled(delivering).await;
        }
    });
    Ok((stop, go))
}

/// Opens the mailboxes of a session that may receive messages from now on.
pub(super) async fn open_all(engine: &Engine, session: &Arc<Session>) -> Result<(), EngineError> {
    let Some(line) = session.line() else { return Ok(()) };
    if session.is_listed() {
        let (stop, go) = open(engine, session, &line, &session.participant).await?;
        session.add_slot(stop);
        // Fails only if the task has ended.
        let _ = go.send(());
    }
    for agent in session.agents() {
        let (stop, go) = open(engine, session, &line, &agent).await?;
        session.add_agent(agent, stop);
        let _ = go.send(());
    }
    Ok(())
}

async fn deliver(engine: &Engine, session: &Session, line: &Line, mailbox: &mut MailboxStream) {
    let agent = mailbox.agent().clone();
    let caller = session.caller_as(agent.clone());
    let mut delivered: Vec<MessageId> = Vec::new();
    let mut to_acknowledge: Vec<Arc<Message>> = Vec::new();
    loop {
        let received = tokio::select! {
            biased;
            received = mailbox.next() => received,
            () = std::future::ready(()), if !delivered.is_empty() => {
                // Boxed: most agents wait most of the time, and the waiting future should be small.
                Box::pin(record(engine, &caller, &agent, &mut delivered, &mut to_acknowledge)).await;
                continue;
            }
        };
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!(%agent, %error, "the mailbox of this agent was closed");
                if !delivered.is_empty() {
                    Box::pin(record(engine, &caller, &agent, &mut delivered, &mut to_acknowledge)).await;
                }
                return;
            }
        };
        let delivery = Delivery { message: render(&received.message), recipient: agent.as_str().into() };
        let frame = to_wire::text(&Notification::new("map/message", delivery));
        if line.out.send(frame).await.is_err() {
            return;
        }
        // Messages of the fast path are recorded as delivered already.
        if received.delivery.state == DeliveryState::Delivered {
            continue;
        }
        delivered.push(received.message.id);
        if received.message.ack_required {
            to_acknowledge.push(received.message.clone());
        }
        if delivered.len() == DELIVERIES_PER_COMMAND {
            Box::pin(record(engine, &caller, &agent, &mut delivered, &mut to_acknowledge)).await;
        }
    }
}

thread_local! {
    /// The message that this thread rendered last, so that one for many recipients is not rendered for each.
    static LAST: RefCell<Option<(Arc<Message>, Arc<RawValue>)>> = const { RefCell::new(None) };
}

fn render(message: &Arc<Message>) -> Arc<RawValue> {
    LAST.with_borrow_mut(|last| match last {
        Some((known, rendered)) if Arc::ptr_eq(known, message) => rendered.clone(),
        _ => {
            let rendered: Arc<RawValue> = to_wire::to_raw(&to_wire::message(message, true)).into();
            *last = Some((message.clone(), rendered.clone()));
            rendered
        }
    })
}

/// Records deliveries. MAP has no method to acknowledge a message, so delivery acknowledges a message that asks for it.
async fn record(
    engine: &Engine,
    caller: &Caller,
    agent: &AgentId,
    delivered: &mut Vec<MessageId>,
    to_acknowledge: &mut Vec<Arc<Message>>,
) {
    let verb = MarkDelivered { agent: agent.clone(), messages: std::mem::take(delivered) };
    if let Err(error) = engine.enqueue(caller, verb).await {
        // The messages stay queued and are delivered again.
        tracing::warn!(%agent, %error, "deliveries could not be recorded");
    }
    for message in std::mem::take(to_acknowledge) {
        let recorded = match acks::wants_message(&message) {
            true => acks::acknowledge(engine, caller, message.id, None).await.map(drop),
            false => {
                let verb = Acknowledge { agent: agent.clone(), message: message.id, response: None };
                engine.enqueue(caller, verb).await.map(drop)
            }
        };
        if let Err(error) = recorded {
            tracing::warn!(%agent, %error, "an acknowledgement could not be recorded");
        }
    }
}
