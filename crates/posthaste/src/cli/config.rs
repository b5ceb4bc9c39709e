//! `posthaste config`: every setting in force and where it came from, or what documents the settings.

use serde_json::json;

use super::args::{ConfigArgs, GlobalArgs};
use super::context;
use super::exit::Failure;
use super::output::{Output, Style, Table};
use crate::config::{self, Config};

/// Shows the settings, and only then reports whether `serve` would refuse them: the table helps to find out why.
pub(super) fn run(global: &GlobalArgs, given: &ConfigArgs, output: &Output) -> Result<(), Failure> {
    if given.schema {
        return output.json(&config::schema());
    }
    if given.markdown {
        return Ok(output.bytes(config::markdown().as_bytes())?);
    }
    let config = Config::load(global, &given.settings, &|name| std::env::var_os(name))?;
    let rows = config.rows();
    let server = context::meant(global, &given.settings)?;
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
