//! One subscription: a feed of the engine's, written down for its subscriber and numbered without gaps.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, stream};
use posthaste_engine::nouns::{Caller, Event, Seq};
use posthaste_engine::{Engine, EngineError, Feed, Filter, Overflow, Patterns, Start, Step};
use posthaste_wire::map::{EventId, EventName};
use serde_json::json;
use tokio::sync::{oneshot, watch};

use super::connection::Line;
use super::events::{self, Form, Known};
use super::heartbeat::{StatusEvents, own_event, served};
use super::session::Session;
use super::spelling::Spelling;
use super::to_wire;

/// Frames that are written together at most.
const AT_ONCE: usize = 32;

/// What a subscriber wants and how far it has come. Outlives the connection.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) id: String,
    /// Whether it was asked for by ACP's extension method.
    pub(super) by_extension: bool,
    filter: Filter,
    _patterns: Patterns,
    buffer: usize,
    form: Form,
    /// Whether events also come as updates of an ACP session.
    acp: bool,
    spelling: Spelling,
    status_events: StatusEvents,
    /// The last event that was sent, and the number it had.
    place: AtomicI64,
    number: AtomicU64,
    /// Since the subscriber acknowledges by events: those that are out, with their numbers.
    out: Mutex<Option<VecDeque<(Seq, u64)>>>,
    names_events: AtomicBool,
    signal: watch::Sender<Signal>,
}

/// What the subscriber says about the flow.
#[derive(Clone, Copy, Debug, Default)]
struct Signal {
    acked: Option<u64>,
    paused: bool,
    closed: bool,
    /// How often the names of the session have changed.
    names: u64,
}

/// Everything that is fixed when a subscription begins.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) id: String,
    pub(super) filter: Filter,
    pub(super) patterns: Patterns,
    pub(super) buffer: usize,
    pub(super) form: Form,
    pub(super) acp: bool,
    pub(super) spelling: Spelling,
    pub(super) status_events: StatusEvents,
    pub(super) by_extension: bool,
}

impl Subscription {
    pub(super) fn new(wish: Wish) -> Self {
        let Wish { id, filter, patterns, buffer, form, acp, spelling, status_events, by_extension } = wish;
        Self {
            id,
            by_extension,
            filter,
            _patterns: patterns,
            buffer,
            form,
            acp,
            spelling,
            status_events,
            place: AtomicI64::new(0),
            number: AtomicU64::new(0),
            out: Mutex::new(None),
            names_events: AtomicBool::new(false),
            signal: watch::Sender::new(Signal::default()),
        }
    }

    /// Says that everything up to a number has been dealt with; what was not sent yet cannot have been.
    pub(super) fn ack(&self, up_to: u64) {
        let up_to = up_to.min(self.number.load(Ordering::Acquire));
        self.signal.send_modify(|signal| signal.acked = Some(signal.acked.unwrap_or(0).max(up_to)));
    }

    /// Says that everything up to an event has been dealt with. The first time it is everything that was sent: which
    /// event had which number is remembered from then on.
    pub(super) fn ack_event(&self, place: Seq) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let up_to = match &mut *out {
            None => {
                self.names_events.store(true, Ordering::Release);
                *out = Some(VecDeque::new());
                Some(self.number.load(Ordering::Acquire))
            }
            Some(out) => {
                let dealt_with = out.partition_point(|(seq, _)| *seq <= place);
                out.drain(..dealt_with).next_back().map(|(_, number)| number)
            }
        };
        drop(out);
        if let Some(up_to) = up_to {
            self.ack(up_to);
        }
    }

    /// Remembers an event that is about to be sent, if its subscriber acknowledges by events.
    fn note_out(&self, place: Seq) {
        if !self.names_events.load(Ordering::Acquire) {
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(out) = &mut *out else { return };
        // Flow control lets no more out than this; it may have been turned on with some on their way.
        if out.len() > self.buffer {
            out.pop_front();
        }
        out.push_back((place, self.number.load(Ordering::Acquire) + 1));
    }

    pub(super) fn pause(&self, paused: bool) {
        self.signal.send_modify(|signal| signal.paused = paused);
    }

    /// The session has other names, whose eyes decide from here on.
    pub(super) fn speaks_anew(&self) {
        self.signal.send_modify(|signal| signal.names += 1);
    }

    pub(super) fn close(&self) {
        self.signal.send_modify(|signal| signal.closed = true);
    }

    /// Where to go on after a lost connection.
    pub(super) fn place(&self) -> Start {
        Start::After(self.place.load(Ordering::Acquire))
    }

    /// Starts sending, once `go` has been given.
    pub(super) async fn start(
        self: &Arc<Self>,
        engine: &Engine,
        session: &Arc<Session>,
        line: Line,
        from: Start,
    ) -> Result<oneshot::Sender<()>, EngineError> {
        let mut feed = engine.follow(&session.caller(), self.filter.clone(), from, self.buffer).await?;
        feed.listen_as(session.followers()).await?;
        self.place.store(feed.seq(), Ordering::Release);
        let (go, gone) = oneshot::channel();
        let (subscription, engine, session) = (self.clone(), engine.clone(), session.clone());
        tokio::spawn(async move {
            if gone.await.is_err() {
                return;
            }
            let stop = line.stop.clone();
            // Pinned here: handed on whole it would be there twice for as long as it waits.
            let sending = pin!(subscription.send_all(&engine, &session, &line, feed));
            if let Some(Err(error)) = stop.run_until_cancelled(sending).await {
                tracing::warn!(subscription = subscription.id, %error, "a subscription ended");
            }
        });
        Ok(go)
    }

    async fn send_all(
        &self,
        engine: &Engine,
        session: &Session,
        line: &Line,
        mut feed: Feed,
    ) -> Result<(), EngineError> {
        let mut signal = self.signal.subscribe();
        let mut names = {
            let now = signal.borrow_and_update();
            if now.paused {
                feed.pause();
            }
            now.names
        };
        // One future for all rounds: subscribers are signalled rarely, and events come often.
        let signals = stream::unfold(signal, async |mut signal| {
            signal.changed().await.ok()?;
            let now = *signal.borrow_and_update();
            Some((now, signal))
        });
        tokio::pin!(signals);
        let mut beat = StatusEvents::beat();
        let mut seen = session.names_seen(engine);
        let mut followers = session.followers();
        // Events that this feed has handed out; the subscriber's numbers run on over several feeds and also count
        // what is no event of the history.
        let mut fed = 0;
        loop {
            tokio::select! {
                biased;
                signal = signals.next() => {
                    let Some(now) = signal.filter(|now| !now.closed) else { return Ok(()) };
                    self.obey(&mut feed, now, fed);
                    if now.names != names {
                        names = now.names;
                        followers = session.followers();
                        feed.listen_as(followers.clone()).await?;
                    }
                }
                _ = beat.tick(), if self.status_events.are_wanted() => {
                    let served = self.served(engine).await?;
                    let status_events = self.status_events.read(engine, &session.caller(), served).await?;
                    let frames = status_events.iter().flat_map(|members| self.frames(session, members)).collect();
                    if line.out.send_together(frames).await.is_err() { return Ok(()) }
                }
                step = feed.next() => {
                    let mut step = step?;
                    let mut frames = Vec::new();
                    loop {
                        // What follows a name's change of hands is not for its former holder: it is asked for anew.
                        if seen != session.names_seen(engine) {
                            seen = session.names_seen(engine);
                            session.review(engine).await?;
                            if followers != session.followers() {
                                followers = session.followers();
                                let (caller, filter) = (session.caller(), self.filter.clone());
                                feed = engine.follow(&caller, filter, self.place(), self.buffer).await?;
                                feed.listen_as(followers.clone()).await?;
                                fed = 0;
                                break;
                            }
                        }
                        let members = match step {
                            Step::Event { event, .. } => {
                                fed += 1;
                                self.place.store(event.seq, Ordering::Release);
                                self.note_out(event.seq);
                                self.written(engine, session, &event).await?
                            }
                            Step::Overflow(lost) => Arc::from(self.overflow(engine, lost).await?),
                        };
                        frames.extend(self.frames(session, &members));
                        if frames.len() >= AT_ONCE || !feed.has_more() {
                            break;
                        }
                        step = feed.next().await?;
                    }
                    if line.out.send_together(frames).await.is_err() { return Ok(()) }
                }
            }
        }
    }

    fn obey(&self, feed: &mut Feed, signal: Signal, fed: u64) {
        if signal.paused {
            feed.pause();
        } else {
            feed.resume();
        }
        if let Some(acked) = signal.acked {
            let shift = self.number.load(Ordering::Acquire) - fed;
            feed.ack(acked.saturating_sub(shift));
        }
    }

    async fn written(
        &self,
        engine: &Engine,
        session: &Session,
        event: &Arc<Event>,
    ) -> Result<Arc<str>, EngineError> {
        let known = known(engine, || session.followers(), event, self.form).await?;
        let asker = event.message.as_ref().is_some_and(|message| session.owns(&message.from));
        let members = match asker {
            true => events::members_for_asker(event, self.form, &known),
            false => events::members(event, self.form, &known),
        };
        Ok(self.spelling.apply(event, members))
    }

    /// One numbered envelope, in the frames it travels in.
    fn frames(&self, session: &Session, members: &str) -> impl Iterator<Item = String> + use<> {
        let number = self.number.fetch_add(1, Ordering::AcqRel) + 1;
        // ACP's list of session updates is closed, so a client that subscribed by the extension method gets an extension
        // notification.
        let extension = self.by_extension.then(|| notification("_map/event", &self.id, number, members));
        let acp = (self.acp && !self.by_extension).then(|| {
            let mut text =
                String::from(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
            to_wire::push_text(&mut text, &session.id);
            text.push_str(r#","update":{"sessionUpdate":"_map/event","event":"#);
            push_envelope(&mut text, &self.id, number, members);
            text.push_str("}}}");
            text
        });
        let plain = notification("map/event", &self.id, number, members);
        extension.into_iter().chain(acp).chain([plain])
    }

    async fn served(&self, engine: &Engine) -> Result<EventId, EngineError> {
        served(engine, self.form.history, self.place.load(Ordering::Acquire)).await
    }

    /// What was passed over, and how to get it after all.
    async fn overflow(&self, engine: &Engine, lost: Overflow) -> Result<String, EngineError> {
        let (oldest, newest) =
            engine.read(move |view| Ok((view.time_of(lost.oldest)?, view.time_of(lost.newest)?))).await?;
        let id =
            |seq, at: Option<i64>| EventId { at: at.unwrap_or(0), log_tag: self.form.history, seq }.ulid();
        Ok(own_event(
            EventName::Overflow,
            self.served(engine).await?,
            json!({
                "eventsDropped": lost.dropped,
                "oldestDropped": id(lost.oldest, oldest),
                "newestDropped": id(lost.newest, newest),
                "recommendation": "reduce_filter_scope",
            }),
        ))
    }
}

fn notification(method: &str, subscription: &str, number: u64, members: &str) -> String {
    let mut text = String::with_capacity(members.len() + 192);
    text.push_str(r#"{"jsonrpc":"2.0","method":""#);
    text.push_str(method);
    text.push_str(r#"","params":"#);
    push_envelope(&mut text, subscription, number, members);
    text.push('}');
    text
}

/// What an event's form tells and the event does not know; nearly always nothing.
pub(super) async fn known(
    engine: &Engine,
    callers: impl FnOnce() -> Vec<Caller>,
    event: &Arc<Event>,
    form: Form,
) -> Result<Known, EngineError> {
    if !Known::is_wanted(event, form) {
        return Ok(Known::default());
    }
    let (callers, event) = (callers(), event.clone());
    engine.read(move |view| Known::read(view, &callers, &event, form)).await
}

/// The parameters of `map/event`. Both vocabularies' names for the number are there.
pub(super) fn envelope(subscription: &str, number: u64, members: &str) -> String {
    let mut text = String::with_capacity(members.len() + 128);
    push_envelope(&mut text, subscription, number, members);
    text
}

fn push_envelope(text: &mut String, subscription: &str, number: u64, members: &str) {
    text.push_str(r#"{"subscriptionId":"#);
    to_wire::push_text(text, subscription);
    let number = number.to_string();
    for piece in [r#","sequenceNumber":"#, &number, r#","sequence":"#, &number, ",", members, "}"] {
        text.push_str(piece);
    }
}
