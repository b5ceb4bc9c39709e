//! Confusable names: which characters a new name may have, and the skeletons by which look-alikes are compared (UTS 39,
//! with case folded).

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection};

/// The skeleton of each ASCII character. Most names are ASCII and need no Unicode tables.
static ASCII: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..=127_u8).map(|byte| folded(&char::from(byte).to_string())).collect());

/// The skeleton of a name: two names with the same skeleton are easily confused.
///
/// Skeletons are stored with names. A release of `unicode-security` with other tables needs a migration that computes
/// them again; the test below detects the most likely changes.
pub(crate) fn skeleton(name: &str) -> String {
    if name.is_ascii() {
        return name.bytes().map(|byte| ASCII[usize::from(byte)].as_str()).collect();
    }
    folded(name)
}

/// The skeleton of a name before case is folded. Upper-case characters of other scripts may look like Latin ones where
/// their lower-case forms do not, so new names are compared by this as well.
pub(crate) fn skeleton_of_shape(name: &str) -> String {
    if name.is_ascii() {
        return skeleton(name);
    }
    let compatible: String = name.nfkc().collect();
    folded(&unicode_security::skeleton(&compatible).collect::<String>())
}

fn folded(name: &str) -> String {
    let compatible: String = name.nfkc().collect();
    // By way of upper case, because some lower-case characters share an upper-case form.
    let lower = compatible.to_uppercase().to_lowercase();
    let shape: String = unicode_security::skeleton(&lower).collect();
    // `I` looks like `l`, and a skeleton must not depend on case, so `i` and `l` are the same.
    shape.to_lowercase().replace('i', "l")
}

/// Why a new name must not contain its characters, if so.
pub(crate) fn bad_characters(name: &str) -> Option<&'static str> {
    if name.is_ascii() {
        return None;
    }
    if name.chars().any(|c| !c.is_ascii() && !c.identifier_allowed()) {
        return Some(
            "besides ASCII it may have alphabetic characters and digits only, none of them invisible",
        );
    }
    let alphanumeric: String = name.chars().filter(|c| !c.is_ascii() || c.is_ascii_alphanumeric()).collect();
    if !alphanumeric.check_restriction_level(RestrictionLevel::ModeratelyRestrictive) {
        return Some("it mixes alphabets with characters that look alike");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_share_a_skeleton() {
        for (name, other) in [
            ("carl", "Carl"),
            ("carl", "carI"),
            ("carl", "car1"),
            ("carl", "cаrl"),
            ("carl", "carl\u{200b}"),
            ("carl", "carl\u{202e}"),
            ("posthaste", "ｐosthaste"),
            ("posthaste", "p0sthaste"),
            ("admin", "adrnin"),
            ("iris", "IRIS"),
            ("İris", "iris"),
        ] {
            let alike = [skeleton(other), skeleton_of_shape(other)].contains(&skeleton(name));
            assert_eq!(alike, other != "iris" || name == "iris", "{name:?} {other:?}");
        }
        assert!([skeleton("НАТО"), skeleton_of_shape("НАТО")].contains(&skeleton("hato")));
        for (name, other) in [("carl", "karl"), ("ann-1", "ann-2"), ("иван", "ivan"), ("zoë", "zoe")] {
            assert_ne!(skeleton(name), skeleton(other));
        }
    }

    #[test]
    fn the_ascii_table_agrees_with_unicode_security() {
        for byte in 0..=127_u8 {
            let name = format!("a{}b", char::from(byte));
            assert_eq!(skeleton(&name), folded(&name));
        }
    }

    #[test]
    fn skeletons_match_those_in_existing_databases() {
        // A change here needs a migration that computes every stored skeleton again.
        let stored =
            [("GreenHarbor", "greenharbor"), ("build_bot.v1-x", "bulld_bot.vl-x"), ("m0", "rno"), ("Ж", "ж")];
        for (name, expected) in stored {
            assert_eq!(skeleton(name), expected);
        }
    }

    #[test]
    fn confusable_and_invisible_characters_are_refused() {
        for bad in [
            "carl\u{200b}",
            "carl\u{202e}",
            "carl\u{ad}",
            "carl\u{fe0f}",
            "carl\u{e000}",
            "\u{3164}",
            "carl\u{a0}",
            "cаrl",
            "ｐosthaste",
            "Нarry",
        ] {
            assert!(bad_characters(bad).is_some(), "{bad:?}");
        }
        for good in ["carl", "Zoë Müller", "иван", "日本 agent", "ボット-1", "αβγ", "a b+c/d"] {
            assert_eq!(bad_characters(good), None, "{good:?}");
        }
    }
}
