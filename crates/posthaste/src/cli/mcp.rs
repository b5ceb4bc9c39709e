//! `posthaste mcp`: MCP on standard input and output, at the running office or on the books themselves.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use posthaste_engine::limits::Limits;
use posthaste_engine::{Fault, Office};
use posthaste_wire::sse;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, RwLock, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::args::{GlobalArgs, McpArgs, OfficeArgs};
use super::exit::Failure;
use super::mail_args::read_token;
use super::runtime;
use crate::caller::Identity;
use crate::config::Config;
use crate::doors::mcp::{self, Settings, Visitor};
use crate::keys::AdminKey;
use crate::projects::{self, Trees};
use crate::serve::{Whereabouts, held, make_private_directory, not_given};
use crate::shared::Shared;

/// The longest event that the office sends.
const MOST_EVENT: usize = 16 << 20;
/// The longest line that is read.
const MOST_LINE: u64 = 16 << 20;
/// The largest file that is attached; a request has room for less than this.
const MOST_FILE: u64 = 2 << 20;
/// Requests under way at once.
const MOST_UNDER_WAY: usize = 256;

pub(super) fn run(global: &GlobalArgs, given: &McpArgs) -> Result<(), Failure> {
    let office = OfficeArgs {
        realm: given.realm.realm.clone(),
        tools: given.tools,
        project: given.project.clone(),
        ..OfficeArgs::default()
    };
    let config = Config::load(global, &office, &|name| std::env::var_os(name))?;
    let named = given.realm.realm.is_some();
    let token = given.token_file.as_deref().map(read_token).transpose()?;
    let runtime = runtime()?;
    let done = runtime.block_on(serve(&config, named, token));
    // Standard input is read on a thread that cannot be interrupted; there is nothing left for it to do.
    runtime.shutdown_background();
    done
}

async fn serve(config: &Config, realm_named: bool, token: Option<String>) -> Result<(), Failure> {
    let data = &config.data.value;
    make_private_directory(data)?;
    let (office, guard) = match Office::open(data, Limits::default()) {
        Ok(opened) => opened,
        Err(fault @ Fault::Locked { .. }) => {
            let Some(office) = Whereabouts::read(data) else { return Err(held(fault)) };
            let base = if realm_named { format!("/r/{}", config.realm.value) } else { String::new() };
            let token = token.or_else(|| AdminKey::read(data).ok());
            let trees = Arc::new(named_trees(config)?.1);
            return attach(&format!("{}{base}/mcp", office.url), token, trees).await;
        }
        Err(fault) => return Err(held(fault)),
    };
    let admin = AdminKey::open(data)?;
    let realm = config.realm.value.clone();
    let engine = office.realm(&realm).await.map_err(anyhow::Error::from)?;
    let switches = config.switches();
    let stop = CancellationToken::new();
    let shared = Shared::new(office, realm.clone(), admin, switches, stop.clone());
    shared.mcp().configure(Settings { tools: config.tools.value, trust_local: config.trust_local.value });
    let (given, trees) = named_trees(config)?;
    shared.name_trees(trees);
    shared.claim_given(&given).await.map_err(not_given)?;
    // With a token the client acts as the token's bearer, although it could read the data directory.
    let identity = match &token {
        Some(token) => shared.identify(&engine, Some(token), "mcp").await.map_err(anyhow::Error::from)?,
        None => Identity::operator(),
    };
    let visitor = Visitor::operator(identity, engine);
    let served = mcp::serve_stdio(shared.clone(), visitor).await;
    stop.cancel();
    drop(shared);
    guard.close().await;
    Ok(served?)
}

/// The names and work trees of the directory that the client started us in, and of `--project`.
fn named_trees(config: &Config) -> Result<(Vec<projects::Given>, Trees), Failure> {
    let here = std::env::current_dir().ok();
    let given = projects::given(here.as_deref(), &config.projects.value).map_err(not_given)?;
    let trees = Trees::named(here.as_deref(), &given, &config.data.value);
    Ok((given, trees))
}

/// Carries lines to the running office and answers and notifications back.
async fn attach(url: &str, token: Option<String>, trees: Arc<Trees>) -> Result<(), Failure> {
    let client = reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true).build()?;
    let (out, mut lines) = mpsc::channel::<String>(MOST_UNDER_WAY);
    let carrier = Arc::new(Carrier {
        client,
        url: url.to_owned(),
        token,
        session: RwLock::new(None),
        listening: Mutex::new(false),
        trees,
        out,
    });
    let writing = tokio::spawn(async move {
        let mut stdout = tokio::io::stdout();
        while let Some(line) = lines.recv().await {
            let line = line.replace(['\n', '\r'], " ");
            stdout.write_all(line.as_bytes()).await?;
            stdout.write_all(b"\n").await?;
            stdout.flush().await?;
        }
        std::io::Result::Ok(())
    });
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let mut input = BufReader::new(tokio::io::stdin());
    let slots = Arc::new(tokio::sync::Semaphore::new(MOST_UNDER_WAY));
    loop {
        let mut line = String::new();
        let mut bounded = tokio::io::AsyncReadExt::take(&mut input, MOST_LINE);
        if bounded.read_line(&mut line).await? == 0 {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        // The handshake comes before everything else; what follows may overtake one another.
        let first = line.contains("\"initialize\"") || line.contains("notifications/initialized");
        let (carrier, ended) = (carrier.clone(), stop.clone());
        if first {
            carrier.carry(line, &tracker, ended).await;
            continue;
        }
        let Ok(slot) = slots.clone().acquire_owned().await else { break };
        let inner = tracker.clone();
        tracker.spawn(async move {
            carrier.carry(line, &inner, ended).await;
            drop(slot);
        });
    }
    stop.cancel();
    tracker.close();
    tracker.wait().await;
    carrier.leave().await;
    drop(carrier);
    writing.await??;
    Ok(())
}

/// Between the streams and the office.
struct Carrier {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
    session: RwLock<Option<String>>,
    listening: Mutex<bool>,
    trees: Arc<Trees>,
    out: mpsc::Sender<String>,
}

impl Carrier {
    async fn request(&self, method: reqwest::Method) -> reqwest::RequestBuilder {
        let mut request =
            self.client.request(method, &self.url).header("accept", "application/json, text/event-stream");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &*self.session.read().await {
            request = request.header("mcp-session-id", session);
        }
        request
    }

    /// Carries one line and brings back what is answered to it.
    async fn carry(self: &Arc<Self>, line: String, tracker: &TaskTracker, stop: CancellationToken) {
        let line = self.with_bytes(line).await;
        let request = self.request(reqwest::Method::POST).await;
        let request = request.header("content-type", "application/json").body(line.trim().to_owned());
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return self.fail(&line, &format!("the office does not answer: {error}")).await,
        };
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()) {
            *self.session.write().await = Some(session.to_owned());
        }
        let status = response.status();
        let streamed = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if streamed {
            self.relay(response).await;
        } else {
            match response.text().await {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) if text.trim_start().starts_with(['{', '[']) => drop(self.out.send(text).await),
                Ok(text) => self.fail(&line, &format!("{status}: {}", text.trim())).await,
                Err(error) => self.fail(&line, &error.to_string()).await,
            }
        }
        if line.contains("notifications/initialized") {
            self.listen(tracker, stop).await;
        }
    }

    /// A call that names files to attach, with their bytes instead: this process runs as the user, the server need not.
    /// Only files of the work tree that it was started in; a path that is left is the server's to judge.
    async fn with_bytes(&self, line: String) -> String {
        if !line.contains("attachment_paths") || self.trees.is_empty() {
            return line;
        }
        let Ok(mut call) = serde_json::from_str::<Value>(&line) else { return line };
        let Some(given) = call.pointer_mut("/params/arguments").and_then(Value::as_object_mut) else {
            return line;
        };
        let Some(Value::Array(paths)) = given.get("attachment_paths").cloned() else { return line };
        let base = given.get("project_key").and_then(Value::as_str).unwrap_or_default().to_owned();
        let trees = self.trees.clone();
        let read = tokio::task::spawn_blocking(move || {
            let (mut files, mut left) = (Vec::new(), Vec::new());
            for path in paths {
                let text = path.as_str().unwrap_or_default();
                match trees.read(&base, text, MOST_FILE) {
                    Ok(bytes) => {
                        let name = Path::new(text).file_name().unwrap_or_default().to_string_lossy();
                        files.push(json!({ "name": name, "data": STANDARD.encode(bytes) }));
                    }
                    Err(_) => left.push(path),
                }
            }
            (files, left)
        });
        let Ok((files, left)) = read.await else { return line };
        given.insert("attachment_paths".to_owned(), left.into());
        match given.entry("attachments").or_insert_with(|| json!([])) {
            Value::Array(list) => list.extend(files),
            _ => return line,
        }
        call.to_string()
    }

    /// Opens the stream of notifications, once there is a session to have one.
    async fn listen(self: &Arc<Self>, tracker: &TaskTracker, stop: CancellationToken) {
        let mut listening = self.listening.lock().await;
        if *listening || self.session.read().await.is_none() {
            return;
        }
        *listening = true;
        let carrier = self.clone();
        tracker.spawn(async move {
            let heard = async {
                if let Ok(response) = carrier.request(reqwest::Method::GET).await.send().await
                    && response.status().is_success()
                {
                    carrier.relay(response).await;
                }
            };
            stop.run_until_cancelled(heard).await;
        });
    }

    async fn relay(&self, response: reqwest::Response) {
        let mut parser = sse::Parser::new(MOST_EVENT);
        let mut stream = response.bytes_stream();
        while let Some(Ok(chunk)) = stream.next().await {
            let mut events = Vec::new();
            if parser.feed(&chunk, &mut events).is_err() {
                return;
            }
            for event in events.into_iter().filter(|event| !event.data.trim().is_empty()) {
                if self.out.send(event.data).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Answers in the office's stead, where an answer is expected.
    async fn fail(&self, line: &str, why: &str) {
        let asked: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        if asked.get("method").is_some() && asked.get("id").is_none() {
            return;
        }
        let error = serde_json::json!({ "code": -32_603, "message": why });
        let answer = serde_json::json!({ "jsonrpc": "2.0", "id": asked.get("id"), "error": error });
        drop(self.out.send(answer.to_string()).await);
    }

    async fn leave(&self) {
        if self.session.read().await.is_some() {
            // Whether the office hears our goodbye does not matter.
            let goodbye =
                self.request(reqwest::Method::DELETE).await.timeout(std::time::Duration::from_secs(2));
            drop(goodbye.send().await);
        }
    }
}
