//! One HTTP connection that is kept open, with as little work on this side as possible: the server is measured, not the client.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use posthaste::cli::exit::{Exit, Failure};
use posthaste_wire::control;
use posthaste_wire::rpc::{self, RequestId};

/// The request that calls one of posthaste's own methods.
pub(crate) fn own_request(method: &str, params: &impl Serialize) -> serde_json::Result<String> {
    let method = format!("{}{method}", control::PREFIX);
    Ok(rpc::write_request(&RequestId::from(1), &method, Some(&to_raw_value(params)?)))
}

/// The answer to a call that was accepted.
#[derive(Deserialize)]
struct Answer<R> {
    result: R,
}

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// Of a request, between its first line and its length.
    fields: String,
    path: String,
    status: u16,
    buffer: String,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to posthaste's own methods.
    pub(crate) async fn connect(address: &str, token: &str) -> Result<Self, Failure> {
        Self::to(address, Some(token), control::PATH).await
    }

    /// Connects to any path.
    pub(crate) async fn to(address: &str, token: Option<&str>, path: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let fields = format!(
            "host: {address}\r\n{bearer}content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: "
        );
        let (buffer, body) = (String::new(), Vec::new());
        Ok(Self { stream: BufReader::new(stream), fields, path: path.to_owned(), status: 0, buffer, body })
    }

    /// Calls a method and waits for its answer, which must not be an error.
    pub(crate) async fn call(&mut self, method: &str, params: &impl Serialize) -> Result<(), Failure> {
        let answer = self.post(&own_request(method, params)?).await?;
        if answer.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\"") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("the server refused: {}", String::from_utf8_lossy(answer))))
    }

    /// Calls a method and returns its result.
    pub(crate) async fn ask<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Failure> {
        self.call(method, params).await?;
        let Answer { result } = serde_json::from_slice(&self.body)?;
        Ok(result)
    }

    /// Sends a message that must be accepted.
    pub(crate) async fn send(&mut self, body: &str) -> Result<(), Failure> {
        let answer = self.post(body).await?;
        if answer.starts_with(b"{\"success\":true") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("the server refused: {}", String::from_utf8_lossy(answer))))
    }

    /// Calls a tool, which must not fail.
    pub(crate) async fn call_tool(&mut self, body: &str) -> Result<(), Failure> {
        let answer = self.post(body).await?;
        if answer.ends_with(b"\"isError\":false}}") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("the server refused: {}", String::from_utf8_lossy(answer))))
    }

    /// Posts a body and returns the answer's body.
    pub(crate) async fn post(&mut self, body: &str) -> Result<&[u8], Failure> {
        let request = self.request("POST", &self.path, body);
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        self.answer().await
    }

    /// Sends any request; returns status and body of the answer.
    pub(crate) async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(u16, &[u8]), Failure> {
        let request = self.request(method, path, body);
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        self.answer().await?;
        Ok((self.status, &self.body))
    }

    /// Sends a request, or half of it, and drops the connection without waiting for the answer.
    pub(crate) async fn abandon(mut self, method: &str, path: &str, body: &str, whole: bool) {
        let request = self.request(method, path, body);
        let end = if whole { request.len() } else { request.len() / 2 };
        // It may or may not arrive.
        let _ = self.stream.get_mut().write_all(&request.as_bytes()[..end]).await;
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\n{}{}\r\n\r\n{body}", self.fields, body.len())
    }

    async fn answer(&mut self) -> Result<&[u8], Failure> {
        let mut length = 0;
        self.status = 0;
        loop {
            self.buffer.clear();
            if self.stream.read_line(&mut self.buffer).await? == 0 {
                return Err(Failure::new(Exit::Unreachable, "the server closed the connection"));
            }
            let line = self.buffer.trim_end();
            if line.is_empty() {
                break;
            }
            if self.status == 0 {
                self.status = line.split(' ').nth(1).unwrap_or_default().parse()?;
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok(&self.body)
    }
}
