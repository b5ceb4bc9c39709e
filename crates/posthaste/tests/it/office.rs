//! The real program as a server: started, called over HTTP, stopped or killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The program under test: this build, unless POSTHASTE_TEST_PROGRAM names another (a release build for figures, an older
/// one to see a test fail).
fn program() -> std::ffi::OsString {
    std::env::var_os("POSTHASTE_TEST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_posthaste").into())
}

/// A running server that is killed with the test.
pub(crate) struct Office {
    child: Child,
    operator: Bearer,
}

/// A caller with a token.
pub(crate) struct Bearer {
    base: String,
    token: String,
    http: reqwest::Client,
}

/// A response: the result, or why there is none.
pub(crate) type Answer = Result<Value, Trouble>;

/// Why there is no result.
#[derive(Debug, PartialEq)]
pub(crate) enum Trouble {
    /// The server refused, with this code.
    Refused(String),
    /// There was no response.
    Silence,
}

impl Office {
    /// Starts the program on a data directory and waits until it is ready.
    pub(crate) fn open(data: &Path) -> Self {
        let mut command = Command::new(program());
        command.env_clear();
        Self::start(command, data)
    }

    /// Starts another build of the program.
    pub(crate) fn open_program(program: &Path, data: &Path) -> Self {
        let mut command = Command::new(program);
        command.env_clear();
        Self::start(command, data)
    }

    /// Starts it with further flags and variables.
    pub(crate) fn open_with(data: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(env.iter().copied());
        Self::start_with(command, data, args)
    }

    /// Starts it with a limit on the size of every file, in KiB.
    pub(crate) fn open_with_file_limit(data: &Path, kib: u64) -> Self {
        let mut command = Command::new("bash");
        // The signal is ignored, so that the write fails as it does on a full disk.
        command.args(["-c", &format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_posthaste"));
        Self::start(command, data)
    }

    /// Starts it with this machine's `PATH`.
    pub(crate) fn open_with_path(data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Self::start(command, data)
    }

    /// Starts it in a working directory, with further flags.
    pub(crate) fn open_in(data: &Path, directory: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.env_clear().current_dir(directory);
        Self::start_with(command, data, flags)
    }

    /// Starts it with further flags and its log in a file.
    pub(crate) fn open_logging<'a>(
        data: &Path,
        flags: impl IntoIterator<Item = &'a str>,
        log: &Path,
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.env_clear();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        Self::start_as(command, data, "info", flags, log.into())
    }

    /// Starts it with further flags and its log, at level trace, in a file.
    pub(crate) fn open_talkative(
        data: &Path,
        form: &str,
        flags: &[&str],
        log: &Path,
        env: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.env_clear().envs(env.iter().copied());
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let flags = ["--log", form].into_iter().chain(flags.iter().copied());
        Self::start_as(command, data, "trace", flags, log.into())
    }

    fn start(command: Command, data: &Path) -> Self {
        Self::start_with(command, data, &[])
    }

    fn start_with(command: Command, data: &Path, args: &[&str]) -> Self {
        Self::start_as(command, data, "error", args.iter().copied(), Stdio::null())
    }

    fn start_as<'a>(
        mut command: Command,
        data: &Path,
        level: &str,
        flags: impl IntoIterator<Item = &'a str>,
        log: Stdio,
    ) -> Self {
        // Each test is a process of its own, and rustls needs a default provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", level, "--data"]).arg(data);
        let mut child = command.args(flags).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.strip_prefix("ready ").unwrap_or_else(|| panic!("not ready: {line:?}")).trim().to_owned();
        let token = std::fs::read_to_string(data.join("admin.token")).unwrap().trim().to_owned();
        Self { child, operator: Bearer { base: url, token, http: reqwest::Client::new() } }
    }

    /// The operator's key.
    pub(crate) fn token(&self) -> &str {
        &self.operator.token
    }

    pub(crate) fn url(&self) -> &str {
        &self.operator.base
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn close(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Waits until the process has ended after a signal and returns its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Calls one of the server's own methods as the operator.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        self.operator.call(method, params).await
    }

    /// A caller with another token.
    pub(crate) fn as_bearer(&self, token: &str) -> Bearer {
        let Bearer { base, http, .. } = &self.operator;
        Bearer { base: base.clone(), token: token.to_owned(), http: http.clone() }
    }

    /// A caller with another token and its own connections. A client's connections are shared by its clones, and each is
    /// driven by the thread that opened it.
    pub(crate) fn apart(&self, token: &str) -> Bearer {
        Bearer { http: reqwest::Client::new(), ..self.as_bearer(token) }
    }

    /// The response to any body.
    pub(crate) async fn post(&self, body: &str) -> Value {
        let text = self.operator.post(body.to_owned()).await.expect("an answer");
        serde_json::from_str(&text).unwrap()
    }

    /// The status and body of a GET.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let request =
            self.operator.http.get(format!("{}{path}", self.operator.base)).bearer_auth(&self.operator.token);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    pub(crate) async fn register(&self, agent: &str) {
        self.call("register", json!({ "id": agent })).await.unwrap();
    }

    pub(crate) async fn send(&self, from: &str, to: &str, body: &str, key: &str) -> Answer {
        self.call("send", json!({ "from": from, "to": [to], "body": body, "key": key })).await
    }

    /// Every message of an agent after a seq, oldest first.
    pub(crate) async fn inbox(&self, agent: &str, mut after: i64) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let params = json!({ "agent": agent, "after": after, "order": "oldest", "limit": 1000 });
            let mut page = self.call("inbox", params).await.unwrap();
            let Value::Array(items) = page["messages"].take() else { panic!("no messages in {page}") };
            messages.extend(items);
            match page["next"].as_i64() {
                Some(next) => after = next,
                None => return messages,
            }
        }
    }
}

impl Bearer {
    /// The same caller at another realm.
    pub(crate) fn in_realm(mut self, realm: &str) -> Self {
        self.base.push_str(&format!("/r/{realm}"));
        self
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": format!("x-posthaste/{method}"), "params": params });
        let text = self.post(body.to_string()).await.ok_or(Trouble::Silence)?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|_| Trouble::Silence)?;
        match answer.get("error") {
            Some(error) => Err(Trouble::Refused(error["data"]["refusal"].as_str().unwrap_or("?").to_owned())),
            None => Ok(answer["result"].take()),
        }
    }

    async fn post(&self, body: String) -> Option<String> {
        let request = self.http.post(format!("{}/x-posthaste/rpc", self.base)).bearer_auth(&self.token);
        request.body(body).send().await.ok()?.text().await.ok()
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        // For tests that failed; the others have ended the process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
