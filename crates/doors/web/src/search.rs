//! Search over everything that the visitor may see.

use maud::{Markup, html};
use posthaste_engine::views::{Found, Hit, SearchOrder, SearchQuery};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::query::{Given, encoded};
use super::visitor::Visitor;
use super::{ROWS, message, rows, text};

/// Marks around a match: characters that are not typed, and that are removed from messages.
const MARKS: (char, char) = ('\u{f0000}', '\u{f0001}');

/// `GET /ui/search`.
pub(super) async fn page(visitor: Visitor) -> Page {
    match shown(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Search, "Search", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let newest = given.get("order") == Some("newest");
    let found = match given.get("q") {
        None => None,
        Some(text) => {
            let query = SearchQuery {
                text: text.to_owned(),
                conversation: given.conversation("conversation")?,
                from: given.agent("from")?,
                order: if newest { SearchOrder::Newest } else { SearchOrder::Best },
                before: given.seq("before")?,
                marks: Some(MARKS),
                limit: ROWS,
            };
            Some(visitor.read(move |view, caller| view.search(caller, &query)).await)
        }
    };
    Ok(html! {
        h1 { "Search" }
        (form(visitor, &given, newest))
        @match found {
            None => { (help()) }
            Some(Err(error)) => { p.sorry role="alert" { (error) } (help()) }
            Some(Ok(found)) => { (hits(visitor, &found, newest)) }
        }
    })
}

fn form(visitor: &Visitor, given: &Given, newest: bool) -> Markup {
    html! {
        form.filters action=(visitor.to("/search")) role="search" {
            label { "Words " input type="search" name="q" value=[given.get("q")] size="28" maxlength="1024" autofocus[!given.is_on("q")]; }
            label { "From " input name="from" data-complete="agents" size="12" value=[given.get("from")]; }
            label { "Conversation " input name="conversation" size="14" value=[given.get("conversation")]; }
            label { "Order " select name="order" { option value="best" { "best first" } option value="newest" selected[newest] { "newest first" } } }
            button { "Search" }
        }
    }
}

fn help() -> Markup {
    html! {
        div.empty {
            p { "Words, " code { "\"a phrase\"" } ", " code { "begin*" } ", " code { "AND" } " " code { "OR" } " " code { "NOT" } ": over every message and turn that you may see." }
        }
    }
}

fn hits(visitor: &Visitor, found: &Found, newest: bool) -> Markup {
    let older = found.hits.last().filter(|_| newest && found.partial);
    let older = older.map(|last| visitor.here_with("before", Some(&last.seq.to_string())));
    html! {
        p.dim { (found.hits.len()) (if found.hits.len() == 1 { " match" } else { " matches" }) @if found.partial { ", and there may be more" @if !newest { ": narrow it down, or list the newest first" } } }
        @if found.hits.is_empty() { div.empty { p { "Nothing that you may see matches." } } }
        ul.rows.hits data-list="" { @for hit in &found.hits { (row(visitor, hit)) } }
        (frame::pager(None, older))
    }
}

fn row(visitor: &Visitor, hit: &Hit) -> Markup {
    match (&hit.message, &hit.turn) {
        (Some(message), _) => html! {
            li class={"row hit " (rows::priority_class(message.priority))} data-id=(message.id) {
                a.open href=(visitor.here_with("message", Some(&message.id.to_string()))) data-drawer="" {
                    span.who { span.from { (message.from) } span.arrow { "→" } span.to { (text::addresses(&message.to)) } }
                    span.what { span.subject { (text::heading(message)) } span.snippet { (marked(&hit.snippet)) } }
                }
                span.tail { @if let Some(id) = &message.conversation { (rows::conversation(visitor, id)) } (rows::door(&message.via)) (text::ago(visitor.now, message.at)) }
            }
        },
        (None, Some(turn)) => html! {
            li.row.hit {
                a.open href=(visitor.to(&format!("/conversations/{}#t{}", encoded(turn.conversation.as_str()), turn.seq))) {
                    span.who { span.from { (turn.author) } }
                    span.what { span.snippet { (marked(&hit.snippet)) } }
                }
                span.tail { (rows::conversation(visitor, &turn.conversation)) (text::ago(visitor.now, turn.at)) }
            }
        },
        (None, None) => html! {},
    }
}

/// A snippet with its matches marked; everything else is text.
fn marked(snippet: &str) -> Markup {
    // Bodies that are JSON are kept as they came; what is only its spelling is not shown.
    let snippet =
        snippet.replace("\\n", " ").replace("\\\"", "\"").replace("{\"text\":\"", "").replace("\"}", "");
    let mut parts = snippet.split(MARKS.0);
    let first = parts.next().unwrap_or("");
    let rest: Vec<(&str, &str)> = parts.map(|part| part.split_once(MARKS.1).unwrap_or((part, ""))).collect();
    html! { (first) @for (matched, after) in rest { mark { (matched) } (after) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_matches_are_marked() {
        let snippet = format!("a [b] <i> {}fox{} & {}fox{}", MARKS.0, MARKS.1, MARKS.0, MARKS.1);
        assert_eq!(marked(&snippet).into_string(), "a [b] &lt;i&gt; <mark>fox</mark> &amp; <mark>fox</mark>");
    }
}
