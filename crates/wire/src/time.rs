//! Moments as Unix milliseconds and as RFC 3339, and durations as people write them.

use jiff::Timestamp;

/// Integers above this are milliseconds, up to it seconds: as seconds it lies in the year 5138,
/// as milliseconds in 1973.
const MILLIS_ABOVE: i64 = 100_000_000_000;

/// The first moment of the year 0; RFC 3339 has no way to write an earlier one.
const FIRST: i64 = -62_167_219_200_000;

/// Why a text or number is no moment or duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text is neither RFC 3339 nor an integer.
    #[error("{0:?} is not a time: expected RFC 3339 with an offset, or Unix seconds or milliseconds")]
    NotAMoment(String),
    /// The moment lies outside the years that RFC 3339 can write.
    #[error("the time lies outside the years 0 to 9999")]
    OutOfRange,
    /// The text is not a whole number and one of the units.
    #[error("{0:?} is not a duration: expected a whole number and one of w, d, h, m, s, ms, such as 12h")]
    NotADuration(String),
    /// The duration has more milliseconds than can be counted.
    #[error("{0:?} is too long a duration")]
    TooLong(String),
}

/// Spells a moment as RFC 3339 in UTC, always with three decimals, so that texts sort as moments do.
///
/// A moment outside the years 0 to 9999 cannot be written and is spelled as the nearest that can.
pub fn to_rfc3339(millis: i64) -> String {
    let moment = Timestamp::from_millisecond(millis.max(FIRST)).unwrap_or(Timestamp::MAX);
    format!("{moment:.3}")
}

/// Reads RFC 3339, and the looser forms of ISO 8601 that have an offset; what is finer than a
/// millisecond is cut off.
pub fn parse_rfc3339(text: &str) -> Result<i64, TimeError> {
    match text.parse::<Timestamp>() {
        Ok(moment) => in_range(moment.as_millisecond()),
        Err(_) => Err(TimeError::NotAMoment(text.to_owned())),
    }
}

/// Reads an integer as Unix milliseconds if its size is above 10^11, else as Unix seconds.
pub fn from_number(number: i64) -> Result<i64, TimeError> {
    let seconds = number.unsigned_abs() <= MILLIS_ABOVE.unsigned_abs();
    // At most 10^14, so the product fits.
    let millis = if seconds { number * 1000 } else { number };
    in_range(millis)
}

/// Reads a moment in any spelling: RFC 3339, or an integer as [`from_number`] takes it.
pub fn parse_moment(text: &str) -> Result<i64, TimeError> {
    match text.parse() {
        Ok(number) => from_number(number),
        Err(_) => parse_rfc3339(text),
    }
}

/// Reads a duration such as `2w`, `30d`, `12h`, `45m`, `10s` or `500ms` as milliseconds.
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
    // Nothing but digits is left, so this fails only if there are too many.
    let count: i64 = count.parse().map_err(|_| too_long())?;
    count.checked_mul(unit).ok_or_else(too_long)
}

fn in_range(millis: i64) -> Result<i64, TimeError> {
    match Timestamp::from_millisecond(millis) {
        Ok(_) if millis >= FIRST => Ok(millis),
        _ => Err(TimeError::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_767_700_800_000;

    #[test]
    fn moments_are_written_with_three_decimals() {
        assert_eq!(to_rfc3339(NOON), "2026-01-06T12:00:00.000Z");
        assert_eq!(to_rfc3339(NOON + 7), "2026-01-06T12:00:00.007Z");
        assert_eq!(to_rfc3339(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(to_rfc3339(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(to_rfc3339(i64::MIN), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn moments_are_read_in_every_spelling() {
        for text in [
            "2026-01-06T12:00:00Z",
            "2026-01-06T12:00:00.000999Z",
            "2026-01-06t13:00:00+01:00",
            "2026-01-06 07:00:00.0-05:00",
            "1767700800",
            "1767700800000",
        ] {
            assert_eq!(parse_moment(text), Ok(NOON), "{text}");
        }
        assert_eq!(parse_moment("0"), Ok(0));
        assert_eq!(from_number(MILLIS_ABOVE), Ok(MILLIS_ABOVE * 1000));
        assert_eq!(from_number(MILLIS_ABOVE + 1), Ok(MILLIS_ABOVE + 1));
    }

    #[test]
    fn other_moments_are_refused() {
        for text in
            ["", "now", "2026-01-06", "2026-01-06T12:00:00", "2026-13-06T12:00:00Z", "1.5", "1767700800s"]
        {
            assert_eq!(parse_moment(text), Err(TimeError::NotAMoment(text.to_owned())), "{text}");
        }
        assert_eq!(parse_moment(&i64::MAX.to_string()), Err(TimeError::OutOfRange));
        assert_eq!(from_number(i64::MIN), Err(TimeError::OutOfRange));
        assert_eq!(from_number(FIRST - 1), Err(TimeError::OutOfRange));
        assert_eq!(parse_moment("-000001-12-31T00:00:00Z"), Err(TimeError::OutOfRange));
        assert!(parse_moment("99999999999999999999").is_err());
    }

    #[test]
    fn durations_are_a_number_and_a_unit() {
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
    fn errors_say_what_was_expected() {
        assert_eq!(
            parse_duration("2 weeks").unwrap_err().to_string(),
            "\"2 weeks\" is not a duration: expected a whole number and one of w, d, h, m, s, ms, such as 12h"
        );
    }
}
