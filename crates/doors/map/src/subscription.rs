//! One subscription: a feed of the engine, rendered for its subscriber and numbered without gaps.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, stream};
use posthaste_engine::nouns::{Caller, Event, Seq};
use posthaste_engine::{Engine, EngineError, Feed, Filter, Overflow, Patterns, Start, Step};
use posthaste_wire::map::event::{EventUpdate, OverflowData, SessionUpdate};
use posthaste_wire::map::{EventId, EventName};
use posthaste_wire::rpc::Notification;
use tokio::sync::{oneshot, watch};

use super::connection::Line;
use super::events::{self, Form, Known, Rendered, Wording, render_unlogged};
use super::heartbeat::{StatusEvents, served};
use super::session::Session;
use super::spelling::Spelling;
use super::to_wire;

/// Maximum number of frames that are written together.
const AT_ONCE: usize = 32;

/// What a subscriber asked for and how far it was served. Outlives the connection.
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
    /// The seq of the last event that was sent, and the number of events sent.
    seq: AtomicI64,
    number: AtomicU64,
    /// Unacknowledged events with their numbers, once the subscriber acknowledges by event id.
    out: Mutex<Option<VecDeque<(Seq, u64)>>>,
    names_events: AtomicBool,
    signal: watch::Sender<Signal>,
}

/// Flow control by the subscriber.
#[derive(Clone, Copy, Debug, Default)]
struct Signal {
    acked: Option<u64>,
    paused: bool,
    closed: bool,
    /// Number of changes of the session's names.
    names: u64,
}

/// What is fixed when a subscription starts.
#[derive(Debug)]
pub(super) struct SubscriptionSpec {
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
    pub(super) fn new(wish: SubscriptionSpec) -> Self {
        let SubscriptionSpec {
            id,
            filter,
            patterns,
            buffer,
            form,
            acp,
            spelling,
            status_events,
            by_extension,
        } = wish;
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
            seq: AtomicI64::new(0),
            number: AtomicU64::new(0),
            out: Mutex::new(None),
            names_events: AtomicBool::new(false),
            signal: watch::Sender::new(Signal::default()),
        }
    }

    /// Acknowledges all events up to a number; numbers that were not sent yet count as the last one sent.
    pub(super) fn ack(&self, up_to: u64) {
        let up_to = up_to.min(self.number.load(Ordering::Acquire));
        self.signal.send_modify(|signal| signal.acked = Some(signal.acked.unwrap_or(0).max(up_to)));
    }

    /// Acknowledges all events up to a seq. The first call acknowledges all that was sent, because the numbers of events are
    /// stored only from then on.
    pub(super) fn ack_event(&self, seq: Seq) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let up_to = match &mut *out {
            None => {
                self.names_events.store(true, Ordering::Release);
                *out = Some(VecDeque::new());
                Some(self.number.load(Ordering::Acquire))
            }
            Some(out) => {
                let acked = out.partition_point(|(sent, _)| *sent <= seq);
                out.drain(..acked).next_back().map(|(_, number)| number)
            }
        };
        drop(out);
        if let Some(up_to) = up_to {
            self.ack(up_to);
        }
    }

    /// Stores the number of an event that is about to be sent, if the subscriber acknowledges by event id.
    fn note_out(&self, seq: Seq) {
        if !self.names_events.load(Ordering::Acquire) {
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(out) = &mut *out else { return };
        // Flow control allows no more unacknowledged events, except some that were sent before it was turned on.
        if out.len() > self.buffer {
            out.pop_front();
        }
        out.push_back((seq, self.number.load(Ordering::Acquire) + 1));
    }

    pub(super) fn pause(&self, paused: bool) {
        self.signal.send_modify(|signal| signal.paused = paused);
    }

    /// The names of the session have changed, and with them what it may see.
    pub(super) fn names_changed(&self) {
        self.signal.send_modify(|signal| signal.names += 1);
    }

    pub(super) fn close(&self) {
        self.signal.send_modify(|signal| signal.closed = true);
    }

    /// Where to resume after a lost connection.
    pub(super) fn position(&self) -> Start {
        Start::After(self.seq.load(Ordering::Acquire))
    }

    /// Starts sending when `go` is sent.
    pub(super) async fn start(
        self: &Arc<Self>,
        engine: &Engine,
        session: &Arc<Session>,
        line: Line,
        from: Start,
    ) -> Result<oneshot::Sender<()>, EngineError> {
        let mut feed = engine.follow(&session.caller(), self.filter.clone(), from, self.buffer).await?;
        feed.listen_as(session.followers()).await?;
        self.seq.store(feed.seq(), Ordering::Release);
        let (go, gone) = oneshot::channel();
        let (subscription, engine, session) = (self.clone(), engine.clone(), session.clone());
        tokio::spawn(async move {
            if gone.await.is_err() {
                return;
            }
            let stop = line.stop.clone();
            // Pinned here: moving the future into the call would store it twice while it waits.
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
        // Events from this feed. The subscriber's numbers continue over several feeds and count unlogged events too.
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
                    let frames = status_events.iter().flat_map(|event| self.frames(session, event)).collect();
                    if line.out.send_together(frames).await.is_err() { return Ok(()) }
                }
                step = feed.next() => {
                    let mut step = step?;
                    let mut frames = Vec::new();
                    loop {
                        // Events after a name's reassignment are not for its former holder, so a new feed is opened.
                        if seen != session.names_seen(engine) {
                            seen = session.names_seen(engine);
                            session.review(engine).await?;
                            if followers != session.followers() {
                                followers = session.followers();
                                let (caller, filter) = (session.caller(), self.filter.clone());
                                feed = engine.follow(&caller, filter, self.position(), self.buffer).await?;
                                feed.listen_as(followers.clone()).await?;
                                fed = 0;
                                break;
                            }
                        }
                        let event = match step {
                            Step::Event { event, .. } => {
                                fed += 1;
                                self.seq.store(event.seq, Ordering::Release);
                                self.note_out(event.seq);
                                self.render(engine, session, &event).await?
                            }
                            Step::Overflow(lost) => Arc::new(self.overflow(engine, lost).await?),
                        };
                        frames.extend(self.frames(session, &event));
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

    async fn render(
        &self,
        engine: &Engine,
        session: &Session,
        event: &Arc<Event>,
    ) -> Result<Arc<Rendered>, EngineError> {
        let known = known(engine, || session.followers(), event, self.form).await?;
        let is_sender = event.message.as_ref().is_some_and(|message| session.owns(&message.from));
        let without_correlation = is_sender && events::is_delivered_question(event);
        let wording = Wording { kind: self.spelling.of_event(event), without_correlation };
        Ok(events::render_shared(event, self.form, &known, wording))
    }

    /// One numbered event, in the frames it travels in.
    fn frames(&self, session: &Session, event: &Rendered) -> impl Iterator<Item = String> + use<> {
        let number = self.number.fetch_add(1, Ordering::AcqRel) + 1;
        let params = event.params(&self.id, number);
        let notification = |method| to_wire::text(&Notification::new(method, &params));
        // ACP's list of session updates is closed, so a client that subscribed by the extension method gets an extension
        // notification.
        let extension = self.by_extension.then(|| notification("_map/event"));
        let acp = (self.acp && !self.by_extension).then(|| {
            let update = EventUpdate { session_update: "_map/event".into(), event: &params };
            let params = SessionUpdate { session_id: session.id.as_str().into(), update };
            to_wire::text(&Notification::new("session/update", params))
        });
        let plain = notification("map/event");
        extension.into_iter().chain(acp).chain([plain])
    }

    async fn served(&self, engine: &Engine) -> Result<EventId, EngineError> {
        served(engine, self.form.log_tag, self.seq.load(Ordering::Acquire)).await
    }

    /// The event that says which events were skipped.
    async fn overflow(&self, engine: &Engine, lost: Overflow) -> Result<Rendered, EngineError> {
        let (oldest, newest) =
            engine.read(move |view| Ok((view.time_of(lost.oldest)?, view.time_of(lost.newest)?))).await?;
        let id =
            |seq, at: Option<i64>| EventId { at: at.unwrap_or(0), log_tag: self.form.log_tag, seq }.ulid();
        let data = OverflowData {
            events_dropped: lost.dropped,
            oldest_dropped: id(lost.oldest, oldest).into(),
            newest_dropped: id(lost.newest, newest).into(),
            recommendation: "reduce_filter_scope".into(),
        };
        Ok(render_unlogged(EventName::Overflow, self.served(engine).await?, &data))
    }
}

/// Reads what the form of an event tells beyond the event itself; nearly always nothing.
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
