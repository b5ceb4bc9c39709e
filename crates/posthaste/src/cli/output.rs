//! What commands print: tables and colour for people, JSON for programs, progress for the patient.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::json;

use super::exit::{Failure, OutputError};

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

/// Where a command's answer goes and in which form. Nothing else writes to standard output.
#[derive(Clone, Debug)]
pub struct Output {
    json: bool,
    color: bool,
    color_errors: bool,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Warning,
    Bad,
}

/// Rows under a heading, in columns as wide as they need to be.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<(Vec<String>, Style)>,
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
        Self {
            json,
            color: color.decide(io::stdout().is_terminal(), no_color),
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
        self.bytes(table.render(self.color).as_bytes())
    }

    pub fn bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// The same text, standing out if colour is wanted.
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
            json!({ "error": { "exit": failure.exit as u8, "message": message } }).to_string()
        } else {
            format!("{} {message}", paint(self.color_errors, Style::Bad, "error:"))
        };
        // If even standard error is gone, the exit code still tells.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// A bar on standard error; silent unless a person is looking and did not ask for JSON.
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

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(str::to_owned).into(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N], style: Style) {
        self.rows.push((cells.into(), style));
    }

    fn render(&self, color: bool) -> String {
        let lines = || std::iter::once(&self.head).chain(self.rows.iter().map(|(cells, _)| cells));
        let width = |column: usize| {
            lines().filter_map(|cells| cells.get(column)).map(|cell| printable(cell).chars().count()).max()
        };
        let widths: Vec<usize> = (0..self.head.len()).map(|column| width(column).unwrap_or(0)).collect();
        let styles = std::iter::once(Style::Bold).chain(self.rows.iter().map(|(_, style)| *style));
        let mut text = String::new();
        for (cells, style) in lines().zip(styles) {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                // Writing into a string cannot fail.
                let _ = write!(line, "{:width$}  ", printable(cell));
            }
            text += &paint(color, style, line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A moment as people read it in a list: the day and the minute.
pub(super) fn short_time(value: &serde_json::Value) -> String {
    let text = value.as_str().unwrap_or("-");
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute}"),
        _ => text.to_owned(),
    }
}

/// A text of an answer, or a dash.
pub(super) fn text_of(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Text from strangers over several lines: line breaks and tabs stay, what would move the cursor does not.
pub(super) fn printable_text(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            if c.is_control() && c != '\n' && c != '\t' { c.escape_default().collect() } else { vec![c] }
        })
        .collect()
}

/// Names and subjects come from strangers; what would move the cursor is shown instead of done.
pub(super) fn printable(cell: &str) -> String {
    cell.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

fn paint(color: bool, style: Style, text: &str) -> String {
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
    fn columns_align_and_strangers_cannot_move_the_cursor() {
        let mut table = Table::new(["name", "size", "note"]);
        table.row(["ann".into(), "1".into(), String::new()], Style::Plain);
        table.row(["b\u{e9}a\x1b[2J".into(), "200".into(), "x".into()], Style::Bad);
        let expected = "name          size  note\nann           1\nb\u{e9}a\\u{1b}[2J  200   x\n";
        assert_eq!(table.render(false), expected);
        assert!(table.render(true).contains("\x1b[1;31m"));
    }

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
