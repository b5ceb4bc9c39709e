//! The patterns by which filters name agents: `*` for any text, `?` for one character.

/// Characters of one pattern.
pub(super) const LONGEST: usize = 256;

/// One bit for each character of a pattern, and one for its end.
const WORDS: usize = LONGEST / 64 + 1;
type Bits = [u64; WORDS];

/// A pattern, read once. Whether a text fits is found in one pass over the text, whatever the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    /// Where each character stands in the pattern.
    places: Vec<(char, Bits)>,
    /// Where a `?` stands.
    any: Bits,
    /// What a `*` stands before: from here any text leads back to here.
    stars: Bits,
    /// How many characters must be matched.
    end: usize,
}

impl Glob {
    /// Reads a pattern; nothing if it has more than [`LONGEST`] characters.
    #[must_use]
    pub fn new(pattern: &str) -> Option<Self> {
        if pattern.chars().nth(LONGEST).is_some() {
            return None;
        }
        let mut glob = Self { places: Vec::new(), any: [0; WORDS], stars: [0; WORDS], end: 0 };
        for c in pattern.chars() {
            match c {
                '*' => set(&mut glob.stars, glob.end),
                '?' => {
                    set(&mut glob.any, glob.end);
                    glob.end += 1;
                }
                c => {
                    let at = match glob.places.iter().position(|(known, _)| *known == c) {
                        Some(at) => at,
                        None => {
                            glob.places.push((c, [0; WORDS]));
                            glob.places.len() - 1
                        }
                    };
                    set(&mut glob.places[at].1, glob.end);
                    glob.end += 1;
                }
            }
        }
        glob.places.sort_unstable_by_key(|(c, _)| *c);
        Some(glob)
    }

    /// Whether the whole text fits the pattern.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        // A bit for each number of characters of the pattern that the text so far may have matched.
        let mut reached: Bits = [0; WORDS];
        reached[0] = 1;
        for c in text.chars() {
            let places = match self.places.binary_search_by_key(&c, |(known, _)| *known) {
                Ok(at) => &self.places[at].1,
                Err(_) => &[0; WORDS],
            };
            let mut carry = 0;
            let mut some = 0;
            for n in 0..WORDS {
                let stepped = reached[n] & (places[n] | self.any[n]);
                reached[n] = (stepped << 1) | carry | (reached[n] & self.stars[n]);
                carry = stepped >> 63;
                some |= reached[n];
            }
            if some == 0 {
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
    fn stars_and_question_marks() {
        for (pattern, text, fits) in [
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
            assert_eq!(Glob::new(pattern).unwrap().fits(text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_end_at_any_place_of_a_word() {
        for length in [1, 62, 63, 64, 65, 127, 128, 129, 192, LONGEST] {
            let text = "a".repeat(length);
            assert!(Glob::new(&text).unwrap().fits(&text), "{length}");
            assert!(!Glob::new(&text).unwrap().fits(&text[1..]), "{length}");
            assert!(Glob::new(&format!("{}*", &text[1..])).unwrap().fits(&text), "{length}");
            assert!(Glob::new(&"?".repeat(length)).unwrap().fits(&text), "{length}");
        }
        assert_eq!(Glob::new(&"a".repeat(LONGEST + 1)), None);
        assert!(Glob::new(&"*".repeat(LONGEST)).unwrap().fits("anything"));
    }

    /// The way one would write it down, which takes for ever where patterns repeat themselves.
    fn simple(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), None) => simple(&pattern[1..], text),
            (Some(b'*'), Some(_)) => simple(&pattern[1..], text) || simple(pattern, &text[1..]),
            (Some(p), Some(t)) if *p == b'?' || p == t => simple(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    #[test]
    fn every_short_pattern_fits_what_it_should() {
        let words = |letters: &[u8], longest: u32| {
            let mut all = vec![Vec::new()];
            for length in 1..=longest {
                for n in 0..letters.len().pow(length) {
                    let letter = |at: u32| letters[n / letters.len().pow(at) % letters.len()];
                    all.push((0..length).map(letter).collect());
                }
            }
            all
        };
        let texts: Vec<Vec<u8>> = words(b"ab", 5);
        for pattern in words(b"ab*?", 5) {
            let glob = Glob::new(std::str::from_utf8(&pattern).unwrap()).unwrap();
            for text in &texts {
                let (p, t) = (String::from_utf8_lossy(&pattern), String::from_utf8_lossy(text));
                assert_eq!(glob.fits(&t), simple(&pattern, text), "{p} {t}");
            }
        }
    }
}
