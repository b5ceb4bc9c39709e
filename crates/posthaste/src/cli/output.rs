//! What commands print: tables and colour for people, JSON for programs, progress bars.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::exit::{Failure, OutputError};
use super::table;
pub use super::table::Table;
pub(super) use super::times::short_time;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Even into a file
    Always,
    /// Not at all
    Never,
}

/// Writes a command's answer in the wanted form. Nothing else writes to standard output.
#[derive(Clone, Debug)]
pub struct Output {
    json: bool,
    color: bool,
    color_errors: bool,
    terminal: bool,
    /// Columns of the terminal; without one nothing is cut.
    width: Option<usize>,
}

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Warning,
    Bad,
}

impl ColorWhen {
    /// Whether to colour a stream that is, or is not, a terminal.
    fn decide(self, terminal: bool, no_color: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && !no_color,
        }
    }
}

impl Output {
    pub fn new(json: bool, color: ColorWhen) -> Self {
        // By the convention of no-color.org an empty variable counts as absent.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let terminal = io::stdout().is_terminal();
        Self {
            json,
            terminal,
            width: table::terminal_width().filter(|_| terminal),
            color: color.decide(terminal, no_color),
            color_errors: color.decide(io::stderr().is_terminal(), no_color),
        }
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether log lines and complaints may be coloured.
    pub fn color_errors(&self) -> bool {
        self.color_errors
    }

    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        Ok(self.bytes(&text)?)
    }

    pub fn line(&self, text: &str) -> Result<(), OutputError> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    pub fn table(&self, table: &Table) -> Result<(), OutputError> {
        self.bytes(table.render(self.color, self.width).as_bytes())
    }

    /// Whether a person reads standard output.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal && !self.json
    }

    pub fn bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// The text in a style, if colour is wanted.
    pub fn paint(&self, style: Style, text: &str) -> String {
        paint(self.color, style, text)
    }

    /// The same for standard error.
    pub fn paint_error(&self, style: Style, text: &str) -> String {
        paint(self.color_errors, style, text)
    }

    /// Says on standard error why a command failed.
    pub fn complain(&self, failure: &Failure) {
        let message = format!("{:#}", failure.error);
        let text = if self.json {
            json!({ failure.label(): { "exit": failure.exit as u8, "message": message } }).to_string()
        } else {
            let style = if failure.label() == "error" { Style::Bad } else { Style::Warning };
            format!("{} {message}", paint(self.color_errors, style, &format!("{}:", failure.label())))
        };
        // If standard error cannot be written either, the exit code still tells.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// A progress bar on standard error; hidden if that is not a terminal, and with `--json`.
    pub fn progress(&self, what: &'static str, total: u64) -> ProgressBar {
        if self.json || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.with_message(what)
    }
}

/// A list as `--json` prints it: one named array, and `next`, which is null because the list has no further page.
#[derive(Debug)]
pub(super) struct Page<'a, T> {
    name: &'static str,
    rows: &'a [T],
}

impl<'a, T: Serialize> Page<'a, T> {
    /// The whole list.
    pub(super) fn only(name: &'static str, rows: &'a [T]) -> Self {
        Self { name, rows }
    }
}

impl<T: Serialize> Serialize for Page<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut page = serializer.serialize_map(Some(2))?;
        page.serialize_entry(self.name, self.rows)?;
        page.serialize_entry("next", &Value::Null)?;
        page.end()
    }
}

/// A member of an answer as people read it: text without its quotes, and a dash if it is absent.
pub(super) fn text_of(member: impl Serialize) -> String {
    match serde_json::to_value(member) {
        Ok(Value::Null) | Err(_) => "-".to_owned(),
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
    }
}

/// Untrusted text of several lines, with control characters escaped but for line breaks and tabs.
pub(super) fn printable_text(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            if c.is_control() && c != '\n' && c != '\t' { c.escape_default().collect() } else { vec![c] }
        })
        .collect()
}

/// Untrusted text of one line, such as a name or subject, with control characters escaped.
pub fn printable(cell: &str) -> String {
    cell.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

pub(super) fn paint(color: bool, style: Style, text: &str) -> String {
    let code = match style {
        _ if !color || text.is_empty() => return text.to_owned(),
        Style::Plain => return text.to_owned(),
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Good => "32",
        Style::Warning => "33",
        Style::Bad => "1;31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_decided_once() {
        use ColorWhen::{Always, Auto, Never};
        for (when, terminal, no_color, expected) in [
            (Auto, true, false, true),
            (Auto, true, true, false),
            (Auto, false, false, false),
            (Always, false, true, true),
            (Never, true, false, false),
        ] {
            assert_eq!(when.decide(terminal, no_color), expected, "{when:?} {terminal} {no_color}");
        }
    }
}
