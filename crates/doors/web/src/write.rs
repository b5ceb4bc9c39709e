//! The composer: a form with completion of addresses and a preview.

use axum::Json;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use posthaste_engine::nouns::{MessageId, Priority};
use posthaste_engine::views::{AgentQuery, ScopeQuery, Tracked};

use super::answers::{DoorError, Page, fragment};
use super::frame::{self, Section};
use super::query::Given;
use super::visitor::Visitor;
use super::{markdown, rows, text};

/// Names that are offered for completion.
const MAX_OFFERED: usize = 20;
/// Agents that are searched for them.
const MAX_SEARCHED: usize = 1_000;

/// `GET /ui/write`: empty, to an agent, as an answer, or within a conversation.
pub(super) async fn page(visitor: Visitor) -> Page {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let answered = match given.message("reply")? {
        Some(id) => match visitor.read(move |view, caller| view.message(caller, id)).await {
            Ok(tracked) => Some(tracked),
            Err(error) => return Ok(DoorError::from(error).framed(&visitor).await),
        },
        None => None,
    };
    let draft = Draft::new(&given, answered.as_ref());
    let body = composer(&visitor, &draft, answered.as_ref(), None);
    Ok(frame::render(&visitor, Section::None, "Write", body, None).await.into_response())
}

/// The content of the form.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) to: String,
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) conversation: String,
    pub(super) reply: Option<MessageId>,
    pub(super) priority: u8,
    pub(super) ack: bool,
}

impl Draft {
    fn new(given: &Given, answered: Option<&Tracked>) -> Self {
        let mut draft = Self {
            to: given.raw("to").to_owned(),
            subject: given.raw("subject").to_owned(),
            conversation: given.raw("conversation").to_owned(),
            priority: Priority::NORMAL.tier(),
            ..Self::default()
        };
        if let Some(tracked) = answered {
            let message = &tracked.message;
            draft.reply = Some(message.id);
            draft.to = message.from.to_string();
            let heading = message.subject.clone().unwrap_or_default();
            draft.subject = if heading.is_empty() || heading.starts_with("Re:") {
                heading
            } else {
                format!("Re: {heading}")
            };
            draft.conversation = message.conversation.as_ref().map(ToString::to_string).unwrap_or_default();
        }
        draft
    }

    /// As it came back from the browser.
    pub(super) fn back(given: &Given) -> Result<Self, DoorError> {
        Ok(Self {
            to: given.raw("to").to_owned(),
            subject: given.raw("subject").to_owned(),
            text: given.raw("text").replace("\r\n", "\n"),
            conversation: given.raw("conversation").to_owned(),
            reply: given.message("reply")?,
            priority: given
                .get("priority")
                .and_then(|tier| tier.parse().ok())
                .unwrap_or(Priority::NORMAL.tier()),
            ack: given.is_on("ack"),
        })
    }
}

pub(super) fn composer(
    visitor: &Visitor,
    draft: &Draft,
    answered: Option<&Tracked>,
    problem: Option<&str>,
) -> Markup {
    html! {
        h1 { (if draft.reply.is_some() { "Reply" } else { "Write" }) " as " (visitor.me()) }
        @if let Some(problem) = problem { p.sorry role="alert" { (problem) } }
        form.composer.big method="post" action=(visitor.to("/do/send")) {
            (frame::form_token(visitor))
            @if let Some(id) = draft.reply { input type="hidden" name="reply" value=(id); }
            label { span { "To" } input name="to" value=(draft.to) required data-complete="addresses" autocomplete="off" spellcheck="false" placeholder="ann, scope:team, role:reviewer, all" autofocus[draft.to.is_empty()]; }
            label { span { "Subject" } input name="subject" value=(draft.subject) maxlength="998"; }
            textarea name="text" rows="10" required data-composer="" data-preview="preview" placeholder="Markdown. Ctrl+Enter sends." autofocus[!draft.to.is_empty()] aria-label="Text" { (draft.text) }
            div.options {
                label { "Priority " select name="priority" {
                    @for tier in Priority::TIERS { option value=(tier.tier()) selected[tier.tier() == draft.priority] { (rows::priority_name(tier)) } }
                } }
                label { input type="checkbox" name="ack" value="1" checked[draft.ack]; " ask for an acknowledgement" }
                label { "Conversation " input name="conversation" value=(draft.conversation) size="18" placeholder="none"; }
            }
            div.buttons { button.primary { "Send" } }
        }
        section #preview.body aria-label="Preview" {}
        @if let Some(tracked) = answered {
            section.quoted {
                h2 { (tracked.message.from) " wrote " (text::ago(visitor.now, tracked.message.at)) " ago" }
                div.body { (super::message::body(&tracked.message.body)) }
            }
        }
        details.hint { summary { "How to address a message" }
            p { code { "ann" } " an agent · " code { "ann@realm" } " one of another realm · " code { "scope:team" } " its members · " code { "role:reviewer" } " everyone in a role · "
                code { "role:reviewer@team" } " those in a scope · " code { "children" } " " code { "parent" } " " code { "siblings" } " around you · " code { "@contacts" } " · " code { "all" } } }
    }
}

/// `GET /ui/complete?q=`: names that begin like that, for the script.
pub(super) async fn complete(visitor: Visitor) -> Page {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let start = given.get("q").unwrap_or("").to_lowercase();
    let everywhere = given.get("among") != Some("agents");
    let names = visitor
        .read(move |view, caller| {
            let agents =
                view.agents(caller, &AgentQuery { limit: MAX_SEARCHED, ..AgentQuery::default() })?.items;
            let mut names: Vec<String> = agents.iter().map(|agent| agent.id.to_string()).collect();
            if everywhere {
                let scopes = view.scopes(caller, &ScopeQuery { limit: 200, ..ScopeQuery::default() })?.items;
                names.extend(scopes.iter().map(|scope| format!("scope:{}", scope.id)));
                let mut roles: Vec<String> = agents
                    .iter()
                    .filter_map(|agent| agent.role.clone())
                    .map(|role| format!("role:{role}"))
                    .collect();
                roles.sort();
                roles.dedup();
                names.extend(roles);
                names.extend(["all", "children", "parent", "siblings", "@contacts"].map(str::to_owned));
            }
            Ok(names)
        })
        .await?;
    let fits = |name: &String| {
        let lower = name.to_lowercase();
        lower.starts_with(&start) || lower.split([':', '-', '_', '.']).any(|part| part.starts_with(&start))
    };
    let offered: Vec<String> = names.into_iter().filter(fits).take(MAX_OFFERED).collect();
    Ok(Json(offered).into_response())
}

/// `POST /ui/preview`: Markdown as it will be shown.
pub(super) async fn preview(visitor: Visitor, body: String) -> Result<Response, DoorError> {
    let given = Given::new(&body);
    visitor.check_form(given.raw("word"))?;
    Ok(fragment(markdown::render(given.raw("text"))))
}
