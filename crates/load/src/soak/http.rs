//! An agent's HTTP client: connects when needed, and again after the connection broke.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shared::Shared;
use crate::clients::{Connection, own_request};
use posthaste_wire::control::{self, RefusalData};

/// A running server that does not answer within this time hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before a request is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(120);

/// There was no connection, or it was lost. The request may or may not have been done.
#[derive(Debug)]
pub(super) struct NoAnswer;

pub(super) struct HttpClient<'a> {
    shared: &'a Shared,
    token: String,
    line: Option<Connection>,
}

impl<'a> HttpClient<'a> {
    pub(super) fn new(shared: &'a Shared, token: &str) -> Self {
        Self { shared, token: token.to_owned(), line: None }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(u16, Value), NoAnswer> {
        let phase = self.shared.phase();
        let mut line = self.connection().await?;
        match tokio::time::timeout(ANSWER_TIMEOUT, line.exchange(method, path, body)).await {
            Ok(Ok((status, answer))) => {
                let answer = serde_json::from_slice(answer).unwrap_or(Value::Null);
                self.line = Some(line);
                Ok((status, answer))
            }
            Ok(Err(_)) => Err(NoAnswer),
            Err(_) => {
                // A server that ran all the time should have answered.
                if self.shared.was_open_since(phase) {
                    let text = format!("{method} {path} within {} s", ANSWER_TIMEOUT.as_secs());
                    self.shared.ledger.find("door: no answer", text);
                }
                Err(NoAnswer)
            }
        }
    }

    /// The text at a path that does not answer JSON.
    pub(super) async fn text(&mut self, path: &str) -> Result<String, NoAnswer> {
        let mut line = self.connection().await?;
        match tokio::time::timeout(ANSWER_TIMEOUT, line.exchange("GET", path, "")).await {
            Ok(Ok((200, text))) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(NoAnswer),
        }
    }

    /// Repeats a request until there is an answer. Only for requests that may be repeated. Fails if agents are to leave.
    pub(super) async fn ask_until_answered(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(u16, Value), NoAnswer> {
        loop {
            match self.ask(method, path, body).await {
                // The server is busy.
                Ok((503, _)) => {}
                Ok(answer) => return Ok(answer),
                Err(NoAnswer) => {}
            }
            if !self.shared.linger(RETRY_AFTER).await {
                return Err(NoAnswer);
            }
        }
    }

    /// Calls one of posthaste's own methods; its result, or the error as text.
    pub(super) async fn own<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Result<R, String>, NoAnswer> {
        let Ok(body) = own_request(method, params) else { return Err(NoAnswer) };
        let (_, mut answer) = self.ask("POST", control::PATH, &body).await?;
        Ok(match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => serde_json::from_value(answer["result"].take()).map_err(|error| error.to_string()),
        })
    }

    /// The same until there is an answer.
    pub(super) async fn own_until_answered<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Result<R, String>, NoAnswer> {
        loop {
            match self.own(method, params).await {
                Ok(Err(why)) if is_busy(&why) => {}
                Ok(answer) => return Ok(answer),
                Err(NoAnswer) => {}
            }
            if !self.shared.linger(RETRY_AFTER).await {
                return Err(NoAnswer);
            }
        }
    }

    /// Sends a request, or half of it, and drops the connection without waiting for the answer.
    pub(super) async fn abandon(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        whole: bool,
    ) -> Result<(), NoAnswer> {
        let line = self.connection().await?;
        line.abandon(method, path, body, whole).await;
        Ok(())
    }

    async fn connection(&mut self) -> Result<Connection, NoAnswer> {
        match self.line.take() {
            Some(line) => Ok(line),
            None => Connection::to(&self.shared.address, Some(&self.token), control::PATH)
                .await
                .map_err(|_| NoAnswer),
        }
    }
}

/// Whether an error of posthaste's own methods asks the caller to try again.
fn is_busy(error: &str) -> bool {
    serde_json::from_str::<Refused>(error).is_ok_and(|error| error.data.refusal == "busy")
}

/// An error with the data of a refusal.
#[derive(Deserialize)]
struct Refused {
    data: RefusalData,
}
