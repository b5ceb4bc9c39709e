//! Path patterns for advisory file reservations, and whether two of them can name the same path.
//!
//! # Syntax
//!
//! | written | matches |
//! |---|---|
//! | `*` | any run of characters inside one segment, also none |
//! | `?` | one character |
//! | `[a-z]`, `[!a-z]` | one character in, or not in, the class (`[^a-z]` is read like `[!a-z]`) |
//! | `**` | as a whole segment: any number of segments, also none; inside a longer segment: the same as `*` |
//! | `{a,b}` | either text; may nest, and is expanded when the pattern is parsed |
//! | `\*` | the character itself; only for one of `* ? [ ] { } , ! ^ - \` |
//! | anything else | itself, compared by code point and case-sensitively |
//!
//! - A pattern covers what it names and everything below: `src` covers `src/app.py`.
//! - A backslash before any other character is refused rather than dropped: it is most likely a Windows
//!   separator, and reading `src\app.py` as `srcapp.py` would reserve a file that does not exist.
//! - `./`, repeated `/` and a trailing `/` mean nothing and are dropped.
//! - No wildcard or class matches `/` or a control character. A closing `]` or `}` without an opening one is
//!   literal.
//! - A text with a scheme, such as `tool://build-slot`, is a name and not a path: it has no wildcards and
//!   overlaps only the identical text.
//!
//! # Cost
//!
//! With `m` and `n` the sizes of the two patterns after brace expansion, [`PathPattern::overlaps`] takes
//! O(m · n) time and O(m + n) memory whatever the wildcards: both layers, segments and characters, walk a table
//! instead of backtracking. Sizes are limited at parse: 1,024 without braces (at most a quarter more where
//! classes are negated), 2,048 with.

mod chars;
mod overlap;
mod parse;
mod steps;
#[cfg(test)]
mod tests;

use std::fmt;

use chars::CharSet;
pub use steps::Steps;

/// The longest pattern text, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1024;
/// The most segments one alternative of a pattern may have.
pub const MAX_SEGMENTS: usize = 64;
/// The most alternatives a pattern may have once its braces are expanded.
pub const MAX_ALTERNATIVES: usize = 64;
/// The most characters all alternatives of a pattern may have together, a class counting as many as its ranges.
///
/// Without it, 64 alternatives with a long common tail would make one comparison 4,096 times more expensive.
pub const MAX_EXPANDED: usize = 2048;

/// What comparing two patterns costs at least, in [`Steps`].
const PAIR_STEPS: usize = 8;

/// What determines the cost of comparing a pattern with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// `*` and `**`, as written.
    pub wildcards: usize,
    /// Characters of all alternatives together.
    pub expanded: usize,
}

/// A parsed path pattern: see the [module](self) for what may be written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PathPattern {
    source: String,
    matcher: Matcher,
}

/// Why a text is not a path pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern, or one of its alternatives, names nothing; write `**` for everything")]
    Empty,
    #[error("the pattern is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
    #[error("the pattern has more than {MAX_SEGMENTS} segments")]
    TooManySegments,
    #[error(
        "the braces stand for more than {MAX_ALTERNATIVES} alternatives or {MAX_EXPANDED} characters; \
         write several patterns"
    )]
    TooManyAlternatives,
    #[error("the pattern must be a path relative to the root of the project")]
    NotRelative,
    #[error("the pattern may not climb with `..`")]
    ParentSegment,
    #[error("the pattern holds a control character")]
    ControlCharacter,
    #[error("a `[` is not closed before the end of its segment; write `\\[` for the character itself")]
    UnclosedClass,
    #[error("a `{{` is not closed; write `\\{{` for the character itself")]
    UnclosedBrace,
    #[error("a character class has a range that runs backwards, or can match nothing")]
    BadClass,
    #[error("a backslash only escapes one of * ? [ ] {{ }} , ! ^ - \\; segments are parted by `/`")]
    BadEscape,
}

impl PathPattern {
    /// Parses a pattern, refusing texts that cannot name a path inside the project.
    pub fn parse(text: &str) -> Result<PathPattern, PatternError> {
        Ok(PathPattern { source: text.to_owned(), matcher: parse::parse(text)? })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether some path is covered by both patterns. Symmetric.
    ///
    /// Exact with one exception: a wildcard or a class is assumed to match the names `.` and `..`, so `.?` and `?.` are
    /// reported to overlap.
    pub fn overlaps(&self, other: &PathPattern) -> bool {
        self.overlaps_within(other, &Steps::new(u64::MAX))
    }

    /// The same within a budget: once it is exhausted the result is `false`, and [`Steps::is_spent`] is true.
    pub fn overlaps_within(&self, other: &PathPattern, steps: &Steps) -> bool {
        if !steps.spend(PAIR_STEPS) {
            return false;
        }
        match (&self.matcher, &other.matcher) {
            (Matcher::Name(mine), Matcher::Name(theirs)) => mine == theirs,
            (Matcher::Paths(mine), Matcher::Paths(theirs)) => {
                mine.iter().any(|a| theirs.iter().any(|b| overlap::paths(a, b, steps)))
            }
            _ => false,
        }
    }

    /// The number of wildcards that match runs (`*` and `**`), and of characters after brace expansion: what determines
    /// the cost of comparing the pattern.
    pub fn weight(&self) -> Weight {
        let Matcher::Paths(alternatives) = &self.matcher else {
            return Weight { wildcards: 0, expanded: self.source.len() };
        };
        let expanded = alternatives.iter().flatten().map(Segment::size).sum();
        let (mut wildcards, mut escaped, mut in_run) = (0, false, false);
        for c in self.source.chars() {
            let is_star = c == '*' && !escaped;
            wildcards += usize::from(is_star && !in_run);
            in_run = is_star;
            escaped = c == '\\' && !escaped;
        }
        Weight { wildcards, expanded }
    }

    /// Whether the pattern covers this one path, in which no character is special.
    ///
    /// A path that no pattern may name (absolute, with `..`, with control characters, empty) is not covered.
    pub fn covers(&self, path: &str) -> bool {
        match &self.matcher {
            Matcher::Name(name) => name == path,
            Matcher::Paths(alternatives) => parse::concrete(path).is_some_and(|path| {
                let steps = Steps::new(u64::MAX);
                alternatives.iter().any(|pattern| overlap::paths(pattern, &path, &steps))
            }),
        }
    }

    /// The first segment, if it is the same literal in all alternatives; a name with a scheme is its own head.
    ///
    /// For an index: two patterns with different heads do not overlap, while a pattern without a head may overlap any
    /// path.
    pub fn head(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Name(name) => Some(name),
            Matcher::Paths(alternatives) => {
                let mut heads = alternatives.iter().map(|segments| match segments.first() {
                    Some(Segment::Literal(text)) => Some(text.as_str()),
                    _ => None,
                });
                let first = heads.next()??;
                heads.all(|head| head == Some(first)).then_some(first)
            }
        }
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathPattern").field(&self.source).finish()
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Matcher {
    /// A name with a scheme: matched as a whole.
    Name(String),
    /// The alternatives, none of them empty. Each ends with [`Segment::AnyDepth`], for the paths below it.
    Paths(Vec<Vec<Segment>>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    /// `**`.
    AnyDepth,
    Literal(String),
    /// Contains at least one atom other than [`Atom::Char`], and never two [`Atom::Star`] in a row.
    Wild(Vec<Atom>),
}

impl Segment {
    fn size(&self) -> usize {
        match self {
            Segment::AnyDepth => 1,
            Segment::Literal(text) => text.len(),
            Segment::Wild(atoms) => atoms
                .iter()
                .map(|atom| match atom {
                    Atom::Class(class) => class.size(),
                    _ => 1,
                })
                .sum(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Atom {
    /// `*`.
    Star,
    /// `?`.
    AnyChar,
    Char(char),
    /// Never empty, so that every segment can be matched by some name.
    Class(CharSet),
}
