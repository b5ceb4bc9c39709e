//! Queries, forms and paths: decoding and encoding them.

use posthaste_engine::nouns::{AgentId, ConversationId, MessageId, Seq};

use super::answers::DoorError;

/// The named values of a query or form, in order, decoded.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

/// The named values of an address or a form. A value that is empty counts as not given.
#[derive(Clone, Debug, Default)]
pub(super) struct Given(Vec<(String, String)>);

impl Given {
    pub(super) fn new(text: &str) -> Self {
        Self(pairs(text))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// The value as it was written, with its white space.
    pub(super) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn needed(&self, name: &'static str) -> Result<&str, DoorError> {
        self.get(name).ok_or_else(|| DoorError::bad(format!("“{name}” is missing.")))
    }

    pub(super) fn seq(&self, name: &str) -> Result<Option<Seq>, DoorError> {
        self.get(name)
            .map(|text| text.parse().map_err(|_| DoorError::bad(format!("“{name}” is not a number."))))
            .transpose()
    }

    pub(super) fn agent(&self, name: &str) -> Result<Option<AgentId>, DoorError> {
        self.get(name)
            .map(|text| AgentId::new(text).map_err(|why| DoorError::bad(why.to_string())))
            .transpose()
    }

    pub(super) fn conversation(&self, name: &str) -> Result<Option<ConversationId>, DoorError> {
        self.get(name)
            .map(|text| ConversationId::new(text).map_err(|why| DoorError::bad(why.to_string())))
            .transpose()
    }

    pub(super) fn message(&self, name: &str) -> Result<Option<MessageId>, DoorError> {
        self.get(name)
            .map(|text| message_id(text).ok_or_else(|| DoorError::bad("This is not a message's id.")))
            .transpose()
    }
}

pub(super) fn message_id(text: &str) -> Option<MessageId> {
    text.parse().ok().map(MessageId)
}

/// The value of a path's parameter, by name.
pub(super) fn param<'a>(params: &'a [(String, String)], name: &str) -> &'a str {
    params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
}

/// Text as it may stand in a path or a query.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        bytes.push(match (first, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                match std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok())
                {
                    Some(byte) => {
                        rest = after;
                        byte
                    }
                    None => b'%',
                }
            }
            (byte, _) => *byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for text in ["", "ann", "a b+c&d=e%f", "Zoë / ä", "<script>", "100%"] {
            let query = format!("x={}&y=1", encoded(text));
            assert_eq!(pairs(&query), [("x".to_owned(), text.to_owned()), ("y".to_owned(), "1".to_owned())]);
        }
        assert_eq!(pairs("a=%zz&b"), [("a".to_owned(), "%zz".to_owned()), ("b".to_owned(), String::new())]);
    }
}
