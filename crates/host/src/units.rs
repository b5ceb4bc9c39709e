//! Sizes and spans of time as people write them.

use std::time::Duration;

/// `1536` as `1.5 KiB`.
pub fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be shown as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `90` seconds as `1m 30s`; the two largest units, below a second with three digits.
pub fn show_span(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds == 0 {
        return match span.as_nanos() {
            0 => "0s".to_owned(),
            nanos @ 1..1_000 => format!("{nanos}ns"),
            nanos @ 1_000..1_000_000 => format!("{}us", nanos / 1_000),
            nanos => format!("{}ms", nanos / 1_000_000),
        };
    }
    let parts =
        [(seconds / 86_400, 'd'), (seconds / 3_600 % 24, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(3);
    let shown = parts[first..].iter().take(2).filter(|(count, _)| *count > 0);
    shown.map(|(count, unit)| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// Reads `90s`, `15m`, `12h`, `30d`, `2w`, and several of them from the largest down: `1d12h`.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let refused = || {
        format!(
            "{text:?} is not a span of time: expected whole numbers with w, d, h, m, s or ms, such as 12h or 1d12h"
        )
    };
    let mut millis = 0_i64;
    let mut previous = i64::MAX;
    let mut rest = text;
    while !rest.is_empty() || text.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
        let unit = &rest[unit_at..];
        let end = unit_at + unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        let one = posthaste_wire::time::parse_duration(&format!("1{}", &rest[unit_at..end]))
            .map_err(|_| refused())?;
        let part = posthaste_wire::time::parse_duration(&rest[..end]).map_err(|_| refused())?;
        // `1h1d` and `1h1h` are mistakes.
        if one >= previous {
            return Err(refused());
        }
        previous = one;
        millis = millis.saturating_add(part);
        rest = &rest[end..];
    }
    let millis = u64::try_from(millis).ok().filter(|millis| (1..=MAX_SPAN * 1_000).contains(millis));
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| "must be longer than nothing and at most a hundred years".to_owned())
}

/// Far beyond any sensible use, and still safe to add to any date.
const MAX_SPAN: u64 = 100 * 366 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(show_bytes(bytes), expected);
        }
    }

    #[test]
    fn spans_are_shown() {
        for (span, expected) in [
            (Duration::ZERO, "0s"),
            (Duration::from_nanos(999), "999ns"),
            (Duration::from_micros(1_500), "1ms"),
            (Duration::from_micros(250), "250us"),
            (Duration::from_secs(1), "1s"),
            (Duration::from_secs(90), "1m 30s"),
            (Duration::from_secs(3_600), "1h"),
            (Duration::from_secs(3_601), "1h"),
            (Duration::from_secs(2 * 86_400 + 5 * 3_600), "2d 5h"),
        ] {
            assert_eq!(show_span(span), expected);
        }
    }

    #[test]
    fn spans_are_read() {
        for (text, seconds) in [
            ("90s", 90),
            ("15m", 900),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("2w", 1_209_600),
            ("1d12h", 129_600),
            ("1h30m5s", 5_405),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_secs(seconds)));
        }
        for bad in [
            "",
            "30",
            "d",
            "-1d",
            "1.5h",
            "0s",
            "3 d",
            "1y",
            "99999999999d",
            "1dd",
            "1\u{e9}",
            "1h1d",
            "1h1h",
            "1d12",
            "d12h",
        ] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }
}
