//! Ids round-trip through every format and sort in the same order.

use posthaste_wire::Id;
use proptest::prelude::*;

proptest! {
    #[test]
    fn formats_round_trip(bits in any::<u128>(), prefix in "([a-z0-9]{1,9}[-_]){0,3}") {
        let id = Id(bits);
        for text in [id.uuid().to_string(), id.ulid().to_string(), id.prefixed(&prefix).to_string()] {
            prop_assert_eq!(text.parse(), Ok(id), "{}", text);
            if let Some(bare) = text.strip_prefix(&prefix).filter(|bare| bare.len() == 26) {
                prop_assert_eq!(Id::parse_prefixed(&text, &prefix), Ok(id), "{}", bare);
            }
        }
    }

    #[test]
    fn formats_sort_like_ids(a in any::<u128>(), b in any::<u128>(), shift in 0..128u32) {
        // Shifted, to cover ids with equal leading digits.
        let (a, b) = (Id(a >> shift), Id(b >> shift));
        prop_assert_eq!(a.uuid().to_string().cmp(&b.uuid().to_string()), a.cmp(&b));
        prop_assert_eq!(a.ulid().to_string().cmp(&b.ulid().to_string()), a.cmp(&b));
    }

    #[test]
    fn parsed_ids_format_to_the_same_text(text in "[0-9A-Za-z]{26}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\\PC{20,40}") {
        if let Ok(id) = text.parse::<Id>() {
            let formatted = if text.len() == 26 { id.ulid().to_string() } else { id.uuid().to_string() };
            prop_assert!(formatted.eq_ignore_ascii_case(&text));
        }
    }
}
