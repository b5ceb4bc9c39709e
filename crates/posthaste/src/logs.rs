//! Log lines on standard error: text for people, JSON for collectors.

use std::io;

use clap::ValueEnum;
use serde::Serialize;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The form of a log line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// One readable line per event.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging for the whole process. Standard output stays free for answers.
pub fn start(form: LogForm, filter: &str, color: bool) -> anyhow::Result<()> {
    let filter = parse_filter(filter).map_err(anyhow::Error::msg)?;
    // Spans carry the request id; their own begin and end would only double every line.
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_span_events(FmtSpan::NONE);
    let registry = tracing_subscriber::registry().with(filter);
    match form {
        LogForm::Text => registry.with(lines.with_ansi(color)).try_init()?,
        LogForm::Json => registry.with(lines.json().flatten_event(true)).try_init()?,
    }
    Ok(())
}

/// Reads a level (`info`) or a list of `target=level` (`info,posthaste=debug`).
///
/// A general level is that of this program's own crates. Libraries that carry requests and messages write them into
/// their lines, tokens included: they log warnings only, unless the list names them.
pub fn parse_filter(text: &str) -> Result<Targets, String> {
    let level_of = |directive: &str, level: &str| {
        let level =
            Some(level).filter(|level| !level.is_empty()).and_then(|level| level.parse::<LevelFilter>().ok());
        level.ok_or_else(|| {
            format!("`{text}` is not a log level: `{directive}` is neither a level nor target=level")
        })
    };
    let mut filter = Targets::new();
    for directive in text.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        filter = match directive.split_once('=') {
            Some((target, level)) if !target.is_empty() => {
                filter.with_target(target, level_of(directive, level)?)
            }
            Some(_) => return Err(format!("`{text}` is not a log level: `{directive}` names no target")),
            None => {
                let level = level_of(directive, directive)?;
                filter.with_default(level.min(LevelFilter::WARN)).with_target(OWN, level)
            }
        };
    }
    Ok(filter)
}

/// What the names of this program's own crates start with.
const OWN: &str = "posthaste";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_are_filters() {
        for good in ["info", "warn,posthaste=trace", "off"] {
            assert!(parse_filter(good).is_ok(), "{good}");
        }
        for bad in ["posthaste=loud", "info,=,"] {
            assert!(parse_filter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_general_level_does_not_reach_libraries() {
        for (given, meant) in [
            ("info", "posthaste=info,warn"),
            ("trace", "posthaste=trace,warn"),
            ("error", "posthaste=error,error"),
            ("off", "posthaste=off,off"),
            ("info,hyper=debug", "posthaste=info,hyper=debug,warn"),
            ("hyper=info", "hyper=info"),
        ] {
            assert_eq!(parse_filter(given).unwrap().to_string(), meant, "{given}");
        }
    }

    #[test]
    fn logging_starts_once() {
        assert!(start(LogForm::Json, "nonsense=loud", false).is_err());
        start(LogForm::Json, "info", false).unwrap();
        assert!(start(LogForm::Text, "info", false).is_err());
    }
}
