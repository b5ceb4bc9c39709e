//! A temporary directory, the program as a command, a listener, and waiting for a condition.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use axum::Router;
use posthaste_host::http::listen::{ListenOptions, serve};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time limit for every wait in the tests: more than any of them needs, less than the runner's timeout.
pub(crate) const LONG: Duration = Duration::from_secs(10);

/// A directory that is deleted with the test. Its parent belongs to the test too, so that `../x` cannot be a file that
/// another program left in the system's temporary directory.
pub(crate) struct TestDir {
    path: PathBuf,
    _parent: tempfile::TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("test");
        std::fs::create_dir(&path).unwrap();
        Self { path, _parent: parent }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with this directory as its data directory.
    pub(crate) fn posthaste(&self) -> Posthaste {
        let mut posthaste = Posthaste::new();
        posthaste.command.arg("--data").arg(self.path());
        posthaste
    }
}

/// The program, without the environment of the user who runs the tests.
pub(crate) struct Posthaste {
    pub(crate) command: Command,
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Posthaste {
    pub(crate) fn new() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.env_clear();
        Self { command }
    }

    pub(crate) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn run(mut self) -> Ran {
        let Output { status, stdout, stderr } = self.command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// A listener on a free port.
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) done: JoinHandle<std::io::Result<()>>,
}

pub(crate) async fn listen(app: Router, options: ListenOptions) -> Listening {
    // Each test is a process of its own, and rustls needs a default provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let done = tokio::spawn(serve(listener, app, options, stop.clone()));
    Listening { address, stop, done }
}

impl Listening {
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends one request on a new connection and returns the whole response.
    pub(crate) async fn ask(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }

    pub(crate) async fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")).await
    }

    /// Closes the listener; returns how long that took.
    pub(crate) async fn close(self) -> Duration {
        let start = std::time::Instant::now();
        self.stop.cancel();
        timeout(LONG, self.done).await.expect("the listener ends").unwrap().unwrap();
        start.elapsed()
    }
}

/// Polls `condition` until it holds. Panics with `what` if it does not within `limit`.
pub(crate) async fn eventually(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = std::time::Instant::now();
    while !condition().await {
        assert!(started.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Everything up to the end of the stream; a reset counts as the end.
pub(crate) async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the stream ends");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends one keep-alive request and reads the response up to the end of `body`.
pub(crate) async fn keep_alive(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), body: &str) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(body.as_bytes()) {
        let mut chunk = [0; 1024];
        let count = timeout(LONG, stream.read(&mut chunk)).await.expect("an answer").unwrap();
        assert!(count > 0, "ended after {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8(answer).unwrap()
}
