//! `posthaste status`: how the running office is.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::{GlobalArgs, StatusArgs};
use super::client::Client;
use super::exit::{Exit, Failure};
use super::human::{show_bytes, show_span};
use super::output::{Output, Style, Table};
use super::runtime;
use crate::config::Config;

pub(super) fn run(global: &GlobalArgs, status: &StatusArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &status.office(), &|name| std::env::var_os(name))?;
    let data = &config.data.value;
    let client = match &status.listen {
        None => match Client::find(data) {
            Ok(client) => client,
            Err(_) => Client::at(format!("http://{}", config.listen.value), data)?,
        },
        Some(_) => Client::at(format!("http://{}", config.listen.value), data)?,
    };
    let (health, office) = runtime()?.block_on(async {
        let health = client.get("/health").await?;
        let office = client.get("/status").await?;
        Ok::<_, Failure>((health, office))
    })?;
    if let Some(error) = office.get("error") {
        return Err(Failure::new(Exit::Denied, error["message"].as_str().unwrap_or("the office refused")));
    }
    show(&health, &office, output)?;
    match health["status"].as_str() {
        Some("healthy") => Ok(()),
        _ => Err(Failure::new(Exit::Unhealthy, health["reason"].as_str().unwrap_or("the office is unwell"))),
    }
}

fn show(health: &Value, office: &Value, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&json!({ "health": health, "status": office }));
    }
    let mut table = Table::bare();
    let healthy = health["status"] == "healthy";
    let style = if healthy { Style::Good } else { Style::Bad };
    table.row(["health".to_owned(), plain(&health["status"])], style);
    for field in [
        "version",
        "realm",
        "uptime",
        "agents",
        "events",
        "active_conversations",
        "open_tasks",
        "reservations",
        "bytes",
        "queue",
    ] {
        let value = match field {
            "uptime" => office[field]
                .as_f64()
                .map(|seconds| show_span(Duration::from_secs_f64(seconds.max(0.0))).replace(' ', "")),
            "bytes" => office[field].as_u64().map(|bytes| show_bytes(bytes).replace(".0 ", " ")),
            _ => None,
        };
        table.row([field.replace('_', " "), value.unwrap_or_else(|| plain(&office[field]))], Style::Plain);
    }
    Ok(output.table(&table)?)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
