//! Reservations: a tree of paths with holders, remaining time and overlaps.

use std::collections::BTreeMap;

use maud::{Markup, html};
use posthaste_engine::nouns::{Millis, Reservation, ReservationStatus, Seq};
use posthaste_engine::views::{Clash, ReservationQuery};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::query::Given;
use super::visitor::Visitor;
use super::{ROWS, message, rows, text};

/// Reservations in one tree.
const MOST: usize = 500;

/// `GET /ui/reservations`.
pub(super) async fn page(visitor: Visitor) -> Page {
    match shown(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Reservations, "Reservations", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let ended = given.is_on("ended");
    let after = given.seq("after")?.unwrap_or(0);
    let tabs = [
        (visitor.to("/reservations"), "In force", !ended),
        (visitor.to("/reservations?ended=1"), "All, ended too", ended),
    ];
    let body = match ended {
        true => history(visitor, after).await?,
        false => in_force(visitor).await?,
    };
    Ok(html! { h1 { "Reservations" } (frame::tabs("Which reservations", &tabs)) (body) })
}

async fn in_force(visitor: &Visitor) -> Result<Markup, DoorError> {
    let (held, clashes) =
        visitor.read(|view, caller| Ok((view.in_force(caller, MOST)?, view.clashes(caller, 99)?))).await?;
    let mut scopes: BTreeMap<&str, Vec<&Reservation>> = BTreeMap::new();
    for reservation in &held {
        scopes.entry(&reservation.scope).or_default().push(reservation);
    }
    let clashing: Vec<Spot> = clashes
        .iter()
        .flat_map(|clash| {
            let (mine, theirs) = (&clash.with.path, &clash.with.held_path);
            [(clash.reservation.seq, mine.clone()), (clash.with.reservation, theirs.clone())]
        })
        .collect();
    Ok(html! {
        div data-refresh="10" {
            @if !clashes.is_empty() {
                section.conflicts {
                    h2 { "Conflicts now" }
                    ul.plain { @for one in &clashes { li { (clash(visitor, one)) } } }
                }
            }
            @if held.is_empty() {
                (frame::empty("Paths that agents have reserved are shown here as a tree, with who holds them and for how long.", "posthaste demo"))
            }
            @for (scope, held) in scopes {
                section.tree {
                    h2 { (scope) " " span.dim { (held.len()) } }
                    (Node::of(&held).render(visitor, &clashing))
                }
            }
            @if held.len() == MOST { p.dim { "These lapse first; there are more." } }
        }
    })
}

async fn history(visitor: &Visitor, after: Seq) -> Result<Markup, DoorError> {
    let query = ReservationQuery { ended: true, after, limit: ROWS, ..ReservationQuery::default() };
    let page = visitor.read(move |view, caller| view.reservations(caller, &query)).await?;
    let next = page.next.map(|next| visitor.here_with("after", Some(&next.to_string())));
    Ok(html! {
        @if page.items.is_empty() { p.dim { "Nothing was ever reserved." } }
        ul.rows {
            @for held in &page.items {
                li.row {
                    span.who { (rows::agent(visitor, &held.owner)) }
                    span.what { (paths(held)) span.first { (held.scope) @if let Some(reason) = &held.reason { " · " (reason) } } }
                    span.tail { (status(held.status)) (release(visitor, held)) (text::ago(visitor.now, held.issued_at)) }
                }
            }
        }
        @if let Some(next) = next { nav.pager { a href=(next) { "Later →" } } }
    })
}

fn status(status: ReservationStatus) -> Markup {
    let class = match status {
        ReservationStatus::Active => "accent",
        ReservationStatus::Released => "",
        ReservationStatus::Expired => "warn",
    };
    rows::chip(class, status.as_str())
}

pub(super) fn paths(held: &Reservation) -> Markup {
    html! {
        @for path in held.paths.iter().take(3) { code { (text::cut(path, 60)) } " " }
        @if held.paths.len() > 3 { span.dim { "and " (held.paths.len() - 3) " more" } }
    }
}

/// Two that overlap, with both holders named.
pub(super) fn clash(visitor: &Visitor, clash: &Clash) -> Markup {
    let (held, with) = (&clash.reservation, &clash.with);
    html! {
        (rows::agent(visitor, &held.owner)) " " code { (with.path) } span.dim { " overlaps " }
        (rows::agent(visitor, &with.holder)) " " code { (with.held_path) } span.dim { " in " (held.scope) }
    }
}

/// A reservation's number and one of its patterns.
type Spot = (Seq, String);

/// A folder of the tree.
#[derive(Default)]
struct Node<'a> {
    below: BTreeMap<String, Node<'a>>,
    held: Vec<(&'a Reservation, &'a str)>,
}

impl<'a> Node<'a> {
    fn of(held: &[&'a Reservation]) -> Self {
        let mut root = Self::default();
        for reservation in held {
            for path in &reservation.paths {
                let mut node = &mut root;
                for part in path.split('/').filter(|part| !part.is_empty()).take(32) {
                    node = node.below.entry(part.to_owned()).or_default();
                }
                node.held.push((reservation, path));
            }
        }
        root
    }

    fn render(&self, visitor: &Visitor, clashing: &[Spot]) -> Markup {
        html! {
            ul {
                @for (name, node) in &self.below {
                    // Folders with nothing but one folder in them are one line.
                    @let (name, node) = node.collapsed(name);
                    @let striped = node.held.iter().any(|held| clashes(clashing, held));
                    li {
                        span class={"path" @if striped { " striped" }} {
                            code { (name) @if !node.below.is_empty() { "/" } }
                            @for held in &node.held { (holder(visitor, held.0, clashes(clashing, held))) }
                        }
                        @if !node.below.is_empty() { (node.render(visitor, clashing)) }
                    }
                }
            }
        }
    }

    fn collapsed(&self, name: &str) -> (String, &Self) {
        let (mut name, mut node) = (name.to_owned(), self);
        while node.held.is_empty() && node.below.len() == 1 {
            let Some((next, inner)) = node.below.iter().next() else { break };
            name = format!("{name}/{next}");
            node = inner;
        }
        (name, node)
    }
}

fn clashes(clashing: &[Spot], (held, path): &(&Reservation, &str)) -> bool {
    clashing.iter().any(|(seq, other)| *seq == held.seq && other == path)
}

fn holder(visitor: &Visitor, held: &Reservation, clashing: bool) -> Markup {
    html! {
        span class={"holder" @if clashing { " bad" }} title=[held.reason.as_deref()] {
            (ring(visitor.now, held)) (rows::agent(visitor, &held.owner))
            @if held.exclusive { " " (rows::chip(if clashing { "danger" } else { "" }, "alone")) } @else { " " (rows::chip("", "shared")) }
            " " span.dim { (text::until(visitor.now, held.expires_at)) " left" @if let Some(reason) = &held.reason { " · " (text::cut(reason, 60)) } }
            " " (release(visitor, held))
        }
    }
}

/// The time left, as a ring that closes.
fn ring(now: Millis, held: &Reservation) -> Markup {
    let whole = (held.expires_at - held.issued_at).max(1) as f64;
    let left = ((held.expires_at - now) as f64 / whole).clamp(0.0, 1.0);
    let round = 2.0 * std::f64::consts::PI * 6.0;
    let class = if left < 0.15 { "ring late" } else { "ring" };
    html! {
        svg class=(class) viewBox="0 0 16 16" aria-hidden="true" {
            circle.track cx="8" cy="8" r="6" {}
            circle.left cx="8" cy="8" r="6" stroke-dasharray={(format!("{:.1}", round * left)) " " (format!("{round:.1}"))} transform="rotate(-90 8 8)" {}
        }
    }
}

/// A button for the holder and for administrators: an agent that is gone cannot release its reservations.
fn release(visitor: &Visitor, held: &Reservation) -> Markup {
    let may = held.owner == *visitor.me() || visitor.is_admin();
    html! {
        @if may && held.status != ReservationStatus::Released {
            form.inline method="post" action=(visitor.to("/do/release")) {
                (frame::form_token(visitor))
                input type="hidden" name="reservation" value=(held.seq);
                input type="hidden" name="owner" value=(held.owner);
                input type="hidden" name="next" value=(visitor.here_with("done", None));
                button.small title={"Release it, as " (visitor.me())} { "Release" }
            }
        }
    }
}
