//! Patterns by example, and against brute force over every path of a tiny alphabet.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn overlap_examples() {
    let pairs = [
        ("src/**", "src/app.py", true),
        ("src/*.py", "src/a*", true),
        ("./src/a.py", "src/a.py", true),
        ("src//a.py/", "src/./a.py", true),
        ("src", "src/app.py", true),
        ("src/", "src/deep/er/app.py", true),
        ("src", "src2", false),
        ("SRC/App.py", "src/app.py", false),
        ("src/*.rs", "src/*.py", false),
        ("src/*", "docs/*", false),
        ("src/*", "src/a/b", true),
        ("src/*", "src", true),
        ("**", "any/thing", true),
        ("a/**/z", "a/b/c/z/q", true),
        ("a/**/z", "a/z", true),
        ("a/**/z", "b/**/z", false),
        ("**/x", "a/**/y", true),
        ("***/x", "a/b/x", true),
        ("a**b", "a/b", false),
        ("a**b", "acb", true),
        ("*.tar.*", "backup.*.gz", true),
        ("?", "ab", false),
        ("??", "ä*", true),
        ("[a-c]x", "[c-d]x", true),
        ("[a-b]x", "[c-d]x", false),
        ("[!a]x", "ax", false),
        ("[!a]x", "[!b]x", true),
        ("[!a-y]", "[b-z]", true),
        ("[^a]x", "ax", false),
        ("[]x]", "[!x]", true),
        ("[a-]", "-", true),
        ("src/{a,b}.rs", "src/b.rs", true),
        ("src/{a,b}.rs", "src/{c,d}.rs", false),
        ("{src,docs/{en,de}}/x", "docs/de/*", true),
        ("src/{,lib/}x", "src/x", true),
        ("a}b", "a}*", true),
        (r"\*", "a", false),
        (r"\*", "[*]", true),
        ("tool://build-slot", "tool://build-slot", true),
        ("tool://build-slot", "tool://build-*", false),
        ("tool://build-slot", "tool://build-slot/", false),
        ("tool://build-slot", "**", false),
    ];
    for (a, b, expected) in pairs {
        assert_eq!(pattern(a).overlaps(&pattern(b)), expected, "{a} {b}");
        assert_eq!(pattern(b).overlaps(&pattern(a)), expected, "{b} {a}");
    }
}

#[test]
fn cover_examples() {
    let cases = [
        ("src/*.py", "src/app.py", true),
        ("src/*.py", "./src//app.py", true),
        ("src", "src/a/b", true),
        ("src/a", "src", false),
        ("src/*.py", "src/*.py", true),
        ("src/[ab]", "src/[ab]", false),
        (r"src/\[ab\]", "src/[ab]", true),
        ("**", "/etc/passwd", false),
        ("**", "a/../b", false),
        ("**", "a\nb", false),
        ("**", "", false),
        ("**", "tool://x", false),
        ("tool://x", "tool://x", true),
        ("tool://*", "tool://x", false),
    ];
    for (text, path, expected) in cases {
        assert_eq!(pattern(text).covers(path), expected, "{text} {path}");
    }
}

#[test]
fn texts_that_cannot_name_a_path_are_refused() {
    use PatternError::*;
    let long = "x".repeat(MAX_PATTERN_BYTES + 1);
    let deep = vec!["x"; MAX_SEGMENTS + 1].join("/");
    let product = "{a,b}".repeat(7);
    let wide = format!("{{{}}}", vec!["a"; MAX_ALTERNATIVES + 1].join(","));
    let heavy = format!("{{{}}}{}", vec!["a"; MAX_ALTERNATIVES].join(","), "*a".repeat(400));
    let cases: [(&str, PatternError); 34] = [
        ("", Empty),
        (".", Empty),
        ("././", Empty),
        ("{,src}", Empty),
        ("tool://", Empty),
        ("/x", NotRelative),
        (r"\\server\x", NotRelative),
        (r"C:\x", NotRelative),
        ("c:/x", NotRelative),
        ("C://x", NotRelative),
        ("C:", NotRelative),
        ("{src,/etc}", NotRelative),
        ("{C:/x,src}", NotRelative),
        ("{tool://x,src}", NotRelative),
        ("..", ParentSegment),
        ("a/../b", ParentSegment),
        ("a/{.,x}./b", ParentSegment),
        ("a/[.][.]/b", ParentSegment),
        ("a\0b", ControlCharacter),
        ("a\u{1b}b", ControlCharacter),
        ("tool://a\nb", ControlCharacter),
        (&long, TooLong),
        (&deep, TooManySegments),
        (&product, TooManyAlternatives),
        (&wide, TooManyAlternatives),
        (&heavy, TooManyAlternatives),
        ("[a", UnclosedClass),
        ("[]", UnclosedClass),
        ("[a/b]", UnclosedClass),
        ("{a,b", UnclosedBrace),
        ("{a,[}]", UnclosedBrace),
        ("[z-a]", BadClass),
        (r"src\app.py", BadEscape),
        (r"src\", BadEscape),
    ];
    for (text, error) in cases {
        assert_eq!(PathPattern::parse(text).unwrap_err(), error, "{text:?}");
    }
}

#[test]
fn patterns_at_the_limits_are_accepted() {
    pattern(&"x".repeat(MAX_PATTERN_BYTES));
    pattern(&vec!["x"; MAX_SEGMENTS].join("/"));
    pattern(&"{a,b}".repeat(6));
    pattern(&"[!a]".repeat(MAX_PATTERN_BYTES / 4));
    pattern(&format!("{}x{}", "{".repeat(500), "}".repeat(500)));
}

#[test]
fn the_head_is_the_first_segment_all_alternatives_share() {
    let cases = [
        ("src/*.py", Some("src")),
        ("./src", Some("src")),
        ("[s]rc/x", Some("src")),
        ("src/{a,b}", Some("src")),
        ("{src/a,src/b}", Some("src")),
        ("{src,docs}/a", None),
        ("s*/a", None),
        ("**/a", None),
        ("tool://build-slot", Some("tool://build-slot")),
    ];
    for (text, head) in cases {
        assert_eq!(pattern(text).head(), head, "{text}");
    }
}

#[test]
fn a_pattern_displays_as_it_was_written() {
    let written = pattern("./src//{a,b}");
    assert_eq!((written.as_str(), written.to_string()), ("./src//{a,b}", "./src//{a,b}".to_owned()));
}

/// With backtracking this would take 2^500 steps, and the test runner would end it.
#[test]
fn many_wildcards_need_no_backtracking() {
    let stars = |last: &str| format!("{}{last}", "*a".repeat(511));
    let classes = |last: &str| format!("{}{last}", "*[!b]".repeat(204));
    let depths = |last: &str| format!("{}{last}", "**/*a*a*a*a*/".repeat(31));
    let braces = |last: &str| format!("{}{{a,b}}{{a,b}}{{a,b}}{last}", "*a".repeat(120));
    for (a, b, expected) in [
        (stars("b"), stars("c"), false),
        (classes("x"), classes("y"), false),
        (depths("b"), depths("c"), true),
        (braces("b"), braces("c"), false),
    ] {
        assert_eq!(pattern(&a).overlaps(&pattern(&b)), expected, "{a} {b}");
    }
}

/// Every sequence of one to `longest` of these items.
fn sequences<T: Clone>(items: &[T], longest: usize) -> Vec<Vec<T>> {
    let mut out: Vec<Vec<T>> = Vec::new();
    let mut last: Vec<Vec<T>> = vec![Vec::new()];
    for _ in 0..longest {
        last = last
            .iter()
            .flat_map(|start| {
                items.iter().map(|item| [start.as_slice(), std::slice::from_ref(item)].concat())
            })
            .collect();
        out.extend_from_slice(&last);
    }
    out
}

/// Every name of one to `longest` of these characters.
fn names(characters: &str, longest: usize) -> Vec<String> {
    let characters: Vec<char> = characters.chars().collect();
    sequences(&characters, longest).into_iter().map(String::from_iter).collect()
}

/// The definition of covering as code: exponential, so for tiny inputs only.
fn covers_by_definition(pattern: &[&str], path: &[String]) -> bool {
    match (pattern, path) {
        ([], _) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|taken| covers_by_definition(rest, &path[taken..])),
        ([first, pattern @ ..], [name, path @ ..]) => {
            matches_by_definition(first, name) && covers_by_definition(pattern, path)
        }
        _ => false,
    }
}

fn matches_by_definition(pattern: &str, name: &str) -> bool {
    match (pattern.split_at_checked(1), name.split_at_checked(1)) {
        (None, _) => name.is_empty(),
        (Some(("*", rest)), _) => (0..=name.len()).any(|taken| matches_by_definition(rest, &name[taken..])),
        (Some((wanted, pattern)), Some((found, name))) => {
            (wanted == "?" || wanted == found) && matches_by_definition(pattern, name)
        }
        _ => false,
    }
}

/// One to three segments of one or two characters of `a b * ?`, or `**`.
fn tiny_pattern() -> impl Strategy<Value = String> {
    let segment = prop_oneof![3 => "[ab*?]{1,2}", 1 => Just("**".to_owned())];
    prop::collection::vec(segment, 1..=3).prop_map(|segments| segments.join("/"))
}

const TINY_CLASSES: &str = r"(\[!?[a-d](-[d-e])?[a-e]?\]|\*|[a-e]){1,3}";

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Two tiny patterns that share a path share one of at most five segments of two characters: together they ask for five
/// segments where one has a `**`, three where none has, and likewise for two characters. So brute force is exact.
#[test]
fn overlaps_exactly_when_some_path_is_covered_by_both() {
    let paths = sequences(&names("ab", 2), 5);
    let property = |(a, b): (String, String)| {
        let (a_parts, b_parts): (Vec<_>, Vec<_>) = (a.split('/').collect(), b.split('/').collect());
        let shared = paths
            .iter()
            .find(|path| covers_by_definition(&a_parts, path) && covers_by_definition(&b_parts, path));
        let (a, b) = (pattern(&a), pattern(&b));
        prop_assert_eq!(a.overlaps(&b), shared.is_some(), "{:?}", shared);
        prop_assert_eq!(b.overlaps(&a), shared.is_some(), "{:?}", shared);
        Ok(())
    };
    TestRunner::new(config(1000)).run(&(tiny_pattern(), tiny_pattern()), property).unwrap();
}

/// `z` stands for all characters that no class mentions, and four characters are enough for both patterns.
#[test]
fn classes_overlap_exactly_when_they_share_a_name() {
    let names = names("abcdez", 4);
    let property = |(a, b): (String, String)| {
        let (a, b) = (pattern(&a), pattern(&b));
        let shared = names.iter().find(|name| a.covers(name) && b.covers(name));
        prop_assert_eq!(a.overlaps(&b), shared.is_some(), "{:?}", shared);
        prop_assert_eq!(b.overlaps(&a), shared.is_some(), "{:?}", shared);
        Ok(())
    };
    TestRunner::new(config(500)).run(&(TINY_CLASSES, TINY_CLASSES), property).unwrap();
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn covers_agrees_with_its_definition(text in tiny_pattern()) {
        let (parts, parsed): (Vec<_>, _) = (text.split('/').collect(), pattern(&text));
        for path in sequences(&names("ab", 2), 3) {
            prop_assert_eq!(parsed.covers(&path.join("/")), covers_by_definition(&parts, &path), "{:?}", path);
        }
    }

    #[test]
    fn no_text_panics_and_what_parses_overlaps_itself(
        near in r"[ab/*?!^\-\[\]{},.:\\]{0,24}",
        far in any::<String>(),
    ) {
        for text in [near, far] {
            if let Ok(parsed) = PathPattern::parse(&text) {
                prop_assert!(parsed.overlaps(&parsed));
            }
        }
    }
}
