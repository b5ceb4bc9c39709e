//! The frame around every page: the rail with its counts, the bar with search and health, the drawer.

use axum::response::Html;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets;
use super::query::{Given, encoded};
use super::text;
use super::visitor::Visitor;

/// The entry of the rail that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Live,
    Inbox,
    Conversations,
    Tasks,
    Reservations,
    Agents,
    Search,
    Settings,
    None,
}

/// The rail, in order: where it leads, what it is called, the key after `g`, and its picture.
const RAIL: [(Section, &str, &str, &str, &str); 9] = [
    (Section::Overview, "", "Overview", "o", "M3 11 12 4l9 7M6 9.5V20h12V9.5"),
    (Section::Live, "/live", "Live", "l", "M3 12h4l3-7 4 14 3-7h4"),
    (Section::Inbox, "/inbox", "Inbox", "i", "M3 6h18v12H3zM3 7l9 7 9-7"),
    (Section::Conversations, "/conversations", "Conversations", "c", "M4 5h16v11H10l-4 4v-4H4z"),
    (Section::Tasks, "/tasks", "Tasks", "t", "M4 6l2 2 3-4M4 13l2 2 3-4M12 7h8M12 14h8M12 20h8M5 20h2"),
    (Section::Reservations, "/reservations", "Reservations", "r", "M6 11V8a6 6 0 0 1 12 0v3M4 11h16v9H4z"),
    (
        Section::Agents,
        "/agents",
        "Agents",
        "a",
        "M12 4a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7M5 20c0-4 3-6 7-6s7 2 7 6",
    ),
    (Section::Search, "/search", "Search", "s", "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14M16 16l5 5"),
    (Section::Settings, "/settings", "Settings", "e", "M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M6 14v6"),
];

/// What the frame shows of the server's state.
pub(super) struct State {
    unread: i64,
    clashes: usize,
    pub(super) pill: Pill,
}

/// The health of the server.
pub(super) struct Pill {
    pub(super) class: &'static str,
    pub(super) text: String,
    pub(super) title: String,
}

/// Commits that take longer than this make the pill amber, in milliseconds.
const SLOW_COMMIT_MS: u128 = 100;
/// Unread messages are counted up to this number.
const MAX_UNREAD: i64 = 999;

impl Visitor {
    pub(super) async fn state(&self) -> State {
        let me = self.me().clone();
        let seen = self
            .read(move |view, caller| {
                let unread = view.unread_up_to(caller, &me, MAX_UNREAD).unwrap_or(0);
                Ok((unread, view.clashes(caller, 99)?.len()))
            })
            .await;
        let (unread, clashes) = seen.unwrap_or((0, 0));
        State { unread, clashes, pill: self.pill().await }
    }

    async fn pill(&self) -> Pill {
        let report = self.host.check_health().await;
        let queue = self.engine.queue_depth();
        if let Some(problem) = report.problem {
            return Pill { class: "danger", text: text::cut(&problem, 60), title: problem };
        }
        let Some((at, took)) = self.engine.meter().synced() else {
            return Pill {
                class: "ok",
                text: "ready".to_owned(),
                title: format!("nothing written yet; queue {queue}"),
            };
        };
        let title =
            format!("a commit takes {:.1} ms of late; {queue} in the queue", took.as_secs_f64() * 1e3);
        match took.as_millis() {
            slow if slow > SLOW_COMMIT_MS => {
                Pill { class: "warn", text: format!("slow disk: {slow} ms"), title }
            }
            _ => {
                let ago = (self.now - at).max(0);
                let ago = if ago < 1_000 { format!("{ago} ms") } else { text::span(ago) };
                Pill { class: "ok", text: format!("synced {ago} ago"), title }
            }
        }
    }
}

/// A whole page.
pub(super) async fn render(
    visitor: &Visitor,
    section: Section,
    title: &str,
    body: Markup,
    drawer: Option<Markup>,
) -> Html<String> {
    let state = visitor.state().await;
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=[visitor.theme] {
            (head(&visitor.base, title))
            body data-root=(visitor.to("")) data-word=(visitor.form_token) {
                a.skip href="#main" { "To the content" }
                (rail(visitor, section, &state))
                header #top {
                    form.find role="search" action=(visitor.to("/search")) {
                        input type="search" name="q" placeholder="Search messages  /" aria-label="Search"
                            value=[given.get("q")] autocomplete="off" maxlength="1024";
                    }
                    (pill(&state.pill))
                    a.primary.button href=(visitor.to("/write")) title="Write a message (w)" { "Write" }
                    (me(visitor))
                }
                @if let Some(done) = given.get("done").and_then(said) { p.done role="status" { (done) } }
                main #main tabindex="-1" { (body) }
                aside #drawer aria-label="Details" { @if let Some(drawer) = drawer { (drawer) } }
                div #toast role="status" aria-live="polite" {}
                (keys())
            }
        }
    };
    Html(page.into_string())
}

/// The text of an action that is done. A closed list, so that a forged address cannot show other texts.
fn said(word: &str) -> Option<&'static str> {
    Some(match word {
        "acked" => "Acknowledged.",
        "read" => "Marked as read.",
        "said" => "Said.",
        "invited" => "Invited.",
        "closed" => "The conversation is closed.",
        "reopened" => "The conversation goes on.",
        "released" => "The reservation is released.",
        "paused" => "The agent is paused.",
        "resumed" => "The agent goes on.",
        "revoked" => "The token no longer opens anything.",
        "realm" => "The realm is there.",
        "peer" => "The peer is known.",
        "forgotten" => "The peer is forgotten.",
        "contact" => "The contact is settled.",
        _ => return None,
    })
}

pub(super) fn pill(pill: &Pill) -> Markup {
    html! { span #pill class={"pill " (pill.class)} title=(pill.title) { (pill.text) } }
}

fn head(base: &str, title: &str) -> Markup {
    let asset = |name| format!("{base}{}", assets::address(name));
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · posthaste" }
            link rel="icon" type="image/svg+xml" href=(asset("icon.svg"));
            link rel="stylesheet" href=(asset("page.css"));
            link rel="stylesheet" href=(asset("lanes.css"));
            script src=(asset("page.js")) defer {}
        }
    }
}

fn rail(visitor: &Visitor, section: Section, state: &State) -> Markup {
    let mark = |of: Section| match of {
        Section::Inbox if state.unread > 0 => Some((state.unread, "unread")),
        Section::Reservations if state.clashes > 0 => Some((state.clashes as i64, "conflicts")),
        _ => None,
    };
    html! {
        nav #rail aria-label="Pages" {
            (realms(visitor))
            @for (of, path, name, key, picture) in RAIL {
                a href=(visitor.to(path)) title={(name) "  g " (key)} data-go=(key) aria-current=[(of == section).then_some("page")] {
                    (icon(picture))
                    span.name { (name) }
                    @if let Some((n, what)) = mark(of) {
                        span class={"mark" @if of == Section::Reservations { " bad" }} title={(n) " " (what)} { @if n >= MAX_UNREAD { (MAX_UNREAD) "+" } @else { (n) } }
                    }
                }
            }
        }
    }
}

fn realms(visitor: &Visitor) -> Markup {
    let mine = visitor.engine.realm();
    let all =
        if visitor.is_admin() { visitor.host.office().realms().unwrap_or_default() } else { Vec::new() };
    html! {
        details.realms {
            summary title="The realm you look at" { (logo()) span.name { (mine) } }
            ul {
                @for realm in all.iter().take(50) {
                    li { a href={"/r/" (realm) "/ui"} aria-current=[(realm == mine).then_some("true")] { (realm) } }
                }
                @if all.is_empty() { li.dim { "Only " (mine) " is open to you." } }
            }
        }
    }
}

fn me(visitor: &Visitor) -> Markup {
    let other = if visitor.theme == Some("dark") { "light" } else { "dark" };
    let next = visitor.here.path_and_query().map_or("", |address| address.as_str());
    html! {
        details.me {
            summary title="Who you are here" { (visitor.me()) }
            div {
                p { b { (visitor.me()) } br; span.dim { (visitor.identity.role.as_str()) " in " (visitor.engine.realm()) } }
                p { a href=(visitor.to(&format!("/agents/{}", encoded(visitor.me().as_str())))) { "My entry" } }
                form method="post" action=(visitor.to("/theme")) {
                    (form_token(visitor))
                    input type="hidden" name="next" value=(next);
                    button name="theme" value=(other) { (if other == "dark" { "Dark" } else { "Light" }) }
                    @if visitor.theme.is_some() { button name="theme" value="system" { "As the system" } }
                }
                @if visitor.signed_in {
                    form method="post" action=(visitor.to("/sign-out")) { (form_token(visitor)) button { "Sign out" } }
                }
                p { button.link type="button" data-keys="" { "Keys  ?" } }
            }
        }
    }
}

/// The hidden field that proves that a form comes from this page.
pub(super) fn form_token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="word" value=(visitor.form_token); }
}

fn keys() -> Markup {
    let table = [
        ("/", "search"),
        ("j  k", "next, previous row"),
        ("Enter", "open the row"),
        ("r", "reply"),
        ("a", "acknowledge"),
        ("w", "write a message"),
        ("g then o l i c t r a s e", "go to a page"),
        ("p", "pause or follow the live stream"),
        ("Ctrl+Enter", "send"),
        ("Esc", "close the drawer"),
        ("?", "this list"),
    ];
    html! {
        dialog #keys aria-label="Keys" {
            h2 { "Keys" }
            dl { @for (key, what) in table { dt { kbd { (key) } } dd { (what) } } }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// A page without a frame, for visitors that are not signed in.
pub(super) fn bare(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("", title))
            body.bare { main #main { div.brand { (logo()) b { "posthaste" } } h1 { (title) } (body) } }
        }
    }
}

pub(super) fn icon(path: &str) -> Markup {
    html! {
        svg.icon viewBox="0 0 24 24" aria-hidden="true" { path d=(path) {} }
    }
}

pub(super) fn logo() -> Markup {
    PreEscaped(
        "<svg class=\"logo\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><rect x=\"1.5\" y=\"5\" width=\"21\" height=\"14\" \
         rx=\"3\"/><path d=\"M3 8l9 6 9-6\"/></svg>"
            .to_owned(),
    )
}

/// An empty list: what will be listed, and a command that brings it about.
pub(super) fn empty(what: &str, command: &str) -> Markup {
    html! {
        div.empty {
            p { (what) }
            @if !command.is_empty() { pre { code { (command) } } }
        }
    }
}

/// Links to the next and the first page of a list.
pub(super) fn pager(newer: Option<String>, older: Option<String>) -> Markup {
    html! {
        @if newer.is_some() || older.is_some() {
            nav.pager aria-label="More" {
                @if let Some(newer) = newer { a href=(newer) rel="prev" { "← Newest" } }
                @if let Some(older) = older { a href=(older) rel="next" { "Older →" } }
            }
        }
    }
}

/// Links of which one is the current page.
pub(super) fn tabs(label: &str, tabs: &[(String, &str, bool)]) -> Markup {
    html! {
        nav.tabs aria-label=(label) {
            @for (address, name, current) in tabs {
                a href=(address) aria-current=[current.then_some("true")] { (name) }
            }
        }
    }
}
