//! Plain text: sentences, words, names, and clipping.

use std::collections::BTreeSet;

/// Words too common to say what a sentence is about.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "both", "but", "by", "can", "could", "did", "do", "does", "doing",
    "done", "down", "each", "few", "for", "from", "further", "get", "go", "got", "had", "has", "have",
    "having", "he", "hello", "her", "here", "hers", "hi", "him", "his", "how", "i", "if", "in", "into", "is",
    "it", "its", "just", "let", "me", "more", "most", "my", "no", "nor", "not", "now", "of", "off", "ok",
    "okay", "on", "once", "only", "or", "other", "our", "ours", "out", "over", "own", "please", "same",
    "she", "should", "so", "some", "such", "sure", "than", "thank", "thanks", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us",
    "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "why", "will",
    "with", "would", "yeah", "yes", "you", "your", "yours",
];

/// What may follow the final punctuation of a sentence: quotes, brackets and Markdown emphasis.
const CLOSERS: &[char] = &['"', '\'', ')', ']', '”', '’', '»', '*', '_', '`'];

/// At most `longest` characters of a text; if it is cut, the last character is an ellipsis.
pub(super) fn clip(text: &str, longest: usize) -> String {
    if text.chars().nth(longest).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// The beginning of a text, at most `bytes` long, cut at a character boundary.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Text with white space collapsed and control characters removed, so that an entry is one printable line.
pub(super) fn tidy(text: &str) -> String {
    let words =
        text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Splits a line after `.`, `!` or `?` before a space, and after their full-width forms anywhere.
///
/// A full stop before a lower-case character is taken for an abbreviation, as in "e.g. this".
pub(super) fn sentences(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for (at, mark) in line.char_indices() {
        if !matches!(mark, '.' | '!' | '?' | '。' | '！' | '？') {
            continue;
        }
        let rest = line[at + mark.len_utf8()..].trim_start_matches(CLOSERS);
        let ends = match mark {
            '.' => rest.strip_prefix(' ').is_some_and(|next| !next.starts_with(char::is_lowercase)),
            '!' | '?' => rest.starts_with(' '),
            _ => true,
        };
        let end = line.len() - rest.len();
        if ends {
            out.push(line[start..end].trim());
            start = end;
        }
    }
    out.push(line[start..].trim());
    out.retain(|sentence| sentence.contains(char::is_alphanumeric));
    out
}

pub(super) fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(CLOSERS).ends_with(['?', '？'])
}

/// The words of a text in lower case; an apostrophe inside a word belongs to it.
pub(super) fn words(text: &str) -> Vec<String> {
    text.replace('’', "'")
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\'').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// The words that say what a text is about.
pub(super) fn content_words(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err()).collect()
}

/// The names mentioned as `@name`, outside of `code` and of addresses such as `ana@example.org`.
pub(super) fn mentioned(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    prose.flat_map(|text| {
        text.match_indices('@').filter_map(move |(at, _)| {
            if text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | '/'))
            {
                return None;
            }
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_'));
            // A dot or hyphen after a name is more often punctuation than a part of the name.
            let name = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', '-']);
            name.contains(|c: char| c.is_ascii_alphanumeric()).then_some(name)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted_for_binary_search() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn clip_counts_characters_and_adds_an_ellipsis() {
        assert_eq!(clip("abcd", 4), "abcd");
        assert_eq!(clip("abcde", 4), "abc…");
        assert_eq!(clip("ääääää", 4), "äää…");
        assert_eq!(clip("ab cde", 4), "ab…");
    }

    #[test]
    fn head_ends_at_a_character_boundary() {
        assert_eq!(head("aä", 2), "a");
        assert_eq!(head("aä", 99), "aä");
    }

    #[test]
    fn sentences_are_split_at_punctuation() {
        let line = r#"Use v1.2 of a.py, e.g. this one. Did he say "why?" Yes! (Really?) Fine"#;
        assert_eq!(
            sentences(line),
            ["Use v1.2 of a.py, e.g. this one.", r#"Did he say "why?""#, "Yes!", "(Really?)", "Fine"]
        );
        assert_eq!(sentences("はい。いいえ？"), ["はい。", "いいえ？"]);
        assert_eq!(sentences("... !"), Vec::<&str>::new());
    }

    #[test]
    fn words_keep_apostrophes() {
        assert_eq!(words("Let’s 'go', we'll SEE"), ["let's", "go", "we'll", "see"]);
    }

    #[test]
    fn mentions_are_names_and_not_addresses_or_code() {
        let line = "@Ana, ask @bo.b-2. mail x@y.org, `@dataclass`, (@cy) and @ or @-";
        assert_eq!(mentioned(line).collect::<Vec<_>>(), ["Ana", "bo.b-2", "cy"]);
    }

    #[test]
    fn tidy_text_is_one_printable_line() {
        assert_eq!(tidy("  a\t b\u{1b}[31m\n\u{7}c "), "a b[31m c");
    }
}
