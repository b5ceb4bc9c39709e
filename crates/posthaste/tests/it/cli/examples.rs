//! Every example in the help texts, typed as it stands: into a shell, beside a server, in a home directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::CommandFactory;
use posthaste::cli::args::Args;
use serde_json::json;

use crate::harness::TestDir;
use crate::office::Office;

/// Examples that are not run, and why. Their flags are checked all the same.
const NOT_RUN: &[(&str, &str)] = &[
    ("posthaste serve", "stays; another server has the data directory"),
    ("posthaste serve --data /srv/mail --listen 127.0.0.1:0", "stays"),
    ("posthaste serve --mail-dir .chipset/state/mail", "stays"),
    ("posthaste serve --swarm examples/swarm/builtin.json", "stays"),
    ("posthaste serve --listen 0.0.0.0:443 --allow-remote --tls-cert cert.pem --tls-key key.pem", "stays"),
    ("posthaste demo", "stays"),
    ("posthaste tail", "stays"),
    ("posthaste tail --type 'message.*' --agent ann", "stays"),
    ("posthaste inbox --agent ann --watch", "stays"),
    ("posthaste man token create | man -l -", "needs the program man"),
    ("posthaste airc reserve --renew rsv-9f3a --ttl 1h", "names an id that the reader has to fill in"),
    ("posthaste airc release rsv-9f3a", "names an id that the reader has to fill in"),
];

/// Examples that work on a data directory without a running server.
const WITHOUT_SERVER: &[&str] = &["posthaste restore "];

/// What is typed before examples that contain a text: they speak of things that others take away.
const BEFORE: &[(&str, &str)] = &[
    ("context", "rm -f ~/.config/posthaste/contexts.toml"),
    ("context use prod", ADD_CONTEXT),
    ("context show prod", ADD_CONTEXT),
    ("context remove prod", ADD_CONTEXT),
    ("--context prod", ADD_CONTEXT),
    ("agent show ann", "posthaste register ann"),
    ("agent remove ann", "posthaste register ann"),
    ("projects release ./examples", "posthaste projects move ./examples main"),
];
const ADD_CONTEXT: &str = "posthaste context add prod http://127.0.0.1:7678 --force --token-file token.txt";

/// A command line of an example, and the command whose help has it.
struct Example {
    of: String,
    line: String,
}

fn examples() -> Vec<Example> {
    fn collect(command: &clap::Command, path: &str, all: &mut Vec<Example>) {
        let path = format!("{path} {}", command.get_name());
        let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        for line in after.lines().filter(|line| line.starts_with("  ")) {
            let line = line.trim();
            // What an example does may stand behind it, after two spaces.
            let line = line.split_once("  ").map_or(line, |(line, _)| line);
            if line.split_whitespace().any(|word| word == "posthaste") {
                all.push(Example { of: path.trim().to_owned(), line: line.to_owned() });
            }
        }
        command.get_subcommands().for_each(|inner| collect(inner, &path, all));
    }
    let mut all = Vec::new();
    collect(&Args::command(), "", &mut all);
    all
}

/// A home directory with a repository in it, a running server, and what the examples speak of.
struct World {
    home: TestDir,
    office: Office,
}

impl World {
    fn data(&self) -> PathBuf {
        self.home.path().join(".local/share/posthaste")
    }

    fn repository(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// A home directory and a server with nothing in it.
    fn bare() -> Self {
        let home = TestDir::new();
        let data = home.path().join(".local/share/posthaste");
        std::fs::create_dir_all(&data).unwrap();
        let office = Office::open_with(&data, &[], &[("HOME", home.path().to_str().unwrap())]);
        Self { home, office }
    }

    async fn build() -> Self {
        let world = Self::bare();
        world.fill_mail().await;
        world.fill_files();
        world
    }

    /// Sends messages until the next event has this number.
    async fn advance_to(&self, number: i64) {
        loop {
            let head = self.office.call("events", json!({})).await.unwrap()["cursor"].as_i64().unwrap();
            assert!(head < number, "the log is at {head} already");
            if head + 1 == number {
                return;
            }
            self.office.call("send", json!({ "from": "me", "to": ["me"], "body": "x" })).await.unwrap();
        }
    }

    async fn fill_mail(&self) {
        let call = async |method: &str, params| self.office.call(method, params).await.unwrap();
        // An identity at AIRC, which alice of the examples writes to.
        let bob = "posthaste --data elsewhere airc --registry http://127.0.0.1:7678 register bob";
        let (code, said) = self.type_in(bob, None);
        assert_eq!(code, 0, "{said}");
        for agent in ["me", "ann", "ci", "BlueLake", "admin"] {
            call("register", json!({ "id": agent })).await;
        }
        call("register", json!({ "id": "carol", "role": "reviewer" })).await;
        self.advance_to(17).await;
        let until = posthaste_engine::stamp::now() + 3_600_000;
        let held = json!({ "agent": "ann", "scope": "project", "paths": ["docs/a.md"], "expires_at": until });
        assert_eq!(call("reserve", held).await["id"], 17);
        self.advance_to(134).await;
        let message =
            json!({ "from": "bob", "to": ["ann"], "subject": "s", "body": "b", "ack_required": true });
        assert_eq!(call("send", message).await["seq"], 134);
        call("send", json!({ "from": "bob", "to": ["ann"], "body": "b", "conversation": "release-42" }))
            .await;
        call("contact.ask", json!({ "agent": "bob", "other": "ann" })).await;
        call("realm.open", json!({ "name": "shop" })).await;
    }

    fn fill_files(&self) {
        let repository = self.repository();
        let write = |name: &str, text: &str| {
            let path = repository.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("change.diff", "+ one line\n");
        write("report.pdf", "%PDF");
        write("token.txt", self.office.token());
        write("messages.jsonl", "{\"ref\":1,\"from\":\"mayor\",\"to\":\"polecat-1\",\"body\":\"go\"}\n");
        let message = json!({
            "from": "mayor", "to": "polecat-1", "timestamp": "2026-03-05T10:30:00Z", "type": "coordination",
            "priority": "normal", "subject": "s", "body": "b", "read": false,
        });
        write("mail/polecat-1/2026-03-05T10-30-00Z-mayor.json", &message.to_string());
        std::fs::create_dir_all(repository.join("backup")).unwrap();
        for directory in
            [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions", "src/app"]
        {
            std::fs::create_dir_all(self.home.path().join(directory)).unwrap();
        }
        for line in [
            "git init -q && git remote add origin https://example.org/team/app.git && git init -q ~/src/app",
            // A data directory that no server has.
            "posthaste --data srv/mail send --from me --to me --body hello",
            "posthaste airc register alice",
            "posthaste airc consent request bob",
            "posthaste --data elsewhere airc consent accept alice",
            "posthaste --data elsewhere airc send alice 'Hello from bob.'",
        ] {
            let (code, said) = self.type_in(line, None);
            assert_eq!(code, 0, "{line}: {said}");
        }
        let (_, inbox) = self.type_in("posthaste airc inbox --json", None);
        let inbox: serde_json::Value =
            serde_json::from_str(inbox.split("\nstderr:").next().unwrap()).unwrap();
        write("message.json", &inbox["messages"][0]["message"].to_string());
    }

    /// Runs a line in a shell in the repository: its exit code and what it said. Absolute places of the examples lie below
    /// the repository, and the default address is the server's.
    fn type_in(&self, line: &str, data: Option<&Path>) -> (i32, String) {
        let here = self.repository();
        std::fs::create_dir_all(&here).unwrap();
        let mut typed = line.replace("http://127.0.0.1:7678", self.office.url());
        for place in ["/tmp/", "/srv/", "/backup/"] {
            typed = typed.replace(&format!(" {place}"), &format!(" {}{place}", here.display()));
        }
        let programs = Path::new(env!("CARGO_BIN_EXE_posthaste")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", &typed]).env_clear().current_dir(&here).stdin(Stdio::null());
        shell.env("PATH", path).env("HOME", self.home.path()).env("TOKEN", self.office.token());
        shell.env("POSTHASTE_LISTEN", "127.0.0.1:0").env("GIT_CONFIG_NOSYSTEM", "1");
        if let Some(data) = data {
            shell.env("POSTHASTE_DATA", data);
        }
        let ran = shell.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        (ran.status.code().unwrap_or(-1), format!("{out}\nstderr: {err}"))
    }
}

/// The words of the first `posthaste` command of a line, without quotation marks.
fn words(line: &str) -> Vec<String> {
    let command = line.split(['|', '>', '<', '&']).find(|part| part.contains("posthaste")).unwrap_or(line);
    let words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned());
    words.skip_while(|word| word != "posthaste").collect()
}

#[tokio::test]
async fn every_example_in_the_help_works_as_typed() {
    let all = examples();
    assert!(all.len() > 60, "{}", all.len());
    for (line, _) in NOT_RUN {
        assert!(all.iter().any(|example| example.line == *line), "no help has the example {line:?} any more");
        let parsed = clap::Parser::try_parse_from(words(line));
        let _: Args = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    let world = World::build().await;
    let still = world.repository().join("srv/mail");
    let mut failed = Vec::new();
    for Example { of, line } in &all {
        if NOT_RUN.iter().any(|(listed, _)| listed == line) {
            continue;
        }
        for (_, before) in BEFORE.iter().filter(|(text, _)| line.contains(text)) {
            let (code, said) = world.type_in(before, None);
            assert_eq!(code, 0, "{before}: {said}");
        }
        let data = WITHOUT_SERVER.iter().any(|start| line.starts_with(start)).then_some(still.as_path());
        let (code, said) = world.type_in(line, data);
        if code != 0 {
            failed.push(format!("{of}: {line}\n  exit code {code}\n  {said}"));
        }
    }
    assert!(failed.is_empty(), "{} of {} examples fail:\n{}", failed.len(), all.len(), failed.join("\n"));
    assert!(world.data().join("admin.token").exists());
    assert_eq!(world.office.close(), Some(0));
}

// F59
#[tokio::test]
async fn the_example_of_the_page_about_airc_works_as_typed() {
    let page = include_str!("../../../../../docs/doors/airc.md");
    let block = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = block.lines().filter(|line| line.starts_with("posthaste airc")).collect();
    assert!(lines.len() > 3, "{block}");
    let world = World::bare();
    let mut said = String::new();
    for line in lines {
        let (code, answer) = world.type_in(line, None);
        assert_eq!(code, 0, "{line}: {answer}");
        said = answer;
    }
    assert!(said.contains("Yours when CI is green.") && said.contains("acknowledged"), "{said}");
    assert_eq!(world.office.close(), Some(0));
}
