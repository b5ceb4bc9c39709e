//! The words around a match in a long text. SQLite's own way looks at every match against every other, which a letter
//! that repeats one word could be made to abuse; here the first match is enough.

/// Texts longer than this are cut here.
pub(super) const LONG: usize = 16 << 10;
/// Words shown before the match, and in all.
const BEFORE: usize = 5;
const SHOWN: usize = 16;

/// The words around the first match of any word of a query, which stands between the two marks.
pub(super) fn cut(text: &str, query: &str, (open, close): (char, char)) -> String {
    let wanted: Vec<String> = words(query)
        .map(|(from, to)| &query[from..to])
        .filter(|word| !matches!(*word, "AND" | "OR" | "NOT" | "NEAR"))
        .map(str::to_lowercase)
        .collect();
    let matches = |from: usize, to: usize| {
        let word = text[from..to].to_lowercase();
        wanted.iter().any(|wanted| word.starts_with(wanted.as_str()))
    };
    let mut before: Vec<(usize, usize)> = Vec::new();
    let mut rest = words(text);
    let found = rest.by_ref().find(|&(from, to)| {
        let is_match = matches(from, to);
        if !is_match {
            if before.len() == BEFORE {
                before.remove(0);
            }
            before.push((from, to));
        }
        is_match
    });
    let Some((from, to)) = found else {
        // Matched by the index alone, which folds accents; the beginning is as good as anything.
        let end = words(text).take(SHOWN).last().map_or(0, |(_, to)| to);
        return format!("{}…", &text[..end]);
    };
    let start = before.first().map_or(from, |(from, _)| *from);
    let end = rest.take(SHOWN - BEFORE).last().map_or(to, |(_, to)| to);
    let head = if start > 0 { "…" } else { "" };
    let tail = if end < text.len() { "…" } else { "" };
    format!("{head}{}{open}{}{close}{}{tail}", &text[start..from], &text[from..to], &text[to..end])
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
    fn cut(text: &str, query: &str) -> String {
        super::cut(text, query, ('[', ']'))
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
}
