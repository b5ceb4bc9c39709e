//! Reading the event log: all of it however rare the matches are, and across restarts of the server.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{AgentId, Caller, Json, RealmName};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::office::Announce;
use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::{Office, Trouble};

/// Events that no filter of these tests wants.
const NOISE: usize = 70_000;

/// Fills the log of the default realm: noise, with an agent registered after a third and after two thirds of it.
async fn fill(dir: &TestDir) {
    let (office, guard) = posthaste_engine::Office::open(dir.path(), Limits::default()).unwrap();
    let engine = office.realm(&RealmName::new("main").unwrap()).await.unwrap();
    let caller = Caller::office();
    let mut waiting = std::collections::VecDeque::new();
    for n in 0..NOISE {
        if n == NOISE / 3 || n == 2 * NOISE / 3 {
            let id = AgentId::new(format!("ghost{n}")).ok();
            engine.submit(&caller, Register { id, ..Register::default() }).await.unwrap();
        }
        let noise = Announce { word: "noise".into(), data: Json::new("{}").unwrap(), to: None };
        waiting.push_back(engine.enqueue(&caller, noise).await.unwrap());
        if waiting.len() == 512 {
            waiting.pop_front().unwrap().answer().await.unwrap();
        }
    }
    for pending in waiting {
        pending.answer().await.unwrap();
    }
    drop((engine, office));
    guard.close().await;
}

fn seqs(lines: &str) -> Vec<i64> {
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_i64().unwrap()).collect()
}

// F1: a page ends at the end of the log or when it is full, and says which; never because of a pause.
#[tokio::test]
async fn the_log_is_read_to_its_end_however_rare_the_matches_are() {
    let dir = TestDir::new();
    fill(&dir).await;
    let office = Office::open(dir.path());
    let head = office.call("events", json!({})).await.unwrap();
    assert_eq!((&head["events"], &head["end"]), (&json!([]), &json!(true)));
    let head = head["cursor"].as_i64().unwrap();
    assert!(head >= NOISE as i64 + 2);

    // By the method: every event once, in order; `end` only at the head.
    let (mut all, mut cursor) = (Vec::new(), 0);
    loop {
        let page = office.call("events", json!({ "after": cursor, "limit": 500 })).await.unwrap();
        all.extend(page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_i64().unwrap()));
        cursor = page["cursor"].as_i64().unwrap();
        assert_eq!(page["end"] == true, cursor == head, "{cursor} of {head}");
        if page["end"] == true {
            break;
        }
    }
    assert_eq!(all, (1..=head).collect::<Vec<_>>());
    assert_eq!(
        office.call("events", json!({ "after": head + 1 })).await,
        Err(Trouble::Refused("stale_cursor".into()))
    );
    assert_eq!(
        office.call("events", json!({ "after": 1, "before": 9 })).await,
        Err(Trouble::Refused("bad_params".into()))
    );

    // By the command, again and again: two matches in 70,000, forwards and backwards.
    let ghosts = ["--type", "agent.registered"];
    let run = |args: &[&str]| {
        dir.posthaste().args(["tail", "--json", "--no-follow"]).args(args.iter().copied()).run()
    };
    let found = seqs(&run(&["--after=0", ghosts[0], ghosts[1]]).ok().stdout);
    assert_eq!(found.len(), 2);
    for _ in 0..3 {
        assert_eq!(seqs(&run(&["--after=0", ghosts[0], ghosts[1]]).ok().stdout), found);
    }
    // `-n` counts what matches.
    for (count, expected) in [("2", &found[..]), ("1", &found[1..]), ("9", &found[..]), ("0", &[])] {
        let ran = run(&["-n", count, ghosts[0], ghosts[1]]).ok();
        assert_eq!((seqs(&ran.stdout), ran.stderr.as_str()), (expected.to_vec(), ""), "-n {count}");
    }
    assert_eq!(seqs(&run(&["-n", "3"]).ok().stdout), (head - 2..=head).collect::<Vec<_>>());
    assert_eq!(seqs(&run(&["-n", "700"]).ok().stdout).len(), 700);
    assert_eq!(office.close(), Some(0));
}

/// A command that stays, and its lines.
struct Staying {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Staying {
    fn start(dir: &TestDir, args: &[&str]) -> Self {
        let mut program = dir.posthaste().args(args.iter().copied());
        let mut child = program.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Ends it by Ctrl-C: its exit code and what it said on standard error.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.end()
    }

    fn end(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// F19: a watcher goes on after a restart, at whatever address, without gap or repetition. F52: Ctrl-C is silent.
#[tokio::test]
async fn tail_and_watch_go_on_after_a_restart() {
    let dir = TestDir::new();
    let mut office = Office::open(dir.path());
    office.register("ann").await;
    let follow = ["tail", "--after=0", "--type=message.sent", "--json"];
    let mut tail = Staying::start(&dir, &follow);
    let mut watch = Staying::start(&dir, &["inbox", "--agent=ann", "--watch", "--json"]);
    let mut brittle = Staying::start(&dir, &[&follow[..], &["--no-retry"]].concat());
    for (n, end) in
        [Office::kill as fn(Office), |office| assert_eq!(office.close(), Some(0))].into_iter().enumerate()
    {
        for body in [format!("before {n}"), format!("also before {n}")] {
            office.send("ann", "ann", &body, &body).await.unwrap();
            assert_eq!(tail.next()["message"]["body"], body.as_str());
            assert_eq!(watch.next()["body"], body.as_str());
            if n == 0 {
                assert_eq!(brittle.next()["message"]["body"], body.as_str());
            }
        }
        end(office);
        if n == 0 {
            let (code, said) = brittle.end();
            assert_eq!(code, Some(3), "{said}");
        }
        office = Office::open(dir.path());
    }
    office.send("ann", "ann", "after", "after").await.unwrap();
    assert_eq!(tail.next()["message"]["body"], "after");
    assert_eq!(watch.next()["body"], "after");
    for staying in [tail, watch] {
        let (code, said) = staying.interrupt();
        assert_eq!(code, Some(130), "{said}");
        assert_eq!(said.matches("trying again").count(), 2, "once for each restart: {said}");
        assert_eq!(said.matches("answers again").count(), 2, "{said}");
        assert!(!said.contains("interrupted"), "{said}");
    }
    assert_eq!(office.close(), Some(0));
    let never = dir.posthaste().args(["tail", "--url", "http://127.0.0.1:1", "--token=x"]).run();
    assert_eq!(never.code, 3, "{}", never.stderr);
}

// F52
#[tokio::test]
async fn ctrl_c_ends_a_watcher_silently() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    office.send("ann", "ann", "first", "k").await.unwrap();
    for args in [&["tail", "--after=0", "--json"][..], &["inbox", "--agent=ann", "--watch", "--json"]] {
        let mut staying = Staying::start(&dir, args);
        staying.next();
        assert_eq!(staying.interrupt(), (Some(130), String::new()), "{args:?}");
    }
    assert_eq!(office.close(), Some(0));
}
