//! Extractive summaries of discussions: the same lines always give the same summary.
//!
//! Every sentence of a summary is quoted; the rules only choose. Code blocks are ignored, and quoted lines (`> …`) only
//! show which question a contribution answers.
//!
//! - **Decisions** are statements with "decided", "agreed", "approved", "resolved", "we will" or "let's go with",
//!   unless one of the two words before it negates it ("not yet agreed"), and those marked `Decision:`.
//! - **Open questions** are sentences that end with `?` and that no later contribution by another author answers. A
//!   contribution answers what it quotes; and when it starts with "yes", "no" or the like, it answers all questions of
//!   the latest contribution by another author that has open ones. The latest 100 questions are tracked.
//! - **Actions** are Markdown checkboxes, and sentences that start with `TODO`, `FIXME`, `ACTION` or `ACTION ITEM`
//!   (in any case where a colon follows). The same action named again only changes whether it is done.
//! - **Key points** are the five statements whose words occur in the most statements, without stop words. Statements with
//!   fewer than three such words are skipped, unless all have fewer.
//! - **Mentions** count `@name` outside of code, ignoring case, most frequent first.
//!
//! The rules are made for English; other languages get participants, questions, checkboxes, mentions and key points.
//!
//! Everything is bounded: see [`MAX_LINES`], [`MAX_BYTES`], [`MAX_LINE_BYTES`], [`MAX_ENTRIES`] and [`MAX_ENTRY_CHARS`].

mod extract;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use extract::Discussion;
use text::clip;

/// The most contributions read; if there are more, the oldest are ignored, and the text says so.
pub const MAX_LINES: usize = 2000;
/// The most text read, in bytes; likewise leaves out the oldest. Bounds the memory of a summary.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;
/// The most read of one contribution, in bytes; the rest of it is ignored.
pub const MAX_LINE_BYTES: usize = 16 * 1024;
/// The most entries of a list: the first participants, the most frequent mentions, the latest of others.
pub const MAX_ENTRIES: usize = 20;
/// The most key points.
pub const MAX_KEY_POINTS: usize = 5;
/// The longest entry, in characters; a longer one is clipped and ends with an ellipsis.
pub const MAX_ENTRY_CHARS: usize = 280;

/// Characters of the first and last point in the text.
const POINT_CHARS: usize = 140;
/// Authors that the text names before it counts the others.
const NAMED_AUTHORS: usize = 3;

/// One contribution to a discussion, in Markdown or plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub author: &'a str,
    pub text: &'a str,
}

/// An action item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub text: String,
    pub done: bool,
}

/// The summary of a discussion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// A few sentences: who took part, how much was said, the first and the last point.
    pub text: String,
    pub key_points: Vec<String>,
    pub decisions: Vec<String>,
    pub open_questions: Vec<String>,
    pub actions: Vec<Action>,
    /// Authors in the order of their first contribution.
    pub participants: Vec<String>,
    /// Names mentioned as `@name`, and how often.
    pub mentions: Vec<(String, usize)>,
    /// Number of contributions read.
    pub lines: usize,
}

/// Summarises a discussion given oldest first.
pub fn summarise(lines: &[Line<'_>]) -> Summary {
    let ignored = lines.len() - readable(lines);
    let read = &lines[ignored..];
    let authors = authors(read);
    let mut discussion = Discussion::default();
    for line in read {
        discussion.read(line);
    }
    Summary {
        text: overview(&authors, read.len(), ignored, &discussion),
        key_points: key_points(&discussion.statements),
        decisions: latest(discussion.decisions).map(|text| clip(&text, MAX_ENTRY_CHARS)).collect(),
        open_questions: latest(discussion.questions.open())
            .map(|text| clip(&text, MAX_ENTRY_CHARS))
            .collect(),
        actions: latest(discussion.actions)
            .map(|action| Action { text: clip(&action.text, MAX_ENTRY_CHARS), ..action })
            .collect(),
        participants: authors.iter().take(MAX_ENTRIES).map(|author| clip(author, MAX_ENTRY_CHARS)).collect(),
        mentions: mentions(discussion.mentions),
        lines: read.len(),
    }
}

/// How many of the latest contributions are within the limits.
fn readable(lines: &[Line<'_>]) -> usize {
    let sizes = lines.iter().rev().take(MAX_LINES).map(|line| line.text.len().min(MAX_LINE_BYTES));
    let totals = sizes.scan(0, |total, size| {
        *total += size;
        Some(*total)
    });
    totals.take_while(|total| *total <= MAX_BYTES).count()
}

/// The authors, each once, in the order of their first contribution.
fn authors<'a>(lines: &[Line<'a>]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    lines.iter().map(|line| line.author).filter(|author| seen.insert(*author)).collect()
}

fn overview(authors: &[&str], read: usize, ignored: usize, discussion: &Discussion) -> String {
    if read == 0 {
        return "Nothing has been said yet.".to_owned();
    }
    let contributions = if read == 1 { "contribution" } else { "contributions" };
    let mut out = format!("{} made {read} {contributions}.", named(authors));
    if ignored > 0 {
        out += &format!(" The oldest {ignored} were left out.");
    }
    if let Some((first, last)) = &discussion.ends {
        out += &format!(" First point: “{}”", clip(first, POINT_CHARS));
        if last != first {
            out += &format!(" Last point: “{}”", clip(last, POINT_CHARS));
        }
    }
    out
}

/// `Ana`, `Ana and Bo`, `Ana, Bo, Cy and 4 others`.
fn named(authors: &[&str]) -> String {
    let mut names: Vec<String> =
        authors.iter().take(NAMED_AUTHORS).map(|author| clip(author, POINT_CHARS)).collect();
    match authors.len().saturating_sub(NAMED_AUTHORS) {
        0 => {}
        1 => names.push("1 other".to_owned()),
        others => names.push(format!("{others} others")),
    }
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}

/// The statements that score highest, in the order they were made.
///
/// A statement's score is the sum, over its words, of how many statements use the word, divided by its number of words
/// plus a constant: the mean alone would favour short statements, the sum alone long ones.
fn key_points(statements: &[String]) -> Vec<String> {
    const MIN_WORDS: usize = 3;
    const DAMPING: usize = 4;
    // Frequencies are scaled up so that integers can tell close scores apart: integers compare alike on every platform.
    const SCALE: usize = 1000;

    let words: Vec<BTreeSet<String>> =
        statements.iter().map(|statement| text::content_words(statement)).collect();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words.iter().flatten() {
        *uses.entry(word).or_default() += 1;
    }
    let least = if words.iter().any(|words| words.len() >= MIN_WORDS) { MIN_WORDS } else { 1 };
    let mut seen = BTreeSet::new();
    let mut scored: Vec<(usize, usize)> = words
        .iter()
        .enumerate()
        .filter(|(_, words)| words.len() >= least && seen.insert(*words))
        .map(|(index, words)| {
            let sum: usize = words.iter().map(|word| uses[word.as_str()]).sum();
            (SCALE * sum / (words.len() + DAMPING), index)
        })
        .collect();
    scored.sort_by_key(|&(score, index)| (std::cmp::Reverse(score), index));
    scored.truncate(MAX_KEY_POINTS);
    scored.sort_by_key(|&(_, index)| index);
    scored.into_iter().map(|(_, index)| clip(&statements[index], MAX_ENTRY_CHARS)).collect()
}

/// The last [`MAX_ENTRIES`]: the current state matters most.
fn latest<T>(mut entries: Vec<T>) -> impl Iterator<Item = T> {
    entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
    entries.into_iter()
}

/// Counts names ignoring case, spelled as in their first mention.
fn mentions(names: Vec<String>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for name in names {
        counts.entry(name.to_ascii_lowercase()).or_insert((name, 0)).1 += 1;
    }
    let mut out: Vec<(String, usize)> = counts.into_values().collect();
    // The sort is stable, so names with the same count stay in alphabetical order.
    out.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    out.truncate(MAX_ENTRIES);
    out.into_iter().map(|(name, count)| (clip(&name, MAX_ENTRY_CHARS), count)).collect()
}
