//! `posthaste mcp`, as clients start it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio as Pipe};

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

/// A client on the other side of the streams.
pub(super) struct Stdio {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: i64,
}

impl Stdio {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::inherit()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, last: 0 }
    }

    /// As a client does it that was given this entry: variables that are not set are expanded to nothing.
    pub(super) fn of_entry(entry: &Value, directory: &Path) -> Self {
        Self::of_entry_at(entry, directory, directory)
    }

    pub(super) fn of_entry_at(entry: &Value, directory: &Path, home: &Path) -> Self {
        let mut command = Command::new(entry["command"].as_str().unwrap());
        command.env_clear().current_dir(directory).env("HOME", home);
        command.args(entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
        for (name, value) in entry["env"].as_object().into_iter().flatten() {
            // VS Code and Cursor hand a name that is not set on as nothing or as it stands.
            let value = value.as_str().unwrap();
            command.env(name, if value.contains(":-") { "" } else { value });
        }
        Self::start(&mut command)
    }

    fn on(data: &TestDir, directory: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.env_clear().current_dir(directory).arg("--data").arg(data.path()).arg("mcp");
        Self::start(&mut command)
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        writeln!(
            self.input,
            "{}",
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
        )
        .unwrap();
        self.answer(self.last)
    }

    fn answer(&mut self, id: i64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["id"] == id {
                return said;
            }
        }
    }

    fn greet(&mut self) {
        let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        assert_eq!(self.ask("initialize", client)["result"]["serverInfo"]["name"], "posthaste");
        writeln!(self.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .unwrap();
    }

    pub(super) fn tool(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"]["structuredContent"].take()
    }

    /// The client goes away.
    pub(super) fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

fn session(name: &str) -> Value {
    json!({ "human_key": "/srv/app", "program": "p", "model": "m", "agent_name": name })
}

fn message(from: &str, to: &str, subject: &str) -> Value {
    json!({ "project_key": "/srv/app", "sender_name": from, "to": [to], "subject": subject, "body_md": "b" })
}

fn inbox(name: &str) -> Value {
    json!({ "project_key": "/srv/app", "agent_name": name })
}

// F17: the second `posthaste mcp` on a data directory died. They share the first one's server, and when it ends, or is
// killed, another starts one; its client goes on with the session and the agent it had.
#[test]
fn several_processes_share_a_data_directory_and_take_over() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let directory = |name: &str| {
        let path = work.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let mut one = Stdio::on(&data, &directory("one"));
    one.greet();
    one.tool("macro_start_session", session("BlueLake"));
    let mut two = Stdio::on(&data, &directory("two"));
    two.greet();
    two.tool("macro_start_session", session("GreenHill"));
    let mut three = Stdio::on(&data, &directory("three"));
    three.greet();
    three.tool("macro_start_session", session("RedFox"));
    two.tool("send_message", message("GreenHill", "BlueLake", "first"));
    assert_eq!(one.tool("fetch_inbox", inbox("BlueLake"))["result"][0]["subject"], "first");
    one.tool("send_message", message("BlueLake", "GreenHill", "before the end"));
    // Gracefully.
    one.end();
    two.tool("send_message", message("GreenHill", "RedFox", "second"));
    let found = two.tool("fetch_inbox", inbox("GreenHill"));
    assert_eq!(found["result"][0]["subject"], "before the end", "{found}");
    assert_eq!(three.tool("fetch_inbox", inbox("RedFox"))["result"][0]["subject"], "second");
    // And by a kill.
    two.child.kill().unwrap();
    two.child.wait().unwrap();
    three.tool("send_message", message("RedFox", "GreenHill", "third"));
    let mut two = Stdio::on(&data, &directory("two"));
    two.greet();
    let subjects = two.tool("fetch_inbox", inbox("GreenHill")).to_string();
    assert!(subjects.contains("third"), "the same token, the same agent: {subjects}");
    three.end();
    assert!(two.tool("fetch_inbox", inbox("GreenHill")).to_string().contains("third"));
    two.end();
    assert!(!data.path().join("office.json").exists(), "the last one closed the server");
}

// F17: a server inside `posthaste mcp` does not keep `posthaste serve` from starting, and one that is restarted is waited for.
#[test]
fn a_server_by_itself_comes_first() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let mut stdio = Stdio::on(&data, work.path());
    stdio.greet();
    stdio.tool("macro_start_session", session("BlueLake"));
    let office = Office::open(data.path());
    stdio.tool("send_message", message("BlueLake", "BlueLake", "at the server"));
    assert_eq!(office.close(), Some(0));
    let office = Office::open(data.path());
    assert_eq!(stdio.tool("fetch_inbox", inbox("BlueLake"))["result"][0]["subject"], "at the server");
    assert_eq!(office.close(), Some(0));
    // It does not come back: the client goes on all the same.
    assert_eq!(stdio.tool("fetch_inbox", inbox("BlueLake"))["result"][0]["subject"], "at the server");
    stdio.end();
}

// F17: started at the same moment, one of them has the server.
#[test]
fn simultaneous_starts_share_one_server() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let mut all: Vec<Stdio> = (0..4).map(|_| Stdio::on(&data, work.path())).collect();
    for stdio in &mut all {
        stdio.greet();
        assert_eq!(stdio.tool("health_check", json!({}))["status"], "ok");
    }
    all.into_iter().for_each(Stdio::end);
}

// F12: the client acts as itself; the operator's way is to name the operator's token.
#[tokio::test]
async fn a_client_is_not_the_operator() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let office = Office::open(data.path());
    let other = Mcp::bearer(&office, "user", "other").await;
    other.call("macro_start_session", session("BlueLake")).await;
    let mut stdio = Stdio::on(&data, work.path());
    assert!(stdio.tool("fetch_inbox", inbox("BlueLake"))["error"].is_object(), "another's mail");
    assert_eq!(stdio.tool("health_check", json!({}))["database_url"], Value::Null);
    stdio.end();
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.env_clear().current_dir(work.path()).arg("--data").arg(data.path()).args(["mcp", "--token-file"]);
    let mut operator = Stdio::start(command.arg(data.path().join("admin.token")));
    assert!(operator.tool("fetch_inbox", inbox("BlueLake"))["error"].is_null());
    operator.end();
    // A token that was revoked is not replaced behind the operator's back.
    let tokens = office.call("token.list", json!({})).await.unwrap()["tokens"].take();
    let kept =
        tokens.as_array().unwrap().iter().find(|token| token["name"].as_str().unwrap().starts_with("mcp-"));
    office.call("token.revoke", json!({ "id": kept.unwrap()["id"] })).await.unwrap();
    let mut again = data.posthaste().args(["mcp"]);
    again.command.current_dir(work.path());
    let again = again.run();
    assert_eq!(again.code, 4, "{}", again.stderr);
    assert!(again.stderr.contains("revoked"), "{}", again.stderr);
    assert_eq!(office.close(), Some(0));
}

// outside F3: a client of the newest revision gets through.
#[test]
fn the_newest_revision_is_relayed() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let mut stdio = Stdio::on(&data, work.path());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = stdio.ask("server/discover", json!({ "_meta": meta }));
    assert!(found["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{found}");
    let tools = stdio.ask("tools/list", json!({ "_meta": meta }));
    assert!(tools["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 24), "{tools}");
    let health = stdio.ask("tools/call", json!({ "name": "health_check", "arguments": {}, "_meta": meta }));
    assert_eq!(health["result"]["structuredContent"]["status"], "ok", "{health}");
    stdio.end();
}

// F7: a server that is named is relayed to, and no data directory is made.
#[tokio::test]
async fn a_named_server_is_relayed_to() {
    let (data, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(data.path());
    let made = office.call("token.create", json!({ "role": "user", "name": "ann" })).await.unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.env_clear().current_dir(home.path()).env("HOME", home.path()).arg("mcp");
    command.env("POSTHASTE_URL", office.url()).env("POSTHASTE_TOKEN", made["token"].as_str().unwrap());
    let mut stdio = Stdio::start(&mut command);
    stdio.greet();
    stdio.tool("macro_start_session", session("BlueLake"));
    let found = Mcp::operator(&office).call("fetch_inbox", inbox("BlueLake")).await;
    assert_eq!(found, json!([]));
    stdio.end();
    assert!(!super::data_of(&home).exists());
    assert_eq!(office.close(), Some(0));
}
