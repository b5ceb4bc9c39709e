//! `posthaste status`: how the running server is.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::{GlobalArgs, OfficeArgs, StatusArgs};
use super::client::Client;
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table};
use super::runtime;
use super::target::{Target, from_listen};
use crate::config::Config;
use posthaste_host::units::{show_bytes, show_span};

pub(super) fn run(global: &GlobalArgs, status: &StatusArgs, output: &Output) -> Result<(), Failure> {
    let mut global = global.clone();
    if let Some(listen) = &status.listen {
        global.url = Some(from_listen(listen));
    }
    let target = Target::of(&global)?;
    let config = Config::load(&global, &OfficeArgs::default(), &|name| std::env::var_os(name))?;
    let server = target.server(&config.data.value)?;
    let is_known = server.is_some();
    let (client, token) = match server {
        Some(server) => (Client::bare(server.url)?, server.token),
        // No server has the data directory: what listens where one would is a stranger, and is shown nothing.
        None => {
            let scheme = if config.has_tls() { "https" } else { "http" };
            (Client::bare(format!("{scheme}://{}", config.listen.value))?, None)
        }
    };
    let (health, office) = runtime()?.block_on(async {
        // Health is told without a token.
        let health = client.get("/health").await?;
        if !health["status"].is_string() {
            return Err(client.is_no_posthaste());
        }
        let office = match is_known {
            true => client.with_token(token).get("/x-posthaste/status").await?,
            false => Value::Null,
        };
        Ok::<_, Failure>((health, office))
    })?;
    if let Some(error) = office.get("error") {
        return Err(Failure::new(Exit::Denied, error["message"].as_str().unwrap_or("the server refused")));
    }
    show(&health, &office, output)?;
    if !is_known {
        let text = format!(
            "a server answers at {}, but not one that has {} open; name it with --url to ask it more",
            config.listen.value,
            config.data.value.display()
        );
        return Err(Failure::new(Exit::Unreachable, text));
    }
    match health["status"].as_str() {
        Some("healthy") => Ok(()),
        _ => Err(Failure::new(Exit::Unhealthy, health["reason"].as_str().unwrap_or("the server is unwell"))),
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
        if office.get(field).is_none() {
            continue;
        }
        table.row([field.replace('_', " "), value.unwrap_or_else(|| plain(&office[field]))], Style::Plain);
    }
    Ok(output.table(&table)?)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
