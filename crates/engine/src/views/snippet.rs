//! The words around the matches in a text. SQLite's own `snippet()` compares every match with every other, and runs the
//! query again for each row; here the first match is enough, and a text is read once.

use std::collections::HashSet;

/// Words shown before the first match, and in all.
const BEFORE: usize = 5;
const SHOWN: usize = 16;
/// Bytes of a text in which a match is looked for; one that is further down is not shown.
const LOOKED_AT: usize = 256 << 10;
/// Bytes of one snippet at most: a word can be as long as a message.
const MOST_BYTES: usize = 1 << 10;

/// The words that a query looks for.
#[derive(Debug, Default)]
pub(super) struct Words {
    whole: HashSet<String>,
    beginnings: Vec<String>,
}

impl Words {
    pub(super) fn of(query: &str) -> Self {
        let mut found = Self::default();
        for (from, to) in words(query) {
            let word = &query[from..to];
            // A quoted prefix has its star behind the quote.
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

/// The words around the first match, in the body or else in the subject; each match stands between the two marks.
pub(super) fn cut(body: &str, subject: Option<&str>, wanted: &Words, marks: (char, char)) -> String {
    around(body, wanted, marks)
        .or_else(|| around(subject?, wanted, marks))
        // Matched by the index alone, which folds accents, or far down; the beginning is as good as anything.
        .unwrap_or_else(|| beginning(body))
}

fn around(text: &str, wanted: &Words, (open, close): (char, char)) -> Option<String> {
    let text = head(text, LOOKED_AT);
    let mut before = [(0, 0); BEFORE];
    let mut passed = 0;
    let mut rest = words(text);
    let first = rest.by_ref().find(|&(from, to)| {
        let is_match = wanted.has(&text[from..to]);
        if !is_match {
            before[passed % BEFORE] = (from, to);
            passed += 1;
        }
        is_match
    })?;
    let start = match passed {
        0 => first.0,
        // The oldest of those that are kept.
        _ => before[if passed < BEFORE { 0 } else { passed % BEFORE }].0,
    };
    let start = if first.0 - start > MOST_BYTES / 2 { first.0 } else { start };
    let mut out = String::from(if start > 0 { "…" } else { "" });
    let mut done = start;
    let shown = SHOWN - passed.min(BEFORE);
    for (from, to) in std::iter::once(first).chain(rest).take(shown) {
        if out.len() + (to - done) > MOST_BYTES && done > start {
            break;
        }
        out.push_str(head(&text[done..from], MOST_BYTES));
        let word = head(&text[from..to], MOST_BYTES);
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
    let text = head(text, MOST_BYTES);
    let end = words(text).take(SHOWN).last().map_or(0, |(_, to)| to);
    format!("{}…", &text[..end])
}

/// The beginning of a text, no longer than that, and no half characters.
fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Where the words of a text begin and end.
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
        super::cut(text, None, &Words::of(query), ('[', ']'))
    }

    #[test]
    fn the_first_match_is_shown_among_its_neighbours() {
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
    fn prefixes_and_whole_words_are_told_apart() {
        assert_eq!(cut("foxes and a fox", "fox"), "foxes and a [fox]");
        assert_eq!(cut("foxes and a fox", "fox*"), "[foxes] and a [fox]");
        assert_eq!(cut("foxes and a fox", "\"fox\"*"), "[foxes] and a [fox]");
    }

    #[test]
    fn a_match_in_the_subject_is_shown_where_the_body_has_none() {
        assert_eq!(super::cut("see above", Some("the fox"), &Words::of("fox"), ('<', '>')), "the <fox>");
    }

    #[test]
    fn a_snippet_is_short_however_long_the_words_are() {
        let long = "ž".repeat(400_000);
        for (text, query) in [
            (format!("{long} fox {long}"), "fox"),
            (long.clone(), "ž*"),
            (format!("fox {}", format!("{long} ").repeat(20)), "fox"),
        ] {
            assert!(cut(&text, query).len() <= 4 * MOST_BYTES, "{}", cut(&text, query).len());
        }
    }
}
