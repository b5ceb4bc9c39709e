//! Handing letters to connected agents: `map/message`, and the note in the books that they arrived.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;

use posthaste_engine::nouns::{AgentId, DeliveryState, Message, MessageId};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkDelivered};
use posthaste_engine::{Engine, EngineError, MailboxStream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::connection::Line;
use super::session::Session;
use super::to_wire;
use posthaste_host::acks;

/// Letters noted as delivered with one command.
const NOTED_AT_ONCE: usize = 64;

/// Waits for an agent's mail on a connection. Nothing is handed over before `go`, so that the agent has heard its
/// own name first. Who gets no messages is not waited for: what is for it stays in the books.
pub(super) async fn open(
    engine: &Engine,
    session: &Arc<Session>,
    line: &Line,
    agent: &AgentId,
) -> Result<(CancellationToken, oneshot::Sender<()>), EngineError> {
    let slot = engine.attach(&session.caller_as(agent.clone()), agent).await?;
    let (go, gone) = oneshot::channel();
    let stop = line.stop.child_token();
    if !session.receives() {
        return Ok((stop, go));
    }
    let (engine, line, end) = (engine.clone(), line.clone(), stop.clone());
    let (carriers, session) = (session.carriers.clone(), session.clone());
    carriers.spawn(async move {
        let mut slot = slot;
        if gone.await.is_ok() {
            // Pinned here and lent what it needs: handed on whole, all of it would be there twice for as long as it waits.
            let handing = pin!(hand_over(&engine, &session, &line, &mut slot));
            end.run_until_cancelled(handing).await;
        }
    });
    Ok((stop, go))
}

/// Begins to wait for the mail of a session that may get messages from now on.
pub(super) async fn open_all(engine: &Engine, session: &Arc<Session>) -> Result<(), EngineError> {
    let Some(line) = session.line() else { return Ok(()) };
    if session.is_listed() {
        let (stop, go) = open(engine, session, &line, &session.participant).await?;
        session.add_slot(stop);
        // Whoever is not there any more to be told needs no telling.
        let _ = go.send(());
    }
    for agent in session.agents() {
        let (stop, go) = open(engine, session, &line, &agent).await?;
        session.add_agent(agent, stop);
        let _ = go.send(());
    }
    Ok(())
}

async fn hand_over(engine: &Engine, session: &Session, line: &Line, slot: &mut MailboxStream) {
    let agent = slot.agent().clone();
    let caller = session.caller_as(agent.clone());
    let mut handed: Vec<MessageId> = Vec::new();
    let mut to_acknowledge: Vec<Arc<Message>> = Vec::new();
    loop {
        let letter = tokio::select! {
            biased;
            letter = slot.next() => letter,
            () = std::future::ready(()), if !handed.is_empty() => {
                // Boxed: most agents wait most of the time, and what waits should be small.
                Box::pin(note(engine, &caller, &agent, &mut handed, &mut to_acknowledge)).await;
                continue;
            }
        };
        let letter = match letter {
            Ok(letter) => letter,
            Err(error) => {
                tracing::debug!(%agent, %error, "no more mail for this agent");
                if !handed.is_empty() {
                    Box::pin(note(engine, &caller, &agent, &mut handed, &mut to_acknowledge)).await;
                }
                return;
            }
        };
        let message = written(&letter.message);
        let mut text = String::with_capacity(message.len() + agent.as_str().len() + 96);
        text.push_str(r#"{"jsonrpc":"2.0","method":"map/message","params":{"message":"#);
        text.push_str(&message);
        text.push_str(r#","recipient":"#);
        to_wire::push_text(&mut text, agent.as_str());
        text.push_str("}}");
        if line.out.send(text).await.is_err() {
            return;
        }
        // What came by the fast lane is noted by the letter itself.
        if letter.delivery.state == DeliveryState::Delivered {
            continue;
        }
        handed.push(letter.message.id);
        if letter.message.ack_required {
            to_acknowledge.push(letter.message.clone());
        }
        if handed.len() == NOTED_AT_ONCE {
            Box::pin(note(engine, &caller, &agent, &mut handed, &mut to_acknowledge)).await;
        }
    }
}

thread_local! {
    /// The letter that was written down last on this thread: one for many is written down once.
    static LAST: RefCell<Option<(Arc<Message>, Arc<str>)>> = const { RefCell::new(None) };
}

fn written(message: &Arc<Message>) -> Arc<str> {
    LAST.with_borrow_mut(|last| match last {
        Some((known, text)) if Arc::ptr_eq(known, message) => text.clone(),
        _ => {
            let text: Arc<str> = to_wire::message(message).into();
            *last = Some((message.clone(), text.clone()));
            text
        }
    })
}

/// Notes what was handed over. MAP has no word by which an agent acknowledges, so for a letter that wants it the
/// handing over counts.
async fn note(
    engine: &Engine,
    caller: &posthaste_engine::nouns::Caller,
    agent: &AgentId,
    handed: &mut Vec<MessageId>,
    to_acknowledge: &mut Vec<Arc<Message>>,
) {
    let verb = MarkDelivered { agent: agent.clone(), messages: std::mem::take(handed) };
    if let Err(error) = engine.enqueue(caller, verb).await {
        // The letters stay queued and come again; better twice than never.
        tracing::warn!(%agent, %error, "what was delivered could not be noted");
    }
    for message in std::mem::take(to_acknowledge) {
        let noted = match acks::wants_letter(&message) {
            true => acks::acknowledge(engine, caller, message.id, None).await.map(drop),
            false => {
                let verb = Acknowledge { agent: agent.clone(), message: message.id, response: None };
                engine.enqueue(caller, verb).await.map(drop)
            }
        };
        if let Err(error) = noted {
            tracing::warn!(%agent, %error, "an acknowledgement could not be noted");
        }
    }
}
