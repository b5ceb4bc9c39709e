//! `posthaste status`: the health and the figures of a running server.

use std::time::Duration;

use posthaste_wire::control::{STATUS_PATH, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::{GlobalArgs, OfficeArgs, StatusArgs};
use super::client::Client;
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table};
use super::runtime;
use super::target::{Target, from_listen};
use crate::config::Config;
use posthaste_host::units::{show_bytes, show_span};

/// The answer of `/health` with what this command reads of it.
#[derive(Deserialize)]
struct Health {
    status: String,
    #[serde(default)]
    reason: Option<String>,
}

/// The answer of the status path: figures, or why there are none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Figures(Box<Status>),
    Refused { error: Refusal },
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: Option<String>,
}

/// Health and figures, as `--json` prints them.
#[derive(Serialize)]
struct Shown<'a> {
    health: &'a Value,
    status: Option<&'a Status>,
}

pub(super) fn run(global: &GlobalArgs, args: &StatusArgs, output: &Output) -> Result<(), Failure> {
    let mut global = global.clone();
    if let Some(listen) = &args.listen {
        global.url = Some(from_listen(listen));
    }
    let target = Target::of(&global)?;
    let config = Config::load(&global, &OfficeArgs::default(), &|name| std::env::var_os(name))?;
    let server = target.server(&config.data.value)?;
    let is_known = server.is_some();
    let (client, token) = match server {
        Some(server) => (Client::bare(server.url)?, server.token),
        // No server has the data directory locked: whatever listens on the configured address is shown no token.
        None => {
            let scheme = if config.has_tls() { "https" } else { "http" };
            (Client::bare(format!("{scheme}://{}", config.listen.value))?, None)
        }
    };
    let (answered, status) = runtime()?.block_on(async {
        // The health path needs no token.
        let answered: Value = client.get("/health").await?;
        if !answered["status"].is_string() {
            return Err(client.is_no_posthaste());
        }
        let status = match is_known {
            true => Some(client.with_token(token).get::<Answer>(STATUS_PATH).await?),
            false => None,
        };
        Ok::<_, Failure>((answered, status))
    })?;
    let status = match status {
        Some(Answer::Refused { error }) => {
            let why = error.message.unwrap_or_else(|| "the server refused".to_owned());
            return Err(Failure::new(Exit::Denied, why));
        }
        Some(Answer::Figures(status)) => Some(status),
        None => None,
    };
    let health: Health = serde_json::from_value(answered.clone())?;
    if output.is_json() {
        output.json(&Shown { health: &answered, status: status.as_deref() })?;
    } else {
        show(&health, status.as_deref(), output)?;
    }
    if !is_known {
        let text = format!(
            "a server answers at {}, but not one that has {} open; name it with --url to ask it more",
            config.listen.value,
            config.data.value.display()
        );
        return Err(Failure::new(Exit::Unreachable, text));
    }
    match health.is_healthy() {
        true => Ok(()),
        false => {
            let reason = health.reason.unwrap_or_else(|| "the server is unwell".to_owned());
            Err(Failure::new(Exit::Unhealthy, reason))
        }
    }
}

impl Health {
    fn is_healthy(&self) -> bool {
        self.status == "healthy"
    }
}

fn show(health: &Health, status: Option<&Status>, output: &Output) -> Result<(), Failure> {
    let mut table = Table::bare();
    let style = if health.is_healthy() { Style::Good } else { Style::Bad };
    table.row(["health".to_owned(), health.status.clone()], style);
    let rows = status.map(|status| {
        let uptime = Duration::from_secs_f64(status.uptime.max(0.0));
        let bytes = u64::try_from(status.bytes).unwrap_or(0);
        [
            ("version", status.version.clone()),
            ("realm", status.realm.clone()),
            ("uptime", show_span(uptime).replace(' ', "")),
            ("agents", status.agents.to_string()),
            ("events", status.events.to_string()),
            ("active conversations", status.active_conversations.to_string()),
            ("open tasks", status.open_tasks.to_string()),
            ("reservations", status.reservations.to_string()),
            ("bytes", show_bytes(bytes).replace(".0 ", " ")),
            ("queue", status.queue.to_string()),
        ]
    });
    for (figure, value) in rows.into_iter().flatten() {
        table.row([figure.to_owned(), value], Style::Plain);
    }
    Ok(output.table(&table)?)
}
