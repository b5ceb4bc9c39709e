//! Carries lines to a server and answers and notifications back. When the server ends, the next one is found or started and
//! sent the client's own handshake, so that the client does not notice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use posthaste_wire::mcp::headers::SESSION;
use posthaste_wire::mcp::methods;
use posthaste_wire::rpc::{self, ErrorObject, INTERNAL_ERROR, Item, Message, RequestId};
use posthaste_wire::sse;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, RwLock, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::super::client::is_loopback;
use super::super::exit::Failure;
use super::upstream::{Endpoint, Upstream};
use super::{attachments, headers};
use posthaste_host::projects::Trees;

/// The longest event that the server sends.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// The longest line that is read.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Requests under way at once.
const MAX_REQUESTS: usize = 256;
/// Resources that are subscribed to again at another server.
const MAX_SUBSCRIPTIONS: usize = 256;
/// How often one request is tried at another server.
const MAX_TRIES: u32 = 4;
/// Between the end of a stream of notifications and the next one.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// How long answers are waited for once the input has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Tools that can be called again without harm if the server ended before it answered.
const READ_ONLY_TOOLS: [&str; 11] = [
    "check_file_reservation_conflicts",
    "fetch_inbox",
    "health_check",
    "list_agents",
    "list_contacts",
    "list_conversations",
    "list_turns",
    "search_messages",
    "summarize_thread",
    "wait_for_mail",
    "whois",
];

/// Relays standard input and output until the input ends or the process is told to stop.
pub(super) async fn relay(
    upstream: Arc<Upstream>,
    server: Endpoint,
    trees: Arc<Trees>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let is_here = is_loopback(&server.base);
    let client = reqwest::Client::builder()
        .no_proxy()
        // On this machine each call has a connection of its own: a server that is gone then refuses it, while a kept connection would
        // take the call and leave open whether it was carried out.
        .pool_max_idle_per_host(if is_here { 0 } else { usize::MAX })
        // The server on this machine may show a certificate made for another name.
        .danger_accept_invalid_certs(is_here)
        .build()?;
    let (out, mut lines) = mpsc::channel::<String>(MAX_REQUESTS);
    let state = State {
        server,
        session: None,
        generation: 0,
        handshake: None,
        is_greeted: false,
        watched: BTreeMap::new(),
    };
    let carrier = Arc::new(Carrier {
        client,
        upstream,
        state: RwLock::new(state),
        renewing: Mutex::new(()),
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
    let (tracker, ended) = (TaskTracker::new(), stop.child_token());
    let told_to_stop = stop.run_until_cancelled(read_lines(&carrier, &tracker, &ended)).await;
    ended.cancel();
    tracker.close();
    let patience = if told_to_stop.is_none() { Duration::ZERO } else { DRAIN_TIMEOUT };
    let is_done = tokio::time::timeout(patience, tracker.wait()).await.is_ok();
    carrier.leave().await;
    drop(carrier);
    if is_done {
        writing.await??;
    }
    told_to_stop.unwrap_or(Ok(()))
}

async fn read_lines(
    carrier: &Arc<Carrier>,
    tracker: &TaskTracker,
    ended: &CancellationToken,
) -> Result<(), Failure> {
    let mut input = BufReader::new(tokio::io::stdin());
    let slots = Arc::new(tokio::sync::Semaphore::new(MAX_REQUESTS));
    loop {
        let mut line = String::new();
        let mut bounded = tokio::io::AsyncReadExt::take(&mut input, MAX_LINE_BYTES);
        if bounded.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if line.trim().is_empty() {
            continue;
        }
        let call: Value = serde_json::from_str(&line).unwrap_or_default();
        // The handshake comes before everything else; what follows may overtake one another.
        let method = call["method"].as_str().unwrap_or_default();
        if matches!(method, methods::INITIALIZE | methods::INITIALIZED) {
            carrier.carry(line, call, tracker, ended).await;
            continue;
        }
        let Ok(slot) = slots.clone().acquire_owned().await else { return Ok(()) };
        let (carrier, inner, ended) = (carrier.clone(), tracker.clone(), ended.clone());
        tracker.spawn(async move {
            carrier.carry(line, call, &inner, &ended).await;
            drop(slot);
        });
    }
}

/// Between the streams and the server.
struct Carrier {
    client: reqwest::Client,
    upstream: Arc<Upstream>,
    state: RwLock<State>,
    renewing: Mutex<()>,
    listening: Mutex<bool>,
    trees: Arc<Trees>,
    out: mpsc::Sender<String>,
}

/// The connection to the server, and what another one has to be sent.
struct State {
    server: Endpoint,
    session: Option<String>,
    /// Counts servers and sessions.
    generation: u64,
    /// The client's `initialize`.
    handshake: Option<String>,
    /// Whether the client said that it is initialized.
    is_greeted: bool,
    /// The client's `resources/subscribe`, by what they are about.
    watched: BTreeMap<String, String>,
}

/// What became of one request.
enum Attempt {
    Answered,
    /// The server is gone, and did nothing that trying again would repeat.
    Again(String),
    Failed(String),
}

impl Carrier {
    /// A request to the server as it is known now, and which knowledge that is.
    async fn request(&self, method: Method, call: &Value) -> (u64, reqwest::RequestBuilder) {
        let state = self.state.read().await;
        let mut request = self
            .client
            .request(method, &state.server.url)
            .header("accept", "application/json, text/event-stream");
        if let Some(token) = &state.server.token {
            request = request.bearer_auth(token);
        }
        let named = headers::of(call);
        // The newest revision knows no sessions.
        if let Some(session) =
            state.session.as_ref().filter(|_| named.is_empty() && call["method"] != methods::INITIALIZE)
        {
            request = request.header(SESSION, session);
        }
        for (name, value) in named {
            request = request.header(name, value);
        }
        (state.generation, request)
    }

    /// Carries one line and brings back what is answered to it.
    async fn carry(
        self: &Arc<Self>,
        line: String,
        call: Value,
        tracker: &TaskTracker,
        ended: &CancellationToken,
    ) {
        let line = attachments::with_bytes(&self.trees, line).await;
        self.note(&line, &call).await;
        for tried in 1.. {
            let (generation, request) = self.request(Method::POST, &call).await;
            let why = match self.attempt(request, &line, &call).await {
                Attempt::Answered => break,
                Attempt::Failed(why) => return self.fail(&call, &why).await,
                Attempt::Again(why) => why,
            };
            if tried >= MAX_TRIES || ended.is_cancelled() {
                return self.fail(&call, &why).await;
            }
            if let Err(failure) = self.renew(generation).await {
                return self.fail(&call, &failure.error.to_string()).await;
            }
        }
        if call["method"] == methods::INITIALIZED {
            self.listen(tracker, ended).await;
        }
    }

    async fn attempt(&self, request: reqwest::RequestBuilder, line: &str, call: &Value) -> Attempt {
        let request = request.header("content-type", "application/json").body(line.trim().to_owned());
        let lost = |why: &dyn std::fmt::Display| {
            match may_repeat(call) {
            true => Attempt::Again(format!("the server does not answer: {why}")),
            false => Attempt::Failed(
                "the server ended while this call was under way; look whether it was carried out before you repeat it"
                    .to_owned(),
            ),
        }
        };
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Attempt::Again(format!("the server does not answer: {error}"));
            }
            Err(error) => return lost(&error),
        };
        if call["method"] == methods::INITIALIZE
            && let Some(session) = response.headers().get(SESSION).and_then(|id| id.to_str().ok())
        {
            self.state.write().await.session = Some(session.to_owned());
        }
        let status = response.status();
        if is_stream(&response) {
            return match self.pass_on(response, call.get("id")).await {
                true => Attempt::Answered,
                false => lost(&"it ended"),
            };
        }
        let text = match response.text().await {
            Ok(text) => text,
            Err(error) => return lost(&error),
        };
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let is_answer = !said["id"].is_null() && said.get("id") == call.get("id");
        match status {
            // The session is gone, and with it what the server knew of the client.
            StatusCode::NOT_FOUND if !is_answer && self.state.read().await.session.is_some() => {
                Attempt::Again(format!("{status}: {}", text.trim()))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let why = said["error"]["message"].as_str().or(said["message"].as_str());
                Attempt::Failed(why.unwrap_or("the server refused the token").to_owned())
            }
            _ if text.trim().is_empty() => Attempt::Answered,
            _ if text.trim_start().starts_with(['{', '[']) => {
                drop(self.out.send(text).await);
                Attempt::Answered
            }
            _ => Attempt::Failed(format!("{status}: {}", text.trim())),
        }
    }

    /// Keeps what another server has to be sent.
    async fn note(&self, line: &str, call: &Value) {
        let uri = || call["params"]["uri"].as_str().unwrap_or_default().to_owned();
        match call["method"].as_str() {
            Some(methods::INITIALIZE) => self.state.write().await.handshake = Some(line.trim().to_owned()),
            Some(methods::INITIALIZED) => self.state.write().await.is_greeted = true,
            Some(methods::SUBSCRIBE) => {
                let mut state = self.state.write().await;
                if state.watched.len() < MAX_SUBSCRIPTIONS {
                    state.watched.insert(uri(), line.trim().to_owned());
                }
            }
            Some(methods::UNSUBSCRIBE) => drop(self.state.write().await.watched.remove(&uri())),
            _ => {}
        }
    }

    /// Finds or starts the next server, unless that was done since, and repeats the client's handshake there.
    async fn renew(&self, seen: u64) -> Result<(), Failure> {
        let _one_at_a_time = self.renewing.lock().await;
        if self.state.read().await.generation != seen {
            return Ok(());
        }
        let server = self.upstream.find().await?;
        let (handshake, is_greeted, watched) = {
            let mut state = self.state.write().await;
            (state.server, state.session) = (server, None);
            state.generation += 1;
            (state.handshake.clone(), state.is_greeted, state.watched.values().cloned().collect::<Vec<_>>())
        };
        let Some(handshake) = handshake else { return Ok(()) };
        let call: Value = serde_json::from_str(&handshake).unwrap_or_default();
        let (_, request) = self.request(Method::POST, &call).await;
        let response = request.header("content-type", "application/json").body(handshake).send().await?;
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        drop(response.text().await);
        self.state.write().await.session = session;
        let greeting = is_greeted.then(|| rpc::write_notification(methods::INITIALIZED, None));
        for line in greeting.into_iter().chain(watched) {
            let (_, request) = self.request(Method::POST, &Value::Null).await;
            // The client has had its answers; what does not work now is found out when it is next asked for.
            if let Ok(response) = request.header("content-type", "application/json").body(line).send().await {
                drop(response.text().await);
            }
        }
        Ok(())
    }

    /// Follows the stream of notifications, at whichever server there is.
    async fn listen(self: &Arc<Self>, tracker: &TaskTracker, ended: &CancellationToken) {
        let mut listening = self.listening.lock().await;
        if *listening || self.state.read().await.session.is_none() {
            return;
        }
        *listening = true;
        let (carrier, ended) = (self.clone(), ended.clone());
        tracker.spawn(async move {
            let follow = async {
                loop {
                    let (generation, request) = carrier.request(Method::GET, &Value::Null).await;
                    let is_gone = match request.send().await {
                        Ok(response) if response.status().is_success() => {
                            carrier.pass_on(response, None).await;
                            false
                        }
                        Ok(response) if response.status() == StatusCode::NOT_FOUND => true,
                        // A server that has no such stream, or does not know the token any more.
                        Ok(_) => return,
                        Err(_) => true,
                    };
                    if is_gone && carrier.renew(generation).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            };
            ended.run_until_cancelled(follow).await;
        });
    }

    /// Passes events on. Says whether the answer to a request was among them.
    async fn pass_on(&self, response: reqwest::Response, id: Option<&Value>) -> bool {
        let mut parser = sse::Parser::new(MAX_EVENT_BYTES);
        let mut stream = response.bytes_stream();
        let mut is_answered = id.is_none();
        while let Some(Ok(chunk)) = stream.next().await {
            let mut events = Vec::new();
            if parser.feed(&chunk, &mut events).is_err() {
                break;
            }
            for event in events.into_iter().filter(|event| !event.data.trim().is_empty()) {
                if !is_answered {
                    let said: Value = serde_json::from_str(&event.data).unwrap_or_default();
                    is_answered = said.get("method").is_none() && said.get("id") == id;
                }
                if self.out.send(event.data).await.is_err() {
                    return true;
                }
            }
        }
        is_answered
    }

    /// Answers in the server's stead, where an answer is expected.
    async fn fail(&self, call: &Value, why: &str) {
        if call.get("method").is_some() && call.get("id").is_none() {
            return;
        }
        let id = match rpc::parse(&call.to_string(), 1).pop() {
            Some(Item::Single(Message::Request { id, .. } | Message::Invalid { id, .. })) => id,
            _ => RequestId::null(),
        };
        let answer = rpc::write_error(&id, &ErrorObject::new(INTERNAL_ERROR, why));
        drop(self.out.send(answer).await);
    }

    async fn leave(&self) {
        if self.state.read().await.session.is_some() {
            // Whether the server hears of the end does not matter.
            let (_, goodbye) = self.request(Method::DELETE, &Value::Null).await;
            drop(goodbye.timeout(Duration::from_secs(2)).send().await);
        }
    }
}

/// Whether a request can be sent again although the server may have carried it out.
fn may_repeat(call: &Value) -> bool {
    let tool = call["params"]["name"].as_str().unwrap_or_default();
    call["method"] != methods::TOOLS_CALL || READ_ONLY_TOOLS.contains(&tool)
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get("content-type");
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
