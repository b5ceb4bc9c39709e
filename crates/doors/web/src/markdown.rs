//! Markdown of strangers as HTML that can do nothing: what was HTML is shown as text, pictures become links, and links
//! lead to the web or to a mailbox or are no links.

use maud::{Markup, PreEscaped, Render};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The most that is rendered of one text; the rest is left to the export.
const MOST: usize = 64 << 10;
/// Text that nests deeper than this is shown as it was written, because every level costs a browser memory.
const DEEPEST: usize = 24;

/// Renders a text.
pub(super) fn render(text: &str) -> Markup {
    let end = (0..=MOST.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let shown = &text[..end];
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    if depth(shown, options) > DEEPEST {
        return maud::html! { pre { (shown) } };
    }
    let mut links: Vec<bool> = Vec::new();
    let harmless = Parser::new_ext(shown, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let leads = leads_somewhere_safe(&dest_url);
            links.push(leads);
            tag(if leads { opened(&dest_url) } else { "<span class=\"nolink\">".to_owned() })
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            let was_link = links.pop().unwrap_or(false);
            tag(if was_link { "</a>" } else { "</span>" }.to_owned())
        }
        other => other,
    });
    let mut out = String::with_capacity(shown.len() * 2);
    html::push_html(&mut out, harmless);
    if end < text.len() {
        out.push_str("<p class=\"dim\">… cut here; the export has all of it.</p>");
    }
    PreEscaped(out)
}

fn tag(text: String) -> Event<'static> {
    Event::InlineHtml(CowStr::from(text))
}

fn opened(target: &str) -> String {
    let mut escaped = String::new();
    target.render_to(&mut escaped);
    format!("<a href=\"{escaped}\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">")
}

/// Only whole addresses with a scheme that runs nothing.
fn leads_somewhere_safe(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    let plain = target.chars().all(|c| !c.is_control() && !c.is_whitespace());
    plain && ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

fn depth(text: &str, options: Options) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(_) => now += 1,
            Event::End(_) => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> String {
        render(text).into_string()
    }

    #[test]
    fn what_is_harmless_is_rendered() {
        assert_eq!(made("*a* **b** `c`").trim(), "<p><em>a</em> <strong>b</strong> <code>c</code></p>");
        assert!(
            made("[x](https://example.org/?a=1&b=2)").contains("href=\"https://example.org/?a=1&amp;b=2\"")
        );
    }

    #[test]
    fn what_could_do_something_does_nothing() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <script>alert(1)</script> b",
            "<img src=x onerror=alert(1)>",
            "<svg/onload=alert(1)>",
            "<iframe srcdoc='<script>1</script>'></iframe>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](java\tscript:alert(1))",
            "[x](data:text/html,<script>1</script>)",
            "[x](vbscript:x)",
            "[x](/ui/sign-out)",
            "[x](//evil.test)",
            "![x](https://evil.test/pixel.png)",
            "![x](x \"t\" onerror=alert(1))",
            "<https://ok.test/\"onmouseover=alert(1)>",
            "<javascript:alert(1)>",
            "[x]: javascript:alert(1)\n\n[x]",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<style>*{display:none}</style>",
            "[a](https://a.test \"x\" onclick=\"y\")",
        ] {
            let out = made(hostile);
            for tag in
                ["<script", "<img", "<svg", "<iframe", "<style", "<object", "<embed", "<form", "<input"]
            {
                assert!(!out.contains(tag), "{hostile} became {out}");
            }
            for start in out.match_indices("<a ").map(|(at, _)| &out[at..]) {
                let tag = &start[..start.find('>').unwrap()];
                assert!(tag.starts_with("<a href=\"http"), "{hostile} became {out}");
                assert_eq!(tag.matches("=\"").count(), 3, "{hostile} became {out}");
            }
        }
    }

    #[test]
    fn what_never_ends_is_cut() {
        assert!(made(&"ä".repeat(100_000)).len() < 140_000);
        assert!(made(&"> ".repeat(5_000)).starts_with("<pre>"));
        assert!(made(&"[".repeat(50_000)).len() < 200_000);
    }
}
