//! Sets `read` in a file's text. All other bytes stay as they are, because numbers and escapes of other writers would
//! not survive parsing and writing.

use std::ops::Range;

use serde_json::Value;

/// The text with `read` set to true; `None` if it is set already or the text is not a JSON object.
#[must_use]
pub fn set_read(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    if super::message::is_read(value.as_object()?) {
        return None;
    }
    let members = members(text)?;
    // The last of several members of one name counts, as in the parsers that peers use.
    if let Some(member) = members.iter().rev().find(|member| member.key == "read") {
        return Some(format!("{}true{}", &text[..member.value.start], &text[member.value.end..]));
    }
    Some(insert(text, &members))
}

/// One member of the top-level object.
struct Member {
    key: String,
    /// Byte offset of the key.
    start: usize,
    value: Range<usize>,
}

/// Inserts `read` at its sorted position, with the white space of the other members.
fn insert(text: &str, members: &[Member]) -> String {
    let Some(first) = members.first() else {
        let brace = text.find('{').unwrap_or(0);
        return format!("{}{{\"read\": true}}\n", &text[..brace]);
    };
    let open = text.find('{').map_or(0, |brace| brace + 1);
    let space = &text[open..first.start];
    let colon = if text[first.start..first.value.start].contains(": ") { ": " } else { ":" };
    let sorted = members.windows(2).all(|pair| pair[0].key <= pair[1].key);
    let before = members.iter().find(|member| sorted && member.key.as_str() > "read");
    match (before, members.last()) {
        (Some(next), _) => {
            format!("{}\"read\"{colon}true,{space}{}", &text[..next.start], &text[next.start..])
        }
        (None, Some(last)) => {
            format!("{},{space}\"read\"{colon}true{}", &text[..last.value.end], &text[last.value.end..])
        }
        (None, None) => text.to_owned(),
    }
}

/// The members of the top-level object of a text that is valid JSON.
fn members(text: &str) -> Option<Vec<Member>> {
    let bytes = text.as_bytes();
    let mut at = skip_space(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(bytes, at + 1);
    let mut members = Vec::new();
    while bytes.get(at) == Some(&b'"') {
        let start = at;
        at = skip_string(bytes, at)?;
        let key: String = serde_json::from_str(&text[start..at]).ok()?;
        at = skip_space(bytes, at);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        let from = skip_space(bytes, at + 1);
        at = skip_value(bytes, from)?;
        members.push(Member { key, start, value: from..at });
        at = skip_space(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
    }
    Some(members)
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| b" \t\r\n".contains(b)) {
        at += 1;
    }
    at
}

fn skip_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn skip_value(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => at = skip_string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return Some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return Some(at),
            _ => at += 1,
        }
        let ended = depth == 0 && matches!(bytes.get(at - 1), Some(b'"' | b'}' | b']'));
        if ended {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn set_read_changes_only_the_flag() {
        let text = "{ \"n\": 9007199254740993.10, \"x\": {\"read\": false, \"a\": \"}\\\"\"},\n\t\"read\" :false, \"z\":[1,{}] }\r\n";
        assert_eq!(set_read(text).unwrap(), text.replace("\"read\" :false", "\"read\" :true"));
        assert_eq!(set_read("{\"read\": true}"), None);
        assert_eq!(set_read("[]"), None);
        assert_eq!(set_read("{\"read\": fals"), None);
        assert_eq!(set_read("{\"\\u0072ead\":null}").unwrap(), "{\"\\u0072ead\":true}");
        assert_eq!(set_read("{\"read\":true,\"read\":false}").unwrap(), "{\"read\":true,\"read\":true}");
    }

    #[test]
    fn missing_flag_is_inserted_in_sorted_position() {
        let text = "{\n  \"from\": \"a\",\n  \"to\": \"b\"\n}\n";
        assert_eq!(set_read(text).unwrap(), "{\n  \"from\": \"a\",\n  \"read\": true,\n  \"to\": \"b\"\n}\n");
        assert_eq!(set_read("{\"to\":1,\"from\":2}").unwrap(), "{\"to\":1,\"from\":2,\"read\":true}");
        assert_eq!(set_read("{\"a\":1}").unwrap(), "{\"a\":1,\"read\":true}");
        assert_eq!(set_read(" {}").unwrap(), " {\"read\": true}\n");
    }

    proptest! {
        #[test]
        fn set_read_preserves_all_other_members(
            keys in prop::collection::vec("[a-z\"\\\\{},: ]{0,8}", 0..8),
            values in prop::collection::vec(prop_oneof![
                any::<String>().prop_map(|text| json!(text)),
                any::<i64>().prop_map(|number| json!(number)),
                Just(json!({"read": false, "a": ["]", {}]})),
                Just(json!(null)),
            ], 8),
            flag in prop_oneof![Just(None), Just(Some(json!(false))), Just(Some(json!(0))), Just(Some(json!(null)))],
            pretty in any::<bool>(),
        ) {
            let mut object: serde_json::Map<String, Value> = keys.into_iter().zip(values).collect();
            object.remove("read");
            if let Some(flag) = flag {
                object.insert("read".into(), flag);
            }
            let value = Value::Object(object.clone());
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let after: Value = serde_json::from_str(&set_read(&text).unwrap()).unwrap();
            object.insert("read".into(), json!(true));
            prop_assert_eq!(after, Value::Object(object));
        }
    }
}
