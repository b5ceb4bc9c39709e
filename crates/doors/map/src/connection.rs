//! One connection of a peer, over any transport: frames in, answers out, in the order of the calls where that matters.

use std::future::Future;
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, Stream, StreamExt};
use posthaste_engine::{Engine, one_request};
use posthaste_wire::map::connect::ConnectParams;
use posthaste_wire::rpc::{self, Item, Message, RequestId};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::errors::DoorError;
use super::outbox::Outbox;
use super::registry::SessionRegistry;
use super::session::{Dialect, Session};
use super::{
    FRAMES_PER_TURN, HELLO_TIMEOUT, LAST_ANSWERS_TIMEOUT, MAX_BATCH, MAX_IN_FLIGHT, disconnect, methods,
    stale, to_wire, token_watch,
};
use crate::Door;
use posthaste_host::caller::{Identity, TokenRef};
use posthaste_host::http::rate::Bucket;

/// The sending side of a connection. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Frames to send.
    pub(super) out: Outbox,
    /// Cancelled when the connection ends, and with it all its streams.
    pub(super) stop: CancellationToken,
    /// Why the server ended it, if the usual close code does not say it.
    pub(super) close: Arc<OnceLock<CloseReason>>,
}

/// Code and reason of a WebSocket close frame.
type CloseReason = (u16, &'static str);

impl Line {
    pub(super) fn new(out: Outbox, stop: CancellationToken) -> Self {
        Self { out, stop, close: Arc::default() }
    }

    /// Ends the connection, with a reason.
    pub(super) fn end(&self, code: u16, reason: &'static str) {
        // The first reason stays.
        let _ = self.close.set((code, reason));
        self.stop.cancel();
    }
}

/// The result of a call: text that is known to be JSON.
#[derive(Debug)]
pub(super) struct Answer(pub(super) String);

impl From<serde_json::Value> for Answer {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Answer {
    /// The result as a wire type writes it.
    pub(super) fn of(result: &impl Serialize) -> Self {
        Self(to_wire::text(result))
    }
}

pub(super) type Outcome = Result<Answer, DoorError>;

/// How a call is answered.
pub(super) enum Reply {
    /// The response is known.
    Ready(Outcome),
    /// The response follows; later calls of the connection are started meanwhile.
    Pipelined(Promise),
    /// The response depends on another peer; not even later calls of the same batch wait for it.
    Detached(Promise),
}

type Promise = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        Self::Ready(outcome)
    }
}

impl Reply {
    async fn outcome(self) -> Outcome {
        match self {
            Self::Ready(outcome) => outcome,
            Self::Pipelined(outcome) | Self::Detached(outcome) => outcome.await,
        }
    }
}

/// A frame to send, and tasks that start once it is sent.
struct Frame {
    text: Option<String>,
    then: Vec<oneshot::Sender<()>>,
}

type Waiting = FuturesUnordered<Pin<Box<dyn Future<Output = Frame> + Send>>>;

/// An identity, and the token that proves it, if the token can expire or be revoked.
pub(super) type Known = (Identity, Option<TokenRef>);

/// The state of a connection; methods reach everything they need from here.
pub(super) struct Connection {
    pub(super) door: Door,
    pub(super) engine: Engine,
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) line: Line,
    /// Its identity, once it is authenticated.
    pub(super) identity: Option<Identity>,
    /// The token that proves it, if the token can expire or be revoked.
    pub(super) token: Option<TokenRef>,
    /// The watched token; the watch ends when another token replaces it.
    pub(super) watch: Option<(TokenRef, DropGuard)>,
    /// The rate limit of its calls.
    pub(super) bucket: Bucket,
    pub(super) session: Option<Arc<Session>>,
    /// The dialect of its session, or of its last one.
    pub(super) dialect: Dialect,
    /// The greeting, until the connection is authenticated.
    pub(super) greeting: Option<Box<ConnectParams>>,
    /// Tasks that start once the answer to the current call is sent: a subscription's first event must not precede the answer
    /// that names the subscription.
    pub(super) go: Vec<oneshot::Sender<()>>,
    /// Whether messages were delivered that may not be in the database yet.
    pub(super) has_unrecorded: bool,
    /// Whether calls are in progress that are answered later.
    has_pending: bool,
    /// Permits for detached answers of batches; most peers need none.
    detached: Option<Arc<Semaphore>>,
}

impl Connection {
    pub(super) fn new(
        door: Door,
        engine: Engine,
        known: Option<Known>,
        address: Option<IpAddr>,
        line: Line,
    ) -> Self {
        let registry = door.registries().of(engine.realm());
        if registry.is_new() {
            tokio::spawn(stale::resolve(door.clone(), engine.clone()));
        }
        let (bucket, engine) = match &known {
            Some((identity, pass)) => (
                door.bucket_of(&engine, identity, pass.as_ref()),
                door.engine_for(&engine, identity, pass.as_ref()),
            ),
            None => (door.bucket_of_address(address), engine),
        };
        let (identity, token) = known.unzip();
        Self {
            bucket,
            door,
            engine,
            registry,
            line,
            identity,
            token: token.flatten(),
            watch: None,
            session: None,
            dialect: Dialect::Sdk,
            greeting: None,
            go: Vec::new(),
            has_unrecorded: false,
            has_pending: false,
            detached: None,
        }
    }

    /// A connection for one HTTP request; nothing but the answer can be sent on it.
    pub(super) fn passing(door: Door, engine: Engine, known: Known, session: Arc<Session>) -> Self {
        let (out, _) = Outbox::queue();
        let line = Line::new(out, CancellationToken::new());
        Self { session: Some(session), ..Self::new(door, engine, Some(known), None, line) }
    }

    /// The line for a session: it ends with the connection, or earlier with the session.
    pub(super) fn lend(&self) -> Line {
        Line { stop: self.line.stop.child_token(), ..self.line.clone() }
    }

    /// Watches the token from now on, if there is one that can expire or be revoked.
    pub(super) fn watch_token(&mut self) {
        if self.watch.as_ref().map(|(watched, _)| watched) == self.token.as_ref() {
            return;
        }
        self.watch = None;
        let Some(token) = self.token.clone() else { return };
        let watch = self.line.stop.child_token();
        self.watch = Some((token.clone(), watch.clone().drop_guard()));
        self.go.push(token_watch::watch(&self.door, &self.engine, token, watch, self.line.clone()));
    }

    /// Waits until everything that the peer wrote before is in the database, so that it can read it without waiting for answers.
    pub(super) async fn settle(&mut self) {
        if self.has_unrecorded || self.has_pending {
            self.engine.flush().await;
            (self.has_unrecorded, self.has_pending) = (false, false);
        }
    }

    /// Serves frames until they end, then releases the session.
    pub(super) async fn run(&mut self, frames: &mut (impl Stream<Item: Deref<Target = str>> + Unpin)) {
        let mut waiting = Waiting::new();
        // Before any session, because the server's own methods need none.
        self.watch_token();
        let hello = tokio::time::sleep(HELLO_TIMEOUT);
        tokio::pin!(hello);
        let mut is_silent = true;
        let mut frames_read = 0_usize;
        let stop = self.line.stop.clone();
        let mut stopped = pin!(stop.cancelled());
        loop {
            tokio::select! {
                biased;
                () = stopped.as_mut() => break,
                Some(frame) = waiting.next(), if !waiting.is_empty() => {
                    self.has_pending &= !waiting.is_empty();
                    if !self.send(frame).await { break }
                }
                text = frames.next(), if waiting.len() < MAX_IN_FLIGHT => {
                    let Some(text) = text else { break };
                    is_silent = false;
                    if !self.take(&text, &mut waiting).await { break }
                    frames_read += 1;
                    // Send the answers before more frames are read, so that the peer can continue meanwhile.
                    if frames_read.is_multiple_of(FRAMES_PER_TURN) { tokio::task::yield_now().await }
                }
                () = &mut hello, if is_silent => break,
            }
        }
        // A peer that has closed its side may still wait for answers.
        let answering = async {
            while let Some(frame) = waiting.next().await {
                if !self.send(frame).await {
                    break;
                }
            }
        };
        // Bounded, because detached answers depend on other peers.
        let _ = tokio::time::timeout(LAST_ANSWERS_TIMEOUT, answering).await;
        self.line.stop.cancel();
        // Boxed, because it is rare and the future of an idle connection should be small.
        if let Some(session) = self.session.take() {
            Box::pin(disconnect::leave(&self.door, &self.engine, &self.registry, session)).await;
        }
    }

    /// Answers the calls of a frame. False if the peer is gone.
    async fn take(&mut self, text: &str, waiting: &mut Waiting) -> bool {
        for item in rpc::parse(text, MAX_BATCH) {
            let frame = match item {
                Item::Single(message) => one_request(self.single(message, waiting)).await,
                Item::Batch(messages) => Box::pin(one_request(self.batch(messages, waiting))).await,
            };
            if let Some(frame) = frame
                && !self.send(frame).await
            {
                return false;
            }
        }
        true
    }

    async fn single(&mut self, message: Message, waiting: &mut Waiting) -> Option<Frame> {
        match message {
            Message::Request { id, method, params } => {
                match Box::pin(methods::call(self, &method, params.as_deref())).await {
                    Reply::Ready(outcome) => {
                        Some(Frame { text: Some(write_response(&id, outcome)), then: self.take_pending() })
                    }
                    Reply::Pipelined(outcome) | Reply::Detached(outcome) => {
                        let then = self.take_pending();
                        self.has_pending = true;
                        waiting.push(Box::pin(async move {
                            Frame { text: Some(write_response(&id, outcome.await)), then }
                        }));
                        None
                    }
                }
            }
            Message::Notification { method, params } => {
                match Box::pin(methods::call(self, &method, params.as_deref())).await {
                    // Notifications are not answered, not even with errors.
                    Reply::Ready(_) => Some(Frame { text: None, then: self.take_pending() }),
                    Reply::Pipelined(outcome) | Reply::Detached(outcome) => {
                        let then = self.take_pending();
                        self.has_pending = true;
                        waiting.push(Box::pin(async move {
                            drop(outcome.await);
                            Frame { text: None, then }
                        }));
                        None
                    }
                }
            }
            Message::Invalid { id, error } => {
                Some(Frame { text: Some(write_response(&id, Err(error.into()))), then: Vec::new() })
            }
            // The server sends no requests, so it expects no responses.
            Message::Response { .. } => None,
        }
    }

    /// The answers to a batch, in the order of its calls. Detached ones are awaited while more frames are read.
    async fn batch(&mut self, messages: Vec<Message>, waiting: &mut Waiting) -> Option<Frame> {
        let (mut answers, mut promised) = (Vec::new(), Vec::new());
        for message in messages {
            let (id, method, params) = match message {
                Message::Request { id, method, params } => (Some(id), method, params),
                Message::Notification { method, params } => (None, method, params),
                Message::Invalid { id, error } => {
                    answers.push(Some(write_response(&id, Err(error.into()))));
                    continue;
                }
                Message::Response { .. } => continue,
            };
            let reply = Box::pin(methods::call(self, &method, params.as_deref())).await;
            let permit = if matches!(reply, Reply::Detached(_)) { self.detached_permit() } else { None };
            let Some(permit) = permit else {
                let outcome = reply.outcome().await;
                answers.push(id.map(|id| write_response(&id, outcome)));
                continue;
            };
            let index = answers.len();
            answers.push(None);
            self.has_pending = true;
            promised.push(async move {
                let (outcome, _held) = (reply.outcome().await, permit);
                (index, id.map(|id| write_response(&id, outcome)))
            });
        }
        let then = self.take_pending();
        if promised.is_empty() {
            return Some(Frame { text: write_batch(answers), then });
        }
        waiting.push(Box::pin(async move {
            for (index, answer) in join_all(promised).await {
                answers[index] = answer;
            }
            Frame { text: write_batch(answers), then }
        }));
        None
    }

    /// A permit for a detached answer, if one is free.
    fn detached_permit(&mut self) -> Option<OwnedSemaphorePermit> {
        let permits = self.detached.get_or_insert_with(|| Arc::new(Semaphore::new(MAX_IN_FLIGHT)));
        permits.clone().try_acquire_owned().ok()
    }

    fn take_pending(&mut self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.go)
    }

    async fn send(&self, frame: Frame) -> bool {
        if let Some(text) = frame.text
            && self.line.out.send(text).await.is_err()
        {
            return false;
        }
        for go in frame.then {
            // Fails only if the task has ended.
            let _ = go.send(());
        }
        true
    }

    /// Answers one item of an HTTP request; `None` if it needs no answer.
    pub(super) async fn once(&mut self, item: Item) -> Option<String> {
        let mut waiting = Waiting::new();
        let frame = match item {
            Item::Single(message) => match self.single(message, &mut waiting).await {
                Some(frame) => frame,
                None => waiting.next().await?,
            },
            Item::Batch(messages) => match self.batch(messages, &mut waiting).await {
                Some(frame) => frame,
                None => waiting.next().await?,
            },
        };
        frame.text
    }
}

fn write_batch(answers: Vec<Option<String>>) -> Option<String> {
    rpc::write_batch(&answers.into_iter().flatten().collect::<Vec<_>>())
}

fn write_response(id: &RequestId, outcome: Outcome) -> String {
    match outcome {
        Ok(Answer(result)) => rpc::write_result_text(id, &result),
        Err(failure) => rpc::write_error(id, &failure.object()),
    }
}
