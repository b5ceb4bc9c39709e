//! The words around the matches in a text. SQLite's own `snippet()` compares every match with every other and runs the
//! query again for each row; here only the first match counts, and a text is scanned once.

use std::collections::HashSet;

/// Words shown before the first match.
const WORDS_BEFORE_MATCH: usize = 5;
/// Words shown in all.
const SNIPPET_WORDS: usize = 16;
/// Bytes of a text that are searched for a match; a match further down is not shown.
const SCANNED_BYTES: usize = 256 << 10;
/// Bytes of one snippet at most: a word can be as long as a message.
const MAX_SNIPPET_BYTES: usize = 1 << 10;

/// The words of a query.
#[derive(Debug, Default)]
pub(super) struct Words {
    whole: HashSet<String>,
    beginnings: Vec<String>,
}

impl Words {
    pub(super) fn parse(query: &str) -> Self {
        let mut found = Self::default();
        for (from, to) in words(query) {
            let word = &query[from..to];
            // A quoted prefix has its star after the quote.
            let rest = query[to..].strip_prefix('"').unwrap_or(&query[to..]);
            if rest.starts_with('*') {
                found.beginnings.push(word.to_lowercase());
            } else if !matches!(word, "AND" | "OR" | "NOT" | "NEAR") {
                found.whole.insert(word.to_lowercase());
            }
        }
        found
    }

    fn has(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        self.whole.contains(&word) || self.beginnings.iter().any(|start| word.starts_with(start.as_str()))
    }
}

/// The words around the first match, in the body or else in the subject; each match is between the two marks.
pub(super) fn cut(body: &str, subject: Option<&str>, wanted: &Words, marks: (char, char)) -> String {
    around(body, wanted, marks)
        .or_else(|| around(subject?, wanted, marks))
        // Matched only by the index, which ignores accents, or far down: the beginning of the text is shown.
        .unwrap_or_else(|| beginning(body))
}

fn around(text: &str, wanted: &Words, (open, close): (char, char)) -> Option<String> {
    let text = head(text, SCANNED_BYTES);
    let mut before = [(0, 0); WORDS_BEFORE_MATCH];
    let mut passed = 0;
    let mut rest = words(text);
    let first = rest.by_ref().find(|&(from, to)| {
        let is_match = wanted.has(&text[from..to]);
        if !is_match {
            before[passed % WORDS_BEFORE_MATCH] = (from, to);
            passed += 1;
        }
        is_match
    })?;
    let start = match passed {
        0 => first.0,
        // The oldest of the words that are kept.
        _ => before[if passed < WORDS_BEFORE_MATCH { 0 } else { passed % WORDS_BEFORE_MATCH }].0,
    };
    let start = if first.0 - start > MAX_SNIPPET_BYTES / 2 { first.0 } else { start };
    let mut out = String::from(if start > 0 { "…" } else { "" });
    let mut done = start;
    let shown = SNIPPET_WORDS - passed.min(WORDS_BEFORE_MATCH);
    for (from, to) in std::iter::once(first).chain(rest).take(shown) {
        if out.len() + (to - done) > MAX_SNIPPET_BYTES && done > start {
            break;
        }
        out.push_str(head(&text[done..from], MAX_SNIPPET_BYTES));
        let word = head(&text[from..to], MAX_SNIPPET_BYTES);
        if wanted.has(&text[from..to]) {
            out.extend([open]);
            out.push_str(word);
            out.extend([close]);
        } else {
            out.push_str(word);
        }
        done = to;
    }
    if done < text.len() {
        out.push('…');
    }
    Some(out)
}

fn beginning(text: &str) -> String {
    let text = head(text, MAX_SNIPPET_BYTES);
    let end = words(text).take(SNIPPET_WORDS).last().map_or(0, |(_, to)| to);
    format!("{}…", &text[..end])
}

/// The beginning of a text, at most `max_bytes` long, cut at a character boundary.
fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// The byte ranges of the words of a text.
fn words(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (from, _) = rest.by_ref().find(|(_, c)| c.is_alphanumeric())?;
        let mut to = text.len();
        while let Some(&(at, c)) = rest.peek() {
            if !c.is_alphanumeric() {
                to = at;
                break;
            }
            rest.next();
        }
        Some((from, to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, query: &str) -> String {
        super::cut(text, None, &Words::parse(query), ('[', ']'))
    }

    #[test]
    fn the_first_match_is_shown_with_the_words_around_it() {
        let text = format!("{}the quick brown Fox jumps over {}", "dull ".repeat(9), "lazy dogs ".repeat(9));
        let shown = cut(&text, "fox*");
        assert!(shown.starts_with("…dull dull the quick brown [Fox] jumps over lazy"), "{shown}");
        assert!(shown.ends_with('…'), "{shown}");
        assert_eq!(cut("only this word", "this AND that"), "only [this] word");
        assert_eq!(cut("Zoë im Büro", "\"büro\""), "Zoë im [Büro]");
        assert_eq!(cut("nothing here", "absent"), "nothing here…");
        assert_eq!(cut("", "absent"), "…");
    }

    #[test]
    fn prefixes_match_longer_words_and_whole_words_do_not() {
        assert_eq!(cut("foxes and a fox", "fox"), "foxes and a [fox]");
        assert_eq!(cut("foxes and a fox", "fox*"), "[foxes] and a [fox]");
        assert_eq!(cut("foxes and a fox", "\"fox\"*"), "[foxes] and a [fox]");
    }

    #[test]
    fn the_subject_is_shown_if_only_it_matches() {
        assert_eq!(super::cut("see above", Some("the fox"), &Words::parse("fox"), ('<', '>')), "the <fox>");
    }

    #[test]
    fn snippets_of_long_words_are_short() {
        let long = "ž".repeat(400_000);
        for (text, query) in [
            (format!("{long} fox {long}"), "fox"),
            (long.clone(), "ž*"),
            (format!("fox {}", format!("{long} ").repeat(20)), "fox"),
        ] {
            assert!(cut(&text, query).len() <= 4 * MAX_SNIPPET_BYTES, "{}", cut(&text, query).len());
        }
    }
}
