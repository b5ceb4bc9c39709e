//! One message: in the drawer beside a list, or on a page of its own.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use posthaste_engine::nouns::{Body, Delivery, DeliveryState, Message, MessageId};
use posthaste_engine::views::Tracked;
use posthaste_wire::time::to_rfc3339;
use serde_json::Value;

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::query::{Given, encoded, message_id, param};
use super::visitor::Visitor;
use super::{markdown, rows, text};
use posthaste_host::attachments::{self, Carrier};
use posthaste_host::download;
use posthaste_host::units::show_bytes;

/// `GET /ui/messages/{id}`: the message alone, as after sending it.
pub(super) async fn page(visitor: Visitor, Path(params): Path<Vec<(String, String)>>) -> Page {
    let Some(id) = message_id(param(&params, "id")) else {
        return Ok(DoorError::bad("This is not a message's id.").framed(&visitor).await);
    };
    let tracked = match visitor.read(move |view, caller| view.message(caller, id)).await {
        Ok(tracked) => tracked,
        Err(error) => return Ok(DoorError::from(error).framed(&visitor).await),
    };
    let title = text::heading(&tracked.message);
    let sent = visitor.here.query().is_some_and(|query| query.contains("sent"));
    let body = html! {
        @if sent { p.done role="status" { "Sent. " (sent_to(&tracked)) } }
        article.message { (opened(&visitor, &tracked)) }
    };
    Ok(frame::render(&visitor, Section::None, &title, body, None).await.into_response())
}

fn sent_to(tracked: &Tracked) -> String {
    let handed = tracked.deliveries.iter().filter(|copy| copy.state != DeliveryState::Queued).count();
    match (tracked.deliveries.len(), handed) {
        (1, 1) => "It was delivered.".to_owned(),
        (1, _) => "It waits for the recipient.".to_owned(),
        (all, handed) => format!("{handed} of {all} recipients have received it, it waits for the others."),
    }
}

/// The drawer's content, if the address names a message.
pub(super) async fn drawer(visitor: &Visitor) -> Result<Option<Markup>, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let Some(id) = given.message("message")? else { return Ok(None) };
    Ok(Some(drawn(visitor, id).await))
}

async fn drawn(visitor: &Visitor, id: MessageId) -> Markup {
    let found = visitor.read(move |view, caller| view.message(caller, id)).await;
    html! {
        div.bar {
            a.close href=(visitor.here_with("message", None)) data-close="" aria-label="Close (Esc)" { "×" }
            a.dim href=(visitor.to(&format!("/messages/{id}"))) { "Open alone" }
        }
        @match found {
            Ok(tracked) => { article.message { (opened(visitor, &tracked)) } }
            Err(error) => { p.sorry { (error) } }
        }
    }
}

/// A message with its facts, files and receipts.
pub(super) fn opened(visitor: &Visitor, tracked: &Tracked) -> Markup {
    let message = &*tracked.message;
    let mine = tracked.deliveries.iter().find(|copy| copy.agent == *visitor.me());
    html! {
        header {
            h2 { (text::heading(message)) }
            dl.facts {
                dt { "From" } dd { (rows::agent(visitor, &message.from)) " " (rows::door(&message.via)) " " (rows::seal(message)) }
                dt { "To" } dd { (text::addresses(&message.to)) }
                dt { "When" } dd { (text::ago(visitor.now, message.at)) " ago " span.dim { (to_rfc3339(message.at)) } }
                @if !rows::priority_class(message.priority).is_empty() {
                    dt { "Priority" } dd { (rows::chip(rows::priority_class(message.priority), rows::priority_name(message.priority))) }
                }
                @if !message.kind.is_empty() { dt { "Kind" } dd { code { (message.kind) } } }
                @if let Some(id) = &message.conversation { dt { "Conversation" } dd { (rows::conversation(visitor, id)) } }
                @if let Some(id) = message.in_reply_to {
                    dt { "Answers" } dd { a href=(visitor.here_with("message", Some(&id.to_string()))) data-drawer="" { code { (text::cut(&id.to_string(), 13)) } } }
                }
                @if let Some(at) = message.expires_at {
                    dt { "Expires" } dd { @if at > visitor.now { "in " (text::until(visitor.now, at)) } @else { (text::ago(visitor.now, at)) " ago" } }
                }
                @if message.ack_required { dt { "Ack" } dd { (rows::ack(visitor.now, message, mine)) } }
            }
        }
        div.body { (body(&message.body)) }
        (files(visitor, message))
        (receipts(visitor, &tracked.deliveries))
        (buttons(visitor, tracked, mine))
        details.more { summary { "Particulars" } (particulars(tracked)) }
    }
}

/// The files that a message carries, with links that save them.
fn files(visitor: &Visitor, message: &Message) -> Markup {
    let files = attachments::of(message);
    html! {
        @if !files.is_empty() {
            section.attachments {
                h3 { "Attachments" }
                ul.plain {
                    @for file in &files {
                        li {
                            a href=(visitor.to(&format!("/messages/{}/attachments/{}", message.id, file.sha256))) download=(file.name) { (file.name) }
                            " " span.dim { (show_bytes(file.size)) ", " (file.media_type) }
                        }
                    }
                }
            }
        }
    }
}

/// `GET /ui/messages/{id}/attachments/{sha256}`: a file of a message, to be saved.
pub(super) async fn attachment(visitor: Visitor, Path(params): Path<Vec<(String, String)>>) -> Page {
    let Some(id) = message_id(param(&params, "id")) else {
        return Ok(DoorError::bad("This is not a message's id.").framed(&visitor).await);
    };
    let (caller, hash) = (visitor.caller(), param(&params, "sha256"));
    Ok(match attachments::fetch(&visitor.engine, vec![caller], Carrier::Id(id), hash).await {
        Ok((file, bytes)) => download::answer(&file, bytes),
        Err(error) => download::failure(&error),
    })
}

/// The text of a message or turn.
pub(super) fn body(body: &Body) -> Markup {
    match body {
        Body::Text(text) => markdown::render(text),
        Body::Json(json) => value(&json.value(), json.as_str()),
    }
}

/// A JSON value: its text as Markdown, and the whole value if there is more in it.
pub(super) fn value(value: &Value, text: &str) -> Markup {
    let said = text::prose(value);
    // What the page shows anyway is not shown again.
    let shown =
        |name: &String| ["text", "body", "message", "content", "type", "subject"].contains(&name.as_str());
    let whole = match value {
        Value::Object(members) => members.keys().all(shown),
        other => other.is_string(),
    };
    let pretty =
        || text::cut(&serde_json::to_string_pretty(value).unwrap_or_else(|_| text.to_owned()), 32 << 10);
    html! {
        @if let Some(said) = &said { (markdown::render(said)) }
        @if said.is_none() { pre.json { (pretty()) } }
        @else if !whole { details.json { summary { "JSON" } pre.json { (pretty()) } } }
    }
}

fn receipts(visitor: &Visitor, deliveries: &[Delivery]) -> Markup {
    html! {
        section.receipts {
            h3 { "Receipts" }
            ul.plain {
                @for copy in deliveries.iter().take(100) {
                    li {
                        (rows::agent(visitor, &copy.agent))
                        @if copy.copy.as_str() != "to" { " " span.dim { (copy.copy.as_str()) } }
                        " " (state(copy.state))
                        @if let Some(at) = copy.acked_at.or(copy.read_at).or(copy.delivered_at) { " " (text::ago(visitor.now, at)) }
                        @if let Some(note) = &copy.note { " " q { (text::cut(note, 200)) } }
                    }
                }
                @if deliveries.len() > 100 { li.dim { "and " (deliveries.len() - 100) " more" } }
                @if deliveries.is_empty() { li.dim { "to no agent" } }
            }
        }
    }
}

fn state(state: DeliveryState) -> Markup {
    let class = match state {
        DeliveryState::Queued => "",
        DeliveryState::Delivered | DeliveryState::Read => "accent",
        DeliveryState::Acked => "ok",
        DeliveryState::Expired | DeliveryState::Failed => "danger",
    };
    rows::chip(class, state.as_str())
}

fn buttons(visitor: &Visitor, tracked: &Tracked, mine: Option<&Delivery>) -> Markup {
    let message = &tracked.message;
    let unread = mine.is_some_and(|copy| copy.state.is_unread());
    let unacked = mine.filter(|copy| message.ack_required && copy.state < DeliveryState::Acked);
    let next = visitor.here_with("done", None);
    html! {
        div.buttons {
            a.button.primary href=(visitor.to(&format!("/write?reply={}", message.id))) data-reply="" { "Reply" }
            @if unacked.is_some() {
                form method="post" action=(visitor.to("/do/ack")) data-ack="" {
                    (frame::form_token(visitor))
                    input type="hidden" name="message" value=(message.id);
                    input type="hidden" name="next" value=(next);
                    button { "Acknowledge" }
                }
            }
            @if unread {
                form method="post" action=(visitor.to("/do/read")) data-quiet="" {
                    (frame::form_token(visitor))
                    input type="hidden" name="message" value=(message.id);
                    input type="hidden" name="next" value=(next);
                    button { "Mark as read" }
                }
            }
            a.button href=(visitor.to(&format!("/live?agent={}", encoded(message.from.as_str())))) { "Live from " (message.from) }
        }
    }
}

fn particulars(tracked: &Tracked) -> Markup {
    let message = &tracked.message;
    html! {
        dl.facts {
            dt { "Id" } dd { code { (message.id) } }
            dt { "Number" } dd { code { (message.seq) } }
            @if let Some(key) = &message.key { dt { "Key" } dd { code { (key) } } }
            @if let Some(word) = &message.correlation { dt { "Correlation" } dd { code { (word) } } }
            @if let Some(task) = &message.task { dt { "Task" } dd { code { (task) } } }
            @if let Some(thread) = message.thread { dt { "Thread" } dd { code { (thread) } } }
            dt { "Open to" } dd { (message.audience.as_str()) }
            @if let Some(meta) = other_meta(message) { dt { "Meta" } dd { pre.json { (text::cut(meta.as_str(), 4_000)) } } }
            @if let Some(envelope) = &message.envelope { dt { "Envelope" } dd { pre.json { (text::cut(envelope, 4_000)) } } }
        }
    }
}

/// A message's metadata without the files, which are listed above.
fn other_meta(message: &Message) -> Option<String> {
    let meta = message.meta.as_ref()?;
    if attachments::of(message).is_empty() {
        return Some(meta.as_str().to_owned());
    }
    let Value::Object(mut members) = meta.value() else { return None };
    members.remove("attachments");
    (!members.is_empty()).then(|| Value::Object(members).to_string())
}

/// A page with a list, and the drawer if the address names a message.
pub(super) async fn beside(visitor: &Visitor, section: Section, title: &str, body: Markup) -> Response {
    match drawer(visitor).await {
        Ok(drawer) => frame::render(visitor, section, title, body, drawer).await.into_response(),
        Err(error) => error.framed(visitor).await,
    }
}
