//! The rate plot: messages per minute as an area, stacked by door. Every minute leads to that moment of the live page.

use std::collections::BTreeMap;

use maud::{Markup, html};
use posthaste_engine::views::Minute;

use super::rows::{DOORS, door_sign, legend};
use super::text;
use super::visitor::Visitor;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 96.0;

pub(super) fn rate(visitor: &Visitor, minutes: &[Minute]) -> Markup {
    let total = |minute: &Minute| minute.messages.values().sum::<i64>();
    let most = minutes.iter().map(total).max().unwrap_or(0).max(1);
    let step = WIDTH / minutes.len().max(1) as f64;
    let bands = bands(minutes);
    let x = |n: usize| step * (n as f64 + 0.5);
    let y = |count: i64| HEIGHT - HEIGHT * count as f64 / most as f64;
    let sum: i64 = minutes.iter().map(total).sum();
    let lately = minutes.last().map_or(0, total);
    let shown: Vec<&str> = bands.iter().map(|(via, _)| via.as_str()).collect();
    let estimated = minutes.iter().any(|minute| !minute.exact);
    let mut floor = vec![0_i64; minutes.len()];
    let mut areas: Vec<(&str, String)> = Vec::new();
    for (via, counts) in &bands {
        let top: Vec<i64> = floor.iter().zip(counts).map(|(floor, count)| floor + count).collect();
        areas.push((via, area(&floor, &top, &x, &y)));
        floor = top;
    }
    html! {
        figure.rate {
            figcaption {
                span { b { (text::count(lately)) } " messages this minute, " (text::count(sum)) " in the last hour" @if estimated { span.dim title="Busy minutes are estimated from a sample" { " (about)" } } }
                (legend(&shown))
            }
            div.plot {
                span.scale { (text::rounded(most)) }
                svg viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img" aria-label={(sum) " messages in the last hour"} {
                    @for (via, path) in &areas { path class={"area " (door_sign(via).0)} d=(path) {} }
                    @for (n, minute) in minutes.iter().enumerate() {
                        a href=(visitor.to(&format!("/live?at={}", minute.from))) tabindex="-1" {
                            rect.minute x=(format!("{:.1}", step * n as f64)) y="0" width=(format!("{step:.1}")) height=(HEIGHT) {
                                title { (text::clock(minute.from)) ": " (total(minute)) " messages, " (minute.events) " events" }
                            }
                        }
                    }
                }
            }
            div.axis aria-hidden="true" { span { "60 min ago" } span { "30 min" } span { "now" } }
        }
    }
}

/// The counts by door: the known doors in their order, then all others together.
fn bands(minutes: &[Minute]) -> Vec<(String, Vec<i64>)> {
    let mut bands: BTreeMap<usize, (String, Vec<i64>)> = BTreeMap::new();
    for (n, minute) in minutes.iter().enumerate() {
        for (via, count) in &minute.messages {
            let place = DOORS.iter().position(|door| door == via).unwrap_or(DOORS.len());
            let name = DOORS.get(place).map_or("other", |door| *door);
            let (_, counts) = bands.entry(place).or_insert_with(|| (name.to_owned(), vec![0; minutes.len()]));
            counts[n] += count;
        }
    }
    bands.into_values().collect()
}

fn area(floor: &[i64], top: &[i64], x: &dyn Fn(usize) -> f64, y: &dyn Fn(i64) -> f64) -> String {
    let point = |n: usize, count: i64| format!("{:.1} {:.1}", x(n), y(count));
    let there = top.iter().enumerate().map(|(n, count)| point(n, *count));
    let back = floor.iter().enumerate().rev().map(|(n, count)| point(n, *count));
    format!("M{}Z", there.chain(back).collect::<Vec<_>>().join("L"))
}
