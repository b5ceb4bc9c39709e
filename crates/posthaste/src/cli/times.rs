//! Times as tables show them: in the time zone of the machine or of `TZ`, which is named. JSON keeps UTC.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

static ZONE: LazyLock<TimeZone> = LazyLock::new(|| match TimeZone::try_system() {
    Ok(zone) if !zone.is_unknown() => zone,
    // No zone is configured, or none of that name is installed.
    _ => TimeZone::UTC,
});

/// Day, minute and zone of a time in an answer; a dash if there is none.
pub(super) fn short_time(value: &Value) -> String {
    shown(value, "%Y-%m-%d %H:%M %Z", &ZONE)
}

/// The same to the second.
pub(super) fn to_the_second(value: &Value) -> String {
    shown(value, "%Y-%m-%d %H:%M:%S %Z", &ZONE)
}

fn shown(value: &Value, form: &str, zone: &TimeZone) -> String {
    let text = value.as_str().unwrap_or("-");
    match text.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(zone.clone()).strftime(form).to_string(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // F30
    #[test]
    fn times_are_local_and_say_so() {
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        let at = |text: &str| shown(&json!(text), "%Y-%m-%d %H:%M %Z", &zone);
        assert_eq!(at("2026-11-18T03:11:00.000Z"), "2026-11-17 22:11 EST");
        assert_eq!(at("2026-07-01T03:11:00Z"), "2026-06-30 23:11 EDT");
        assert_eq!(at("later"), "later");
        assert_eq!(shown(&Value::Null, "%Y", &zone), "-");
        assert_eq!(shown(&json!("2026-11-18T03:11:00Z"), "%H:%M %Z", &TimeZone::UTC), "03:11 UTC");
    }
}
