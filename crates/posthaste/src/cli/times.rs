//! Times as tables show them: in the time zone of the machine or of `TZ`, which is named. JSON keeps UTC.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

static ZONE: LazyLock<TimeZone> = LazyLock::new(|| match TimeZone::try_system() {
    Ok(zone) if !zone.is_unknown() => zone,
    // No zone is configured, or none of that name is installed.
    _ => TimeZone::UTC,
});

/// Day, minute and zone of a time in an answer; a dash if there is none.
pub(super) fn short_time<'a>(time: impl Into<Option<&'a str>>) -> String {
    shown(time.into(), "%Y-%m-%d %H:%M %Z", &ZONE)
}

/// The same to the second.
pub(super) fn to_the_second<'a>(time: impl Into<Option<&'a str>>) -> String {
    shown(time.into(), "%Y-%m-%d %H:%M:%S %Z", &ZONE)
}

fn shown(time: Option<&str>, form: &str, zone: &TimeZone) -> String {
    let text = time.unwrap_or("-");
    match text.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(zone.clone()).strftime(form).to_string(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F30
    #[test]
    fn times_are_local_and_say_so() {
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        let at = |text: &str| shown(Some(text), "%Y-%m-%d %H:%M %Z", &zone);
        assert_eq!(at("2026-11-18T03:11:00.000Z"), "2026-11-17 22:11 EST");
        assert_eq!(at("2026-07-01T03:11:00Z"), "2026-06-30 23:11 EDT");
        assert_eq!(at("later"), "later");
        assert_eq!(shown(None, "%Y", &zone), "-");
        assert_eq!(shown(Some("2026-11-18T03:11:00Z"), "%H:%M %Z", &TimeZone::UTC), "03:11 UTC");
    }
}
