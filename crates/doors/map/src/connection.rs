//! One peer on one carrier: frames in, answers out, in the order in which calls came where that matters.

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
    HELLO_TIMEOUT, LAST_ANSWERS, MAX_BATCH, MAX_IN_FLIGHT, TAKEN_AT_ONCE, disconnect, methods, stale,
    token_watch,
};
use crate::Door;
use posthaste_host::caller::{Identity, Pass};
use posthaste_host::http::rate::Bucket;

/// The way back to a peer. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Frames to send.
    pub(super) out: Outbox,
    /// Cancelled when the connection ends; everything that listens on its behalf ends with it.
    pub(super) stop: CancellationToken,
    /// Why the office ended it, if there is more to say than goodbye.
    pub(super) why: Arc<OnceLock<Farewell>>,
}

/// A code and a word for the end of a connection.
type Farewell = (u16, &'static str);

impl Line {
    pub(super) fn new(out: Outbox, stop: CancellationToken) -> Self {
        Self { out, stop, why: Arc::default() }
    }

    /// Ends the connection, with a reason.
    pub(super) fn end(&self, code: u16, reason: &'static str) {
        // The first reason is the reason.
        let _ = self.why.set((code, reason));
        self.stop.cancel();
    }
}

/// The result of a call: text that is known to be JSON.
#[derive(Debug)]
pub(super) struct Answer(pub(super) String);

impl Answer {
    /// Writes a result. Types of the wire have no member that cannot be written.
    pub(super) fn of(result: &impl Serialize) -> Self {
        Self(serde_json::to_string(result).unwrap_or_else(|_| "null".to_owned()))
    }
}

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

/// A frame ready to be sent, and who may go on once it is.
struct Frame {
    text: Option<String>,
    then: Vec<oneshot::Sender<()>>,
}

type Waiting = FuturesUnordered<Pin<Box<dyn Future<Output = Frame> + Send>>>;

/// Who somebody is, and the token that says so, if it can lapse or be revoked.
pub(super) type Known = (Identity, Option<Pass>);

/// What a connection has and does. Everything a method needs is reached from here.
pub(super) struct Connection {
    pub(super) door: Door,
    pub(super) engine: Engine,
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) line: Line,
    /// Who it is; nobody before it has said so.
    pub(super) identity: Option<Identity>,
    /// The token that says so, if it can lapse or be revoked.
    pub(super) token: Option<Pass>,
    /// The token that is watched over; the watch ends when another takes its place.
    pub(super) watch: Option<(Pass, DropGuard)>,
    /// Where its calls are counted.
    pub(super) bucket: Bucket,
    pub(super) session: Option<Arc<Session>>,
    /// The vocabulary of its session, or of the last one it had.
    pub(super) dialect: Dialect,
    /// What it said in its greeting, while it still has to say who it is.
    pub(super) greeting: Option<Box<ConnectParams>>,
    /// Whoever may begin once the answer to the call at hand has been sent: a subscription's first event must not
    /// come before the peer has heard the subscription's name.
    pub(super) go: Vec<oneshot::Sender<()>>,
    /// Whether letters were handed round that may not be in the books yet.
    pub(super) handed: bool,
    /// Whether calls are under way that are answered later.
    posted: bool,
    /// Room for answers of batches that wait for somebody else; most peers need none.
    beside: Option<Arc<Semaphore>>,
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
            handed: false,
            posted: false,
            beside: None,
        }
    }

    /// A connection for one request, which nothing can be sent back on but the answer.
    pub(super) fn passing(door: Door, engine: Engine, known: Known, session: Arc<Session>) -> Self {
        let (out, _) = Outbox::queue();
        let line = Line::new(out, CancellationToken::new());
        Self { session: Some(session), ..Self::new(door, engine, Some(known), None, line) }
    }

    /// The line as a session gets it: it ends with the connection, or with the session before that.
    pub(super) fn lend(&self) -> Line {
        Line { stop: self.line.stop.child_token(), ..self.line.clone() }
    }

    /// Watches over the token from now on, if there is one to watch.
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

    /// Waits until what the peer has said before is in the books: it need not wait for answers to find what it wrote.
    pub(super) async fn settle(&mut self) {
        if self.handed || self.posted {
            self.engine.flush().await;
            (self.handed, self.posted) = (false, false);
        }
    }

    /// Serves frames until they end, then lets the session go.
    pub(super) async fn run(&mut self, frames: &mut (impl Stream<Item: Deref<Target = str>> + Unpin)) {
        let mut waiting = Waiting::new();
        // Before any session: the office's own methods need none.
        self.watch_token();
        let hello = tokio::time::sleep(HELLO_TIMEOUT);
        tokio::pin!(hello);
        let mut silent = true;
        let mut taken = 0_usize;
        let stop = self.line.stop.clone();
        let mut stopped = pin!(stop.cancelled());
        loop {
            tokio::select! {
                biased;
                () = stopped.as_mut() => break,
                Some(frame) = waiting.next(), if !waiting.is_empty() => {
                    self.posted &= !waiting.is_empty();
                    if !self.send(frame).await { break }
                }
                text = frames.next(), if waiting.len() < MAX_IN_FLIGHT => {
                    let Some(text) = text else { break };
                    silent = false;
                    if !self.take(&text, &mut waiting).await { break }
                    taken += 1;
                    // What is answered goes out before more is looked at: the peer works on it meanwhile.
                    if taken.is_multiple_of(TAKEN_AT_ONCE) { tokio::task::yield_now().await }
                }
                () = &mut hello, if silent => break,
            }
        }
        // Whoever has said all it had to say may still be waiting for answers.
        let answering = async {
            while let Some(frame) = waiting.next().await {
                if !self.send(frame).await {
                    break;
                }
            }
        };
        // Not for those that wait for somebody else.
        let _ = tokio::time::timeout(LAST_ANSWERS, answering).await;
        self.line.stop.cancel();
        // Boxed, like all that is rare: a connection that only waits should be small.
        if let Some(session) = self.session.take() {
            Box::pin(disconnect::leave(&self.door, &self.engine, &self.registry, session)).await;
        }
    }

    /// Answers what a frame holds. False when nobody is left to answer.
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
                        Some(Frame { text: Some(written(&id, outcome)), then: self.begun() })
                    }
                    Reply::Pipelined(outcome) | Reply::Detached(outcome) => {
                        let then = self.begun();
                        self.posted = true;
                        waiting.push(Box::pin(async move {
                            Frame { text: Some(written(&id, outcome.await)), then }
                        }));
                        None
                    }
                }
            }
            Message::Notification { method, params } => {
                match Box::pin(methods::call(self, &method, params.as_deref())).await {
                    // Whoever sends a notification does not want to know how it went.
                    Reply::Ready(_) => Some(Frame { text: None, then: self.begun() }),
                    Reply::Pipelined(outcome) | Reply::Detached(outcome) => {
                        let then = self.begun();
                        self.posted = true;
                        waiting.push(Box::pin(async move {
                            drop(outcome.await);
                            Frame { text: None, then }
                        }));
                        None
                    }
                }
            }
            Message::Invalid { id, error } => {
                Some(Frame { text: Some(written(&id, Err(error.into()))), then: Vec::new() })
            }
            // The office asks nothing this way, so nobody can be answering it.
            Message::Response { .. } => None,
        }
    }

    /// The answers to a batch, in the order of its calls. Those that wait for somebody else are waited for while the peer
    /// says more.
    async fn batch(&mut self, messages: Vec<Message>, waiting: &mut Waiting) -> Option<Frame> {
        let (mut answers, mut promised) = (Vec::new(), Vec::new());
        for message in messages {
            let (id, method, params) = match message {
                Message::Request { id, method, params } => (Some(id), method, params),
                Message::Notification { method, params } => (None, method, params),
                Message::Invalid { id, error } => {
                    answers.push(Some(written(&id, Err(error.into()))));
                    continue;
                }
                Message::Response { .. } => continue,
            };
            let reply = Box::pin(methods::call(self, &method, params.as_deref())).await;
            let room = if matches!(reply, Reply::Detached(_)) { self.room_beside() } else { None };
            let Some(room) = room else {
                let outcome = reply.outcome().await;
                answers.push(id.map(|id| written(&id, outcome)));
                continue;
            };
            let place = answers.len();
            answers.push(None);
            self.posted = true;
            promised.push(async move {
                let (outcome, _held) = (reply.outcome().await, room);
                (place, id.map(|id| written(&id, outcome)))
            });
        }
        let then = self.begun();
        if promised.is_empty() {
            return Some(Frame { text: written_together(answers), then });
        }
        waiting.push(Box::pin(async move {
            for (place, answer) in join_all(promised).await {
                answers[place] = answer;
            }
            Frame { text: written_together(answers), then }
        }));
        None
    }

    /// Room for an answer that is waited for beside other calls, as long as there is any.
    fn room_beside(&mut self) -> Option<OwnedSemaphorePermit> {
        let rooms = self.beside.get_or_insert_with(|| Arc::new(Semaphore::new(MAX_IN_FLIGHT)));
        rooms.clone().try_acquire_owned().ok()
    }

    fn begun(&mut self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.go)
    }

    async fn send(&self, frame: Frame) -> bool {
        if let Some(text) = frame.text
            && self.line.out.send(text).await.is_err()
        {
            return false;
        }
        for go in frame.then {
            // Whoever waited may have given up.
            let _ = go.send(());
        }
        true
    }

    /// One call of a peer that has no connection: the answer to what it asked, if it asked.
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

fn written_together(answers: Vec<Option<String>>) -> Option<String> {
    rpc::write_batch(&answers.into_iter().flatten().collect::<Vec<_>>())
}

fn written(id: &RequestId, outcome: Outcome) -> String {
    match outcome {
        Ok(Answer(result)) => rpc::write_result_text(id, &result),
        Err(failure) => rpc::write_error(id, &failure.object()),
    }
}
