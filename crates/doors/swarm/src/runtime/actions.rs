//! Actions: named programs and web hooks that agents may call like tools.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::drivers::without_secrets;
use posthaste_host::http::outgoing::Outgoing;
use posthaste_wire::mail::definition::{ActionDefinition, ActionDriver};

/// Maximum size of a program's output, in bytes; the rest is dropped.
const MAX_OUTPUT: u64 = 1 << 20;

/// Carries out an action. The error is text for the agent.
pub(crate) async fn run(
    action: &ActionDefinition,
    args: &Value,
    here: &Path,
    outgoing: &Outgoing,
) -> Result<String, String> {
    if let Some(missing) = missing_argument(&action.parameters, args) {
        return Err(format!("the argument {missing:?} is missing"));
    }
    match &action.driver {
        None => Err("nothing on this server carries the action out".to_owned()),
        Some(ActionDriver::Command { command, timeout }) => {
            let timeout = Duration::from_secs_f64(timeout.clamp(0.01, 86_400.0));
            match tokio::time::timeout(timeout, run_program(command, args, here)).await {
                Ok(result) => result,
                Err(_) => Err("the action took too long".to_owned()),
            }
        }
        Some(ActionDriver::Http { http, token_env, timeout }) => {
            let token = token_env.as_ref().and_then(|name| std::env::var(name).ok());
            let timeout = Duration::from_secs_f64(timeout.clamp(0.01, 86_400.0));
            let answer = outgoing.post_json(http, token.as_deref(), args, timeout).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            if answer.status.is_success() { Ok(text) } else { Err(format!("{}: {text}", answer.status)) }
        }
    }
}

fn missing_argument(parameters: &Value, args: &Value) -> Option<String> {
    let required = parameters.get("required")?.as_array()?;
    required.iter().filter_map(Value::as_str).find(|name| args.get(name).is_none()).map(str::to_owned)
}

async fn run_program(command: &[String], args: &Value, here: &Path) -> Result<String, String> {
    let (program, given) = command.split_first().ok_or("no program is named")?;
    let mut command = Command::new(program);
    command
        .args(given)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if here.is_dir() {
        command.current_dir(here);
    }
    without_secrets(&mut command);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = args.to_string();
    let feed = async move {
        if let Some(mut input) = input {
            // A program may ignore its input.
            let _ = input.write_all(text.as_bytes()).await;
        }
    };
    let ((), said, complained) = tokio::join!(feed, read(output), read(errors));
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(said);
    }
    match complained.trim() {
        "" => Err(format!("ended with {status}")),
        why => Err(why.to_owned()),
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let _ = from.take(MAX_OUTPUT).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
