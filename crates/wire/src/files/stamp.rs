//! Moments to the nanosecond, as they stand in names and in the field `timestamp`.

use std::fmt;

use jiff::civil::Date;

/// Seconds between 1970 and the last moment that four digits of a year can write.
const LAST: i64 = 253_402_300_799;
/// The first moment of the year 0.
const FIRST: i64 = -62_167_219_200;
/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// A moment, written `2026-03-05T10:30:00.123456789Z`. Always nine decimals, so that texts sort as moments do and
/// no name of ours meets one of a peer that writes whole seconds or milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(i128);

/// A moment that was read, and how finely it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The moment.
    pub stamp: Stamp,
    /// How many decimals of the second were given, at most nine.
    pub decimals: u8,
}

impl Stamp {
    /// A moment from nanoseconds since 1970; nothing outside the years 0 to 9999, which cannot be written.
    #[must_use]
    pub fn from_nanos(nanos: i128) -> Option<Self> {
        let second = nanos.div_euclid(SECOND);
        let writable = (i128::from(FIRST)..=i128::from(LAST)).contains(&second);
        writable.then_some(Self(nanos))
    }

    /// The moment nearest to these nanoseconds that can be written.
    #[must_use]
    pub fn nearest(nanos: i128) -> Self {
        Self(nanos.clamp(i128::from(FIRST) * SECOND, i128::from(LAST) * SECOND + SECOND - 1))
    }

    /// Nanoseconds since 1970.
    #[must_use]
    pub fn nanos(self) -> i128 {
        self.0
    }

    /// Milliseconds since 1970, cut off.
    #[must_use]
    pub fn millis(self) -> i64 {
        i64::try_from(self.0.div_euclid(1_000_000)).unwrap_or(i64::MAX)
    }

    /// The moment after this one; the last stays the last.
    #[must_use]
    pub fn next(self) -> Self {
        Self::nearest(self.0 + 1)
    }

    /// Reads a whole text as a moment: ISO 8601 with an offset, colons or dashes within the time.
    #[must_use]
    pub fn parse(text: &str) -> Option<Written> {
        let (written, rest) = read(text)?;
        rest.is_empty().then_some(written)
    }

    /// The moment as it stands in a name: without colons, which not every file system takes.
    #[must_use]
    pub fn in_name(self) -> String {
        self.to_string().replace(':', "-")
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (second, nano) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let second = i64::try_from(second).unwrap_or(LAST);
        let (day, clock) = (second.div_euclid(86_400), second.rem_euclid(86_400));
        let (year, month, day) = civil(day);
        let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nano:09}Z")
    }
}

/// Reads a moment at the start of a text; hands back what follows it.
pub(super) fn read(text: &str) -> Option<(Written, &str)> {
    let bytes = text.as_bytes();
    let year = digits(bytes, 0, 4)?;
    let month = digits(bytes, 5, 2)?;
    let day = digits(bytes, 8, 2)?;
    let hour = digits(bytes, 11, 2)?;
    let minute = digits(bytes, 14, 2)?;
    let second = digits(bytes, 17, 2)?;
    let between = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|b| allowed.contains(b));
    let framed = between(4, b"-") && between(7, b"-") && between(10, b"T");
    if !framed || !between(13, b"-:") || !between(16, b"-:") || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let mut at = 19;
    let (mut nano, mut decimals) = (0_i128, 0_u8);
    if between(at, b".") {
        at += 1;
        let mut given = 0;
        while let Some(digit) = bytes.get(at).filter(|b| b.is_ascii_digit()) {
            if given < 9 {
                nano = nano * 10 + i128::from(digit - b'0');
                decimals += 1;
            }
            given += 1;
            at += 1;
        }
        if given == 0 {
            return None;
        }
        nano *= 10_i128.pow(u32::from(9 - decimals));
    }
    let (offset, after) = offset(bytes, at)?;
    // A leap second is counted as the one before it, as most clocks do.
    let clock = hour * 3_600 + minute * 60 + second.min(59);
    let days = i128::from(days_since_1970(date));
    let stamp = Stamp::from_nanos((days * 86_400 + i128::from(clock) - i128::from(offset)) * SECOND + nano)?;
    Some((Written { stamp, decimals }, text.get(after..)?))
}

/// `Z`, `+05:30`, `-05-00`, `+0530`: seconds east of Greenwich, and where it ends.
fn offset(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let sign = match bytes.get(at)? {
        b'Z' => return Some((0, at + 1)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(bytes, at + 1, 2)?;
    let parted = bytes.get(at + 3).is_some_and(|b| b":-".contains(b));
    let minutes_at = at + if parted { 4 } else { 3 };
    let minutes = digits(bytes, minutes_at, 2)?;
    (hours < 24 && minutes < 60).then_some((sign * (hours * 3_600 + minutes * 60), minutes_at + 2))
}

fn digits(bytes: &[u8], at: usize, count: usize) -> Option<i64> {
    let digits = bytes.get(at..at + count)?;
    digits.iter().try_fold(0, |number, b| b.is_ascii_digit().then(|| number * 10 + i64::from(b - b'0')))
}

fn days_since_1970(date: Date) -> i64 {
    let (year, month, day) = (i64::from(date.year()), i64::from(date.month()), i64::from(date.day()));
    // Years that begin in March have their odd day last, which makes counting a formula.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i128> {
        Stamp::parse(text).map(|written| written.stamp.nanos())
    }

    #[test]
    fn every_spelling_of_a_moment_is_read() {
        let moment = 1_772_706_600 * SECOND;
        for text in [
            "2026-03-05T10:30:00Z",
            "2026-03-05T10-30-00Z",
            "2026-03-05T10:30:00.000000000Z",
            "2026-03-05T05:30:00-05:00",
            "2026-03-05T05-30-00-05-00",
            "2026-03-05T16:00:00+0530",
        ] {
            assert_eq!(nanos(text), Some(moment), "{text}");
        }
        assert_eq!(nanos("2026-03-05T10:30:00.5Z"), Some(moment + SECOND / 2));
        assert_eq!(nanos("2026-03-05T10:30:00.1234567899Z"), Some(moment + 123_456_789));
        assert_eq!(Stamp::parse("2026-03-05T10:30:00.123Z").unwrap().decimals, 3);
        for bad in [
            "",
            "2026-03-05",
            "2026-03-05T10:30:00",
            "2026-13-05T10:30:00Z",
            "2026-02-30T10:30:00Z",
            "2026-03-05T24:00:00Z",
            "2026-03-05T10:30:00.Z",
            "2026-03-05T10:30:00Zx",
            "1-2-3",
            "2026-03-05 10:30:00Z",
            "\u{661}026-03-05T10:30:00Z",
        ] {
            assert_eq!(nanos(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for second in [FIRST, -1, 0, 951_782_400, 951_868_800, 4_107_542_400, 1_772_706_600, LAST] {
            for nano in [0, 1, 999_999_999] {
                let stamp = Stamp::from_nanos(i128::from(second) * SECOND + nano).unwrap();
                for text in [stamp.to_string(), stamp.in_name()] {
                    assert_eq!(Stamp::parse(&text).unwrap().stamp, stamp, "{text}");
                }
            }
        }
        assert_eq!(Stamp::from_nanos(0).unwrap().to_string(), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(Stamp::from_nanos((i128::from(LAST) + 1) * SECOND), None);
    }
}
