//! Timestamps as Unix milliseconds and as RFC 3339, and durations such as `12h`.

use jiff::Timestamp;

/// Largest integer that is read as Unix seconds (the year 5138); greater ones are milliseconds (from 1973 on).
const MAX_UNIX_SECONDS: i64 = 100_000_000_000;

/// Start of the year 0, the earliest time that RFC 3339 can represent.
const MIN_UNIX_MILLIS: i64 = -62_167_219_200_000;

/// Why a text or number is not a timestamp or duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text is neither RFC 3339 nor an integer.
    #[error("{0:?} is not a time: expected RFC 3339 with an offset, or Unix seconds or milliseconds")]
    NotATimestamp(String),
    /// The timestamp is outside the years that RFC 3339 can represent.
    #[error("the time is outside the years 0 to 9999")]
    OutOfRange,
    /// The text is not a whole number followed by a unit.
    #[error("{0:?} is not a duration: expected a whole number and one of w, d, h, m, s, ms, such as 12h")]
    NotADuration(String),
    /// The duration does not fit into an `i64` of milliseconds.
    #[error("the duration {0:?} is too long")]
    TooLong(String),
}

/// Formats Unix milliseconds as RFC 3339 in UTC, always with three decimals, so that texts sort in time order.
///
/// Times outside the years 0 to 9999 are clamped to the nearest representable one.
pub fn to_rfc3339(millis: i64) -> String {
    let time = Timestamp::from_millisecond(millis.max(MIN_UNIX_MILLIS)).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// Parses RFC 3339, and the looser forms of ISO 8601 that have an offset, truncating to Unix milliseconds.
pub fn parse_rfc3339(text: &str) -> Result<i64, TimeError> {
    match text.parse::<Timestamp>() {
        Ok(time) => in_range(time.as_millisecond()),
        Err(_) => Err(TimeError::NotATimestamp(text.to_owned())),
    }
}

/// Reads an integer as Unix milliseconds if its absolute value is above 10^11, else as Unix seconds.
pub fn from_number(number: i64) -> Result<i64, TimeError> {
    let seconds = number.unsigned_abs() <= MAX_UNIX_SECONDS.unsigned_abs();
    // At most 10^14, so the product does not overflow.
    let millis = if seconds { number * 1000 } else { number };
    in_range(millis)
}

/// Parses RFC 3339, or an integer as described at [`from_number`].
pub fn parse_timestamp(text: &str) -> Result<i64, TimeError> {
    match text.parse() {
        Ok(number) => from_number(number),
        Err(_) => parse_rfc3339(text),
    }
}

/// Parses a duration such as `2w`, `30d`, `12h`, `45m`, `10s` or `500ms` to milliseconds.
pub fn parse_duration(text: &str) -> Result<i64, TimeError> {
    let refused = || TimeError::NotADuration(text.to_owned());
    let too_long = || TimeError::TooLong(text.to_owned());

    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
    let (count, unit) = text.split_at(unit_at);
    let unit: i64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        "w" => 7 * 24 * 60 * 60 * 1000,
        _ => return Err(refused()),
    };
    if count.is_empty() {
        return Err(refused());
    }
    // `count` has only digits, so parsing fails only on overflow.
    let count: i64 = count.parse().map_err(|_| too_long())?;
    count.checked_mul(unit).ok_or_else(too_long)
}

fn in_range(millis: i64) -> Result<i64, TimeError> {
    match Timestamp::from_millisecond(millis) {
        Ok(_) if millis >= MIN_UNIX_MILLIS => Ok(millis),
        _ => Err(TimeError::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_767_700_800_000;

    #[test]
    fn timestamps_have_three_decimals() {
        assert_eq!(to_rfc3339(NOON), "2026-01-06T12:00:00.000Z");
        assert_eq!(to_rfc3339(NOON + 7), "2026-01-06T12:00:00.007Z");
        assert_eq!(to_rfc3339(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(to_rfc3339(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(to_rfc3339(i64::MIN), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn timestamps_parse_in_every_format() {
        for text in [
            "2026-01-06T12:00:00Z",
            "2026-01-06T12:00:00.000999Z",
            "2026-01-06t13:00:00+01:00",
            "2026-01-06 07:00:00.0-05:00",
            "1767700800",
            "1767700800000",
        ] {
            assert_eq!(parse_timestamp(text), Ok(NOON), "{text}");
        }
        assert_eq!(parse_timestamp("0"), Ok(0));
        assert_eq!(from_number(MAX_UNIX_SECONDS), Ok(MAX_UNIX_SECONDS * 1000));
        assert_eq!(from_number(MAX_UNIX_SECONDS + 1), Ok(MAX_UNIX_SECONDS + 1));
    }

    #[test]
    fn invalid_timestamps_are_refused() {
        for text in
            ["", "now", "2026-01-06", "2026-01-06T12:00:00", "2026-13-06T12:00:00Z", "1.5", "1767700800s"]
        {
            assert_eq!(parse_timestamp(text), Err(TimeError::NotATimestamp(text.to_owned())), "{text}");
        }
        assert_eq!(parse_timestamp(&i64::MAX.to_string()), Err(TimeError::OutOfRange));
        assert_eq!(from_number(i64::MIN), Err(TimeError::OutOfRange));
        assert_eq!(from_number(MIN_UNIX_MILLIS - 1), Err(TimeError::OutOfRange));
        assert_eq!(parse_timestamp("-000001-12-31T00:00:00Z"), Err(TimeError::OutOfRange));
        assert!(parse_timestamp("99999999999999999999").is_err());
    }

    #[test]
    fn durations_parse_as_number_and_unit() {
        for (text, millis) in [
            ("30d", 2_592_000_000),
            ("12h", 43_200_000),
            ("45m", 2_700_000),
            ("10s", 10_000),
            ("500ms", 500),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(millis), "{text}");
        }
        for text in ["", "d", "10", "10 s", "-1s", "+1s", "1.5h", "1h30m", "1y", "1S", "１s"] {
            assert_eq!(parse_duration(text), Err(TimeError::NotADuration(text.to_owned())), "{text}");
        }
        for text in ["99999999999999999999ms", "106751991168d"] {
            assert_eq!(parse_duration(text), Err(TimeError::TooLong(text.to_owned())), "{text}");
        }
        assert_eq!(parse_duration("106751991167d"), Ok(106_751_991_167 * 86_400_000));
    }

    #[test]
    fn duration_error_names_the_expected_format() {
        assert_eq!(
            parse_duration("2 weeks").unwrap_err().to_string(),
            "\"2 weeks\" is not a duration: expected a whole number and one of w, d, h, m, s, ms, such as 12h"
        );
    }
}
