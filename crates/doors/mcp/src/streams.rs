//! Streams of server-sent events: a request's progress, a session's notifications, and subscriptions without a session.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, BoxStream, Stream, StreamExt, select_all};
use posthaste_wire::mcp::headers::LAST_EVENT_ID;
use posthaste_wire::mcp::meta::SubscriptionMeta;
use posthaste_wire::mcp::methods;
use posthaste_wire::mcp::notifications::{
    AcknowledgedParams, ProgressParams, SubscriptionFilter, UpdatedParams,
};
use posthaste_wire::rpc::{self, ErrorObject, RequestId};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::dispatch::{self, Lifecycle};
use super::headers;
use super::http::json_answer;
use super::sessions::{MAX_WATCHED, Session};
use super::updates;

/// Keeps proxies from collecting events.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// Waits for the answer of a call that may report progress. Without progress it is plain JSON; with some, a stream that ends
/// with the answer. When the client hangs up, the call is dropped.
pub(super) async fn with_progress(
    answering: impl Future<Output = (StatusCode, String)> + Send + 'static,
    mut progress: mpsc::Receiver<ProgressParams>,
) -> Response {
    let mut answering: Pin<Box<dyn Future<Output = (StatusCode, String)> + Send>> = Box::pin(answering);
    let first = tokio::select! {
        biased;
        Some(first) = progress.recv() => first,
        (status, text) = &mut answering => return (status, json_answer(text)).into_response(),
    };
    let rest = stream::unfold(Some((answering, progress)), async |state| {
        let (mut answering, mut progress) = state?;
        tokio::select! {
            biased;
            Some(next) = progress.recv() => Some((progressed(&next), Some((answering, progress)))),
            (_, text) = &mut answering => Some((text, None)),
        }
    });
    let events = stream::iter([progressed(&first)]).chain(rest).map(|text| Event::default().data(text));
    // A waiting call ends by itself when the server stops, and its answer is still sent.
    respond(events, CancellationToken::new())
}

fn progressed(params: &ProgressParams) -> String {
    notification(methods::PROGRESS, params)
}

/// The answer to a request of a session, as a stream of one event.
pub(super) fn one_event(session: &Arc<Session>, text: String) -> Response {
    let event = Event::default().data(text).id(format!("0/{}", session.next_stream()));
    respond(stream::iter([event]), session.ended())
}

/// The stream of a session's notifications, from the event on that the client saw last. Ids that mean nothing are answered
/// with an empty stream: an error would make clients ask again and again.
pub(super) fn notifications(session: &Arc<Session>, headers: &HeaderMap) -> Response {
    let after = headers::text(headers, LAST_EVENT_ID).map(str::parse::<u64>);
    let reader = match after {
        None => session.read_from(0),
        Some(Ok(last)) => session.read_from(last.saturating_add(1)),
        Some(Err(_)) => None,
    };
    let Some(reader) = reader else { return respond(stream::empty(), session.ended()) };
    let events = stream::unfold(reader, async |mut reader| {
        let (index, uri) = reader.next().await;
        let text = notification(methods::RESOURCE_UPDATED, &UpdatedParams { meta: None, uri });
        Some((Event::default().data(text).id(index.to_string()), reader))
    });
    respond(events, session.ended())
}

/// The stream of `subscriptions/listen`.
pub(super) fn subscription(call: &Call, id: &RequestId, mut wanted: SubscriptionFilter) -> Response {
    if let Some(uris) = &mut wanted.resource_subscriptions {
        uris.truncate(MAX_WATCHED);
    }
    let meta = SubscriptionMeta { subscription_id: raw(id.as_json()) };
    let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
    let accepted = AcknowledgedParams { meta: meta.clone(), notifications: wanted };
    let (call, id, stop) = (call.clone(), id.clone(), call.door.stop().clone());
    let changes = async move {
        match changes_of(&call, uris).await {
            Ok(changes) => changes
                .map(move |uri| {
                    let params = UpdatedParams { meta: Some(meta.clone()), uri };
                    notification(methods::RESOURCE_UPDATED, &params)
                })
                .boxed(),
            Err(error) => stream::iter([rpc::write_error(&id, &error)]).boxed(),
        }
    };
    let events = stream::iter([notification(methods::ACKNOWLEDGED, &accepted)])
        .chain(stream::once(changes).flatten())
        .map(|text| Event::default().data(text));
    respond(events, stop)
}

/// The addresses of resources as they change. Without any the stream stays open.
async fn changes_of(call: &Call, uris: Vec<String>) -> Result<BoxStream<'static, String>, ErrorObject> {
    if uris.is_empty() {
        return Ok(stream::pending().boxed());
    }
    let mut all = Vec::new();
    for uri in uris {
        let watch = updates::watch(call, &uri).await;
        let watch = watch.map_err(|error| dispatch::resource_error(Lifecycle::Sessionless, error, &uri))?;
        all.push(watch.changes().map(move |()| uri.clone()).boxed());
    }
    Ok(select_all(all).boxed())
}

fn respond(events: impl Stream<Item = Event> + Send + 'static, stop: CancellationToken) -> Response {
    let events = events.take_until(stop.cancelled_owned()).map(Ok::<_, Infallible>);
    ([UNBUFFERED], Sse::new(events).keep_alive(KeepAlive::new())).into_response()
}

fn notification<P: Serialize>(method: &str, params: &P) -> String {
    rpc::write_notification(method, to_raw_value(params).ok().as_deref())
}

/// JSON text that was read before.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}
