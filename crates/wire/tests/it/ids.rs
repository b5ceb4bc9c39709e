//! Every id survives every spelling, and spellings sort as ids do.

use posthaste_wire::Id;
use proptest::prelude::*;

proptest! {
    #[test]
    fn spellings_round_trip(bits in any::<u128>(), prefix in "([a-z0-9]{1,9}[-_]){0,3}") {
        let id = Id(bits);
        for text in [id.uuid().to_string(), id.ulid().to_string(), id.prefixed(&prefix).to_string()] {
            prop_assert_eq!(text.parse(), Ok(id), "{}", text);
            if let Some(bare) = text.strip_prefix(&prefix).filter(|bare| bare.len() == 26) {
                prop_assert_eq!(Id::parse_prefixed(&text, &prefix), Ok(id), "{}", bare);
            }
        }
    }

    #[test]
    fn spellings_sort_as_ids_do(a in any::<u128>(), b in any::<u128>(), shift in 0..128u32) {
        // Shifted, so that ids that share their first digits are met too.
        let (a, b) = (Id(a >> shift), Id(b >> shift));
        prop_assert_eq!(a.uuid().to_string().cmp(&b.uuid().to_string()), a.cmp(&b));
        prop_assert_eq!(a.ulid().to_string().cmp(&b.ulid().to_string()), a.cmp(&b));
    }

    #[test]
    fn what_is_read_is_what_was_written(text in "[0-9A-Za-z]{26}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\\PC{20,40}") {
        if let Ok(id) = text.parse::<Id>() {
            let spelled = if text.len() == 26 { id.ulid().to_string() } else { id.uuid().to_string() };
            prop_assert!(spelled.eq_ignore_ascii_case(&text));
        }
    }
}
