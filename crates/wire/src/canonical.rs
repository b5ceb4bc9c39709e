//! Canonical JSON (RFC 8785): one byte sequence for each value, so that values can be signed.
//!
//! Output does not depend on the in-memory order of maps: members are sorted when they are written.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Nesting depth at which texts and values are refused; the same as `serde_json`'s recursion limit for texts.
pub const DEPTH_LIMIT: usize = 128;

/// Why a text or value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The text is not JSON, nests too deep, or contains a lone surrogate or a number beyond the range of a double.
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// An object has two members of one name; parsers disagree on which one counts.
    #[error("the member {0:?} occurs twice in one object")]
    Duplicate(String),
    /// The value nests to [`DEPTH_LIMIT`] or deeper.
    #[error("nested {DEPTH_LIMIT} or more levels deep")]
    TooDeep,
    /// The value contains a number beyond the range of a double.
    #[error("a number is too large")]
    TooLarge,
    /// A member was to be removed, but the text is not an object.
    #[error("not a JSON object")]
    NotAnObject,
}

/// The canonical form of the JSON value in `text`.
///
/// Numbers are doubles, as the RFC demands: an integer beyond 2^53 becomes the nearest double.
pub fn canonicalize(text: &str) -> Result<String, CanonicalError> {
    Node::parse(text)?.canonical()
}

/// The canonical form of the JSON object in `text` without its top-level member `member`.
pub fn canonicalize_without(text: &str, member: &str) -> Result<String, CanonicalError> {
    canonicalize_and_remove(text, member).map(|(canonical, _)| canonical)
}

/// The canonical form of `value`.
pub fn canonicalize_value(value: &Value) -> Result<String, CanonicalError> {
    Node::from_value(value, 1)?.canonical()
}

/// The canonical form of the object in `text` without `member`, and the removed value.
pub(crate) fn canonicalize_and_remove<'a>(
    text: &'a str,
    member: &str,
) -> Result<(String, Option<Node<'a>>), CanonicalError> {
    let node = Node::parse(text)?;
    let canonical = node.canonical_without(member)?;
    let Node::Object(members) = node else { return Err(CanonicalError::NotAnObject) };
    Ok((canonical, members.into_iter().find(|(name, _)| name.0 == member).map(|(_, it)| it)))
}

/// A JSON value that keeps duplicate members and their order, so that duplicates can be detected.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Name<'a>, Node<'a>)>),
}

/// A member name, borrowed from the text unless it has escapes.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Node<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, CanonicalError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Borrows `value`; `level` is its nesting depth if it is an array or object.
    fn from_value(value: &'a Value, level: usize) -> Result<Self, CanonicalError> {
        if level >= DEPTH_LIMIT && (value.is_array() || value.is_object()) {
            return Err(CanonicalError::TooDeep);
        }
        Ok(match value {
            Value::Null => Node::Null,
            Value::Bool(it) => Node::Bool(*it),
            Value::Number(it) => Node::Number(it.clone()),
            Value::String(it) => Node::Text(Cow::Borrowed(it)),
            Value::Array(items) => Node::Array(
                items.iter().map(|item| Node::from_value(item, level + 1)).collect::<Result<_, _>>()?,
            ),
            Value::Object(members) => Node::Object(
                members
                    .iter()
                    .map(|(name, it)| Ok((Name(Cow::Borrowed(name)), Node::from_value(it, level + 1)?)))
                    .collect::<Result<_, CanonicalError>>()?,
            ),
        })
    }

    /// Converts to a `Value`. The last of several members of one name wins; `canonical_without` refuses them anyway.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Node::Null => Value::Null,
            Node::Bool(it) => Value::Bool(it),
            Node::Number(it) => Value::Number(it),
            Node::Text(it) => Value::String(it.into_owned()),
            Node::Array(items) => Value::Array(items.into_iter().map(Node::into_value).collect()),
            Node::Object(members) => Value::Object(
                members.into_iter().map(|(name, it)| (name.0.into_owned(), it.into_value())).collect(),
            ),
        }
    }

    fn canonical(&self) -> Result<String, CanonicalError> {
        let mut out = String::new();
        self.write(&mut out)?;
        Ok(out)
    }

    /// The canonical form of an object without one of its members.
    pub(crate) fn canonical_without(&self, member: &str) -> Result<String, CanonicalError> {
        let Node::Object(members) = self else { return Err(CanonicalError::NotAnObject) };
        let mut members = sorted_unique(members)?;
        // Removed after the duplicate check, so that an object with two signatures is refused.
        members.retain(|(name, _)| name.0 != member);
        let mut out = String::with_capacity(512);
        write_object(&mut out, &members)?;
        Ok(out)
    }

    fn write(&self, out: &mut String) -> Result<(), CanonicalError> {
        match self {
            Node::Null => out.push_str("null"),
            Node::Bool(true) => out.push_str("true"),
            Node::Bool(false) => out.push_str("false"),
            Node::Number(it) => write_number(out, it.as_f64().ok_or(CanonicalError::TooLarge)?),
            Node::Text(it) => write_text(out, it),
            Node::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out)?;
                }
                out.push(']');
            }
            Node::Object(members) => write_object(out, &sorted_unique(members)?)?,
        }
        Ok(())
    }
}

type Member<'a> = (Name<'a>, Node<'a>);

/// Sorts members and refuses duplicate names, which are adjacent once sorted.
fn sorted_unique<'m, 'a>(members: &'m [Member<'a>]) -> Result<Vec<&'m Member<'a>>, CanonicalError> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by(|(a, _), (b, _)| compare(&a.0, &b.0));
    match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(CanonicalError::Duplicate(pair[0].0.0.to_string())),
        None => Ok(members),
    }
}

/// Compares by UTF-16 code units, as RFC 8785 demands. UTF-8 order differs: it puts U+1F600 after U+FB33.
fn compare(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_object(out: &mut String, members: &[&Member<'_>]) -> Result<(), CanonicalError> {
    out.push('{');
    for (i, (name, it)) in members.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_text(out, &name.0);
        out.push(':');
        it.write(out)?;
    }
    out.push('}');
    Ok(())
}

/// Writes a finite double like ECMAScript's `Number::toString`.
///
/// Like Rust, ECMAScript prints the fewest digits that round-trip. It differs in the sign of zero, in when it uses an
/// exponent, in the exponent's `+`, and in ties between two equally near digit strings: it takes the even one, Rust the
/// greater.
fn write_number(out: &mut String, number: f64) {
    if number == 0.0 {
        return out.push('0');
    }
    let magnitude = number.abs();
    let is_decimal = (1e-6..1e21).contains(&magnitude);
    let mut digits = if is_decimal { number.to_string() } else { format!("{number:e}") };
    if let Some((_, tail)) = digits.split_once('.') {
        // With an explicit number of decimals Rust rounds ties to even. Next to a power of two, where doubles are
        // closer on one side, the result may not round-trip and is dropped.
        let decimals = tail.find('e').unwrap_or(tail.len());
        let even = if is_decimal { format!("{number:.decimals$}") } else { format!("{number:.decimals$e}") };
        if even.parse() == Ok(number) {
            digits = even;
        }
    }
    if !is_decimal && magnitude > 1.0 {
        digits = digits.replace('e', "e+");
    }
    out.push_str(&digits);
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    // Every character that needs an escape is one byte long, so the text between them is copied in one piece.
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

impl<'de: 'a, 'a> Deserialize<'de> for Node<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(it.into()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(it.into()))
    }

    fn visit_f64<E: de::Error>(self, it: f64) -> Result<Node<'de>, E> {
        Number::from_f64(it).map(Node::Number).ok_or_else(|| E::custom("a number is too large"))
    }

    fn visit_borrowed_str<E>(self, it: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(it)))
    }

    fn visit_str<E>(self, it: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(it.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(canonicalize(text).unwrap(), expect, "{text}");
    }

    #[test]
    fn numbers_are_written_like_ecmascript() {
        for (text, expect) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1e21", "1e+21"),
            ("-1E+21", "-1e+21"),
            ("999999999999999900000", "999999999999999900000"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("-1.5e-9", "-1.5e-9"),
            ("123e-2", "1.23"),
            ("-935595637576442.25", "-935595637576442.2"),
            ("935595637576442.75", "935595637576442.8"),
            ("2.98023223876953125e-8", "2.9802322387695312e-8"),
            ("1.5e300", "1.5e+300"),
            ("5e-324", "5e-324"),
            ("1e-400", "0"),
            ("9007199254740993", "9007199254740992"),
            ("18446744073709551615", "18446744073709552000"),
            ("333333333333333333333333", "3.333333333333333e+23"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn strings_use_minimal_escapes() {
        check(r#" "\u0041\u00e9\/\"\\" "#, r#""Aé/\"\\""#);
        check(r#""\b\t\n\f\r\u0000\u001F\u007f""#, "\"\\b\\t\\n\\f\\r\\u0000\\u001f\u{7f}\"");
        check(r#""\ud83d\ude00""#, "\"😀\"");
    }

    #[test]
    fn members_are_sorted_by_utf16_at_every_level() {
        check(r#"{"b":[{"z":1,"a":2}],"a":{}, "":null}"#, r#"{"":null,"a":{},"b":[{"a":2,"z":1}]}"#);
        check("{\"\u{fb33}\":1,\"\u{1f600}\":2}", "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }

    #[test]
    fn duplicate_members_are_refused_even_if_escaped() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"b":2,"\u0061":3}"#, r#"[{"x":{"a":1,"a":2}}]"#] {
            assert!(
                matches!(canonicalize(text), Err(CanonicalError::Duplicate(name)) if name == "a"),
                "{text}"
            );
        }
        let twice = r#"{"signature":"x","b":1,"signature":"y"}"#;
        assert!(matches!(canonicalize_without(twice, "signature"), Err(CanonicalError::Duplicate(_))));
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            "1 2",
            "{",
            "[1,]",
            "01",
            "nan",
            r#""\ud800""#,
            r#""\ude00\ud83d""#,
            "1e400",
            "'a'",
            "\u{feff}1",
        ] {
            assert!(matches!(canonicalize(text), Err(CanonicalError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn depth_limit_is_the_same_for_texts_and_values() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(canonicalize(&nested(DEPTH_LIMIT - 1)).is_ok());
        assert!(matches!(canonicalize(&nested(DEPTH_LIMIT)), Err(CanonicalError::Syntax(_))));

        let value =
            |depth: usize| (1..depth).fold(Value::Array(vec![]), |inner, _| Value::Array(vec![inner]));
        assert!(canonicalize_value(&value(DEPTH_LIMIT - 1)).is_ok());
        assert!(matches!(canonicalize_value(&value(DEPTH_LIMIT)), Err(CanonicalError::TooDeep)));
    }

    #[test]
    fn only_the_top_level_member_is_removed() {
        let text = r#"{"signature":"s","b":{"signature":1},"a":2}"#;
        assert_eq!(canonicalize_without(text, "signature").unwrap(), r#"{"a":2,"b":{"signature":1}}"#);
        assert_eq!(canonicalize_without(r#"{"b":1,"a":2}"#, "signature").unwrap(), r#"{"a":2,"b":1}"#);
        assert!(matches!(canonicalize_without("[1]", "signature"), Err(CanonicalError::NotAnObject)));
    }
}
