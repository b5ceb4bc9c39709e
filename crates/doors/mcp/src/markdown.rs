//! Refuses Markdown that would run scripts where it is displayed. Code blocks that show such a script are taken.

use pulldown_cmark::{Event, Parser, Tag};

use super::errors::DoorError;

/// Words without which a body needs no parsing.
const SUSPECT: [&str; 10] = [
    "<script",
    "<iframe",
    "<object",
    "<embed",
    "<svg",
    "<link",
    "<meta",
    "javascript:",
    "vbscript:",
    "data:text/html",
];

/// Refuses a body with scripts outside of code.
pub(super) fn check(body: &str) -> Result<(), DoorError> {
    let lower = body.to_ascii_lowercase();
    let handler = has_handler(&lower);
    if !handler && !SUSPECT.iter().any(|word| lower.contains(word)) {
        return Ok(());
    }
    for event in Parser::new(body) {
        let bad = match &event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let html = html.to_ascii_lowercase();
                SUSPECT.iter().any(|word| html.contains(word)) || has_handler(&html)
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let squeezed: String =
                    dest_url.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
                let squeezed = squeezed.to_ascii_lowercase();
                ["javascript:", "vbscript:", "data:text/html"].iter().any(|start| squeezed.starts_with(start))
            }
            _ => false,
        };
        if bad {
            return Err(DoorError::new(
                "UNSAFE_MARKDOWN",
                "body_md holds a script, a frame, an event handler or a javascript: link. \
                 To show such code, put it between backticks or into a fenced block; else leave it out",
            ));
        }
    }
    Ok(())
}

/// Whether some tag has an attribute such as `onclick=`.
fn has_handler(lower: &str) -> bool {
    lower.split('<').skip(1).any(|rest| {
        let tag = rest.split('>').next().unwrap_or_default();
        tag.split([' ', '\t', '\n', '/', '"', '\'']).any(|word| {
            word.strip_prefix("on")
                .and_then(|rest| rest.split_once('='))
                .is_some_and(|(name, _)| name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_lowercase()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_refused_and_text_about_them_is_not() {
        for bad in [
            "hello <script>alert(1)</script>",
            "<SCRIPT src=x></SCRIPT>",
            "[click](javascript:alert(1))",
            "[click](java\u{0}script:alert(1)) <b onclick=\"x()\">",
            "![x](data:text/html;base64,AAAA)",
            "<img src=x onerror=alert(1)>",
            "<iframe src='//x'></iframe>",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        for good in [
            "plain",
            "a < b and `<script>` is code",
            "```html\n<script>alert(1)</script>\n```",
            "    <script>indented code</script>",
            "see https://example.org/?on=1 and <https://example.org>",
            "the `onclick=` attribute, javascript: the word",
            "<b>bold</b> # Plan\n- [ ] tests é 漢字 🚀",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
    }
}
