//! Times, sizes, counts and message texts for people: rounded, with the exact value on hover.

use maud::{Markup, html};
use posthaste_engine::nouns::{Address, Body, Message, Millis, TurnVisibility};
use posthaste_wire::time::to_rfc3339;
use serde_json::Value;

use posthaste_host::address;

/// How long ago something was, with the exact time on hover. The script keeps it current.
pub(super) fn ago(now: Millis, at: Millis) -> Markup {
    html! { time datetime=(to_rfc3339(at)) title=(to_rfc3339(at)) data-at=(at) { (span(now - at)) } }
}

/// How long it is until something.
pub(super) fn until(now: Millis, at: Millis) -> Markup {
    html! { time datetime=(to_rfc3339(at)) title=(to_rfc3339(at)) data-until=(at) { (span(at - now)) } }
}

/// A length of time in its largest unit.
pub(super) fn span(millis: Millis) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A length of time in its two largest units.
pub(super) fn length(millis: Millis) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A count, rounded, with the exact one on hover.
pub(super) fn count(n: i64) -> Markup {
    html! { span.n title=(n) { (rounded(n)) } }
}

pub(super) fn rounded(n: i64) -> String {
    match n {
        ..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{} k", n / 1_000),
        _ => format!("{:.1} M", n as f64 / 1_000_000.0),
    }
}

/// The time of day, for pictures.
pub(super) fn clock(at: Millis) -> String {
    to_rfc3339(at).get(11..19).unwrap_or_default().to_owned()
}

/// At most `most` characters, with an ellipsis where the text was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

/// The first line that is not empty.
pub(super) fn first_line(body: &Body) -> String {
    let text = match body {
        Body::Text(text) => text.clone(),
        Body::Json(json) => said_in(&json.value()),
    };
    let line = text.lines().map(plain).find(|line| !line.is_empty()).unwrap_or_default();
    cut(&line, 160)
}

/// A line of Markdown without its marks; nothing if it is all marks.
fn plain(line: &str) -> String {
    let line = line.trim();
    if line.starts_with("```") || line.chars().all(|c| "|-: =_*#".contains(c)) {
        return String::new();
    }
    let line = line.trim_start_matches(['#', '>', ' ']).trim_matches('|');
    line.replace(['`', '*'], "").replace('|', "·").trim().to_owned()
}

/// The text of a JSON value if it has one, else the value itself.
pub(super) fn said_in(value: &Value) -> String {
    prose(value).unwrap_or_else(|| value.to_string())
}

/// The text of a JSON value that is one, or has one under a usual name.
pub(super) fn prose(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => ["text", "body", "body_md", "message", "content", "task", "summary"]
            .iter()
            .find_map(|name| members.get(*name).and_then(Value::as_str))
            .map(str::to_owned),
        _ => None,
    }
}

/// A message's heading.
pub(super) fn heading(message: &Message) -> String {
    let named = message.subject.clone().filter(|subject| !subject.trim().is_empty());
    named.unwrap_or_else(|| match (message.kind.is_empty(), &message.body) {
        (false, _) => message.kind.clone(),
        (true, Body::Json(json)) => {
            let kind = json.value();
            let kind = kind.get("subject").or(kind.get("type")).and_then(Value::as_str);
            kind.map_or_else(|| "(no subject)".to_owned(), |kind| cut(kind, 120))
        }
        (true, Body::Text(_)) => "(no subject)".to_owned(),
    })
}

pub(super) fn addresses(to: &[Address]) -> String {
    // A broadcast of some doors is a list of sorts.
    if to.len() > 1 && to.iter().all(|address| matches!(address, Address::Kind(_))) {
        return "everyone".to_owned();
    }
    let shown: Vec<String> = to.iter().take(3).map(address::write).collect();
    match to.len() {
        0..=3 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), more - 3),
    }
}

/// Who may read a turn, where not everyone may.
pub(super) fn readers(visibility: &TurnVisibility) -> Option<String> {
    match visibility {
        TurnVisibility::All => None,
        TurnVisibility::Agents(agents) => {
            let names: Vec<&str> = agents.iter().map(|agent| agent.as_str()).collect();
            Some(format!("for {}", names.join(", ")))
        }
        TurnVisibility::Roles(roles) => Some(format!("for role {}", roles.join(", "))),
        TurnVisibility::Internal => Some("internal".to_owned()),
        TurnVisibility::Private => Some("private".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_for_people() {
        for (millis, said) in [
            (0, "now"),
            (999, "now"),
            (-5, "now"),
            (12_000, "12 s"),
            (125_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(span(millis), said);
        }
        assert_eq!(length(3_725_000), "1 h 2 min");
    }

    #[test]
    fn the_first_line_is_plain() {
        let said = |text: &str| first_line(&Body::Text(text.to_owned()));
        assert_eq!(said("\n```\n# **A** `b`\n"), "A b");
        assert_eq!(said("| --- | --- |\n| a | b |"), "a · b");
        assert_eq!(said(""), "");
    }

    #[test]
    fn cutting_respects_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
