//! Names for agents: memorable names made from a number, and ids made from any name.

/// The longest [`slug`], in bytes.
pub const MAX_SLUG: usize = 64;

/// A memorable name such as `GreenHarbor`, made from a number.
///
/// The same number always gives the same name, and consecutive numbers repeat no name until all have been used: if a
/// name is taken, try the next number.
pub fn memorable(seed: u64) -> String {
    // A step of about the golden ratio of the number of names, so that consecutive names share neither word. The step
    // and the number of names have no common divisor, so every name is reached.
    const STEP: u64 = 10_223;
    const NAMES: u64 = (ADJECTIVES.len() * NOUNS.len()) as u64;
    let index = (seed % NAMES * STEP % NAMES) as usize;
    [ADJECTIVES[index / NOUNS.len()], NOUNS[index % NOUNS.len()]].concat()
}

/// An agent id made from a display name: lower-case `a` to `z`, digits, `-`, `_` and `.`.
///
/// Everything else becomes `-`, several in a row only one; `-` and `.` at either end are removed, because an id that
/// starts with a dot would be hidden, or climb, where it names a file. Never empty and never longer than [`MAX_SLUG`];
/// a slug is its own slug.
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        let kept = if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { c } else { '-' };
        if kept == '-' && out.ends_with('-') || matches!(kept, '-' | '.') && out.is_empty() {
            continue;
        }
        if out.len() == MAX_SLUG {
            break;
        }
        out.push(kept);
    }
    out.truncate(out.trim_end_matches(['-', '.']).len());
    if out.is_empty() { "agent".to_owned() } else { out }
}

#[rustfmt::skip]
const ADJECTIVES: &[&str] = &[
    "Agile", "Amber", "Ample", "Apt", "Azure", "Balmy", "Bold", "Brave", "Breezy", "Bright", "Brisk",
    "Bronze", "Calm", "Candid", "Cheery", "Civil", "Clear", "Clever", "Coral", "Cosy", "Crimson", "Crisp",
    "Curious", "Dapper", "Daring", "Deft", "Eager", "Early", "Earnest", "Easy", "Even", "Fair", "Fleet",
    "Fond", "Frank", "Fresh", "Gentle", "Glad", "Golden", "Grand", "Great", "Green", "Hale", "Happy", "Hardy",
    "Hazel", "Honest", "Humble", "Indigo", "Ivory", "Jade", "Jolly", "Jovial", "Keen", "Kind", "Lively",
    "Loyal", "Lucid", "Lucky", "Maroon", "Mellow", "Merry", "Mild", "Modest", "Neat", "Nimble", "Noble",
    "Olive", "Patient", "Placid", "Plucky", "Polite", "Proud", "Quick", "Quiet", "Rapid", "Ready", "Rosy",
    "Ruby", "Russet", "Sage", "Scarlet", "Serene", "Sharp", "Silent", "Silver", "Sincere", "Smooth", "Snowy",
    "Steady", "Still", "Sturdy", "Sunny", "Swift", "Tidy", "Tranquil", "Trusty", "Upbeat", "Valiant",
    "Velvet", "Verdant", "Vivid", "Warm", "Wise", "Witty", "Zesty",
];

#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "Acorn", "Alder", "Anchor", "Antler", "Apple", "Arbor", "Arch", "Aspen", "Atlas", "Aurora", "Badger",
    "Bank", "Bay", "Beacon", "Bear", "Beech", "Bell", "Birch", "Bison", "Bloom", "Boulder", "Bridge", "Brook",
    "Canyon", "Castle", "Cedar", "Cliff", "Cloud", "Clover", "Coast", "Comet", "Compass", "Condor", "Copper",
    "Cove", "Crane", "Creek", "Crest", "Crystal", "Dale", "Dawn", "Deer", "Delta", "Dove", "Dune", "Eagle",
    "Elk", "Elm", "Falcon", "Fern", "Field", "Finch", "Fir", "Fjord", "Flint", "Forest", "Fountain", "Fox",
    "Garden", "Gate", "Glacier", "Glade", "Glen", "Granite", "Grove", "Gull", "Harbor", "Hare", "Haven",
    "Hawk", "Heath", "Heron", "Hill", "Hollow", "Horizon", "Island", "Ivy", "Juniper", "Kestrel", "Kite",
    "Lagoon", "Lake", "Lantern", "Lark", "Laurel", "Ledge", "Lighthouse", "Lily", "Linden", "Lotus", "Lynx",
    "Maple", "Marsh", "Meadow", "Mesa", "Mill", "Moon", "Moss", "Mountain", "Oak", "Oasis", "Ocean",
    "Orchard", "Orchid", "Otter", "Owl", "Palm", "Pass", "Peak", "Pebble", "Pelican", "Pier", "Pine",
    "Planet", "Plateau", "Pond", "Poplar", "Prairie", "Quail", "Quarry", "Rain", "Raven", "Reed", "Reef",
    "Ridge", "River", "Robin", "Rock", "Rowan", "Sail", "Sequoia", "Shore", "Sparrow", "Spring", "Spruce",
    "Star", "Stone", "Stork", "Stream", "Summit", "Swan", "Thicket", "Thistle", "Tide", "Tower", "Trail",
    "Tulip", "Tundra", "Valley", "Village", "Walnut", "Wave", "Willow", "Wind", "Wolf", "Wren",
];

/// The Levenshtein distance of two words: characters to insert, delete or replace.
#[must_use]
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn word_lists_are_long_sorted_and_capitalised() {
        assert!(ADJECTIVES.len() >= 75 && NOUNS.len() >= 130);
        for list in [ADJECTIVES, NOUNS] {
            assert!(list.is_sorted_by(|a, b| a < b), "sorted, so no word is listed twice");
            for word in list {
                let (first, rest) = word.split_at(1);
                assert!(first.bytes().all(|c| c.is_ascii_uppercase()), "{word}");
                assert!(!rest.is_empty() && rest.bytes().all(|c| c.is_ascii_lowercase()), "{word}");
            }
        }
    }

    #[test]
    fn every_name_is_used_once_before_any_repeats() {
        let count = (ADJECTIVES.len() * NOUNS.len()) as u64;
        let names: BTreeSet<String> = (7..7 + count).map(memorable).collect();
        assert_eq!(names.len() as u64, count);
        assert_eq!(memorable(7), memorable(7 + count));
    }

    #[test]
    fn the_names_of_numbers_never_change() {
        // Names are stored: a change to a list or to the step would give agents other names.
        assert_eq!(
            [0, 1, 2, u64::MAX].map(memorable),
            ["AgileAcorn", "NimbleLark", "DeftBadger", "EagerWind"]
        );
    }

    #[test]
    fn slugs_by_example() {
        let cases = [
            ("GreenHarbor", "greenharbor"),
            ("Ana's  Agent #2", "ana-s-agent-2"),
            ("build_bot.v1-x", "build_bot.v1-x"),
            ("--a--b--", "a-b"),
            ("../../etc", "etc"),
            ("..", "agent"),
            ("Zoë Müller", "zo-m-ller"),
            ("日本", "agent"),
            ("", "agent"),
        ];
        for (name, expected) in cases {
            assert_eq!(slug(name), expected, "{name:?}");
        }
        assert_eq!(slug(&"x".repeat(99)), "x".repeat(MAX_SLUG));
        assert_eq!(slug(&format!("{} yz", "x".repeat(MAX_SLUG - 1))), "x".repeat(MAX_SLUG - 1));
    }

    proptest! {
        #[test]
        fn a_slug_is_an_id_and_its_own_slug(name in prop_oneof!["[aB1 ._/-]{0,80}", any::<String>()]) {
            let id = slug(&name);
            prop_assert!((1..=MAX_SLUG).contains(&id.len()));
            prop_assert!(id.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')));
            prop_assert_eq!(slug(&id), id);
        }
    }
}
