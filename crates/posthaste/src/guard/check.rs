//! Asks the server whether other agents have reserved the paths of a commit or push. It uses no runtime and short timeouts,
//! because a hook runs at every commit.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{changes, git_line};
use crate::cli::client::is_loopback;
use posthaste_host::projects::git::WorkTree;

/// Timeouts of connecting to the server, and of its answer.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(250);
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The same for a server on another machine.
const REMOTE_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const REMOTE_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// Which hook asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hook {
    PreCommit,
    PrePush,
}

/// A check to make.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// The server to ask; none is running if absent.
    pub(crate) url: Option<&'a str>,
    pub(crate) directory: &'a Path,
    pub(crate) hook: Hook,
    /// Git's lines on standard input.
    pub(crate) input: &'a str,
    pub(crate) project: Option<&'a str>,
    pub(crate) agent: Option<String>,
    pub(crate) token: Option<String>,
}

/// A path that is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) path: String,
    pub(crate) pattern: String,
    pub(crate) agent: String,
    pub(crate) until: String,
}

/// The reserved paths among the touched ones.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) held: Vec<Held>,
    /// Whether the committing agent is known by name. If not, it may be one of `here`.
    pub(crate) named: bool,
    /// The agents that work in this directory.
    pub(crate) here: Vec<String>,
}

impl Answer {
    /// Leaves out reservations of the directory's only agent, which is the one that commits.
    fn without_own(mut self) -> Self {
        if let ([only], false) = (self.here.as_slice(), self.named) {
            self.held.retain(|held| held.agent != *only);
        }
        self
    }

    /// Whether the holder may be the agent that commits.
    pub(crate) fn may_be_own(&self, held: &Held) -> bool {
        !self.named && self.here.contains(&held.agent)
    }
}

/// A call of one tool of the MCP door.
#[derive(Serialize)]
struct ToolCall {
    jsonrpc: &'static str,
    id: u32,
    method: &'static str,
    params: ToolParams,
}

#[derive(Serialize)]
struct ToolParams {
    name: &'static str,
    arguments: Arguments,
}

#[derive(Serialize)]
struct Arguments {
    project_key: String,
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

/// Reservations of other agents on the touched paths. The error says why the server could not be asked; the hook goes on.
pub(crate) fn ask(question: &Question<'_>) -> Result<Answer, String> {
    let url = question.url.ok_or("no server is running")?;
    let touched = match question.hook {
        Hook::PreCommit => changes::staged(question.directory)?,
        Hook::PrePush => changes::pushed(question.directory, question.input)?,
    };
    if touched.is_empty() {
        return Ok(Answer::default());
    }
    let tree = WorkTree::around(question.directory).ok_or("this is not a work tree")?;
    let main = tree.main.to_string_lossy().into_owned();
    let project = question.project.unwrap_or(&main).to_owned();
    let agent = question
        .agent
        .clone()
        .or_else(|| git_line(question.directory, &["config", "--get", "posthaste.agent"]).ok());
    let paths: Vec<String> = patterns(&touched, &prefix(&project, &main));
    let agent = agent.filter(|agent| !agent.is_empty());
    let named = agent.is_some();
    let directory = (!named).then(|| tree.top.to_string_lossy().into_owned());
    let arguments = Arguments { project_key: project, paths, agent_name: agent, directory };
    let call = ToolCall {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: ToolParams { name: "check_file_reservation_conflicts", arguments },
    };
    let body = serde_json::to_string(&call).map_err(|error| error.to_string())?;
    let answer = post(url, question.token.as_deref(), &body)?;
    let (held, here) = read(&answer)?;
    Ok(Answer { held, named, here }.without_own())
}

/// The path of a repository inside its project.
fn prefix(project: &str, main: &str) -> String {
    match main.strip_prefix(project).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !rest.is_empty() => format!("{rest}/"),
        _ => String::new(),
    }
}

/// Paths as patterns that match only themselves.
fn patterns(paths: &BTreeSet<String>, prefix: &str) -> Vec<String> {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
    let escaped = |path: &String| -> String {
        let plain = format!("{prefix}{path}");
        plain.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
    };
    paths.iter().map(escaped).filter(|path| path.len() < 1_000 && !path.contains("://")).collect()
}

fn read(answer: &Value) -> Result<(Vec<Held>, Vec<String>), String> {
    let result = &answer["result"];
    if result["isError"] == true || !result.is_object() {
        let why = result["content"][0]["text"].as_str().or(answer["error"]["message"].as_str());
        return Err(why.unwrap_or("the server did not understand").to_owned());
    }
    let mut held = Vec::new();
    for conflict in result["structuredContent"]["conflicts"].as_array().into_iter().flatten() {
        for holder in conflict["holders"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            held.push(Held {
                path: text(&conflict["path"]),
                pattern: text(&holder["path_pattern"]),
                agent: text(&holder["agent"]),
                until: text(&holder["expires_ts"]),
            });
        }
    }
    let here = result["structuredContent"]["working_here"].as_array().into_iter().flatten();
    Ok((held, here.filter_map(Value::as_str).map(str::to_owned).collect()))
}

/// Sends one request without a client library: a runtime would take longer to start than the whole check.
fn post(url: &str, token: Option<&str>, body: &str) -> Result<Value, String> {
    // A host name, a path or TLS needs the client library.
    let here = url.strip_prefix("http://").filter(|host| host.parse::<std::net::SocketAddr>().is_ok());
    let Some(host) = here else { return post_with_client(url, token, body) };
    let failed = |error: std::io::Error| format!("the server does not answer: {error}");
    let address = host.to_socket_addrs().map_err(failed)?.next().ok_or("the server has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{authorization}Content-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).map_err(failed)?;
    let mut bytes = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, body) = text.split_once("\r\n\r\n").ok_or("the server closed the connection")?;
    serde_json::from_str(body).map_err(|error| format!("the server's answer cannot be read: {error}"))
}

fn post_with_client(url: &str, token: Option<&str>, body: &str) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let asked = runtime.block_on(async {
        let is_here = is_loopback(url);
        let (connect, answer) = if is_here {
            (CONNECT_TIMEOUT, ANSWER_TIMEOUT)
        } else {
            (REMOTE_CONNECT_TIMEOUT, REMOTE_ANSWER_TIMEOUT)
        };
        let client = reqwest::Client::builder().connect_timeout(connect).timeout(answer).no_proxy();
        // The certificate of a server on this machine may be for another name.
        let client = client.danger_accept_invalid_certs(is_here).build()?;
        let mut request = client.post(format!("{url}/mcp")).header("content-type", "application/json");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.body(body.to_owned()).send().await?.json::<Value>().await
    });
    asked.map_err(|error| format!("the server does not answer: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_special_characters_mean_themselves() {
        let paths = BTreeSet::from(["a[1].rs".to_owned(), "b*.rs".to_owned(), "plain/c.rs".to_owned()]);
        assert_eq!(patterns(&paths, ""), [r"a\[1\].rs", r"b\*.rs", "plain/c.rs"]);
        assert_eq!(patterns(&BTreeSet::from(["x".to_owned()]), "sub/"), ["sub/x"]);
        assert_eq!(prefix("/srv/mono", "/srv/mono/part"), "part/");
        assert_eq!(prefix("/srv/app", "/srv/app"), "");
        assert_eq!(prefix("/srv/app", "/home/x"), "");
    }
}
