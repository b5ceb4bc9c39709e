//! Sets of characters as sorted ranges, so that two classes can be compared exactly.

/// First and last code point.
type Range = (u32, u32);

/// What a wildcard or class can match: every Unicode scalar value but `/` and the control characters.
const NAMEABLE: [Range; 4] = [(0x20, 0x2E), (0x30, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10_FFFF)];

/// A non-empty set of [`NAMEABLE`] characters: sorted ranges that neither touch nor overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CharSet(Box<[Range]>);

impl CharSet {
    /// The characters in (or with `negated`, not in) these inclusive ranges; `None` when there are none.
    pub(super) fn new(ranges: &[(char, char)], negated: bool) -> Option<CharSet> {
        let mut wanted = merged(ranges);
        if negated {
            wanted = complement(&wanted);
        }
        let kept: Box<[Range]> = common(&wanted, &NAMEABLE).collect();
        (!kept.is_empty()).then_some(CharSet(kept))
    }

    pub(super) fn meets(&self, other: &CharSet) -> bool {
        common(&self.0, &other.0).next().is_some()
    }

    pub(super) fn contains(&self, c: char) -> bool {
        let c = u32::from(c);
        let after = self.0.partition_point(|range| range.1 < c);
        self.0.get(after).is_some_and(|range| range.0 <= c)
    }

    /// The one character in the set, if it holds just one.
    pub(super) fn single(&self) -> Option<char> {
        match *self.0 {
            [(first, last)] if first == last => char::from_u32(first),
            _ => None,
        }
    }

    /// Number of ranges in the set: what comparing it costs.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }
}

/// The same characters, sorted, with ranges that overlap or touch made one.
fn merged(ranges: &[(char, char)]) -> Vec<Range> {
    let mut sorted: Vec<Range> =
        ranges.iter().map(|&(first, last)| (u32::from(first), u32::from(last))).collect();
    sorted.sort_unstable();
    let mut out: Vec<Range> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match out.last_mut() {
            Some(open) if first <= open.1 + 1 => open.1 = open.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}

/// All code points outside of sorted, disjoint ranges.
fn complement(ranges: &[Range]) -> Vec<Range> {
    let mut out = Vec::with_capacity(ranges.len() + 1);
    let mut next = 0;
    for &(first, last) in ranges {
        if next < first {
            out.push((next, first - 1));
        }
        next = last + 1;
    }
    if next <= u32::from(char::MAX) {
        out.push((next, u32::from(char::MAX)));
    }
    out
}

/// The intersection of two sorted lists of ranges, in one pass over both.
fn common(a: &[Range], b: &[Range]) -> impl Iterator<Item = Range> {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
            if x.1 < y.1 {
                i += 1;
            } else {
                j += 1;
            }
            let shared = (x.0.max(y.0), x.1.min(y.1));
            if shared.0 <= shared.1 {
                return Some(shared);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(char, char)], negated: bool) -> CharSet {
        CharSet::new(ranges, negated).expect("not empty")
    }

    #[test]
    fn ranges_are_merged_and_compared_at_their_edges() {
        assert_eq!(set(&[('c', 'd'), ('a', 'b')], false), set(&[('a', 'd')], false));
        assert!(set(&[('a', 'c')], false).meets(&set(&[('c', 'd')], false)));
        assert!(!set(&[('a', 'b')], false).meets(&set(&[('c', 'd')], false)));
        assert!(!set(&[('a', 'z')], true).meets(&set(&[('b', 'y')], false)));
        assert!(set(&[('a', 'z')], true).meets(&set(&[('b', '{')], false)));
    }

    #[test]
    fn a_negation_leaves_out_slashes_and_control_characters() {
        let all_but_a = set(&[('a', 'a')], true);
        for c in ['a', '/', '\0', '\n', '\u{7f}', '\u{85}'] {
            assert!(!all_but_a.contains(c), "{c:?}");
        }
        for c in [' ', '.', '0', 'b', '~', '\u{a0}', '\u{d7ff}', '\u{e000}', char::MAX] {
            assert!(all_but_a.contains(c), "{c:?}");
        }
    }

    #[test]
    fn empty_sets_are_none_and_single_characters_are_found() {
        assert_eq!(CharSet::new(&[('\0', char::MAX)], true), None);
        assert_eq!(CharSet::new(&[('/', '/')], false), None);
        assert_eq!(set(&[('x', 'x')], false).single(), Some('x'));
        assert_eq!(set(&[('x', 'y')], false).single(), None);
    }
}
