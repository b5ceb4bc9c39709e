//! Tables: rows under a heading, in columns that fit the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::output::{Style, paint, printable};

/// A column is not cut below this, even if the table is then wider than the terminal.
const NARROWEST: usize = 8;
/// Between two columns.
const GAP: usize = 2;
/// Columns of free text, which are cut before any other.
const FREE_TEXT: [&str; 10] =
    ["SUBJECT", "FOUND", "REASON", "PATH", "PATHS", "OVERLAPS", "TITLE", "MESSAGE", "NAME", "SCOPE"];

/// Rows under a heading, in columns as wide as they need to be, or as the terminal allows.
#[derive(Clone, Debug)]
pub struct Table {
    /// Empty if there is no heading.
    head: Vec<String>,
    rows: Vec<(Vec<String>, Style)>,
}

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(str::to_owned).into(), rows: Vec::new() }
    }

    /// A table without a heading.
    pub fn bare() -> Self {
        Self { head: Vec::new(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N], style: Style) {
        self.rows.push((cells.into(), style));
    }

    pub fn render(&self, color: bool, width: Option<usize>) -> String {
        let head = (!self.head.is_empty()).then_some((&self.head, Style::Bold));
        let lines = head.into_iter().chain(self.rows.iter().map(|(cells, style)| (cells, *style)));
        let lines: Vec<(Vec<String>, Style)> =
            lines.map(|(cells, style)| (cells.iter().map(|cell| printable(cell)).collect(), style)).collect();
        let columns = lines.iter().map(|(cells, _)| cells.len()).max().unwrap_or(0);
        let natural =
            |column: usize| lines.iter().filter_map(|(cells, _)| Some(cells.get(column)?.width())).max();
        let mut widths: Vec<usize> = (0..columns).map(|column| natural(column).unwrap_or(0)).collect();
        if let Some(width) = width {
            let is_empty = |column: usize| {
                self.rows.iter().all(|(cells, _)| cells.get(column).is_none_or(String::is_empty))
            };
            // On a terminal empty columns are left out; scripts rely on the number of columns.
            for column in (0..columns).filter(|column| !self.rows.is_empty() && is_empty(*column)) {
                widths[column] = 0;
            }
            let free: Vec<bool> = (0..columns)
                .map(|column| self.head.get(column).is_none_or(|head| FREE_TEXT.contains(&head.as_str())))
                .collect();
            fit(&mut widths, &free, width);
        }
        let mut text = String::new();
        for (cells, style) in &lines {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                let cell = cut(cell, *width);
                let padding = width.saturating_sub(cell.width()) + GAP;
                line.push_str(&cell);
                line.extend(std::iter::repeat_n(' ', padding));
            }
            text += &paint(color, *style, line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Makes columns narrower until the table fits: those of free text first, the widest first.
fn fit(widths: &mut [usize], free: &[bool], terminal: usize) {
    let shown = widths.iter().filter(|width| **width > 0).count();
    let room = terminal.saturating_sub(GAP * shown.saturating_sub(1));
    for only_free in [true, false] {
        let may_cut = |column: usize| !only_free || free.get(column) == Some(&true);
        let cut = |limit: usize| -> Vec<usize> {
            let columns = widths.iter().enumerate();
            columns.map(|(n, width)| if may_cut(n) { (*width).min(limit) } else { *width }).collect()
        };
        let widest = widths.iter().copied().max().unwrap_or(0).max(NARROWEST);
        // The largest limit under which everything fits.
        let limit = (NARROWEST..=widest).rev().find(|limit| cut(*limit).iter().sum::<usize>() <= room);
        let narrowed = cut(limit.unwrap_or(NARROWEST));
        widths.copy_from_slice(&narrowed);
    }
}

/// A text cut to a number of columns; `…` stands for what was left out.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut kept = String::new();
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > room {
            break;
        }
        room -= wide;
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// The columns of the terminal that standard output is, if it is one.
pub(super) fn terminal_width() -> Option<usize> {
    #[cfg(unix)]
    let asked = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    let asked: Option<usize> = None;
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    asked.filter(|columns| *columns > 0).or_else(said)
}

/// How many characters distinguish these ids, at least eight.
pub(super) fn distinct_prefix(ids: &[&str]) -> usize {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let alike = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    sorted.windows(2).map(|pair| alike(pair) + 1).max().unwrap_or(0).max(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_control_characters_are_escaped() {
        let mut table = Table::new(["name", "size", "note"]);
        table.row(["ann".into(), "1".into(), String::new()], Style::Plain);
        table.row(["b\u{e9}a\x1b[2J".into(), "200".into(), "x".into()], Style::Bad);
        let expected = "name          size  note\nann           1\nb\u{e9}a\\u{1b}[2J  200   x\n";
        assert_eq!(table.render(false, None), expected);
        assert!(table.render(true, None).contains("\x1b[1;31m"));
    }

    // F31
    #[test]
    fn tables_fit_the_terminal_and_wide_characters_keep_the_columns() {
        let mut table = Table::new(["ID", "ACK", "SUBJECT", "STATE"]);
        let state = "more than eight";
        table.row(
            ["134".into(), String::new(), "\u{65e5}\u{672c}\u{8a9e}".into(), state.into()],
            Style::Plain,
        );
        table.row(["135".into(), String::new(), "x".repeat(4_000), state.into()], Style::Plain);
        let cut = table.render(false, Some(50));
        assert_eq!(
            cut,
            format!(
                "ID   SUBJECT{}STATE\n134  \u{65e5}\u{672c}\u{8a9e}{}{state}\n135  {}\u{2026}  {state}\n",
                " ".repeat(30 - 7),
                " ".repeat(30 - 6),
                "x".repeat(27)
            )
        );
        assert!(cut.lines().all(|line| line.width() <= 50));
        assert!(table.render(false, None).contains(&"x".repeat(4_000)), "a pipe gets everything");
        // Nothing is cut below what can be read.
        assert!(table.render(false, Some(3)).lines().any(|line| line.contains("xxxxxxx\u{2026}")));
    }

    #[test]
    fn ids_are_as_long_as_it_takes_to_tell_them_apart() {
        assert_eq!(distinct_prefix(&[]), 8);
        assert_eq!(distinct_prefix(&["0123456789", "0123456799"]), 9);
        assert_eq!(distinct_prefix(&["0123456789", "0123456789"]), 8);
    }
}
