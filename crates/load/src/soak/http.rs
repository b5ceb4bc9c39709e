//! An HTTP connection of an agent's: dialled when needed, dialled again when it broke.

use std::time::Duration;

use serde_json::{Value, json};

use super::field::Field;
use crate::clients::Line;
use posthaste_wire::control;

/// An office that is open and does not answer within this time hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Before an agent dials again.
const REDIAL: Duration = Duration::from_millis(120);

/// The connection was lost, or there was none. What was asked may or may not have been done.
#[derive(Debug)]
pub(super) struct Cut;

pub(super) struct Phone<'a> {
    field: &'a Field,
    token: String,
    line: Option<Line>,
}

impl<'a> Phone<'a> {
    pub(super) fn new(field: &'a Field, token: &str) -> Self {
        Self { field, token: token.to_owned(), line: None }
    }

    /// One question and its answer.
    pub(super) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Value), Cut> {
        let phase = self.field.phase();
        let mut line = self.dial().await?;
        match tokio::time::timeout(ANSWER_TIMEOUT, line.exchange(method, path, body)).await {
            Ok(Ok((status, answer))) => {
                let answer = serde_json::from_slice(answer).unwrap_or(Value::Null);
                self.line = Some(line);
                Ok((status, answer))
            }
            Ok(Err(_)) => Err(Cut),
            Err(_) => {
                // Whoever was alive all the time should have answered.
                if self.field.was_open_since(phase) {
                    let text = format!("{method} {path} within {} s", ANSWER_TIMEOUT.as_secs());
                    self.field.ledger.find("door: no answer", text);
                }
                Err(Cut)
            }
        }
    }

    /// What stands at a path that does not speak JSON.
    pub(super) async fn text(&mut self, path: &str) -> Result<String, Cut> {
        let mut line = self.dial().await?;
        match tokio::time::timeout(ANSWER_TIMEOUT, line.exchange("GET", path, "")).await {
            Ok(Ok((200, text))) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(Cut),
        }
    }

    /// Asks until there is an answer. Only for what may be asked twice. Nothing if everybody leaves meanwhile.
    pub(super) async fn insist(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Value), Cut> {
        loop {
            match self.ask(method, path, body).await {
                // Busy offices say so and are asked again.
                Ok((503, _)) => {}
                Ok(answer) => return Ok(answer),
                Err(Cut) => {}
            }
            if !self.field.linger(REDIAL).await {
                return Err(Cut);
            }
        }
    }

    /// One of the office's own methods; what it answers, or why it refuses.
    pub(super) async fn own(&mut self, method: &str, params: &Value) -> Result<Result<Value, String>, Cut> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": format!("{}{method}", control::PREFIX), "params": params });
        let (_, mut answer) = self.ask("POST", control::PATH, &body.to_string()).await?;
        Ok(match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer["result"].take()),
        })
    }

    /// The same until there is an answer.
    pub(super) async fn own_surely(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Result<Value, String>, Cut> {
        loop {
            match self.own(method, params).await {
                Ok(Err(why)) if is_busy(&why) => {}
                Ok(answer) => return Ok(answer),
                Err(Cut) => {}
            }
            if !self.field.linger(REDIAL).await {
                return Err(Cut);
            }
        }
    }

    /// Asks and is gone: after half of the question, or without waiting for the answer.
    pub(super) async fn abandon(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        whole: bool,
    ) -> Result<(), Cut> {
        let line = self.dial().await?;
        line.abandon(method, path, body, whole).await;
        Ok(())
    }

    async fn dial(&mut self) -> Result<Line, Cut> {
        match self.line.take() {
            Some(line) => Ok(line),
            None => Line::to(&self.field.address, Some(&self.token), control::PATH).await.map_err(|_| Cut),
        }
    }
}

/// Whether an error of the server's own methods asks the caller to try again.
fn is_busy(error: &str) -> bool {
    serde_json::from_str::<Value>(error).is_ok_and(|error| error["data"]["refusal"] == "busy")
}
