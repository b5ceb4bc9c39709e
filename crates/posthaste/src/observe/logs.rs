//! Log lines on standard error: text for people, JSON for collectors.

use std::io;

use clap::ValueEnum;
use serde::Serialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
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
/// What carries frames and messages for us writes them into its finest lines, tokens and mail included. A general level
/// does not reach those; whoever wants them names them.
pub fn parse_filter(text: &str) -> Result<EnvFilter, String> {
    let given = EnvFilter::try_new(text).map_err(|error| format!("`{text}` is not a log level: {error}"))?;
    let fine = given.max_level_hint().is_none_or(|level| level > LevelFilter::INFO);
    if !fine {
        return Ok(given);
    }
    let quiet: Vec<String> = TALKATIVE.iter().map(|target| format!("{target}=info")).collect();
    // The later one of two directives for one target counts.
    EnvFilter::try_new(format!("{},{text}", quiet.join(","))).map_err(|error| error.to_string())
}

/// Crates whose finest lines hold what passes through them.
const TALKATIVE: [&str; 8] =
    ["tungstenite", "tokio_tungstenite", "rmcp", "h2", "hyper", "hyper_util", "reqwest", "rustls"];

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
    fn logging_starts_once() {
        assert!(start(LogForm::Json, "nonsense=loud", false).is_err());
        start(LogForm::Json, "info", false).unwrap();
        assert!(start(LogForm::Text, "info", false).is_err());
    }
}
