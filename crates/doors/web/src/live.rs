//! The live page: the latest events, then new ones as they happen, filtered; or events of a past time.

use std::sync::Arc;

use maud::{Markup, html};
use posthaste_engine::nouns::Address;
use posthaste_engine::nouns::{AgentId, Body, ConversationId, Event, Fact, Millis, ScopeId, Seq};
use posthaste_engine::{Filter, Test};
use posthaste_wire::time::{parse_timestamp, to_rfc3339};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::query::Given;
use super::visitor::Visitor;
use super::{message, rows, text};

/// Events on the page when it opens.
const SHOWN: usize = 100;

/// The kinds to choose from: their names on the page, and in the event log.
const KINDS: [(&str, &str); 9] = [
    ("messages", "message.sent"),
    ("messages and deliveries", "message.*"),
    ("turns", "turn.*"),
    ("conversations", "conversation.*"),
    ("tasks", "task.*"),
    ("reservations", "reservation.*"),
    ("agents", "agent.*"),
    ("scopes", "scope.*"),
    ("contacts", "contact.*"),
];

/// The filter of the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    kind: Option<String>,
    agent: Option<AgentId>,
    scope: Option<ScopeId>,
    conversation: Option<ConversationId>,
}

impl Wanted {
    pub(super) fn read(given: &Given) -> Result<Self, DoorError> {
        let kind = given.owned("kind").filter(|kind| kind.len() <= 64);
        let scope = given
            .get("scope")
            .map(ScopeId::new)
            .transpose()
            .map_err(|why| DoorError::bad(why.to_string()))?;
        Ok(Self {
            kind,
            scope,
            agent: given.agent("agent")?,
            conversation: given.conversation("conversation")?,
        })
    }

    pub(super) fn filter(&self) -> Filter {
        let mut all = Vec::new();
        all.extend(self.kind.clone().map(|kind| Filter::Kinds(vec![kind])));
        if let Some(agent) = self.agent.clone() {
            let to = agent.clone();
            let addressed = move |event: &Event| {
                event.message.as_ref().is_some_and(|message| message.to.contains(&Address::Agent(to.clone())))
            };
            all.push(Filter::Any(vec![
                Filter::Concerning(vec![agent]),
                Filter::Test(Test(Arc::new(addressed))),
            ]));
        }
        all.extend(self.scope.clone().map(|scope| Filter::Scopes(vec![scope])));
        if let Some(id) = self.conversation.clone() {
            let of = id.clone();
            let names = move |event: &Event| {
                event.message.as_ref().is_some_and(|message| message.conversation.as_ref() == Some(&of))
            };
            all.push(Filter::Any(vec![Filter::Conversation(id), Filter::Test(Test(Arc::new(names)))]));
        }
        Filter::All(all)
    }

    fn query(&self) -> String {
        let mut query = String::new();
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                query.push_str(&format!("&{name}={}", super::query::encoded(value)));
            }
        };
        add("kind", self.kind.as_deref());
        add("agent", self.agent.as_ref().map(AgentId::as_str));
        add("scope", self.scope.as_ref().map(ScopeId::as_str));
        add("conversation", self.conversation.as_ref().map(ConversationId::as_str));
        query
    }
}

/// `GET /ui/live`.
pub(super) async fn page(visitor: Visitor) -> Page {
    match shown(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Live, "Live", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let wanted = Wanted::read(&given)?;
    let before = given.seq("before")?;
    let at = match given.get("at") {
        Some(text) => Some(moment(text).ok_or_else(|| DoorError::bad("This is not a time."))?),
        None => None,
    };
    let filter = wanted.filter();
    let (replay, head, history) = visitor
        .read(move |view, caller| {
            let before = match (before, at) {
                (Some(before), _) => before,
                // One page of events from that time on.
                (None, Some(at)) => view.last_seq_at(at)?.saturating_add(SHOWN as i64),
                (None, None) => Seq::MAX,
            };
            let replay = view.earlier(caller, before, &filter, SHOWN)?;
            Ok((replay, view.head()?, view.history()?))
        })
        .await?;
    let past = before.is_some() || at.is_some();
    let query = wanted.query();
    let older = format!("{}?before={}{query}", visitor.to("/live"), replay.cursor);
    let follow = format!("{}?{}", visitor.to("/live"), query.trim_start_matches('&'));
    Ok(html! {
        h1 { "Live" @if past { span.dim { " · history" } } }
        (filters(visitor, &wanted, at))
        @if replay.more && replay.cursor > 1 { p.older { a href=(older) { "↑ Earlier" } } }
        ol #live.rows.events aria-live=(if past { "off" } else { "polite" })
            data-stream=[(!past).then(|| format!("{}?after={history}:{head}{query}", visitor.to("/live/stream")))] {
            @for event in &replay.events { (row(visitor, event)) }
        }
        @if replay.events.is_empty() {
            div #quiet { (frame::empty("What happens in the realm is listed here, the latest at the bottom.", "posthaste demo")) }
        }
        @if past {
            p.older { a href=(follow) { "↓ Follow live" } }
        } @else {
            div.livebar {
                span #livestate.dim { "not following: the script is off" }
                button #pause type="button" hidden title="p" { "Pause" }
                button #fresh type="button" hidden {}
            }
        }
    })
}

/// A time as it is typed into the page (without an offset, taken as UTC), or a number of milliseconds.
fn moment(text: &str) -> Option<Millis> {
    parse_timestamp(text)
        .or_else(|_| parse_timestamp(&format!("{text}Z")))
        .or_else(|_| parse_timestamp(&format!("{text}:00Z")))
        .ok()
}

fn filters(visitor: &Visitor, wanted: &Wanted, at: Option<Millis>) -> Markup {
    let at = at.map(|at| to_rfc3339(at).get(..19).unwrap_or_default().to_owned());
    html! {
        form.filters action=(visitor.to("/live")) {
            label { "Type "
                select name="kind" {
                    option value="" { "everything" }
                    @for (name, pattern) in KINDS { option value=(pattern) selected[wanted.kind.as_deref() == Some(pattern)] { (name) } }
                    @if let Some(kind) = wanted.kind.as_deref().filter(|kind| KINDS.iter().all(|(_, known)| known != kind)) { option value=(kind) selected { (kind) } }
                }
            }
            label { "Agent " input name="agent" value=[wanted.agent.as_ref()] data-complete="agents" size="12"; }
            label { "Scope " input name="scope" value=[wanted.scope.as_ref()] size="10"; }
            label { "Conversation " input name="conversation" value=[wanted.conversation.as_ref()] size="14"; }
            label { "Jump to " input type="datetime-local" name="at" step="1" value=[at] title="UTC"; }
            button { "Show" }
        }
    }
}

/// One event.
pub(super) fn row(visitor: &Visitor, event: &Event) -> Markup {
    let (class, what) = said(visitor, event);
    let priority = event.message.as_ref().map_or("", |message| rows::priority_class(message.priority));
    html! {
        li class={"row event " (class) " " (priority)} data-seq=(event.seq) {
            (text::ago(visitor.now, event.at))
            span.kind { (event.fact.kind()) }
            span.what { (what) }
            span.tail { @if let Some(message) = &event.message { (rows::door(&message.via)) } }
        }
    }
}

/// What happened, in a sentence, and its colour class.
fn said(visitor: &Visitor, event: &Event) -> (&'static str, Markup) {
    let who = |id: &AgentId| rows::agent(visitor, id);
    let talk = |id: &ConversationId| rows::conversation(visitor, id);
    let actor = who(&event.actor);
    let message_link = html! {
        @if let Some(message) = &event.message {
            a href=(visitor.to(&format!("/messages/{}", message.id))) data-message=(message.id) { (text::cut(&text::heading(message), 80)) }
        }
    };
    match &event.fact {
        Fact::MessageSent => match &event.message {
            Some(message) => (
                "message",
                html! {
                    (who(&message.from)) span.arrow { "→" } span.to { (text::addresses(&message.to)) } " "
                    (rows::seal(message)) (message_link)
                    " " span.first { (text::first_line(&message.body)) }
                    @if message.ack_required { " " (rows::chip("warn", "ack asked")) }
                    @if let Some(id) = &message.conversation { " " (talk(id)) }
                },
            ),
            None => ("", html! { (actor) " sent a message" }),
        },
        Fact::MessageDelivered { agent } => ("faint", html! { (message_link) " reached " (who(agent)) }),
        Fact::MessageRead { agent } => ("faint", html! { (who(agent)) " read " (message_link) }),
        Fact::MessageAcked { agent, response } => (
            "ok",
            html! { (who(agent)) " acknowledged " (message_link) @if let Some(response) = response { " " q { (text::cut(response, 120)) } } },
        ),
        Fact::MessageExpired { agent } => {
            ("danger", html! { (message_link) " expired before " (who(agent)) " looked at it" })
        }
        Fact::MessageFailed { agent, reason } => {
            ("danger", html! { (message_link) " did not reach " (who(agent)) ": " (text::cut(reason, 120)) })
        }
        Fact::AgentRegistered { agent, role, .. } => {
            ("", html! { (who(agent)) " registered" @if let Some(role) = role { " as " (role) } })
        }
        Fact::AgentUpdated { agent, .. } => ("faint", html! { (who(agent)) "’s entry changed" }),
        Fact::AgentState { agent, previous, current } => {
            ("faint", html! { (who(agent)) ": " (previous) " → " b { (current) } })
        }
        Fact::AgentOrphaned { agent, .. } => ("", html! { (who(agent)) " is on its own" }),
        Fact::AgentUnregistered { agent, reason, .. } => (
            "",
            html! { (who(agent)) " left" @if let Some(reason) = reason { ": " (text::cut(reason, 120)) } },
        ),
        Fact::ConversationCreated { conversation } => (
            "",
            html! { (actor) " opened " (talk(&conversation.id)) @if let Some(subject) = &conversation.subject { " " (text::cut(subject, 100)) } },
        ),
        Fact::ConversationClosed { conversation, by, reason } => (
            "",
            html! { (who(by)) " closed " (talk(conversation)) @if let Some(reason) = reason { ": " (text::cut(reason, 120)) } },
        ),
        Fact::ConversationReopened { conversation, by } => {
            ("", html! { (who(by)) " reopened " (talk(conversation)) })
        }
        Fact::ParticipantJoined { participant } => (
            "faint",
            html! { (who(&participant.agent)) " joined " (talk(&participant.conversation)) " as " (participant.role) },
        ),
        Fact::ParticipantLeft { conversation, agent, .. } => {
            ("faint", html! { (who(agent)) " left " (talk(conversation)) })
        }
        Fact::TurnAdded { conversation } => (
            "turn",
            html! {
                @if let Some(turn) = &event.turn {
                    (who(&turn.author)) " in " (talk(conversation)) " " span.first { (text::first_line(&Body::Json(turn.content.clone()))) }
                    @if let Some(mark) = text::readers(&turn.visibility) { " " (rows::chip("warn", &mark)) }
                } @else { (actor) " spoke in " (talk(conversation)) }
            },
        ),
        Fact::ThreadCreated { thread } => (
            "",
            html! { (actor) " opened a thread in " (talk(&thread.conversation)) @if let Some(subject) = &thread.subject { ": " (text::cut(subject, 100)) } },
        ),
        Fact::SummaryGenerated { conversation, .. } => {
            ("faint", html! { "a summary of " (talk(conversation)) " was made" })
        }
        Fact::ScopeCreated { scope } => ("", html! { (actor) " made the scope " b { (scope.id) } }),
        Fact::ScopeDeleted { scope, .. } => ("", html! { "the scope " b { (scope) } " is gone" }),
        Fact::ScopeJoined { scope, agent } => {
            ("faint", html! { (who(agent)) " joined the scope " b { (scope) } })
        }
        Fact::ScopeLeft { scope, agent } => {
            ("faint", html! { (who(agent)) " left the scope " b { (scope) } })
        }
        Fact::TaskCreated { task } => (
            "",
            html! { (actor) " made the task " (super::tasks::link(visitor, &task.id, task.title.as_deref())) },
        ),
        Fact::TaskAssigned { task, agent } => {
            ("", html! { (super::tasks::link(visitor, task, None)) " is assigned to " (who(agent)) })
        }
        Fact::TaskStatusChanged { task, previous, current } => (
            "",
            html! { (super::tasks::link(visitor, task, None)) ": " (previous.as_str()) " → " (rows::task_state(*current)) },
        ),
        Fact::TaskCompleted { task, .. } => {
            ("ok", html! { (super::tasks::link(visitor, task, None)) " is completed" })
        }
        Fact::ReservationMade { reservation } => (
            "",
            html! { (who(&reservation.owner)) " reserved " (super::reservations::paths(reservation)) " in " (reservation.scope) },
        ),
        Fact::ReservationRenewed { reservation } => (
            "faint",
            html! { (who(&reservation.owner)) " prolonged " (super::reservations::paths(reservation)) },
        ),
        Fact::ReservationReleased { reservation } => (
            "faint",
            html! { (super::reservations::paths(reservation)) " of " (who(&reservation.owner)) " is free again" },
        ),
        Fact::ReservationExpired { reservation } => (
            "warn",
            html! { (super::reservations::paths(reservation)) " of " (who(&reservation.owner)) " lapsed" },
        ),
        Fact::ReservationConflict { asked_by, held_by, path, held_path, .. } => (
            "danger",
            html! { (who(asked_by)) "’s " code { (path) } " overlaps " (who(held_by)) "’s " code { (held_path) } },
        ),
        Fact::ContactChanged { from, to, state } => {
            ("", html! { (who(from)) " and " (who(to)) ": " (state.map_or("ended", |state| state.as_str())) })
        }
        Fact::Announced { word, .. } => ("faint", html! { (actor) ": " (text::cut(word, 100)) }),
        Fact::TokenCreated { name, .. } => ("", html! { "a token for " b { (name) } " was made" }),
        Fact::TokenRevoked { token } => {
            ("", html! { "the token " code { (text::cut(token, 13)) } " was revoked" })
        }
        Fact::PeerChanged { peer, reachable } => (
            "",
            html! { "the peer " b { (peer) } " is " (if *reachable { "reachable" } else { "out of reach" }) },
        ),
        Fact::PeerRemoved { peer } => ("", html! { "the peer " b { (peer) } " is forgotten" }),
        Fact::RulesChanged => ("", html! { "the realm’s rules changed" }),
    }
}
