//! Tasks for a swarm whose agents are the server's own, so that neither a model nor a subprocess is measured.

use posthaste_wire::control::{TokenCreateParams, TokenCreateResult, TokenRole};

use crate::clients::Connection;
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

/// Connections with one token: as many as may have commands in the queue at a time.
const CONNECTIONS_PER_TOKEN: u32 = 16;

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
    pub(super) async fn run(self, line: &mut Connection) -> Result<(), Failure> {
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

/// The tokens of the users that give `in_flight` tasks at a time.
pub(super) async fn users(line: &mut Connection, in_flight: Option<u32>) -> Result<Vec<String>, Failure> {
    let mut tokens = Vec::new();
    for n in 0..in_flight.unwrap_or(1).div_ceil(CONNECTIONS_PER_TOKEN).max(1) {
        let name = format!("user-{n}");
        let params = TokenCreateParams { role: TokenRole::User, name, observe: false, expires_at: None };
        tokens.push(line.ask::<TokenCreateResult>("token.create", &params).await?.token);
    }
    Ok(tokens)
}
