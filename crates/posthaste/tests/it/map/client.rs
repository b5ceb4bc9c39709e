//! A server in a process of its own, and a plain MAP client.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::harness::TestDir;

const SOON: Duration = Duration::from_secs(10);

/// A running server, which ends with the test.
pub(crate) struct Office {
    directory: TestDir,
    flags: Vec<String>,
    process: Child,
    address: String,
    tls: bool,
}

impl Office {
    pub(crate) async fn open(flags: &[&str]) -> Self {
        let directory = TestDir::new();
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (process, url) = start(&directory, &flags);
        let (tls, address) = (url.starts_with("https"), url.split("//").last().unwrap().to_owned());
        Self { directory, flags, process, address, tls }
    }

    /// The URL of the MAP door.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}/map", if self.tls { "wss" } else { "ws" }, self.address)
    }

    /// Its URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// The administrator's token.
    pub(crate) fn admin_token(&self) -> String {
        std::fs::read_to_string(self.data().join("admin.token")).unwrap().trim().to_owned()
    }

    /// Kills the server and starts it again.
    pub(crate) async fn restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let (process, url) = start(&self.directory, &self.flags);
        (self.process, self.address) = (process, url.split("//").last().unwrap().to_owned());
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn start(directory: &TestDir, flags: &[String]) -> (Child, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_posthaste"))
        .env_clear()
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.path())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("ready ").expect("the office is ready").to_owned();
    (process, url)
}

/// One connection.
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    kept: Vec<Value>,
    next_id: i64,
}

impl Client {
    async fn open(office: &Office) -> Self {
        Self::dial(office, format!("ws://{}/map", office.address)).await
    }

    /// A connection without a token, before any call.
    pub(crate) async fn stranger(office: &Office) -> Self {
        Self::open(office).await
    }

    /// A connection with a token, before any call.
    pub(crate) async fn open_with(office: &Office, token: &str) -> Self {
        Self::dial(office, format!("ws://{}/map?token={token}", office.address)).await
    }

    /// A connection on another path, before any call.
    pub(crate) async fn open_on(office: &Office, path: &str) -> Self {
        Self::dial(office, format!("ws://{}{path}", office.address)).await
    }

    /// A connection to a running server, with a token, before any call.
    pub(crate) async fn open_at(url: &str, token: &str) -> Self {
        let address = url.strip_prefix("http://").unwrap();
        Self::dial_at(address, format!("ws://{address}/map?token={token}")).await
    }

    /// An agent of that name at a running server, with a token.
    pub(crate) async fn agent_at(url: &str, token: &str, name: &str) -> Self {
        let mut client = Self::open_at(url, token).await;
        client
            .call("map/connect", json!({ "protocolVersion": 1, "participantType": "agent" }))
            .await
            .unwrap();
        client.call("map/agents/register", json!({ "agentId": name, "name": name })).await.unwrap();
        client
    }

    async fn dial(office: &Office, url: String) -> Self {
        Self::dial_at(&office.address, url).await
    }

    async fn dial_at(address: &str, url: String) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        Self { socket, kept: Vec::new(), next_id: 10_000 }
    }

    pub(crate) async fn connect(office: &Office, part: &str) -> Self {
        let mut client = Self::open(office).await;
        client.call("map/connect", json!({ "protocolVersion": 1, "participantType": part })).await.unwrap();
        client
    }

    pub(crate) async fn connect_with(office: &Office, token: &str, part: &str) -> Self {
        let mut client = Self::open_with(office, token).await;
        client.call("map/connect", json!({ "protocolVersion": 1, "participantType": part })).await.unwrap();
        client
    }

    /// An agent of that name.
    pub(crate) async fn agent(office: &Office, name: &str) -> Self {
        let mut client = Self::connect(office, "agent").await;
        client.call("map/agents/register", json!({ "agentId": name, "name": name })).await.unwrap();
        client
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn binary(&mut self, bytes: &[u8]) {
        self.socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.text(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
            .await;
        let mut answer = self.next(move |frame| frame["id"] == id && frame.get("method").is_none()).await;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The next matching frame; others are kept for later.
    pub(crate) async fn next(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.kept.iter().position(&wanted) {
            return self.kept.remove(index);
        }
        loop {
            let frame = timeout(SOON, self.socket.next()).await.expect("a frame in time");
            let frame = frame.expect("an open connection").expect("a frame");
            if let Message::Text(text) = frame {
                let frame: Value = serde_json::from_str(&text).expect("one JSON value");
                if wanted(&frame) {
                    return frame;
                }
                self.kept.push(frame);
            }
        }
    }

    /// Calls a method repeatedly with `in_flight` requests in progress, until the connection ends. Returns the numbers (the
    /// requests' ids) of those that were answered with a result.
    pub(crate) async fn flood(
        &mut self,
        method: &str,
        in_flight: i64,
        params: impl Fn(i64) -> Value,
    ) -> Vec<i64> {
        let (mut sent, mut done) = (0, Vec::new());
        loop {
            while sent - i64::try_from(done.len()).unwrap() < in_flight {
                let call = json!({ "jsonrpc": "2.0", "id": sent, "method": method, "params": params(sent) });
                if self.socket.send(Message::text(call.to_string())).await.is_err() {
                    break;
                }
                sent += 1;
            }
            match timeout(SOON, self.socket.next()).await.expect("a frame in time") {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).expect("one JSON value");
                    if let (Some(id), Some(_)) = (frame["id"].as_i64(), frame.get("result")) {
                        done.push(id);
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return done,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Reads all frames until the connection ends.
    pub(crate) async fn drain(&mut self) {
        while let Some(Ok(_)) = self.socket.next().await {}
    }

    /// Whether such a frame came and was kept for later.
    pub(crate) fn has(&self, wanted: impl Fn(&Value) -> bool) -> bool {
        self.kept.iter().any(wanted)
    }

    /// The next message for an agent of this connection.
    pub(crate) async fn message(&mut self) -> Value {
        self.next(|frame| frame["method"] == "map/message").await["params"]["message"].take()
    }

    /// Closes the connection and returns the close code of the answer.
    pub(crate) async fn goodbye(&mut self, code: u16) -> Option<u16> {
        let frame = CloseFrame { code: code.into(), reason: "done".into() };
        self.socket.close(Some(frame)).await.unwrap();
        self.close_code().await
    }

    /// Sends a text frame with bytes that need not be UTF-8.
    pub(crate) async fn raw_text(&mut self, bytes: &[u8]) {
        let frame = Frame::message(bytes.to_vec(), OpCode::Data(Data::Text), true);
        self.socket.send(Message::Frame(frame)).await.unwrap();
    }

    /// The close code of the server.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        loop {
            match timeout(SOON, self.socket.next()).await.expect("an end in time")? {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// A connection in the draft's dialect, and the answer to its greeting.
pub(crate) async fn connect_raw(office: &Office, greeting: Value) -> (Client, Value) {
    let mut client = Client::open(office).await;
    let answer = client.call("map/initialize", greeting).await.unwrap();
    (client, answer)
}
