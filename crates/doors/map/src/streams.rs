//! Subscribing to the history and replaying it.

use std::sync::Arc;

use posthaste_engine::nouns::{Caller, Event, Seq};
use posthaste_engine::views::{View, Viewed};
use posthaste_engine::{EngineError, Filter, Refusal, Start, stamp};
use posthaste_wire::map::{EventId, Pattern, Spec, codes, stream_pattern};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::connection::{Connection, Outcome};
use super::errors::DoorError;
use super::events::{self, Form, Known};
use super::from_wire::{self, object_or_default, or_default, params};
use super::heartbeat::StatusEvents;
use super::session::{Session, fresh};
use super::spelling::Spelling;
use super::subscription::{Subscription, Wish};
use super::{DEFAULT_BUFFER, MAX_BUFFER, MAX_SUBSCRIPTIONS, filters};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SubscribeParams {
    filter: Value,
    streams: Option<Vec<String>>,
    #[serde(deserialize_with = "object_or_default")]
    options: Options,
    #[serde(alias = "startAfter", alias = "fromEventId", alias = "fromTimestamp", alias = "afterEventId")]
    replay_from: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    include_message_payloads: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    exclude_own_events: bool,
    #[serde(deserialize_with = "or_default")]
    include_history: bool,
    buffer_size: Option<Value>,
    delivery_mode: Option<String>,
    ordering: Option<String>,
    limit: Option<Value>,
    order: Option<String>,
}

impl Options {
    /// One order serves all that can be asked for: the history is total, and so causal and per agent as well.
    fn check(&self) -> Result<(), DoorError> {
        if !matches!(self.ordering.as_deref(), None | Some("none" | "per-agent" | "causal" | "total")) {
            return Err(DoorError::params("ordering: none, per-agent, causal or total"));
        }
        let modes = ["at-least-once", "at-most-once", "exactly-once", "best-effort"];
        if self.delivery_mode.as_deref().is_some_and(|mode| !modes.contains(&mode)) {
            return Err(DoorError::params("deliveryMode: at-least-once or at-most-once"));
        }
        Ok(())
    }
}

fn stream_patterns(streams: Option<&Vec<String>>) -> Vec<Pattern> {
    streams.into_iter().flatten().map(|stream| stream_pattern(stream)).collect()
}

/// `map/subscribe`; as ACP's extension method it gives a session one subscription.
pub(super) async fn subscribe(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    by_extension: bool,
) -> Outcome {
    let asked: SubscribeParams = params(given)?;
    asked.options.check()?;
    let line =
        session.line().ok_or_else(|| DoorError::denied("subscribing needs a connection: GET /map/events"))?;
    let spec = Spec::parse(&asked.filter)?;
    let streams = stream_patterns(asked.streams.as_ref());
    let history = at.registry.history(&at.engine).await?;
    let start = match &asked.replay_from {
        None | Some(Value::Null) if asked.options.include_history => Start::After(0),
        None | Some(Value::Null) => Start::Now,
        Some(from) => Start::After(place(at, history, from).await?),
    };
    let patterns = at.engine.hold_patterns(spec.cost() + streams.len())?;
    let mut filter = filters::compile(&spec, streams.clone(), at.door.keeps_mail())?;
    if asked.options.exclude_own_events {
        filter = Filter::All(vec![filters::not_own(session), filter]);
    }
    let buffer = from_wire::limit(asked.options.buffer_size.as_ref(), DEFAULT_BUFFER, MAX_BUFFER)?;
    let subscription = Arc::new(Subscription::new(Wish {
        id: fresh("sub-"),
        filter,
        patterns,
        buffer,
        form: Form {
            draft: session.is_draft(),
            history,
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
    Ok(json!({ "subscriptionId": subscription.id }).into())
}

/// Starts a subscription again where a lost connection left it.
pub(super) async fn go_on(
    at: &mut Connection,
    session: &Arc<Session>,
    subscription: &Arc<Subscription>,
) -> Result<(), DoorError> {
    let Some(line) = session.line() else { return Ok(()) };
    let go = subscription.start(&at.engine, session, line, subscription.place()).await?;
    at.go.push(go);
    Ok(())
}

/// The place in the history that an event id or a time stands for: what comes after it, or at that time and later.
pub(super) async fn place(at: &Connection, history: u16, from: &Value) -> Result<Seq, DoorError> {
    match from {
        Value::String(id) => cursor(at, history, id).await,
        Value::Number(time) => {
            let time = time.as_f64().ok_or_else(|| DoorError::params("a time in milliseconds"))?;
            #[expect(clippy::cast_possible_truncation, reason = "a time in whole milliseconds")]
            let before = (time as i64).saturating_sub(1);
            Ok(at.engine.read(move |view| view.last_seq_at(before)).await?)
        }
        _ => Err(DoorError::params("replayFrom: an event id or a time")),
    }
}

/// The place of an event, or of what was said at that place, which must be one of this history.
async fn cursor(at: &Connection, history: u16, id: &str) -> Result<Seq, DoorError> {
    let stale = || DoorError::from(EngineError::from(Refusal::StaleCursor));
    let id = EventId::parse(id).ok_or_else(stale)?;
    if id.log_tag != history {
        return Err(stale());
    }
    // Before the first event, where a sign of life may name a place already.
    if (id.seq, id.at) == (0, 0) {
        return Ok(0);
    }
    let happened = at.engine.read(move |view| view.time_of(id.seq)).await?;
    if happened == Some(id.at) { Ok(id.seq) } else { Err(stale()) }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    subscription_id: String,
    #[serde(default, alias = "sequence", alias = "sequenceNumber")]
    up_to_sequence: Option<u64>,
    #[serde(default)]
    event_id: Option<String>,
}

fn find(session: &Session, given: Option<&RawValue>) -> Result<(Arc<Subscription>, One), DoorError> {
    let one: One = params(given)?;
    let subscription = session.subscription(&one.subscription_id).ok_or_else(DoorError::no_subscription)?;
    Ok((subscription, one))
}

/// `map/unsubscribe`.
pub(super) fn unsubscribe(session: &Session, given: Option<&RawValue>) -> Outcome {
    let (subscription, _) = find(session, given)?;
    session.remove_subscription(&subscription.id);
    subscription.close();
    let closed = json!({ "id": subscription.id, "closedAt": stamp::now() });
    Ok(json!({ "subscription": closed, "unsubscribed": true, "success": true }).into())
}

/// `map/subscribe.ack` and `map/ack`: by number, or by the last event that was dealt with.
pub(super) async fn ack(at: &mut Connection, session: &Session, given: Option<&RawValue>) -> Outcome {
    let (subscription, one) = find(session, given)?;
    match (one.up_to_sequence, &one.event_id) {
        (Some(up_to), _) => subscription.ack(up_to),
        (None, Some(id)) => {
            let history = at.registry.history(&at.engine).await?;
            subscription.ack_event(cursor(at, history, id).await?);
        }
        (None, None) => return Err(DoorError::params("upToSequence or eventId: how far it has come")),
    }
    Ok(json!({ "success": true }).into())
}

/// `map/pause`: events wait until the subscription is resumed.
pub(super) fn pause(session: &Session, given: Option<&RawValue>) -> Outcome {
    find(session, given)?.0.pause(true);
    Ok(json!({ "success": true }).into())
}

/// `map/resume`.
pub(super) fn resume(session: &Session, given: Option<&RawValue>) -> Outcome {
    find(session, given)?.0.pause(false);
    Ok(json!({ "success": true }).into())
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplayParams {
    after_event_id: Option<String>,
    #[serde(alias = "from")]
    from_timestamp: Option<Value>,
    #[serde(alias = "to")]
    to_timestamp: Option<Value>,
    filter: Value,
    streams: Option<Vec<String>>,
    limit: Option<Value>,
    #[serde(deserialize_with = "object_or_default")]
    options: Options,
}

/// `map/replay`.
pub(super) async fn replay(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ReplayParams = params(given)?;
    if !matches!(asked.options.order.as_deref(), None | Some("chronological" | "asc")) {
        return Err(DoorError::params("order: chronological"));
    }
    let spec = Spec::parse(&asked.filter)?;
    let filter = filters::compile(&spec, stream_patterns(asked.streams.as_ref()), at.door.keeps_mail())?;
    let history = at.registry.history(&at.engine).await?;
    // An event id wins over a time.
    let after = match (&asked.after_event_id, &asked.from_timestamp) {
        (Some(id), _) => cursor(at, history, id).await?,
        (None, Some(Value::Null) | None) => 0,
        (None, Some(time)) => place(at, history, time).await?,
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
        history,
        payloads: asked.options.include_message_payloads != Some(false),
        observes: session.caller().rights.observe,
    };
    let callers = session.followers();
    let spelling = Spelling::of(&spec, session.is_draft());
    let text = at
        .engine
        .read(move |view| written(view, &callers, Stretch { after, end, limit }, &filter, (form, &spelling)))
        .await?;
    Ok(text.into())
}

/// A part of the history.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    after: Seq,
    /// The last millisecond that belongs to it.
    end: Option<i64>,
    limit: usize,
}

fn written(
    view: &View<'_>,
    callers: &[Caller],
    stretch: Stretch,
    filter: &Filter,
    (form, spelling): (Form, &Spelling),
) -> Viewed<String> {
    let last = match stretch.end {
        Some(time) => view.last_seq_at(time)?,
        None => Seq::MAX,
    };
    let mut found: Vec<Arc<Event>> = Vec::new();
    let mut after = stretch.after;
    let mut cut = false;
    // One more than asked for tells whether there are more.
    while found.len() <= stretch.limit && after < last {
        let replay = view.events_for_any(callers, after, filter, stretch.limit + 1 - found.len())?;
        after = replay.cursor;
        found.extend(replay.events.into_iter().filter(|event| event.seq <= last));
        if !replay.more {
            break;
        }
        // What was found by now is a page; the next one goes on behind it.
        if view.has_enough() && !found.is_empty() {
            cut = after < last;
            break;
        }
    }
    let more = found.len() > stretch.limit || cut;
    found.truncate(stretch.limit);
    let mut text = String::from(r#"{"events":["#);
    for (index, event) in found.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let known = Known::read(view, callers, event, form)?;
        text.push('{');
        text.push_str(&spelling.apply(event, events::members(event, form, &known)));
        text.push('}');
    }
    text.push_str(&format!(r#"],"hasMore":{more}}}"#));
    Ok(text)
}
