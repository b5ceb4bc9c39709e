//! Who writes to whom, as a picture: at most sixty nodes on a circle, edges by weight. Beyond that, scopes stand for
//! their members.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use maud::{Markup, html};
use posthaste_engine::nouns::AgentId;

use super::answers::DoorError;
use super::frame;
use super::query::encoded;
use super::text;
use super::visitor::Visitor;

const MAX_NODES: usize = 60;
const MAX_LINKS: usize = 400;
const SIZE: f64 = 720.0;

pub(super) async fn page(visitor: &Visitor) -> Result<Markup, DoorError> {
    let (links, scopes) = visitor
        .read(|view, caller| {
            let links = view.links(caller, MAX_LINKS)?;
            let mut scopes: BTreeMap<AgentId, String> = BTreeMap::new();
            let named = links.iter().flat_map(|link| [&link.from, &link.to]);
            for id in named {
                if !scopes.contains_key(id) {
                    let agent = view.agent(caller, id).ok();
                    let scope =
                        agent.and_then(|agent| agent.scopes.first().map(|scope| format!("scope:{scope}")));
                    scopes.insert(id.clone(), scope.unwrap_or_else(|| "others".to_owned()));
                }
            }
            Ok((links, scopes))
        })
        .await?;
    let grouped = scopes.len() > MAX_NODES;
    let name = |id: &AgentId| match grouped {
        true => scopes.get(id).cloned().unwrap_or_default(),
        false => id.to_string(),
    };
    let mut edges: BTreeMap<(String, String), i64> = BTreeMap::new();
    for link in &links {
        *edges.entry((name(&link.from), name(&link.to))).or_default() += link.messages;
    }
    let mut weight: BTreeMap<&str, i64> = BTreeMap::new();
    for ((from, to), messages) in &edges {
        *weight.entry(from).or_default() += messages;
        *weight.entry(to).or_default() += messages;
    }
    let mut nodes: Vec<(&str, i64)> = weight.into_iter().collect();
    nodes.sort_by_key(|(_, messages)| std::cmp::Reverse(*messages));
    nodes.truncate(MAX_NODES);
    nodes.sort();
    if nodes.is_empty() {
        return Ok(frame::empty(
            "The links between agents that write to each other are drawn here.",
            "posthaste demo",
        ));
    }
    Ok(html! {
        p.dim { "From the latest messages that you may read" @if grouped { ", by scope because there are many agents" } "." }
        div.scroll { (draw(visitor, &nodes, &edges, grouped)) }
    })
}

fn draw(
    visitor: &Visitor,
    nodes: &[(&str, i64)],
    edges: &BTreeMap<(String, String), i64>,
    grouped: bool,
) -> Markup {
    let centre = SIZE / 2.0;
    let radius = centre - 110.0;
    let angle = |n: usize| TAU * n as f64 / nodes.len() as f64 - TAU / 4.0;
    let at = |n: usize| (centre + radius * angle(n).cos(), centre + radius * angle(n).sin());
    let place = |name: &str| nodes.iter().position(|(known, _)| *known == name);
    let most = edges.values().copied().max().unwrap_or(1).max(1) as f64;
    html! {
        svg.graph viewBox={"0 0 " (SIZE) " " (SIZE)} width=(SIZE) height=(SIZE) role="img" aria-label={"Links between " (nodes.len()) (if grouped { " groups" } else { " agents" })} {
            @for ((from, to), messages) in edges {
                @if let (Some(a), Some(b)) = (place(from), place(to)) {
                    @let (x1, y1) = at(a);
                    @let (x2, y2) = at(b);
                    @let share = *messages as f64 / most;
                    // Bent to one side of the way, so that there and back are two lines.
                    @let (mx, my) = ((x1 + x2) / 2.0 * 0.7 + centre * 0.3 + (y2 - y1) * 0.08, (y1 + y2) / 2.0 * 0.7 + centre * 0.3 - (x2 - x1) * 0.08);
                    @if a == b {
                        circle.edge cx=(num(x1)) cy=(num(y1)) r="14" stroke-width="1" {}
                    } @else {
                        path.edge d={"M" (num(x1)) " " (num(y1)) "Q" (num(mx)) " " (num(my)) " " (num(x2)) " " (num(y2))}
                            stroke-width=(num(0.8 + 5.0 * share)) stroke-opacity=(num(0.25 + 0.6 * share)) {
                            title { (from) " → " (to) ": " (messages) " messages" }
                        }
                    }
                }
            }
            @for (n, (name, messages)) in nodes.iter().enumerate() {
                @let (x, y) = at(n);
                @let flip = angle(n).cos() < -0.01;
                @let (dx, anchor) = if flip { (-12.0, "end") } else { (12.0, "start") };
                @let link = if grouped { visitor.to(&format!("/agents?scope={}", encoded(name.trim_start_matches("scope:")))) } else { visitor.to(&format!("/agents/{}", encoded(name))) };
                a href=(link) {
                    circle.node cx=(num(x)) cy=(num(y)) r=(num(4.0 + (*messages as f64).sqrt().min(14.0) * 0.5)) {}
                    text x=(num(x + dx)) y=(num(y + 4.0)) text-anchor=(anchor) { (text::cut(name, 18)) title { (name) ": " (messages) " messages" } }
                }
            }
        }
    }
}

fn num(value: f64) -> String {
    format!("{value:.1}")
}
