//! Parses the text of a pattern into alternatives of segments.

use std::iter::Peekable;
use std::str::Chars;

use super::chars::CharSet;
use super::{
    Atom, MAX_ALTERNATIVES, MAX_EXPANDED, MAX_PATTERN_BYTES, MAX_SEGMENTS, Matcher, PatternError, Segment,
};

/// The characters that a backslash may escape.
const SPECIAL: &str = r"*?[]{},!^-\";

/// Parses a whole pattern.
pub(super) fn parse(text: &str) -> Result<Matcher, PatternError> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(PatternError::ControlCharacter);
    }
    if let Some((scheme, name)) = split_scheme(text) {
        // A file URL is a path, and not one inside the project.
        if scheme.eq_ignore_ascii_case("file") {
            return Err(PatternError::NotRelative);
        }
        return if name.is_empty() { Err(PatternError::Empty) } else { Ok(Matcher::Name(text.to_owned())) };
    }
    if is_absolute(text) {
        return Err(PatternError::NotRelative);
    }
    let mut paths = Vec::new();
    for alternative in expand(text)? {
        let path = segments(&alternative)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(Matcher::Paths(paths))
}

/// The segments of one concrete path, or `None` if no pattern may name it.
pub(super) fn concrete(path: &str) -> Option<Vec<Segment>> {
    if split_scheme(path).is_some() || is_absolute(path) || path.chars().any(char::is_control) {
        return None;
    }
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let valid = !names.is_empty() && !names.contains(&"..");
    valid.then(|| names.into_iter().map(|name| Segment::Literal(name.to_owned())).collect())
}

/// Splits `tool://build-slot` into `tool` and `build-slot`.
///
/// A scheme has at least two characters, so that `C://x` is read as a drive.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let valid = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    valid.then_some((scheme, rest))
}

/// `/x`, `\\server`, `C:\x`, `C:/x`, `C:`, or `~`, which stands for a home directory.
fn is_absolute(text: &str) -> bool {
    let has_drive = match text.as_bytes() {
        [drive, b':', rest @ ..] => drive.is_ascii_alphabetic() && matches!(rest, [] | [b'/' | b'\\', ..]),
        _ => false,
    };
    has_drive || text.starts_with(['/', '~']) || text.starts_with(r"\\")
}

/// One item of a pattern once braces and escapes are gone.
#[derive(Clone)]
enum Token {
    Slash,
    Atom(Atom),
}

impl Token {
    fn size(&self) -> usize {
        match self {
            Token::Atom(Atom::Class(class)) => class.size(),
            _ => 1,
        }
    }

    fn plain(&self) -> Option<char> {
        match self {
            Token::Slash => Some('/'),
            Token::Atom(Atom::Char(c)) => Some(*c),
            Token::Atom(_) => None,
        }
    }
}

/// The alternatives of one open brace: those that a comma has ended, and those still being read, of which there are
/// several if the text has inner braces.
struct Brace {
    ended: Vec<Vec<Token>>,
    open: Vec<Vec<Token>>,
}

impl Brace {
    fn new() -> Brace {
        Brace { ended: Vec::new(), open: vec![Vec::new()] }
    }

    fn push(&mut self, token: &Token) {
        for alternative in &mut self.open {
            alternative.push(token.clone());
        }
    }

    fn comma(&mut self) -> Result<(), PatternError> {
        self.ended.append(&mut self.open);
        self.open.push(Vec::new());
        within_alternatives(self.ended.len() + self.open.len())
    }

    /// Continues every alternative being read with every alternative of an inner brace.
    fn append(&mut self, inner: Brace) -> Result<(), PatternError> {
        let endings: Vec<_> = inner.ended.into_iter().chain(inner.open).collect();
        within_alternatives(self.ended.len() + self.open.len() * endings.len())?;
        self.open = self
            .open
            .iter()
            .flat_map(|start| endings.iter().map(move |ending| [start.as_slice(), ending].concat()))
            .collect();
        Ok(())
    }
}

fn within_alternatives(count: usize) -> Result<(), PatternError> {
    if count > MAX_ALTERNATIVES { Err(PatternError::TooManyAlternatives) } else { Ok(()) }
}

/// Reads tokens and expands braces in one pass, with a stack instead of recursion, so that nesting cannot overflow.
fn expand(text: &str) -> Result<Vec<Vec<Token>>, PatternError> {
    let mut outer = Vec::new();
    let mut brace = Brace::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let token = match c {
            '{' => {
                outer.push(std::mem::replace(&mut brace, Brace::new()));
                continue;
            }
            ',' if !outer.is_empty() => {
                brace.comma()?;
                continue;
            }
            '}' if let Some(parent) = outer.pop() => {
                let inner = std::mem::replace(&mut brace, parent);
                brace.append(inner)?;
                continue;
            }
            '/' => Token::Slash,
            '*' => Token::Atom(Atom::Star),
            '?' => Token::Atom(Atom::AnyChar),
            '[' => Token::Atom(class(&mut chars)?),
            '\\' => Token::Atom(Atom::Char(escaped(&mut chars)?)),
            c => Token::Atom(Atom::Char(c)),
        };
        brace.push(&token);
    }
    if !outer.is_empty() {
        return Err(PatternError::UnclosedBrace);
    }
    let size: usize = brace.open.iter().flatten().map(Token::size).sum();
    if size > MAX_EXPANDED { Err(PatternError::TooManyAlternatives) } else { Ok(brace.open) }
}

/// The character after a backslash.
fn escaped(chars: &mut Peekable<Chars<'_>>) -> Result<char, PatternError> {
    chars.next().filter(|c| SPECIAL.contains(*c)).ok_or(PatternError::BadEscape)
}

/// A character class, from after its `[` to its `]`, which is a member if it comes first.
fn class(chars: &mut Peekable<Chars<'_>>) -> Result<Atom, PatternError> {
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let first = match chars.next() {
            Some(']') if !ranges.is_empty() => break,
            c => member(c, chars)?,
        };
        let mut last = first;
        // A `-` makes a range, unless it comes last before the `]`.
        let mut ahead = chars.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|c| *c != ']') {
            let c = ahead.next();
            last = member(c, &mut ahead)?;
            *chars = ahead;
        }
        if last < first {
            return Err(PatternError::BadClass);
        }
        ranges.push((first, last));
    }
    let set = CharSet::new(&ranges, negated).ok_or(PatternError::BadClass)?;
    // `[x]` is `x`, so that a pattern spelled this way still counts as a literal.
    Ok(set.single().map_or(Atom::Class(set), Atom::Char))
}

/// One end of a range in a class.
fn member(c: Option<char>, chars: &mut Peekable<Chars<'_>>) -> Result<char, PatternError> {
    match c {
        None | Some('/') => Err(PatternError::UnclosedClass),
        Some('\\') => escaped(chars),
        Some(c) => Ok(c),
    }
}

/// Splits one alternative at its slashes and ends it with `**`, for the paths below it.
fn segments(tokens: &[Token]) -> Result<Vec<Segment>, PatternError> {
    // Braces and escapes can produce what `parse` checked for in the raw text, so it is checked again.
    let start: String = tokens.iter().map_while(Token::plain).collect();
    if is_absolute(&start) || split_scheme(&start).is_some() {
        return Err(PatternError::NotRelative);
    }
    let mut out: Vec<Segment> = Vec::new();
    for part in tokens.split(|token| matches!(token, Token::Slash)) {
        let atoms = part.iter().filter_map(|token| match token {
            Token::Slash => None,
            Token::Atom(atom) => Some(atom.clone()),
        });
        match segment(atoms.collect()) {
            Segment::Literal(name) if matches!(name.as_str(), "" | ".") => {}
            Segment::Literal(name) if name == ".." => return Err(PatternError::ParentSegment),
            Segment::AnyDepth if out.last() == Some(&Segment::AnyDepth) => {}
            segment => out.push(segment),
        }
    }
    if out.is_empty() {
        return Err(PatternError::Empty);
    }
    if out.len() > MAX_SEGMENTS {
        return Err(PatternError::TooManySegments);
    }
    if out.last() != Some(&Segment::AnyDepth) {
        out.push(Segment::AnyDepth);
    }
    Ok(out)
}

fn segment(mut atoms: Vec<Atom>) -> Segment {
    if atoms.len() > 1 && atoms.iter().all(|atom| *atom == Atom::Star) {
        return Segment::AnyDepth;
    }
    let literal: Option<String> = atoms
        .iter()
        .map(|atom| match atom {
            Atom::Char(c) => Some(*c),
            _ => None,
        })
        .collect();
    literal.map_or_else(
        || {
            atoms.dedup_by(|a, b| *a == Atom::Star && *b == Atom::Star);
            Segment::Wild(atoms)
        },
        Segment::Literal,
    )
}
