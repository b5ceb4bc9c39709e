//! Swim lanes: a column per participant, time downwards, an arrow per message or turn. Drawn on the server, so that the picture
//! needs no script and can be exported.

use maud::{Markup, PreEscaped, html};
use posthaste_engine::nouns::{AgentId, Body, Millis, ThreadId, Turn, TurnVisibility};
use posthaste_engine::views::Tracked;

use super::rows::door_sign;
use super::text;

/// The most strokes in one picture; the rest is on other pages.
pub(super) const MOST: usize = 500;
/// The most lanes; further participants share the last one.
const LANES: usize = 12;
/// A pause longer than this is drawn shortened.
const SILENCE: Millis = 5 * 60 * 1_000;
/// Number of tints for threads, which are used in turn.
const TINTS: usize = 6;

const LEFT: f64 = 66.0;
const LANE: f64 = 104.0;
const HEAD: f64 = 34.0;
const ROW: f64 = 26.0;
const TEXT: f64 = 400.0;

/// The recipients of a stroke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// These.
    Agents(Vec<AgentId>),
    /// Everyone in the picture.
    Everyone,
}

/// One message or turn.
#[derive(Clone, Debug)]
pub(super) struct Stroke {
    pub(super) at: Millis,
    pub(super) from: AgentId,
    pub(super) reach: Reach,
    pub(super) text: String,
    pub(super) title: String,
    pub(super) link: Option<String>,
    pub(super) thread: Option<ThreadId>,
    pub(super) via: Option<String>,
}

/// More recipients than this are a broadcast.
const BROADCAST: usize = 5;

impl Stroke {
    /// A turn, with the message that it records, if it records one.
    pub(super) fn of_turn(turn: &Turn, message: Option<&Tracked>) -> Self {
        if let Some(message) = message {
            let stroke = Self::of_message(message);
            return Self { thread: turn.thread, ..stroke };
        }
        let text = text::said_in(&turn.content.value());
        let reach = match &turn.visibility {
            TurnVisibility::Agents(agents) => Reach::Agents(agents.clone()),
            TurnVisibility::Private => Reach::Agents(vec![turn.author.clone()]),
            _ => Reach::Everyone,
        };
        Self {
            at: turn.at,
            from: turn.author.clone(),
            reach,
            text: text::cut(&text::first_line(&Body::Text(text.clone())), 56),
            title: text::cut(&text, 400),
            link: Some(format!("#t{}", turn.seq)),
            thread: turn.thread,
            via: None,
        }
    }

    pub(super) fn of_message(tracked: &Tracked) -> Self {
        let message = &tracked.message;
        let to: Vec<AgentId> = tracked.deliveries.iter().map(|delivery| delivery.agent.clone()).collect();
        let broadcast = to.len() > BROADCAST || !message.to.iter().all(|address| address.is_direct());
        Self {
            at: message.at,
            from: message.from.clone(),
            reach: if broadcast { Reach::Everyone } else { Reach::Agents(to) },
            text: text::cut(&text::heading(message), 56),
            title: format!(
                "{} → {}\n{}\n{}",
                message.from,
                text::addresses(&message.to),
                text::heading(message),
                text::first_line(&message.body)
            ),
            link: Some(format!("?message={}", message.id)),
            thread: message.thread,
            via: Some(message.via.clone()),
        }
    }
}

/// The participants that have a lane, in the order in which they occur, and whether others share the last.
fn lanes(strokes: &[Stroke]) -> (Vec<AgentId>, bool) {
    let mut lanes: Vec<AgentId> = Vec::new();
    let mut add = |id: &AgentId| {
        if !lanes.contains(id) {
            lanes.push(id.clone());
        }
    };
    for stroke in strokes {
        add(&stroke.from);
        if let Reach::Agents(to) = &stroke.reach {
            to.iter().for_each(&mut add);
        }
    }
    let shared = lanes.len() > LANES;
    if shared {
        lanes.truncate(LANES - 1);
    }
    (lanes, shared)
}

/// The picture. With `style` it carries its own, to stand alone in a file.
pub(super) fn draw(strokes: &[Stroke], style: Option<&str>) -> Markup {
    let strokes = &strokes[..strokes.len().min(MOST)];
    let (lanes, shared) = lanes(strokes);
    let count = lanes.len() + usize::from(shared);
    let place = |id: &AgentId| lanes.iter().position(|lane| lane == id).unwrap_or(count.saturating_sub(1));
    let x = |lane: usize| LEFT + LANE * (lane as f64 + 0.5);
    let right = LEFT + LANE * count as f64;
    let mut threads: Vec<ThreadId> = Vec::new();
    let mut y = HEAD;
    let mut drawn = Vec::new();
    let mut before: Option<Millis> = None;
    for stroke in strokes {
        if let Some(gap) = before.map(|before| stroke.at - before).filter(|gap| *gap > SILENCE) {
            drawn.push(silence(y + ROW / 2.0, right, gap));
            y += ROW;
        }
        let tint = stroke.thread.map(|thread| {
            let known = threads.iter().position(|known| *known == thread);
            known.unwrap_or_else(|| {
                threads.push(thread);
                threads.len() - 1
            }) % TINTS
        });
        let shows_time = before.is_none_or(|before| text::clock(before) != text::clock(stroke.at));
        drawn.push(one(stroke, y, right, shows_time, tint, &|id| x(place(id)), (x(0), x(count.max(1) - 1))));
        before = Some(stroke.at);
        y += ROW;
    }
    let (width, height) = (right + TEXT, y + 12.0);
    html! {
        svg.lanes xmlns="http://www.w3.org/2000/svg" viewBox={"0 0 " (width) " " (height)} width=(width) height=(height) role="img"
            aria-label={"Who spoke to whom: " (strokes.len()) " messages and turns among " (count)} {
            @if let Some(style) = style { style { (PreEscaped(style.to_owned())) } rect.paper width=(width) height=(height) {} }
            @for (n, lane) in lanes.iter().enumerate() { (head(x(n), y, lane.as_str())) }
            @if shared { (head(x(count - 1), y, "others")) }
            @for stroke in drawn { (stroke) }
        }
    }
}

fn head(x: f64, bottom: f64, name: &str) -> Markup {
    html! {
        line.lane x1=(x) y1=(HEAD - 6.0) x2=(x) y2=(bottom) {}
        text.name x=(x) y="18" text-anchor="middle" { (text::cut(name, 14)) title { (name) } }
    }
}

fn silence(y: f64, right: f64, gap: Millis) -> Markup {
    html! {
        g.silence {
            line x1=(LEFT) y1=(y) x2=(right) y2=(y) {}
            text x=((LEFT + right) / 2.0) y=(y + 4.0) text-anchor="middle" { (text::span(gap)) }
        }
    }
}

fn one(
    stroke: &Stroke,
    top: f64,
    right: f64,
    shows_time: bool,
    tint: Option<usize>,
    x: &dyn Fn(&AgentId) -> f64,
    ends: (f64, f64),
) -> Markup {
    let y = top + ROW / 2.0;
    let from = x(&stroke.from);
    let tint = tint.map_or(String::new(), |tint| format!(" tint{tint}"));
    let picture = html! {
        rect.hit x="0" y=(top) width=(right + TEXT) height=(ROW) {}
        title { (text::clock(stroke.at)) "  " (stroke.title) }
        @if shows_time { text.time x=(LEFT - 10.0) y=(y + 4.0) text-anchor="end" { (text::clock(stroke.at)) } }
        @match &stroke.reach {
            Reach::Everyone => { rect.bar x=(ends.0 - 8.0) y=(y - 4.0) width=(ends.1 - ends.0 + 16.0) height="8" rx="4" {} }
            Reach::Agents(to) => { @for agent in to { (arrow(from, x(agent), y)) } }
        }
        circle cx=(from) cy=(y) r="4" {}
        @if let Some(via) = &stroke.via {
            text class={"sign " (door_sign(via).0)} x=(right + 6.0) y=(y + 4.0) { (door_sign(via).1) }
        }
        text.said x=(right + 22.0) y=(y + 4.0) { (stroke.text) }
    };
    html! {
        @match &stroke.link {
            Some(link) => { a class={"stroke" (tint)} href=(link) data-drawer=[link.starts_with("?message").then_some("")] { (picture) } }
            None => { g class={"stroke" (tint)} { (picture) } }
        }
    }
}

fn arrow(from: f64, to: f64, y: f64) -> Markup {
    let points = |tip: f64, back: f64| format!("{tip},{y} {back},{} {back},{}", y - 4.5, y + 4.5);
    html! {
        @if (from - to).abs() < 1.0 {
            path.self d=(format!("M{from} {y}h18v7h-12")) {}
        } @else {
            @let back = if to > from { to - 9.0 } else { to + 9.0 };
            line.shaft x1=(from) y1=(y) x2=(back) y2=(y) {}
            polygon points=(points(to, back)) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stroke(from: &str, to: &[&str], at: Millis) -> Stroke {
        let id = |name: &str| AgentId::new(name).unwrap();
        Stroke {
            at,
            from: id(from),
            reach: Reach::Agents(to.iter().map(|name| id(name)).collect()),
            text: "<b>said</b>".into(),
            title: "t".into(),
            link: None,
            thread: None,
            via: None,
        }
    }

    #[test]
    fn everything_is_drawn_and_escaped() {
        let strokes = [
            stroke("ann", &["bob"], 0),
            stroke("bob", &["ann", "cy"], 1_000),
            stroke("cy", &["cy"], 3_600_000),
        ];
        let svg = draw(&strokes, None).into_string();
        assert_eq!(svg.matches("class=\"lane\"").count(), 3);
        assert_eq!(svg.matches("<polygon").count(), 3, "one head for each recipient that is not the sender");
        assert_eq!(svg.matches("class=\"silence\"").count(), 1);
        assert!(!svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn a_crowd_shares_a_lane_and_a_flood_is_bounded() {
        let names: Vec<String> = (0..40).map(|n| format!("agent-{n}")).collect();
        let strokes: Vec<Stroke> =
            (0..2_000).map(|n| stroke(&names[n % 40], &[&names[(n + 1) % 40]], n as i64)).collect();
        let svg = draw(&strokes, None).into_string();
        assert_eq!(svg.matches("class=\"lane\"").count(), LANES);
        assert_eq!(svg.matches("class=\"hit\"").count(), MOST);
        assert!(svg.contains("others"));
    }
}
