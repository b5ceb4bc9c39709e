//! An agent that is a program: it exchanges lines of JSON on its standard input and output, several turns at once, and is
//! restarted with growing pauses when it ends.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posthaste_wire::mail::driver::{NamedReply, reply_id};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Reply, Turn, from_wire};
use posthaste_wire::mail::definition::CommandDefinition;

/// Maximum length of a line from a program, in bytes.
const MAX_LINE: usize = 16 << 20;
/// Number of times that a turn is sent to a program that ends before it answers.
const MAX_ATTEMPTS: u32 = 3;
/// Pause before the first restart; it doubles each time.
const MIN_RESTART_PAUSE: Duration = Duration::from_millis(100);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(30);
/// After running this long the pause starts over.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// How long a program may take to exit after its input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Prefixes of environment variables that programs do not inherit, because they hold secrets of the server.
const SECRET_PREFIXES: [&str; 2] = ["SWARM_AUTH_TOKEN_", "POSTHASTE_"];

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Reply, Broken>>>>>;

/// Why a turn has no reply.
#[derive(Debug)]
enum Broken {
    /// The program ended; the turn is sent again.
    Ended,
    /// The program reported an error.
    Failed(String),
}

/// A program that answers for an agent.
#[derive(Debug)]
pub(crate) struct Program {
    lines: mpsc::Sender<Vec<u8>>,
    waiting: Waiting,
    next: AtomicU64,
}

impl Program {
    pub(super) fn start(
        agent: &str,
        given: &CommandDefinition,
        here: &Path,
        stop: &CancellationToken,
    ) -> Self {
        let (lines, queue) = mpsc::channel(given.turns.max(1));
        let waiting = Waiting::default();
        let supervisor = Supervisor {
            agent: agent.to_owned(),
            given: given.clone(),
            here: here.to_owned(),
            waiting: waiting.clone(),
            stop: stop.clone(),
        };
        tokio::spawn(supervisor.run(queue));
        Self { lines, waiting, next: AtomicU64::new(1) }
    }

    pub(super) async fn take(&self, turn: &Turn) -> Result<Reply, String> {
        for _ in 0..MAX_ATTEMPTS {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let mut line = serde_json::to_vec(&turn.to_wire(id)).map_err(|error| error.to_string())?;
            line.push(b'\n');
            let (tell, wait) = oneshot::channel();
            lock(&self.waiting).insert(id, tell);
            let taken = ForgetOnDrop { waiting: &self.waiting, id };
            if self.lines.send(line).await.is_err() {
                return Err("the program is not started any more".to_owned());
            }
            match wait.await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(Broken::Failed(why))) => return Err(why),
                Ok(Err(Broken::Ended)) | Err(_) => {}
            }
            drop(taken);
        }
        Err(format!("the program ended {MAX_ATTEMPTS} times before it answered"))
    }
}

/// Removes the turn when its caller stops waiting.
struct ForgetOnDrop<'a> {
    waiting: &'a Waiting,
    id: u64,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.id);
    }
}

fn lock(
    waiting: &Waiting,
) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Reply, Broken>>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a program running.
struct Supervisor {
    agent: String,
    given: CommandDefinition,
    here: PathBuf,
    waiting: Waiting,
    stop: CancellationToken,
}

impl Supervisor {
    async fn run(self, mut queue: mpsc::Receiver<Vec<u8>>) {
        let mut pause = MIN_RESTART_PAUSE;
        loop {
            let started = Instant::now();
            match self.spawn() {
                Ok(child) => {
                    let status = self.serve(child, &mut queue).await;
                    if self.stop.is_cancelled() || queue.is_closed() {
                        return self.give_up();
                    }
                    tracing::warn!(
                        agent = self.agent,
                        status,
                        "an agent's program ended; it is started again"
                    );
                }
                Err(error) => {
                    tracing::warn!(agent = self.agent, %error, "an agent's program cannot be started")
                }
            }
            // Callers that wait for a reply send their turns again, so the queued lines are dropped.
            self.give_up();
            while queue.try_recv().is_ok() {}
            pause = if started.elapsed() >= HEALTHY_AFTER {
                MIN_RESTART_PAUSE
            } else {
                (pause * 2).min(MAX_RESTART_PAUSE)
            };
            tokio::select! {
                () = self.stop.cancelled() => return self.give_up(),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let (program, args) = self.given.command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if self.here.is_dir() {
            command.current_dir(&self.here);
        }
        without_secrets(&mut command);
        command.envs(&self.given.env);
        command.spawn()
    }

    /// Writes lines to the program until it ends.
    async fn serve(&self, mut child: Child, queue: &mut mpsc::Receiver<Vec<u8>>) -> String {
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return "without pipes".to_owned();
        };
        let complaints = tokio::spawn(log_lines(self.agent.clone(), errors));
        let reader = tokio::spawn(read_replies(self.agent.clone(), output, self.waiting.clone()));
        let mut reader = reader;
        let why = loop {
            tokio::select! {
                () = self.stop.cancelled() => break "stopped".to_owned(),
                ended = &mut reader => break ended.unwrap_or_else(|error| error.to_string()),
                line = queue.recv() => {
                    let Some(line) = line else { break "no longer needed".to_owned() };
                    if let Err(error) = input.write_all(&line).await {
                        break format!("does not read: {error}");
                    }
                    let _ = input.flush().await;
                }
            }
        };
        drop(input);
        reader.abort();
        let status = match tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            _ => {
                let _ = child.kill().await;
                "killed".to_owned()
            }
        };
        complaints.abort();
        format!("{why}; {status}")
    }

    /// Tells all callers that wait that the program ended.
    fn give_up(&self) {
        for (_, tell) in lock(&self.waiting).drain() {
            drop(tell.send(Err(Broken::Ended)));
        }
    }
}

/// Removes the server's secrets from a program's environment.
pub(crate) fn without_secrets(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| SECRET_PREFIXES.iter().any(|kept| name.starts_with(kept))) {
            command.env_remove(name);
        }
    }
}

async fn read_replies(agent: String, output: impl AsyncRead + Unpin, waiting: Waiting) -> String {
    let mut output = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).await {
            Ok(0) => return "its output ended".to_owned(),
            Ok(_) if line.len() > MAX_LINE => return "it wrote a line that is too long".to_owned(),
            Ok(_) => {}
            Err(error) => return error.to_string(),
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(NamedReply { id, reply }) => {
                if let Some(tell) = lock(&waiting).remove(&id) {
                    drop(tell.send(from_wire(reply).map_err(Broken::Failed)));
                }
            }
            Err(error) => {
                tracing::warn!(agent, %error, "an agent's program wrote a line that is no reply");
                // If the line has an id, that turn has failed.
                if let Some(id) = reply_id(&line)
                    && let Some(tell) = lock(&waiting).remove(&id)
                {
                    drop(
                        tell.send(Err(Broken::Failed(format!(
                            "the program's reply cannot be read: {error}"
                        )))),
                    );
                }
            }
        }
    }
}

async fn log_lines(agent: String, errors: impl AsyncRead + Unpin) {
    let mut lines = BufReader::new(errors.take(u64::MAX)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::info!(agent, "{line}");
    }
}
