//! A conversation as a file: Markdown to read, JSON to process, the picture to show.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{Body, Conversation, ConversationId, TurnSource};
use posthaste_engine::views::TurnQuery;
use posthaste_host::address;
use posthaste_wire::control::{ConversationFile, FileMessage, FileTurn};
use posthaste_wire::time::to_rfc3339;

use super::answers::{DoorError, Page};
use super::assets;
use super::conversations::{Said, with_messages};
use super::lanes::{self, Stroke};
use super::query::{Given, param};
use super::text;
use super::visitor::Visitor;

/// Turns in one file; the file of a longer conversation says that it was cut.
const MAX_TURNS: usize = 10_000;

/// `GET /ui/conversations/{id}/export?as=md|json|svg`.
pub(super) async fn download(visitor: Visitor, Path(params): Path<Vec<(String, String)>>) -> Page {
    match made(&visitor, param(&params, "id")).await {
        Ok(file) => Ok(file),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn made(visitor: &Visitor, id: &str) -> Result<Response, DoorError> {
    let id = ConversationId::new(id).map_err(|why| DoorError::bad(why.to_string()))?;
    let (conversation, said, cut) = visitor
        .read(move |view, caller| {
            let conversation = view.conversation(caller, &id)?;
            let mut query = TurnQuery { limit: 1_000, ..TurnQuery::default() };
            let mut said = Vec::new();
            loop {
                let page = view.turns(caller, &id, &query)?;
                said.extend(with_messages(view, caller, page.items));
                match page.next {
                    Some(next) if said.len() < MAX_TURNS && !view.has_enough() => query.after = Some(next),
                    next => return Ok((conversation, said, next.is_some())),
                }
            }
        })
        .await?;
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let (kind, end, text) = match given.get("as") {
        Some("json") => ("application/json", "json", as_json(&conversation, &said, cut)?),
        Some("svg") => {
            let strokes: Vec<Stroke> =
                said.iter().map(|said| Stroke { link: None, ..said.stroke() }).collect();
            ("image/svg+xml", "svg", lanes::draw(&strokes, Some(assets::LANES)).into_string())
        }
        Some("md") | None => ("text/markdown; charset=utf-8", "md", as_markdown(&conversation, &said, cut)),
        Some(_) => return Err(DoorError::bad("An export is md, json or svg.")),
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = conversation.id.as_str().chars().map(safe).take(80).collect();
    let named = HeaderValue::try_from(format!("attachment; filename=\"{name}.{end}\""))
        .unwrap_or(HeaderValue::from_static("attachment"));
    let head = [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CONTENT_DISPOSITION, named)];
    Ok((head, text).into_response())
}

fn as_json(conversation: &Conversation, said: &[Said], cut: bool) -> Result<String, DoorError> {
    let failed =
        |error: serde_json::Error| DoorError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    let turns: Result<Vec<FileTurn>, serde_json::Error> = said.iter().map(turn_of).collect();
    let conversation = serde_json::to_value(conversation).map_err(failed)?;
    let file = ConversationFile { conversation, turns: turns.map_err(failed)?, cut };
    serde_json::to_string(&file).map_err(failed)
}

fn turn_of(said: &Said) -> Result<FileTurn, serde_json::Error> {
    let turn = &said.turn;
    let message = said.message.as_ref().map(|tracked| &tracked.message);
    Ok(FileTurn {
        id: turn.id.to_string(),
        seq: turn.seq,
        at: to_rfc3339(turn.at),
        author: turn.author.to_string(),
        content_type: turn.content_type.clone(),
        content: turn.content.value(),
        thread: turn.thread.map(|thread| thread.to_string()),
        in_reply_to: turn.in_reply_to.map(|turn| turn.to_string()),
        visibility: serde_json::to_value(&turn.visibility)?,
        intercepted: matches!(turn.source, TurnSource::Intercepted(_)),
        message: message.map(|message| FileMessage {
            id: message.id.to_string(),
            to: message.to.iter().map(address::write).collect(),
            subject: message.subject.clone(),
            kind: message.kind.clone(),
            priority: message.priority.tier(),
            door: message.via.clone(),
        }),
    })
}

fn as_markdown(conversation: &Conversation, said: &[Said], cut: bool) -> String {
    let mut out = format!("# {}\n\n", conversation.subject.as_deref().unwrap_or(conversation.id.as_str()));
    out.push_str(&format!(
        "Conversation `{}`, {}, opened by {} at {}.\n",
        conversation.id,
        conversation.status.as_str(),
        conversation.created_by,
        to_rfc3339(conversation.created_at)
    ));
    for said in said {
        let turn = &said.turn;
        out.push_str(&format!("\n---\n\n**{}** · {}", turn.author, to_rfc3339(turn.at)));
        match &said.message {
            Some(tracked) => {
                let message = &tracked.message;
                out.push_str(&format!(" · to {} · by {}\n\n", text::addresses(&message.to), message.via));
                if let Some(subject) = &message.subject {
                    out.push_str(&format!("## {subject}\n\n"));
                }
                match &message.body {
                    Body::Text(text) => out.push_str(text),
                    Body::Json(json) => out.push_str(&text::said_in(&json.value())),
                }
            }
            None => {
                out.push_str("\n\n");
                out.push_str(&text::said_in(&turn.content.value()));
            }
        }
        out.push('\n');
    }
    if cut {
        out.push_str("\n---\n\nThe conversation goes on; this file ends here.\n");
    }
    out
}
