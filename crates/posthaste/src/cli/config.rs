//! `posthaste config`: every setting in force and where it came from, or what documents the settings.

use serde::Serialize;

use super::args::{ConfigArgs, GlobalArgs};
use super::context::{self, ChosenServer};
use super::exit::Failure;
use super::output::{Output, Style, Table};
use crate::config::{self, Config, Row};

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    settings: &'a [Row],
    server: &'a ChosenServer,
}

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
    let server = context::chosen_server(global, &given.settings)?;
    if output.is_json() {
        output.json(&Shown { settings: &rows, server: &server })?;
    } else {
        let mut table = Table::new(["setting", "value", "from"]);
        for row in rows {
            let style = if row.origin == "default" { Style::Dim } else { Style::Plain };
            table.row([row.setting.to_owned(), row.shown(), row.origin], style);
        }
        let url = server.url.as_deref().unwrap_or("-").to_owned();
        table.row(["server".to_owned(), url, server.named], Style::Plain);
        output.table(&table)?;
    }
    Ok(config.check()?)
}
