//! Finds the message that a short name means: its seq, or the beginning of its id.

use super::{View, Viewed};
use crate::error::{EngineError, Refusal};
use crate::nouns::{Caller, MessageId, Seq};
use crate::sight;
use crate::store::{all, rows};

/// The fewest digits of an id prefix.
const MIN_PREFIX_DIGITS: usize = 4;
/// Messages with the same id prefix that are read.
const MAX_PREFIX_MATCHES: i64 = 200;
/// Candidates that are returned if the prefix is ambiguous.
const MAX_CANDIDATES: usize = 5;

/// What a short name means, among the messages that the caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// No message.
    None,
    /// This one.
    One(MessageId),
    /// Several: the latest of them with their seqs. The name must be longer.
    Several(Vec<(MessageId, Seq)>),
}

impl View<'_> {
    /// The message with this id or seq, or with this id prefix. A seq wins over a prefix.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn message_named(&self, caller: &Caller, word: &str) -> Viewed<Named> {
        if let Ok(id) = word.parse() {
            let id = MessageId(id);
            return Ok(self.visible(self.message(caller, id))?.map_or(Named::None, Named::One));
        }
        let is_number = !word.starts_with('0') && word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(seq) = word.parse::<Seq>().ok().filter(|_| is_number)
            && let Some(id) = self.visible(self.message_at(caller, seq))?
        {
            return Ok(Named::One(id));
        }
        match range(word) {
            Some((first, last)) => self.messages_between(caller, &first, &last),
            None => Ok(Named::None),
        }
    }

    fn visible(&self, found: Viewed<super::Tracked>) -> Viewed<Option<MessageId>> {
        match found {
            Ok(tracked) => Ok(Some(tracked.message.id)),
            Err(EngineError::Refused(Refusal::NoSuchMessage)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn messages_between(&self, caller: &Caller, first: &[u8; 16], last: &[u8; 16]) -> Viewed<Named> {
        let sql = "SELECT seq FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3";
        let alike: Vec<Seq> =
            all(self.db, sql, (&first[..], &last[..], MAX_PREFIX_MATCHES), |row| row.get::<_, Seq>(0))?;
        let mut seen = Vec::new();
        for seq in &alike {
            self.budget.checkpoint()?;
            let Some(message) = rows::message_at(self.db, *seq)? else { continue };
            if sight::sees_message(self.db, caller, &message)? {
                seen.push((message.id, message.seq));
            }
            if seen.len() == MAX_CANDIDATES {
                break;
            }
        }
        // Messages that were not read may contain a second match.
        let all_read = (alike.len() as i64) < MAX_PREFIX_MATCHES;
        Ok(match seen.as_slice() {
            [] if all_read => Named::None,
            [(id, _)] if all_read => Named::One(*id),
            _ => Named::Several(seen),
        })
    }
}

/// The first and the last id with this prefix of hexadecimal digits; hyphens are skipped.
fn range(word: &str) -> Option<([u8; 16], [u8; 16])> {
    let digits: Vec<u8> = word
        .bytes()
        .filter(|byte| *byte != b'-')
        .map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    if !(MIN_PREFIX_DIGITS..32).contains(&digits.len()) {
        return None;
    }
    let filled = |with: u8| {
        let mut id = [0; 16];
        for (n, byte) in id.iter_mut().enumerate() {
            let digit = |at: usize| digits.get(at).copied().unwrap_or(with);
            *byte = digit(2 * n) << 4 | digit(2 * n + 1);
        }
        id
    };
    Some((filled(0), filled(0xf)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_the_ids_that_start_with_it() {
        let (first, last) = range("019a8e5e-6").unwrap();
        assert_eq!(first[..5], [0x01, 0x9a, 0x8e, 0x5e, 0x60]);
        assert_eq!(last[..6], [0x01, 0x9a, 0x8e, 0x5e, 0x6f, 0xff]);
        for word in
            ["", "abc", "0-1-2", "xyzw", "019a8e5e6f0c7c55b2f40d2f8a5f6d3e", "\u{e9}\u{e9}\u{e9}\u{e9}"]
        {
            assert_eq!(range(word), None, "{word}");
        }
    }
}
