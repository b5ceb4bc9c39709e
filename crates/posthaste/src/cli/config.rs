//! `posthaste config`: every setting in force and where it came from.

use serde_json::json;

use super::args::{GlobalArgs, OfficeArgs};
use super::exit::Failure;
use super::output::{Output, Style, Table};
use crate::config::Config;

/// Shows the settings, and only then says if `serve` would refuse them: whoever asks because of that
/// refusal wants to see them.
pub(super) fn run(global: &GlobalArgs, office: &OfficeArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, office, &|name| std::env::var_os(name))?;
    let rows = config.rows();
    if output.is_json() {
        output.json(&json!({ "settings": rows }))?;
    } else {
        let mut table = Table::new(["setting", "value", "from"]);
        for row in rows {
            let style = if row.origin == "default" { Style::Dim } else { Style::Plain };
            table.row([row.setting.to_owned(), row.shown(), row.origin], style);
        }
        output.table(&table)?;
    }
    Ok(config.check()?)
}
