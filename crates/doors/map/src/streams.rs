//! Subscriptions to the event log, and replays of it.

use std::sync::Arc;

use posthaste_engine::nouns::{Caller, Event, Seq};
use posthaste_engine::views::{View, Viewed};
use posthaste_engine::{EngineError, Filter, Refusal, Start, stamp};
use posthaste_wire::map::subscription::{
    ClosedSubscription, ReplayParams, ReplayResult, SubscribeOptions, SubscribeParams, SubscribeResult,
    SubscriptionParams, Success, UnsubscribeResult,
};
use posthaste_wire::map::{EventId, Pattern, Spec, codes, stream_pattern};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::events::{self, Form, Known, Wording};
use super::from_wire::{self, params};
use super::heartbeat::StatusEvents;
use super::session::{Session, fresh};
use super::spelling::Spelling;
use super::subscription::{Subscription, SubscriptionSpec};
use super::{DEFAULT_BUFFER, MAX_BUFFER, MAX_SUBSCRIPTIONS, filters};

/// Checks the options. Every order is served by one: that of the log is total, hence causal and per agent.
fn check(options: &SubscribeOptions) -> Result<(), DoorError> {
    if !matches!(options.ordering.as_deref(), None | Some("none" | "per-agent" | "causal" | "total")) {
        return Err(DoorError::params("ordering: none, per-agent, causal or total"));
    }
    let modes = ["at-least-once", "at-most-once", "exactly-once", "best-effort"];
    if options.delivery_mode.as_deref().is_some_and(|mode| !modes.contains(&mode)) {
        return Err(DoorError::params("deliveryMode: at-least-once or at-most-once"));
    }
    Ok(())
}

fn stream_patterns(streams: Option<&Vec<String>>) -> Vec<Pattern> {
    streams.into_iter().flatten().map(|stream| stream_pattern(stream)).collect()
}

/// `map/subscribe`. By ACP's extension method a session gets one subscription.
pub(super) async fn subscribe(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    by_extension: bool,
) -> Outcome {
    let asked: SubscribeParams = params(given)?;
    check(&asked.options)?;
    let line =
        session.line().ok_or_else(|| DoorError::denied("subscribing needs a connection: GET /map/events"))?;
    let spec = Spec::parse(&asked.filter)?;
    let streams = stream_patterns(asked.streams.as_ref());
    let log_tag = at.registry.history(&at.engine).await?;
    let start = match &asked.replay_from {
        None | Some(Value::Null) if asked.options.include_history => Start::After(0),
        None | Some(Value::Null) => Start::Now,
        Some(from) => Start::After(seq_of(at, log_tag, from).await?),
    };
    let patterns = at.engine.hold_patterns(spec.cost() + streams.len())?;
    let mut filter = filters::compile(&spec, streams.clone(), at.door.keeps_mail())?;
    if asked.options.exclude_own_events {
        filter = Filter::All(vec![filters::not_own(session), filter]);
    }
    let buffer = from_wire::limit(asked.options.buffer_size.as_ref(), DEFAULT_BUFFER, MAX_BUFFER)?;
    let subscription = Arc::new(Subscription::new(SubscriptionSpec {
        id: fresh("sub-"),
        filter,
        patterns,
        buffer,
        form: Form {
            draft: session.is_draft(),
            log_tag,
            payloads: asked.options.include_message_payloads != Some(false),
            observes: session.caller().rights.observe,
        },
        acp: session.is_compat(),
        spelling: Spelling::of(&spec, session.is_draft()),
        status_events: StatusEvents::asked_for(&spec, &streams),
        by_extension,
    }));
    let most = if session.is_compat() { 1 } else { MAX_SUBSCRIPTIONS };
    if by_extension && session.subscriptions().iter().any(|other| other.by_extension) {
        return Err(DoorError::new(codes::QUOTA_EXCEEDED, "_map/subscribe gives a session one subscription"));
    }
    if !session.add_subscription(subscription.clone(), most) {
        return Err(DoorError::new(
            codes::QUOTA_EXCEEDED,
            format!("a session has at most {most} subscriptions"),
        ));
    }
    match subscription.start(&at.engine, session, line, start).await {
        Ok(go) => at.go.push(go),
        Err(error) => {
            session.remove_subscription(&subscription.id);
            return Err(error.into());
        }
    }
    Ok(Answer::of(&SubscribeResult { subscription_id: subscription.id.clone() }))
}

/// Continues a subscription where a lost connection left it.
pub(super) async fn go_on(
    at: &mut Connection,
    session: &Arc<Session>,
    subscription: &Arc<Subscription>,
) -> Result<(), DoorError> {
    let Some(line) = session.line() else { return Ok(()) };
    let go = subscription.start(&at.engine, session, line, subscription.position()).await?;
    at.go.push(go);
    Ok(())
}

/// The seq after which to start: that of an event id, or the last before a time.
pub(super) async fn seq_of(at: &Connection, log_tag: u16, from: &Value) -> Result<Seq, DoorError> {
    match from {
        Value::String(id) => cursor(at, log_tag, id).await,
        Value::Number(time) => {
            let time = time.as_f64().ok_or_else(|| DoorError::params("a time in milliseconds"))?;
            #[expect(clippy::cast_possible_truncation, reason = "a time in whole milliseconds")]
            let before = (time as i64).saturating_sub(1);
            Ok(at.engine.read(move |view| view.last_seq_at(before)).await?)
        }
        _ => Err(DoorError::params("replayFrom: an event id or a time")),
    }
}

/// The seq of an event id, which must belong to this event log.
async fn cursor(at: &Connection, log_tag: u16, id: &str) -> Result<Seq, DoorError> {
    let stale = || DoorError::from(EngineError::from(Refusal::StaleCursor));
    let id = EventId::parse(id).ok_or_else(stale)?;
    if id.log_tag != log_tag {
        return Err(stale());
    }
    // Before the first event; heartbeats may have this id.
    if (id.seq, id.at) == (0, 0) {
        return Ok(0);
    }
    let happened = at.engine.read(move |view| view.time_of(id.seq)).await?;
    if happened == Some(id.at) { Ok(id.seq) } else { Err(stale()) }
}

fn find(
    session: &Session,
    given: Option<&RawValue>,
) -> Result<(Arc<Subscription>, SubscriptionParams), DoorError> {
    let one: SubscriptionParams = params(given)?;
    let subscription = session.subscription(&one.subscription_id).ok_or_else(DoorError::no_subscription)?;
    Ok((subscription, one))
}

/// `map/unsubscribe`.
pub(super) fn unsubscribe(session: &Session, given: Option<&RawValue>) -> Outcome {
    let (subscription, _) = find(session, given)?;
    session.remove_subscription(&subscription.id);
    subscription.close();
    let subscription = ClosedSubscription { id: subscription.id.clone(), closed_at: stamp::now() };
    Ok(Answer::of(&UnsubscribeResult { subscription, unsubscribed: true, success: true }))
}

/// `map/subscribe.ack` and `map/ack`: up to a sequence number or an event.
pub(super) async fn ack(at: &mut Connection, session: &Session, given: Option<&RawValue>) -> Outcome {
    let (subscription, one) = find(session, given)?;
    match (one.up_to_sequence, &one.event_id) {
        (Some(up_to), _) => subscription.ack(up_to),
        (None, Some(id)) => {
            let log_tag = at.registry.history(&at.engine).await?;
            subscription.ack_event(cursor(at, log_tag, id).await?);
        }
        (None, None) => return Err(DoorError::params("upToSequence or eventId: how far it has come")),
    }
    Ok(Answer::of(&Success { success: true }))
}

/// `map/pause`: events wait until the subscription is resumed.
pub(super) fn pause(session: &Session, given: Option<&RawValue>) -> Outcome {
    find(session, given)?.0.pause(true);
    Ok(Answer::of(&Success { success: true }))
}

/// `map/resume`.
pub(super) fn resume(session: &Session, given: Option<&RawValue>) -> Outcome {
    find(session, given)?.0.pause(false);
    Ok(Answer::of(&Success { success: true }))
}

/// `map/replay`.
pub(super) async fn replay(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ReplayParams = params(given)?;
    if !matches!(asked.options.order.as_deref(), None | Some("chronological" | "asc")) {
        return Err(DoorError::params("order: chronological"));
    }
    let spec = Spec::parse(&asked.filter)?;
    let filter = filters::compile(&spec, stream_patterns(asked.streams.as_ref()), at.door.keeps_mail())?;
    let log_tag = at.registry.history(&at.engine).await?;
    // An event id wins over a time.
    let after = match (&asked.after_event_id, &asked.from_timestamp) {
        (Some(id), _) => cursor(at, log_tag, id).await?,
        (None, Some(Value::Null) | None) => 0,
        (None, Some(time)) => seq_of(at, log_tag, time).await?,
    };
    let end = match &asked.to_timestamp {
        None | Some(Value::Null) => None,
        Some(time) => {
            let time =
                time.as_f64().ok_or_else(|| DoorError::params("toTimestamp: a time in milliseconds"))?;
            #[expect(clippy::cast_possible_truncation, reason = "a time in whole milliseconds")]
            Some(time as i64)
        }
    };
    let limit = from_wire::limit(asked.limit.as_ref().or(asked.options.limit.as_ref()), 100, 1000)?;
    let form = Form {
        draft: session.is_draft(),
        log_tag,
        payloads: asked.options.include_message_payloads != Some(false),
        observes: session.caller().rights.observe,
    };
    let callers = session.followers();
    let spelling = Spelling::of(&spec, session.is_draft());
    let range = Range { after, end, limit };
    let answer = at.engine.read(move |view| find_events(view, &callers, range, &filter, (form, &spelling)));
    Ok(answer.await?)
}

/// A range of the event log.
#[derive(Clone, Copy, Debug)]
struct Range {
    after: Seq,
    /// Its last millisecond.
    end: Option<i64>,
    limit: usize,
}

fn find_events(
    view: &View<'_>,
    callers: &[Caller],
    range: Range,
    filter: &Filter,
    (form, spelling): (Form, &Spelling),
) -> Viewed<Answer> {
    let last = match range.end {
        Some(time) => view.last_seq_at(time)?,
        None => Seq::MAX,
    };
    let mut found: Vec<Arc<Event>> = Vec::new();
    let mut after = range.after;
    let mut cut = false;
    // One event more than asked for tells whether more follow.
    while found.len() <= range.limit && after < last {
        let replay = view.events_for_any(callers, after, filter, range.limit + 1 - found.len())?;
        after = replay.cursor;
        found.extend(replay.events.into_iter().filter(|event| event.seq <= last));
        if !replay.more {
            break;
        }
        // The read budget is used up: return what was found.
        if view.has_enough() && !found.is_empty() {
            cut = after < last;
            break;
        }
    }
    let more = found.len() > range.limit || cut;
    found.truncate(range.limit);
    let mut events = Vec::with_capacity(found.len());
    for event in &found {
        let known = Known::read(view, callers, event, form)?;
        let wording = Wording { kind: spelling.of_event(event), ..Wording::default() };
        events.push(events::render(event, form, &known, wording).into_replayed());
    }
    Ok(Answer::of(&ReplayResult { events, has_more: more }))
}
