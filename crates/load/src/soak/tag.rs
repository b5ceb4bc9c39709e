//! The tag in the text of every message and turn of a soak: sender, recipient and number. Found again in what each door
//! makes of the message.

use std::fmt;

/// Recipients from this number on are conversations.
const CONVERSATIONS: u32 = 1 << 24;

/// One sender's messages to one recipient, numbered from 1. Fire-and-forget messages have numbers of their own.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Channel {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) loose: bool,
}

impl Channel {
    /// Messages that are kept once they are acknowledged.
    pub(super) fn kept(from: u32, to: u32) -> Self {
        Self { from, to, loose: false }
    }

    /// Fire-and-forget messages, which may be lost when the server is killed.
    pub(super) fn loose(from: u32, to: u32) -> Self {
        Self { from, to, loose: true }
    }

    /// One sender's turns in a conversation.
    pub(super) fn turns(from: u32, conversation: u32) -> Self {
        Self { from, to: CONVERSATIONS + conversation, loose: false }
    }

    /// The conversation, if it is one.
    pub(super) fn conversation(self) -> Option<u32> {
        self.to.checked_sub(CONVERSATIONS)
    }
}

/// One message or turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) channel: Channel,
    pub(super) n: u64,
}

impl Tag {
    /// The first tag in a text.
    pub(super) fn find(text: &str) -> Option<Self> {
        let rest = &text[text.find("soak:")? + "soak:".len()..];
        let (from, rest) = rest.split_once('>')?;
        let end = rest.find(['#', '~'])?;
        let (to, rest) = rest.split_at(end);
        let (kind, rest) = rest.split_at(1);
        let (n, _) = rest.split_once(';')?;
        let channel = Channel { from: from.parse().ok()?, to: to.parse().ok()?, loose: kind == "~" };
        Some(Self { channel, n: n.parse().ok()? })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Channel { from, to, loose } = self.channel;
        write!(f, "soak:{from}>{to}{}{};", if loose { '~' } else { '#' }, self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_any_text() {
        for channel in [Channel::kept(3, 70_000), Channel::loose(0, 1), Channel::turns(12, 5)] {
            let tag = Tag { channel, n: 981 };
            assert_eq!(Tag::find(&format!("{{\"text\":\"Re: {tag} and more; #1\"}}")), Some(tag));
        }
        for text in ["", "soak:", "soak:1>2#x;", "soak:1>2#3", "soak:>#;", "soak:1-2#3;"] {
            assert_eq!(Tag::find(text), None, "{text}");
        }
        assert_eq!(Channel::turns(1, 7).conversation(), Some(7));
        assert_eq!(Channel::kept(1, 7).conversation(), None);
    }
}
