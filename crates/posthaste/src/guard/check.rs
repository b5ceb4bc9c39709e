//! Asking the office whether somebody holds what is about to be committed or pushed. No runtime, short patience: a
//! hook runs at every commit.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{changes, git_line};
use crate::cli::client::is_loopback;
use posthaste_host::projects::git::WorkTree;

/// How long the office may take to answer the knock, and the question.
const KNOCK: Duration = Duration::from_millis(250);
const ANSWER: Duration = Duration::from_millis(1_500);
/// The same for a server on another machine.
const KNOCK_FAR: Duration = Duration::from_secs(2);
const ANSWER_FAR: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MOST_BYTES: u64 = 4 << 20;

/// Which hook asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hook {
    PreCommit,
    PrePush,
}

/// What is to be checked.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// The server to ask; none is running if absent.
    pub(crate) url: Option<&'a str>,
    pub(crate) directory: &'a Path,
    pub(crate) hook: Hook,
    /// What git said on standard input.
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

/// What is held of what is touched.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) held: Vec<Held>,
    /// Whether the committing agent is known by name. If not, it may be one of `here`.
    pub(crate) named: bool,
    /// The agents that work in this directory.
    pub(crate) here: Vec<String>,
}

impl Answer {
    /// Leaves out what the only agent of this directory holds: it is the one that commits.
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

/// What others hold of what is touched. An error is why the server could not be asked, which is no reason to stop.
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
    let mut given = json!({ "project_key": project, "paths": paths });
    let agent = agent.filter(|agent| !agent.is_empty());
    let named = agent.is_some();
    match agent {
        Some(agent) => given["agent_name"] = agent.into(),
        None => given["directory"] = tree.top.to_string_lossy().into_owned().into(),
    }
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "check_file_reservation_conflicts", "arguments": given },
    });
    let answer = post(url, question.token.as_deref(), &body.to_string())?;
    let (held, here) = read(&answer)?;
    Ok(Answer { held, named, here }.without_own())
}

/// A repository that is a part of the project: where in it.
fn prefix(project: &str, main: &str) -> String {
    match main.strip_prefix(project).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !rest.is_empty() => format!("{rest}/"),
        _ => String::new(),
    }
}

/// Paths as patterns that mean just them.
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
        return Err(why.unwrap_or("the office did not understand").to_owned());
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

/// One request by hand: a client with a runtime would take longer to start than the whole check.
fn post(url: &str, token: Option<&str>, body: &str) -> Result<Value, String> {
    // Another machine's name, a path or TLS are for a real client.
    let here = url.strip_prefix("http://").filter(|host| host.parse::<std::net::SocketAddr>().is_ok());
    let Some(host) = here else { return post_with_client(url, token, body) };
    let failed = |error: std::io::Error| format!("the office does not answer: {error}");
    let address = host.to_socket_addrs().map_err(failed)?.next().ok_or("the office has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, KNOCK).map_err(failed)?;
    stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
    stream.set_write_timeout(Some(ANSWER)).map_err(failed)?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{authorization}Content-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).map_err(failed)?;
    let mut bytes = Vec::new();
    stream.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, body) = text.split_once("\r\n\r\n").ok_or("the office broke off")?;
    serde_json::from_str(body).map_err(|error| format!("the office's answer cannot be read: {error}"))
}

fn post_with_client(url: &str, token: Option<&str>, body: &str) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let asked = runtime.block_on(async {
        let is_here = is_loopback(url);
        let (connect, answer) = if is_here { (KNOCK, ANSWER) } else { (KNOCK_FAR, ANSWER_FAR) };
        let client = reqwest::Client::builder().connect_timeout(connect).timeout(answer).no_proxy();
        // The server on this machine may show a certificate made for another name.
        let client = client.danger_accept_invalid_certs(is_here).build()?;
        let mut request = client.post(format!("{url}/mcp")).header("content-type", "application/json");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.body(body.to_owned()).send().await?.json::<Value>().await
    });
    asked.map_err(|error| format!("the office does not answer: {error}"))
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
