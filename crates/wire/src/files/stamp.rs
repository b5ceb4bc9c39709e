//! Nanosecond timestamps, as used in file names and in the field `timestamp`.

use std::fmt;

use jiff::civil::Date;

/// Last second of the year 9999, the last year with four digits.
const MAX_UNIX_SECONDS: i64 = 253_402_300_799;
/// First second of the year 0.
const MIN_UNIX_SECONDS: i64 = -62_167_219_200;
const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// A timestamp, formatted `2026-03-05T10:30:00.123456789Z`. It always has nine decimals, so that texts sort in time
/// order and our file names do not collide with those of peers that write whole seconds or milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(i128);

/// A parsed timestamp and its precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedStamp {
    /// The timestamp.
    pub stamp: Stamp,
    /// Number of decimals of the second in the text, at most nine.
    pub decimals: u8,
}

impl Stamp {
    /// A timestamp from Unix nanoseconds; `None` outside the years 0 to 9999, which the format cannot represent.
    #[must_use]
    pub fn from_nanos(nanos: i128) -> Option<Self> {
        let second = nanos.div_euclid(NANOS_PER_SECOND);
        let in_range = (i128::from(MIN_UNIX_SECONDS)..=i128::from(MAX_UNIX_SECONDS)).contains(&second);
        in_range.then_some(Self(nanos))
    }

    /// A timestamp from Unix nanoseconds, clamped to the years 0 to 9999.
    #[must_use]
    pub fn nearest(nanos: i128) -> Self {
        Self(nanos.clamp(
            i128::from(MIN_UNIX_SECONDS) * NANOS_PER_SECOND,
            i128::from(MAX_UNIX_SECONDS) * NANOS_PER_SECOND + NANOS_PER_SECOND - 1,
        ))
    }

    /// Unix nanoseconds.
    #[must_use]
    pub fn nanos(self) -> i128 {
        self.0
    }

    /// Unix milliseconds, rounded down.
    #[must_use]
    pub fn millis(self) -> i64 {
        i64::try_from(self.0.div_euclid(1_000_000)).unwrap_or(i64::MAX)
    }

    /// The timestamp one nanosecond later; the largest one returns itself.
    #[must_use]
    pub fn next(self) -> Self {
        Self::nearest(self.0 + 1)
    }

    /// Parses ISO 8601 with an offset; the time may have dashes instead of colons.
    #[must_use]
    pub fn parse(text: &str) -> Option<ParsedStamp> {
        let (parsed, rest) = parse_prefix(text)?;
        rest.is_empty().then_some(parsed)
    }

    /// The timestamp for use in a file name: with dashes instead of colons, which some file systems refuse.
    #[must_use]
    pub fn in_name(self) -> String {
        self.to_string().replace(':', "-")
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (second, nano) = (self.0.div_euclid(NANOS_PER_SECOND), self.0.rem_euclid(NANOS_PER_SECOND));
        let second = i64::try_from(second).unwrap_or(MAX_UNIX_SECONDS);
        let (day, clock) = (second.div_euclid(86_400), second.rem_euclid(86_400));
        let (year, month, day) = civil(day);
        let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nano:09}Z")
    }
}

/// Parses a timestamp at the start of a text; returns it and the rest of the text.
pub(super) fn parse_prefix(text: &str) -> Option<(ParsedStamp, &str)> {
    let bytes = text.as_bytes();
    let year = digits(bytes, 0, 4)?;
    let month = digits(bytes, 5, 2)?;
    let day = digits(bytes, 8, 2)?;
    let hour = digits(bytes, 11, 2)?;
    let minute = digits(bytes, 14, 2)?;
    let second = digits(bytes, 17, 2)?;
    let byte_in = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|b| allowed.contains(b));
    let valid_separators = byte_in(4, b"-") && byte_in(7, b"-") && byte_in(10, b"T");
    if !valid_separators
        || !byte_in(13, b"-:")
        || !byte_in(16, b"-:")
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let mut at = 19;
    let (mut nano, mut decimals) = (0_i128, 0_u8);
    if byte_in(at, b".") {
        at += 1;
        let mut count = 0;
        while let Some(digit) = bytes.get(at).filter(|b| b.is_ascii_digit()) {
            if count < 9 {
                nano = nano * 10 + i128::from(digit - b'0');
                decimals += 1;
            }
            count += 1;
            at += 1;
        }
        if count == 0 {
            return None;
        }
        nano *= 10_i128.pow(u32::from(9 - decimals));
    }
    let (offset, after) = offset(bytes, at)?;
    // A leap second is read as the second before it, as most clocks do.
    let clock = hour * 3_600 + minute * 60 + second.min(59);
    let days = i128::from(days_since_1970(date));
    let stamp = Stamp::from_nanos(
        (days * 86_400 + i128::from(clock) - i128::from(offset)) * NANOS_PER_SECOND + nano,
    )?;
    Some((ParsedStamp { stamp, decimals }, text.get(after..)?))
}

/// Parses `Z`, `+05:30`, `-05-00` or `+0530`; returns the seconds east of UTC and the end index.
fn offset(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let sign = match bytes.get(at)? {
        b'Z' => return Some((0, at + 1)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(bytes, at + 1, 2)?;
    let has_separator = bytes.get(at + 3).is_some_and(|b| b":-".contains(b));
    let minutes_at = at + if has_separator { 4 } else { 3 };
    let minutes = digits(bytes, minutes_at, 2)?;
    (hours < 24 && minutes < 60).then_some((sign * (hours * 3_600 + minutes * 60), minutes_at + 2))
}

fn digits(bytes: &[u8], at: usize, count: usize) -> Option<i64> {
    let digits = bytes.get(at..at + count)?;
    digits.iter().try_fold(0, |number, b| b.is_ascii_digit().then(|| number * 10 + i64::from(b - b'0')))
}

fn days_since_1970(date: Date) -> i64 {
    let (year, month, day) = (i64::from(date.year()), i64::from(date.month()), i64::from(date.day()));
    // Count years from March, so that the leap day is the last day of the year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day number since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i128> {
        Stamp::parse(text).map(|parsed| parsed.stamp.nanos())
    }

    #[test]
    fn every_timestamp_format_is_parsed() {
        let expected = 1_772_706_600 * NANOS_PER_SECOND;
        for text in [
            "2026-03-05T10:30:00Z",
            "2026-03-05T10-30-00Z",
            "2026-03-05T10:30:00.000000000Z",
            "2026-03-05T05:30:00-05:00",
            "2026-03-05T05-30-00-05-00",
            "2026-03-05T16:00:00+0530",
        ] {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
        assert_eq!(nanos("2026-03-05T10:30:00.5Z"), Some(expected + NANOS_PER_SECOND / 2));
        assert_eq!(nanos("2026-03-05T10:30:00.1234567899Z"), Some(expected + 123_456_789));
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
    fn timestamps_round_trip() {
        for second in [
            MIN_UNIX_SECONDS,
            -1,
            0,
            951_782_400,
            951_868_800,
            4_107_542_400,
            1_772_706_600,
            MAX_UNIX_SECONDS,
        ] {
            for nano in [0, 1, 999_999_999] {
                let stamp = Stamp::from_nanos(i128::from(second) * NANOS_PER_SECOND + nano).unwrap();
                for text in [stamp.to_string(), stamp.in_name()] {
                    assert_eq!(Stamp::parse(&text).unwrap().stamp, stamp, "{text}");
                }
            }
        }
        assert_eq!(Stamp::from_nanos(0).unwrap().to_string(), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(Stamp::from_nanos((i128::from(MAX_UNIX_SECONDS) + 1) * NANOS_PER_SECOND), None);
    }
}
