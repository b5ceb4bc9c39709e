//! Tasks for a swarm whose agents are the office's own, so that neither a model nor a subprocess is measured.

use serde_json::json;

use crate::clients::Line;
use posthaste::cli::exit::{Exit, Failure};

/// The agents do what the task says, and answer what is no order.
pub(super) const FILE: &str = r#"{
  "name": "main", "version": "1.3", "description": "agents to measure with", "public": false, "entrypoint": "supervisor",
  "agents": [
    { "name": "supervisor", "driver": { "builtin": "script" }, "comm_targets": ["worker"],
      "enable_entrypoint": true, "can_complete_tasks": true },
    { "name": "worker", "driver": { "builtin": "script" }, "comm_targets": ["supervisor"] }
  ],
  "actions": []
}"#;

/// Lines that ask with one token: as many as may have something on the way to the books at once.
const LINES: u32 = 16;

/// The way that a task takes through the swarm.
#[derive(Clone, Copy)]
pub(super) enum Course {
    /// The supervisor answers.
    OneHop,
    /// The supervisor asks the worker and answers what that said.
    ThreeHops,
}

impl Course {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneHop => "swarm, 1 hop",
            Self::ThreeHops => "swarm, 3 hops",
        }
    }

    /// Gives the task and waits for its end.
    pub(super) async fn run(self, line: &mut Line) -> Result<(), Failure> {
        let (task, end): (&str, &[u8]) = match self {
            Self::OneHop => (r#"{"body":"ready?"}"#, br#""response":"ready?""#),
            Self::ThreeHops => (
                r#"{"body":"{\"calls\":[{\"tool\":\"send_request\",\"args\":{\"target\":\"worker\",\"subject\":\"hop\",\"body\":\"ready?\"}}]}"}"#,
                br#""response":"worker:ready?""#,
            ),
        };
        let answer = line.post(task).await?;
        if answer.windows(end.len()).any(|window| window == end) {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("a task ended with {}", String::from_utf8_lossy(answer))))
    }
}

/// The tokens of those who give so many tasks at once.
pub(super) async fn users(line: &mut Line, in_flight: Option<u32>) -> Result<Vec<String>, Failure> {
    let mut tokens = Vec::new();
    for n in 0..in_flight.unwrap_or(1).div_ceil(LINES).max(1) {
        let made = line.ask("token.create", &json!({ "role": "user", "name": format!("user-{n}") })).await?;
        tokens.push(made["token"].as_str().unwrap_or_default().to_owned());
    }
    Ok(tokens)
}
