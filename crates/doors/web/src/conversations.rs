//! Conversations: the list, and one of them as a timeline with its picture, participants and summary.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use posthaste_engine::nouns::{
    Caller, Conversation, ConversationId, ConversationStatus, Participant, Summary, Thread, ThreadId, Turn,
    TurnId, TurnSource,
};
use posthaste_engine::views::{ConversationQuery, Part, Tracked, TurnQuery, View, Viewed};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::lanes::{self, Stroke};
use super::query::{Given, encoded, param};
use super::visitor::Visitor;
use super::{ROWS, message, rows, text};

/// Turns on one page of a conversation.
pub(super) const TURNS: usize = 100;
/// Turns up to which a conversation is summarised with the page; a longer one on request, because it takes a while.
const SHORT: i64 = 300;

/// `GET /ui/conversations`.
pub(super) async fn list(visitor: Visitor) -> Page {
    match listed(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Conversations, "Conversations", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn listed(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let status = given.get("status").and_then(ConversationStatus::from_word);
    let cursor = given.seq("before")?;
    let query = ConversationQuery {
        statuses: status.into_iter().collect(),
        participant: given.agent("agent")?,
        kinds: given.owned("kind").into_iter().collect(),
        newest_first: true,
        cursor,
        limit: ROWS,
        ..ConversationQuery::default()
    };
    let who = query.participant.clone();
    let page = visitor.read(move |view, caller| view.conversations(caller, &query)).await?;
    let tab = |word: Option<&'static str>, name| {
        (visitor.here_with("status", word), name, status.map(ConversationStatus::as_str) == word)
    };
    let tabs = [
        tab(None, "All"),
        tab(Some("active"), "Active"),
        tab(Some("completed"), "Completed"),
        tab(Some("failed"), "Failed"),
        tab(Some("archived"), "Archived"),
    ];
    let older = page.next.map(|next| visitor.here_with("before", Some(&next.to_string())));
    Ok(html! {
        h1 { "Conversations" @if let Some(who) = who { " of " (rows::agent(visitor, &who)) } }
        (frame::tabs("Which conversations", &tabs))
        form.filters action=(visitor.to("/conversations")) {
            label { "With " input name="agent" data-complete="agents" size="14" value=[given.get("agent")]; }
            button { "Show" }
        }
        @if page.items.is_empty() {
            (frame::empty("Messages that name a conversation, tasks and MAP Mail conversations are listed here.", "posthaste demo"))
        }
        ul.rows data-list="" {
            @for conversation in &page.items { (row(visitor, conversation)) }
        }
        (frame::pager(cursor.map(|_| visitor.here_with("before", None)), older))
    })
}

fn row(visitor: &Visitor, conversation: &Conversation) -> Markup {
    let address = visitor.to(&format!("/conversations/{}", encoded(conversation.id.as_str())));
    html! {
        li.row {
            a.open href=(address) {
                span.who { (conversation.created_by) }
                span.what {
                    span.subject { (conversation.subject.as_deref().unwrap_or(conversation.id.as_str())) }
                    span.first { @if conversation.subject.is_some() { (text::cut(conversation.id.as_str(), 30)) " · " } (conversation.kind) }
                }
            }
            span.tail {
                (state(conversation.status))
                span.dim { (conversation.participant_count) " people" }
                span.dim { (text::rounded(conversation.turn_count)) " turns" }
                (text::ago(visitor.now, conversation.updated_at))
            }
        }
    }
}

pub(super) fn state(status: ConversationStatus) -> Markup {
    let class = match status {
        ConversationStatus::Active => "accent",
        ConversationStatus::Paused => "warn",
        ConversationStatus::Completed => "ok",
        ConversationStatus::Failed => "danger",
        ConversationStatus::Archived => "",
    };
    rows::chip(class, status.as_str())
}

/// A turn, and the message that it records, if it records one.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) turn: Turn,
    pub(super) message: Option<Tracked>,
}

impl Said {
    pub(super) fn stroke(&self) -> Stroke {
        Stroke::of_turn(&self.turn, self.message.as_ref())
    }
}

/// Turns with the messages that they record. A message that the caller may not read is shown as its turn.
pub(super) fn with_messages(view: &View<'_>, caller: &Caller, turns: Vec<Turn>) -> Vec<Said> {
    let message = |turn: &Turn| match turn.source {
        TurnSource::Intercepted(id) => view.message(caller, id).ok(),
        TurnSource::Explicit => None,
    };
    turns.into_iter().map(|turn| Said { message: message(&turn), turn }).collect()
}

struct Seen {
    conversation: Conversation,
    said: Vec<Said>,
    older: Option<TurnId>,
    people: Vec<Participant>,
    threads: Vec<Thread>,
    gist: Option<Summary>,
    own: Option<Participant>,
}

/// `GET /ui/conversations/{id}`.
pub(super) async fn page(visitor: Visitor, Path(params): Path<Vec<(String, String)>>) -> Page {
    match shown(&visitor, param(&params, "id")).await {
        Ok(page) => Ok(page),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor, id: &str) -> Result<Response, DoorError> {
    let id = ConversationId::new(id).map_err(|why| DoorError::bad(why.to_string()))?;
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let uuid = |name: &str| {
        given
            .get(name)
            .map(|text| text.parse::<uuid::Uuid>().map_err(|_| DoorError::bad("This is not an id.")))
            .transpose()
    };
    let (before, thread) = (uuid("before")?.map(TurnId), uuid("thread")?.map(ThreadId));
    let sum_up = given.is_on("summary");
    let seen = visitor.read(move |view, caller| look(view, caller, &id, before, thread, sum_up)).await?;
    let title = seen.conversation.subject.clone().unwrap_or_else(|| seen.conversation.id.to_string());
    let body = body(visitor, &seen, thread, before.is_some());
    Ok(message::beside(visitor, Section::Conversations, &title, body).await)
}

fn look(
    view: &View<'_>,
    caller: &Caller,
    id: &ConversationId,
    before: Option<TurnId>,
    thread: Option<ThreadId>,
    sum_up: bool,
) -> Viewed<Seen> {
    let conversation = view.conversation(caller, id)?;
    let query = TurnQuery { thread, before, newest_first: true, limit: TURNS, ..TurnQuery::default() };
    let page = view.turns(caller, id, &query)?;
    let mut turns = page.items;
    turns.reverse();
    let gist = match conversation.turn_count {
        3..=SHORT => true,
        0..3 => false,
        _ => sum_up,
    };
    let gist = if gist { Some(view.summary(caller, id, &Part::default(), false)?.summary) } else { None };
    Ok(Seen {
        said: with_messages(view, caller, turns),
        older: page.next,
        people: view.participants(caller, id, true, None, 100)?.items,
        threads: view.threads(caller, id, None, 0, 100)?.items,
        own: view.own_part(caller, id)?,
        conversation,
        gist,
    })
}

fn body(visitor: &Visitor, seen: &Seen, thread: Option<ThreadId>, paged: bool) -> Markup {
    let conversation = &seen.conversation;
    let id = encoded(conversation.id.as_str());
    let strokes: Vec<Stroke> = seen.said.iter().map(Said::stroke).collect();
    let older = seen.older.map(|turn| visitor.here_with("before", Some(&turn.to_string())));
    let export = |form: &str| visitor.to(&format!("/conversations/{id}/export?as={form}"));
    html! {
        h1 { (conversation.subject.as_deref().unwrap_or(conversation.id.as_str())) " " (state(conversation.status)) }
        p.sub {
            code { (conversation.id) } " · " (conversation.kind) " · opened by " (rows::agent(visitor, &conversation.created_by)) " "
            (text::ago(visitor.now, conversation.created_at)) " ago · " (text::count(conversation.turn_count)) " turns · "
            a href=(visitor.to(&format!("/live?conversation={id}"))) { "live" } " · export "
            a href=(export("md")) { "Markdown" } " " a href=(export("json")) { "JSON" } " " a href=(export("svg")) { "picture" }
        }
        @if let Some(parent) = &conversation.parent { p.sub { "came out of " (rows::conversation(visitor, parent)) } }
        (people(visitor, &seen.people))
        @if let Some(gist) = &seen.gist { (summary(gist)) }
        @else if conversation.turn_count > SHORT { p { a href=(visitor.here_with("summary", Some("1"))) { "Sum it up" } } }
        @if !seen.threads.is_empty() { (threads(visitor, &seen.threads, thread)) }
        @if strokes.len() > 1 {
            details.picture open { summary { "Who spoke to whom" } div.scroll tabindex="0" { (lanes::draw(&strokes, None)) } }
        }
        section.timeline {
            h2 { "Timeline" }
            (frame::pager(paged.then(|| visitor.here_with("before", None)), older))
            @if seen.said.is_empty() { p.dim { "Nothing was said yet, or nothing that you may read." } }
            ol.turns data-list="" { @for said in &seen.said { (turn(visitor, said, &seen.threads)) } }
        }
        (step_in(visitor, seen))
    }
}

fn people(visitor: &Visitor, people: &[Participant]) -> Markup {
    html! {
        ul.people {
            @for part in people {
                li class=(if part.left_at.is_some() { "left" } else { "" }) title=(permissions(part)) {
                    (rows::agent(visitor, &part.agent)) " " span.dim { (part.role) @if part.left_at.is_some() { ", left" } }
                }
            }
        }
    }
}

fn permissions(part: &Participant) -> String {
    let may = &part.permissions;
    let words = [
        (may.can_send, "speak"),
        (may.can_observe, "read"),
        (may.can_invite, "invite"),
        (may.can_remove, "put out"),
        (may.can_create_threads, "open threads"),
        (may.can_see_internal, "see internal turns"),
    ];
    let may: Vec<&str> = words.iter().filter(|(may, _)| *may).map(|(_, word)| *word).collect();
    format!("may {}; history: {}", may.join(", "), part.permissions.history.as_str())
}

fn summary(gist: &Summary) -> Markup {
    let list = |name: &str, lines: &[String]| {
        html! { @if !lines.is_empty() { h3 { (name) } ul { @for line in lines { li { (line) } } } } }
    };
    html! {
        @if !gist.text.is_empty() {
            details.gist {
                summary { b { "Summary" } " " span.first { (text::cut(&gist.text, 140)) } }
                p { (gist.text) }
                (list("Key points", &gist.key_points))
                (list("Decisions", &gist.decisions))
                (list("Open questions", &gist.open_questions))
                @if !gist.actions.is_empty() {
                    h3 { "To do" }
                    ul { @for (text, done) in &gist.actions { li { @if *done { "✓ " } (text) } } }
                }
                p.dim { "Made from the conversation’s own sentences, " (gist.lines) " of them." }
            }
        }
    }
}

fn threads(visitor: &Visitor, threads: &[Thread], current: Option<ThreadId>) -> Markup {
    html! {
        nav.tabs aria-label="Threads" {
            a href=(visitor.here_with("thread", None)) aria-current=[current.is_none().then_some("true")] { "All threads" }
            @for thread in threads {
                a href=(visitor.here_with("thread", Some(&thread.id.to_string()))) aria-current=[(current == Some(thread.id)).then_some("true")] {
                    (thread.subject.as_deref().map_or_else(|| text::cut(&thread.id.to_string(), 8), |subject| text::cut(subject, 40)))
                    " " span.dim { (thread.turn_count) }
                }
            }
        }
    }
}

fn turn(visitor: &Visitor, said: &Said, threads: &[Thread]) -> Markup {
    let turn = &said.turn;
    let thread = turn.thread.and_then(|id| threads.iter().find(|thread| thread.id == id));
    let message = said.message.as_ref().map(|tracked| &*tracked.message);
    html! {
        li id={"t" (turn.seq)} class={"turn" @if turn.thread.is_some() { " threaded" }} data-id=[message.map(|message| message.id)] {
            header {
                (rows::agent(visitor, &turn.author))
                @if let Some(message) = message {
                    span.arrow { "→" } span.to { (text::addresses(&message.to)) } " " (rows::door(&message.via)) (rows::seal(message))
                }
                @if let Some(thread) = thread { " " (rows::chip("accent", &text::cut(thread.subject.as_deref().unwrap_or("thread"), 40))) }
                @if let Some(mark) = text::readers(&turn.visibility) { " " (rows::chip("warn", &mark)) }
                " " (rows::chip("", match turn.source { TurnSource::Explicit => "recorded", TurnSource::Intercepted(_) => "message" }))
                span.tail { a.dim href={"#t" (turn.seq)} { (text::ago(visitor.now, turn.at)) } }
            }
            @match message {
                Some(message) => {
                    @if message.subject.is_some() { h3 { a.open href=(visitor.here_with("message", Some(&message.id.to_string()))) data-drawer="" { (text::heading(message)) } } }
                    div.body { (message::body(&message.body)) }
                    @if message.subject.is_none() { p { a.open.dim href=(visitor.here_with("message", Some(&message.id.to_string()))) data-drawer="" { "open the message" } } }
                }
                None => { div.body { (message::value(&turn.content.value(), turn.content.as_str())) } }
            }
        }
    }
}

/// What a person can do about it.
fn step_in(visitor: &Visitor, seen: &Seen) -> Markup {
    let conversation = &seen.conversation;
    let closed = conversation.status.is_closed();
    let may = seen.own.as_ref().map(|part| part.permissions);
    let admin = visitor.is_admin();
    let fields = html! {
        (frame::form_token(visitor))
        input type="hidden" name="conversation" value=(conversation.id);
        input type="hidden" name="next" value=(visitor.here.path());
    };
    html! {
        section.stepin {
            h2 { "Step in as " (visitor.me()) }
            @if closed {
                p.dim { "The conversation is closed." }
                form method="post" action=(visitor.to("/do/reopen")) { (fields) button { "Reopen" } }
            } @else {
                form.composer method="post" action=(visitor.to("/do/say")) {
                    (fields)
                    textarea name="text" rows="3" required placeholder="Say something to everyone in this conversation (Markdown; Ctrl+Enter sends)" maxlength="60000" data-composer="" {}
                    div.buttons { button.primary { "Say" } a.button href=(visitor.to(&format!("/write?conversation={}", encoded(conversation.id.as_str())))) { "Write a message instead" } }
                }
                @if admin || may.is_some_and(|may| may.can_invite) {
                    form.inline method="post" action=(visitor.to("/do/invite")) {
                        (fields)
                        label { "Invite " input name="agent" required data-complete="agents" size="16"; }
                        label { " as " input name="role" value="assistant" size="10"; }
                        button { "Invite" }
                    }
                }
                @if admin || may.is_some() {
                    form.inline method="post" action=(visitor.to("/do/close")) {
                        (fields)
                        label { "Close it " input name="reason" placeholder="why" size="20" maxlength="500"; }
                        select name="status" aria-label="How it ended" { option value="completed" { "completed" } option value="failed" { "failed" } option value="archived" { "archived" } }
                        button { "Close" }
                    }
                }
            }
        }
    }
}
