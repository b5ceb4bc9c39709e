//! Translates a search query into the query language of SQLite's full-text index.

use super::Viewed;
use crate::error::Refusal;
use crate::nouns::AgentId;

/// Words in all phrases of one query together.
const MAX_WORDS: usize = 64;

/// A query for the full-text index, and the conditions that the index does not decide.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedQuery {
    /// The query for the index.
    pub(super) text: String,
    /// The words to highlight in a snippet.
    pub(super) shown: String,
    /// `from:NAME`.
    pub(super) from: Option<AgentId>,
}

/// Parses a query: words, `"phrases"`, `prefix*`, AND, OR, NOT, `-word`, `subject:word`, `from:name`. Words with
/// hyphens and the like, which the index would take for operators, are quoted. A query with brackets is passed on as it
/// is.
pub(super) fn parse(text: &str, max_phrases: usize) -> Viewed<ParsedQuery> {
    let text = text.trim();
    if text.is_empty() {
        return Err(bad("it is empty"));
    }
    if text.len() > 1_024 {
        return Err(bad("it is longer than 1024 bytes"));
    }
    let parsed = match text.contains('(') {
        true => ParsedQuery { text: text.to_owned(), shown: text.to_owned(), from: None },
        false => translated(text)?,
    };
    check_phrases(&parsed.text, max_phrases)?;
    Ok(parsed)
}

fn bad(why: impl Into<String>) -> crate::error::EngineError {
    Refusal::BadQuery { why: why.into() }.into()
}

fn translated(text: &str) -> Viewed<ParsedQuery> {
    let mut parsed = ParsedQuery::default();
    let (mut wanted, mut unwanted) = (Vec::<String>::new(), Vec::new());
    let pieces = pieces(text)?;
    for (n, piece) in pieces.iter().enumerate() {
        if is_operator(piece) {
            let is_word =
                |at: Option<usize>| at.and_then(|at| pieces.get(at)).is_some_and(|piece| !is_operator(piece));
            if !is_word(n.checked_sub(1)) || !is_word(Some(n + 1)) {
                return Err(bad(format!(
                    "{piece} must stand between two words; to look for the word itself write \"{piece}\""
                )));
            }
            wanted.push((*piece).to_owned());
            continue;
        }
        if let Some(rest) = piece.strip_prefix('-').filter(|rest| has_words(rest)) {
            unwanted.push(phrase(rest));
        } else if let Some(name) = piece.strip_prefix("from:").and_then(|name| AgentId::new(name).ok()) {
            parsed.from = Some(name);
        } else if let Some(rest) = piece.strip_prefix("subject:").filter(|rest| has_words(rest)) {
            wanted.push(format!("subject : {}", phrase(rest)));
            parsed.shown = format!("{} {rest}", parsed.shown);
        } else {
            wanted.push(phrase(piece));
            parsed.shown = format!("{} {piece}", parsed.shown);
        }
    }
    if wanted.is_empty() {
        return Err(bad("it needs a word to look for, beside what it excludes and who wrote it"));
    }
    parsed.text = wanted.join(" ");
    if !unwanted.is_empty() {
        parsed.text = format!("({}) NOT ({})", parsed.text, unwanted.join(" OR "));
    }
    Ok(parsed)
}

/// Words and quoted phrases; a phrase keeps its quotation marks and what is directly attached to it.
fn pieces(text: &str) -> Viewed<Vec<&str>> {
    let mut pieces = Vec::new();
    let mut start = None;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        quoted ^= c == '"';
        match (start, c.is_whitespace() && !quoted) {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                pieces.push(&text[from..at]);
                start = None;
            }
            _ => {}
        }
    }
    if quoted {
        return Err(bad("a quotation mark is not closed"));
    }
    pieces.extend(start.map(|from| &text[from..]));
    Ok(pieces)
}

fn is_operator(piece: &str) -> bool {
    matches!(piece, "AND" | "OR" | "NOT")
}

fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// A word or phrase in the syntax of the index.
fn phrase(piece: &str) -> String {
    let (stem, star) = match piece.strip_suffix('*') {
        Some(stem) if !stem.is_empty() => (stem, "*"),
        _ => (piece, ""),
    };
    let is_quoted =
        stem.len() > 1 && stem.starts_with('"') && stem.ends_with('"') && stem.matches('"').count() == 2;
    let is_operator = matches!(stem, "AND" | "OR" | "NOT" | "NEAR");
    if is_quoted || (!is_operator && stem.chars().all(|c| c.is_alphanumeric() || c == '_')) {
        return format!("{stem}{star}");
    }
    format!("\"{}\"{star}", stem.replace('"', " "))
}

/// Refuses queries with too many phrases, because the cost of each match grows with them. A word, a prefix and a quoted
/// phrase are one phrase each.
fn check_phrases(query: &str, max_phrases: usize) -> Viewed<()> {
    let (mut phrases, mut words) = (0, 0);
    for (n, part) in query.split('"').enumerate() {
        let quoted = n % 2 == 1;
        let found = part
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty() && (quoted || !matches!(*word, "AND" | "OR" | "NOT" | "NEAR")))
            .count();
        words += found;
        phrases += if quoted { found.min(1) } else { found };
    }
    if phrases > max_phrases {
        return Err(bad(format!("it has {phrases} words and phrases; a search takes at most {max_phrases}")));
    }
    if words > MAX_WORDS {
        return Err(bad(format!("its phrases have {words} words; a search takes at most {MAX_WORDS}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // F50
    #[test]
    fn queries_are_translated() {
        for (text, expected) in [
            ("ship it", "ship it"),
            ("ship -yes", "(ship) NOT (yes)"),
            ("ship -yes -\"no way\"", "(ship) NOT (yes OR \"no way\")"),
            ("a OR b", "a OR b"),
            ("\"AND\"", "\"AND\""),
            ("a AND b NOT c", "a AND b NOT c"),
            ("subject:build", "subject : build"),
            ("subject:\"the build\" green", "subject : \"the build\" green"),
            ("release-candidate", "\"release-candidate\""),
            ("C++ - src/a.rs", "\"C++\" \"-\" \"src/a.rs\""),
            ("fo*", "fo*"),
            ("a\"b c\"", "\"a b c \""),
        ] {
            assert_eq!(parse(text, 99).unwrap().text, expected, "{text}");
        }
        let parsed = parse("from:ann lunch", 99).unwrap();
        assert_eq!((parsed.text.as_str(), parsed.from), ("lunch", AgentId::new("ann").ok()));
        for text in ["", "-yes", "from:ann", "\"open", "AND", "ship AND", "OR ship", "a AND OR b"] {
            assert!(parse(text, 99).is_err(), "{text}");
        }
    }
}
