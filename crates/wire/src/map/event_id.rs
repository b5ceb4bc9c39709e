//! Event ids: ULIDs built from an event's time, log and sequence number. They sort in log order, need no table to find
//! the event again after a restart, and differ between event logs.

use crate::Id;

/// Bits of the sequence number, the low part of the id's last 64 bits. The bits above number unlogged events.
const SEQ_BITS: u32 = 48;
/// Number of distinct ids for unlogged events at one sequence number.
const UNLOGGED_IDS_PER_SEQ: u16 = 0x7fff;

/// The id of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// Time of the event, in Unix milliseconds.
    pub at: i64,
    /// Tag of the event log; see [`log_tag`].
    pub log_tag: u16,
    /// Sequence number in that log.
    pub seq: i64,
}

impl EventId {
    /// The id as a ULID: 48 bits of time, 16 bits of log tag, 16 bits that are zero, 48 bits of sequence number.
    #[must_use]
    pub fn ulid(self) -> String {
        self.format(0)
    }

    /// The id of an event that is not in the log (a heartbeat, for example), sent when this one was the newest. A client
    /// that resumes from it continues after this event.
    #[must_use]
    pub fn unlogged_ulid(self, number: u16) -> String {
        self.format(u64::from(number % UNLOGGED_IDS_PER_SEQ + 1))
    }

    fn format(self, unlogged: u64) -> String {
        let at = self.at.max(0).unsigned_abs() & ((1 << 48) - 1);
        let seq = self.seq.max(0).unsigned_abs() & ((1 << SEQ_BITS) - 1) | unlogged << SEQ_BITS;
        Id(u128::from(at) << 80 | u128::from(self.log_tag) << 64 | u128::from(seq)).ulid().to_string()
    }

    /// Parses the id of a logged or unlogged event; `None` if this crate cannot have made it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Id(bits) = Id::parse_prefixed(text, "").ok()?;
        let at = i64::try_from(bits >> 80).ok()?;
        let log_tag = u16::try_from(bits >> 64 & 0xffff).ok()?;
        let low = i64::try_from(bits & u128::from(u64::MAX)).ok()?;
        let seq = low & ((1 << SEQ_BITS) - 1);
        Some(Self { at, log_tag, seq })
    }
}

/// A 16-bit hash of an event log's name (FNV-1a, folded), which tells ids of different logs apart.
#[must_use]
pub fn log_tag(name: &str) -> u16 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let folded = (hash >> 16) ^ (hash & 0xffff);
    u16::try_from(folded).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn event_id_round_trips(at in 0_i64..1 << 48, log_tag: u16, seq in 0_i64..1 << 48) {
            let id = EventId { at, log_tag, seq };
            prop_assert_eq!(EventId::parse(&id.ulid()), Some(id));
            prop_assert_eq!(id.ulid().len(), 26);
        }

        #[test]
        fn unlogged_id_differs_and_parses_to_its_event(seq in 0_i64..1 << 48, n: u16, m: u16) {
            let id = EventId { at: 1, log_tag: 7, seq };
            prop_assert_eq!(EventId::parse(&id.unlogged_ulid(n)), Some(id));
            prop_assert_ne!(id.unlogged_ulid(n), id.ulid());
            prop_assert_eq!(id.unlogged_ulid(n) == id.unlogged_ulid(m), n % UNLOGGED_IDS_PER_SEQ == m % UNLOGGED_IDS_PER_SEQ);
        }

        #[test]
        fn ids_sort_in_log_order(at in 0_i64..1 << 40, later in 0_i64..1000, seq in 0_i64..1 << 40) {
            let one = EventId { at, log_tag: 7, seq };
            let next = EventId { at: at + later, log_tag: 7, seq: seq + 1 };
            prop_assert!(one.ulid() < next.ulid());
        }

        #[test]
        fn any_text_parses_without_panic(text in ".{0,40}") {
            let _ = EventId::parse(&text);
        }
    }
}
