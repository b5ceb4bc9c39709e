//! `posthaste config`: every setting in force and where it came from.

use serde_json::json;

use super::args::{GlobalArgs, OfficeArgs};
use super::context;
use super::exit::Failure;
use super::output::{Output, Style, Table};
use crate::config::Config;

/// Shows the settings, and only then says if `serve` would refuse them: whoever asks because of that
/// refusal wants to see them.
pub(super) fn run(global: &GlobalArgs, office: &OfficeArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, office, &|name| std::env::var_os(name))?;
    let rows = config.rows();
    let server = context::meant(global, office)?;
    if output.is_json() {
        output.json(&json!({ "settings": rows, "server": server }))?;
    } else {
        let mut table = Table::new(["setting", "value", "from"]);
        for row in rows {
            let style = if row.origin == "default" { Style::Dim } else { Style::Plain };
            table.row([row.setting.to_owned(), row.shown(), row.origin], style);
        }
        let url = server["url"].as_str().unwrap_or("-").to_owned();
        let named = server["named"].as_str().unwrap_or_default().to_owned();
        table.row(["server".to_owned(), url, named], Style::Plain);
        output.table(&table)?;
    }
    Ok(config.check()?)
}
