//! Glob patterns of filters: `*` matches any text, `?` one character.

/// Longest pattern, in characters.
pub(super) const MAX_PATTERN_CHARS: usize = 256;

/// Number of 64-bit words for one bit per character of a pattern, and one for its end.
const WORDS: usize = MAX_PATTERN_CHARS / 64 + 1;
type Bits = [u64; WORDS];

/// A compiled pattern: a bit-parallel automaton that matches in one pass over the text, without backtracking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    /// The positions of each character in the pattern, sorted by character.
    positions: Vec<(char, Bits)>,
    /// The positions of `?`.
    any: Bits,
    /// The positions preceded by `*`: any character stays at such a position.
    stars: Bits,
    /// Number of positions, not counting `*`.
    end: usize,
}

impl Glob {
    /// Compiles a pattern; `None` if it has more than 256 characters.
    #[must_use]
    pub fn new(pattern: &str) -> Option<Self> {
        if pattern.chars().nth(MAX_PATTERN_CHARS).is_some() {
            return None;
        }
        let mut glob = Self { positions: Vec::new(), any: [0; WORDS], stars: [0; WORDS], end: 0 };
        for c in pattern.chars() {
            match c {
                '*' => set(&mut glob.stars, glob.end),
                '?' => {
                    set(&mut glob.any, glob.end);
                    glob.end += 1;
                }
                c => {
                    let at = match glob.positions.iter().position(|(known, _)| *known == c) {
                        Some(at) => at,
                        None => {
                            glob.positions.push((c, [0; WORDS]));
                            glob.positions.len() - 1
                        }
                    };
                    set(&mut glob.positions[at].1, glob.end);
                    glob.end += 1;
                }
            }
        }
        glob.positions.sort_unstable_by_key(|(c, _)| *c);
        Some(glob)
    }

    /// Whether the pattern matches the whole text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        // Bit n is set if the text so far can match the first n positions of the pattern.
        let mut reached: Bits = [0; WORDS];
        reached[0] = 1;
        for c in text.chars() {
            let positions = match self.positions.binary_search_by_key(&c, |(known, _)| *known) {
                Ok(at) => &self.positions[at].1,
                Err(_) => &[0; WORDS],
            };
            let mut carry = 0;
            let mut any_reached = 0;
            for n in 0..WORDS {
                let stepped = reached[n] & (positions[n] | self.any[n]);
                reached[n] = (stepped << 1) | carry | (reached[n] & self.stars[n]);
                carry = stepped >> 63;
                any_reached |= reached[n];
            }
            if any_reached == 0 {
                return false;
            }
        }
        reached[self.end / 64] >> (self.end % 64) & 1 == 1
    }
}

fn set(bits: &mut Bits, at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, text, expected) in [
            ("agent_worker_*", "agent_worker_001", true),
            ("agent_worker_*", "agent_root_001", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("**", "any", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*", "a", true),
            ("*b*b", "abab", true),
            ("*b*b", "aba", false),
            ("ž*", "žluť", true),
            ("?", "ž", true),
            ("*aab", "aaaab", true),
        ] {
            assert_eq!(Glob::new(pattern).unwrap().matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_of_every_length_match() {
        for length in [1, 62, 63, 64, 65, 127, 128, 129, 192, MAX_PATTERN_CHARS] {
            let text = "a".repeat(length);
            assert!(Glob::new(&text).unwrap().matches(&text), "{length}");
            assert!(!Glob::new(&text).unwrap().matches(&text[1..]), "{length}");
            assert!(Glob::new(&format!("{}*", &text[1..])).unwrap().matches(&text), "{length}");
            assert!(Glob::new(&"?".repeat(length)).unwrap().matches(&text), "{length}");
        }
        assert_eq!(Glob::new(&"a".repeat(MAX_PATTERN_CHARS + 1)), None);
        assert!(Glob::new(&"*".repeat(MAX_PATTERN_CHARS)).unwrap().matches("anything"));
    }

    /// Reference implementation with backtracking, exponential in the worst case.
    fn matches_by_backtracking(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), None) => matches_by_backtracking(&pattern[1..], text),
            (Some(b'*'), Some(_)) => {
                matches_by_backtracking(&pattern[1..], text) || matches_by_backtracking(pattern, &text[1..])
            }
            (Some(p), Some(t)) if *p == b'?' || p == t => matches_by_backtracking(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    #[test]
    fn every_short_pattern_agrees_with_backtracking() {
        let strings_over = |alphabet: &[u8], max_length: u32| {
            let mut all = vec![Vec::new()];
            for length in 1..=max_length {
                for n in 0..alphabet.len().pow(length) {
                    let symbol = |at: u32| alphabet[n / alphabet.len().pow(at) % alphabet.len()];
                    all.push((0..length).map(symbol).collect());
                }
            }
            all
        };
        let texts: Vec<Vec<u8>> = strings_over(b"ab", 5);
        for pattern in strings_over(b"ab*?", 5) {
            let glob = Glob::new(std::str::from_utf8(&pattern).unwrap()).unwrap();
            for text in &texts {
                let (p, t) = (String::from_utf8_lossy(&pattern), String::from_utf8_lossy(text));
                assert_eq!(glob.matches(&t), matches_by_backtracking(&pattern, text), "{p} {t}");
            }
        }
    }
}
