//! What every letter and turn of a soak says somewhere in its text: from whom, to whom, and which one it is. Found again
//! at every door, whatever the door makes of the rest.

use std::fmt;

/// Conversations stand where recipients do, from this number on.
const CONVERSATIONS: u32 = 1 << 24;

/// One sender's letters to one recipient, numbered from 1. Those that promise nothing have numbers of their own.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Channel {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) loose: bool,
}

impl Channel {
    /// Letters that are kept once they are acknowledged.
    pub(super) fn kept(from: u32, to: u32) -> Self {
        Self { from, to, loose: false }
    }

    /// Letters by the fast lane, which a killed office may forget.
    pub(super) fn loose(from: u32, to: u32) -> Self {
        Self { from, to, loose: true }
    }

    /// What one says in a conversation.
    pub(super) fn turns(from: u32, conversation: u32) -> Self {
        Self { from, to: CONVERSATIONS + conversation, loose: false }
    }

    /// The conversation, if it is one.
    pub(super) fn conversation(self) -> Option<u32> {
        self.to.checked_sub(CONVERSATIONS)
    }
}

/// One letter or turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) channel: Channel,
    pub(super) n: u64,
}

impl Mark {
    /// The first mark in a text.
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

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Channel { from, to, loose } = self.channel;
        write!(f, "soak:{from}>{to}{}{};", if loose { '~' } else { '#' }, self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_whatever_a_door_made_of_it() {
        for channel in [Channel::kept(3, 70_000), Channel::loose(0, 1), Channel::turns(12, 5)] {
            let mark = Mark { channel, n: 981 };
            assert_eq!(Mark::find(&format!("{{\"text\":\"Re: {mark} and more; #1\"}}")), Some(mark));
        }
        for text in ["", "soak:", "soak:1>2#x;", "soak:1>2#3", "soak:>#;", "soak:1-2#3;"] {
            assert_eq!(Mark::find(text), None, "{text}");
        }
        assert_eq!(Channel::turns(1, 7).conversation(), Some(7));
        assert_eq!(Channel::kept(1, 7).conversation(), None);
    }
}
