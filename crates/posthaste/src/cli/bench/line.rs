//! One connection to the office, kept open: just enough HTTP to measure the server and not the client.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::cli::exit::{Exit, Failure};
use crate::doors::control;

pub(super) struct Line {
    stream: BufReader<TcpStream>,
    head: String,
    buffer: String,
    body: Vec<u8>,
}

impl Line {
    /// A line to the office's own methods.
    pub(super) async fn connect(address: &str, token: &str) -> Result<Self, Failure> {
        Self::to(address, Some(token), control::PATH).await
    }

    /// A line to any path.
    pub(super) async fn to(address: &str, token: Option<&str>, path: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\n{bearer}content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: "
        );
        Ok(Self { stream: BufReader::new(stream), head, buffer: String::new(), body: Vec::new() })
    }

    /// Calls a method and waits for its answer, which must not be an error.
    pub(super) async fn call(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": format!("{}{method}", control::PREFIX), "params": params });
        let answer = self.post(&body.to_string()).await?;
        if answer.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\"") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("the office refused: {}", String::from_utf8_lossy(answer))))
    }

    /// Calls a method and gives what it answers.
    pub(super) async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.call(method, params).await?;
        let mut answer: Value = serde_json::from_slice(&self.body)?;
        Ok(answer["result"].take())
    }

    /// Sends a message that must be accepted.
    pub(super) async fn send(&mut self, body: &str) -> Result<(), Failure> {
        let answer = self.post(body).await?;
        if answer.starts_with(b"{\"success\":true") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("the office refused: {}", String::from_utf8_lossy(answer))))
    }

    /// Calls a tool, which must not fail.
    pub(super) async fn call_tool(&mut self, body: &str) -> Result<(), Failure> {
        let answer = self.post(body).await?;
        if answer.ends_with(b"\"isError\":false}}") {
            return Ok(());
        }
        Err(Failure::new(Exit::Failed, format!("the office refused: {}", String::from_utf8_lossy(answer))))
    }

    /// Posts a body and waits for the answer, whatever it is.
    pub(super) async fn post(&mut self, body: &str) -> Result<&[u8], Failure> {
        let request = format!("{}{}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<&[u8], Failure> {
        let mut length = 0;
        loop {
            self.buffer.clear();
            if self.stream.read_line(&mut self.buffer).await? == 0 {
                return Err(Failure::new(Exit::Unreachable, "the office closed the connection"));
            }
            let line = self.buffer.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
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
