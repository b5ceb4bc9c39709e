//! Whole discussions by example.

use proptest::prelude::*;

use super::*;

fn lines<'a>(said: &[(&'a str, &'a str)]) -> Vec<Line<'a>> {
    said.iter().map(|&(author, text)| Line { author, text }).collect()
}

#[test]
fn a_whole_discussion() {
    let summary = summarise(&lines(&[
        ("ana", "The writer thread stalls under load. Should the writer batch its commits? @bo please look."),
        (
            "bo",
            "Yes. Batching commits in the writer thread helps; I measured it.\n\n```\nTODO: not read\n@dan\n```",
        ),
        ("cy", "> Should the writer batch its commits?\nUp to 64 per commit.\nWho tests it on ARM?"),
        (
            "ana",
            "We decided to batch 64 commits in the writer thread.\n- [ ] write the bench\n- [x] tell @Bo",
        ),
        ("bo", "TODO(cy): document the batch size.\n* [X] write the bench"),
    ]));
    assert_eq!(
        summary,
        Summary {
            text: "ana, bo and cy made 5 contributions. First point: “The writer thread stalls under load.” \
                   Last point: “write the bench”"
                .to_owned(),
            key_points: vec![
                "The writer thread stalls under load.".to_owned(),
                "Batching commits in the writer thread helps; I measured it.".to_owned(),
                "Up to 64 per commit.".to_owned(),
                "We decided to batch 64 commits in the writer thread.".to_owned(),
            ],
            decisions: vec!["We decided to batch 64 commits in the writer thread.".to_owned()],
            open_questions: vec!["Who tests it on ARM?".to_owned()],
            actions: vec![
                Action { text: "write the bench".to_owned(), done: true },
                Action { text: "tell @Bo".to_owned(), done: true },
                Action { text: "cy: document the batch size.".to_owned(), done: false },
            ],
            participants: vec!["ana".to_owned(), "bo".to_owned(), "cy".to_owned()],
            mentions: vec![("bo".to_owned(), 2)],
            lines: 5,
        }
    );
}

#[test]
fn an_empty_discussion_says_so() {
    let expected = Summary { text: "Nothing has been said yet.".to_owned(), ..Summary::default() };
    assert_eq!(summarise(&[]), expected);
}

#[test]
fn blank_lines_count_but_have_no_point() {
    let summary = summarise(&lines(&[("ana", ""), ("ana", " \n\t")]));
    assert_eq!(summary.text, "ana made 2 contributions.");
    assert_eq!(summary.participants, ["ana"]);
}

#[test]
fn one_contribution_has_one_point() {
    let summary = summarise(&lines(&[("ana", "Ship it.")]));
    assert_eq!(summary.text, "ana made 1 contribution. First point: “Ship it.”");
}

#[test]
fn questions_stay_open_until_another_author_answers() {
    let open = |said: &[(&str, &str)]| summarise(&lines(said)).open_questions;
    let asked = ("ana", "Is the port free? Is the host up?");
    assert_eq!(open(&[asked]), ["Is the port free?", "Is the host up?"]);
    assert_eq!(open(&[asked, ("ana", "Yes, both.")]).len(), 2);
    assert_eq!(open(&[asked, ("bo", "I had lunch.")]).len(), 2);
    assert_eq!(open(&[asked, ("bo", "Yes, both.")]), Vec::<String>::new());
    assert_eq!(open(&[asked, ("bo", "> Is the host up?\n\nIt was at noon.")]), ["Is the port free?"]);
    assert_eq!(open(&[asked, ("bo", "> is the port\nIt is.")]), ["Is the host up?"]);
    assert_eq!(open(&[asked, ("bo", "> Is the host up?")]).len(), 2);
    assert_eq!(open(&[asked, ("bo", "> up?\nHm.")]).len(), 2);
    // A bare answer is for the latest author with open questions, not for all.
    assert_eq!(open(&[asked, ("cy", "Is it late?"), ("bo", "No.")]).len(), 2);
}

#[test]
fn key_points_use_the_most_frequent_words() {
    let mut said = vec![("ana", "Thanks!"), ("bo", "The parser loses comments."), ("cy", "Lunch was good.")];
    said.extend([("ana", "The parser keeps comments now."), ("bo", "The new parser is slower.")]);
    said.extend([("cy", "Slower parser, fewer bugs."), ("ana", "Comments in the parser matter.")]);
    let points = summarise(&lines(&said)).key_points;
    assert_eq!(points.len(), MAX_KEY_POINTS);
    assert!(points.iter().all(|point| point.to_lowercase().contains("parser")), "{points:?}");
    assert_eq!(points[0], "The parser loses comments.");
}

#[test]
fn many_authors_are_counted() {
    let text = |authors: &[&str]| {
        let said: Vec<_> = authors.iter().map(|author| Line { author, text: "" }).collect();
        summarise(&said).text
    };
    assert_eq!(text(&["a", "b", "a"]), "a and b made 3 contributions.");
    assert_eq!(text(&["a", "b", "c", "d"]), "a, b, c and 1 other made 4 contributions.");
    assert_eq!(text(&["a", "b", "c", "d", "e"]), "a, b, c and 2 others made 5 contributions.");
}

#[test]
fn every_list_is_bounded_and_keeps_the_latest() {
    let long = "x".repeat(400);
    let texts: Vec<String> = (0..30)
        .map(|i| format!("We decided {i} {long}.\nWhy {i} {long}?\n- [ ] do {i} {long}\n@name{i} is {long}."))
        .collect();
    let authors: Vec<String> = (0..30).map(|i| format!("{i}{long}")).collect();
    let said: Vec<Line<'_>> =
        authors.iter().zip(&texts).map(|(author, text)| Line { author, text }).collect();
    let summary = summarise(&said);
    assert_eq!(summary.decisions.len(), MAX_ENTRIES);
    assert_eq!(summary.open_questions.len(), MAX_ENTRIES);
    assert_eq!(summary.actions.len(), MAX_ENTRIES);
    assert_eq!(summary.participants.len(), MAX_ENTRIES);
    assert_eq!(summary.mentions.len(), MAX_ENTRIES);
    assert_eq!(summary.key_points.len(), MAX_KEY_POINTS);
    assert!(summary.decisions[0].starts_with("We decided 10 "));
    let actions = summary.actions.iter().map(|action| &action.text);
    for entry in
        summary.decisions.iter().chain(&summary.key_points).chain(&summary.participants).chain(actions)
    {
        assert_eq!(entry.chars().count(), MAX_ENTRY_CHARS);
        assert!(entry.ends_with('…'));
    }
}

#[test]
fn the_oldest_contributions_beyond_the_limit_are_ignored() {
    let mut said = vec![Line { author: "old", text: "We decided too early." }; 3];
    said.extend(vec![Line { author: "new", text: "Fine work." }; MAX_LINES]);
    let summary = summarise(&said);
    assert_eq!(summary.lines, MAX_LINES);
    assert_eq!(summary.participants, ["new"]);
    assert_eq!(summary.decisions, Vec::<String>::new());
    assert!(summary.text.starts_with("new made 2000 contributions. The oldest 3 were left out."));
}

#[test]
fn the_bytes_read_are_bounded() {
    let text = "word ".repeat(MAX_LINE_BYTES);
    let summary = summarise(&vec![Line { author: "ana", text: &text }; 1000]);
    assert_eq!(summary.lines, MAX_BYTES / MAX_LINE_BYTES);
    assert!(summary.text.starts_with("ana made 128 contributions. The oldest 872 were left out."));
}

#[test]
fn short_statements_are_key_points_if_there_are_no_longer_ones() {
    assert_eq!(
        summarise(&lines(&[("ana", "Ship it."), ("bo", "はい。")])).key_points,
        ["Ship it.", "はい。"]
    );
}

#[test]
fn a_long_contribution_is_cut_at_a_character_boundary() {
    let text = format!("{}ä TODO: beyond", "y".repeat(MAX_LINE_BYTES - 1));
    assert_eq!(summarise(&[Line { author: "ana", text: &text }]).actions, []);
}

proptest! {
    #[test]
    fn no_text_panics_and_every_entry_is_short_and_printable(
        texts in prop::collection::vec(
            prop_oneof![r"([-*+>#`~@!?.:()\[\]xX \n]|TODO|we will|yes|é|。|”){0,24}", any::<String>()],
            0..8,
        ),
    ) {
        let said: Vec<_> = texts.iter().map(|text| Line { author: &text[..0], text }).collect();
        let summary = summarise(&said);
        let actions = summary.actions.iter().map(|action| &action.text);
        let entries = summary.key_points.iter().chain(&summary.decisions).chain(&summary.open_questions);
        for entry in entries.chain(actions) {
            prop_assert!(!entry.is_empty() && entry.chars().count() <= MAX_ENTRY_CHARS);
            prop_assert!(!entry.contains(char::is_control), "{:?}", entry);
        }
    }
}
