//! Reads contributions one by one and collects statements, decisions, questions, actions and mentions.

use std::collections::{BTreeMap, VecDeque};

use super::text::{head, is_question, mentioned, sentences, tidy, words};
use super::{Action, Line, MAX_LINE_BYTES};

/// Questions that can still be answered; bounds the work that a quote can cause.
const MAX_PENDING: usize = 100;
/// A shorter quote may be part of any question and answers none.
const MIN_QUOTED_WORDS: usize = 3;

const DECISION_CUES: &[&[&str]] = &[
    &["decided"],
    &["agreed"],
    &["approved"],
    &["resolved"],
    &["we", "will"],
    &["we'll"],
    &["let's", "go", "with"],
    &["lets", "go", "with"],
];
const DECISION_MARKERS: &[&str] = &["decision", "decisions"];
const NEGATIONS: &[&str] = &["not", "never", "no", "cannot"];
/// Endings that make a negation with `no`.
const NO_ENDINGS: &[&str] = &["body", "thing"];
const ANSWER_WORDS: &[&str] = &[
    "yes", "yep", "yeah", "yup", "no", "nope", "sure", "ok", "okay", "correct", "exactly", "indeed",
    "agreed", "done", "answer", "answered",
];
/// The longer marker first, because it starts with the shorter one.
const ACTION_MARKERS: &[&str] = &["ACTION ITEM", "ACTION", "TODO", "FIXME"];

/// What was found in the contributions read so far.
#[derive(Debug, Default)]
pub(super) struct Discussion {
    /// Sentences that are neither questions nor actions.
    pub(super) statements: Vec<String>,
    pub(super) decisions: Vec<String>,
    pub(super) questions: Questions,
    pub(super) actions: Vec<Action>,
    pub(super) mentions: Vec<String>,
    /// The first and the last sentence.
    pub(super) ends: Option<(String, String)>,
    /// Index into `actions`, by lower-case text.
    known_actions: BTreeMap<String, usize>,
}

impl Discussion {
    pub(super) fn read(&mut self, line: &Line<'_>) {
        let parts = Parts::parse(head(line.text, MAX_LINE_BYTES));
        self.questions.answer(line.author, &parts);
        self.questions.begin();
        for own in &parts.own {
            self.mentions.extend(mentioned(own).map(str::to_owned));
            if let Some((text, done)) = checkbox(own) {
                self.act(text, done);
                self.point(text);
                continue;
            }
            for sentence in sentences(unbulleted(own)) {
                self.sentence(line.author, sentence);
            }
        }
    }

    fn sentence(&mut self, author: &str, sentence: &str) {
        self.point(sentence);
        if let Some(text) = marked_action(sentence) {
            self.act(&text, false);
        } else if is_question(sentence) {
            self.questions.ask(author, sentence);
        } else {
            if is_decision(sentence) {
                self.decisions.push(sentence.to_owned());
            }
            self.statements.push(sentence.to_owned());
        }
    }

    fn point(&mut self, sentence: &str) {
        match &mut self.ends {
            Some((_, last)) => sentence.clone_into(last),
            None => self.ends = Some((sentence.to_owned(), sentence.to_owned())),
        }
    }

    fn act(&mut self, text: &str, done: bool) {
        if text.is_empty() {
            return;
        }
        let at = *self.known_actions.entry(text.to_lowercase()).or_insert(self.actions.len());
        match self.actions.get_mut(at) {
            Some(action) => action.done = done,
            None => self.actions.push(Action { text: text.to_owned(), done }),
        }
    }
}

/// Questions in the order they were asked, without those that were answered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pending: VecDeque<Question>,
    /// Number of the contribution being read.
    contribution: usize,
}

#[derive(Debug)]
struct Question {
    author: String,
    contribution: usize,
    text: String,
    /// Its words, in the form in which quotes are compared.
    words: String,
}

impl Questions {
    pub(super) fn open(self) -> Vec<String> {
        self.pending.into_iter().map(|question| question.text).collect()
    }

    fn begin(&mut self) {
        self.contribution += 1;
    }

    fn ask(&mut self, author: &str, sentence: &str) {
        if self.pending.len() == MAX_PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back(Question {
            author: author.to_owned(),
            contribution: self.contribution,
            text: sentence.to_owned(),
            words: spaced(&words(sentence)),
        });
    }

    fn answer(&mut self, author: &str, parts: &Parts) {
        let Some(first) = parts.own.first() else {
            return; // A quote alone is no answer.
        };
        if !parts.quoted.is_empty() {
            let quoted = words(&parts.quoted.join(" "));
            let long_enough = quoted.len() >= MIN_QUOTED_WORDS;
            let quoted = spaced(&quoted);
            self.pending.retain(|question| {
                let named =
                    quoted.contains(&question.words) || long_enough && question.words.contains(&quoted);
                question.author == author || !named
            });
        }
        if words(first).first().is_some_and(|word| ANSWER_WORDS.contains(&word.as_str())) {
            let asked = self.pending.iter().rev().find(|question| question.author != author);
            if let Some(asked) = asked.map(|question| question.contribution) {
                self.pending.retain(|question| question.contribution != asked);
            }
        }
    }
}

/// Words with spaces around each, so that a substring match only succeeds at whole words.
fn spaced(words: &[String]) -> String {
    format!(" {} ", words.join(" "))
}

/// The lines of one contribution: its own and those it quotes, without code blocks and empty lines.
#[derive(Debug, Default)]
struct Parts {
    own: Vec<String>,
    quoted: Vec<String>,
}

impl Parts {
    fn parse(text: &str) -> Parts {
        let mut parts = Parts::default();
        let mut in_code = false;
        for line in text.lines().map(tidy) {
            if line.starts_with("```") || line.starts_with("~~~") {
                in_code = !in_code;
            } else if in_code || line.is_empty() {
                // Skipped.
            } else if line.starts_with('>') {
                parts.quoted.push(line);
            } else {
                parts.own.push(line);
            }
        }
        parts
    }
}

/// A line without the marker of a list item or heading.
fn unbulleted(line: &str) -> &str {
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = match after_number.strip_prefix(['.', ')']) {
        Some(rest) if after_number.len() < line.len() => rest,
        _ => line.strip_prefix(['-', '*', '+']).unwrap_or_else(|| line.trim_start_matches('#')),
    };
    // `-1`, `*so*` and `#tag` are no list items: a space must follow.
    item.strip_prefix(' ').unwrap_or(line)
}

/// The text of a Markdown checkbox, and whether it is ticked.
fn checkbox(line: &str) -> Option<(&str, bool)> {
    let item = unbulleted(line);
    if item.len() == line.len() {
        return None;
    }
    let (mark, text) = item.strip_prefix('[')?.split_once("] ")?;
    match mark {
        "" | " " => Some((text, false)),
        "x" | "X" => Some((text, true)),
        _ => None,
    }
}

/// The text after `TODO`, `FIXME`, `ACTION` or `ACTION ITEM`; an owner in parentheses is put before it.
fn marked_action(sentence: &str) -> Option<String> {
    let start = sentence.trim_start_matches(['*', '_']);
    let (written, rest) = ACTION_MARKERS.iter().find_map(|marker| {
        let (written, rest) = start.split_at_checked(marker.len())?;
        let whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        (whole && written.eq_ignore_ascii_case(marker)).then_some((written, rest))
    })?;
    let (owner, rest) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((owner, rest)) => (Some(owner), rest),
        None => (None, rest),
    };
    let text = rest.trim_start_matches(['*', '_']);
    let (colon, text) = match text.strip_prefix(':') {
        Some(text) => (true, text.trim_start_matches(['*', '_', ' '])),
        None => (false, text.trim_start()),
    };
    // "Action is needed" is no marker; "action: call" and "ACTION call" are.
    if !colon && written.contains(|c: char| c.is_ascii_lowercase()) || text.is_empty() {
        return None;
    }
    Some(owner.map_or_else(|| text.to_owned(), |owner| format!("{owner}: {text}")))
}

fn is_decision(sentence: &str) -> bool {
    let words = words(sentence);
    let marked =
        sentence.contains(':') && words.first().is_some_and(|w| DECISION_MARKERS.contains(&w.as_str()));
    marked
        || DECISION_CUES.iter().any(|cue| {
            words.windows(cue.len()).enumerate().any(|(at, window)| {
                let negated = words[at.saturating_sub(2)..at].iter().any(|word| is_negation(word));
                window == *cue && !negated
            })
        })
}

fn is_negation(word: &str) -> bool {
    NEGATIONS.contains(&word)
        || word.ends_with("n't")
        || word.strip_prefix("no").is_some_and(|ending| NO_ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bullets_and_checkboxes_are_recognised() {
        assert_eq!(unbulleted("- one"), "one");
        assert_eq!(unbulleted("12. two"), "two");
        assert_eq!(unbulleted("## three"), "three");
        assert_eq!(unbulleted("-1 below"), "-1 below");
        assert_eq!(unbulleted("*so* it is"), "*so* it is");
        assert_eq!(unbulleted("1.5 times"), "1.5 times");
        assert_eq!(checkbox("- [ ] write docs"), Some(("write docs", false)));
        assert_eq!(checkbox("* [x] ship"), Some(("ship", true)));
        assert_eq!(checkbox("1. [X] ship"), Some(("ship", true)));
        assert_eq!(checkbox("- [a link] (x)"), None);
        assert_eq!(checkbox("[x] no item"), None);
    }

    #[test]
    fn markers_start_an_action() {
        let text = |sentence| marked_action(sentence);
        assert_eq!(text("TODO: write docs").as_deref(), Some("write docs"));
        assert_eq!(text("todo: write docs").as_deref(), Some("write docs"));
        assert_eq!(text("**TODO:** write docs").as_deref(), Some("write docs"));
        assert_eq!(text("FIXME(bo): the race").as_deref(), Some("bo: the race"));
        assert_eq!(text("Action item: call Ana").as_deref(), Some("call Ana"));
        assert_eq!(text("ACTION @bo tests it").as_deref(), Some("@bo tests it"));
        for none in ["Action is needed.", "todo lists are nice", "TODOS: none", "TODO", "TODO:", "ça TODO: x"]
        {
            assert_eq!(text(none), None, "{none}");
        }
    }

    #[test]
    fn negated_decisions_are_no_decisions() {
        for yes in [
            "We decided to use SQLite.",
            "**Decision:** one writer",
            "Let’s go with plan B.",
            "Agreed.",
            "We will not ship it.",
            "We'll wait",
        ] {
            assert!(is_decision(yes), "{yes}");
        }
        for no in [
            "We have not yet decided.",
            concat!("No", "body agreed."),
            "Nothing was agreed.",
            "It isn't approved",
            "Undecided",
            "A decision nears",
        ] {
            assert!(!is_decision(no), "{no}");
        }
    }
}
